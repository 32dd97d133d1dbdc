"""Whether each index matches the rows of its table.

An index can be rebuilt over other keys under an unchanged definition. It then hides rows from the
tools, or shows them in the wrong place, while the rows themselves are intact. `integrity_check`
finds that, but checks a whole table without a pause: more than a second per million records. So it
is used for tables that stay small. Tables that grow with every record are looked up in slices.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import apsw

from colibri.store.connection import Connection
from colibri.store.sqlite.schema import integrity_check

SLICE = 10_000  # rows looked up in one transaction
APPENDED = ("deeds", "ledger", "thoughts")


class _Index(NamedTuple):
    name: str
    columns: tuple[str, ...]
    condition: str  # of a partial index

    def has(self, table: str) -> str:
        """SQL: whether the row `base` belongs in the index and is there."""
        same = " AND ".join(f"entry.{column} IS base.{column}" for column in self.columns)
        return (
            f"{self.condition} AND EXISTS (SELECT 1 FROM {table} AS entry"
            f" INDEXED BY {self.name} WHERE {self.condition} AND {same} AND entry.seq = base.seq)"
        )


def damaged(db: Connection, *, pause: Callable[[], None], slice_size: int = SLICE) -> Iterator[str]:
    """What is wrong with the indexes of a database that has our schema."""
    try:
        for table in _tables(db):
            if table in APPENDED:
                yield from _altered(db, table, [*_indexes(db, table)], pause, slice_size)
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
        yield _Index(name, tuple(str(column) for (column,) in columns), condition or "true")


def _altered(
    db: Connection, table: str, indexes: list[_Index], pause: Callable[[], None], slice_size: int
) -> Iterator[str]:
    """Indexes that miss a row or have another number of entries than rows; any other matches."""
    wanted = [f"count(*) FILTER (WHERE {index.condition})" for index in indexes]
    there = [f"count(*) FILTER (WHERE {index.has(table)})" for index in indexes]
    look_up = (
        f"SELECT {', '.join((*wanted, *there))} FROM {table} AS base NOT INDEXED"
        " WHERE seq BETWEEN ? AND ?"
    )
    last: int = db.execute(f"SELECT coalesce(max(seq), 0) FROM {table} NOT INDEXED").get
    found = [0] * (2 * len(indexes))
    for first in range(1, last + 1, slice_size):
        with db:
            more: Any = db.execute(look_up, (first, min(first + slice_size - 1, last))).fetchone()
        found = [sum(both) for both in zip(found, more, strict=True)]
        pause()
    for index, rows, present in zip(indexes, found, found[len(indexes) :], strict=False):
        entries: int = db.execute(
            f"SELECT count(*) FROM {table} INDEXED BY {index.name}"
            f" WHERE {index.condition} AND seq <= ?",
            (last,),
        ).get
        if present < rows:
            yield f"the index {index.name} does not have {rows - present} rows of {table}"
        elif entries != rows:
            yield f"the index {index.name} has {entries} entries for {rows} rows of {table}"
