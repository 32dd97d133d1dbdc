"""`colibri tasks`: the board of the tasks by state, and one of them with its history."""

import argparse
import shlex
from collections.abc import Iterable
from typing import Any, NamedTuple

from colibri.cli import lookup, person, project, terminal
from colibri.cli.complaint import Misuse
from colibri.cli.show import steps, times, words
from colibri.cli.show import task as show_task
from colibri.config import load
from colibri.core.states import TERMINAL, Status
from colibri.store import gate_file, ledger, sessions, task_needs, tasks
from colibri.store.connection import Connection
from colibri.store.tasks import Filter, Task
from colibri.store.timeline import Timeline

HELP = "show tasks by state, or one task with its history"

DESCRIPTION = """\
Show the tasks by state, in the order of work, which session holds each of them and what they are
waiting for.

With TASK: show one task with its fields, the session and agent that hold it and their last sign of
life, its dependencies and their states, the moves it can make, what each move still needs, and the
task's full history.
"""

EPILOG = """\
examples:
  colibri tasks
  colibri tasks T-0001
  colibri tasks --ready --project-name site
  colibri tasks --status APPLY --status VERIFY --assignee ada
  colibri tasks --project-name site --search "login form" --limit 0

--project is the directory, as in every command; --project-name is the project field that agents
gave the task. A search finds each of its words anywhere in title and description, ignoring case.

--json prints {total, states: {STATE: {total, tasks: [Task]}}}; with --ready or --mine {total,
tasks: [Task]}. With TASK it prints the Task plus
dependencies (task_id, status, title), blockers, next_states, needs (STATE: [what]) and history, a
list of what colibri trail --json prints. A Task is what task_get answers; see docs/tools.md.

Exit codes: 0 shown, 1 no such task, 2 a mistyped id, 73 configuration, 75 resource.
"""

INTERNAL = ("number", "attempt_seq", "open_dependencies")  # columns, not fields of a Task
ALL = 2**31
URGENCY = {"critical": 0, "high": 1, "medium": 2, "low": 3}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "task", metavar="TASK", type=lookup.task_id, nargs="?", help="one task, with its history"
    )
    parser.add_argument(
        "--status",
        metavar="STATE",
        type=str.upper,
        choices=[status.value for status in Status],
        action="append",
        default=[],
        help=f"only this state: {', '.join(Status)}; repeatable",
    )
    parser.add_argument("--project-name", metavar="NAME", help="only this project")
    parser.add_argument("--assignee", metavar="NAME", help="only this assignee")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--ready", action="store_true", help="only what can be worked on now")
    which.add_argument("--mine", action="store_true", help="only what you hold")
    parser.add_argument("--search", metavar="WORDS", help="only tasks that contain all these words")
    terminal.limit_option(parser, "only N of each state", 20)
    terminal.alone_option(parser, "TASK")
    project.options(parser)


def run(options: argparse.Namespace) -> int:
    if options.task is not None:
        terminal.refuse_filters(options)
    if (options.ready or options.mine) and (options.status or options.search):
        raise Misuse("--ready and --mine do not go together with --status or --search")
    with project.opened(options) as (_, reader):
        if options.ready or options.mine:
            _show_list(reader, options)
        elif options.task is None:
            _show_board(reader, options)
        else:
            _show_one(reader, options)
    return 0


# The board.


class Column(NamedTuple):
    """The tasks of a state that are shown, and how many there are in all."""

    state: str
    total: int
    tasks: list[Task]
    waiting: list[str]  # for what, each of them


def _show_board(db: Connection, options: argparse.Namespace) -> None:
    states = [state.value for state in Status if not options.status or state in options.status]
    with db:  # what is read belongs together
        board = [_column(db, state, options) for state in states]
    total = sum(column.total for column in board)
    if options.json:
        shown = {
            column.state: {"total": column.total, "tasks": [_json(one) for one in column.tasks]}
            for column in board
        }
        terminal.emit({"total": total, "states": shown})
        return
    for number, column in enumerate(column for column in board if column.total):
        if number:
            terminal.line()
        _show_column(column)
    if not total:
        none = "there are no tasks yet; colibri add TITLE creates one"
        terminal.note(f"no task matches {given}" if (given := _filters(options)) else none)


def _column(db: Connection, state: str, options: argparse.Namespace) -> Column:
    wanted = Filter(status=state, project=options.project_name, assignee=options.assignee)
    _, total = tasks.find(db, wanted, search=options.search, limit=0, offset=0)
    most, newest = options.limit or total, state in TERMINAL
    offset, limit = (max(0, total - most), most) if newest else (0, total)
    found, _ = tasks.find(db, wanted, search=options.search, limit=limit, offset=offset)
    if not newest:
        found = sorted(found, key=lambda one: URGENCY[one.priority])[:most]
    return Column(state, total, *_whole(db, found))


def _whole(db: Connection, found: Iterable[Task]) -> tuple[list[Task], list[str]]:
    """Tasks with all their fields, and what each of them is waiting for."""
    whole = [tasks.get(db, one.task_id) for one in found]
    return whole, [task_needs.named(task_needs.blockers(db, one.number)) for one in whole]


def _filters(options: argparse.Namespace) -> str:
    """The filters, as they were typed."""
    given = [("--status", state) for state in options.status]
    named = ("--project-name", options.project_name), ("--assignee", options.assignee)
    given += [one for one in (*named, ("--search", options.search)) if one[1] is not None]
    return " ".join(f"{option} {shlex.quote(value)}" for option, value in given)


def _show_column(column: Column) -> None:
    terminal.line((column.state, column.state), f"  {column.total}")
    for task, waits_for in zip(column.tasks, column.waiting, strict=True):
        _show_task(task, waits_for, indent=2, state=False)
    if more := column.total - len(column.tasks):
        which = "older" if column.state in TERMINAL else "less urgent"
        terminal.line((f"  … {more} {which}; --limit 0 shows all", "dim"), hang=4)


def _show_task(task: Task, waits_for: str, **how: Any) -> None:
    facts = [f"held by {task.holder}"] if task.holder else []
    facts += [f"waits for {waits_for}"] if waits_for else []
    show_task.line(task._asdict(), *facts, **how)


# What can be worked on, and what one holds.


def _show_list(db: Connection, options: argparse.Namespace) -> None:
    wanted = Filter(project=options.project_name, assignee=options.assignee)
    with db:
        every = _mine(db, wanted) if options.mine else tasks.queue(db, wanted, ALL, besides=None)
        found, waiting = _whole(db, every[: options.limit or None])
    if options.json:
        terminal.emit({"total": len(every), "tasks": [_json(one) for one in found]})
        return
    for task, waits_for in zip(found, waiting, strict=True):
        _show_task(task, waits_for)
    if more := len(every) - len(found):
        terminal.note(f"{more} more; --limit 0 shows all")
    if every:
        return
    among = f" that matches {given}" if (given := _filters(options)) else ""
    if options.mine:
        terminal.note(f"you hold no task{among}; colibri claim takes the most urgent free one")
    else:
        terminal.note(
            f"no task{among} can be worked on now; colibri tasks shows what each waits for"
        )


def _mine(db: Connection, wanted: Filter) -> list[Task]:
    """What the person at the terminal holds, in all their sessions."""
    found: list[Task] = []
    for session in sessions.open_of(db, person.name()):
        mine, _ = tasks.find(
            db, wanted._replace(holder=session.session_id), search=None, limit=ALL, offset=0
        )
        found += mine
    return sorted(found, key=lambda one: URGENCY[one.priority])


def _json(task: Task) -> dict[str, Any]:
    return {name: value for name, value in task._asdict().items() if name not in INTERNAL}


# One task.


def _show_one(db: Connection, options: argparse.Namespace) -> None:
    with db:
        task = lookup.task(db, options.task)
        dependencies = [tasks.get(db, id) for id in task.depends_on]
        needs = task_needs.needs(db, task, gate_file.read(load(options.project).project))
        blockers = [one.task_id for one in task_needs.blockers(db, task.number)]
    history = Timeline(db, task=task.task_id)
    last = ledger.last_seq(db)
    if options.json:
        terminal.emit(
            {
                **_json(task),
                "dependencies": [
                    {"task_id": one.task_id, "status": one.status, "title": one.title}
                    for one in dependencies
                ],
                "blockers": blockers,
                "next_states": tasks.next_states(task),
                "needs": needs,
                "history": [words.step_json(step) for step in history.advance(last)],
            }
        )
        return
    _show_fields(task, _holder(db, task), dependencies, needs)
    terminal.heading("history")
    printer = steps.Printer(hidden=(task.task_id,))
    for step in history.advance(last):
        printer.show(step)


def _holder(db: Connection, task: Task) -> str:
    """The session and agent that hold it, and their last sign of life."""
    if task.holder is None:
        return ""
    session = sessions.get(db, task.holder)
    sign = sessions.last_sign(db, task.holder)
    facts = (task.holder, session.agent, f"last sign of life {times.shown(sign.at)}")
    return " · ".join(filter(None, facts))


def _show_fields(
    task: Task, holder: str, dependencies: list[Task], needs: dict[str, list[str]]
) -> None:
    field = terminal.field
    field(task.task_id, (task.title, "bold"))
    field("status", (task.status, task.status), (f"  attempt {task.attempt}", "dim"))
    field("priority", (task.priority, show_task.PRIORITIES.get(task.priority, "")))
    field("project", task.project or "-")
    field("assignee", task.assignee or "-")
    if holder:
        field("held by", holder)
    field("created", times.shown(task.created_at))
    field("updated", times.shown(task.updated_at), (f"  version {task.version}", "dim"))
    for number, one in enumerate(dependencies):
        label = "" if number else "depends on"
        field(label, f"{one.task_id}  ", (one.status, one.status), f"  {one.title}")
    for number, state in enumerate(tasks.next_states(task)):
        missing = "; ".join(needs.get(state, ()))
        label = "" if number else "next"
        field(label, (state, state), f"  needs {missing}" if missing else "")
    if task.description:
        terminal.heading("description")
        terminal.paragraph(task.description, indent=2)
