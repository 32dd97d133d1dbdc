"""task_next_actions: what an agent can work on now, and taking the first of it."""

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, ClassVar

from msgspec import UNSET, Meta, Struct, UnsetType

from colibri.store import claims, task_changes, task_needs, tasks
from colibri.store.connection import Connection
from colibri.store.task_changes import Change
from colibri.store.tasks import Filter
from colibri.tools.caller import AgentOf, SessionOf, required, session_reads, working
from colibri.tools.tasks import Row, StatusName, asked, row_of
from colibri.tools.text import Name
from colibri.tools.tool import Answer, Read, Tool, Work, tool


class NextActions(Struct, forbid_unknown_fields=True, omit_defaults=True):
    ALIASES: ClassVar = {"project_id": "project"}

    project: Annotated[Name | None, Meta(description="only this project")] = None
    assignee: Annotated[Name | None, Meta(description="only this assignee")] = None
    limit: Annotated[Annotated[int, Meta(ge=1, le=100)], Meta(description="how many")] = 10
    claim: Annotated[bool, Meta(description="take the first of them, and show only that")] = False
    session_id: SessionOf = None
    agent_id: AgentOf = None


class Action(Row):
    next_states: tuple[StatusName, ...]
    needs: dict[str, list[str]]
    description: str | UnsetType | None = UNSET  # of one that was claimed


class Queue(Answer):
    tasks: list[Action]
    total_count: int
    held_by_others: int


def _reads(db: Connection, args: NextActions, session: str | None) -> list[Read]:
    wanted = Filter(project=args.project, assignee=args.assignee)
    queue: Read = partial(claims.ask_queue, db, wanted, _find(args), session)
    return [*session_reads(db, session), queue, partial(tasks.count_ready, db, wanted)]


@tool(
    "task_next_actions",
    "What to do next",
    "What you can work on now: what you hold, then what is free, the most urgent first; each with"
    " the states it may move to and what these still need. With claim: true the first of them is"
    " yours at once.",
    only_reads=lambda args: not args.claim,
    reads=_reads,
    opens_work=True,
)
def next_actions(work: Work, args: NextActions) -> Queue:
    session = required(work, "to claim a task") if args.claim else working(work)
    wanted = Filter(project=args.project, assignee=args.assignee)
    minutes = work.config.claim_minutes
    found, others = claims.queue(
        work.db, wanted, _find(args), work.session, now=work.now, minutes=minutes
    )
    total = tasks.count_ready(work.db, wanted) - others
    proven = None
    found = found[: 1 if args.claim else args.limit]
    if args.claim:
        change = Change(asked=asked(work, session, claim=True, moves=False))
        proven = {task.number for task, has_evidence in found if has_evidence}
        found = [task_changes.update_row(work.db, work.record, task, change) for task, _ in found]
    actions = []
    every = task_needs.all_needs(work.db, found, work.rules, proven)
    for task, needs in zip(found, every, strict=True):
        told = task.description if args.claim else UNSET
        actions.append(Action(*(*row_of(task), tasks.next_states(task), needs, told)))
    return Queue(actions, total, others)


def _find(args: NextActions) -> Callable[..., list[Any]]:
    return tasks.first if args.claim else partial(tasks.queue, most=args.limit)


TOOLS: tuple[Tool, ...] = (next_actions,)
