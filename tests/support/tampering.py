"""Random tampering with a database, as with shell access: cells, rows, the tail, everything.

A `Victim` is a real server's database in memory. Each way to tamper returns what it did, or None if
there was nothing to change; the caller rolls it back.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import apsw

from colibri.core import ledger as form
from colibri.core.ledger import Head
from colibri.core.rows import Row
from colibri.store.sqlite.connection import Connection, connect
from colibri.store.sqlite.schema import load_migrations
from tests.support.client import JSON
from tests.support.ledger_reader import reading
from tests.support.ledger_writer import disable_triggers

Way = Callable[[Connection, Random], str | None]

# table -> the key of its rows
KEYS = {
    "ledger": ("seq",),
    "tasks": ("number",),
    "task_dependencies": ("task", "position"),
    "task_counts": ("field", "project", "assignee", "status", "is_ready", "block"),
    "task_search": ("rowid",),
    "lost_claims": ("task", "session"),
    "call_keys": ("enter",),
    "sessions": ("session_id",),
    "thoughts": ("seq",),
    "thought_counts": ("type",),
    "thought_search": ("rowid",),
    "merkle_nodes": ("session", "level", "idx"),
}
COUNTS = ("task_counts", "thought_counts")
# A count of zero is the same as no row, and the newest thoughts may not be in the index yet.
ONLY = dict.fromkeys(COUNTS, " WHERE n > 0") | {
    "thought_search": " WHERE rowid < (SELECT max(rowid) FROM thought_search)"
}


@dataclass
class Victim:
    """A database, older copies of it, and the newest head that was kept elsewhere."""

    db: Connection
    head: Head
    older: list[Connection] = field(default_factory=list)


def in_memory(path: Path) -> Connection:
    """A copy of a database without constraints and triggers."""
    db = Connection(":memory:")
    with reading(path) as source, db.backup("main", source, "main") as copying:
        while not copying.done:
            copying.step()
    disable_triggers(db)
    db.execute("PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON")
    return db


def head_of(receipt: JSON) -> Head:
    return Head(receipt["seq"], bytes.fromhex(receipt["head"]))


def _columns(db: Connection, table: str) -> list[str]:
    return [str(row[1]) for row in db.execute(f"PRAGMA table_info({table})")]


def _keys(db: Connection, table: str) -> list[Any]:
    names = ", ".join(KEYS[table])
    query = f"SELECT {names} FROM {table}{ONLY.get(table, '')}"
    return db.execute(query).fetchall()


def _row(db: Connection, query: str, key: Any) -> tuple[Any, ...]:
    (found,) = db.execute(query, key).fetchall()
    return found


def _where(table: str) -> str:
    return " AND ".join(f"{name} IS ?" for name in KEYS[table])


# Cells.


def change_a_cell(table: str, column: str) -> Way:
    def change(db: Connection, chance: Random) -> str | None:
        keys = _keys(db, table)
        if not keys:
            return None
        key = chance.choice(keys)
        found = db.execute(f"SELECT {column} FROM {table} WHERE {_where(table)}", key).get
        value = changed(found, chance)
        db.execute(f"UPDATE {table} SET {column} = ? WHERE {_where(table)}", (value, *key))
        return f"{table}.{column} of {key} from {found!r} to {value!r}"

    return change


def changed(value: Any, chance: Random) -> Any:
    """Another value of the same type; a value for NULL, sometimes NULL for a value."""
    if value is None:
        return "x"
    if isinstance(value, int):
        return value + chance.choice((-1, 1, 1000))
    if isinstance(value, bytes):
        return _flipped(value, chance)
    return chance.choice((_other_text, _shorter_or_longer))(value, chance)


def _flipped(value: bytes, chance: Random) -> bytes:
    data = bytearray(value)
    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return bytes(data)


def _other_text(value: str, chance: Random) -> str:
    if not value:
        return "x"
    at = chance.randrange(len(value))
    return value[:at] + chance.choice([c for c in "aZ0 é" if c != value[at]]) + value[at + 1 :]


def _shorter_or_longer(value: str, chance: Random) -> str:
    return value[:-1] if value and chance.random() < 0.5 else value + "0"


def _cells() -> dict[str, Way]:
    """Every column of every table; the words of thoughts are in an index without columns."""
    empty = connect(":memory:", "write")
    for migration in load_migrations():
        empty.execute(migration.sql)
    return {
        f"{table}.{column}": change_a_cell(table, column)
        for table in KEYS.keys() - {"thought_search"}
        for column in _columns(empty, table)
    }


# Rows.


def delete_a_row(table: str) -> Way:
    def delete(db: Connection, chance: Random) -> str | None:
        keys = _keys(db, table)
        if not keys:
            return None
        key = chance.choice(keys)
        db.execute(f"DELETE FROM {table} WHERE {_where(table)}", key)
        return f"{table} {key} is gone"

    return delete


def insert_a_row(table: str) -> Way:
    """Insert a copy of a row under a new key; unique columns get new values."""

    def insert(db: Connection, chance: Random) -> str | None:
        keys = _keys(db, table)
        if not keys:
            return None
        names = _columns(db, table)
        names = names if "rowid" not in KEYS[table] else ["rowid", *names]
        query = f"SELECT {', '.join(names)} FROM {table} WHERE {_where(table)}"
        row = dict(zip(names, _row(db, query, chance.choice(keys)), strict=True))
        last = KEYS[table][-1]
        row[last] = _new_key(row[last], [key[-1] for key in keys])
        for name in UNIQUE.get(table, ()):
            row[name] = changed(row[name], chance)
        marks = ", ".join("?" * len(row))
        db.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", tuple(row.values()))
        return f"{table} has a row more: {row}"

    return insert


UNIQUE = {
    "call_keys": ("key",),
    "sessions": ("open_seq", "seal_seq"),
    "thoughts": ("idx",),
    "task_dependencies": ("depends_on",),
}


def _new_key(value: Any, taken: list[Any]) -> Any:
    return f"{value}x" if isinstance(value, str) else max(taken) + 1


def swap_two_rows(table: str, columns: str) -> Way:
    """Exchange the values of two rows; their keys stay."""

    def swap(db: Connection, chance: Random) -> str | None:
        keys = _keys(db, table)
        if len(keys) < 2:
            return None
        first, second = chance.sample(keys, 2)
        query = f"SELECT {columns} FROM {table} WHERE {_where(table)}"
        one, other = (_row(db, query, key) for key in (first, second))
        if one == other:
            return None
        names = columns.split(", ")
        free = ", ".join(f"{name} = ?" for name in names)
        update = f"UPDATE {table} SET {free} WHERE {_where(table)}"
        db.execute(update, (*(changed(value, chance) for value in one), *first))  # temporary values
        db.execute(update, (*one, *second))
        db.execute(update, (*other, *first))
        return f"{columns} of {table} {first} and {second} are swapped"

    return swap


# The log as a whole. Records appended after the known head cannot be told from honest growth;
# changes up to it can.


def cut_the_tail(db: Connection, chance: Random) -> str | None:
    """Truncate the log, with the rows of sessions and thoughts that would reveal it."""
    last = db.execute("SELECT max(seq) FROM ledger").get
    after = chance.randrange(0, last)
    for statement in (
        "DELETE FROM merkle_nodes WHERE session IN"
        " (SELECT session_id FROM sessions WHERE ifnull(seal_seq, 0) > ?1)",
        "UPDATE sessions SET root = NULL, seal_seq = NULL, finalized_at = NULL"
        " WHERE ifnull(seal_seq, 0) > ?1",
        "DELETE FROM thoughts WHERE seq > ?1",
        "DELETE FROM sessions WHERE open_seq > ?1",
        "DELETE FROM ledger WHERE seq > ?1",
    ):
        db.execute(statement, (after,))
    return f"the log is cut after {after} of {last}"


def rewrite_log(db: Connection, chance: Random) -> str | None:
    """Change how one call ended, and rehash every record after it."""
    exits = [seq for (seq,) in db.execute("SELECT seq FROM ledger WHERE kind = 'call.exit'")]
    start = chance.choice((exits[-1], chance.choice(exits)))  # the last: no row reveals it
    body = json.loads(db.execute("SELECT body FROM ledger WHERE seq = ?", (start,)).get)
    body["duration_ms"] += 1
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    db.execute("UPDATE ledger SET body = ? WHERE seq = ?", (text, start))
    rows: list[Any] = db.execute(
        "SELECT * FROM ledger WHERE seq >= ? ORDER BY seq", (start,)
    ).fetchall()
    log = str(db.execute("SELECT value FROM meta WHERE key = 'log'").get)
    prev = Row._make(rows[0]).prev
    for row in map(Row._make, rows):
        payload = form.commitment(row.nonce or b"", row.body or b"")
        leaf = form.leaf(row._replace(payload=payload, prev=prev).header(log))
        db.execute(
            "UPDATE ledger SET payload = ?, leaf = ?, prev = ? WHERE seq = ?",
            (payload, leaf, prev, row.seq),
        )
        prev = leaf
    return f"everything from {start} on is rewritten"


def claim_another_log(db: Connection, chance: Random) -> str | None:
    found = db.execute("SELECT value FROM meta WHERE key = 'log'").get
    db.execute("UPDATE meta SET value = ? WHERE key = 'log'", (_other_text(found, chance),))
    return "it claims to be another log"


WAYS: dict[str, Way] = {
    **_cells(),
    **{f"delete from {table}": delete_a_row(table) for table in KEYS},
    **{f"insert into {table}": insert_a_row(table) for table in KEYS},
    "swap records": swap_two_rows(
        "ledger", "at, kind, call, session, task, agent, payload, nonce, body, leaf, prev"
    ),
    "swap payloads": swap_two_rows("ledger", "nonce, body"),
    "swap bodies": swap_two_rows("ledger", "body"),
    "swap titles": swap_two_rows("tasks", "title"),
    "swap intents": swap_two_rows("sessions", "intent"),
    "swap nodes": swap_two_rows("merkle_nodes", "hash"),
    "cut the tail": cut_the_tail,
    "rewrite the log": rewrite_log,
    "claim another log": claim_another_log,
}


def tamper(victim: Victim, way: Way, chance: Random) -> str | None:
    """Tamper; a change that a table's constraints refuse is rolled back."""
    victim.db.execute("SAVEPOINT tampering")
    try:
        return way(victim.db, chance)
    except apsw.ConstraintError:
        victim.db.execute("ROLLBACK TO tampering")
        return None
    finally:
        victim.db.execute("RELEASE tampering")
