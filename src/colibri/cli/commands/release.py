"""`colibri release`: free a task, even one that somebody else holds."""

import argparse

from colibri.cli import lookup, person, project, terminal
from colibri.cli.show import task
from colibri.core.errors import Refused
from colibri.store import tasks

HELP = "free a task that you or somebody else holds"

DESCRIPTION = """\
Free a task, so that the next agent or person can take it. You may also release a task that somebody
else holds, even while they work on it: they must then claim it again before they can change it.

The reason is recorded as a decision about the task.
"""

EPILOG = """\
examples:
  colibri release T-0004 --why "I will not get to it today"
  colibri release T-0009 --why "its agent has been looping for an hour"

--json prints the task as task_update answers it; a refusal is {error: {code, message}}.

Exit codes: 0 free, 1 refused or nobody holds it, 2 a mistyped id, 73 configuration, 75 resource.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("task", metavar="TASK", type=lookup.task_id, help="the task to free")
    parser.add_argument("--why", metavar="TEXT", required=True, help="the reason; this is recorded")
    project.options(parser)


def run(options: argparse.Namespace) -> int:
    thought = {"type": "decision", "content": options.why}
    change = {"task_id": options.task, "claim": False, "thought": thought}
    with person.at_work(options) as me:
        if _is_free(me, options.task):
            terminal.note(f"nobody holds {options.task}: there is nothing to release")
            return 1
        freed = me.call("task_update", change)
    if options.json:
        terminal.emit(freed)
    else:
        task.line(freed, "free")
    return 0


def _is_free(me: person.Person, id: str) -> bool:
    """Whether nobody holds a task; one that does not exist is for the server to refuse."""
    with me.looking() as db:
        try:
            return tasks.get(db, id).holder is None
        except Refused:
            return False
