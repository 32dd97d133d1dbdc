"""What a task still needs to move: dependencies that ended, a reason, a rule of the project."""

from collections.abc import Sequence
from typing import NamedTuple

from colibri.core.gates import Gates
from colibri.core.states import NEEDS_DEPENDENCIES, TERMINAL, Status
from colibri.store import gates
from colibri.store.connection import Connection
from colibri.store.tasks import Task, next_states, task_id

MAX_NAMED = 20  # how many tasks a sentence names


def needs(db: Connection, task: Task, rules: Gates | None) -> dict[str, list[str]]:
    """What each legal move still needs, under the project's rules if they are known; moves that
    need nothing are left out."""
    return all_needs(db, [task], rules)[0]


def all_needs(
    db: Connection, found: Sequence[Task], rules: Gates | None, proven: set[int] | None = None
) -> list[dict[str, list[str]]]:
    """The same of several tasks, in one question, unless it is known which have evidence."""
    if not found:
        return []
    if proven is None:
        proven = with_evidence(db, [task.number for task in found])
    return [_needs(db, task, rules, has_evidence=task.number in proven) for task in found]


def with_evidence(db: Connection, numbers: Sequence[int]) -> set[int]:
    """Which of some tasks have a thought about their current attempt."""
    rows = db.execute(
        f"SELECT number FROM tasks AS t WHERE number IN ({', '.join('?' * len(numbers))})"
        " AND EXISTS (SELECT 1 FROM thoughts WHERE task = t.task_id AND seq > t.attempt_seq)",
        numbers,
    )
    return {number for (number,) in rows}


def _needs(
    db: Connection, task: Task, rules: Gates | None, *, has_evidence: bool
) -> dict[str, list[str]]:
    missing: dict[str, list[str]] = {}
    for status in next_states(task):
        if status in NEEDS_DEPENDENCIES and task.open_dependencies:
            names = named(blockers(db, task.number))
            missing[status] = [f"dependencies that are DONE or CANCELLED: {names}"]
        if status in TERMINAL and not has_evidence:
            missing.setdefault(status, []).append("a thought about this attempt")
        if status == Status.DONE and rules and (rule := gates.need(db, rules, task.holder)):
            missing.setdefault(status, []).append(rule)
    return missing


class Blocker(NamedTuple):
    """A dependency that is not DONE or CANCELLED yet."""

    task_id: str
    status: str

    def __str__(self) -> str:
        return f"{self.task_id} ({self.status})"


def blockers(db: Connection, number: int) -> list[Blocker]:
    """The open dependencies of a task, in their order."""
    rows = db.execute(
        "SELECT t.number, t.status FROM task_dependencies AS d JOIN tasks AS t"
        " ON t.number = d.depends_on WHERE d.task = ? AND t.status NOT IN ('DONE', 'CANCELLED')"
        " ORDER BY d.position",
        (number,),
    )
    return [Blocker(task_id(number), str(status)) for number, status in rows]


def named(found: Sequence[object]) -> str:
    """A list in words, of which only the beginning is named."""
    more = len(found) - MAX_NAMED
    return ", ".join(map(str, found[:MAX_NAMED])) + (f" and {more} more" if more > 0 else "")


def has_evidence(db: Connection, task: Task) -> bool:
    row = db.execute(
        "SELECT 1 FROM thoughts WHERE task = ? AND seq > ? LIMIT 1",
        (task.task_id, task.attempt_seq),
    ).fetchone()
    return row is not None
