"""Gates: rules in a project's colibri.toml that compare an agent's claims with its deeds.

    [gate.done]                 # a task becomes DONE only after
    command = "pytest*"         # a command that its host has seen run: * is any text
    exit = 0                    # with this exit code (0 if not given)
    after_last_edit = true      # and begun after the session's last edit (true if not given)

    [gate.edit]                 # files are edited only while
    state = "APPLY"             # the session holds a task in this state or a later one

A `*` covers no shell operator, and an operator in a command matches only itself: `pytest*` is not
`pytest || true`. Operators inside quotes count too, because this is not a shell.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from colibri.core.canonical import MAX_INTEGER
from colibri.core.errors import Malformed
from colibri.core.frozen import Frozen
from colibri.core.states import TERMINAL, Status

FILE = "colibri.toml"
MAX_PATTERN = 1024  # characters
MAX_COMMAND = 4096  # characters of a command that are kept: one of this length may have been cut
RUNS = 64  # how many of a session's last commands are checked
_OPERATORS = re.compile("([;&|<>()$`!#\n\r])")
_REDACTED = "[redacted:"  # replaces a secret, and may have replaced more of the command
_STATES = tuple(status.value for status in Status if status not in TERMINAL)
_KEYS: Mapping[str, tuple[str, ...]] = {
    "done": ("command", "exit", "after_last_edit"),
    "edit": ("state",),
}
_AT_LINE = re.compile(r" \(at line (\d+), column \d+\)$")


class Done(Frozen):
    """Which command must have been seen before a task becomes DONE."""

    __slots__ = ("after_last_edit", "command", "exit")
    command: str
    exit: int
    after_last_edit: bool

    def __str__(self) -> str:
        after = ", begun after the last edit" if self.after_last_edit else ""
        return f"`{self.command}` with exit code {self.exit}{after}"


class Gates(Frozen):
    """The rules of a project; `problem` says why its file, if there is one, cannot be used."""

    __slots__ = ("digest", "done", "edit", "problem")
    digest: str | None  # SHA-256 of the file
    done: Done | None
    edit: str | None  # the first state in which files may be edited
    problem: str | None


NONE = Gates(digest=None, done=None, edit=None, problem=None)


def parse(text: str) -> tuple[Done | None, str | None]:
    """The rules in a colibri.toml; Malformed names the line, and what to do."""
    import tomllib  # noqa: PLC0415 - only a project with rules pays for it

    try:
        read = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as problem:
        what, at = str(problem), _AT_LINE.search(str(problem))
        line = int(at[1]) if at else text.count("\n") + 1
        raise _wrong(line, f"{_AT_LINE.sub('', what)}; correct the TOML") from None
    _check_tables(text, read, ("gate",))
    tables = read.get("gate", {})
    _check_tables(text, tables, tuple(_KEYS))
    return _done(text, tables.get("done")), _edit(text, tables.get("edit"))


def _check_tables(text: str, read: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for key, value in read.items():
        if key not in known:
            what = f"{key} is not known: use [gate.done] and [gate.edit] only"
            raise _wrong(_line_of(text, key), what)
        if not isinstance(value, dict):
            what = f"{key} must be a table: write [gate.done] or [gate.edit] on a line of its own"
            raise _wrong(_line_of(text, key), what)


def _done(text: str, table: Mapping[str, Any] | None) -> Done | None:
    if table is None:
        return None
    _refuse_unknown(text, "done", table)
    command = table.get("command")
    if not isinstance(command, str) or not 0 < len(command.strip()) <= MAX_PATTERN:
        what = 'command must be a pattern such as "pytest*"'
        raise _wrong(
            _line_of(text, "command", "done"), f"{what}, of at most {MAX_PATTERN} characters"
        )
    exit, after = table.get("exit", 0), table.get("after_last_edit", True)
    if type(exit) is not int or not -MAX_INTEGER <= exit <= MAX_INTEGER:
        raise _wrong(_line_of(text, "exit"), "exit must be a whole number such as 0")
    if type(after) is not bool:
        raise _wrong(_line_of(text, "after_last_edit"), "after_last_edit must be true or false")
    return Done(command=command.strip(), exit=exit, after_last_edit=after)


def _edit(text: str, table: Mapping[str, Any] | None) -> str | None:
    if table is None:
        return None
    _refuse_unknown(text, "edit", table)
    state = table.get("state")
    if state not in _STATES:
        what = f"state must be one of {', '.join(_STATES)}"
        raise _wrong(_line_of(text, "state", "edit"), what)
    return str(state)


def _refuse_unknown(text: str, name: str, table: Mapping[str, Any]) -> None:
    for key in table:
        if key not in _KEYS[name]:
            known = ", ".join(_KEYS[name])
            raise _wrong(_line_of(text, key), f"{key} is not known: [gate.{name}] has {known}")


def _line_of(text: str, *keys: str) -> int:
    """The line of the first of these keys that is in the file; the TOML parser gives no lines."""
    lines = [line.partition("#")[0] for line in text.splitlines()]
    for key in keys:
        for number, line in enumerate(lines, 1):
            if key in line.partition("=")[0]:
                return number
    return 1


def _wrong(line: int, what: str) -> Malformed:
    return Malformed(f"line {line}: {what}")


def matches(pattern: str, command: str) -> bool:
    """Whether a command matches a pattern and appears to be complete."""
    if len(command) >= MAX_COMMAND or _REDACTED in command:
        return False
    wanted, given = _OPERATORS.split(pattern), _OPERATORS.split(command)
    return wanted[1::2] == given[1::2] and all(map(_covers, wanted[::2], given[::2]))


def is_like(pattern: str, command: str) -> bool:
    """Whether a command, or one in it, would match a pattern but for operators or its length."""
    parts = (part.strip() for part in _OPERATORS.split(command)[::2])
    return any(_covers(pattern, part) for part in (command, *parts))


def _covers(pattern: str, text: str) -> bool:
    """Match a pattern of texts and stars; each text is searched once, from left to right."""
    first, *others = pattern.split("*")
    if not others:
        return text == first
    *middle, last = others
    at = len(first)
    for part in middle:
        at = text.find(part, at)
        if at < 0:
            return False
        at += len(part)
    return text.startswith(first) and text.endswith(last) and len(text) - at >= len(last)


def may_edit(state: str, held: Iterable[str]) -> bool:
    """Whether a session that holds tasks in these states may edit."""
    open_states = _STATES[_STATES.index(state) :]
    return any(one in open_states for one in held)


def way_to(state: str, status: str) -> list[str]:
    """The states through which a task goes from one before it."""
    return list(_STATES[_STATES.index(status) + 1 : _STATES.index(state) + 1])
