"""The tables of a project's ledger on PostgreSQL: their schema, and the steps that lead to it."""

import os
import re
from typing import Any, NamedTuple

import psycopg
from psycopg import sql

from colibri.core.errors import ResourceError

OLDEST_SERVER = 140_000  # PostgreSQL 14
# While a ledger is copied into the schema, its version is below 0: no server knows such a one, so
# none writes to it.
CONTINUE = "run colibri move-ledger again where it was started; after --undo unset COLIBRI_DB_URL"
# 63 characters are the most that a name can have; the roles' names end in _writer and the like.
_NAME = re.compile(r"(?!pg_)[a-z_][a-z0-9_]{0,47}")

_NUMBER = re.compile(r"-?[0-9]{1,9}")


class Migration(NamedTuple):
    version: int
    sql: str


def load_migrations() -> tuple[Migration, ...]:
    """All migrations, in order."""
    folder = os.path.join(os.path.dirname(__file__), "migrations")
    return tuple(_load_migration(folder, name) for name in sorted(os.listdir(folder)))


def _load_migration(folder: str, name: str) -> Migration:
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        return Migration(int(name.partition("_")[0]), file.read())


def require_name(schema: str) -> None:
    """ResourceError if no schema of ours can have this name."""
    if not _NAME.fullmatch(schema):
        raise ResourceError(
            f"{schema!r} cannot be the name of a schema",
            "use at most 48 lower-case letters, digits and underscores, with no digit or pg_ first",
        )


def require_server(version: int, encoding: str | None) -> None:
    """ResourceError if a database of this server cannot hold a ledger."""
    if version < OLDEST_SERVER:
        raise ResourceError(
            f"PostgreSQL {version // 10_000} is too old", "use PostgreSQL 14 or newer"
        )
    if encoding != "UTF8":
        raise ResourceError(
            f"the database keeps texts in {encoding}",
            "create a database with ENCODING 'UTF8' and name that one",
        )


def use(pg: psycopg.Connection[Any], schema: str) -> None:
    """Find tables in this schema alone, until the transaction ends."""
    path = sql.SQL("SET LOCAL search_path = {}, pg_temp")
    pg.execute(path.format(sql.Identifier(schema)))


def version(pg: psycopg.Connection[Any]) -> int:
    """The version of the schema in use; 0 if it is empty, below 0 while a ledger is copied into it.

    ResourceError if it is not ours.
    """
    tables = pg.execute(
        "SELECT count(*), count(*) FILTER (WHERE relname = 'meta') FROM pg_class"
        " WHERE relnamespace = current_schema()::regnamespace"
    ).fetchone()
    assert tables
    every, meta = tables
    if not every:
        return 0
    row = meta and pg.execute("SELECT value FROM meta WHERE key = 'schema'").fetchone()
    if not row:
        schema = pg.execute("SELECT current_schema()").fetchone()
        raise ResourceError(
            f"the schema {schema and schema[0]} holds tables of another program",
            "name another schema",
        )
    return number(row[0])


def number(version: str) -> int:
    """The version of a schema as `meta` has it; ResourceError if it is none."""
    if not _NUMBER.fullmatch(version):
        raise ResourceError(
            f"{version[:40]!r} is not the version of a schema",
            "somebody has changed the table meta; restore a backup",
        )
    return int(version)


def migrate(pg: psycopg.Connection[Any], log: str) -> int:
    """Bring the schema in use up to date, as its owner and in the transaction that is open; returns
    the version that it had. An empty one gets this log's name.
    """
    steps = load_migrations()
    found, latest = version(pg), steps[-1].version
    if found < 0:
        raise ResourceError("the schema holds an unfinished copy of a ledger", CONTINUE)
    if found > latest:
        raise ResourceError(
            f"the schema has version {found}; this Colibri knows versions up to {latest}",
            "use the newer Colibri that migrated it",
        )
    if found:
        pg.execute("SELECT lock_head(%s)", (found,))
    for step in steps:
        if step.version > found:
            pg.execute(step.sql.encode())
    pg.execute(
        "INSERT INTO meta (key, value) VALUES ('schema', %s)"
        " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        (str(latest),),
    )
    if not found:
        pg.execute("INSERT INTO meta (key, value) VALUES ('log', %s)", (log,))
    return found
