"""The rules, as pure functions and values: no I/O, no clock, no threads."""
