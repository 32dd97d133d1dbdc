"""How every command fails: what is wrong, what to do, and the exit code.

    colibri: error: there is no session S-12
    colibri: hint: did you mean S-1? colibri sessions lists sessions

| exit code | raised as |
|---|---|
| 1 | Complaint, Refused |
| 2 | Misuse: the command line itself is wrong |
| 73 | ConfigError |
| 75 | ResourceError, OSError |
| 130 | KeyboardInterrupt; its text says how far things had come |
"""

import difflib
import os
import sys
from collections.abc import Sequence

from colibri.cli import program
from colibri.core.errors import ConfigError, Refused, ResourceError
from colibri.core.visible import visible

INTERRUPTED = 130


class Complaint(Exception):
    """A command cannot do what was asked."""

    def __init__(self, message: str, hint: str = "", code: int = 1) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.code = code


class Misuse(Complaint):
    """The command line is wrong; without a hint it points to the command's help."""

    def __init__(self, message: str, hint: str = "", *, near: Sequence[str] = ()) -> None:
        super().__init__(message, hint, 2)
        self.near = near


EXPECTED = (Complaint, ConfigError, ResourceError, Refused, OSError, KeyboardInterrupt)


def show(problem: BaseException, command: str) -> int:
    """Report one of EXPECTED on stderr; return the exit code."""
    complaint = _complaint(problem)
    hint = complaint.hint
    if isinstance(complaint, Misuse) and not hint:
        hint = f"{question(complaint.near)} {command} --help explains what it takes".lstrip()
    say(f"error: {complaint.message}")
    if hint:
        say(f"hint: {program.typed(hint)}")
    return complaint.code


def say(text: str) -> None:
    """A line on stderr."""
    print(f"colibri: {visible(text)}", file=sys.stderr)


def why(problem: OSError) -> str:
    """What the system says is wrong."""
    return problem.strerror or str(problem)


def nearest(word: str, known: Sequence[str]) -> list[str]:
    """What may have been meant."""
    return difflib.get_close_matches(word, known, cutoff=0.6)


def question(near: Sequence[str]) -> str:
    """Was it one of these?"""
    return f"did you mean {' or '.join(near)}?" if near else ""


def _complaint(problem: BaseException) -> Complaint:
    match problem:
        case Complaint():
            return problem
        case ConfigError():
            return Complaint(problem.message, code=os.EX_CANTCREAT)
        case ResourceError():
            return Complaint(problem.message, problem.hint, os.EX_TEMPFAIL)
        case Refused():
            return Complaint(problem.message, str(problem.fields.get("hint", "")))
        case OSError():
            where = f"cannot use {problem.filename}: " if problem.filename else ""
            return Complaint(where + why(problem), code=os.EX_TEMPFAIL)
    return Complaint(" ".join(["interrupted", *map(str, problem.args)]), code=INTERRUPTED)
