"""Connections to a ledger on PostgreSQL, which take statements as the store writes them.

The store marks values with `?`. Each statement is rewritten once, prepared on first use, and sent
in binary: text comes back as str, bytea as bytes, every whole number as int.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import count
from typing import Any, Self

import psycopg
from psycopg import RawCursor
from psycopg.pq import TransactionStatus
from psycopg.types.numeric import Int8BinaryDumper, NumericBinaryLoader
from psycopg.types.string import BytesBinaryDumper, StrBinaryDumper

from colibri.store import connection
from colibri.store.faults import register
from colibri.store.postgres import engine, faults

MOST_PREPARED = 500  # statements of a connection
PART = 1_000  # rows of a long answer
_PLACES = re.compile(r"'[^']*'|\?")

register(faults)


class Cursor:
    """The rows of a statement; all of them are here."""

    __slots__ = ("_all", "_rows")

    def __init__(self, rows: list[tuple[Any, ...]]) -> None:
        self._all = rows
        self._rows = iter(rows)

    @property
    def get(self) -> Any:
        """The rows with as little around them as possible."""
        rows = self._all
        if not rows:
            return None
        values = [row[0] for row in rows] if len(rows[0]) == 1 else rows
        return values[0] if len(values) == 1 else values

    def fetchone(self) -> Any | None:
        return next(self._rows, None)

    def fetchall(self) -> list[tuple[Any, ...]]:
        return [*self._rows]

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return self._rows

    def __next__(self) -> tuple[Any, ...]:
        return next(self._rows)


class Connection:
    """As store/connection.py describes it."""

    engine: connection.Engine = engine

    def __init__(self, pg: psycopg.Connection[Any]) -> None:
        self._changes = 0
        self._depth = 0
        self.use(pg)

    def use(self, pg: psycopg.Connection[Any]) -> None:
        """Continue with this one. Statements are prepared on first use, and values sent as here."""
        pg.prepare_threshold, pg.prepared_max = 0, MOST_PREPARED
        for python, dumper in _DUMPERS:
            pg.adapters.register_dumper(python, dumper)
        pg.adapters.register_loader("numeric", _Whole)
        self.pg = pg
        self._cursor = RawCursor(pg)

    @property
    def in_transaction(self) -> bool:
        return self.pg.info.transaction_status in _IN_TRANSACTION

    def execute(self, statements: str, bindings: connection.Bindings | None = None) -> Cursor:
        if bindings is None and ";" in statements:  # several, in one flight
            self.pg.execute(statements.encode(), prepare=False)
            return Cursor([])
        cursor = self._cursor.execute(numbered(statements), bindings or (), binary=True)
        if cursor.description is None:
            self._changes += max(cursor.rowcount, 0)
            return Cursor([])
        return Cursor(cursor.fetchall())

    def each(self, statement: str, bindings: connection.Bindings = ()) -> Iterator[Any]:
        """The rows of a question that may have very many: made into values a part at a time."""
        cursor = RawCursor(self.pg)
        cursor.execute(numbered(statement), bindings, binary=True)
        while rows := cursor.fetchmany(PART):
            yield from rows

    def executemany(
        self, statements: str, sequenceofbindings: Iterable[connection.Bindings]
    ) -> Cursor:
        self._cursor.executemany(numbered(statements), [*sequenceofbindings])
        self._changes += max(self._cursor.rowcount, 0)
        return Cursor([])

    def look_ahead(self, reads: Iterable[Callable[[], object]], *, further: bool = False) -> None:
        """Only a connection in a pipeline does."""

    def total_changes(self) -> int:
        """How many rows it has changed so far."""
        return self._changes

    def close(self) -> None:
        self.pg.close()

    def __enter__(self) -> Self:
        """One state of the database, for as long as it is read."""
        if not self._depth and not self.in_transaction:
            self.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            self._depth = 1
        elif self._depth:
            self._depth += 1
        return self

    def __exit__(self, kind: object, problem: BaseException | None, trace: object) -> None:
        if self._depth == 1 and self.in_transaction:
            self.execute("COMMIT" if problem is None else "ROLLBACK")
        self._depth = max(0, self._depth - 1)


def connect(conninfo: str) -> Connection:
    """A connection as the user of a URL, or of libpq's settings, whose search path is the ledger's
    schema.
    """
    return Connection(psycopg.connect(conninfo, autocommit=True, application_name="colibri"))


class _Whole(NumericBinaryLoader):
    """A sum of whole numbers, which PostgreSQL gives as a numeric."""

    def load(self, data: Any) -> Any:
        return int(super().load(data))


# Always the same types: a statement is prepared once, whatever the size of a number.
_DUMPERS = ((int, Int8BinaryDumper), (str, StrBinaryDumper), (bytes, BytesBinaryDumper))
_IN_TRANSACTION = (TransactionStatus.ACTIVE, TransactionStatus.INTRANS, TransactionStatus.INERROR)


@lru_cache(maxsize=4 * MOST_PREPARED)
def numbered(statement: str) -> bytes:
    """A statement with $1, $2 and so on for its values."""
    number = count(1)
    return _PLACES.sub(
        lambda found: f"${next(number)}" if found[0] == "?" else found[0], statement
    ).encode()
