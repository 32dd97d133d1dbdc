"""Task records, replayed through the rules of states.py: what each task must look like by now.

    illegal move      not in the table of transitions, or a change to a task that has ended
    blocked move      into APPLY or beyond while a dependency is open
    missing evidence  DONE without a thought since the attempt began
    bad task record   it does not follow from the records before it, or is not made like one
    altered task      a row is not what its records say

A task of which a record is lost is not judged any further, nor is another by what it was; where it
is not known whose records are lost, no task is. A thought is evidence even if its text is gone.
Memory grows with the number of tasks, not of records.
"""

from collections.abc import Mapping
from typing import Any, Literal

from colibri.core import payload as form
from colibri.core.ledger import FIELDS, TEXT_FIELDS
from colibri.core.record import Record
from colibri.core.states import NEEDS_DEPENDENCIES, TERMINAL, TRANSITIONS, Status, is_retry

ERASED = "[erased]"
FORWARD = {status: moves[0] for status, moves in TRANSITIONS.items() if moves}

What = Literal[
    "illegal move", "blocked move", "missing evidence", "bad task record", "altered task"
]
Finding = tuple[What, str]


class Replayed:
    """A task as its records leave it; `values` has a column's name for each."""

    __slots__ = ("call", "evidence", "text_at", "values")

    def __init__(self, task_id: str, seq: int, at: str, call: str) -> None:
        self.evidence = False
        self.call = call  # the one that made this version, and may still add its text to it
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
        self.lost: set[str] = set()  # the tasks that are not judged any further
        self._waited_for: set[str] = set()  # what somebody depended on at some time
        self._found: list[Finding] = []

    def feed(self, record: Record, payload: Mapping[str, Any] | None) -> list[Finding]:
        """Take a record, without its payload if that is erased.

        What breaks the rules is told, and taken all the same.
        """
        self._found = []
        if self._is_judged(record.task):
            if record.kind == "thought":
                self.witness(record.task)
            elif payload is None:
                self._erase(record)
            elif record.kind in ("task", "task.text"):
                self._follow(record, payload)
        return self._found

    def step(self, at: str, call: str, task_id: str | None, body: bytes) -> bool:
        """Take a step to the next state whose payload says just that; whether it does.

        One that says more, or that a rule could speak against, is left to `feed`.
        """
        task = self.tasks.get(task_id or "")
        if task is None or not self._is_judged(task_id):
            return False
        values = task.values
        old, attempt = values["status"], values["attempt"]
        try:
            new, version = FORWARD[old], values["version"] + 1
            right = form.step(values["task_id"], version, attempt, old, new)
        except (KeyError, TypeError, ValueError):  # an ended task, or one of bad records
            return False
        if (
            body != right
            or (new == Status.DONE and not task.evidence)
            or (new in NEEDS_DEPENDENCIES and values["depends_on"])
        ):
            return False
        values.update(status=new, version=version, updated_at=at)
        task.call = call
        return True

    def lose(self, record: Record) -> None:
        """The payload of a record is not the one that was written, or is gone against the rules."""
        if record.kind == "thought":
            self.witness(record.task)
        elif record.kind in ("task", "task.text"):
            if record.task is None:
                self.blind = True
            else:
                self.lost.add(record.task)

    def _erase(self, record: Record) -> None:
        """Of a text that was erased it is not known which fields it had set."""
        task = self.tasks.get(record.task or "")
        if task is None or record.kind != "task.text":
            return
        now: int = task.values["version"]
        if not self._shares(task, record, now):
            self._check_open(task)
            self._step(task, record, now + 1)
        task.text_at = task.values["version"]
        task.values["title"] = task.values["description"] = ERASED

    def _tell(self, what: What, detail: str) -> None:
        self._found.append((what, detail))

    def _is_judged(self, task: str | None) -> bool:
        return not self.blind and task not in self.lost

    def witness(self, task: str | None) -> None:
        """There is a thought about it."""
        if task in self.tasks:
            self.tasks[task].evidence = True

    def _follow(self, record: Record, payload: Mapping[str, Any]) -> None:
        try:
            if payload["task_id"] != record.task:
                self._tell("bad task record", f"its header names {record.task}")
            if payload["task_id"] not in self.tasks:
                self._create(record, payload)
            else:
                self._change(record, payload)
        except (AttributeError, KeyError, TypeError, ValueError) as problem:
            self.lose(record)
            self._tell("bad task record", f"it cannot be read: {problem!r}")

    def _create(self, record: Record, payload: Mapping[str, Any]) -> None:
        id, made = payload["task_id"], payload["set"]
        task = self.tasks[id] = Replayed(id, record.seq, record.at, record.call)
        first = record.kind == "task" and made.keys() == set(FIELDS)
        if not first or (payload["version"], payload["attempt"]) != (1, 1):
            self._tell("bad task record", f"{id}: its first record does not create it")
        if made.get("status") != [None, Status.INIT]:
            self._tell("illegal move", f"{id}: it was not created in INIT")
        self._set(task, record.kind, made, new=True)
        self._check_dependencies(task)

    def _change(self, record: Record, payload: Mapping[str, Any]) -> None:
        task = self.tasks[payload["task_id"]]
        values, made = task.values, payload["set"]
        old, version = values["status"], payload["version"]
        shared = self._shares(task, record, version)
        if not shared:
            self._check_open(task)
            self._check_version(task, version)
        self._set(task, record.kind, made, new=shared and version == 1)
        self._step(task, record, version)
        if record.kind == "task.text":
            task.text_at = version
        else:
            new = Status(values["status"])
            self._check_move(task, old, new, payload["attempt"])
            if is_retry(old, new):
                task.evidence = False
                values["attempt_seq"] = record.seq
            values["attempt"] = payload["attempt"]
            if "depends_on" in made:
                self._check_dependencies(task)

    def _shares(self, task: Replayed, record: Record, version: int) -> bool:
        """Whether a record adds the text to a version that its own call has just made."""
        is_text = record.kind == "task.text" and record.call == task.call
        return is_text and version == task.values["version"] and task.text_at < version

    def _step(self, task: Replayed, record: Record, version: int) -> None:
        task.call = record.call
        task.values["version"] = version
        task.values["updated_at"] = record.at

    def _check_open(self, task: Replayed) -> None:
        id, status = task.values["task_id"], task.values["status"]
        if status in TERMINAL:
            self._tell("illegal move", f"{id}: it was changed after it had ended in {status}")

    def _check_version(self, task: Replayed, version: int) -> None:
        id, now = task.values["task_id"], task.values["version"]
        if version != now + 1:
            self._tell("bad task record", f"{id}: version {version} follows {now}")

    def _set(self, task: Replayed, kind: str, made: Mapping[str, Any], *, new: bool) -> None:
        id = task.values["task_id"]
        if not made:
            self._tell("bad task record", f"{id}: it changes nothing")
        for name, (old, value) in made.items():
            if name not in (FIELDS if kind == "task" else TEXT_FIELDS):
                raise KeyError(name)
            before = task.values[name]
            if before != ERASED and (old != before or (value == before and not new)):
                self._tell("bad task record", f"{id}: {name} was not what it says")
            task.values[name] = value

    def _check_move(self, task: Replayed, old: Status, new: Status, attempt: int) -> None:
        id, values = task.values["task_id"], task.values
        if new != old and new not in TRANSITIONS[old]:
            self._tell("illegal move", f"{id}: {old} to {new}")
        if attempt != values["attempt"] + is_retry(old, new):
            self._tell("bad task record", f"{id}: attempt {attempt} follows {values['attempt']}")
        if new == Status.DONE and old != new and not task.evidence:
            self._tell("missing evidence", f"{id}: DONE without a thought in attempt {attempt}")
        if new in NEEDS_DEPENDENCIES and (open := self.open_dependencies(task)):
            self._tell("blocked move", f"{id}: in {new} while {', '.join(open)} had not ended")

    def _check_dependencies(self, task: Replayed) -> None:
        id, wanted = task.values["task_id"], task.values["depends_on"] or ()
        if unknown := [o for o in wanted if o not in self.tasks and o not in self.lost]:
            self._tell("bad task record", f"{id}: it depends on {unknown[0]}, which does not exist")
        self._waited_for.update(wanted)
        if id not in self._waited_for:
            return  # no way leads back to it, and to look for one takes long in a long chain
        seen, queue = set(wanted), list(wanted)
        for other in queue:
            if other in self.tasks and other not in self.lost and other != id:
                ahead = set(self.tasks[other].values["depends_on"] or ()) - seen
                seen |= ahead
                queue.extend(ahead)
        if id in seen:
            self._tell("bad task record", f"{id}: its dependencies lead back to itself")

    def open_dependencies(self, task: Replayed) -> list[str]:
        """The dependencies of a task that have not ended, as far as that is known."""
        return [
            other
            for other in task.values["depends_on"] or ()
            if other in self.tasks
            and other not in self.lost
            and self.tasks[other].values["status"] not in TERMINAL
        ]

    def compare(self, row: Mapping[str, Any]) -> str | None:
        """How a row of the table differs from what its records say, or None."""
        if not self._is_judged(row["task_id"]):
            return None
        task = self.tasks.get(row["task_id"])
        if task is None:
            return f"{row['task_id']}: no record created it"
        expected = dict(task.values)
        if self.lost.isdisjoint(expected["depends_on"] or ()):
            expected["open_dependencies"] = len(self.open_dependencies(task))
        if expected["description"] == ERASED and row["description"] is None:
            del expected["description"]  # whether there was one is erased too
        wrong = [name for name, value in expected.items() if row[name] != value]
        return f"{row['task_id']}: its records say otherwise: {', '.join(wrong)}" if wrong else None
