"""Waiting for other processes, and copying the write-ahead log back into the file."""

from collections.abc import Callable
from typing import Any

import apsw
from apsw import Connection

from colibri.store.sqlite.faults import fault

CHECKPOINT_PAGES = 1_000  # of write-ahead log, above which each commit tries to empty it


def set_patience(
    db: Connection,
    patience: Callable[[int], bool],
    failed: Callable[[apsw.Error], None],
) -> None:
    """Wait for other processes as `patience` says, but never during a checkpoint.

    SQLite's own checkpoint after a commit lets others write meanwhile. It then misses the new
    pages, and under busy servers the log keeps growing instead of being reused. So the few pages
    they added are copied with the write lock held. A reader of an older snapshot can still prevent
    the reset; then the next commit tries again. If copying fails, `failed` is called: the commit is
    safe in the log, but the log will never shrink.
    """

    def checkpoint(db: Connection, name: str, pages: int) -> int:
        if pages >= CHECKPOINT_PAGES:
            try:
                if problem := _copy_back(db):
                    failed(problem)
            finally:
                db.set_busy_handler(patience)
        return apsw.SQLITE_OK

    db.set_busy_handler(patience)
    db.set_wal_hook(checkpoint)


def overdue(db: Connection) -> apsw.Error | None:
    """Copy back a log that an earlier commit should have; why that fails, if it does.

    Whoever opens the database for a few records asks this first: if each added its own to a log
    that cannot be copied, it would grow without end, and nobody would notice.
    """
    pages, _ = db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_NOOP)
    return _copy_back(db) if pages >= CHECKPOINT_PAGES else None


def _copy_back(db: Connection) -> apsw.Error | None:
    """Why the log cannot be copied; None also if the database is busy or the disk full.

    It waits for nobody: the caller then sets the busy handler again.
    """
    db.set_busy_timeout(0)
    try:
        length, copied = db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        if copied == length:
            db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_RESTART)
    except apsw.Error as problem:
        return None if fault(problem) in ("busy", "full") else problem
    return None


def rewrite(db: Any, timeout_ms: int) -> bool:
    """Rewrite the file and truncate the log; False if another process still reads the log.

    Afterwards nothing is left of deleted data. Writers wait meanwhile, about a second per 50 MB.
    It can be repeated at any time.
    """
    db.set_busy_timeout(timeout_ms)
    db.execute("PRAGMA cache_spill = ON")  # the file may be larger than memory
    db.execute("VACUUM")
    busy, _, _ = next(db.execute("PRAGMA wal_checkpoint(TRUNCATE)"))
    return not busy
