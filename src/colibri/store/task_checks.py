"""What keeps a task from being changed: each check refuses, and leaves everything as it was."""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import NamedTuple

from colibri.core.dependencies import MAX_LINKS, TooManyLinks, find_cycle
from colibri.core.errors import Refused
from colibri.core.states import NEEDS_DEPENDENCIES, TERMINAL, is_retry
from colibri.store.connection import Connection
from colibri.store.task_needs import MAX_NAMED, Blocker, blockers, has_evidence, named
from colibri.store.tasks import Task, next_states, number_of, task_id


class Dependency(NamedTuple):
    """A task that another waits for."""

    number: int
    task_id: str
    status: str

    @property
    def is_open(self) -> bool:
        return self.status not in TERMINAL


def dependencies_of(db: Connection, ids: Iterable[str]) -> list[Dependency]:
    return [dependency(db, id) for id in ids]


def dependency(db: Connection, id: str) -> Dependency:
    number = number_of(id)
    status = db.execute("SELECT status FROM tasks WHERE number = ?", (number,)).get
    if status is None:
        message = f"there is no task {id} to depend on: create it first, or leave it out"
        raise Refused("ERR_NOT_FOUND", message, task_id=id)
    return Dependency(number, id, status)


def check_version(task: Task, expected: int | None) -> None:
    if expected is not None and expected != task.version:
        raise Refused(
            "ERR_VERSION_CONFLICT",
            f"{task.task_id} is at version {task.version}, not {expected}: somebody changed it;"
            " read it again with task_get, then decide",
            task_id=task.task_id,
            current_version=task.version,
            expected_version=expected,
        )


def check_open(task: Task) -> None:
    if task.status in TERMINAL:
        raise Refused(
            "ERR_INVALID_TRANSITION",
            f"{task.task_id} is {task.status}, which is final: nothing about it can be changed;"
            " create a new task for further work",
            **_transition(task, None),
        )


def check_cycle(db: Connection, task: Task, dependencies: Sequence[int]) -> None:
    needs = "SELECT depends_on FROM task_dependencies WHERE task = ?"
    dependents = "SELECT task FROM task_dependencies WHERE depends_on = ?"
    try:
        cycle = find_cycle(
            task.number, dependencies, partial(_links, db, needs), partial(_links, db, dependents)
        )
    except TooManyLinks:
        raise Refused(
            "ERR_CYCLE",
            f"{task.task_id} has more than {MAX_LINKS:,} links of dependencies before and after it:"
            " too many to tell that it would not wait for itself; let it depend on fewer tasks",
            cycle=[],
        ) from None
    if cycle is not None:
        names = [task_id(number) for number in cycle]
        shown = names if len(names) <= MAX_NAMED else [*names[: MAX_NAMED - 1], "…", names[-1]]
        raise Refused(
            "ERR_CYCLE",
            f"{task.task_id} would wait for itself: {' → '.join(shown)};"
            f" leave {names[1]} out of its depends_on",
            cycle=names,
        )


def _links(db: Connection, query: str, number: int) -> list[int]:
    """At most as many as are ever followed."""
    rows = db.execute(f"{query} LIMIT {MAX_LINKS + 1:d}", (number,)).fetchall()
    return [other for (other,) in rows]


def check_moves(
    db: Connection,
    task: Task,
    steps: Sequence[str],
    dependencies: Sequence[Dependency] | None,
    *,
    with_thought: bool,
) -> None:
    """Each step in turn, from where the one before it leads; dependencies are those to come."""
    retried, at = False, task
    for to in steps:
        _check_step(at, to, is_first=at is task, retried=retried)
        _check_unblocked(db, task, to, dependencies)
        if to in TERMINAL and not with_thought and not has_evidence(db, task):
            raise Refused(
                "ERR_WRITEBACK_REQUIRED",
                f"{task.task_id} needs a reason before it is {to}: give a thought with the move, or"
                f" record one with thought_record and task_id {task.task_id}",
                task_id=task.task_id,
                attempt=task.attempt,
            )
        retried = retried or is_retry(at.status, to)
        at = at._replace(status=to)
    if not steps and dependencies is not None:
        _check_unblocked(db, task, task.status, dependencies)


def _check_step(task: Task, to: str, *, is_first: bool, retried: bool) -> None:
    if to not in next_states(task):
        legal = " or ".join(next_states(task))
        legal = f"it can move to {legal}" if legal else f"that is final, so leave {to} out"
        already = " already" if to == task.status and is_first else ""
        then = "is" if is_first else "would be"
        raise Refused(
            "ERR_INVALID_TRANSITION",
            f"{task.task_id} {then} {task.status}{already}: {legal}",
            **_transition(task, to),
        )
    if not is_first and is_retry(task.status, to):
        message = "a new attempt begins with a call of its own: leave GATHER out after VERIFY"
        raise Refused("ERR_INVALID_TRANSITION", message, **_transition(task, to))
    if retried and to in TERMINAL:
        message = f"a call that begins a new attempt cannot also end it: leave {to} out"
        raise Refused("ERR_INVALID_TRANSITION", message, **_transition(task, to))


def _check_unblocked(
    db: Connection, task: Task, after: str, dependencies: Sequence[Dependency] | None
) -> None:
    if after not in NEEDS_DEPENDENCIES:
        return
    if dependencies is None:
        found = blockers(db, task.number) if task.open_dependencies else []
    else:
        found = [Blocker(one.task_id, one.status) for one in dependencies if one.is_open]
    if found:
        raise Refused(
            "ERR_BLOCKED",
            f"{task.task_id} cannot be in {after} before these are DONE or CANCELLED:"
            f" {named(found)}; end them first, or change depends_on",
            task_id=task.task_id,
            blockers=[one.task_id for one in found],
        )


def _transition(task: Task, to: str | None) -> dict[str, object]:
    legal = list(next_states(task))
    return {"task_id": task.task_id, "from": task.status, "to": to, "next_states": legal}
