"""Opening the database for writing or reading, and closing it."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial

import apsw
from apsw import Connection

from colibri.core.errors import ResourceError
from colibri.store.sqlite import expected, files, locks, place
from colibri.store.sqlite.connection import (
    CACHE,
    connect,
    connect_as,
    library_version,
    require_sqlite,
    version,
)
from colibri.store.sqlite.faults import explained
from colibri.store.sqlite.identity import (
    Opened,
    changed,
    check_place,
    describe,
    guard_commits,
    has_other_log,
    is_in_place,
    look,
    require_no_log_left,
    require_one_name,
    require_own_log,
)
from colibri.store.sqlite.schema import Migration, load_migrations, migrate, require_ours, upto
from colibri.store.sqlite.watch import Reader, Watch

POLL_SECONDS = 0.05

# What a person types once if there is no database yet, or an older one.
MAKE = "colibri serve </dev/null makes or migrates it, with COLIBRI_MODE unset"


class Outdated(ResourceError):
    """The database does not exist or needs a migration; the next writer does both."""


def open_writer(
    path: str,
    *,
    lock_timeout: float,
    monotonic: Callable[[], float],
    sleep: Callable[[float], None],
    stamp: str,
    new_log: Callable[[], str],
    migrations: Sequence[Migration] | None = None,
) -> Opened:
    """Open a database, creating or migrating it if needed; ResourceError says why it fails.

    `stamp` goes into the name of a backup, new_log() into a new database.
    """
    require_sqlite(library_version())
    given, path = (
        path,
        os.path.realpath(path),
    )  # as SQLite does, so that one database has one lock file
    steps = load_migrations() if migrations is None else migrations
    deadline = monotonic() + lock_timeout
    with explained(path):
        place.require_local(path)
        require_no_log_left(given, path)
        opening = _Opening(path, locks.open_lock(path), steps, stamp, new_log)
        try:
            while not (opened := opening.attempt()):
                if monotonic() >= deadline:
                    raise ResourceError(
                        opening.obstacle
                        or f"another Colibri is using {path}, which has to be created or migrated",
                        "close the other clients of this project, or wait for them; then try again",
                    )
                sleep(POLL_SECONDS)
        except BaseException:
            os.close(opening.lock)
            raise
    return opened


def close(opened: Opened, *, checkpoint: bool = True) -> str:
    """Close it, once; returns what happened to its files if they were replaced.

    The lock is released last, so that its next holder finds the file at rest. Without a checkpoint
    the `-wal` stays for the next start, which checks it frame by frame: after an I/O error it may
    not read back as it was written. There is no checkpoint either if the file or its log was
    replaced: another process may be writing there.
    """
    place = opened.place
    fate = changed(place)
    try:
        if checkpoint and is_in_place(place) and not has_other_log(place):
            # A reader keeps SQLite from emptying the `-wal` on close: it would look like a crash.
            opened.db.set_busy_timeout(0)
            opened.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        else:
            opened.db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    except apsw.Error:
        pass  # committed data is safe in the `-wal`
    finally:
        opened.db.close()
        os.close(opened.lock)
    return fate


@contextmanager
def alone(path: str) -> Iterator[None]:
    """Keep all writers out; ResourceError if there is one now."""
    path = os.path.realpath(path)
    with explained(path):
        lock = locks.open_lock(path)
    try:
        locks.require_alone(lock, path)
        yield
    finally:
        os.close(lock)


def open_reader(
    path: str,
    *,
    migrations: Sequence[Migration] | None = None,
    least: int | None = None,
    untouched: bool = False,
    any_schema: bool = False,
    watch_files: bool = False,
) -> Reader:
    """A read-only connection to an existing database of the current version; creates nothing.

    `least` also accepts older schema versions from that one on. SQLite may still add `-shm` and an
    empty `-wal`. If it cannot, or with `untouched`, and there is no `-wal`, nobody is writing and
    the file is read as immutable. `any_schema` skips the schema check, which is then up to the
    caller. `watch_files` is for long use: each transaction begins with a check of the files.
    """
    require_sqlite(library_version())
    steps = load_migrations() if migrations is None else migrations
    with explained(path):
        if not files.is_there(path):
            raise ResourceError(
                f"there is no database at {path}",
                "is this the project? --project DIR names another; the first server that a client"
                " starts creates the database, and so does colibri add TITLE",
            )
        db = _connect_reader(path, untouched=untouched)
        try:
            _prepare(db, path, steps, least, any_schema=any_schema)
            if watch_files:
                db.also = partial(check_place, look(os.path.realpath(path)))
        except BaseException:
            db.close()
            raise
        return db


@dataclass(slots=True)
class _Opening:
    """Attempts to open a database for writing, and why they have failed so far."""

    path: str
    lock: int
    migrations: Sequence[Migration]
    stamp: str
    new_log: Callable[[], str]
    obstacle: str = ""

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
        unclean = alone and files.size(files.wal(self.path)) > 0
        if not files.is_there(self.path):
            if not alone:
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
            found = require_ours(db, self.path, self._latest)
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

    def _bring_up_to_date(self, db: Connection, found: int) -> str | None:
        """Create or migrate the database if needed; returns the path of the backup, if any."""
        if found:
            expected.require(db, self.path, upto(self.migrations, found))
        _use_wal(db, self.path)
        pending = [step for step in self.migrations if step.version > found]
        backup = self._back_up(db, found) if found and pending else None
        migrate(db, found, pending, self.new_log)
        db.execute(CACHE)
        return backup

    def _is_what_others_opened(self) -> bool:
        """Whether these are the files that the running servers have open, according to their note.

        For a moment they are not, while the last server is closing. If all three differ, this is
        another database at the same path.
        """
        theirs = locks.noted(self.lock).split()
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
        path = f"{self.path}.backup-v{found}-{self.stamp}"
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


def _connect_reader(path: str, *, untouched: bool) -> Reader:
    if untouched and not os.path.exists(files.wal(path)):
        return connect_as(Reader, path, "immutable")
    db = connect_as(Reader, path, "read")
    try:
        version(db)  # SQLite opens the file only at the first read
    except (apsw.CantOpenError, apsw.ReadOnlyError):
        db.close()
        if os.path.exists(files.wal(path)):
            raise
        return connect_as(Reader, path, "immutable")
    return db


def _prepare(
    db: Reader, path: str, steps: Sequence[Migration], least: int | None, *, any_schema: bool
) -> None:
    """Check version and schema; unless `any_schema`, watch the schema from here on."""
    latest = steps[-1].version
    found = require_ours(db, path, latest)
    if found < (latest if least is None else least):
        raise Outdated(f"{path} has to be created or migrated first", MAKE)
    if any_schema:
        with suppress(apsw.CorruptError):  # this reads the schema; a later check reports the damage
            db.execute(CACHE)
        return
    known = upto(steps, found)
    expected.require(db, path, known)
    db.execute(CACHE)
    db.watch = Watch(db, known)
