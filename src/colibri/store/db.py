"""The database file: opening, locking, migrating, transactions, and what its errors mean.

It owns the connections' settings, the schema version and `<db>.lock`. Nothing in this process may
open the database, its `-wal` or its `-shm` but SQLite: closing such a descriptor drops SQLite's
locks. So here are `os.stat` and `os.path` only, and one O_EXCL creation of a file that nobody has.

Who may do what is settled by `flock` on `<db>.lock`. A writer holds it shared for life; to create
or migrate it must hold it exclusively, and is then the only writer there is. Readers take no part.
"""

import fcntl
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Literal, NamedTuple

import apsw
from apsw import Connection

from colibri.core.errors import Damaged, ResourceError
from colibri.store import place
from colibri.store.ledger import create_log

Access = Literal["write", "read", "immutable"]
Fault = Literal["full", "busy", "io", "damaged"]
Use = Literal["free", "shared", "exclusive"]

MINIMUM_SQLITE = (3, 51, 3)  # older ones can corrupt a WAL that two processes checkpoint
APPLICATION_ID = 0x436F6C62  # "Colb", in the file's header: whose database this is
_NEVER_RELEASED = 0x436F6C69  # "Coli": what is in it has changed since
BUSY_TIMEOUT_MS = 10_000
POLL_SECONDS = 0.05
CHECKPOINT_PAGES = 1_000  # in the write-ahead log: from then on each commit tries to empty it
GROWING = frozenset(
    {
        "ledger",
        "merkle_nodes",
        "payloads",
        "sessions",
        "task_blocks",
        "task_dependencies",
        "tasks",
        "thoughts",
    }
)

_SETTINGS = """
    PRAGMA foreign_keys = ON;
    PRAGMA recursive_triggers = ON;
    PRAGMA trusted_schema = OFF;
    PRAGMA secure_delete = ON;
"""
# KiB for each connection: what a call needs is in it, and it does not grow to SQLite's 2 MB.
_CACHE = "PRAGMA cache_size = -512"
_FLAGS: dict[Access, int] = {
    "write": apsw.SQLITE_OPEN_READWRITE,  # never CREATE: the file is made beforehand, 0600
    "read": apsw.SQLITE_OPEN_READONLY,
    "immutable": apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI,
}
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


# What to do where there is no database yet, or an older one; a person types it once.
MAKE = "colibri serve </dev/null makes or migrates it, with COLIBRI_MODE unset"


class Outdated(ResourceError):
    """The database is not there yet as this version needs it; the next writer sees to that."""


class Migration(NamedTuple):
    version: int
    sql: str


class _Identity(NamedTuple):
    """Which file stands at a path; renaming another over it changes this."""

    device: int
    inode: int


@dataclass(frozen=True, slots=True)
class Opened:
    """A database open for writing, and what it was when it was opened."""

    db: Connection
    path: str
    lock: int  # descriptor of `<db>.lock`, held shared
    version: int
    unclean: bool  # nobody else had it open, yet its write-ahead log was not empty
    migrated_from: int | None  # 0: it was created
    backup: str | None  # made before migrating
    file: _Identity | None
    wal: _Identity | None


def require_sqlite(version: str) -> None:
    """ResourceError if this SQLite may corrupt a database that several processes share."""
    if tuple(int(part) for part in version.split(".")) < MINIMUM_SQLITE:
        wanted = ".".join(str(part) for part in MINIMUM_SQLITE)
        raise ResourceError(
            f"SQLite {version} is too old: {wanted} or newer is needed",
            "install the apsw wheel, which brings its own SQLite",
        )


def connect(path: str, access: Access) -> Connection:
    """The one place where connections are made; each has every setting.

    SQLite opens the file at the first read, so what is wrong with it shows only then.
    """
    name = path
    if access == "immutable":
        quoted = path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
        name = f"file:{quoted}?immutable=1"
    db = Connection(name, flags=_FLAGS[access])
    db.set_busy_timeout(BUSY_TIMEOUT_MS)
    db.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    # Without it a new value for a parameter has SQLite plan, and so parse, many a statement again.
    db.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    db.execute(_SETTINGS)
    if access == "write":
        # What a savepoint would restore goes beyond 64 KiB into a file in /var/tmp otherwise.
        db.execute("PRAGMA temp_store = MEMORY")
    else:
        db.execute("PRAGMA query_only = ON")
    return db


@contextmanager
def transaction(db: Connection, *, durable: bool) -> Iterator[None]:
    """A write transaction; durable: synced before the commit returns, with all that came before."""
    db.execute("PRAGMA synchronous = FULL" if durable else "PRAGMA synchronous = NORMAL")
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:  # a full disk or an I/O error has SQLite roll back by itself
            db.execute("ROLLBACK")
        raise


def set_patience(db: Connection, patience: Callable[[int], bool]) -> None:
    """Wait for other processes as `patience` says, but never with a checkpoint.

    SQLite's own checkpoint after a commit lets others write meanwhile: then it has not copied all,
    and the log does not begin anew but grows, among busy servers for long. So what they have added
    is copied once more with the write lock held, which is little. Who reads from an older state of
    the log still keeps it; then the next commit tries again.
    """

    def checkpoint(db: Connection, name: str, pages: int) -> int:
        if pages >= CHECKPOINT_PAGES:
            db.set_busy_timeout(0)
            try:
                length, copied = db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
                if copied == length:
                    db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_RESTART)
            except apsw.Error:
                pass  # what is committed is safe in the log, and the next commit tries again
            finally:
                db.set_busy_handler(patience)
        return apsw.SQLITE_OK

    db.set_busy_handler(patience)
    db.set_wal_hook(checkpoint)


@contextmanager
def savepoint(db: Connection) -> Iterator[None]:
    """Part of a transaction, undone alone if it raises.

    If SQLite has rolled back the whole transaction the caller finds db.in_transaction false.
    """
    db.execute("SAVEPOINT part")
    try:
        yield
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK TO part; RELEASE part")
        raise
    db.execute("RELEASE part")


def fault(exc: BaseException) -> Fault | None:
    """What an error says about the database, or None if it says nothing about it."""
    if getattr(exc, "extendedresult", 0) == apsw.SQLITE_IOERR_SHMSIZE:
        return "full"  # there is no room to grow `-shm`
    return next((fault for kind, fault in _FAULTS if isinstance(exc, kind)), None)


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
    """Open a database, created or migrated if need be; ResourceError says why it cannot be.

    stamp goes into the name of a backup, new_log() into a database that is created.
    """
    require_sqlite(apsw.sqlite_lib_version())
    path = os.path.realpath(path)  # as SQLite does: one database, one lock file
    steps = load_migrations() if migrations is None else migrations
    deadline = monotonic() + lock_timeout
    with _explained(path):
        place.require_local(path)
        opening = _Opening(path, _open_lock(path), steps, stamp, new_log)
        try:
            while not (opened := opening.attempt()):
                if monotonic() >= deadline:
                    raise ResourceError(
                        f"another Colibri is using {path}, which has to be created or migrated",
                        "close the other clients of this project, or wait for them; then try again",
                    )
                sleep(POLL_SECONDS)
        except BaseException:
            os.close(opening.lock)
            raise
    return opened


def check_same_file(opened: Opened) -> None:
    """Damaged if the path no longer leads to the database that was opened, at that version."""
    file = _identity(opened.path)
    if file != opened.file:
        raise Damaged(f"the database file was {'replaced' if file else 'deleted'}")
    if _identity(_wal(opened.path)) != opened.wal:
        raise Damaged("the write-ahead log was deleted or replaced")
    version = _version(opened.db)
    if version > opened.version:
        raise Damaged("a newer Colibri migrated it: restart")
    if version < opened.version:
        raise Damaged("the database file was replaced by an older one")


def close(opened: Opened, *, checkpoint: bool = True) -> None:
    """Once; the lock goes last, so that who gets it next finds the file at rest.

    Without a checkpoint the `-wal` stays for the next start, which checks it frame by frame: after
    an I/O error what reads back from it may not be what was written. Nor is there one when the
    `-wal` is no longer ours: who works with the new one has pages of his own in the file.
    """
    try:
        if checkpoint and _identity(_wal(opened.path)) == opened.wal:
            # A reader keeps SQLite from emptying the `-wal` on close: it would look like a crash.
            opened.db.set_busy_timeout(0)
            opened.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        else:
            opened.db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    except apsw.Error:
        pass  # what is committed is safe in the `-wal`
    finally:
        opened.db.close()
        os.close(opened.lock)


@contextmanager
def alone(path: str) -> Iterator[None]:
    """Keep every writer out; ResourceError while there is one."""
    path = os.path.realpath(path)
    with _explained(path):
        lock = _open_lock(path)
    try:
        if not _flock(lock, fcntl.LOCK_EX):
            raise ResourceError(
                f"a Colibri server is using {path}",
                "close the clients of this project: their servers end with them; then try again",
            )
        yield
    finally:
        os.close(lock)


def open_reader(
    path: str,
    *,
    migrations: Sequence[Migration] | None = None,
    least: int | None = None,
    untouched: bool = False,
) -> Connection:
    """A read-only connection to a database that is there and current; nothing is created.

    With `least`, one that an older Colibri left at that schema version will do as well. SQLite may
    still add `-shm` and an empty `-wal`. Where it cannot, or `untouched` asks for it, and no `-wal`
    exists, nobody is writing and the file is read as immutable.
    """
    require_sqlite(apsw.sqlite_lib_version())
    steps = load_migrations() if migrations is None else migrations
    with _explained(path):
        if not _is_there(path):
            raise ResourceError(
                f"there is no database at {path}",
                "is this the project? --project DIR names another; a client that starts Colibri in"
                " mode FULL makes the database",
            )
        db = _connect_reader(path, untouched=untouched)
        try:
            _require_current(db, path, steps[-1].version, least)
            with suppress(apsw.CorruptError):  # this reads the schema: who needs it will tell
                db.execute(_CACHE)
        except BaseException:
            db.close()
            raise
        return db


def use(path: str) -> Use:
    """Who has the lock file now: nobody, servers at work, or one that creates or migrates.

    To find out it is held for a moment; a server that starts just then waits POLL_SECONDS.
    """
    try:
        lock = os.open(f"{os.path.realpath(path)}.lock", os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return "free"
    try:
        if _flock(lock, fcntl.LOCK_EX):
            return "free"
        return "shared" if _flock(lock, fcntl.LOCK_SH) else "exclusive"
    finally:
        os.close(lock)


def load_migrations() -> tuple[Migration, ...]:
    folder = os.path.join(os.path.dirname(__file__), "migrations")
    names = sorted(name for name in os.listdir(folder) if name.endswith(".sql"))
    return tuple(_load_migration(folder, name) for name in names)


def table_count(db: Connection) -> int:
    """How many tables there are beside SQLite's own, those that the search index is made of too."""
    return _number(
        db,
        "SELECT count(*) FROM sqlite_schema"
        " WHERE type = 'table' AND name NOT LIKE 'sqlite!_%' ESCAPE '!'",
    )


def small_tables(db: Connection) -> list[str]:
    """The tables that can be checked in passing."""
    return [name for name in _tables(db) if name not in GROWING]


def quick_check(db: Connection, table: str | None = None) -> list[str]:
    """What SQLite finds wrong with a table, or with the whole file; nothing, if all is well."""
    rows = (
        db.execute("SELECT quick_check FROM pragma_quick_check")
        if table is None
        else db.execute("SELECT quick_check FROM pragma_quick_check(?)", (table,))
    )
    return [str(found) for (found,) in rows if found != "ok"]


@dataclass(frozen=True, slots=True)
class _Opening:
    """What it takes to open a database for writing."""

    path: str
    lock: int
    migrations: Sequence[Migration]
    stamp: str
    new_log: Callable[[], str]

    def attempt(self) -> Opened | None:
        """Open it with the lock that can be had now; None, and no lock, if it takes the other."""
        alone = _flock(self.lock, fcntl.LOCK_EX)
        if not alone and not _flock(self.lock, fcntl.LOCK_SH):
            return None
        opened = self._open(alone=alone)
        if opened and alone:
            fcntl.flock(self.lock, fcntl.LOCK_SH)
            # flock lets go before it takes hold again: a newer Colibri may have slipped in.
            if _version(opened.db) != opened.version:
                opened.db.close()
                opened = None
        if not opened:
            fcntl.flock(self.lock, fcntl.LOCK_UN)
        return opened

    def _open(self, *, alone: bool) -> Opened | None:
        unclean = alone and _size(_wal(self.path)) > 0
        if not _is_there(self.path):
            if not alone:
                return None
            _create(self.path)
        file = _identity(self.path)
        db = connect(self.path, "write")
        try:
            found = _require_ours(db, self.path, self._latest)
            if found < self._latest and not alone:
                db.close()
                return None
            _use_wal(db, self.path)
            backup = self._migrate(db, found)
            db.execute(_CACHE)
            return Opened(
                db=db,
                path=self.path,
                lock=self.lock,
                version=_version(db),  # this read also has SQLite open the `-wal`
                unclean=unclean,
                migrated_from=found if found < self._latest else None,
                backup=backup,
                file=file,
                wal=_identity(_wal(self.path)),
            )
        except BaseException:
            db.close()
            raise

    @property
    def _latest(self) -> int:
        return self.migrations[-1].version

    def _migrate(self, db: Connection, found: int) -> str | None:
        """Bring the schema up to date, one step at a time; the backup's path if there is one."""
        pending = [step for step in self.migrations if step.version > found]
        backup = self._back_up(db, found) if found and pending else None
        for step in pending:
            with transaction(db, durable=True):
                db.execute(step.sql)
                db.execute(f"PRAGMA user_version = {step.version:d}")
                if not found and step is pending[0]:
                    db.execute(f"PRAGMA application_id = {APPLICATION_ID:d}")
                    create_log(db, self.new_log())
        return backup

    def _back_up(self, db: Connection, found: int) -> str:
        path = f"{self.path}.backup-v{found}-{self.stamp}"
        _create(path)
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


def _open_lock(path: str) -> int:
    _is_there(path)  # refuses a directory before anything is made beside it
    _make_directory(os.path.dirname(path))
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    return os.open(f"{path}.lock", flags, 0o600)


def _make_directory(path: str) -> None:
    """With mode 0700, and what is missing above it too; what exists is left alone."""
    if os.path.isdir(path):
        return
    _make_directory(os.path.dirname(path))
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:  # another process made it meanwhile
        pass
    _sync_directory(os.path.dirname(path))


def _sync_directory(path: str) -> None:
    """Make sure that what was made in a directory is there after a power cut.

    SQLite does this for the files that it makes, but not for the directory they are in.
    """
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _flock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_there(path: str) -> bool:
    """Whether there is a file; ResourceError if there is something else."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return False
    if not stat.S_ISREG(mode):
        what = "a directory" if stat.S_ISDIR(mode) else "not a regular file"
        raise ResourceError(f"{path} is {what}", "set COLIBRI_DB_PATH to a file")
    return True


def _create(path: str) -> None:
    if os.path.exists(_wal(path)):
        raise ResourceError(
            f"{path} is missing, but its write-ahead log {_wal(path)} is there",
            "put the database back, or move the log away to start a new one",
        )
    # Nobody can have this file open yet, so closing the descriptor drops no lock.
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


def _wal(path: str) -> str:
    return f"{path}-wal"


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except FileNotFoundError:
        return 0


def _identity(path: str) -> _Identity | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return _Identity(found.st_dev, found.st_ino)


def _use_wal(db: Connection, path: str) -> None:
    (mode,) = next(db.execute("PRAGMA journal_mode = WAL"))
    if mode != "wal":
        raise ResourceError(
            f"{path} cannot have a write-ahead log on its file system",
            "set COLIBRI_DB_PATH to a local disk",
        )


def _require_ours(db: Connection, path: str, latest: int) -> int:
    """The schema version, 0 of a new database; ResourceError if it is not for us to use."""
    version = _version(db)
    owner = _number(db, "PRAGMA application_id")
    is_new = not version and not _number(db, "SELECT count(*) FROM sqlite_schema")
    if owner == _NEVER_RELEASED:
        raise ResourceError(
            f"{path} was made by a Colibri that was never released, and this one cannot read it",
            "move the file away with its -wal and -shm, and a new one is made; the Colibri that"
            " made it can still export and verify it",
        )
    if owner != APPLICATION_ID and not is_new:
        raise ResourceError(
            f"{path} is the database of another program", "set COLIBRI_DB_PATH to another file"
        )
    if version > latest:
        raise ResourceError(
            f"{path} has schema version {version}; this Colibri knows versions up to {latest}",
            "use the newer Colibri that migrated it",
        )
    return version


def _connect_reader(path: str, *, untouched: bool) -> Connection:
    if untouched and not os.path.exists(_wal(path)):
        return connect(path, "immutable")
    db = connect(path, "read")
    try:
        _version(db)  # nothing is opened before the first read
    except (apsw.CantOpenError, apsw.ReadOnlyError):
        db.close()
        if os.path.exists(_wal(path)):
            raise
        return connect(path, "immutable")
    return db


def _require_current(db: Connection, path: str, latest: int, least: int | None) -> None:
    if _require_ours(db, path, latest) < (latest if least is None else least):
        raise Outdated(f"{path} has to be created or migrated first", MAKE)


def _version(db: Connection) -> int:
    return _number(db, "PRAGMA user_version")


def _number(db: Connection, query: str) -> int:
    (value,) = next(db.execute(query))
    assert isinstance(value, int)
    return value


def _tables(db: Connection) -> list[str]:
    rows = db.execute(
        "SELECT name FROM pragma_table_list"
        " WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite!_%' ESCAPE '!'"
        " ORDER BY name"
    )
    return [str(name) for (name,) in rows]


def _load_migration(folder: str, name: str) -> Migration:
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        return Migration(int(name.partition("_")[0]), file.read())


_REASONS: dict[Fault | None, tuple[str, str]] = {
    "full": ("the disk is full", "free some space, or set COLIBRI_DB_PATH to another volume"),
    "busy": ("another program holds it locked", "close that program and start again"),
    "damaged": (
        "it is not a database, or a damaged one",
        "restore it from a backup, or set COLIBRI_DB_PATH to another file",
    ),
}


@contextmanager
def _explained(path: str) -> Iterator[None]:
    """Turn what SQLite or the system says while opening into a ResourceError."""
    try:
        yield
    except (apsw.Error, OSError) as error:
        known = _REASONS.get(fault(error))
        reason, hint = known or (str(error), "check the permissions of the file and its directory")
        raise ResourceError(f"cannot open {path}: {reason}", hint) from error
