"""`colibri claim`: take a task, so that nobody else changes it."""

import argparse
from typing import Any

from colibri.cli import lookup, person, project, terminal
from colibri.cli.show import task
from colibri.store import task_needs, tasks

HELP = "take a task, or the most urgent one that is free"

DESCRIPTION = """\
Take a task: while you hold it, agents and other people cannot change it. Without TASK you take the
most urgent one that can be worked on, or get the one that you already hold.

A claim ends when the task does, when you release it, or when you seal your session. When you have
done nothing for COLIBRI_CLAIM_MINUTES, somebody else may take it over, and that is recorded.
"""

EPILOG = """\
examples:
  colibri claim
  colibri claim T-0004
  colibri claim --project-name site

--json prints the task as task_update answers it, or {task: null} if nothing is free; a refusal is
{error: {code, message}}.

Exit codes: 0 yours, 1 refused or nothing is free, 2 a mistyped id, 73 configuration, 75 resource.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "task", metavar="TASK", type=lookup.task_id, nargs="?", help="the task to take"
    )
    parser.add_argument("--project-name", metavar="NAME", help="without TASK: only this project")
    terminal.alone_option(parser, "TASK")
    project.options(parser)


def run(options: argparse.Namespace) -> int:
    if options.task is not None:
        terminal.refuse_filters(options)
    with person.at_work(options) as me:
        if options.task is not None:
            found = [me.call("task_update", {"task_id": options.task, "claim": True})]
        else:
            given = {"project": options.project_name} if options.project_name else {}
            found = me.call("task_next_actions", {"claim": True, **given})["tasks"]
        waits_for = _blockers(me, found)
    if options.json:
        terminal.emit(found[0] if found else {"task": None})
    elif found:
        task.line(found[0], "yours", *waits_for)
    else:
        terminal.note(
            "no task is free; colibri tasks shows what each waits for, colibri add creates one"
        )
    return 0 if found else 1


def _blockers(me: person.Person, found: list[dict[str, Any]]) -> list[str]:
    """What a task that was taken waits for: it cannot be in APPLY before that has ended."""
    with me.looking() as db:
        waits_for = [task_needs.blockers(db, tasks.number_of(one["task_id"])) for one in found]
    return [f"waits for {task_needs.named(blockers)}" for blockers in waits_for if blockers]
