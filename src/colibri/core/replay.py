"""Task records, replayed through the rules of states.py: what each task must look like by now.

    illegal move      not in the table of transitions, or a change to a task that has ended
    blocked move      into APPLY or beyond while a dependency is open
    missing evidence  DONE without a thought since the attempt began
    bad task record   it does not follow from the records before it, or is not made like one
    altered task      a row is not what its records say

A task of which a record is lost is not judged any further; where it is not known whose records are
lost, no task is. Memory grows with the number of tasks, not of records.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Literal, Protocol

from colibri.core.states import NEEDS_DEPENDENCIES, TERMINAL, TRANSITIONS, Status, is_retry

FIELDS = ("status", "priority", "assignee", "project", "depends_on")
TEXT_FIELDS = ("title", "description")
ERASED = "[erased]"

What = Literal[
    "illegal move", "blocked move", "missing evidence", "bad task record", "altered task"
]
Finding = tuple[What, str]


class Record(Protocol):
    """What a replay looks at beside the payload."""

    @property
    def seq(self) -> int: ...
    @property
    def at(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def call(self) -> str: ...
    @property
    def task(self) -> str | None: ...


class Replayed:
    """A task as its records leave it; `values` has a column's name for each."""

    __slots__ = ("ended_by", "evidence", "text_at", "values")

    def __init__(self, task_id: str, seq: int, at: str) -> None:
        self.evidence = False
        self.ended_by = ""  # the call that ended it, which may still change its text
        self.text_at = 0  # the version that the last task.text record names
        self.values: dict[str, Any] = {
            "task_id": task_id,
            "attempt": 1,
            "version": 1,
            "attempt_seq": seq,
            "created_at": at,
            "updated_at": at,
            **dict.fromkeys((*FIELDS, *TEXT_FIELDS)),
        }


class Replay:
    """Fed the records that are neither a call's enter nor its exit, in the order of the log."""

    def __init__(self, *, blind: bool = False) -> None:
        self.tasks: dict[str, Replayed] = {}
        self.blind = blind
        self._lost: set[str | None] = set()

    def feed(self, record: Record, payload: Mapping[str, Any]) -> Iterator[Finding]:
        """Take a record; what breaks the rules is told, and taken all the same."""
        if self.blind or record.task in self._lost:
            return
        if record.kind == "thought" and record.task in self.tasks:
            self.tasks[record.task].evidence = True
        elif record.kind in ("task", "task.text"):
            yield from self._follow(record, payload)

    def lose(self, task: str | None) -> None:
        """A record that may be about this task cannot be read."""
        self._lost.add(task)

    def erased_text(self, task: str | None) -> None:
        """A task.text record whose payload is gone: so is what the row may show of it."""
        if task in self.tasks:
            values = self.tasks[task].values
            values["title"] = ERASED
            values["description"] = None if values["description"] is None else ERASED

    def _follow(self, record: Record, payload: Mapping[str, Any]) -> Iterator[Finding]:
        try:
            if payload["task_id"] != record.task:
                yield "bad task record", f"its header names {record.task}"
            if payload["task_id"] not in self.tasks:
                yield from self._create(record, payload)
            else:
                yield from self._change(record, payload)
        except (AttributeError, KeyError, TypeError, ValueError) as problem:
            yield "bad task record", f"it cannot be read: {problem!r}"

    def _create(self, record: Record, payload: Mapping[str, Any]) -> Iterator[Finding]:
        id, made = payload["task_id"], payload["set"]
        task = self.tasks[id] = Replayed(id, record.seq, record.at)
        first = record.kind == "task" and made.keys() == set(FIELDS)
        if not first or (payload["version"], payload["attempt"]) != (1, 1):
            yield "bad task record", f"{id}: its first record does not create it"
        if made.get("status") != [None, Status.INIT]:
            yield "illegal move", f"{id}: it was not created in INIT"
        yield from self._set(task, made, new=True)
        yield from self._check_dependencies(task)

    def _change(self, record: Record, payload: Mapping[str, Any]) -> Iterator[Finding]:
        task = self.tasks[payload["task_id"]]
        values, made = task.values, payload["set"]
        id, old = values["task_id"], Status(values["status"])
        if old in TERMINAL and task.ended_by != record.call:
            yield "illegal move", f"{id}: it was changed after it had ended in {old}"
        yield from self._check_version(task, record.kind, payload["version"])
        is_new = record.kind == "task.text" and payload["version"] == 1
        yield from self._set(task, made, new=is_new)
        values["version"] = payload["version"]
        values["updated_at"] = record.at
        if record.kind == "task":
            new = Status(values["status"])
            yield from self._check_move(task, old, new, payload["attempt"])
            if is_retry(old, new):
                task.evidence = False
                values["attempt_seq"] = record.seq
            values["attempt"] = payload["attempt"]
            if new in TERMINAL:
                task.ended_by = record.call
            if "depends_on" in made:
                yield from self._check_dependencies(task)

    def _check_version(self, task: Replayed, kind: str, version: int) -> Iterator[Finding]:
        now = task.values["version"]
        shared = kind == "task.text" and version == now and task.text_at < now
        if version != now + 1 and not shared:
            yield "bad task record", f"{task.values['task_id']}: version {version} follows {now}"
        if kind == "task.text":
            task.text_at = version

    def _set(self, task: Replayed, made: Mapping[str, Any], *, new: bool) -> Iterator[Finding]:
        for name, (old, value) in made.items():
            if name not in FIELDS and name not in TEXT_FIELDS:
                raise KeyError(name)
            before = task.values[name]
            if not new and (old != before or value == before) and before != ERASED:
                yield "bad task record", f"{task.values['task_id']}: {name} was not what it says"
            task.values[name] = value

    def _check_move(
        self, task: Replayed, old: Status, new: Status, attempt: int
    ) -> Iterator[Finding]:
        id, values = task.values["task_id"], task.values
        if new != old and new not in TRANSITIONS[old]:
            yield "illegal move", f"{id}: {old} to {new}"
        if attempt != values["attempt"] + is_retry(old, new):
            yield "bad task record", f"{id}: attempt {attempt} follows {values['attempt']}"
        if new == Status.DONE and old != new and not task.evidence:
            yield "missing evidence", f"{id}: DONE without a thought in attempt {attempt}"
        if new in NEEDS_DEPENDENCIES and (open := self.open_dependencies(task)):
            yield "blocked move", f"{id}: in {new} while {', '.join(open)} had not ended"

    def _check_dependencies(self, task: Replayed) -> Iterator[Finding]:
        id, wanted = task.values["task_id"], task.values["depends_on"]
        if unknown := [other for other in wanted if other not in self.tasks]:
            yield "bad task record", f"{id}: it depends on {unknown[0]}, which does not exist"
        seen, queue = set(wanted), list(wanted)
        for other in queue:
            if other in self.tasks and other != id:
                ahead = set(self.tasks[other].values["depends_on"] or ()) - seen
                seen |= ahead
                queue.extend(ahead)
        if id in seen:
            yield "bad task record", f"{id}: its dependencies lead back to itself"

    def open_dependencies(self, task: Replayed) -> list[str]:
        """The dependencies of a task that have not ended."""
        return [
            other
            for other in task.values["depends_on"] or ()
            if other in self.tasks and self.tasks[other].values["status"] not in TERMINAL
        ]

    def compare(self, row: Mapping[str, Any]) -> str | None:
        """How a row of the table differs from what its records say, or None."""
        if self.blind or row["task_id"] in self._lost:
            return None
        task = self.tasks.get(row["task_id"])
        if task is None:
            return f"{row['task_id']}: no record created it"
        expected = {**task.values, "open_dependencies": len(self.open_dependencies(task))}
        wrong = [name for name, value in expected.items() if row[name] != value]
        return f"{row['task_id']}: its records say otherwise: {', '.join(wrong)}" if wrong else None
