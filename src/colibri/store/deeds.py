"""Deeds: what hosts report of what agents do. Owns `deeds`.

A deed belongs to the open session that its host works in, and to the task that this session holds
if it is only one. Which session that is follows from the host's own ids: those of its session and
of its tool call come with the calls of most hosts. For the rest, the host's report that
`audit_session_start` has ended tells it, because the ledger has the id or the answer of that call:
then a deed of the event `bind` is written first, and holds for what the host reports later.

Loaded by every hook: it imports no more than it needs; what people ask for is in deed_list.py.
"""

from __future__ import annotations

from functools import partial

from colibri.core.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from colibri.core.ledger import Entry
    from colibri.store.connection import Connection
    from colibri.store.ledger import Chain

MAX_FILES = 64
MAX_COMMAND = 4096  # characters
START = "audit_session_start"
_MOST_STARTED = 32  # open sessions among which the one is looked for that a call has just begun
_NEWEST = 64  # deeds among which those of a host's session are looked for
_ENDS = frozenset({"tool.end", "tool.failed"})
_MEMBERS = (
    *("host", "host_version", "host_session", "host_agent", "event", "use", "tool", "class_"),
    *("exit", "duration_ms", "input", "output", "files", "git", "settings"),
)
_TEXTS = ("command", "paths", "tree", "text")


class Deed(Frozen):
    """What a host reported: the members of `deed` but for late and lost, and of its `deed.text`.

    `class_` is the member `class`; `answer` is not recorded: the hash of an answer of Colibri that
    the host showed to its hook, canonical.
    """

    __slots__ = (*_MEMBERS, "unjudged", *_TEXTS, "answer")
    host: str
    host_version: str | None
    host_session: str | None
    host_agent: str | None
    event: str
    use: str | None
    tool: str | None
    class_: str | None
    exit: int | None
    duration_ms: int | None
    input: Mapping[str, object] | None
    output: Mapping[str, object] | None
    files: Sequence[Mapping[str, object]]
    git: Mapping[str, object] | None
    settings: str | None
    unjudged: str | None
    command: str | None
    paths: Sequence[str | None]
    tree: str | None
    text: str | None
    answer: str | None


class Arrival(Frozen):
    """How a deed comes in: under two new ids, its own and that of a bind that may have to come
    before it; when; and, if it had to wait, since when. `lost` counts the deeds before it that
    could not be kept."""

    __slots__ = ("at", "bind_call", "call", "late", "lost")
    call: str
    bind_call: str
    at: str
    late: str | None
    lost: int


def record(
    db: Connection, chain: Chain, deed: Deed, arrival: Arrival, *, minutes: float
) -> Entry | None:
    """Append a deed, and its text if it has one, in the transaction that is open; None if it is
    there already. minutes is how long a session lives without a sign of life.
    """
    if is_recorded(db, deed, arrival.call):
        return None
    session = bound(db, deed, now=arrival.at, minutes=minutes)
    if session is not None and _has_to_bind(db, deed, session):
        first = Arrival(
            call=arrival.bind_call,
            bind_call=arrival.bind_call,
            at=arrival.at,
            late=arrival.late,
            lost=0,
        )
        _append(db, chain, _bind(deed), first, session)
    return _append(db, chain, deed, arrival, session)


def ask(db: Connection, deed: Deed, call: str) -> None:
    """Look ahead to what is asked about most deeds, before they are recorded."""
    reads: list[Callable[[], object]] = [partial(is_recorded, db, deed, call)]
    if deed.use is not None and deed.event in _ENDS:
        reads += [partial(_has_begin, db, deed), partial(_newest_events, db, deed)]
    if deed.host_session is not None:
        reads += [partial(_tied, db, deed), partial(_of_host, db, deed)]
    db.look_ahead(reads)


def is_recorded(db: Connection, deed: Deed, call: str) -> bool:
    """Whether a deed with this id is there, or this event of this use of a tool."""
    found = db.execute(
        "SELECT 1 FROM deeds WHERE call = ? UNION ALL SELECT 1 FROM deeds WHERE use = ?"
        " AND event = ? AND coalesce(host_session, '') = ? AND coalesce(host_agent, '') = ?",
        (call, deed.use, deed.event, deed.host_session or "", deed.host_agent or ""),
    )
    return found.fetchone() is not None


def lacks_begin(db: Connection, deed: Deed) -> bool:
    """Whether a tool call has ended whose begin is not here, though other events of its host's
    session are; not where this reports ends alone. Looked for among the newest deeds."""
    if deed.use is None or deed.event not in _ENDS:
        return False
    if _has_begin(db, deed):
        return False
    events = _newest_events(db, deed)
    return "tool.begin" in events or bool(events and events.isdisjoint(_ENDS))


def _has_begin(db: Connection, deed: Deed) -> bool:
    begin = "SELECT 1 FROM deeds WHERE use = ? AND event = 'tool.begin'"
    return db.execute(f"{begin} AND coalesce(host_session, '') = ?", _use(deed)).get is not None


def _newest_events(db: Connection, deed: Deed) -> set[str]:
    """Those of the deed's session of its host, among the newest deeds."""
    newest = "SELECT host, host_session, event FROM deeds ORDER BY seq DESC LIMIT ?"
    rows = db.execute(
        f"SELECT event FROM ({newest}) AS newest WHERE host = ? AND host_session = ?",
        (_NEWEST, deed.host, deed.host_session),
    )
    return {str(event) for (event,) in rows}


def _use(deed: Deed) -> tuple[str | None, str]:
    return deed.use, deed.host_session or ""


def bound(db: Connection, deed: Deed, *, now: str, minutes: float) -> str | None:
    """The open session that a deed belongs to; None if it is not known, or not just one."""
    if _is_start(deed) and (started := _started(db, deed)) is not None:
        return started
    if deed.host_session is None:
        return None
    if (tied := _tied(db, deed)) is not None:
        return tied
    return _only(db, _of_host(db, deed), now, minutes)


def _tied(db: Connection, deed: Deed) -> str | None:
    """The open session that the newest bind of the deed's host names."""
    tied: str | None = db.execute(
        "SELECT d.session FROM deeds AS d JOIN sessions AS s ON s.session_id = d.session"
        " WHERE d.host_session = ? AND d.event = 'bind' AND d.host = ?"
        " AND d.host_agent IS NOT DISTINCT FROM ? AND s.root IS NULL ORDER BY d.seq DESC LIMIT 1",
        (deed.host_session, deed.host, deed.host_agent),
    ).get
    return tied


def _of_host(db: Connection, deed: Deed) -> list[str]:
    """The open sessions that a session of a host has begun or resumed, but for those that are tied
    to another of its agents."""
    rows = db.execute(
        "SELECT session_id FROM sessions WHERE host_session = ? AND root IS NULL"
        " AND session_id NOT IN (SELECT session FROM deeds"
        " WHERE host_session = ? AND event = 'bind' AND session IS NOT NULL)",
        (deed.host_session, deed.host_session),
    )
    return [str(id) for (id,) in rows]


def _only(db: Connection, ids: Sequence[str], now: str, minutes: float) -> str | None:
    """The one of some sessions, or the one of them that lives."""
    if len(ids) > 1:
        from colibri.store import sessions  # noqa: PLC0415 - rarely needed, and not small

        ids = [id for id in ids if sessions.last_sign(db, id).minutes_before(now) < minutes]
    return ids[0] if len(ids) == 1 else None


def _is_start(deed: Deed) -> bool:
    return deed.event == "tool.end" and (deed.tool or "").endswith(START)


def _started(db: Connection, deed: Deed) -> str | None:
    """The open session that a call has just begun or resumed: one with this use, or this answer."""
    found: set[str] = set()
    for id, began in db.execute(
        "SELECT session_id, coalesce(resume_seq, open_seq) FROM sessions WHERE root IS NULL"
        " ORDER BY coalesce(resume_seq, open_seq) DESC LIMIT ?",
        (_MOST_STARTED,),
    ).fetchall():
        use, answer = _call_of(db, began)
        same_use, same_answer = use == deed.use, answer == deed.answer
        if (same_use and use is not None) or (same_answer and answer is not None):
            found.add(id)
    return found.pop() if len(found) == 1 else None


def _call_of(db: Connection, seq: int) -> tuple[object, object]:
    """The use and the answer of the call that wrote a record; its enter and exit are not far."""
    call = db.execute("SELECT call FROM ledger WHERE seq = ?", (seq,)).get
    enter = db.execute(
        "SELECT body FROM ledger WHERE seq < ? AND call = ? ORDER BY seq DESC LIMIT 1", (seq, call)
    ).get
    exit = db.execute(
        "SELECT body FROM ledger WHERE seq > ? AND call = ? ORDER BY seq LIMIT 1", (seq, call)
    ).get
    from colibri.core.ledger import load  # noqa: PLC0415 - not for each deed

    return load(enter or b"{}").get("use"), load(exit or b"{}").get("result_sha256")


def _has_to_bind(db: Connection, deed: Deed, session: str) -> bool:
    """Whether what the host reports later could not be bound to this session without a bind."""
    if not _is_start(deed) or deed.host_session is None:
        return False
    return deed.host_agent is not None or _of_host(db, deed) != [session]


def _bind(deed: Deed) -> Deed:
    nothing = {name: None for name in Deed.__slots__} | {"files": (), "paths": ()}
    kept = ("host", "host_version", "host_session", "host_agent", "use")
    return Deed(**nothing | {name: getattr(deed, name) for name in kept} | {"event": "bind"})


def _append(
    db: Connection, chain: Chain, deed: Deed, arrival: Arrival, session: str | None
) -> Entry:
    task, agent = (None, None) if session is None else _work_of(db, session)
    append = partial(
        chain.append, at=arrival.at, call=arrival.call, session=session, task=task, agent=agent
    )
    payload = {name.rstrip("_"): getattr(deed, name) for name in _MEMBERS}
    if deed.unjudged is not None:
        payload["unjudged"] = deed.unjudged
    entry = append("deed", {**payload, "late": arrival.late, "lost": arrival.lost})
    columns = (deed.host, deed.host_session, deed.host_agent, deed.event, deed.use, deed.class_)
    db.execute(
        "INSERT INTO deeds (seq, call, session, host, host_session, host_agent, event, use, class,"
        " exit, late) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (entry.seq, arrival.call, session, *columns, deed.exit, arrival.late),
    )
    texts = {name: getattr(deed, name) for name in _TEXTS}
    return append("deed.text", {"of": entry.seq, **texts}) if any(texts.values()) else entry


def _work_of(db: Connection, session: str) -> tuple[str | None, str | None]:
    """The one task that a session holds, and its agent."""
    held = db.execute("SELECT task_id FROM tasks WHERE holder = ? LIMIT 2", (session,)).fetchall()
    agent = db.execute("SELECT agent FROM sessions WHERE session_id = ?", (session,)).get
    return (str(held[0][0]) if len(held) == 1 else None), agent


def newest(db: Connection) -> dict[str, str]:
    """When each host last reported something."""
    last = "SELECT host, max(seq) AS seq FROM deeds GROUP BY host"
    return dict(db.execute(f"SELECT host, at FROM ({last}) AS last JOIN ledger USING (seq)"))
