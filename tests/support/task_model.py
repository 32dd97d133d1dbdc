"""Tasks as design §7 and §8 describe them, in a few lines of Python that share nothing with ours.

A method answers what a tool must answer: the data, or a No with the refusal's facts.
Times are not predicted: a time that is new is taken over from the answer (`adopt`).
"""

from dataclasses import dataclass, field
from typing import Any

JSON = dict[str, Any]

WAY = ["INIT", "GATHER", "ANALYZE", "PLAN", "APPLY", "VERIFY", "DONE"]
ENDED = {"DONE", "CANCELLED"}
NEEDS_ALL = {"APPLY", "VERIFY", "DONE"}
URGENCY = ["critical", "high", "medium", "low"]
CHANGEABLE = ("title", "description", "project", "priority", "assignee", "depends_on", "status")


class No(Exception):
    """A refusal: its code, and the facts that come with it."""

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
    attempt: int = 1
    version: int = 1
    created_at: str | None = None
    updated_at: str | None = None  # None: a new one is due
    has_thought: bool = False

    def moves(self) -> list[str]:
        """The states that it may go to, in the order in which they are told."""
        if self.status in ENDED:
            return []
        ahead = [WAY[WAY.index(self.status) + 1]]
        return [*ahead, *(["GATHER"] if self.status == "VERIFY" else []), "CANCELLED"]

    def whole(self) -> JSON:
        return {name: value for name, value in vars(self).items() if name != "has_thought"}

    def row(self) -> JSON:
        left_out = ("description", "depends_on")
        return {name: value for name, value in self.whole().items() if name not in left_out}


class Model:
    def __init__(self) -> None:
        self.tasks: dict[str, Task] = {}

    def create(self, **fields: Any) -> JSON:
        depends_on = self._known(fields.pop("depends_on", []))
        task = Task(f"T-{len(self.tasks) + 1:04d}", **fields, depends_on=depends_on)
        self.tasks[task.task_id] = task
        return task.whole()

    def update(self, task_id: str, expected_version: int | None = None, **changes: Any) -> JSON:
        task = self._get(task_id)
        if expected_version not in (None, task.version):
            raise No("ERR_VERSION_CONFLICT", task_id=task_id, current_version=task.version)
        if task.status in ENDED:
            raise No("ERR_INVALID_TRANSITION", task_id=task_id, next_states=[])
        if "depends_on" in changes:
            changes["depends_on"] = self._known(changes["depends_on"])
            if any(self._leads_to(other, task_id) for other in changes["depends_on"]):
                raise No("ERR_CYCLE")
        self._check_move(task, changes.get("status"), changes.get("depends_on", task.depends_on))
        if any(getattr(task, name) != value for name, value in changes.items()):
            if (task.status, changes.get("status")) == ("VERIFY", "GATHER"):
                task.attempt += 1
                task.has_thought = False
            task.version += 1
            task.updated_at = None
            for name, value in changes.items():
                setattr(task, name, value)
        return task.whole()

    def _check_move(self, task: Task, to: str | None, depends_on: list[str]) -> None:
        if to is not None and to not in task.moves():
            raise No("ERR_INVALID_TRANSITION", task_id=task.task_id, next_states=task.moves())
        after = to or task.status
        blockers = [id for id in depends_on if self.tasks[id].status not in ENDED]
        if after in NEEDS_ALL and blockers:
            raise No("ERR_BLOCKED", task_id=task.task_id, blockers=blockers)
        if to == "DONE" and not task.has_thought:
            raise No("ERR_WRITEBACK_REQUIRED", task_id=task.task_id, attempt=task.attempt)

    def think(self, task_id: str) -> None:
        self._get(task_id).has_thought = True

    def get(self, task_id: str) -> JSON:
        task = self._get(task_id)
        return {**task.whole(), "blockers": self.blockers(task), **self._next(task)}

    def find(
        self, search: str | None = None, limit: int = 50, offset: int = 0, **wanted: Any
    ) -> JSON:
        found = [task for task in self._matching(wanted) if self._has_words(task, search or "")]
        page = found[offset : offset + limit]
        after = offset + len(page)
        return {
            "tasks": [task.row() for task in page],
            "total_count": len(found),
            "next_offset": after if page and after < len(found) else None,
        }

    def next_actions(self, limit: int = 10, **wanted: Any) -> JSON:
        ready = [
            task
            for task in self._matching(wanted)
            if task.status not in ENDED and not self.blockers(task)
        ]
        ready.sort(key=lambda task: (URGENCY.index(task.priority), -WAY.index(task.status)))
        return {
            "tasks": [{**task.row(), **self._next(task)} for task in ready[:limit]],
            "total_count": len(ready),
        }

    def blockers(self, task: Task) -> list[str]:
        return [id for id in task.depends_on if self.tasks[id].status not in ENDED]

    def adopt(self, answer: JSON) -> None:
        """Take over the times that a change has made, which must not run backwards."""
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
        """Whether goal is start, or one of those that start waits for, however far away."""
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
        """next_states and, of needs, what each sentence has to name."""
        needs: dict[str, list[list[str]]] = {}
        for state in task.moves():
            if state in NEEDS_ALL and (blockers := self.blockers(task)):
                needs.setdefault(state, []).append(blockers)
            if state == "DONE" and not task.has_thought:
                needs.setdefault(state, []).append(["thought_record", task.task_id])
        return {"next_states": task.moves(), "needs": needs}
