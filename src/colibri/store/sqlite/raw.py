"""Reads rows as they are in the file, even if a text column holds something else."""

from collections.abc import Container, Iterator, Sequence
from typing import Any

from colibri.core.rows import Row
from colibri.store.connection import Connection

# The casts protect readers from a table that was rebuilt without types.
_RECORD = """
    SELECT seq, CAST(at AS BLOB), CAST(kind AS BLOB), CAST(call AS BLOB), CAST(session AS BLOB),
        CAST(task AS BLOB), CAST(agent AS BLOB), coalesce(CAST(payload AS BLOB), x''),
        CAST(nonce AS BLOB), CAST(body AS BLOB), coalesce(CAST(leaf AS BLOB), x''),
        coalesce(CAST(prev AS BLOB), x'')
"""
_TEXTS = slice(1, 7)


def rows(
    db: Connection,
    columns: Sequence[str],
    query: str,
    values: Sequence[object] = (),
    *,
    texts: Container[str],
) -> Iterator[tuple[Any, ...]]:
    """Some columns of the rows that a query, given from its FROM on, finds.

    Bytes that are not text become lone surrogates, so that they equal nothing.
    """
    read = ", ".join(f"CAST({name} AS BLOB)" if name in texts else name for name in columns)
    for row in db.execute(f"SELECT {read} {query}", values):
        shown = [
            value.decode(errors="surrogateescape") if name in texts and value is not None else value
            for name, value in zip(columns, row, strict=True)
        ]
        yield tuple(shown)


def records(db: Connection, query: str, values: Sequence[object]) -> list[Row]:
    """The records that a query, given from its FROM on, finds; other bytes as above."""
    return [_record(row) for row in db.execute(_RECORD + query, values)]


def _record(row: Sequence[Any]) -> Row:
    columns = list(row)
    columns[_TEXTS] = [
        value.decode(errors="surrogateescape") if isinstance(value, bytes) else None
        for value in columns[_TEXTS]
    ]
    return Row._make(columns)
