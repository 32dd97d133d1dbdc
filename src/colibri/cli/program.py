"""This program as its user can type it: hints, and the demo, name commands that can be copied."""

import os
import re
import shlex
import shutil
import sys

from colibri.cli.settings import launch

NAMES = ("colibri", launch.DISTRIBUTION)  # of the scripts that an installer makes
_COMMAND = re.compile(r"(?<![\w/.-])colibri (?=--help\b|[a-z])")


def typed(text: str) -> str:
    """A message in which each `colibri COMMAND` becomes a command that starts this program."""
    return _COMMAND.sub(lambda _: f"{name()} ", text)


def verifier(*arguments: str) -> str:
    """The command of the independent verifier, which is one file and needs no Colibri.

    Any Python runs it: one that belongs to Colibri's own environment is not named.
    """
    import colibri_verify  # noqa: PLC0415 - 15 ms, only to know where the file is

    python = "python3" if sys.prefix != sys.base_prefix else sys.executable
    return shlex.join([python, colibri_verify.__file__, *arguments])


def name() -> str:
    """What was typed, as far as that can be known."""
    started = sys.argv[0]
    if started == "-c":  # as scripts/colibri does
        return _shown(launch.launcher() or "colibri")
    if started == os.path.join(launch.package(), "__main__.py"):  # python -m colibri
        return shlex.join(sys.orig_argv[: len(sys.orig_argv) - len(sys.argv) + 1])
    return _shown(started) if os.path.basename(started) in NAMES else "colibri"


def _shown(script: str) -> str:
    """Its name if that is enough; otherwise a path, relative within the working directory."""
    if launch.runs_once(script):  # uv puts it on the PATH of the program, not of its user
        return f"uvx {launch.DISTRIBUTION}"
    found = shutil.which("colibri")
    if found and os.path.realpath(found) == os.path.realpath(script):
        return "colibri"
    inside = os.path.relpath(script) if os.path.isabs(script) else script
    return shlex.quote(script if inside.startswith(os.pardir) else inside)
