"""The commands for people, one module each: HELP, DESCRIPTION, EPILOG, configure(), run().

Words about what went wrong go to stderr, as `colibri: error: …` and perhaps `colibri: hint: …`.
"""

import argparse
import os
import sys

from colibri import VERSION
from colibri.cli import export, report, serve
from colibri.core.errors import ConfigError, Refused, ResourceError

COMMANDS = {"serve": serve, "export": export, "report": report}

DESCRIPTION = """\
Colibri makes the work of AI agents accountable: a local MCP server that records every call in a
hash-chained ledger, in one SQLite file. An MCP client starts it; there is nothing to log in to.
"""


def main(arguments: list[str]) -> int:
    """Run a command; the exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if "run" not in options:
        parser.print_help()
        return 0
    try:
        code: int = options.run(options)
    except (ConfigError, ResourceError, Refused, OSError) as problem:
        return _explain(problem)
    except KeyboardInterrupt:
        return _say("interrupted", "", 130)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="colibri", description=DESCRIPTION)
    parser.add_argument("--version", action="version", version=f"colibri {VERSION}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for name, module in COMMANDS.items():
        command = commands.add_parser(
            name,
            help=module.HELP,
            description=module.DESCRIPTION,
            epilog=module.EPILOG,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        module.configure(command)
        command.set_defaults(run=module.run)
    return parser


def _explain(problem: Exception) -> int:
    """Say what went wrong and what to do; its exit code."""
    if isinstance(problem, ConfigError):
        return _say("; ".join(problem.problems), "", os.EX_CANTCREAT)
    if isinstance(problem, ResourceError):
        return _say(problem.message, problem.hint, os.EX_TEMPFAIL)
    if isinstance(problem, Refused):
        return _say(problem.message, "", 1)
    if isinstance(problem, BrokenPipeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # or the interpreter complains at its end
        return 1
    return _say(str(problem), "", os.EX_TEMPFAIL)


def _say(error: str, hint: str, code: int) -> int:
    print(f"colibri: error: {error}", file=sys.stderr)
    if hint:
        print(f"colibri: hint: {hint}", file=sys.stderr)
    return code
