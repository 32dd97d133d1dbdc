"""Opens the database to append a few records and close it again, for programs that must be fast.

Nothing is created or migrated, and the write-ahead log stays as it is. The last process to close
notes its size in the lock file, so that the next server does not mistake it for a crash.
"""

import os
from collections.abc import Callable

import apsw

from colibri.core.errors import ResourceError
from colibri.store.sqlite import expected, files, locks, place
from colibri.store.sqlite.checkpoint import set_patience
from colibri.store.sqlite.connection import library_version, require_sqlite
from colibri.store.sqlite.faults import explained
from colibri.store.sqlite.identity import Opened, describe, look, require_no_log_left
from colibri.store.sqlite.schema import Migration
from colibri.store.sqlite.writing import Opening


def open_current(path: str, patience: Callable[[int], bool]) -> Opened:
    """Open an existing database that has our schema; ResourceError if that takes too long.

    patience(tries) is called before each retry, here and for each lock, and waits a little.
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
            set_patience(opened.db, patience)
        except BaseException:
            os.close(opening.lock)
            raise
    return opened


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
