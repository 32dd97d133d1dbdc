"""Claims: which session holds a task, and who may take it. Owns `lost_claims`.

A task is held by the session in its row; a claim ends with that session and with the task. It is
alive while its session gives signs of life; a dead one is taken over by the next session that
claims the task. A session that lost a task that way, or because a person released it, must claim it
again before it changes anything: it may have slept through what others did.
"""

import json
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, TypeVar

from colibri.core.errors import Refused
from colibri.core.ledger import HUMAN
from colibri.store import sessions, tasks
from colibri.store.connection import Connection
from colibri.store.sessions import Session, Sign
from colibri.store.tasks import Filter, Task

T = TypeVar("T")

_MOST_FREE = 3  # tasks that a refusal offers instead


class Asked(NamedTuple):
    """What a call asks of a task: `claim` is True to take it, False to release it."""

    session: Session | None
    claim: bool | None
    moves: bool
    agent: str | None
    now: str
    minutes: float  # without a sign of life after which a claim is dead

    @property
    def takes(self) -> bool:
        return self.claim is True or (self.moves and self.claim is None)


class Taken(NamedTuple):
    """A take-over: the last sign of life of the old holder, and how old it was."""

    last: int
    minutes: int


class Claim(NamedTuple):
    """How a change leaves a claim."""

    holder: str | None  # the session in the task's row after it
    taken: Taken | None = None
    loser: str | None = None  # a session that must claim again
    may_have_lost: bool = False  # the holder did not have to show that it had not


def settle(db: Connection, task: Task, asked: Asked) -> Claim:
    """Decide which session holds a task after a call; ERR_CLAIMED if another one does."""
    if task.holder is not None and task.holder != _id(asked.session):
        return _from_another(db, task, sessions.get(db, task.holder), asked)
    if asked.session is not None and asked.claim is not True:
        _refuse_lost(db, task, asked.session)
    if asked.claim is False:
        return Claim(None)
    if asked.takes and asked.session is not None:
        return Claim(asked.session.session_id, may_have_lost=asked.claim is True)
    return Claim(task.holder)


def keep(db: Connection, number: int, claim: Claim) -> None:
    """Remember which session lost a task; forget it once that session claims the task again."""
    if claim.loser is not None:
        db.execute(
            "INSERT INTO lost_claims (task, session) VALUES (?, ?)"
            " ON CONFLICT (task, session) DO NOTHING",
            (number, claim.loser),
        )
    if claim.may_have_lost:
        db.execute("DELETE FROM lost_claims WHERE task = ? AND session = ?", (number, claim.holder))


def end(db: Connection, session: str) -> None:
    """A session is sealed: it holds nothing any more."""
    db.execute("UPDATE tasks SET holder = NULL WHERE holder = ?", (session,))


def queue(
    db: Connection,
    wanted: Filter,
    find: Callable[..., list[T]],
    session: str | None,
    *,
    now: str,
    minutes: float,
) -> tuple[list[T], int]:
    """What a session can work on: what it holds, then what is free or whose claim is dead; and how
    many tasks others hold that could be worked on. `find` is a function like `tasks.first`.
    """
    since = sessions.before(now, minutes)
    holders = held(db, wanted, session)
    others = {holder: count for holder, count, sign in holders if (sign or "") > since}
    mine, living = [], [*others]
    if session is not None:
        mine = find(db, wanted._replace(holder=session))
        living.append(session)
    has_dead = len(others) < len(holders)
    rest = find(db, wanted, besides=living if has_dead else None)
    return [*mine, *rest], sum(others.values())


def ask_queue(
    db: Connection, wanted: Filter, find: Callable[..., list[T]], session: str | None
) -> None:
    """Look ahead to what `queue` asks, if no claim is dead."""
    reads: list[Callable[[], object]] = [
        partial(held, db, wanted, session),
        partial(find, db, wanted, besides=None),
    ]
    if session is not None:
        reads.append(partial(find, db, wanted._replace(holder=session)))
    db.look_ahead(reads)


def held(db: Connection, wanted: Filter, besides: str | None) -> list[tuple[str, int, str]]:
    """How many tasks of the queue each other session holds, and when it gave its last sign."""
    return tasks.held(db, wanted, besides, sessions.last_sign_at(db.engine, "holder"))


def free(db: Connection, wanted: Filter, *, limit: int) -> list[Task]:
    """The first tasks of the queue that nobody holds."""
    return tasks.queue(db, wanted, limit, besides=None)


def without_session(purpose: str) -> Refused:
    return Refused(
        "ERR_SESSION_NOT_FOUND",
        f"you need a session {purpose}: open one with audit_session_start, or name yours in"
        " session_id",
        session_id=None,
    )


def _from_another(db: Connection, task: Task, holder: Session, asked: Asked) -> Claim:
    if _is_release_by_a_person(asked):
        return Claim(None, loser=holder.session_id)
    sign = sessions.last_sign(db, holder.session_id)
    age = sign.minutes_before(asked.now)
    if age < asked.minutes or asked.session is None or not asked.takes:
        raise _claimed(db, task, holder, sign, asked)
    if asked.claim is not True:
        _refuse_lost(db, task, asked.session)
    taken = Taken(sign.seq, int(age))
    return Claim(asked.session.session_id, taken, holder.session_id, may_have_lost=True)


def _is_release_by_a_person(asked: Asked) -> bool:
    return asked.claim is False and (asked.agent or "").startswith(HUMAN)


def _refuse_lost(db: Connection, task: Task, session: Session) -> None:
    if has_lost(db, task.number, session.session_id):
        raise Refused(
            "ERR_CLAIMED",
            f"your claim on {task.task_id} ended and others may have worked on it: read it with"
            " task_get, then claim it again with claim: true",
            task_id=task.task_id,
            lost=True,
        )


def has_lost(db: Connection, number: int, session: str) -> bool:
    """Whether a session must claim a task again."""
    lost = db.execute(
        "SELECT 1 FROM lost_claims WHERE task = ? AND session = ?", (number, session)
    ).fetchone()
    return lost is not None


def _claimed(db: Connection, task: Task, holder: Session, sign: Sign, asked: Asked) -> Refused:
    is_alive = sign.minutes_before(asked.now) < asked.minutes
    who = f"session {holder.session_id}" + (f" ({holder.agent})" if holder.agent else "")
    offered = [one.task_id for one in free(db, Filter(), limit=_MOST_FREE)]
    if is_alive:
        todo = "take another with task_next_actions and claim: true"
        if asked.session is None:
            todo = f"if that session is yours, name it in session_id; else {todo}"
    elif asked.session is None:
        todo = "its claim is dead: name your session_id to take it over"
    else:
        todo = "its claim is dead: add claim: true to take it over"
    return Refused(
        "ERR_CLAIMED",
        f"{task.task_id} is held by {who}: {todo}",
        task_id=task.task_id,
        holder=holder.session_id,
        agent=holder.agent,
        since=_since(db, task),
        last_sign=sign.at,
        is_alive=is_alive,
        free=offered,
    )


def _since(db: Connection, task: Task) -> str | None:
    """When the claim began."""
    rows = db.execute(
        "SELECT at, body FROM ledger WHERE task = ? AND kind = 'task' ORDER BY seq DESC",
        (task.task_id,),
    )
    return next((str(at) for at, body in rows if "holder" in json.loads(body)["set"]), None)


def _id(session: Session | None) -> str | None:
    return None if session is None else session.session_id
