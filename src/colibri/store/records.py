"""Records as people look at them: page by page, each with what its payload says.

It owns no table and changes nothing. Each page has a read transaction of its own, so that the
write-ahead log can be checkpointed however slowly somebody reads; as the log only grows, pages fit
together. A page holds at most PAGE records: a log of any length needs little memory.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from types import UnionType
from typing import Any, Literal, NamedTuple

from colibri.core.canonical import encode
from colibri.core.ledger import MEMBERS, OPTIONAL, load
from colibri.core.rows import Row
from colibri.store import ledger
from colibri.store.connection import Connection

PAGE = 100
OPEN_CALLS_AMONG = 100_000  # there is no index of calls

State = Literal["kept", "erased", "missing", "unreadable"]

_SELECT = f"SELECT {', '.join(Row._fields)} FROM ledger"


@dataclass(frozen=True, slots=True)
class Record:
    """A record; where there is no payload, `state` says why."""

    seq: int
    header: bytes
    leaf: bytes
    prev: bytes
    at: str
    kind: str
    call: str
    session: str | None
    task: str | None
    agent: str | None
    nonce: bytes | None
    payload: dict[str, Any] | None
    state: State


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which records are wanted; None or nothing means any."""

    kinds: tuple[str, ...] = ()
    tool: str | None = None
    session: str | None = None
    task: str | None = None
    agent: str | None = None
    since: str | None = None  # times, as records have them
    until: str | None = None
    first: int = 1
    last: int | None = None


class Work(NamedTuple):
    """How many tasks a session made and ended: those whose records name it, and no others."""

    created: int
    done: int
    cancelled: int


def work(db: Connection, session: str) -> Work:
    """What a session did to tasks."""
    query = f"{_SELECT} WHERE session = ? AND kind = 'task'"
    said = [one.payload for one in _made(db, db.execute(query, (session,)).fetchall())]
    changes = [one["set"].get("status", (None, None)) for one in said if one is not None]
    ends = [new for _, new in changes]
    created = sum(one is not None and one["version"] == 1 for one in said)
    return Work(created, ends.count("DONE"), ends.count("CANCELLED"))


def get(db: Connection, seq: int) -> Record | None:
    """A record by its place, or None."""
    return next(iter(fetch(db, [seq])), None)


def fetch(db: Connection, seqs: Iterable[int]) -> list[Record]:
    """The records at some places, as far as they are there."""
    query = f"{_SELECT} WHERE seq = ?"
    return _made(db, [row for seq in seqs for row in db.execute(query, (seq,))])


def records(
    db: Connection, wanted: Filter, *, last: int, newest_first: bool = False
) -> Iterator[Record]:
    """The records up to a seq that match."""
    clause, values = _clause(wanted)
    low, high = wanted.first, last if wanted.last is None else min(last, wanted.last)
    order = "DESC" if newest_first else "ASC"
    query = f"{_SELECT} WHERE seq BETWEEN ? AND ?{clause} ORDER BY seq {order} LIMIT {PAGE:d}"
    # No column tells the tool: what cannot be of it is skipped before it is read.
    hint = b"" if wanted.tool is None else encode(wanted.tool)
    while True:
        with db:
            rows = db.execute(query, (low, high, *values)).fetchall()
            page = _made(db, [row for row in rows if hint in (row[_BODY] or b"")])
        yield from (record for record in page if _is_of(record, wanted.tool))
        if len(rows) < PAGE:
            return
        low, high = (low, rows[-1][0] - 1) if newest_first else (rows[-1][0] + 1, high)


def before_newest(db: Connection, wanted: Filter, count: int, *, last: int) -> int | None:
    """The newest match that is left out when only so many are shown; None if none is."""
    if wanted.tool is not None:
        found = records(db, wanted, last=last, newest_first=True)
        left_out = next(islice(found, count, None), None)
        return None if left_out is None else left_out.seq
    clause, values = _clause(wanted)
    high = last if wanted.last is None else min(last, wanted.last)
    seq: int | None = db.execute(
        f"SELECT seq FROM ledger WHERE seq BETWEEN ? AND ?{clause}"
        " ORDER BY seq DESC LIMIT 1 OFFSET ?",
        (wanted.first, high, *values, count),
    ).get
    return seq


def call_of(db: Connection, record: Record) -> tuple[Record | None, Record | None]:
    """Enter and exit of the call that a record belongs to, as far as they are there."""
    left: Record | None = record
    if record.kind in ("deed", "deed.text"):
        return None, None
    if record.kind != "call.exit":
        seq: Any = db.execute(
            "SELECT seq FROM ledger WHERE seq > ? AND call = ? AND kind = 'call.exit'"
            " ORDER BY seq LIMIT 1",
            (record.seq, record.call),
        ).get
        left = None if seq is None else get(db, seq)
    entered = record if record.kind == "call.enter" else left and enter_of(db, left)
    return entered, left


def open_calls(db: Connection, *, after: int) -> list[Record]:
    """The enters after a seq that have no exit."""
    found: dict[str, int] = {}
    for seq, kind, call in ledger.calls_since(db, after):
        if kind == "call.enter":
            found[call] = seq
        else:
            found.pop(call, None)
    return [record for seq in found.values() if (record := get(db, seq)) is not None]


def enter_of(db: Connection, left: Record) -> Record | None:
    """The enter that an exit names."""
    seq = 0 if left.payload is None else left.payload["enter"]
    return get(db, seq) if 0 < seq < left.seq else None


# How they are made.

_BODY = Row._fields.index("body")


def _clause(wanted: Filter) -> tuple[str, list[str]]:
    """The conditions of a filter, from constant pieces; values are always bound."""
    given = {
        condition: value
        for name, condition in _CONDITIONS.items()
        if (value := getattr(wanted, name)) is not None
    }
    # The kinds are literals, so that an index of one kind can be used.
    kinds = " OR ".join(f"kind = '{kind}'" for kind in MEMBERS if kind in wanted.kinds)
    clause = f" AND ({kinds})" if kinds else ""
    clause += "" if wanted.tool is None else " AND kind IN ('call.enter', 'call.exit')"
    return clause + "".join(f" AND {condition}" for condition in given), list(given.values())


_CONDITIONS = {
    "session": "session = ?",
    "task": "task = ?",
    "agent": "agent = ?",
    "since": "at >= ?",
    "until": "at <= ?",
}


def _is_of(record: Record, tool: str | None) -> bool:
    return tool is None or (record.payload is not None and record.payload["tool"] == tool)


def _made(db: Connection, rows: Sequence[tuple[Any, ...]]) -> list[Record]:
    log, stored = ledger.log_id(db), [Row._make(row) for row in rows]
    erased = _erased(db) if any(row.body is None for row in stored) else set()
    return [_record(row, log, erased) for row in stored]


def _erased(db: Connection) -> set[int]:
    """Every record that an erasure names."""
    found: set[int] = set()
    for seq, body in db.execute("SELECT seq, body FROM ledger WHERE kind = 'erasure'"):
        payload, _ = _payload("erasure", body, erased=False)
        named = payload["seqs"] if payload else ()
        found.update(one for one in named if isinstance(one, int) and one < seq)
    return found


def _record(row: Row, log: str, erased: set[int]) -> Record:
    payload, state = _payload(row.kind, row.body, erased=row.seq in erased)
    return Record(
        seq=row.seq,
        header=row.header(log),
        leaf=row.leaf,
        prev=row.prev,
        at=row.at,
        kind=row.kind,
        call=row.call,
        session=row.session,
        task=row.task,
        agent=row.agent,
        nonce=row.nonce,
        payload=payload,
        state=state,
    )


def _payload(kind: str, body: bytes | None, *, erased: bool) -> tuple[dict[str, Any] | None, State]:
    if body is None:
        return None, "erased" if erased else "missing"
    try:
        payload = load(body)
    except ValueError:
        return None, "unreadable"
    return (payload, "kept") if _is_readable(kind, payload) else (None, "unreadable")


def _is_readable(kind: str, payload: Any) -> bool:
    """Whether it has the members of its kind: who shows it need not look again."""
    optional = OPTIONAL.get(kind, frozenset())
    if not isinstance(payload, dict) or payload.keys() - optional != MEMBERS[kind]:
        return False
    types = _DEED_TYPES if kind.startswith("deed") else _TYPES
    if not all(isinstance(payload[name], type) for name, type in types.items() if name in payload):
        return False
    if not isinstance(payload.get("taken", {}).get("minutes", 0), int):
        return False
    gate = payload.get("gate", {"command": "", "evidence": []})
    if not isinstance(gate.get("command"), str) or not isinstance(gate.get("evidence"), list):
        return False
    changes = payload.get("set", {}).values()
    return all(
        isinstance(change, list) and len(change) == len(("old", "new")) for change in changes
    )


# What the members of payloads are; those that are not here are shown as they are.
_TYPES: Mapping[str, type | UnionType] = {
    "server": str,
    "tool": str,
    "arguments": dict | None,
    "enter": int,
    "outcome": str,
    "intent": str,
    "type": str,
    "content": str,
    "root": str,
    "count": int,
    "version": int,
    "set": dict,
    "taken": dict,
    "gate": dict,
    "seqs": list,
    "reason": str,
}
_DEED_TYPES: Mapping[str, type | UnionType] = {
    "host": str,
    "host_version": str | None,
    "event": str,
    "tool": str | None,
    "class": str | None,
    "exit": int | None,
    "late": str | None,
    "lost": int,
    "unjudged": str,
    "command": str | None,
    "paths": list,
    "text": str | None,
}
