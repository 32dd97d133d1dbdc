"""What PostgreSQL does in its own way: the `engine` of its connections."""

from collections.abc import Callable, Container, Iterator, Sequence
from typing import Any

from colibri.core.rows import Row
from colibri.store.connection import Connection
from colibri.store.postgres import task_search, thought_index
from colibri.store.postgres.expected import foreign
from colibri.store.postgres.place import facts, lacks_to_erase, listening, sync
from colibri.store.postgres.transaction import Transaction as transaction

__all__ = [
    "damaged", "erase", "facts", "foreign", "integrity_check", "is_far", "lacks_to_erase",
    "last_sign", "listening", "quick_check", "records", "rewrite", "rows", "small_tables", "sync",
    "table_count", "task_search", "thought_index", "transaction",
]  # fmt: skip

is_far = True

_RECORD = f"SELECT {', '.join(Row._fields)}"


def rows(
    db: Any,
    columns: Sequence[str],
    query: str,
    values: Sequence[object] = (),
    *,
    texts: Container[str],
) -> Iterator[tuple[Any, ...]]:
    """Some columns of the rows that a query, given from its FROM on, finds."""
    statement = f"SELECT {', '.join(columns)} {query}"
    found: Iterator[tuple[Any, ...]]
    found = iter(db.execute(statement, values)) if values else db.each(statement)  # a whole table
    return found


def records(db: Connection, query: str, values: Sequence[object]) -> list[Row]:
    """The records that a query, given from its FROM on, finds."""
    return [Row._make(row) for row in db.execute(_RECORD + query, values)]


def last_sign(session: str, columns: str) -> str:
    """A query for seq or at of a session's last sign of life."""
    return f"SELECT {columns} FROM last_sign({session})"


def erase(db: Connection, seq: int) -> None:
    """Take the payload of a record out of the ledger, by the one function that may."""
    db.execute("SELECT erase(?)", (seq,))


def rewrite(db: Connection, timeout_ms: int) -> None:
    """Only the owner of tables may do that, and not the write-ahead log, standbys or backups."""


def table_count(db: Connection) -> int:
    """How many tables the schema has."""
    count: int = db.execute(
        "SELECT count(*) FROM pg_class WHERE relkind = 'r'"
        " AND relnamespace = current_schema()::regnamespace"
    ).get
    return count


def small_tables(db: Connection) -> list[str]:
    """Only the schema: PostgreSQL has no check of its own that a writer may run."""
    return ["schema"]


def quick_check(db: Connection, table: str | None) -> list[str]:
    """How the schema differs from the one that Colibri made."""
    return foreign(db)


def integrity_check(db: Connection) -> list[str]:
    """Nothing more: pages are for `amcheck`, which only a superuser can install."""
    return []


def damaged(db: Connection, *, pause: Callable[[], None]) -> Iterator[str]:
    """Nothing: indexes are for `amcheck`, which only a superuser can install."""
    return iter(())
