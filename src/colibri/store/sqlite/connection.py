"""Connections to the file: the one place where they are made, each with every setting."""

from typing import Literal, TypeVar

import apsw

from colibri.core.errors import ResourceError
from colibri.store.connection import Connection

Access = Literal["write", "read", "immutable"]
C = TypeVar("C", bound=apsw.Connection)

MINIMUM_SQLITE = (3, 51, 3)  # older ones can corrupt a WAL that two processes checkpoint
BUSY_TIMEOUT_MS = 10_000
# KiB for each connection: what a call needs is in it, and it does not grow to SQLite's 2 MB.
CACHE = "PRAGMA cache_size = -512"

_SETTINGS = """
    PRAGMA foreign_keys = ON;
    PRAGMA recursive_triggers = ON;
    PRAGMA trusted_schema = OFF;
    PRAGMA secure_delete = ON;
"""
_FLAGS: dict[Access, int] = {
    "write": apsw.SQLITE_OPEN_READWRITE,  # never CREATE: the file is made beforehand, 0600
    "read": apsw.SQLITE_OPEN_READONLY,
    "immutable": apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI,
}


def library_version() -> str:
    """The version of SQLite that is in use."""
    return apsw.sqlite_lib_version()


def require_sqlite(version: str) -> None:
    """ResourceError if this SQLite may corrupt a database that several processes share."""
    if tuple(int(part) for part in version.split(".")) < MINIMUM_SQLITE:
        wanted = ".".join(str(part) for part in MINIMUM_SQLITE)
        raise ResourceError(
            f"SQLite {version} is too old: {wanted} or newer is needed",
            "install the apsw wheel, which brings its own SQLite",
        )


def connect(path: str, access: Access) -> apsw.Connection:
    """A connection; see connect_as."""
    return connect_as(apsw.Connection, path, access)


def connect_as(kind: type[C], path: str, access: Access) -> C:
    """One of some kind; SQLite opens the file at the first read: what is wrong shows only then."""
    name = path
    if access == "immutable":
        quoted = path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
        name = f"file:{quoted}?immutable=1"
    db = kind(name, flags=_FLAGS[access])
    db.set_busy_timeout(BUSY_TIMEOUT_MS)
    db.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    # Without it a new value for a parameter has SQLite plan, and so parse, many a statement again.
    db.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    db.execute(_SETTINGS)
    if access == "write":
        # What a savepoint would restore goes beyond 64 KiB into a file in /var/tmp otherwise.
        db.execute("PRAGMA temp_store = MEMORY")
        # Nothing reaches the write-ahead log before its commit: see identity.py.
        db.execute("PRAGMA cache_spill = OFF")
    else:
        db.execute("PRAGMA query_only = ON")
    return db


def version(db: Connection) -> int:
    """The schema version in the file's header."""
    return number(db, "PRAGMA user_version")


def number(db: Connection, query: str) -> int:
    """The one number that a query answers."""
    (value,) = next(db.execute(query))
    assert isinstance(value, int)
    return value
