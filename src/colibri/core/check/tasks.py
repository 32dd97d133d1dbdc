"""Tasks: their records replayed by the rules of docs/formats.md §6, and what each row must hold.

Memory grows with the number of tasks, not of records. A thought is evidence even if its text is
erased; a text that was erased is UNKNOWN until it is set again.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from colibri.core.check.kinds import Taken, TaskFields, TaskTexts
from colibri.core.check.sessions import Sessions
from colibri.core.dependencies import TooManyLinks, find_cycle
from colibri.core.ledger import ERASED, FIELDS, HELD_FIELDS, HUMAN, TEXT_FIELDS
from colibri.core.report import TASKS, Findings
from colibri.core.rows import Row
from colibri.core.states import NEEDS_DEPENDENCIES, TERMINAL, TRANSITIONS

UNKNOWN: Any = object()  # a value that an erased record may have set
_NOTHING = dict.fromkeys((*HELD_FIELDS, *TEXT_FIELDS), UNKNOWN)
_NO_TEXTS = dict.fromkeys(TEXT_FIELDS, UNKNOWN)
_RETRY = ("VERIFY", "GATHER")
_OF_TASKS = ("task", "task.text")  # the kinds of records that change them
_MOVES = {str(old): frozenset(map(str, new)) for old, new in TRANSITIONS.items()}

Made = Mapping[str, Any]  # field → [old, new]
Texts = TaskTexts | None  # None: erased
Reasons = Callable[[Row], Sequence[str | None]]  # the tasks of the thoughts of a record's call


class Task:
    """A task as its records leave it; before the first of them nothing is known."""

    __slots__ = (
        *("attempt", "began", "call", "created_at", "has_text"),
        *("is_new", "updated_at", "values", "version"),
    )

    def __init__(self, row: Row) -> None:
        self.values: dict[str, Any] = dict(_NOTHING)
        self.version = 0
        self.attempt = 1
        self.began = row.seq  # the record that began the attempt
        self.created_at = self.updated_at = row.at
        self.call = ""  # that wrote its last record
        self.has_text = False  # whether its version has its task.text already
        self.is_new = False  # whether its last record created it

    def tell(self, made: Made | None) -> None:
        """Continue with the values that a record states; None is a text that was erased."""
        if made is None:
            self.values |= _NO_TEXTS
        else:
            for name, (_, new) in made.items():
                self.values[name] = new


class _Step(NamedTuple):
    """A record and the task that it changes."""

    row: Row
    made: Made
    is_text: bool
    erased: bool
    shares: bool  # the version of the task record before it
    expected: int
    version: int
    attempt: int
    taken: Taken | None  # from another session


class Tasks:
    """Shown the records that name tasks, in the order of the log."""

    def __init__(self, found: Findings, sessions: Sessions, *, whole: bool = True) -> None:
        self.known: dict[str, Task] = {}
        self.found = found
        self._sessions = sessions
        self._whole = whole  # whether all signs of life of the sessions are shown
        self.lost: set[tuple[str, str]] = set()  # tasks, and sessions that must claim them again
        self._dependents: dict[str, set[str]] = {}
        self._thoughts: dict[str, int] = {}  # the last about each task

    def name(self, row: Row) -> None:
        """A session.open or thought record that names a task."""
        task = row.task or ""
        if task not in self.known:
            self._note(row, "unknown-task")
        if row.kind == "thought":
            self._thoughts[task] = row.seq

    def work(self, row: Row) -> None:
        """A deed that names a task, which its session holds."""
        task = self.known.get(row.task or "")
        if task is not None:
            self._release(task)
        if row.session is None or task is None or task.values["holder"] != row.session:
            self._note(row, "wrong-holder")

    def take(self, row: Row, said: TaskFields | Texts, reasons: Reasons) -> None:
        """A task or task.text record."""
        id = row.task or ""
        first = id not in self.known
        task = self.known.setdefault(id, Task(row)) if first else self.known[id]
        step, old = _step(task, row, said), task.values["status"]
        if old in TERMINAL and not step.shares:
            self._note(row, "change-after-end")  # 4; it changes nothing
            return
        self._release(task)
        if first:
            self._judge_creation(step)
        else:
            self._judge_change(task, step)
            self._judge_holder(task, step, reasons)
        if "depends_on" in step.made:
            self._link(id, task.values["depends_on"], step.made["depends_on"][1])
        task.tell(None if step.erased else step.made)
        new = task.values["status"]
        if first or new in TERMINAL:
            task.values["holder"] = None  # 11
        if (old, new) == _RETRY:
            task.began = row.seq
        task.version, task.attempt, task.call = step.version, step.attempt, row.call
        task.updated_at, task.has_text, task.is_new = row.at, step.is_text, first

    def end_call(self, changes: Iterable[tuple[Row, object]]) -> None:
        """A call with these changes has ended: no text shares the version of a task any more."""
        for row, _ in changes:
            if row[2] in _OF_TASKS and (task := self.known.get(row[5] or "")) is not None:
                task.call = ""

    def retell(self, task: str, texts: Iterable[Texts]) -> None:
        """Take the texts of a task once more from all records that set them."""
        for said in texts:
            self.known[task].tell(None if said is None else said.set)

    def text(self, task: str | None, name: str) -> object:
        """A text of a task as it is by now, or UNKNOWN."""
        known = self.known.get(task or "")
        return UNKNOWN if known is None else known.values[name]

    def compare(self, row: Mapping[str, Any]) -> str | None:
        """How a row of the table differs from what its records say, or None."""
        task = self.known.get(row["task_id"])
        if task is not None:
            self._release(task)
        if task is None:
            return f"{row['task_id']}: no record created it"
        expected = {
            **task.values,
            "attempt": task.attempt,
            "version": task.version,
            "attempt_seq": task.began,
            "created_at": task.created_at,
            "updated_at": task.updated_at,
            "open_dependencies": len(self._open_dependencies(task.values["depends_on"])),
        }
        wrong = [name for name, value in expected.items() if not _holds(row[name], name, value)]
        return f"{row['task_id']}: its records say otherwise: {', '.join(wrong)}" if wrong else None

    def _judge_creation(self, step: _Step) -> None:
        """Which rules of §6 a task's first record breaks, by their numbers."""
        if step.taken is not None:
            self._note(step.row, "wrong-takeover")  # 12
        is_whole = not step.is_text and _is_creation(step.made, FIELDS)
        if not is_whole or (step.version, step.attempt) != (1, 1):
            self._note(step.row, "bad-creation")  # 1
        elif step.made["status"][1] != "INIT":
            self._note(step.row, "illegal-move")  # 1
        if "depends_on" in step.made:
            self._judge_dependencies(step, first=True)  # 7

    def _judge_change(self, task: Task, step: _Step) -> None:
        """The same for a later record."""
        row, made, old = step.row, step.made, task.values["status"]
        if task.is_new and step.shares:
            if not step.erased and not _is_creation(made, TEXT_FIELDS):
                self._note(row, "bad-creation")  # 1
        elif any([_is_wrong(task.values[name], *pair) for name, pair in made.items()]):
            self._note(row, "wrong-change")  # 3
        if step.version != step.expected:
            self._note(row, "wrong-version")  # 2
        if "depends_on" in made:
            self._judge_dependencies(step)  # 7
        if old is not UNKNOWN:
            new = made["status"][1] if "status" in made else old
            if step.attempt != task.attempt + ((old, new) == _RETRY):
                self._note(row, "wrong-attempt")  # 6
            self._judge_move(task, step, old, new)

    def _judge_move(self, task: Task, step: _Step, old: str, new: str) -> None:
        """The first of the rules 5, 8 and 9 that is broken."""
        if old != new and new not in _MOVES[old]:
            self._note(step.row, "illegal-move")  # 5
        elif self._is_blocked(task, step, new):
            self._note(step.row, "blocked-move")  # 8
        elif old != new in TERMINAL and self._thoughts.get(step.row.task or "", 0) <= task.began:
            self._note(step.row, "missing-evidence")  # 9

    def _release(self, task: Task) -> None:
        """A claim ends with its session (11)."""
        if task.values["holder"] in self._sessions.ended:
            task.values["holder"] = None

    def _judge_holder(self, task: Task, step: _Step, reasons: Reasons) -> None:
        """Rules 11 and 12: who holds a task changes it."""
        row, made, taken, holder = step.row, step.made, step.taken, task.values["holder"]
        mine = row.session
        if holder == mine and taken is None and "holder" not in made:
            return  # nothing changes hands
        self._lose(row, holder, made)
        new = made["holder"][1] if "holder" in made else holder
        takes = new is not None and new == mine
        unclaimed = holder is None and "status" in made and mine is not None and not takes
        if unclaimed or ("holder" in made and new not in (mine, None)):
            self._note(row, "wrong-holder")  # 11
        if holder in (None, mine) or not takes:
            if taken is not None:
                self._note(row, "wrong-takeover")  # 12
            if holder not in (None, mine) and not _is_release(row, made, reasons):
                self._note(row, "claimed-change")  # 12
        elif taken is None or not self._is_last_sign(holder, taken.last, row.seq):
            self._note(row, "wrong-takeover")  # 12

    def _lose(self, row: Row, holder: str | None, made: Made) -> None:
        """Remember which session lost a task, until it claims the task again."""
        task, new = row.task or "", made["holder"][1] if "holder" in made else holder
        if holder is not None and holder not in (row.session, new):
            self.lost.add((task, holder))
        if new is not None:
            self.lost.discard((task, new))

    def _is_last_sign(self, holder: str, last: int, seq: int) -> bool:
        known = self._sessions.signs.get(holder, 0)
        return last == known or (not self._whole and known < last < seq)

    def _judge_dependencies(self, step: _Step, *, first: bool = False) -> None:
        id, ids = step.row.task or "", step.made["depends_on"][1]
        if not self.known.keys() >= {*ids}:
            self._note(step.row, "unknown-task")
        try:
            # On a new task nothing depends yet.
            cycle = find_cycle(
                id, ids, self._needs, lambda one: () if first else self._waiting(one)
            )
        except TooManyLinks:  # no server records such a change
            cycle = [id]
        if cycle:
            self._note(step.row, "dependency-cycle")

    def _needs(self, id: str) -> Iterable[str]:
        known = self.known.get(id)
        ids = UNKNOWN if known is None else known.values["depends_on"]
        return () if ids is UNKNOWN else ids

    def _waiting(self, id: str) -> Iterable[str]:
        return self._dependents.get(id, ())

    def _link(self, id: str, old: Iterable[str], new: Iterable[str]) -> None:
        """Remember what depends on what."""
        for other in () if old is UNKNOWN else old:
            self._dependents[other].discard(id)
        for other in new:
            self._dependents.setdefault(other, set()).add(id)

    def _is_blocked(self, task: Task, step: _Step, new: str) -> bool:
        made = step.made
        if new not in NEEDS_DEPENDENCIES or not ("status" in made or "depends_on" in made):
            return False
        after = made["depends_on"][1] if "depends_on" in made else task.values["depends_on"]
        return bool(self._open_dependencies(after))

    def _open_dependencies(self, ids: Iterable[str]) -> list[str]:
        """Which of these a task still waits for."""
        waits = (id for id in (() if ids is UNKNOWN else ids) if id in self.known)
        return [id for id in waits if self.known[id].values["status"] not in TERMINAL]

    def _note(self, row: Row, code: str) -> None:
        self.found.note(TASKS, row.seq, code, f"task {row.task}")


def _step(task: Task, row: Row, said: TaskFields | Texts) -> _Step:
    if isinstance(said, TaskFields):
        expected, taken = task.version + 1, said.takeover
        return _Step(
            row, said.set, False, False, False, expected, said.version, said.attempt, taken
        )
    is_text = row.kind == "task.text"
    shares = is_text and row.call == task.call and not task.has_text
    expected = task.version + (not shares)
    made, version = ({}, expected) if said is None else (said.set, said.version)
    return _Step(row, made, is_text, said is None, shares, expected, version, task.attempt, None)


def _is_release(row: Row, made: Made, reasons: Reasons) -> bool:
    """Whether a person takes a task from its holder, and says why."""
    is_person = (row.agent or "").startswith(HUMAN)
    only = made.keys() == {"holder"} and made["holder"][1] is None
    return is_person and only and row.task in reasons(row)


def _is_creation(made: Made, fields: Iterable[str]) -> bool:
    return made.keys() == {*fields} and all(old is None for old, _ in made.values())


def _is_wrong(now: object, old: object, new: object) -> bool:
    return now is not UNKNOWN and (old != now or old == new)


def _holds(value: object, name: str, expected: object) -> bool:
    """Whether a column holds what it must; of an erased text it is not known that there was one."""
    if expected is not UNKNOWN:
        return value == expected
    return name not in TEXT_FIELDS or value == ERASED or (value is None and name == "description")
