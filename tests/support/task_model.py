"""Tasks as docs/specification.md describes them, in plain Python that shares no code with ours.

A method returns what a tool must answer: the data, or a No with the refusal's details.
Times are not predicted: a new time is copied from the answer (`adopt`).
"""

from dataclasses import dataclass, field
from typing import Any

JSON = dict[str, Any]

WAY = ["INIT", "GATHER", "ANALYZE", "PLAN", "APPLY", "VERIFY", "DONE"]
ENDED = {"DONE", "CANCELLED"}
NEEDS_ALL = {"APPLY", "VERIFY", "DONE"}
URGENCY = ["critical", "high", "medium", "low"]
TEXTS = {"title", "description"}  # in their own record
OFFERED = 3  # free tasks that a refusal names


class No(Exception):
    """A refusal: its code and its details."""

    def __init__(self, code: str, **facts: Any) -> None:
        super().__init__(code)
        self.code = code
        self.facts = facts


@dataclass
class Task:
    task_id: str
    title: str
    description: str | None = None
    project: str | None = None
    priority: str = "medium"
    assignee: str | None = None
    depends_on: list[str] = field(default_factory=list)
    status: str = "INIT"
    holder: str | None = None
    attempt: int = 1
    version: int = 1
    created_at: str | None = None
    updated_at: str | None = None  # None: a new one is due
    has_thought: bool = False

    def moves(self) -> list[str]:
        """The states that it may move to, in the order of the answer."""
        return moves_from(self.status)

    def whole(self) -> JSON:
        return {name: value for name, value in vars(self).items() if name != "has_thought"}

    def row(self) -> JSON:
        left_out = ("description", "depends_on")
        return {name: value for name, value in self.whole().items() if name not in left_out}


def moves_from(status: str) -> list[str]:
    if status in ENDED:
        return []
    ahead = [WAY[WAY.index(status) + 1]]
    return [*ahead, *(["GATHER"] if status == "VERIFY" else []), "CANCELLED"]


class Model:
    """`records` counts what a call wrote in addition to enter and exit."""

    def __init__(self) -> None:
        self.tasks: dict[str, Task] = {}
        self.records = 0

    def create_task(self, **fields: Any) -> Task:
        depends_on = self._known(fields.pop("depends_on", []))
        task = Task(f"T-{len(self.tasks) + 1:04d}", **fields, depends_on=depends_on)
        self.tasks[task.task_id] = task
        self.records = 2
        return task

    def change(
        self,
        task_id: str,
        mine: str | None,
        *,
        steps: list[str],
        claim: bool | None,
        with_thought: bool,
        expected_version: int | None = None,
        **changes: Any,
    ) -> Task:
        """A task_update by the session `mine`, or without a session."""
        task = self._get(task_id)
        self._check_holder(task, mine)
        if expected_version not in (None, task.version):
            raise No("ERR_VERSION_CONFLICT", task_id=task_id, current_version=task.version)
        if task.status in ENDED:
            raise No("ERR_INVALID_TRANSITION", task_id=task_id, next_states=[])
        if "depends_on" in changes:
            changes["depends_on"] = self._known(changes["depends_on"])
            if any(self._leads_to(other, task_id) for other in changes["depends_on"]):
                raise No("ERR_CYCLE")
        depends_on = changes.get("depends_on", task.depends_on)
        self._check_steps(task, steps, depends_on, has_thought=task.has_thought or with_thought)
        if claim is False:
            changes["holder"] = None
        elif mine is not None and (claim or steps):
            changes["holder"] = mine
        self.records = int(with_thought)
        task.has_thought = task.has_thought or with_thought
        changed = {name for name, value in changes.items() if getattr(task, name) != value}
        for name in changed:
            setattr(task, name, changes[name])
        self._move(task, steps)
        if steps or changed:
            self.records += (len(steps) or bool(changed - TEXTS)) + bool(changed & TEXTS)
            task.version += len(steps) or 1
            task.updated_at = None
        return task

    def _move(self, task: Task, steps: list[str]) -> None:
        for to in steps:
            if (task.status, to) == ("VERIFY", "GATHER"):
                task.attempt += 1
                task.has_thought = False
            task.status = to
        if task.status in ENDED:
            task.holder = None

    def _check_holder(self, task: Task, mine: str | None) -> None:
        if task.holder not in (None, mine):
            free = [one.task_id for one in self._queue({}) if one.holder is None][:OFFERED]
            facts = {"holder": task.holder, "is_alive": True, "free": free}
            raise No("ERR_CLAIMED", task_id=task.task_id, **facts)

    def _check_steps(
        self, task: Task, steps: list[str], depends_on: list[str], *, has_thought: bool
    ) -> None:
        id, at, retried = task.task_id, task.status, False
        blockers = [id for id in depends_on if self.tasks[id].status not in ENDED]
        for number, to in enumerate(steps):
            is_retry = (at, to) == ("VERIFY", "GATHER")
            is_late = (is_retry and number > 0) or (retried and to in ENDED)
            if to not in moves_from(at) or is_late:
                raise No("ERR_INVALID_TRANSITION", task_id=id, next_states=moves_from(at))
            if to in NEEDS_ALL and blockers:
                raise No("ERR_BLOCKED", task_id=id, blockers=blockers)
            if to in ENDED and not has_thought:
                raise No("ERR_WRITEBACK_REQUIRED", task_id=id, attempt=task.attempt)
            at, retried = to, retried or is_retry
        if not steps and task.status in NEEDS_ALL and blockers:
            raise No("ERR_BLOCKED", task_id=id, blockers=blockers)

    def think(self, task_id: str) -> None:
        self._get(task_id).has_thought = True

    def get(self, task_id: str, **_: Any) -> JSON:
        """The caller makes no difference."""
        task = self._get(task_id)
        return {**task.whole(), "blockers": self.blockers(task), **self._next(task)}

    def find(
        self, search: str | None = None, limit: int = 50, offset: int = 0, **wanted: Any
    ) -> JSON:
        wanted = {name: wanted[name] for name in wanted.keys() - {"session_id", "agent_id"}}
        found = [task for task in self._matching(wanted) if self._has_words(task, search or "")]
        page = found[offset : offset + limit]
        after = offset + len(page)
        return {
            "tasks": [task.row() for task in page],
            "total_count": len(found),
            "next_offset": after if page and after < len(found) else None,
        }

    def actions(
        self, mine: str | None, *, limit: int = 10, claim: bool = False, **wanted: Any
    ) -> JSON:
        """A task_next_actions by the session `mine`, or without a session."""
        ready = self._queue(wanted)
        held = [task for task in ready if task.holder is not None and task.holder == mine]
        free = [task for task in ready if task.holder is None]
        can = [*held, *free]
        if claim and can and not held:
            free[0].holder = mine
            free[0].version += 1
            free[0].updated_at = None
            self.records = 1
        shown = [{**task.row(), **self._next(task)} for task in can[: 1 if claim else limit]]
        if claim and can:  # the claimed task comes in full, so no task_get is needed
            shown[0]["description"] = can[0].description
        return {
            "tasks": shown,
            "total_count": len(can),
            "held_by_others": len(ready) - len(can),
        }

    def _queue(self, wanted: JSON) -> list[Task]:
        ready = [
            task
            for task in self._matching(wanted)
            if task.status not in ENDED and not self.blockers(task)
        ]
        ready.sort(key=lambda task: (URGENCY.index(task.priority), -WAY.index(task.status)))
        return ready

    def blockers(self, task: Task) -> list[str]:
        return [id for id in task.depends_on if self.tasks[id].status not in ENDED]

    def adopt(self, answer: JSON) -> None:
        """Copy the times that a change set; they must not run backwards."""
        task = self.tasks[answer["task_id"]]
        if task.created_at is None:
            assert answer["created_at"] == answer["updated_at"]
            task.created_at = answer["created_at"]
        if task.updated_at is None:
            assert answer["updated_at"] >= task.created_at
            task.updated_at = answer["updated_at"]

    def _get(self, task_id: str) -> Task:
        if task_id not in self.tasks:
            raise No("ERR_NOT_FOUND", task_id=task_id)
        return self.tasks[task_id]

    def _known(self, ids: list[str]) -> list[str]:
        return [self._get(id).task_id for id in dict.fromkeys(ids)]

    def _leads_to(self, start: str, goal: str) -> bool:
        """Whether goal is start, or a direct or indirect dependency of start."""
        seen: set[str] = set()
        waiting = [start]
        while waiting:
            id = waiting.pop()
            if id == goal:
                return True
            if id not in seen:
                seen.add(id)
                waiting += self.tasks[id].depends_on
        return False

    def _matching(self, wanted: JSON) -> list[Task]:
        return [
            task
            for task in self.tasks.values()
            if all(value is None or getattr(task, name) == value for name, value in wanted.items())
        ]

    def _has_words(self, task: Task, search: str) -> bool:
        texts = (task.title.casefold(), (task.description or "").casefold())
        return all(any(word in text for text in texts) for word in search.casefold().split())

    def _next(self, task: Task) -> JSON:
        """next_states and, for needs, what each sentence must name."""
        needs: dict[str, list[list[str]]] = {}
        for state in task.moves():
            if state in NEEDS_ALL and (blockers := self.blockers(task)):
                needs.setdefault(state, []).append(blockers)
            if state in ENDED and not task.has_thought:
                needs.setdefault(state, []).append(["thought"])
        return {"next_states": task.moves(), "needs": needs}
