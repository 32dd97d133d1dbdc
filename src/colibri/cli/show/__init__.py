"""How records, times, verdicts and help read."""
