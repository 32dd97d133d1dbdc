"""Checkpoints of the ledger that are kept in git, and how they are found there again."""
