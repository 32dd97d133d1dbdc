"""Changes to tasks: every one is first a record, then a row.

A change is appended to the ledger through `Append`, in the transaction that is open: `task` for
status, priority, assignee, project and depends_on, `task.text` for title and description, each only
when one of its fields changes; both share the task's new version.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple

from colibri.core.dependencies import MAX_LINKS, TooManyLinks, find_cycle
from colibri.core.errors import Refused
from colibri.core.ledger import FIELDS, TEXT_FIELDS
from colibri.core.states import NEEDS_DEPENDENCIES, TERMINAL, Status, is_retry
from colibri.store.append import Append
from colibri.store.connection import Connection
from colibri.store.sqlite import search
from colibri.store.tasks import (
    COLUMNS,
    MAX_NAMED,
    Blocker,
    Task,
    blockers,
    get,
    has_evidence,
    named,
    next_states,
    number_of,
    task_id,
)

_STORED = [name for name in COLUMNS if name != "task_id"]  # which follows from the number
_INSERT = f"INSERT INTO tasks ({', '.join(_STORED)}) VALUES ({', '.join('?' * len(_STORED))})"
_stored = attrgetter(*_STORED)


class _Dependency(NamedTuple):
    """A task that another waits for."""

    number: int
    task_id: str
    status: str

    @property
    def is_open(self) -> bool:
        return self.status not in TERMINAL


def create(db: Connection, append: Append, *, fields: dict[str, Any], now: str) -> Task:
    """A new task in INIT; ERR_NOT_FOUND for a dependency that does not exist."""
    number: int = db.execute("SELECT coalesce(max(number), 0) + 1 FROM tasks").get
    id = task_id(number)
    fields = {**fields, "status": Status.INIT, "depends_on": _distinct(fields["depends_on"])}
    dependencies = _dependencies(db, fields["depends_on"])
    head = {"task_id": id, "version": 1}
    made = {name: [None, fields[name]] for name in FIELDS}
    text = {name: [None, fields[name]] for name in TEXT_FIELDS}
    entry = append("task", {**head, "attempt": 1, "set": made}, task=id)
    append("task.text", {**head, "set": text}, task=id)
    task = Task(
        number=number,
        task_id=id,
        title=fields["title"],
        project=fields["project"],
        priority=fields["priority"],
        assignee=fields["assignee"],
        status=Status.INIT,
        attempt=1,
        version=1,
        created_at=now,
        updated_at=now,
        attempt_seq=entry.seq,
        open_dependencies=_open(dependencies),
        description=fields["description"],
        depends_on=tuple(fields["depends_on"]),
    )
    db.execute(
        _INSERT,
        _stored(task),
    )
    search.add(db, number)
    if dependencies:
        _link(db, number, dependencies)
    return task


def update(
    db: Connection,
    append: Append,
    id: str,
    *,
    changes: dict[str, Any],
    expected_version: int | None,
    now: str,
) -> Task:
    """Change a task, all or nothing; the checks are in the order of their codes.

    ERR_NOT_FOUND, ERR_VERSION_CONFLICT, ERR_INVALID_TRANSITION for a terminal task; for depends_on
    ERR_NOT_FOUND, ERR_CYCLE; for the move ERR_INVALID_TRANSITION, ERR_BLOCKED,
    ERR_WRITEBACK_REQUIRED.
    """
    task = get(db, id)
    _check_version(task, expected_version)
    _check_open(task)
    dependencies = None
    if "depends_on" in changes:
        changes = {**changes, "depends_on": _distinct(changes["depends_on"])}
        dependencies = _dependencies(db, changes["depends_on"])
        _check_cycle(db, task, [other.number for other in dependencies])
    _check_move(db, task, changes.get("status"), dependencies)
    changed = {name: value for name, value in changes.items() if value != _value(task, name)}
    return _apply(db, append, task, changed, dependencies, now) if changed else task


# Checks: each refuses and leaves everything as it was.


def _check_version(task: Task, expected: int | None) -> None:
    if expected is not None and expected != task.version:
        raise Refused(
            "ERR_VERSION_CONFLICT",
            f"{task.task_id} is at version {task.version}, not {expected}: somebody changed it;"
            " read it again with task_get, then decide",
            task_id=task.task_id,
            current_version=task.version,
            expected_version=expected,
        )


def _check_open(task: Task) -> None:
    if task.status in TERMINAL:
        raise Refused(
            "ERR_INVALID_TRANSITION",
            f"{task.task_id} is {task.status}, which is final: nothing about it can be changed;"
            " create a new task for further work",
            **_transition(task, None),
        )


def _check_cycle(db: Connection, task: Task, dependencies: Sequence[int]) -> None:
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


def _check_move(
    db: Connection, task: Task, to: str | None, dependencies: Sequence[_Dependency] | None
) -> None:
    if to is not None and to not in next_states(task):
        legal = " or ".join(next_states(task))
        already = " already" if to == task.status else ""
        raise Refused(
            "ERR_INVALID_TRANSITION",
            f"{task.task_id} is {task.status}{already}: it can move to {legal}, one step at a time",
            **_transition(task, to),
        )
    after = Status(to or task.status)
    if after in NEEDS_DEPENDENCIES:
        _check_unblocked(db, task, after, dependencies)
    if after == Status.DONE and not has_evidence(db, task):
        raise Refused(
            "ERR_WRITEBACK_REQUIRED",
            f"{task.task_id} needs evidence before it is DONE: call thought_record with task_id"
            f" {task.task_id} at least once in attempt {task.attempt}, then try again",
            task_id=task.task_id,
            attempt=task.attempt,
        )


def _check_unblocked(
    db: Connection, task: Task, after: Status, dependencies: Sequence[_Dependency] | None
) -> None:
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


# Changes.


def _apply(
    db: Connection,
    append: Append,
    task: Task,
    changed: dict[str, Any],
    dependencies: Sequence[_Dependency] | None,
    now: str,
) -> Task:
    status = Status(changed.get("status", task.status))
    retry = is_retry(Status(task.status), status)
    head = {"task_id": task.task_id, "version": task.version + 1}
    fields = {name: [_value(task, name), changed[name]] for name in FIELDS if name in changed}
    text = {name: [_value(task, name), changed[name]] for name in TEXT_FIELDS if name in changed}
    # Only what changes is set, so that no index is written again for a value that it has.
    values = {name: new for name, (_, new) in (fields | text).items() if name != "depends_on"}
    values |= {"version": task.version + 1, "updated_at": now}
    if fields:
        attempt = task.attempt + retry
        entry = append("task", {**head, "attempt": attempt, "set": fields}, task=task.task_id)
        values |= {"attempt": attempt, "attempt_seq": entry.seq} if retry else {}
    if text:
        append("task.text", {**head, "set": text}, task=task.task_id)
    if dependencies is not None and "depends_on" in changed:
        _link(db, task.number, dependencies)
        values["open_dependencies"] = _open(dependencies)
    names = ", ".join(f"{name} = ?" for name in values)
    db.execute(f"UPDATE tasks SET {names} WHERE number = ?", (*values.values(), task.number))
    values |= {"status": status, "depends_on": tuple(changed.get("depends_on", task.depends_on))}
    after = task._replace(**values)
    if text:
        search.change(db, after.number, after.title, after.description)
    if status in TERMINAL:
        db.execute(
            "UPDATE tasks SET open_dependencies = open_dependencies - 1"
            " WHERE number IN (SELECT task FROM task_dependencies WHERE depends_on = ?)",
            (task.number,),
        )
    return after


def _link(db: Connection, number: int, dependencies: Sequence[_Dependency]) -> None:
    db.execute("DELETE FROM task_dependencies WHERE task = ?", (number,))
    db.executemany(
        "INSERT INTO task_dependencies (task, position, depends_on) VALUES (?, ?, ?)",
        ((number, position, other.number) for position, other in enumerate(dependencies)),
    )


def _open(dependencies: Iterable[_Dependency]) -> int:
    return sum(other.is_open for other in dependencies)


def _distinct(ids: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(ids))


def _dependencies(db: Connection, ids: Iterable[str]) -> list[_Dependency]:
    return [_dependency(db, id) for id in ids]


def _dependency(db: Connection, id: str) -> _Dependency:
    number = number_of(id)
    status = db.execute("SELECT status FROM tasks WHERE number = ?", (number,)).get
    if status is None:
        message = f"there is no task {id} to depend on: create it first, or leave it out"
        raise Refused("ERR_NOT_FOUND", message, task_id=id)
    return _Dependency(number, id, status)


def _value(task: Task, name: str) -> object:
    value = getattr(task, name)
    return list(value) if name == "depends_on" else value
