"""What people look at: records page by page, and calls joined with what they wrote.

It owns no table and changes nothing. Each page has a read transaction of its own, so that the
write-ahead log can be checkpointed however slowly somebody reads; as the log only grows, pages fit
together. A page holds at most PAGE records: a session of any length needs little memory.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import merge
from itertools import islice
from types import UnionType
from typing import Any, Literal

from colibri.core.ledger import MEMBERS
from colibri.core.payload import load
from colibri.core.rows import Row
from colibri.store import ledger, sessions
from colibri.store.connection import Connection
from colibri.store.sessions import Session

PAGE = 100
OPEN_CALLS_AMONG = 100_000  # there is no index of calls

State = Literal["kept", "erased", "missing", "unreadable"]

# A payload that is no JSON names nothing.
_BODY = "iif(json_valid(CAST(l.body AS TEXT)), CAST(l.body AS TEXT), 'null')"
_SELECT = """
    SELECT l.seq, l.at, l.kind, l.call, l.session, l.task, l.agent, l.payload, l.nonce, l.body,
        l.leaf, l.prev, (SELECT value FROM meta WHERE key = 'log'),
        CASE WHEN l.body IS NULL THEN EXISTS (
            SELECT 1 FROM ledger AS e,
                json_each(iif(json_valid(CAST(e.body AS TEXT)), CAST(e.body AS TEXT), 'null'),
                    '$.seqs') AS named
            WHERE e.kind = 'erasure' AND e.seq > l.seq AND named.value = l.seq)
        END
    FROM ledger AS l
"""


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


@dataclass(frozen=True, slots=True)
class Step:
    """A call and what it wrote. Without an exit it is open, or no call at all: an erasure."""

    records: tuple[Record, ...]
    enter: Record | None
    exit: Record | None

    @property
    def first(self) -> Record:
        """What the step is known by: the first record it wrote, else how it ended or began."""
        found = next(iter(self.records), None) or self.exit or self.enter
        assert found is not None
        return found


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


# Records.


def get(db: Connection, seq: int) -> Record | None:
    """A record by its place, or None."""
    row: Any = db.execute(f"{_SELECT} WHERE l.seq = ?", (seq,)).get
    return None if row is None else _record(row)


def _fetch(db: Connection, seqs: Sequence[int]) -> list[Record]:
    query = f"{_SELECT} WHERE l.seq IN (SELECT value FROM json_each(?)) ORDER BY l.seq"
    return [_record(row) for row in db.execute(query, (json.dumps(seqs),))]


def records(
    db: Connection, wanted: Filter, *, last: int, newest_first: bool = False
) -> Iterator[Record]:
    """The records up to a seq that match."""
    clause, values = _clause(wanted)
    low, high = wanted.first, last if wanted.last is None else min(last, wanted.last)
    order = "DESC" if newest_first else "ASC"
    query = f"{_SELECT} WHERE l.seq BETWEEN ? AND ?{clause} ORDER BY l.seq {order} LIMIT {PAGE:d}"
    while True:
        with db:
            page = [_record(row) for row in db.execute(query, (low, high, *values))]
        yield from page
        if len(page) < PAGE:
            return
        low, high = (low, page[-1].seq - 1) if newest_first else (page[-1].seq + 1, high)


def before_newest(db: Connection, wanted: Filter, count: int, *, last: int) -> int | None:
    """The newest match that is left out when only so many are shown; None if none is."""
    clause, values = _clause(wanted)
    high = last if wanted.last is None else min(last, wanted.last)
    seq: int | None = db.execute(
        "SELECT l.seq FROM ledger AS l"
        f" WHERE l.seq BETWEEN ? AND ?{clause} ORDER BY l.seq DESC LIMIT 1 OFFSET ?",
        (wanted.first, high, *values, count),
    ).get
    return seq


def call_of(db: Connection, record: Record) -> tuple[Record | None, Record | None]:
    """Enter and exit of the call that a record belongs to, as far as they are there."""
    left: Record | None = record
    if record.kind != "call.exit":
        seq: Any = db.execute(
            "SELECT seq FROM ledger WHERE seq > ? AND call = ? AND kind = 'call.exit'"
            " ORDER BY seq LIMIT 1",
            (record.seq, record.call),
        ).get
        left = None if seq is None else get(db, seq)
    entered = record if record.kind == "call.enter" else left and _enter_of(db, left)
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


def _clause(wanted: Filter) -> tuple[str, list[str]]:
    """The conditions of a filter, from constant pieces; values are always bound."""
    given = {
        condition: value
        for name, condition in _CONDITIONS.items()
        if (value := getattr(wanted, name)) is not None
    }
    # The kinds are literals, so that an index of one kind can be used.
    kinds = ", ".join(f"'{kind}'" for kind in MEMBERS if kind in wanted.kinds)
    clause = f" AND l.kind IN ({kinds})" if kinds else ""
    return clause + "".join(f" AND {condition}" for condition in given), list(given.values())


_CONDITIONS = {
    "session": "l.session = ?",
    "task": "l.task = ?",
    "agent": "l.agent = ?",
    "since": "l.at >= ?",
    "until": "l.at <= ?",
    "tool": f"l.kind IN ('call.enter', 'call.exit') AND {_BODY} ->> '$.tool' = ?",
}


def _record(row: Sequence[Any]) -> Record:
    *columns, log, erased = row
    stored = Row._make(columns)
    payload, state = _payload(stored.kind, stored.body, erased=bool(erased))
    return Record(
        seq=stored.seq,
        header=stored.header(log),
        leaf=stored.leaf,
        prev=stored.prev,
        at=stored.at,
        kind=stored.kind,
        call=stored.call,
        session=stored.session,
        task=stored.task,
        agent=stored.agent,
        nonce=stored.nonce,
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
    if not isinstance(payload, dict) or payload.keys() != MEMBERS[kind]:
        return False
    if not all(isinstance(payload[name], type) for name, type in _TYPES.items() if name in payload):
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
    "seqs": list,
    "reason": str,
}


def _enter_of(db: Connection, left: Record) -> Record | None:
    """The enter that an exit names."""
    seq = 0 if left.payload is None else left.payload["enter"]
    return get(db, seq) if 0 < seq < left.seq else None


# Steps.


@dataclass(slots=True)
class _Source:
    """Some records of the ledger, in order, and how far they have been read."""

    where: str
    values: tuple[str, ...]
    after: int
    wanted: str = "true"  # no index knows this, so a page may have less than it looked at
    upto: int | None = None

    def look(self, db: Connection, last: int) -> tuple[list[int], int]:
        """The seqs of its next records, and the seq up to which there are no others."""
        rows: list[Any] = db.execute(
            f"SELECT seq, {self.wanted} FROM ledger WHERE {self.where} AND seq > ? AND seq <= ?"
            f" ORDER BY seq LIMIT {PAGE:d}",
            (*self.values, self.after, self._last(last)),
        ).fetchall()
        reached = last if len(rows) < PAGE else rows[-1][0]
        return [seq for seq, wanted in rows if wanted], reached

    def newest(self, db: Connection, last: int, count: int) -> list[int]:
        """Where the newest steps end, newest first."""
        rows = db.execute(
            f"SELECT seq FROM ledger WHERE {self.where} AND {self.wanted} AND seq > ? AND seq <= ?"
            " AND kind IN ('call.exit', 'erasure') ORDER BY seq DESC LIMIT ?",
            (*self.values, self.after, self._last(last), count),
        )
        return [int(str(seq)) for (seq,) in rows]

    def _last(self, last: int) -> int:
        return last if self.upto is None else min(last, self.upto)


class Timeline:
    """The steps of a session, of a task, or of everything, in the order of the ledger.

    A session's are those that name it, and, while it is open, those of its tasks that name no
    session: the tasks of its opening and of its thoughts.
    """

    def __init__(
        self, db: Connection, *, session: Session | None = None, task: str | None = None
    ) -> None:
        self._db = db
        self._session = session
        self._task = task
        self._open: dict[str, Record] = {}
        self._tasks: set[str] = set()
        self._sources = [_Source("true", (), 0)]
        if task is not None:
            self._sources = [_Source("task = ?", (task,), 0)]
        if session is not None:
            self._sources = [_Source("session = ?", (session.session_id,), 0)]
            for found in _tasks_of(db, session.session_id):
                self._add_task(found, session)

    def skip_to_newest(self, count: int, *, last: int, types: Sequence[str] = ()) -> None:
        """Leave out all but the newest steps, or all but the newest thoughts of some types."""
        if types:
            ends = self._newest_thoughts(types, last, count + 1)
        else:
            each = (source.newest(self._db, last, count + 1) for source in self._sources)
            ends = list(islice(merge(*each, reverse=True), count + 1))
        if len(ends) > count:
            for source in self._sources:
                source.after = max(source.after, ends[count])

    def advance(self, last: int) -> Iterator[Step]:
        """The steps up to a seq that have not been given yet.

        A task that a session turns out to be about brings its steps since the session's opening.
        """
        group: list[Record] = []
        while any(source.after < last for source in self._sources):
            for record in self._page(last):
                self._look(record)
                if group and group[0].call != record.call:
                    yield self._step(group)
                    group = []
                if record.kind != "call.enter":
                    group.append(record)
        if group:
            yield self._step(group)

    def open_calls(self) -> list[Step]:
        """The calls among what was given that have not ended."""
        return [Step((), enter, None) for enter in self._open.values()]

    def _page(self, last: int) -> list[Record]:
        with self._db:
            found = [source.look(self._db, last) for source in self._sources]
            reached = min(seq for _, seq in found)
            seqs = [seq for seq in merge(*(seqs for seqs, _ in found)) if seq <= reached]
            if len(seqs) > PAGE:
                seqs, reached = seqs[:PAGE], seqs[PAGE - 1]
            page = _fetch(self._db, seqs)
        for source in self._sources:
            source.after = max(source.after, reached)
        return page

    def _look(self, record: Record) -> None:
        if record.kind == "call.enter":
            self._open[record.call] = record
        elif self._session and record.kind == "thought" and record.task is not None:
            self._add_task(record.task, self._session)

    def _add_task(self, task: str, session: Session) -> None:
        if task not in self._tasks:
            self._tasks.add(task)
            none, seal = "session IS NULL", session.seal_seq
            self._sources.append(_Source("task = ?", (task,), session.open_seq, none, seal))

    def _step(self, group: list[Record]) -> Step:
        last = group[-1]
        enter = self._open.get(last.call)
        if last.kind != "call.exit":
            return Step(tuple(group), enter, None)
        self._open.pop(last.call, None)
        return Step(tuple(group[:-1]), enter or _enter_of(self._db, last), last)

    def _newest_thoughts(self, types: Sequence[str], last: int, count: int) -> list[int]:
        marks = ", ".join("?" * len(types))
        where, values = "true", []
        if self._session is not None:
            where, values = "session = ?", [self._session.session_id]
        elif self._task is not None:
            where, values = "task = ?", [self._task]
        # What is erased has no type any more, as far as its record tells.
        rows = self._db.execute(
            f"SELECT seq FROM thoughts WHERE {where} AND type IN ({marks}) AND seq <= ?"
            " AND (SELECT body FROM ledger AS l WHERE l.seq = thoughts.seq) IS NOT NULL"
            " ORDER BY seq DESC LIMIT ?",
            (*values, *types, last, count),
        )
        return [int(str(seq)) for (seq,) in rows]


def _tasks_of(db: Connection, session: str) -> list[str]:
    rows = db.execute(
        "SELECT DISTINCT task FROM ledger WHERE session = ? AND task IS NOT NULL"
        " AND kind IN ('session.open', 'thought') ORDER BY task",
        (session,),
    )
    return [str(task) for (task,) in rows]


# Sessions.


def newest_sessions(
    db: Connection, count: int, *, only_open: bool = False, only_sealed: bool = False
) -> list[Session]:
    """The sessions that were opened last, newest first."""
    where = "WHERE root IS NULL" if only_open else "WHERE root IS NOT NULL" if only_sealed else ""
    rows: list[Any] = db.execute(
        f"SELECT session_id FROM sessions {where} ORDER BY open_seq DESC LIMIT ?", (count,)
    ).fetchall()
    return [sessions.get(db, id) for (id,) in rows]


def last_sealed(db: Connection) -> Session | None:
    """The session that was sealed last."""
    id: Any = db.execute(
        "SELECT session_id FROM sessions WHERE seal_seq IS NOT NULL ORDER BY seal_seq DESC LIMIT 1"
    ).get
    return None if id is None else sessions.get(db, id)


def count_sessions(db: Connection) -> tuple[int, int]:
    """How many are open, how many are sealed."""
    row: Any = db.execute("SELECT count(*) - count(root), count(root) FROM sessions").get
    still_open, sealed = row
    return still_open, sealed
