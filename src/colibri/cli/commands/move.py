"""`colibri move`: take a task through its states."""

import argparse

from colibri.cli import lookup, person, project, terminal
from colibri.cli.show import task
from colibri.core.states import TERMINAL, Status

HELP = "move a task to its next states, with the reason"

DESCRIPTION = """\
Move a task: INIT, GATHER, ANALYZE, PLAN, APPLY, VERIFY, DONE, in this order; VERIFY may go back to
GATHER for another attempt, and CANCELLED is possible at any time. Name one state or several in
turn; either all of the moves happen or none.

DONE and CANCELLED are final and need a reason. Moving a task that nobody holds makes it yours.
"""

EPILOG = """\
examples:
  colibri move T-0001 GATHER ANALYZE PLAN APPLY --why "the parser is the only place to change"
  colibri move T-0001 VERIFY DONE --why "all 212 tests pass, and the form works in Safari"
  colibri move T-0007 CANCELLED --why "the customer no longer needs it"

The reason is recorded as a thought about the task: a reflection if the task ends with the move,
else a decision; --type names another kind.

--json prints the task as task_update answers it; a refusal is {error: {code, message}}.

Exit codes: 0 moved, 1 refused, 2 a mistyped id or state, 73 configuration, 75 resource.
"""

TYPES = ("plan", "analysis", "decision", "reflection")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("task", metavar="TASK", type=lookup.task_id, help="the task to move")
    parser.add_argument(
        "states",
        metavar="STATE",
        nargs="+",
        type=str.upper,
        choices=[status.value for status in Status],
        help="the states to go through, the last of them where it ends up",
    )
    parser.add_argument("--why", metavar="TEXT", help="the reason; this is recorded")
    parser.add_argument("--type", choices=TYPES, help="what kind of thought the reason is")
    project.options(parser)


def run(options: argparse.Namespace) -> int:
    reason = {}
    if options.why is not None:
        usual = "reflection" if options.states[-1] in TERMINAL else "decision"
        reason = {"thought": {"type": options.type or usual, "content": options.why}}
    with person.at_work(options) as me:
        moved = me.call(
            "task_update", {"task_id": options.task, "status": options.states, **reason}
        )
    if options.json:
        terminal.emit(moved)
    else:
        task.line(moved)
    return 0
