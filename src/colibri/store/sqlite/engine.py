"""What SQLite does in its own way: the `engine` of its connections, as store/connection.py asks."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

from colibri.store.connection import Connection
from colibri.store.sqlite.files import size, sync_log, wal
from colibri.store.sqlite.raw import records, rows
from colibri.store.sqlite.transaction import Transaction as transaction

if TYPE_CHECKING:
    from colibri.store.sqlite import task_search, thought_index
    from colibri.store.sqlite.checkpoint import rewrite
    from colibri.store.sqlite.expected import foreign
    from colibri.store.sqlite.indexes import damaged
    from colibri.store.sqlite.schema import (
        integrity_check,
        quick_check,
        small_tables,
        table_count,
    )

__all__ = [
    "damaged", "erase", "facts", "foreign", "integrity_check", "is_far", "lacks_to_erase",
    "last_sign", "listening", "quick_check", "records", "rewrite", "rows", "small_tables", "sync",
    "table_count", "task_search", "thought_index", "transaction",
]  # fmt: skip

is_far = False

# Loaded when they are first used: a hook neither searches nor verifies.
_LATER = {
    "task_search": ("task_search", None),
    "thought_index": ("thought_index", None),
    "foreign": ("expected", "foreign"),
    "damaged": ("indexes", "damaged"),
    "integrity_check": ("schema", "integrity_check"),
    "quick_check": ("schema", "quick_check"),
    "rewrite": ("checkpoint", "rewrite"),
    "small_tables": ("schema", "small_tables"),
    "table_count": ("schema", "table_count"),
}


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(name)
    place, part = _LATER[name]
    full_name = f"colibri.store.sqlite.{place}"
    __import__(full_name)
    module = sys.modules[full_name]
    found: object = module if part is None else getattr(module, part)
    setattr(sys.modules[__name__], name, found)
    return found


@cache
def last_sign(session: str, columns: str) -> str:
    """A query for seq or at of a session's last sign of life."""
    said = ('"outcome":"ok"', '"late":null,')
    ended, in_time = (f"instr(body, CAST('{text}' AS BLOB)) > 0" for text in said)
    return (
        f"SELECT {columns} FROM ledger WHERE session = {session} AND (kind = 'session.open'"
        f" OR kind = 'call.exit' AND {ended} OR kind = 'deed' AND {in_time})"
        " ORDER BY seq DESC LIMIT 1"
    )


def sync(db: Any) -> None:
    """Make sure that all it could read so far survives a power cut."""
    sync_log(db.filename)


@contextmanager
def listening(db: Connection) -> Iterator[None]:
    """Nobody tells of new records: SQLite has no way to."""
    yield


def facts(db: Any) -> dict[str, Any]:
    """How large the file and its log are; only SQLite may open them."""
    return {"bytes": size(db.filename), "wal_bytes": size(wal(db.filename))}


def lacks_to_erase(db: Connection) -> str:
    """Nothing: whoever can write the file can erase."""
    return ""


def erase(db: Connection, seq: int) -> None:
    """Take the payload of a record out of the ledger."""
    db.execute("UPDATE ledger SET nonce = NULL, body = NULL WHERE seq = ?", (seq,))
