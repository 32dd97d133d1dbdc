"""Waiting for other processes, and copying the write-ahead log back into the file."""

from collections.abc import Callable

import apsw
from apsw import Connection

from colibri.store.sqlite.faults import fault

CHECKPOINT_PAGES = 1_000  # in the write-ahead log: from then on each commit tries to empty it


def set_patience(
    db: Connection,
    patience: Callable[[int], bool],
    failed: Callable[[apsw.Error], None] = lambda problem: None,
) -> None:
    """Wait for other processes as `patience` says, but never with a checkpoint.

    SQLite's own checkpoint after a commit lets others write meanwhile: then it has not copied all,
    and the log does not begin anew but grows, among busy servers for long. So what they have added
    is copied once more with the write lock held, which is little. Who reads from an older state of
    the log still keeps it; then the next commit tries again. If the copying fails for any other
    reason than that others are in the way or the disk is full, `failed` is told: the commit is safe
    in the log, but the log will never get shorter.
    """

    def checkpoint(db: Connection, name: str, pages: int) -> int:
        if pages >= CHECKPOINT_PAGES:
            db.set_busy_timeout(0)
            try:
                length, copied = db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
                if copied == length:
                    db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_RESTART)
            except apsw.Error as problem:
                if fault(problem) not in ("busy", "full"):
                    failed(problem)
            finally:
                db.set_busy_handler(patience)
        return apsw.SQLITE_OK

    db.set_busy_handler(patience)
    db.set_wal_hook(checkpoint)


def rewrite(db: Connection, timeout_ms: int) -> bool:
    """Write the file again and cut the log to nothing; False if somebody still reads the log.

    Nothing is then left of what was deleted. Writers wait meanwhile, about a second for each 50 MB.
    It can be done again at any time.
    """
    db.set_busy_timeout(timeout_ms)
    db.execute("PRAGMA cache_spill = ON")  # the file may be larger than memory
    db.execute("VACUUM")
    busy, _, _ = next(db.execute("PRAGMA wal_checkpoint(TRUNCATE)"))
    return not busy
