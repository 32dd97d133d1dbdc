"""What SQLite's errors mean for a process that has the database open."""

from collections.abc import Iterator
from contextlib import contextmanager

import apsw

from colibri.core.errors import ResourceError
from colibri.store.faults import Fault

DatabaseError = apsw.Error  # the base of all database errors

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
    """What an error says about the database, or None if nothing."""
    if getattr(exc, "extendedresult", 0) == apsw.SQLITE_IOERR_SHMSIZE:
        return "full"  # no space to grow `-shm`
    return next((fault for kind, fault in _FAULTS if isinstance(exc, kind)), None)


def breaks_constraint(exc: BaseException) -> bool:
    """Whether a CHECK, a key or a trigger of the schema refused a change."""
    return isinstance(exc, apsw.ConstraintError)


_REASONS: dict[Fault | None, tuple[str, str]] = {
    "full": ("the disk is full", "free some space, or set COLIBRI_DB_PATH to another volume"),
    "busy": ("another program holds it locked", "close that program and start again"),
    "damaged": (
        "it is not a database, or a damaged one",
        "restore it from a backup, or set COLIBRI_DB_PATH to another file",
    ),
}


@contextmanager
def explained(path: str) -> Iterator[None]:
    """Turn errors of SQLite or the system during opening into a ResourceError."""
    try:
        yield
    except (apsw.Error, OSError) as error:
        known = _REASONS.get(fault(error))
        reason, hint = known or (str(error), "check the permissions of the file and its directory")
        raise ResourceError(f"cannot open {path}: {reason}", hint) from error
