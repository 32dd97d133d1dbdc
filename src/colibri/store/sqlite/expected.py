"""The schema that our database must have, and how another one differs.

A view in place of a table can show anything, a trigger can keep erased data or never end, an index
can hide rows. So every object, SQLite's own included, is compared with what the migrations make.
Nothing else of a database is read before that.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any

import apsw

from colibri.core.errors import ResourceError
from colibri.store.connection import Connection
from colibri.store.sqlite import SCHEMA
from colibri.store.sqlite.pragma import version
from colibri.store.sqlite.schema import Migration, load_migrations, upto

# Digest of all objects that the migrations up to VERSION make, which takes 5 ms; a test checks it.
VERSION = SCHEMA
DIGEST = "8c45c3a656b980617f4470fb209b83888feeb7101d0dcd6e9c4688eca22c157d"
MAX_NAME = 100

_OBJECTS = "SELECT type, name, tbl_name, sql FROM sqlite_schema"

Objects = dict[tuple[str, str], tuple[str, str | None]]


class ForeignSchema(ResourceError):
    """The schema is not the one that this Colibri made."""


def differences(db: Connection, migrations: Sequence[Migration]) -> list[str]:
    """What was added to, changed in or removed from the schema; nothing if it is ours."""
    rows = db.execute(_OBJECTS).fetchall()
    if migrations and migrations[-1].version == VERSION and digest(rows) == DIGEST:
        return []
    return [*_doubled(rows), *_compare(_by_name(rows), _made_by(migrations))]


def foreign(db: Connection) -> list[str]:
    """The same for a database of any known version."""
    return differences(db, upto(load_migrations(), version(db)))


def digest(rows: list[tuple[str, ...]]) -> str:
    """A hash of all objects, whatever the order of their creation."""
    return sha256(repr(sorted(map(repr, rows))).encode()).hexdigest()


def require(db: Connection, path: str, migrations: Sequence[Migration]) -> None:
    """ForeignSchema unless the tables, indexes, triggers and views are exactly ours."""
    if foreign := differences(db, migrations):
        more = f", and {len(foreign) - 1} more" if foreign[1:] else ""
        raise ForeignSchema(
            f"{path} does not have the schema that Colibri made: {foreign[0]}{more}",
            "colibri verify lists the differences; restore a backup, or undo them in a copy",
        )


def _by_name(rows: list[tuple[str, ...]]) -> Objects:
    return {(type, name): (table, sql) for type, name, table, sql in rows}


def _doubled(rows: list[tuple[str, ...]]) -> Iterator[str]:
    for (type, name), number in Counter((type, name) for type, name, _, _ in rows).items():
        if number > 1:
            yield f"the {_shown(type)} {_shown(name)} is there {number} times"


def _shown(name: object) -> str:
    """A foreign name, safe to print."""
    return repr(str(name))[1:-1][:MAX_NAME]


def _made_by(migrations: Sequence[Migration]) -> Objects:
    db = apsw.Connection(":memory:")
    try:
        for step in migrations:
            db.execute(step.sql)
        rows: list[tuple[Any, ...]] = db.execute(_OBJECTS).fetchall()
        return _by_name(rows)
    finally:
        db.close()


def _compare(found: Objects, wanted: Objects) -> Iterator[str]:
    for key in sorted(found.keys() | wanted.keys(), key=repr):
        type, name = map(_shown, key)
        if key not in wanted:
            yield f"the {type} {name} was added"
        elif key not in found:
            yield f"the {type} {name} is missing"
        elif found[key] != wanted[key]:
            yield f"the {type} {name} is defined differently"
