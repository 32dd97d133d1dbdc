"""`colibri hook`: what a host reports of its agent's work, put into the ledger as deeds."""
