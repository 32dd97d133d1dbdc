"""`colibri edit`: change what a task says; `colibri move` changes its state."""

import argparse
from typing import Any

from colibri.cli import lookup, person, project, terminal
from colibri.cli.commands import add
from colibri.cli.complaint import Misuse
from colibri.cli.show import task

HELP = "change the title, priority or other fields of a task"

DESCRIPTION = """\
Change the fields of a task. What you do not name stays as it is. A task that another session holds
cannot be changed, nor one that is DONE or CANCELLED.
"""

EPILOG = """\
examples:
  colibri edit T-0004 --priority critical
  colibri edit T-0004 --title "Publish 2.0 and tell users" --assignee ada
  colibri edit T-0004 --clear assignee --clear depends_on

--depends-on replaces the whole list. --json prints the task as task_update answers it; a refusal is
{error: {code, message}}.

Exit codes: 0 changed, 1 refused, 2 a value that no task can have, 73 configuration, 75 resource.
"""

CLEARED: dict[str, Any] = {"description": None, "project": None, "assignee": None, "depends_on": []}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("task", metavar="TASK", type=lookup.task_id, help="the task to change")
    parser.add_argument("--title", metavar="TEXT", help="what is to be done, in one line")
    add.fields(parser)
    parser.add_argument(
        "--clear",
        metavar="FIELD",
        choices=CLEARED,
        action="append",
        default=[],
        help=f"make this field empty: {', '.join(CLEARED)}; repeatable",
    )
    project.options(parser)


def run(options: argparse.Namespace) -> int:
    fields = add.given(options)
    if options.title is not None:
        fields["title"] = options.title
    for name in options.clear:
        if name in fields:
            raise Misuse(f"{name} cannot be both set and cleared")
    fields |= {name: CLEARED[name] for name in options.clear}
    if not fields:
        raise Misuse("name at least one field to change")
    with person.at_work(options) as me:
        changed = me.call("task_update", {"task_id": options.task, **fields})
    if options.json:
        terminal.emit(changed)
    else:
        task.line(changed)
    return 0
