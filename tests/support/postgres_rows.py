"""Rows for the ledger on PostgreSQL, hashed by core/ledger.py."""

from typing import Any

from colibri.core import ledger as record
from colibri.core.rows import Row
from tests.support.postgres import LOG, psycopg

AT = "2026-01-02T03:04:05.000006Z"
CALL = "00000000-0000-4000-8000-000000000000"


def row(after: Row | None = None, body: bytes = b"{}", log: str = LOG, **said: Any) -> Row:
    """A good record that follows another one, or none."""
    seq, prev = (after.seq + 1, after.leaf) if after else (1, record.genesis(log))
    nonce = bytes([seq % 256]) * 32
    header = {"at": AT, "kind": "call.enter", "call": CALL, "session": None, "task": None}
    header |= {"agent": None} | said
    known = (seq, *header.values(), record.commitment(nonce, body))
    unsigned = Row._make((*known, nonce, body, b"", prev))
    return unsigned._replace(leaf=record.leaf(unsigned.header(log)))


def insert(db: psycopg.Connection[Any], *rows: Row) -> None:
    """All of them by one statement."""
    marks = f"({', '.join(['%s'] * len(Row._fields))})"
    statement = (
        f"INSERT INTO ledger ({', '.join(Row._fields)}) VALUES {', '.join([marks] * len(rows))}"
    )
    db.execute(statement.encode(), [value for one in rows for value in one])
