"""Whether each index leads to the rows of its table, and to no others.

An index can be rebuilt over other keys under an unchanged definition. Then it hides rows from the
tools, or shows them in the wrong place, while the rows themselves are sound. `integrity_check`
finds that, but a table at a time and without a pause: more than a second for each million records.
So it is for the tables that stay small. Those that grow with every record only ever get new rows,
and these are looked up in slices.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import apsw

from colibri.store.connection import Connection
from colibri.store.sqlite.schema import integrity_check

SLICE = 10_000  # rows that are looked up in one transaction
APPENDED = ("deeds", "ledger", "thoughts")


class _Index(NamedTuple):
    table: str
    name: str
    columns: tuple[str, ...]
    condition: str  # of a partial index


def damaged(db: Connection, *, pause: Callable[[], None], slice_size: int = SLICE) -> Iterator[str]:
    """What is wrong with the indexes of a database whose schema is ours."""
    try:
        for table in _tables(db):
            if table in APPENDED:
                for index in _indexes(db, table):
                    yield from _altered(db, index, pause, slice_size)
            else:
                yield from (" ".join(what.split()) for what in integrity_check(db, table))
            pause()
    except apsw.CorruptError as problem:
        yield str(problem)


def _tables(db: Connection) -> list[str]:
    rows = db.execute(
        "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type IN ('table', 'virtual')"
        " AND name NOT LIKE 'sqlite!_%' ESCAPE '!' ORDER BY name"
    )
    return [str(name) for (name,) in rows.fetchall()]


def _indexes(db: Connection, table: str) -> Iterator[_Index]:
    names: list[Any] = db.execute("SELECT name FROM pragma_index_list(?)", (table,)).fetchall()
    for (name,) in names:
        columns = db.execute(
            "SELECT name FROM pragma_index_xinfo(?) WHERE key AND cid >= 0", (name,)
        ).fetchall()
        made = db.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (name,)).get
        _, _, condition = str(made).partition(" WHERE ")
        yield _Index(table, name, tuple(str(column) for (column,) in columns), condition or "true")


def _altered(
    db: Connection, index: _Index, pause: Callable[[], None], slice_size: int
) -> Iterator[str]:
    """Every row has its entry, and there are no more entries than rows: then they are the same."""
    table, name, columns, condition = index
    same = " AND ".join(f"entry.{column} IS base.{column}" for column in columns)
    look_up = (
        f"SELECT count(*), count(*) - coalesce(sum(EXISTS (SELECT 1 FROM {table} AS entry"
        f" INDEXED BY {name} WHERE {condition} AND {same} AND entry.seq = base.seq)), 0)"
        f" FROM {table} AS base NOT INDEXED WHERE base.seq BETWEEN ? AND ? AND {condition}"
    )
    last: int = db.execute(f"SELECT coalesce(max(seq), 0) FROM {table} NOT INDEXED").get
    rows = 0
    for first in range(1, last + 1, slice_size):
        with db:
            found: Any = db.execute(look_up, (first, min(first + slice_size - 1, last))).fetchone()
        rows += found[0]
        if found[1]:
            yield f"the index {name} does not have {found[1]} rows of {table} after {first - 1}"
            return
        pause()
    entries: int = db.execute(
        f"SELECT count(*) FROM {table} INDEXED BY {name} WHERE {condition} AND seq <= ?", (last,)
    ).get
    if entries != rows:
        yield f"the index {name} has {entries} entries for {rows} rows of {table}"
