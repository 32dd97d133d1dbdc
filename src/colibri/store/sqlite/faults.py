"""What SQLite's errors mean for whoever has the database open."""

from typing import Literal

import apsw

Fault = Literal["full", "busy", "io", "damaged"]

DatabaseError = apsw.Error  # what all errors of the database are

_FAULTS: tuple[tuple[type[apsw.Error], Fault], ...] = (
    (apsw.FullError, "full"),
    (apsw.BusyError, "busy"),
    (apsw.LockedError, "busy"),
    (apsw.CorruptError, "damaged"),
    (apsw.NotADBError, "damaged"),
    (apsw.IOError, "io"),
    (apsw.CantOpenError, "io"),
    (apsw.ReadOnlyError, "io"),
)


def fault(exc: BaseException) -> Fault | None:
    """What an error says about the database, or None if it says nothing about it."""
    if getattr(exc, "extendedresult", 0) == apsw.SQLITE_IOERR_SHMSIZE:
        return "full"  # there is no room to grow `-shm`
    return next((fault for kind, fault in _FAULTS if isinstance(exc, kind)), None)


def breaks_constraint(exc: BaseException) -> bool:
    """Whether a CHECK, a key or a trigger of the schema refused a change."""
    return isinstance(exc, apsw.ConstraintError)
