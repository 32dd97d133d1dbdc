"""Waiting for other processes, and copying the write-ahead log back into the file."""

from collections.abc import Callable

import apsw
from apsw import Connection

from colibri.store.sqlite.faults import fault

CHECKPOINT_PAGES = 1_000  # of write-ahead log, above which each commit tries to empty it


def set_patience(
    db: Connection,
    patience: Callable[[int], bool],
    failed: Callable[[apsw.Error], None] = lambda problem: None,
) -> None:
    """Wait for other processes as `patience` says, but never during a checkpoint.

    SQLite's own checkpoint after a commit lets others write meanwhile. It then misses the new
    pages, and under busy servers the log keeps growing instead of being reused. So the few pages
    they added are copied with the write lock held. A reader of an older snapshot can still prevent
    the reset; then the next commit tries again. If copying fails for another reason than a busy
    database or a full disk, `failed` is called: the commit is safe in the log, but the log will
    never shrink.
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
    """Rewrite the file and truncate the log; False if another process still reads the log.

    Afterwards nothing is left of deleted data. Writers wait meanwhile, about a second per 50 MB.
    It can be repeated at any time.
    """
    db.set_busy_timeout(timeout_ms)
    db.execute("PRAGMA cache_spill = ON")  # the file may be larger than memory
    db.execute("VACUUM")
    busy, _, _ = next(db.execute("PRAGMA wal_checkpoint(TRUNCATE)"))
    return not busy
