"""Copies the records and tables of a ledger from a file into a schema, each of them once.

The records come first, PART in each transaction; then the tables next to them, each of GROUPS in
one. What is there already stays as it is. The database checks every record as usual; totals are
copied, not counted again.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any

import psycopg

from colibri.core.errors import ResourceError
from colibri.store import ledger, thought_search
from colibri.store.connection import Connection as Source
from colibri.store.postgres import thought_index
from colibri.store.postgres.connection import Connection
from colibri.store.tasks import folded

PART = 10_000  # records that are copied, and checked by the database, at once
# In this order, because of their foreign keys; each group is there as a whole or not at all.
GROUPS = (
    ("tasks", "task_counts", "task_dependencies", "lost_claims", "task_search"),
    ("sessions", "thoughts", "thought_counts", "merkle_nodes"),
    ("thought_search", "thought_words"),
    ("call_keys",),
    ("deeds",),
    ("log_tree",),
)
_TABLES = ", ".join(chain.from_iterable(GROUPS))
_COUNTING = ("tasks", "thoughts")  # each row of these changes a total
_KEPT = ("merkle_nodes", "log_tree")  # from which nothing can be removed
_WORDS = (
    "INSERT INTO thought_words (word)"
    " SELECT DISTINCT unnest(tsvector_to_array(words)) FROM thought_search"
)

Progress = Callable[[int, int], None]


@contextmanager
def transaction(pg: psycopg.Connection[Any]) -> Iterator[None]:
    """Whatever goes wrong ends the connection, so that the server rolls back: even in the middle of
    a COPY that was interrupted.
    """
    pg.execute("BEGIN")
    try:
        yield
        pg.execute("COMMIT")
    except BaseException:
        pg.close()
        raise


def copy(source: Source, target: Connection, progress: Progress) -> None:
    """Copy what is missing in the schema in use, as its owner; progress(rows done, all rows).

    ResourceError if it has records that the source has not. The source must not change.
    """
    copying = _Copying(source, target, progress)
    copying.records()
    for group in GROUPS:
        copying.group(group)
    target.pg.execute(f"ANALYZE ledger, {_TABLES}".encode())


def forget_tables(source: Source, target: Connection) -> None:
    """Keep the records that are there, without what was erased in the source, and no other row."""
    pg = target.pg
    for table in _KEPT:
        _switch(pg, table, "DISABLE")
    pg.execute(f"TRUNCATE {_TABLES}".encode())
    for table in _KEPT:
        _switch(pg, table, "ENABLE")
    erased = [seq for (seq,) in source.execute("SELECT seq FROM ledger WHERE body IS NULL")]
    pg.execute(
        "UPDATE ledger SET nonce = NULL, body = NULL WHERE seq = ANY(%s) AND body IS NOT NULL",
        (erased,),
    )


class _Copying:
    """How far it is, of how many rows."""

    def __init__(self, source: Source, target: Connection, progress: Progress) -> None:
        self._source = source
        self._db = target
        self._pg = target.pg
        self._progress = progress
        self._counts: dict[str, int] = dict.fromkeys(chain.from_iterable(GROUPS), 0)
        for table in self._counts.keys() - {"task_search", "thought_search", "thought_words"}:
            self._counts[table] = source.execute(f"SELECT count(*) FROM {table}").get
        self._counts["thought_search"] = self._counts["thoughts"]
        self._all = sum(self._counts.values()) + ledger.last_seq(source)
        self._done = 0

    def records(self) -> None:
        """The database computes every leaf again, and finds the place of each in the chain."""
        newest = ledger.head(self._db)
        if newest and ledger.leaf_at(self._source, newest.seq) != newest.leaf:
            raise ResourceError(
                f"the unfinished copy has a record {newest.seq:,} that the file has not",
                "drop the schema with psql, or name another",
            )
        done, last = newest.seq if newest else 0, ledger.last_seq(self._source)
        self._add(done)
        while done < last:
            rows = ledger.stretch(self._source, done + 1, last, PART)
            with transaction(self._pg):
                self._copy_rows("ledger", self._columns("ledger"), rows)
            done = rows[-1][0]
            self._add(len(rows))

    def group(self, tables: Sequence[str]) -> None:
        if self._db.execute(f"SELECT EXISTS (SELECT 1 FROM {tables[0]})").get:
            self._add(sum(self._counts[table] for table in tables))
            return
        with transaction(self._pg):
            for table in tables:
                if table in _COUNTING:
                    _switch(self._pg, table, "DISABLE")
                self._copy_table(table)
                if table in _COUNTING:
                    _switch(self._pg, table, "ENABLE")

    def _copy_table(self, table: str) -> None:
        columns = self._columns(table)
        if table == "task_search":
            self._copy_rows(table, columns, _task_texts(self._source))
        elif table == "thought_search":
            words = self._counted(_thought_words(self._source))
            self._copy_rows(table, columns, words, "text")
        elif table == "thought_words":
            self._pg.execute(_WORDS)
        else:
            names = ", ".join(name for name, _ in columns)
            rows = self._source.execute(f"SELECT {names} FROM {table}")
            self._copy_rows(table, columns, self._counted(rows))

    def _columns(self, table: str) -> list[tuple[str, int]]:
        """Name and type of the columns that are stored: the same as in a file."""
        return self._pg.execute(
            "SELECT attname, atttypid::oid::bigint FROM pg_attribute WHERE attrelid = %s::regclass"
            " AND attnum > 0 AND NOT attisdropped AND attgenerated = '' ORDER BY attnum",
            (table,),
        ).fetchall()

    def _copy_rows(
        self,
        table: str,
        columns: Sequence[tuple[str, int]],
        rows: Iterable[Sequence[Any]],
        how: str = "binary",
    ) -> None:
        names = ", ".join(name for name, _ in columns)
        statement = f"COPY {table} ({names}) FROM STDIN (FORMAT {how})"
        with self._pg.cursor().copy(statement.encode()) as copy:
            if how == "binary":
                copy.set_types([type for _, type in columns])
            for row in rows:
                copy.write_row(row)

    def _counted(self, rows: Iterable[Sequence[Any]]) -> Iterator[Sequence[Any]]:
        for row in rows:
            yield row
            self._add(1)

    def _add(self, rows: int) -> None:
        self._done += rows
        self._progress(self._done, self._all)


def _switch(pg: psycopg.Connection[Any], table: str, how: str) -> None:
    """Turn our triggers of a table off or on; not those of its foreign keys."""
    pg.execute(f"ALTER TABLE {table} {how} TRIGGER USER".encode())


def _task_texts(source: Source) -> Iterator[tuple[int, str]]:
    for number, *texts in source.execute("SELECT number, title, description FROM tasks"):
        yield number, folded(*texts)


def _thought_words(source: Source) -> Iterator[tuple[int, str]]:
    for seq, text in thought_search.indexed(source):
        yield seq, thought_index.vector(text)
