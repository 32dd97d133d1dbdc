"""Opens the database to append a few records and close it again, for programs that must be fast.

Nothing is created or migrated, and the write-ahead log stays as it is. The last process to close
notes its size in the lock file, so that the next server does not mistake it for a crash.
"""

import os
from collections.abc import Callable

import apsw

from colibri.core.errors import ResourceError
from colibri.store.sqlite import expected, files, locks, place
from colibri.store.sqlite.checkpoint import overdue, set_patience
from colibri.store.sqlite.connection import library_version, require_sqlite
from colibri.store.sqlite.faults import explained
from colibri.store.sqlite.identity import describe, look, require_no_log_left
from colibri.store.sqlite.opened import Opened
from colibri.store.sqlite.schema import Migration
from colibri.store.sqlite.writing import Opening


class Uncopied(ResourceError):
    """Committed pages cannot be copied from the write-ahead log into the database file."""

    def __init__(self, path: str, problem: Exception) -> None:
        super().__init__(
            f"committed pages cannot be copied into {path}, so nothing more is written: {problem}",
            "check the disk, and copy the whole folder elsewhere: what was recorded is in the -wal",
        )


def open_current(path: str, patience: Callable[[int], bool]) -> Opened:
    """Open an existing database that has our schema; ResourceError if that takes too long.

    patience(tries) is called before each retry, here and for each lock, and waits a little.
    Uncopied is raised before anything is written to a log that cannot be copied back.
    """
    require_sqlite(library_version())
    given, path = path, os.path.realpath(path)
    with explained(path):
        place.require_local(path)
        require_no_log_left(given, path)
        # The digest of the schema shows whether it is ours; its text is not needed.
        schema = (Migration(expected.VERSION, ""),)
        opening = Opening(path, locks.open_lock(path), schema, makes=False)
        try:
            tries = 0
            while not (opened := opening.attempt()):
                tries += 1
                if not files.is_there(path) or not patience(tries):
                    raise ResourceError(opening.obstacle or f"{path} is in use, old or gone", "")
        except BaseException:
            os.close(opening.lock)
            raise
    if problem := overdue(opened.db):
        leave(opened)
        raise Uncopied(path, problem)
    uncopied: list[Exception] = []
    set_patience(opened.db, patience, uncopied.append)
    return opened._replace(uncopied=uncopied)


def require_copied(opened: Opened) -> None:
    """Uncopied if a commit since it was opened found that the log cannot be copied back."""
    if opened.uncopied:
        raise Uncopied(opened.path, opened.uncopied[0])


def leave(opened: Opened) -> None:
    """Close it, once, without a checkpoint."""
    try:
        opened.db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        opened.db.close()
        there = look(opened.path)
        is_same = there.seen[0] == opened.place.seen[0]
        if not opened.unclean and is_same and locks.take(opened.lock, alone=True):
            locks.note_left(opened.lock, describe(there), files.size(files.wal(opened.path)))
    finally:
        os.close(opened.lock)
