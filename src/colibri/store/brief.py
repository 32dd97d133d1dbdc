"""The brief: where the work stands, for an agent or a person new to it.

Facts, in a few lines, from what is newest or next; no orders. What others wrote is cut, made
visible and quoted as a JSON string, so that it can neither hide anything nor pass for our words.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import starmap

from colibri.core.visible import visible
from colibri.store import claims, deed_list, ledger, sessions, tasks, trail
from colibri.store.connection import Connection
from colibri.store.sessions import Session
from colibri.store.tasks import LISTED, Filter, Task

MOST_CHARACTERS = 4800
_RECENT = 500  # records in which sessions that are at work are looked for
_SESSIONS, _TASKS, _FREE, _THOUGHTS, _COMMANDS = 6, 6, 3, 8, 4
_NAME, _LINE, _TEXT = 64, 160, 240  # characters of a name, a title or an intent, a thought
_LISTED = ", ".join(LISTED)
# The tasks in a state, by their number; what has come furthest is shown first.
_IN_PROGRESS = " UNION ALL ".join(
    f"SELECT * FROM (SELECT {_LISTED} FROM tasks WHERE status = '{status}' ORDER BY number LIMIT ?)"
    " AS part"
    for status in ("VERIFY", "APPLY", "PLAN", "ANALYZE", "GATHER")
)
_TELLING = ("decision", "reflection")


def write(db: Connection, own: str | None = None) -> str:
    """The brief, of at most MOST_CHARACTERS, for a session of one's own.

    If it is too long, the longest part loses its last line: so each keeps its share.
    """
    other = "" if own is None else "other "
    ask(db, own)
    db.look_ahead(
        (
            lambda: [*_open_sessions(db, own)],
            lambda: [*_in_progress(db, own)],
            lambda: [*_newest_thoughts(db)],
        ),
        further=True,
    )
    parts = [
        [_log(db), _board(db)],
        [] if own is None else _part("tasks that your session holds", _held(db, own)),
        _part(f"{other}open sessions", _open_sessions(db, own)),
        _part(f"{other}tasks in progress", _in_progress(db, own)),
        _part("tasks that are free, the most urgent first", _free(db)),
        _part("newest decisions and reflections", _newest_thoughts(db)),
    ]
    if failing := [*_failing(db)]:
        parts.append(_part("commands whose last run failed", failing))
    while sum(len(line) + 1 for part in parts for line in part) > MOST_CHARACTERS:
        max(parts, key=lambda part: sum(map(len, part))).pop()
    return "\n".join(line for part in parts for line in part)


def ask(db: Connection, own: str | None) -> None:
    """Look ahead to what can be asked at once."""
    reads = (ledger.verified, ledger.log_id, ledger.head, _board, _busy, _opened, _working, _free)
    db.look_ahead(
        (
            *(partial(read, db) for read in reads),
            *(partial(_newest, db, type) for type in _TELLING),
            *(() if own is None else (partial(_held, db, own),)),
            partial(deed_list.failing, db, _COMMANDS),
        )
    )


def quoted(text: str, most: int = _LINE) -> str:
    """What somebody else wrote, on one line: so many characters of it, as they are shown."""
    cut, mark = text[:most], "…" if len(text) > most else ""
    while len(shown := json.dumps(visible(cut) + mark, ensure_ascii=False)) > most + len('"…"'):
        cut, mark = cut[: len(cut) * most // len(shown)], "…"
    return shown


def _part(title: str, lines: Iterable[str]) -> list[str]:
    found = [f"- {line}" for line in lines]
    return [f"{title}:", *found] if found else [f"{title}: none"]


def _log(db: Connection) -> str:
    verified = ledger.verified(db)
    upto = "never verified" if verified is None else f"last verified up to record {verified}"
    return f"log {ledger.log_id(db)}: {ledger.last_seq(db)} records, {upto}"


def _board(db: Connection) -> str:
    rows = db.execute(
        "SELECT status, is_ready, sum(n) FROM task_counts WHERE field = ''"
        " GROUP BY status, is_ready"
    )
    counts = {"in progress": 0, "not begun": 0, "blocked": 0, "DONE": 0, "CANCELLED": 0}
    for status, is_ready, count in rows:
        if status in ("DONE", "CANCELLED"):
            counts[status] += count
        else:
            counts["not begun" if status == "INIT" else "in progress"] += count
            counts["blocked"] += 0 if is_ready else count
    shown = ", ".join(f"{count} {name}" for name, count in counts.items())
    return f"tasks: {shown}"


def _open_sessions(db: Connection, own: str | None) -> Iterator[str]:
    """Those that were at work last, then those that were opened last."""
    others = [id for id in dict.fromkeys(_busy(db) + _opened(db)) if id != own][:_SESSIONS]
    db.look_ahead(partial(read, db, id) for id in others for read in _OF_SESSION)
    for id in others:
        session, sign = sessions.get(db, id), sessions.last_sign(db, id)
        about = f", about {session.task_id}" if session.task_id else ""
        yield f"{_who(session)}{about}, last sign of life {sign.at}: {quoted(session.intent)}"


_OF_SESSION: tuple[Callable[[Connection, str], object], ...] = (sessions.find, sessions.last_sign)


def _busy(db: Connection) -> list[str]:
    rows = db.execute(
        "SELECT s.session_id FROM (SELECT session, max(seq) AS last FROM"
        " (SELECT session, seq FROM ledger ORDER BY seq DESC LIMIT ?) AS recent"
        " WHERE session IS NOT NULL GROUP BY session) AS busy"
        " JOIN sessions AS s ON s.session_id = busy.session WHERE s.root IS NULL"
        " ORDER BY busy.last DESC LIMIT ?",
        (_RECENT, _SESSIONS + 1),
    )
    return [id for (id,) in rows]


def _opened(db: Connection) -> list[str]:
    return [one.session_id for one in sessions.newest(db, _SESSIONS + 1, only_open=True)]


def _who(session: Session) -> str:
    return session.session_id + (f" by {quoted(session.agent, _NAME)}" if session.agent else "")


def _task(task: Task) -> str:
    return f"{task.task_id} {task.status}, {task.priority}: {quoted(task.title)}"


def _held(db: Connection, session: str) -> Iterator[str]:
    found, _ = tasks.find(db, Filter(holder=session), search=None, limit=_TASKS, offset=0)
    return map(_task, found)


def _in_progress(db: Connection, own: str | None) -> Iterator[str]:
    found = _working(db)
    holders = {task.holder for task in found if task.holder is not None}
    db.look_ahead(partial(sessions.find, db, id) for id in holders)
    for task in found:
        holder = None if task.holder is None else sessions.find(db, task.holder)
        if holder is None:
            yield f"{task.task_id} {task.status}, held by nobody: {quoted(task.title)}"
        elif holder.session_id != own:
            yield f"{task.task_id} {task.status}, held by {_who(holder)}: {quoted(task.title)}"


def _working(db: Connection) -> list[Task]:
    rows = db.execute(f"{_IN_PROGRESS} LIMIT ?", (_TASKS,) * (_IN_PROGRESS.count("?") + 1))
    return list(starmap(Task, rows))


def _free(db: Connection) -> Iterator[str]:
    return map(_task, claims.free(db, Filter(), limit=_FREE))


def _newest_thoughts(db: Connection) -> Iterator[str]:
    seqs = [seq for type in _TELLING for seq in _newest(db, type)]
    newest = sorted(seqs, reverse=True)[:_THOUGHTS]
    db.look_ahead(partial(trail.get, db, seq) for seq in newest)
    for seq in newest:
        thought = trail.get(db, seq)
        by = f" by {quoted(thought.agent_id, _NAME)}" if thought.agent_id else ""
        about = f" about {thought.task_id}" if thought.task_id else ""
        where = f"record {seq}, {thought.type}{about} in {thought.session_id}{by}"
        yield f"{where}, {thought.created_at}: {quoted(thought.content, _TEXT)}"


def _newest(db: Connection, type: str) -> list[int]:
    rows = db.execute(
        "SELECT seq FROM thoughts WHERE type = ? ORDER BY seq DESC LIMIT ?", (type, _THOUGHTS)
    )
    return [seq for (seq,) in rows]


def _failing(db: Connection) -> Iterator[str]:
    for one in deed_list.failing(db, _COMMANDS):
        code = "" if one.exit is None else f", exit {one.exit}"
        where = f" in {one.session}" if one.session else ""
        yield f"record {one.seq}{code}{where}, {one.at}: {quoted(one.command)}"
