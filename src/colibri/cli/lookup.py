"""Find sessions and tasks by the ids that people type; for unknown ids suggest similar ones."""

import argparse
import re
from collections.abc import Sequence

from colibri.cli.complaint import Complaint, nearest, question
from colibri.core.errors import Refused
from colibri.store import records, sessions, tasks
from colibri.store.connection import Connection
from colibri.store.records import Record
from colibri.store.sessions import Session
from colibri.store.tasks import Filter, Task

AMONG = 1000  # how many of the newest ids are compared
_TASK = re.compile("(?:[Tt]-?)?0*([1-9][0-9]{0,8})")
LIST_SESSIONS = "colibri sessions lists sessions"
LIST_TASKS = "colibri tasks lists tasks"
LIST_THOUGHTS = "colibri log --kind thought lists thoughts; the id is R- and the number"


def seq(text: str) -> int:
    """For argparse: the number of a record, as people write it."""
    found = re.fullmatch(r"(?:#|R-)?([0-9]{1,15})", text)
    if not found:
        hint = "colibri log lists records; colibri trail ID shows a session or a task"
        message = f"{text!r} is not the number of a record, such as 17 or R-17"
        raise argparse.ArgumentTypeError(message, hint)
    return int(found[1])


def task_id(text: str) -> str:
    """For argparse: the id of a task, in full or as short as people type it."""
    found = _TASK.fullmatch(text)
    if not found:
        message = f"{text!r} is not the id of a task: ids look like T-0001, or T-1 for short"
        raise argparse.ArgumentTypeError(message, LIST_TASKS)
    return tasks.task_id(int(found[1]))


def session(db: Connection, id: str) -> Session:
    """A session; Complaint, with what may have been meant."""
    found = sessions.find(db, id)
    if found is None:
        raise _unknown(f"there is no session {id}", _near_sessions(db, id), LIST_SESSIONS)
    return found


def task(db: Connection, id: str) -> Task:
    """A task; Complaint, with what may have been meant."""
    try:
        return tasks.get(db, id)
    except Refused:
        raise _unknown(f"there is no task {id}", _near_tasks(db, id), LIST_TASKS) from None


def either(db: Connection, id: str) -> tuple[Session | None, Task | None]:
    """A session or else a task; Complaint, with what may have been meant."""
    if (found := sessions.find(db, id)) is not None:
        return found, None
    try:
        return None, tasks.get(db, task_id(id) if _TASK.fullmatch(id) else id)
    except Refused:
        near = [*_near_tasks(db, id), *_near_sessions(db, id)]
        hint = f"{LIST_SESSIONS}; {LIST_TASKS}"
        raise _unknown(f"there is no session or task {id}", near, hint) from None


def thought(db: Connection, id: str) -> Record:
    """The record of a thought; Complaint, with what it is instead."""
    seq = int(id.removeprefix("R-"))
    record = records.get(db, seq)
    if record is None:
        raise _unknown(f"there is no thought {id}, and no record {seq}", [], LIST_THOUGHTS)
    if record.kind != "thought":
        raise _unknown(f"{id} is not a thought: record {seq} is a {record.kind}", [], LIST_THOUGHTS)
    return record


def _unknown(message: str, near: Sequence[str], otherwise: str) -> Complaint:
    return Complaint(message, " ".join(filter(None, (question(near), otherwise))))


def _near_sessions(db: Connection, id: str) -> list[str]:
    return nearest(id, [one.session_id for one in sessions.newest(db, AMONG)])


def _near_tasks(db: Connection, id: str) -> list[str]:
    """Those that look alike. All numbers look alike: one beyond the last is near to none."""
    if re.fullmatch("(?:[Tt]-?)?[0-9]+", id):
        return []
    _, total = tasks.find(db, Filter(), search=None, limit=0, offset=0)
    return nearest(id, [tasks.task_id(one) for one in range(max(1, total - AMONG), total + 1)])
