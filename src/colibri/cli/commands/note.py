"""`colibri note`: record a thought of a person."""

import argparse

from colibri.cli import lookup, person, project, terminal
from colibri.cli.commands.move import TYPES

HELP = "record a thought, on its own or about a task"

DESCRIPTION = """\
Write down what you found or decided, and why. It is chained to the thoughts before it in your
session and cannot be changed later. With --task it is evidence for that task, which needs a thought
before it can be DONE or CANCELLED.
"""

EPILOG = """\
examples:
  colibri note "Postgres 14 is the oldest version that customers run"
  colibri note "Keep the old endpoint for a year" --task T-0003 --type decision

--json prints the thought as thought_record answers it; a refusal is {error: {code, message}}.

Exit codes: 0 recorded, 1 refused, 2 a text that no thought can have, 73 configuration, 75 resource.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("text", metavar="TEXT", help="what you found or decided, and why")
    parser.add_argument("--task", metavar="TASK", type=lookup.task_id, help="the task it is about")
    parser.add_argument(
        "--type", choices=TYPES, default="analysis", help="what kind of thought (default: analysis)"
    )
    parser.add_argument("--key", help="run twice with the same key, it records one thought")
    project.options(parser)


def run(options: argparse.Namespace) -> int:
    with person.at_work(options) as me:
        recorded = me.call(
            "thought_record",
            {
                "type": options.type,
                "content": options.text,
                "task_id": options.task,
                "key": options.key,
            },
        )
    if options.json:
        terminal.emit(recorded)
    else:
        about = f" about {recorded['task_id']}" if recorded["task_id"] else ""
        again = ", recorded before" if recorded["repeated"] else ""
        id, session = recorded["thought_id"], recorded["session_id"]
        terminal.line((id, "bold"), f"  {recorded['type']}{about} in {session}{again}")
    return 0
