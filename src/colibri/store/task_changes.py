"""Changes to tasks: every one is first a record, then a row.

A change is appended to the ledger through `Append`, in the transaction that is open: a `task`
record for each state that the task moves to, or one for its other fields alone, and `task.text` for
title and description. The first `task` record has all fields; the text shares the last version.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple

from colibri.core import gates as rules
from colibri.core.gates import Gates
from colibri.core.ledger import FIELDS, HELD_FIELDS, TEXT_FIELDS
from colibri.core.states import TERMINAL, Status, is_retry
from colibri.store import claims, gates, thought_search
from colibri.store.append import Append
from colibri.store.claims import Asked, Claim
from colibri.store.connection import Connection
from colibri.store.task_checks import (
    Dependency,
    check_cycle,
    check_moves,
    check_open,
    check_version,
    dependencies_of,
    dependency,
)
from colibri.store.tasks import COLUMNS, Task, get, number_of, task_id

_STORED = [name for name in COLUMNS if name != "task_id"]  # which follows from the number
_INSERT = f"INSERT INTO tasks ({', '.join(_STORED)}) VALUES ({', '.join('?' * len(_STORED))})"
_stored = attrgetter(*_STORED)
_INIT = Status.INIT.value


def create(db: Connection, append: Append, *, fields: dict[str, Any], now: str) -> Task:
    """A new task in INIT; ERR_NOT_FOUND for a dependency that does not exist."""
    ask_create(db, fields["depends_on"])
    number = _next_number(db)
    id = task_id(number)
    fields = {**fields, "status": _INIT, "depends_on": _distinct(fields["depends_on"])}
    dependencies = dependencies_of(db, fields["depends_on"])
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
        status=_INIT,
        attempt=1,
        version=1,
        created_at=now,
        updated_at=now,
        attempt_seq=entry.seq,
        open_dependencies=_open(dependencies),
        holder=None,
        description=fields["description"],
        depends_on=tuple(fields["depends_on"]),
    )
    db.execute(_INSERT, _stored(task))
    db.engine.task_search.add(db, number, task.title, task.description)
    if dependencies:
        _link(db, number, dependencies)
    return task


def ask_create(db: Connection, depends_on: Iterable[str]) -> None:
    """Look ahead to what `create` asks."""
    db.look_ahead((partial(_next_number, db), *(partial(dependency, db, id) for id in depends_on)))


def _next_number(db: Connection) -> int:
    number: int = db.execute("SELECT coalesce(max(number), 0) + 1 FROM tasks").get
    return number


class Change(NamedTuple):
    """What is to become of a task: the states that it moves through, in turn, and other fields."""

    asked: Asked
    steps: Sequence[str] = ()
    fields: dict[str, Any] = {}  # noqa: RUF012 - nobody changes it
    expected_version: int | None = None
    record_thought: Callable[[], object] | None = None
    gates: Gates = rules.NONE


def update(db: Connection, append: Append, id: str, change: Change) -> Task:
    """Change a task, all or nothing; the checks are in the order of their codes.

    ERR_NOT_FOUND, ERR_CLAIMED, ERR_VERSION_CONFLICT, ERR_INVALID_TRANSITION for a terminal task;
    for depends_on ERR_NOT_FOUND, ERR_CYCLE; for each step ERR_INVALID_TRANSITION, ERR_BLOCKED,
    ERR_WRITEBACK_REQUIRED; last ERR_GATE.
    """
    session = change.asked.session
    ask_update(db, id, session and session.session_id, with_thought=bool(change.record_thought))
    return update_row(db, append, get(db, id), change)


def update_row(db: Connection, append: Append, task: Task, change: Change) -> Task:
    """The same to a task that was read in this transaction; without its dependencies, if these stay
    as they are.
    """
    claim = claims.settle(db, task, change.asked)
    check_version(task, change.expected_version)
    check_open(task)
    fields, dependencies = change.fields, None
    if "depends_on" in fields:
        fields = {**fields, "depends_on": _distinct(fields["depends_on"])}
        dependencies = dependencies_of(db, fields["depends_on"])
        check_cycle(db, task, [other.number for other in dependencies])
    with_thought = change.record_thought is not None
    check_moves(db, task, change.steps, dependencies, with_thought=with_thought)
    gate = _gate(db, task.task_id, change)
    if change.record_thought is not None:
        change.record_thought()
    wanted = {**fields, "holder": claim.holder}
    changed = {name: value for name, value in wanted.items() if value != _value(task, name)}
    if not change.steps and not changed:
        return task
    after = _record(append, task, change, changed, claim, gate)
    if dependencies is not None and "depends_on" in changed:
        _link(db, task.number, dependencies)
        after = after._replace(open_dependencies=_open(dependencies))
    _store(db, task, after)
    claims.keep(db, task.number, claim)
    return after


def ask_update(db: Connection, id: str, session: str | None, *, with_thought: bool) -> None:
    """Look ahead to what `update` asks."""
    number = number_of(id)
    reads: list[Callable[[], object]] = [partial(get, db, id)]
    if session is not None:
        reads.append(partial(claims.has_lost, db, number, session))
    if with_thought:
        reads.append(partial(thought_search.count, db))
    db.look_ahead(reads)


def _gate(db: Connection, id: str, change: Change) -> dict[str, object] | None:
    """What was checked of a move to DONE; None if no rule asks for it, or there is no such move."""
    if Status.DONE not in change.steps:
        return None
    session, agent = change.asked.session, change.asked.agent
    waives = gates.may_waive(agent, with_thought=change.record_thought is not None)
    return gates.gate_of(db, change.gates, id, session and session.session_id, waives=waives)


def _record(
    append: Append,
    task: Task,
    change: Change,
    changed: dict[str, Any],
    claim: Claim,
    gate: dict[str, object] | None,
) -> Task:
    """Append the records of a change; the task as they leave it."""
    id, text = task.task_id, _pairs(task, changed, TEXT_FIELDS)
    fields, after = _pairs(task, changed, HELD_FIELDS), task
    for to in change.steps or ([task.status] if fields else []):
        if to != after.status:
            fields["status"] = [after.status, to]
        retry = is_retry(after.status, to)
        version, attempt = after.version + 1, after.attempt + retry
        payload = {"task_id": id, "version": version, "attempt": attempt, "set": fields}
        if claim.taken is not None and after is task:
            payload["taken"] = claim.taken._asdict()
        if gate is not None and to == Status.DONE:
            payload["gate"] = gate
        seq = append("task", payload, task=id).seq
        began = seq if retry else after.attempt_seq
        after = after._replace(status=to, version=version, attempt=attempt, attempt_seq=began)
        fields = {}
    if text:
        version = after.version + (after is task)
        append("task.text", {"task_id": id, "version": version, "set": text}, task=id)
        after = after._replace(version=version)
    if "depends_on" in changed:
        changed = {**changed, "depends_on": tuple(changed["depends_on"])}
    if after.status in TERMINAL:
        changed = {**changed, "holder": None}  # a claim ends with its task
    return after._replace(updated_at=change.asked.now, **changed)


def _pairs(task: Task, changed: dict[str, Any], names: Sequence[str]) -> dict[str, list[Any]]:
    """field → [old, new] for those that change."""
    return {name: [_value(task, name), changed[name]] for name in names if name in changed}


def _store(db: Connection, task: Task, after: Task) -> None:
    """Make the row what the records say. Only what changes is set, so that no index is written
    again for a value that it has.
    """
    columns = zip(_STORED, _stored(task), _stored(after), strict=True)
    values = {name: new for name, old, new in columns if new != old}
    names = ", ".join(f"{name} = ?" for name in values)
    db.execute(f"UPDATE tasks SET {names} WHERE number = ?", (*values.values(), task.number))
    if values.keys() & {*TEXT_FIELDS}:
        db.engine.task_search.change(db, after.number, after.title, after.description)
    if after.status in TERMINAL:
        db.execute(
            "UPDATE tasks SET open_dependencies = open_dependencies - 1"
            " WHERE number IN (SELECT task FROM task_dependencies WHERE depends_on = ?)",
            (task.number,),
        )


def _link(db: Connection, number: int, dependencies: Sequence[Dependency]) -> None:
    db.execute("DELETE FROM task_dependencies WHERE task = ?", (number,))
    db.executemany(
        "INSERT INTO task_dependencies (task, position, depends_on) VALUES (?, ?, ?)",
        ((number, position, other.number) for position, other in enumerate(dependencies)),
    )


def _open(dependencies: Iterable[Dependency]) -> int:
    return sum(other.is_open for other in dependencies)


def _distinct(ids: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(ids))


def _value(task: Task, name: str) -> object:
    value = getattr(task, name)
    return list(value) if name == "depends_on" else value
