"""Sessions: opened once, sealed once, and nothing after that. Owns `sessions`."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from colibri.core.errors import Refused
from colibri.core.ledger import NO_LEAF
from colibri.store.append import Append
from colibri.store.connection import Connection
from colibri.store.sqlite import raw

_TEXTS = frozenset({"session_id", "intent", "task_id", "started_at", "finalized_at"})


class Session(NamedTuple):
    """A row; the last three are None until it is sealed."""

    session_id: str
    intent: str
    task_id: str | None
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


def start(
    db: Connection, append: Append, id: str, *, intent: str, task_id: str | None, now: str
) -> Session:
    """Open a session; ERR_SESSION_EXISTS."""
    if (there := find(db, id)) is not None:
        use = "use it, or start one" if there.root is None else "it is sealed: start one"
        raise Refused(
            "ERR_SESSION_EXISTS",
            f"there is a session {id} already: {use} with another session_id",
            session_id=id,
        )
    payload: dict[str, object] = {"session_id": id, "intent": intent, "task_id": task_id}
    entry = append("session.open", payload, session=id)
    db.execute(
        "INSERT INTO sessions (session_id, intent, task_id, started_at, open_seq, record_count,"
        " last_leaf) VALUES (?, ?, ?, ?, ?, 0, ?)",
        (id, intent, task_id, now, entry.seq, NO_LEAF),
    )
    return get(db, id)


def find(db: Connection, id: str) -> Session | None:
    """A session, or None if there is none."""
    return next(_read(db, "WHERE session_id = ?", (id,)), None)


def every(db: Connection) -> Iterator[Session]:
    """All sessions, in the order of their opening."""
    return _read(db, "ORDER BY open_seq")


def _read(db: Connection, which: str, values: tuple[str, ...] = ()) -> Iterator[Session]:
    """Even what is no text: who looks for damage must be able to name it."""
    query = f"FROM sessions {which}"
    return map(Session._make, raw.rows(db, Session._fields, query, values, texts=_TEXTS))


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


def newest(
    db: Connection, most: int, *, only_open: bool = False, only_sealed: bool = False
) -> list[Session]:
    """The sessions that were opened last, newest first."""
    where = "WHERE root IS NULL" if only_open else "WHERE root IS NOT NULL" if only_sealed else ""
    rows: list[Any] = db.execute(
        f"SELECT session_id FROM sessions {where} ORDER BY open_seq DESC LIMIT ?", (most,)
    ).fetchall()
    return [get(db, id) for (id,) in rows]


def tasks_named(db: Connection, id: str) -> list[str]:
    """The tasks of a session's opening and thoughts."""
    rows = db.execute(
        "SELECT DISTINCT task FROM ledger WHERE session = ? AND task IS NOT NULL"
        " AND kind IN ('session.open', 'thought') ORDER BY task",
        (id,),
    )
    return [str(task) for (task,) in rows]


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
