"""The only place that opens connections, each with every setting."""

from collections.abc import Callable, Iterable
from typing import Literal, TypeVar

import apsw

from colibri.core.errors import ResourceError
from colibri.store import connection
from colibri.store.faults import register
from colibri.store.sqlite import engine, faults

Access = Literal["write", "read", "immutable"]
C = TypeVar("C", bound="Connection")

MINIMUM_SQLITE = (3, 51, 3)  # older versions can corrupt a WAL that two processes checkpoint
BUSY_TIMEOUT_MS = 10_000
# KiB per connection: enough for a call, and less than SQLite's default of 2 MB.
CACHE = "PRAGMA cache_size = -512"

_SETTINGS = """
    PRAGMA foreign_keys = ON;
    PRAGMA recursive_triggers = ON;
    PRAGMA trusted_schema = OFF;
    PRAGMA secure_delete = ON;
"""
# A reader belongs to one thread at a time, so it needs no mutex, which takes a fifth of the time of
# reading a record. A writer keeps its own: apsw uses it to notice a second thread.
_READ = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_NOMUTEX
_FLAGS: dict[Access, int] = {
    "write": apsw.SQLITE_OPEN_READWRITE,  # never CREATE: the file is created before, with mode 0600
    "read": _READ,
    "immutable": _READ | apsw.SQLITE_OPEN_URI,
}


register(faults)


class Connection(apsw.Connection):
    """A connection that the store's functions can be given."""

    engine: connection.Engine = engine

    def look_ahead(self, reads: Iterable[Callable[[], object]], *, further: bool = False) -> None:
        """Every question is answered at once."""


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


def connect(path: str, access: Access) -> Connection:
    """A connection; see connect_as."""
    return connect_as(Connection, path, access)


def connect_as(kind: type[C], path: str, access: Access) -> C:
    """A connection of this class; SQLite opens the file, and may fail, only at the first read."""
    name = path
    if access == "immutable":
        quoted = path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
        name = f"file:{quoted}?immutable=1"
    db = kind(name, flags=_FLAGS[access])
    db.set_busy_timeout(BUSY_TIMEOUT_MS)
    db.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    # Otherwise SQLite plans, and so parses, many statements again for a new parameter value.
    db.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    db.execute(_SETTINGS)
    if access == "write":
        # Otherwise a savepoint's journal spills into a file in /var/tmp beyond 64 KiB.
        db.execute("PRAGMA temp_store = MEMORY")
        # Nothing reaches the write-ahead log before its commit: see identity.py.
        db.execute("PRAGMA cache_spill = OFF")
    else:
        db.execute("PRAGMA query_only = ON")
    return db
