"""What an error of a database means, whichever engine raised it."""

from colibri.store.sqlite.faults import DatabaseError, Fault, breaks_constraint, fault

__all__ = ["DatabaseError", "Fault", "breaks_constraint", "fault"]
