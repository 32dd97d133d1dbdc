"""The task tools: plan work, see what is unblocked, move it only along legal edges."""

from operator import attrgetter
from typing import Annotated, Any, ClassVar, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, structs

from colibri.core.modes import Capability
from colibri.store import task_changes, tasks
from colibri.store.tasks import Filter, Task
from colibri.tools.text import Description, Name, TaskId, Title
from colibri.tools.tool import Answer, Offset, Tool, Work, next_offset, tool

Priority = Literal["low", "medium", "high", "critical"]
StatusName = Literal["INIT", "GATHER", "ANALYZE", "PLAN", "APPLY", "VERIFY", "DONE", "CANCELLED"]
Dependencies = Annotated[list[TaskId], Meta(max_length=100)]
Positive = Annotated[int, Meta(ge=1)]


# Arguments.


class Create(Struct, forbid_unknown_fields=True, omit_defaults=True):
    ALIASES: ClassVar = {"project_id": "project"}

    title: Annotated[Title, Meta(description="what is to be done, in one line")]
    description: Annotated[
        Description | None, Meta(description="details, and how to tell that it is done")
    ] = None
    project: Annotated[Name | None, Meta(description="a name that groups tasks")] = None
    priority: Annotated[Priority, Meta(description="how urgent")] = "medium"
    assignee: Annotated[Name | None, Meta(description="who works on it")] = None
    depends_on: Annotated[
        Dependencies, Meta(description="ids of tasks that must end before this one can be in APPLY")
    ] = []


class Get(Struct, forbid_unknown_fields=True):
    ALIASES: ClassVar = {"id": "task_id"}

    task_id: Annotated[TaskId, Meta(description="the task's id")]


class Update(Struct, forbid_unknown_fields=True, omit_defaults=True):
    ALIASES: ClassVar = {"id": "task_id", "project_id": "project"}

    task_id: Annotated[TaskId, Meta(description="the task's id")]
    status: Annotated[StatusName | UnsetType, Meta(description="the state to move to")] = UNSET
    title: Annotated[Title | UnsetType, Meta(description="what is to be done")] = UNSET
    description: Annotated[Description | UnsetType | None, Meta(description="null clears it")] = (
        UNSET
    )
    project: Annotated[Name | UnsetType | None, Meta(description="null clears it")] = UNSET
    priority: Annotated[Priority | UnsetType, Meta(description="how urgent")] = UNSET
    assignee: Annotated[Name | UnsetType | None, Meta(description="null clears it")] = UNSET
    depends_on: Annotated[Dependencies | UnsetType, Meta(description="replaces the whole list")] = (
        UNSET
    )
    expected_version: Annotated[
        Positive | None,
        Meta(description="the version you read: refused if the task has changed since"),
    ] = None

    def __post_init__(self) -> None:
        fields = set(self.__struct_fields__) - {"task_id", "expected_version"}
        if all(getattr(self, name) is UNSET for name in fields):
            names = ", ".join(sorted(fields))
            raise ValueError(f"nothing to change was given: give at least one of {names}")


class List(Struct, forbid_unknown_fields=True, omit_defaults=True):
    ALIASES: ClassVar = {"project_id": "project"}

    status: Annotated[StatusName | None, Meta(description="only tasks in this state")] = None
    project: Annotated[Name | None, Meta(description="only this project")] = None
    assignee: Annotated[Name | None, Meta(description="only this assignee")] = None
    search: Annotated[
        Annotated[str, Meta(max_length=256)] | None,
        Meta(description="words that all occur in title or description, in any case"),
    ] = None
    limit: Annotated[Annotated[int, Meta(ge=1, le=500)], Meta(description="tasks per page")] = 50
    offset: Offset = 0


class NextActions(Struct, forbid_unknown_fields=True, omit_defaults=True):
    ALIASES: ClassVar = {"project_id": "project"}

    project: Annotated[Name | None, Meta(description="only this project")] = None
    assignee: Annotated[Name | None, Meta(description="only this assignee")] = None
    limit: Annotated[Annotated[int, Meta(ge=1, le=100)], Meta(description="how many")] = 10


# Answers.


class Row(Answer, gc=False):
    """In the order of its JSON, which takes less time."""

    assignee: str | None
    attempt: Positive
    created_at: str
    priority: Priority
    project: str | None
    status: StatusName
    task_id: str
    title: str
    updated_at: str
    version: Positive


class Whole(Row):
    description: str | None
    depends_on: tuple[str, ...]


class Detail(Whole):
    blockers: list[str]
    next_states: tuple[StatusName, ...]
    needs: dict[str, list[str]]


class Action(Row):
    next_states: tuple[StatusName, ...]
    needs: dict[str, list[str]]


class Page(Answer):
    tasks: list[Row]
    total_count: int
    next_offset: int | None


class Queue(Answer):
    tasks: list[Action]
    total_count: int


# Handlers.


@tool(
    "task_create",
    "Create a task",
    "Plan a piece of work. It begins in INIT; task_update moves it on.",
)
def create(work: Work, args: Create) -> Whole:
    fields = structs.asdict(args)
    return Whole(*_whole(task_changes.create(work.db, work.record, fields=fields, now=work.now)))


@tool(
    "task_get",
    "Read a task",
    "One task whole: with its open dependencies (blockers), the states it may move"
    " to now (next_states) and what each of these still needs.",
    capability=Capability.BROWSE,
)
def get(work: Work, args: Get) -> Detail:
    task = tasks.get(work.db, args.task_id)
    blockers = [one.task_id for one in tasks.blockers(work.db, task.number)]
    return Detail(*(*_whole(task), blockers, *_moves(work, task)))


@tool(
    "task_update",
    "Change a task",
    "Move a task or change its fields, all or nothing. INIT → GATHER → ANALYZE →"
    " PLAN → APPLY → VERIFY → DONE, one step per call; VERIFY → GATHER begins a new attempt;"
    " CANCELLED at any time. DONE and CANCELLED are final. APPLY and later need every"
    " dependency DONE or CANCELLED; DONE needs a thought_record with this task_id since the"
    " attempt began. To claim a task that others may want, set assignee with expected_version:"
    " one of you wins.",
)
def update(work: Work, args: Update) -> Whole:
    given = structs.asdict(args)
    del given["task_id"], given["expected_version"]
    task = task_changes.update(
        work.db,
        work.record,
        args.task_id,
        changes={name: value for name, value in given.items() if value is not UNSET},
        expected_version=args.expected_version,
        now=work.now,
    )
    return Whole(*_whole(task))


@tool(
    "task_list",
    "List tasks",
    "Find tasks, oldest first, page by page.",
    capability=Capability.BROWSE,
)
def find(work: Work, args: List) -> Page:
    wanted = Filter(status=args.status, project=args.project, assignee=args.assignee)
    columns, bounds = Row.__struct_fields__, (args.limit, args.offset)
    rows, total = tasks.page(work.db, Row, columns, wanted, args.search, *bounds)
    return Page(rows, total, next_offset(args.offset, len(rows), total))


@tool(
    "task_next_actions",
    "What to do next",
    "The tasks that can be worked on now, neither ended nor blocked: the most"
    " urgent first, then the furthest along, then the oldest; each with the states it may move"
    " to and what these still need.",
    capability=Capability.INSPECT,
)
def next_actions(work: Work, args: NextActions) -> Queue:
    wanted = Filter(project=args.project, assignee=args.assignee)
    found, total = tasks.ready(work.db, wanted, limit=args.limit)
    return Queue([Action(*_row(task), *_moves(work, task)) for task in found], total)


_row = attrgetter(*Row.__struct_fields__)  # in their order


def _whole(task: Task) -> tuple[Any, ...]:
    return (*_row(task), task.description, task.depends_on)


def _moves(work: Work, task: Task) -> tuple[Any, ...]:
    return tasks.next_states(task), tasks.needs(work.db, task)


TOOLS: tuple[Tool, ...] = (create, get, update, find, next_actions)
