"""`colibri add`: plan a task, as an agent does with task_create."""

import argparse
from typing import Any

from colibri.cli import lookup, person, project, terminal
from colibri.cli.show import task

HELP = "plan a task"

DESCRIPTION = """\
Create a task. It begins in INIT, and agents find it as the next thing to do once everything it
depends on has ended.

The call goes through the server's own stages: it is checked and recorded as a call of an agent
would be, with human: and your account's name for the agent.
"""

EPILOG = """\
examples:
  colibri add "Let users change their time zone"
  colibri add "Publish 2.0" --depends-on T-0004 --depends-on T-0005 --priority high
  colibri add "Fix the login form" --description "Fails on Safari 17" --key bug-311

--json prints the task as task_create answers it; a refusal is {error: {code, message}}.

Exit codes: 0 created, 1 refused, 2 a value that no task can have, 73 configuration, 75 resource.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("title", metavar="TITLE", help="what is to be done, in one line")
    fields(parser, priority=" (default: medium)")
    parser.add_argument("--key", help="run twice with the same key, it creates one task")
    project.options(parser)


def fields(parser: argparse.ArgumentParser, *, priority: str = "") -> None:
    """The options that `edit` has as well; `priority` says what happens without that one."""
    parser.add_argument("--description", metavar="TEXT", help="details, and how to tell it is done")
    parser.add_argument("--project-name", metavar="NAME", help="a name that groups tasks")
    parser.add_argument(
        "--priority",
        metavar="LEVEL",
        choices=PRIORITIES,
        help=f"how urgent: {', '.join(PRIORITIES)}{priority}",
    )
    parser.add_argument("--assignee", metavar="NAME", help="who is to work on it")
    parser.add_argument(
        "--depends-on",
        metavar="TASK",
        type=lookup.task_id,
        action="append",
        help="a task that must end before this one can be in APPLY; repeatable",
    )


PRIORITIES = ("low", "medium", "high", "critical")


def given(options: argparse.Namespace) -> dict[str, Any]:
    """What the options of `fields` say, as the tools take it."""
    named = {
        "description": options.description,
        "project": options.project_name,
        "priority": options.priority,
        "assignee": options.assignee,
        "depends_on": options.depends_on,
    }
    return {name: value for name, value in named.items() if value is not None}


def run(options: argparse.Namespace) -> int:
    with person.at_work(options) as me:
        made = me.call(
            "task_create", {"title": options.title, "key": options.key, **given(options)}
        )
    if options.json:
        terminal.emit(made)
    else:
        task.line(made, *["there already"] * made["repeated"])
    return 0
