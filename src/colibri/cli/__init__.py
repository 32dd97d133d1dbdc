"""The commands for people: the list of them, and how one is run and ends."""

import os
import sys
import textwrap
from collections.abc import Iterable
from importlib import import_module
from types import ModuleType

from colibri import VERSION
from colibri.cli import complaint
from colibri.cli.complaint import Misuse, nearest, question
from colibri.cli.show import help
from colibri.config import forget_relative_programs

# The commands, by purpose; each is a module of commands/, with HELP, DESCRIPTION, EPILOG, configure
# and run.
GROUPS = {
    "start here": ("demo", "setup", "doctor", "serve", "hook"),
    "see what your agents did": (
        *("status", "brief", "search", "sessions", "tasks", "agents", "trail", "log", "why"),
        "report",
    ),
    "plan and do work yourself": ("add", "edit", "claim", "release", "note", "move", "seal"),
    "prove it to others": ("verify", "export", "witness", "heads", "gate"),
    "maintain the ledger": ("team", "backup", "restore", "move-ledger", "erase", "completion"),
}
COMMANDS = [name for group in GROUPS.values() for name in group]

DESCRIPTION = """\
Colibri makes the work of AI agents accountable: a local MCP server that records every call in a
hash-chained ledger, in one SQLite file or on a PostgreSQL server that a team shares. An MCP client
starts it. No account is needed.
"""

EPILOG = """\
colibri COMMAND --help or colibri help COMMAND explains a command, with examples.
colibri --version prints the version.
"""

CLOSED_PIPE = 141  # as shells have it: 128 and the number of SIGPIPE


def main(arguments: list[str]) -> int:
    """Run a command; the exit code."""
    _print_anywhere()
    forget_relative_programs()
    try:
        return _main(*(arguments or ["--help"]))
    except BrokenPipeError:  # whoever read it has seen enough: `colibri log | head -1`
        return CLOSED_PIPE
    finally:
        _give_up_output()


def _main(name: str, *rest: str) -> int:
    try:
        code = _run(name, list(rest))
        sys.stdout.flush()  # here, where what goes wrong can be explained
    except BrokenPipeError:
        raise
    except complaint.EXPECTED as problem:
        return complaint.show(problem, f"colibri {name}")
    return code


def _run(name: str, rest: list[str]) -> int:
    if name == "help":
        name, rest = (rest[0], ["--help"]) if rest else ("--help", [])
    if name in ("-h", "--help", "--version"):
        print(f"colibri {VERSION}" if name == "--version" else overview(help.width()).rstrip())
        return 0
    if name.startswith("-"):
        hint = "the command comes first, its options after it; colibri --help lists the commands"
        raise Misuse(f"{name} is not a command", hint)
    if name not in COMMANDS:
        near = ["--version"] if name == "version" else nearest(name, COMMANDS)
        raise Misuse(f"there is no command {name}", question(near) or "colibri --help lists them")
    code: int = command(name).run(parser_of(name).parse_args(rest))
    return code


def command(name: str) -> ModuleType:
    """The module of a command; only that of the one to run is loaded, which starts far sooner."""
    return import_module(f"colibri.cli.commands.{name.replace('-', '_')}")


def parser_of(name: str) -> help.Parser:
    """The parser of a command."""
    module = command(name)
    parser = help.Parser(
        prog=f"colibri {name}", description=module.DESCRIPTION, epilog=module.EPILOG
    )
    module.configure(parser)
    return parser


def overview(width: int) -> str:
    """The list of commands, by purpose."""
    parts = ["usage: colibri COMMAND [options]\n", help.flow(DESCRIPTION, width)]
    parts += [_group(title, names, width) for title, names in GROUPS.items()]
    return "\n".join((*parts, help.flow(EPILOG, width)))


def _group(title: str, names: Iterable[str], width: int) -> str:
    lines = [f"{title}:"]
    for name in names:
        start = f"  {name:<12}"
        lines += textwrap.wrap(
            command(name).HELP, width, initial_indent=start, subsequent_indent=" " * len(start)
        )
    return "\n".join((*lines, ""))


def _print_anywhere() -> None:
    """Print even if stdout is closed, and escape characters that the terminal cannot encode."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # it was closed when we started
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
        getattr(sys, name).reconfigure(errors="backslashreplace")


def _give_up_output() -> None:
    """Drop what cannot be written, or the interpreter would try again at exit and complain."""
    for descriptor, stream in ((1, sys.stdout), (2, sys.stderr)):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)
