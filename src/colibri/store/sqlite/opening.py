"""Opening the database for writing or reading."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial

import apsw

from colibri.core.errors import ResourceError
from colibri.store.home import Outdated
from colibri.store.sqlite import expected, files, locks, place
from colibri.store.sqlite.connection import CACHE, connect_as, library_version, require_sqlite
from colibri.store.sqlite.faults import explained
from colibri.store.sqlite.identity import check_place, look, require_no_log_left
from colibri.store.sqlite.opened import Opened
from colibri.store.sqlite.pragma import version
from colibri.store.sqlite.schema import Migration, load_migrations, require_ours, upto
from colibri.store.sqlite.watch import Reader, Watch
from colibri.store.sqlite.writing import Opening

POLL_SECONDS = 0.05

# What a person types once if there is no database yet, or an older one.
MAKE = "colibri serve </dev/null makes or migrates it, with COLIBRI_MODE unset"


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
        opening = Opening(path, locks.open_lock(path), steps, stamp, new_log)
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


@contextmanager
def open_alone(path: str) -> Iterator[Opened]:
    """Open an existing database, even one whose ledger was moved, and keep all other writers out;
    ResourceError if there is one now.
    """
    require_sqlite(library_version())
    given, path = path, os.path.realpath(path)
    with explained(path):
        place.require_local(path)
        require_no_log_left(given, path)
        lock = locks.open_lock(path)
        try:
            locks.require_alone(lock, path)
            opening = Opening(path, lock, load_migrations(), makes=False, even_moved=True)
            opened = opening.attempt()
            if opened is None:
                raise ResourceError(opening.obstacle or f"{path} is gone", "restart")
        except BaseException:
            os.close(lock)
            raise
    try:
        locks.require_alone(lock, path)  # once more: a server may have come meanwhile
        yield opened
    finally:
        opened.close()


def open_reader(
    path: str,
    *,
    migrations: Sequence[Migration] | None = None,
    least: int | None = None,
    untouched: bool = False,
    any_schema: bool = False,
    in_use: bool = False,
    watch_files: bool = False,
) -> Reader:
    """A read-only connection to an existing database of the current version; creates nothing.

    `least` also accepts older schema versions from that one on. SQLite may still add `-shm` and an
    empty `-wal`. If it cannot, or with `untouched`, and there is no `-wal`, nobody is writing and
    the file is read as immutable. `any_schema` skips the schema check, which is then up to the
    caller. `in_use` leaves it to the first transaction, so that a database whose schema was changed
    after a server opened it can still be verified. `watch_files` is for long use: each transaction
    begins with a check of the files.
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
            _prepare(db, path, steps, least, any_schema=any_schema, in_use=in_use)
            if watch_files:
                db.also = partial(check_place, look(os.path.realpath(path)))
        except BaseException:
            db.close()
            raise
        return db


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
    db: Reader,
    path: str,
    steps: Sequence[Migration],
    least: int | None,
    *,
    any_schema: bool,
    in_use: bool,
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
    if not in_use:
        expected.require(db, path, known)
    db.execute(CACHE)
    db.watch = Watch(db, known)
