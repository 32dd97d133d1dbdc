"""The task tools: plan work, see what is unblocked, move it only along legal edges."""

from collections.abc import Callable
from functools import partial
from operator import attrgetter
from typing import Annotated, Any, ClassVar, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from colibri.core.errors import Invalid
from colibri.core.modes import Capability
from colibri.store import task_changes, task_needs, tasks, trail
from colibri.store.claims import Asked
from colibri.store.connection import Connection
from colibri.store.keys import Key
from colibri.store.sessions import Session
from colibri.store.task_changes import Change
from colibri.store.tasks import Filter, Task
from colibri.tools.caller import (
    AgentOf,
    KeyOf,
    SessionOf,
    keep,
    key_reads,
    made_before,
    required,
    session_reads,
    working,
)
from colibri.tools.issues import issue
from colibri.tools.text import (
    Content,
    Description,
    Name,
    SessionId,
    TaskId,
    ThoughtType,
    Title,
    Words,
)
from colibri.tools.tool import Answer, Offset, Read, Tool, Work, next_offset, tool

Priority = Literal["low", "medium", "high", "critical"]
StatusName = Literal["INIT", "GATHER", "ANALYZE", "PLAN", "APPLY", "VERIFY", "DONE", "CANCELLED"]
Dependencies = Annotated[list[TaskId], Meta(max_length=100)]
Positive = Annotated[int, Meta(ge=1)]
Steps = Annotated[list[StatusName], Meta(min_length=1, max_length=8)]
_CHANGEABLE = ("title", "description", "project", "priority", "assignee", "depends_on")
_given = attrgetter(*_CHANGEABLE)
_NOT_CHANGES = {"task_id", "expected_version", "session_id", "agent_id"}


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
    key: KeyOf = None
    session_id: SessionOf = None
    agent_id: AgentOf = None


class Get(Struct, forbid_unknown_fields=True):
    ALIASES: ClassVar = {"id": "task_id"}

    task_id: Annotated[TaskId, Meta(description="the task's id")]
    session_id: SessionOf = None
    agent_id: AgentOf = None


class Thought(Struct, forbid_unknown_fields=True):
    type: Annotated[ThoughtType, Meta(description="what kind of thought")]
    content: Annotated[Content, Meta(description="what you found or decided, and why")]


class Update(Struct, forbid_unknown_fields=True, omit_defaults=True):
    ALIASES: ClassVar = {"id": "task_id", "project_id": "project"}

    task_id: Annotated[TaskId, Meta(description="the task's id")]
    status: Annotated[
        StatusName | Steps | UnsetType,
        Meta(description="the state to move to, or several in turn"),
    ] = UNSET
    thought: Annotated[
        Thought | UnsetType, Meta(description="why: recorded with the change, as its evidence")
    ] = UNSET
    claim: Annotated[
        bool | UnsetType, Meta(description="true takes the task, false releases it")
    ] = UNSET
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
    session_id: SessionOf = None
    agent_id: AgentOf = None

    def __post_init__(self) -> None:
        if self.claim is False and self.status is not UNSET:
            allowed = "false in a call of its own, after the move"
            raise Invalid([issue("claim", "false goes without status", allowed)])
        fields = set(self.__struct_fields__) - _NOT_CHANGES
        if all(getattr(self, name) is UNSET for name in fields):
            names = ", ".join(sorted(fields))
            raise ValueError(f"nothing to change was given: give at least one of {names}")


class List(Struct, forbid_unknown_fields=True, omit_defaults=True):
    ALIASES: ClassVar = {"project_id": "project"}

    status: Annotated[StatusName | None, Meta(description="only tasks in this state")] = None
    project: Annotated[Name | None, Meta(description="only this project")] = None
    assignee: Annotated[Name | None, Meta(description="only this assignee")] = None
    holder: Annotated[SessionId | None, Meta(description="only what this session holds")] = None
    search: Annotated[
        Words | None,
        Meta(description="words that all occur in title or description, in any case"),
    ] = None
    limit: Annotated[Annotated[int, Meta(ge=1, le=500)], Meta(description="tasks per page")] = 50
    offset: Offset = 0
    session_id: SessionOf = None
    agent_id: AgentOf = None


# Answers.


class Row(Answer, gc=False):
    """In the order of its JSON, which takes less time."""

    assignee: str | None
    attempt: Positive
    created_at: str
    holder: str | None
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


class Made(Whole):
    repeated: bool


class Detail(Whole):
    blockers: list[str]
    next_states: tuple[StatusName, ...]
    needs: dict[str, list[str]]


class Page(Answer):
    tasks: list[Row]
    total_count: int
    next_offset: int | None


# Handlers.


def _create_reads(db: Connection, args: Create, session: str | None) -> list[Read]:
    return [
        *session_reads(db, session),
        *key_reads(db, _key(args)),
        partial(task_changes.ask_create, db, args.depends_on),
    ]


@tool(
    "task_create",
    "Create a task",
    "Plan a piece of work. It begins in INIT; task_update moves it on.",
    reads=_create_reads,
)
def create(work: Work, args: Create) -> Made:
    working(work)
    fields = dict(zip(_CHANGEABLE, _given(args), strict=True))
    key = _key(args)
    made = made_before(work, key)
    if made is not None:
        return Made(*(*_whole(tasks.get(work.db, tasks.task_id(made))), True))
    task = task_changes.create(work.db, work.record, fields=fields, now=work.now)
    keep(work, key, task.number)
    return Made(*(*_whole(task), False))


def _key(args: Create) -> Key | None:
    return None if args.key is None else Key("task_create", "", args.key)


@tool(
    "task_get",
    "Read a task",
    "One task whole: with its open dependencies (blockers), the states it may move"
    " to now (next_states) and what each of these still needs.",
    capability=Capability.BROWSE,
)
def get(work: Work, args: Get) -> Detail:
    db, number = work.db, tasks.number_of(args.task_id)
    db.look_ahead(
        (
            partial(tasks.get, db, args.task_id),
            partial(task_needs.blockers, db, number),
            partial(task_needs.with_evidence, db, [number]),
        )
    )
    task = tasks.get(db, args.task_id)
    blockers = [one.task_id for one in task_needs.blockers(work.db, task.number)]
    moves = tasks.next_states(task), task_needs.needs(work.db, task, work.rules)
    return Detail(*(*_whole(task), blockers, *moves))


def _update_reads(db: Connection, args: Update, session: str | None) -> list[Read]:
    with_thought = args.thought is not UNSET
    ask = partial(task_changes.ask_update, db, args.task_id, session, with_thought=with_thought)
    return [*session_reads(db, session), ask]


@tool(
    "task_update",
    "Change a task",
    "Move a task, claim it or change its fields, all or nothing. INIT → GATHER → ANALYZE → PLAN →"
    " APPLY → VERIFY → DONE: give one state or the next ones in turn; VERIFY → GATHER begins a new"
    " attempt; CANCELLED at any time. DONE and CANCELLED are final and need a thought about this"
    " attempt; APPLY and later need every dependency DONE or CANCELLED. Moving a free task claims"
    " it for your session; what another session holds is refused.",
    reads=_update_reads,
    opens_work=True,
)
def update(work: Work, args: Update) -> Whole:
    session = required(work, "to claim a task") if args.claim is True else working(work)
    given = {name: getattr(args, name) for name in args.__struct_fields__}
    fields = {name: given[name] for name in _CHANGEABLE if given[name] is not UNSET}
    steps = [] if args.status is UNSET else args.status
    change = Change(
        asked=asked(work, session, args.claim, moves=bool(steps)),
        steps=[steps] if isinstance(steps, str) else steps,
        fields=fields,
        expected_version=args.expected_version,
        record_thought=None if args.thought is UNSET else _recording(work, args),
        gates=work.gates,
    )
    return Whole(*_whole(task_changes.update(work.db, work.record, args.task_id, change)))


def _recording(work: Work, args: Update) -> Callable[[], object]:
    """A function that records the thought passed with a change."""
    session, thought = required(work, "to record a thought"), args.thought
    assert thought is not UNSET
    return lambda: trail.record(
        work.db,
        work.record,
        session,
        seq=work.next_seq,
        type=thought.type,
        content=thought.content,
        task=args.task_id,
    )


def asked(work: Work, session: Session | None, claim: bool | UnsetType, *, moves: bool) -> Asked:
    return Asked(
        session=session,
        claim=None if claim is UNSET else claim,
        moves=moves,
        agent=work.agent,
        now=work.now,
        minutes=work.config.claim_minutes,
    )


@tool(
    "task_list",
    "List tasks",
    "Find tasks, oldest first, page by page.",
    capability=Capability.BROWSE,
)
def find(work: Work, args: List) -> Page:
    names = ("status", "project", "assignee", "holder")
    wanted = Filter(**{name: getattr(args, name) for name in names})
    columns, bounds = Row.__struct_fields__, (args.limit, args.offset)
    rows, total = tasks.page(work.db, Row, columns, wanted, args.search, *bounds)
    return Page(rows, total, next_offset(args.offset, len(rows), total))


row_of = attrgetter(*Row.__struct_fields__)  # in their order


def _whole(task: Task) -> tuple[Any, ...]:
    return (*row_of(task), task.description, task.depends_on)


TOOLS: tuple[Tool, ...] = (create, get, update, find)
