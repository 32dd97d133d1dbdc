"""One attempt to open the database for writing, creating or migrating it if needed."""

import os
from collections.abc import Callable, Sequence

from colibri.core.errors import ResourceError
from colibri.store import moved
from colibri.store.sqlite import expected, files, locks
from colibri.store.sqlite.connection import CACHE, Connection, connect
from colibri.store.sqlite.identity import (
    describe,
    guard_commits,
    look,
    require_one_name,
    require_own_log,
)
from colibri.store.sqlite.opened import Opened
from colibri.store.sqlite.pragma import version
from colibri.store.sqlite.schema import Migration, migrate, require_ours, upto
from colibri.store.sqlite.watch import Watch


class Opening:
    """Attempts to open a database for writing, and why they have failed so far.

    Without `makes`, only an existing database of the current version is opened; with `even_moved`,
    also one whose ledger was moved.
    """

    def __init__(
        self,
        path: str,
        lock: int,
        migrations: Sequence[Migration],
        stamp: str = "",
        new_log: Callable[[], str] = str,
        *,
        makes: bool = True,
        even_moved: bool = False,
    ) -> None:
        self.path = path
        self.lock = lock
        self.migrations = migrations
        self.obstacle = ""
        self._stamp = stamp
        self._new_log = new_log
        self._makes = makes
        self._even_moved = even_moved

    def attempt(self) -> Opened | None:
        """Open it with the lock that is free now; None, without a lock, if it needs the other."""
        alone = locks.take(self.lock, alone=True)
        if not alone and not locks.take(self.lock, alone=False):
            return None
        opened = self._open(alone=alone)
        if opened and alone:
            locks.note(self.lock, describe(opened.place))
            locks.share(self.lock)
            if version(opened.db) != opened.version:  # a newer Colibri got in first
                opened.db.close()
                opened = None
        if not opened:
            locks.release(self.lock)
        return opened

    def _open(self, *, alone: bool) -> Opened | None:
        unclean = alone and self._has_unknown_log()
        if not files.is_there(self.path):
            if not alone or not self._makes:
                return None
            files.create(self.path)
        if alone:
            files.drop_second_name(self.path)
            require_own_log(self.path, locks.noted(self.lock))
        require_one_name(self.path)
        before = look(self.path).seen[0]
        if not alone and not self._is_what_others_opened():
            return None
        db = connect(self.path, "write")
        try:
            found = self._require_known(db)
            if found < self._latest and not alone:
                db.close()
                return None
            backup = self._bring_up_to_date(db, found)
            now = version(db)  # this read also makes SQLite open the `-wal` and the `-shm`
            there = look(self.path)
            if there.seen[0] != before or not (alone or self._is_what_others_opened()):
                db.close()
                return None
            guard_commits(db, there)
            return Opened(
                db=db,
                path=self.path,
                lock=self.lock,
                version=now,
                unclean=unclean,
                migrated_from=found if found < self._latest else None,
                backup=backup,
                place=there,
                watch=Watch(db, upto(self.migrations, now)),
            )
        except BaseException:
            db.close()
            raise

    def _has_unknown_log(self) -> bool:
        """Whether the `-wal` holds what no hook noted: a server ended without closing it."""
        left = files.size(files.wal(self.path))
        return left > 0 and not locks.was_left(self.lock, left)

    def _require_known(self, db: Connection) -> int:
        """The schema version of the file; ResourceError if it cannot be written from here."""
        found = require_ours(db, self.path, self._latest)
        if found < self._latest and not self._makes:
            raise ResourceError(f"{self.path} has to be migrated first", "start a server")
        return found

    def _bring_up_to_date(self, db: Connection, found: int) -> str | None:
        """Create or migrate the database if needed; returns the path of the backup, if any."""
        if found:
            expected.require(db, self.path, upto(self.migrations, found))
            if not self._even_moved:
                moved.require_unmarked(db, self.path)
        _use_wal(db, self.path)
        pending = [step for step in self.migrations if step.version > found]
        backup = self._back_up(db, found) if found and pending else None
        migrate(db, found, pending, self._new_log)
        db.execute(CACHE)
        return backup

    def _is_what_others_opened(self) -> bool:
        """Whether these are the files that the running servers have open, according to their note.

        For a moment they are not, while the last server is closing. If all three differ, this is
        another database at the same path.
        """
        theirs = locks.noted(self.lock).split()[:3]
        ours = describe(look(self.path)).split()
        if theirs == ours or not any(
            one == other for one, other in zip(theirs, ours, strict=False)
        ):
            return True
        self.obstacle = (
            f"another Colibri is using {self.path}, but not the files that are on the disk now: the"
            " database, its -wal or its -shm was deleted, moved or replaced"
        )
        return False

    @property
    def _latest(self) -> int:
        return self.migrations[-1].version

    def _back_up(self, db: Connection, found: int) -> str:
        """Copy the file before it is migrated; returns the copy's path."""
        path = f"{self.path}.backup-v{found}-{self._stamp}"
        files.create(path)
        copy = connect(path, "write")
        try:
            with copy.backup("main", db, "main") as backup:
                backup.step()
        except BaseException:
            copy.close()
            os.unlink(path)
            raise
        copy.close()
        return path


def _use_wal(db: Connection, path: str) -> None:
    (mode,) = next(db.execute("PRAGMA journal_mode = WAL"))
    if mode != "wal":
        raise ResourceError(
            f"{path} cannot have a write-ahead log on its file system",
            "set COLIBRI_DB_PATH to a local disk",
        )
