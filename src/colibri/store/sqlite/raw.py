"""Rows as they are in the file, even if what stands where a text belongs is no text."""

from collections.abc import Container, Iterator, Sequence
from typing import Any

from colibri.store.connection import Connection


def rows(
    db: Connection,
    columns: Sequence[str],
    query: str,
    values: Sequence[object] = (),
    *,
    texts: Container[str],
) -> Iterator[tuple[Any, ...]]:
    """Some columns of what a query, from its FROM on, finds.

    Bytes that are no text become lone surrogates, so that they equal nothing.
    """
    read = ", ".join(f"CAST({name} AS BLOB)" if name in texts else name for name in columns)
    for row in db.execute(f"SELECT {read} {query}", values):
        yield tuple(
            value.decode(errors="surrogateescape") if name in texts and value is not None else value
            for name, value in zip(columns, row, strict=True)
        )
