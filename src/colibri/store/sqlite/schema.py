"""Whether a database is ours, its migrations, and what SQLite finds wrong with it."""

import os
from collections.abc import Callable, Sequence
from typing import NamedTuple

import apsw

from colibri.core.errors import ResourceError
from colibri.store.connection import Connection
from colibri.store.ledger import create_log
from colibri.store.sqlite.pragma import number, version
from colibri.store.sqlite.transaction import Transaction

APPLICATION_ID = 0x436F6C35  # "Col5" in the file's header marks our database
_NEVER_RELEASED = (  # "Coli", "Colb", "Col4": older, incompatible layouts
    0x436F6C69,
    0x436F6C62,
    0x436F6C34,
)
UTF_8 = "UTF-8"
GROWING = frozenset(
    {
        "deeds",
        "ledger",
        "log_tree",
        "merkle_nodes",
        "sessions",
        "task_dependencies",
        "tasks",
        "thoughts",
    }
)


class Migration(NamedTuple):
    version: int
    sql: str


def load_migrations() -> tuple[Migration, ...]:
    """All migrations, in order."""
    folder = os.path.join(os.path.dirname(__file__), "migrations")
    names = sorted(name for name in os.listdir(folder) if name.endswith(".sql"))
    return tuple(_load_migration(folder, name) for name in names)


def _load_migration(folder: str, name: str) -> Migration:
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        return Migration(int(name.partition("_")[0]), file.read())


def migrate(
    db: Connection, found: int, pending: Sequence[Migration], new_log: Callable[[], str]
) -> None:
    """Bring the schema up to date, one step at a time, each durable."""
    for step in pending:
        with Transaction(db, durable=True):
            db.execute(step.sql)
            db.execute(f"PRAGMA user_version = {step.version:d}")
            if not found and step is pending[0]:
                db.execute(f"PRAGMA application_id = {APPLICATION_ID:d}")
                create_log(db, new_log())


def require_ours(db: Connection, path: str, latest: int) -> int:
    """The schema version, 0 for a new database; ResourceError if we must not use it."""
    found = version(db)
    owner = number(db, "PRAGMA application_id")
    is_new = not found and not number(db, "SELECT count(*) FROM sqlite_schema")
    if owner in _NEVER_RELEASED:
        raise ResourceError(
            f"{path} was made by a Colibri that was never released, and this one cannot read it",
            "move the file away with its -wal and -shm, and a new one is made; the Colibri that"
            " made it can still export and verify it",
        )
    if owner != APPLICATION_ID and not is_new:
        raise ResourceError(
            f"{path} is the database of another program", "set COLIBRI_DB_PATH to another file"
        )
    if (encoding := _encoding(db)) != UTF_8:
        raise ResourceError(
            f"{path} was made by another program: it keeps texts in {encoding}",
            "set COLIBRI_DB_PATH to another file, or move this one away",
        )
    if found > latest:
        raise ResourceError(
            f"{path} has schema version {found}; this Colibri knows versions up to {latest}",
            "use the newer Colibri that migrated it",
        )
    return found


def _encoding(db: Connection) -> str:
    """The encoding of its texts."""
    try:
        return str(db.execute("PRAGMA encoding").get)
    except apsw.CorruptError:  # this reads the schema; comparing that reports the damage
        return UTF_8


def table_count(db: Connection) -> int:
    """How many tables there are, without SQLite's own but with those of the search indexes."""
    return number(
        db,
        "SELECT count(*) FROM sqlite_schema"
        " WHERE type = 'table' AND name NOT LIKE 'sqlite!_%' ESCAPE '!'",
    )


def small_tables(db: Connection) -> list[str]:
    """The tables small enough for every health check."""
    rows = db.execute(
        "SELECT name FROM pragma_table_list"
        " WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite!_%' ESCAPE '!'"
        " ORDER BY name"
    )
    return [str(name) for (name,) in rows if name not in GROWING]


def upto(steps: Sequence[Migration], version: int) -> list[Migration]:
    """The migrations that lead to a version."""
    return [step for step in steps if step.version <= version]


def integrity_check(db: Connection, table: str | None = None) -> list[str]:
    """What SQLite finds wrong with the file or a table, the contents of each index included."""
    try:
        return _told(db, "integrity_check", table)
    except apsw.CorruptError:  # it gives up at some pages that quick_check names
        if found := quick_check(db, table):
            return found
        raise


def quick_check(db: Connection, table: str | None = None) -> list[str]:
    """What SQLite finds wrong with a table, or with the whole file."""
    return _told(db, "quick_check", table)


def _told(db: Connection, pragma: str, table: str | None) -> list[str]:
    argument, values = ("", ()) if table is None else ("(?)", (table,))
    rows = db.execute(f"SELECT {pragma} FROM pragma_{pragma}{argument}", values)
    return [str(found) for (found,) in rows if found != "ok"]
