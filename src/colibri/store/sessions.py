"""Sessions: opened once, sealed once, and nothing after that. Owns `sessions`.

A session goes on in another process once that resumes it. It lives as long as it gives signs of
life: calls that name it and were not refused, and deeds that did not come late.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import cache
from typing import Any, NamedTuple

from colibri.core.errors import Refused
from colibri.core.ledger import NO_LEAF
from colibri.store.append import Append
from colibri.store.connection import Connection, Engine

_TEXTS = frozenset(
    {
        *("session_id", "intent", "task_id", "agent", "server", "client", "host_session"),
        *("started_at", "finalized_at"),
    }
)
_MOST_OF_A_PROCESS = 32  # open sessions among which a current one is looked for
LONGEST = 10**9  # minutes: there is a date so long ago


class Caller(NamedTuple):
    """Who sends a call: the process that serves it, and for which client and session of that."""

    server: str
    client: str | None = None
    host_session: str | None = None
    agent: str | None = None


class Session(NamedTuple):
    """A row; the last three are None until it is sealed."""

    session_id: str
    intent: str
    task_id: str | None
    agent: str | None
    server: str
    client: str | None
    host_session: str | None
    resume_seq: int | None
    started_at: str
    open_seq: int
    record_count: int
    last_leaf: bytes
    finalized_at: str | None
    seal_seq: int | None
    root: bytes | None

    @property
    def sized_root(self) -> str | None:
        """The root as it is handed out, SIZE:HEX: by itself it is of no certain size."""
        return None if self.root is None else f"{self.record_count}:{self.root.hex()}"


_INSERT = (
    f"INSERT INTO sessions ({', '.join(Session._fields)})"
    f" VALUES ({', '.join('?' * len(Session._fields))})"
)


class Sign(NamedTuple):
    """A sign of life: the exit of a call, or a deed."""

    seq: int
    at: str

    def minutes_before(self, now: str) -> float:
        """How old it is; a time in the future counts as now."""
        age = datetime.fromisoformat(now) - datetime.fromisoformat(self.at)
        return max(0.0, age.total_seconds() / 60)


def start(  # noqa: PLR0913 - what its record says
    db: Connection,
    append: Append,
    id: str,
    *,
    intent: str,
    task_id: str | None,
    caller: Caller,
    now: str,
    gates: str | None = None,
) -> Session:
    """Open a session, under the rules of a colibri.toml if it has one; ERR_SESSION_EXISTS."""
    if (there := find(db, id)) is not None:
        use = "continue it with resume: true, or start one"
        use = use if there.root is None else "it is sealed: start one"
        raise Refused(
            "ERR_SESSION_EXISTS",
            f"the session {id} already exists: {use} with another session_id",
            session_id=id,
        )
    payload: dict[str, object] = {"session_id": id, "intent": intent, "task_id": task_id}
    if gates is not None:
        payload["gates"] = gates
    entry = append("session.open", payload, session=id)
    said = (id, intent, task_id, caller.agent, caller.server, caller.client, caller.host_session)
    made = Session(*said, None, now, entry.seq, 0, NO_LEAF, None, None, None)
    db.execute(_INSERT, made)
    return made


def resume(db: Connection, append: Append, id: str, *, caller: Caller) -> Session:
    """Continue an open session in another process, or in the same; from now on only there."""
    session = get_open(db, id)
    entry = append("session.resume", {"server": caller.server}, session=id)
    db.execute(
        "UPDATE sessions SET server = ?, client = ?, host_session = ?, resume_seq = ?"
        " WHERE session_id = ?",
        (caller.server, caller.client, caller.host_session, entry.seq, id),
    )
    return session._replace(
        server=caller.server,
        client=caller.client,
        host_session=caller.host_session,
        resume_seq=entry.seq,
    )


def find(db: Connection, id: str) -> Session | None:
    """A session, or None if there is none."""
    return next(_read(db, "WHERE session_id = ?", (id,)), None)


def every(db: Connection) -> Iterator[Session]:
    """All sessions, in the order of their opening."""
    return _read(db, "ORDER BY open_seq")


def _read(db: Connection, which: str, values: tuple[object, ...] = ()) -> Iterator[Session]:
    """Even what is no text: who looks for damage must be able to name it."""
    query = f"FROM sessions {which}"
    return map(Session._make, db.engine.rows(db, Session._fields, query, values, texts=_TEXTS))


def get(db: Connection, id: str) -> Session:
    """A session; ERR_SESSION_NOT_FOUND."""
    session = find(db, id)
    if session is None:
        raise Refused(
            "ERR_SESSION_NOT_FOUND",
            f"there is no session {id}: open one with audit_session_start and use its session_id",
            session_id=id,
        )
    return session


def get_open(db: Connection, id: str) -> Session:
    """A session that is not sealed; ERR_SESSION_NOT_FOUND, ERR_ALREADY_FINALIZED with the root."""
    session = get(db, id)
    if session.root is not None:
        raise Refused(
            "ERR_ALREADY_FINALIZED",
            f"the session {id} was sealed at {session.finalized_at} and takes nothing more;"
            " start a new one with audit_session_start",
            session_id=id,
            root=session.sized_root,
            record_count=session.record_count,
        )
    return session


def get_mine(db: Connection, id: str, server: str) -> Session:
    """An open session that this process may work in; ERR_CLAIMED if another has resumed it."""
    session = get_open(db, id)
    if session.resume_seq is not None and session.server != server:
        raise Refused(
            "ERR_CLAIMED",
            f"another process has continued the session {id} since record {session.resume_seq}:"
            " start your own session with audit_session_start, or take this one back with"
            " session_id and resume: true",
            session_id=id,
            resumed_at=session.resume_seq,
        )
    return session


def last_sign(db: Connection, id: str) -> Sign:
    """The last sign of life that a session has given; the first is that it was opened.

    ERR_SESSION_NOT_FOUND for one that only an altered row names.
    """
    found = db.execute(db.engine.last_sign("?", "seq, at"), (id,)).fetchone()
    if found is None:
        message = f"no record opened the session {id}: verify the log, a row was altered"
        raise Refused("ERR_SESSION_NOT_FOUND", message, session_id=id)
    return Sign(*found)


def last_sign_at(engine: Engine, id: str) -> str:
    """In SQL: when the session in a column gave its last sign of life."""
    return f"({engine.last_sign(id, 'at')})"


def before(now: str, minutes: float) -> str:
    """The time so many minutes ago."""
    then = datetime.fromisoformat(now) - timedelta(minutes=min(minutes, LONGEST))
    return then.isoformat(timespec="microseconds").replace("+00:00", "Z")


def agent_of(db: Connection, id: str) -> str | None:
    """The agent that opened a session; None if there is none, or no session."""
    agent: str | None = db.execute("SELECT agent FROM sessions WHERE session_id = ?", (id,)).get
    return agent


def current(
    db: Connection, caller: Caller, *, now: str, minutes: float
) -> tuple[str, str | None] | None:
    """The one open session in which this caller works, and its agent; None if there is none, or not
    just one.
    """
    found = at_work(db, caller, now=now, minutes=minutes)
    return found[0] if len(found) == 1 else None


@cache
def _at_work(last_sign: str) -> str:
    """The query that each call begins with."""
    return (
        f"SELECT session_id, agent, {last_sign} FROM sessions"
        " WHERE server = ? AND root IS NULL AND client IS NOT DISTINCT FROM ?"
        " AND host_session IS NOT DISTINCT FROM ? LIMIT ?"
    )


def at_work(
    db: Connection, caller: Caller, *, now: str, minutes: float
) -> list[tuple[str, str | None]]:
    """The open sessions that a caller has opened or resumed and that live, and their agents.

    If very many are open, some of them, whether they live or not: one cannot be told from them.
    """
    values = (caller.server, caller.client, caller.host_session, _MOST_OF_A_PROCESS + 1)
    query = _at_work(last_sign_at(db.engine, "session_id"))
    rows: list[Any] = db.execute(query, values).fetchall()
    if not rows:
        return []
    too_many, since = len(rows) > _MOST_OF_A_PROCESS, before(now, minutes)
    return [(id, agent) for id, agent, sign in rows if too_many or (sign or "") > since]


def newest(
    db: Connection, most: int, *, only_open: bool = False, only_sealed: bool = False
) -> list[Session]:
    """The sessions that were opened last, newest first."""
    where = "WHERE root IS NULL" if only_open else "WHERE root IS NOT NULL" if only_sealed else ""
    return [*_read(db, f"{where} ORDER BY open_seq DESC LIMIT ?", (most,))]


def open_of(db: Connection, agent: str) -> Iterator[Session]:
    """The open sessions that an agent opened, the newest first."""
    return _read(db, "WHERE agent = ? AND root IS NULL ORDER BY open_seq DESC", (agent,))


def tasks_named(db: Connection, id: str) -> list[str]:
    """The tasks that a session is about, has thought about or has changed."""
    rows = db.execute(
        "SELECT DISTINCT task FROM ledger WHERE session = ? AND task IS NOT NULL"
        " AND kind NOT IN ('call.enter', 'call.exit') ORDER BY task",
        (id,),
    )
    return [str(task) for (task,) in rows]


def ends_of(db: Connection, id: str) -> list[int]:
    """The records that open and seal a session."""
    rows = db.execute(
        "SELECT seq FROM ledger WHERE session = ? AND kind IN ('session.open', 'session.seal')",
        (id,),
    )
    return [seq for (seq,) in rows]


def last_sealed(db: Connection) -> Session | None:
    """The session that was sealed last."""
    id: Any = db.execute(
        "SELECT session_id FROM sessions WHERE seal_seq IS NOT NULL ORDER BY seal_seq DESC LIMIT 1"
    ).get
    return None if id is None else get(db, id)


def count(db: Connection) -> tuple[int, int]:
    """How many are open, how many are sealed."""
    row: Any = db.execute("SELECT count(*) - count(root), count(root) FROM sessions").get
    still_open, sealed = row
    return still_open, sealed
