"""The decision trail: thoughts, each naming the one before it in its session. Owns `thoughts`."""

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

from colibri.core.canonical import MAX_INTEGER
from colibri.core.frozen import Frozen
from colibri.core.ledger import ERASED, NO_LEAF, Entry
from colibri.store import thought_search
from colibri.store.append import Append
from colibri.store.connection import Connection
from colibri.store.sessions import Session

_SELECT = """
    SELECT l.seq, l.leaf, l.at, l.session, l.task, l.agent, t.idx, t.type,
        CASE WHEN l.body IS NULL THEN (
            SELECT b.leaf FROM thoughts AS p JOIN ledger AS b ON b.seq = p.seq
            WHERE p.session = l.session AND p.idx = t.idx - 1) END AS before,
        l.body
    FROM thoughts AS t JOIN ledger AS l ON l.seq = t.seq
"""


class Thought(Frozen):
    """A thought as its record tells it."""

    __slots__ = (
        "agent_id",
        "content",
        "created_at",
        "hash",
        "index",
        "prev_hash",
        "seq",
        "session_id",
        "task_id",
        "thought_id",
        "type",
    )
    thought_id: str
    seq: int
    index: int
    session_id: str
    task_id: str | None
    agent_id: str | None
    type: str
    content: str
    created_at: str
    prev_hash: str
    hash: str


class Filter(NamedTuple):
    """Which thoughts a list shows; None means any."""

    session: str | None = None
    task: str | None = None
    type: str | None = None


def thought_id(seq: int) -> str:
    """The id of the thought at a place of the ledger."""
    return f"R-{seq}"


def record(
    db: Connection,
    append: Append,
    session: Session,
    *,
    seq: int,
    type: str,
    content: str,
    task: str | None,
) -> Entry:
    """Append a thought to an open session; seq is the place that its record will have."""
    payload: dict[str, object] = {
        "thought_id": thought_id(seq),
        "index": session.record_count,
        "type": type,
        "content": content,
        "prev": session.last_leaf.hex(),
    }
    count = thought_search.count(db)
    entry = append("thought", payload, session=session.session_id, task=task)
    assert entry.seq == seq
    db.execute(
        "INSERT INTO thoughts (seq, session, idx, task, type) VALUES (?, ?, ?, ?, ?)",
        (seq, session.session_id, session.record_count, task, type),
    )
    db.execute(
        "UPDATE sessions SET record_count = record_count + 1, last_leaf = ? WHERE session_id = ?",
        (entry.leaf, session.session_id),
    )
    thought_search.add(db, count + 1)
    return entry


def get(db: Connection, seq: int) -> Thought:
    """The thought at a place of the ledger."""
    return _thought(db.execute(f"{_SELECT} WHERE t.seq = ?", (seq,)).get)


def _thought(row: Any) -> Thought:
    seq, leaf, at, session, task, agent, index, type, before, body = row
    payload = None if body is None else json.loads(body)
    if index > MAX_INTEGER:  # nobody but a forger has counted so far
        raise ValueError(
            f"{thought_id(seq)} has a number beyond 2^53-1: audit_verify_chain names it"
        )
    return Thought(
        thought_id=thought_id(seq),
        seq=seq,
        index=index,
        session_id=session,
        task_id=task,
        agent_id=agent,
        type=type,
        content=ERASED if payload is None else payload["content"],
        created_at=at,
        prev_hash=(before or NO_LEAF).hex() if payload is None else payload["prev"],
        hash=leaf.hex(),
    )


def find(
    db: Connection,
    wanted: Filter,
    *,
    limit: int,
    offset: int,
    search: str | None = None,
    order: str = "oldest",
    most_bytes: int | None = None,
) -> tuple[list[Thought], int]:
    """A page of thoughts, `oldest`, `newest` or, with a search, `best` first; and how many match.

    With `most_bytes` the page ends before the thought whose text would be too much, but has one.
    """
    if search is None:
        page = partial(_page, db, wanted, limit, offset, newest=order == "newest")
        db.look_ahead((page, partial(_count, db, wanted)))
        rows, total = page(), _count(db, wanted)
    else:
        matches = thought_search.find(db, _SELECT, search, *_clause(wanted), _order(wanted))
        if order != "best":
            matches.sort(key=itemgetter(0), reverse=order == "newest")
        rows, total = matches[offset : offset + limit], len(matches)
    found: list[Thought] = []
    size = 0
    for row in rows:
        thought = _thought(row)
        size += len(thought.content.encode())
        if found and most_bytes is not None and size > most_bytes:
            break
        found.append(thought)
    return found, total


def _page(
    db: Connection, wanted: Filter, limit: int, offset: int, *, newest: bool
) -> Iterable[Any]:
    """The places alone are all in an index, so that what is skipped costs no look at its row."""
    clause, values = _clause(wanted)
    way = "DESC" if newest else "ASC"
    order = f"{_order(wanted)} {way}"
    page = f"SELECT seq FROM thoughts WHERE true{clause} ORDER BY {order} LIMIT ? OFFSET ?"
    query = f"{_SELECT} WHERE t.seq IN ({page}) ORDER BY t.seq {way}"
    return db.execute(query, (*values, limit, offset))


def decisions(
    db: Connection, *, session: str | None, task: str | None, before: str, most: int
) -> list[Thought]:
    """What was decided about a task, or in a session about no task, the newest first."""
    rows = db.execute(
        f"{_SELECT} WHERE t.type = 'decision' AND l.at < ?"
        " AND (t.task = ? OR t.session = ? AND t.task IS NULL) ORDER BY t.seq DESC LIMIT ?",
        (before, task, session, most),
    ).fetchall()
    return [_thought(row) for row in rows]


def leaves(db: Connection, session: str) -> Iterator[tuple[int, bytes]]:
    """Seq and leaf of every thought of a session, in order."""
    yield from db.execute(
        "SELECT t.seq, l.leaf FROM thoughts AS t JOIN ledger AS l ON l.seq = t.seq"
        " WHERE t.session = ? ORDER BY t.idx",
        (session,),
    )


def _order(wanted: Filter) -> str:
    """What thoughts are sorted by, which is the same, but idx is in the index of a session."""
    return "seq" if wanted.session is None else "idx"


def _clause(wanted: Filter) -> tuple[str, list[str]]:
    given = {
        name: value
        for name in ("session", "task", "type")
        if (value := getattr(wanted, name)) is not None
    }
    return "".join(f" AND {name} = ?" for name in given), list(given.values())


def _count(db: Connection, wanted: Filter) -> int:
    clause, values = _clause(wanted)
    total: int
    if wanted.session is None and wanted.task is None:
        query = f"SELECT coalesce(sum(n), 0) FROM thought_counts WHERE true{clause}"
        total = db.execute(query, values).get
    else:
        total = db.execute(f"SELECT count(*) FROM thoughts WHERE true{clause}", values).get
    return total


class Comparison:
    """Holds the rows of `thoughts` against the records of thoughts while the log is being read.

    That they fit means something only if the log turns out to be sound.
    """

    def __init__(self, db: Connection) -> None:
        self.fit = True
        self._db = db
        self._first = -(2**63)

    def go_on(self, right: Sequence[tuple[Any, ...]], last: int) -> None:
        """Compare the rows up to a seq with what the records up to there say they must hold."""
        try:
            rows = self.rows(last)
        except UnicodeDecodeError:
            self.fit = False
        else:
            self.fit = self.fit and _fit(rows, right)
        self._first = last + 1

    def rows(self, last: int) -> list[tuple[Any, ...]]:
        """The next rows, up to a seq."""
        return self._db.execute(
            "SELECT seq, session, idx, task, type FROM thoughts WHERE seq BETWEEN ? AND ?"
            " ORDER BY seq",
            (self._first, last),
        ).fetchall()


def _fit(rows: Sequence[tuple[Any, ...]], right: Sequence[tuple[Any, ...]]) -> bool:
    """Whether rows hold what they must; where less is known of one, only that is compared."""
    return rows == right or (
        len(rows) == len(right)
        and all(row[: len(known)] == known for row, known in zip(rows, right, strict=True))
    )
