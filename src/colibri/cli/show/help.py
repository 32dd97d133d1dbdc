"""Help texts in our own layout: that of argparse differs from one Python version to the next.

Prose is wrapped to the width of the terminal, at most WIDTH; lines that begin with a blank are
examples and tables, and stay as they are.
"""

import argparse
import re
import shutil
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from colibri.cli.complaint import Misuse, nearest

WIDTH = 80
_COLUMN = 24  # where the words about an option begin
_NARROW = 60  # below this they go under it

# nargs -> how often an argument may be given
_OFTEN: dict[int | str | None, str] = {None: "{}", "?": "[{}]", "*": "[{} ...]", "+": "{} [...]"}

# argparse's message -> ours; argparse offers no better way to tell errors apart.
_PHRASES = (
    (r"^the following arguments are required: (.+)", r"missing: \1"),
    (r"^one of the arguments (.+) is required$", r"one of these is missing: \1"),
    (r"^argument (.+): not allowed with argument (.+)", r"\1 and \2 do not go together"),
    (r"^argument (.+): ignored explicit argument (.+)", r"\1 takes no value, but was given \2"),
)


class Parser(argparse.ArgumentParser):
    """Says what is wrong in our words, and explains itself in our layout."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(add_help=False, allow_abbrev=False, **settings)
        self.add_argument("-h", "--help", action="help", help="show this")

    def format_help(self) -> str:
        """The whole help, as wide as the terminal."""
        return self.help_in(width())

    def help_in(self, width: int) -> str:
        """The whole help, in so many columns."""
        known = [action for action in self._actions if action.help != argparse.SUPPRESS]
        parts = [
            self.format_usage(),
            flow(self.description or "", width),
            _section("arguments", [one for one in known if not one.option_strings], width),
            _section("options", [one for one in known if one.option_strings], width),
            flow(self.epilog or "", width),
        ]
        return "\n".join(part for part in parts if part)

    def format_usage(self) -> str:
        """One line: what must be given; the rest is [options]."""
        return f"usage: {' '.join((self.prog, *self._required(), '[options]'))}\n"

    def _required(self) -> Iterator[str]:
        for action in self._actions:
            if not action.option_strings:
                yield _arguments(action)
            elif action.required:
                yield _invocation(action, action.option_strings[-1:])
        for group in self._mutually_exclusive_groups:
            if group.required:
                each = (_invocation(one, one.option_strings[-1:]) for one in group._group_actions)
                yield f"({' | '.join(each)})"

    def print_help(self, file: Any = None) -> None:
        """Flush at once and let errors through, which argparse swallows: the pipe may be closed."""
        print(self.format_help(), end="", file=file, flush=True)

    def parse_known_args(self, *args: Any, **settings: Any) -> Any:
        """Explain unknown arguments: argparse only repeats them."""
        options, unknown = super().parse_known_args(*args, **settings)
        if unknown:
            near = nearest(unknown[0], list(self._option_string_actions))
            raise Misuse(f"{self.prog} does not take {' '.join(unknown)}", near=near)
        return options, unknown

    def _match_argument(self, action: argparse.Action, pattern: str) -> int:
        try:
            count: int = super()._match_argument(action, pattern)
        except argparse.ArgumentError:
            raise Misuse(f"{_named(action)} needs a value") from None
        return count

    def _get_value(self, action: argparse.Action, text: str) -> Any:
        """A type rejects a value with one or two arguments: what is wrong, and perhaps a hint."""
        try:
            return super()._get_value(action, text)
        except argparse.ArgumentError as problem:
            wrong, *hint = getattr(problem.__context__, "args", ()) or (problem.message,)
            raise Misuse(f"{_named(action)}: {wrong}", *hint) from None

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            known = list(map(str, action.choices))
            wrong = f"{_named(action)}: {value!r} is not one of {', '.join(known)}"
            raise Misuse(wrong, near=nearest(str(value), known))

    def error(self, message: str) -> NoReturn:
        """What argparse itself finds."""
        for phrase, ours in _PHRASES:
            message = re.sub(phrase, ours, message)
        raise Misuse(message)


def width() -> int:
    """How wide a help text is."""
    return min(WIDTH, shutil.get_terminal_size().columns)


def flow(text: str, width: int) -> str:
    """Paragraphs wrapped to a width; lines that begin with a blank stay as they are."""
    lines: list[str] = []
    prose: list[str] = []
    for line in (*text.strip("\n").split("\n"), ""):
        if line and not line.startswith(" "):
            prose.append(line)
            continue
        lines += textwrap.wrap(" ".join(prose), width, break_on_hyphens=False)
        lines.append(line)
        prose = []
    return "\n".join(lines).strip("\n") + "\n" if any(lines) else ""


def _section(title: str, actions: Sequence[argparse.Action], width: int) -> str:
    if not actions:
        return ""
    return "\n".join((f"{title}:", *(line for one in actions for line in _entry(one, width)), ""))


def _entry(action: argparse.Action, width: int) -> Iterator[str]:
    names = action.option_strings
    given = f"  {_invocation(action, names) if names else _name(action)}"
    column = _COLUMN if width >= _NARROW else 6
    text = (action.help or "") % vars(action)
    words = textwrap.wrap(text, width - column, break_on_hyphens=False)
    if len(given) < column and words:
        yield f"{given:<{column}}{words.pop(0)}"
    else:
        yield given
    yield from (" " * column + line for line in words)


def _invocation(action: argparse.Action, names: Sequence[str]) -> str:
    return " ".join(filter(None, (", ".join(names), _arguments(action))))


def _arguments(action: argparse.Action) -> str:
    return "" if action.nargs == 0 else _OFTEN.get(action.nargs, "{} ...").format(_name(action))


def _name(action: argparse.Action) -> str:
    return action.metavar if isinstance(action.metavar, str) else action.dest.upper()


def _named(action: argparse.Action) -> str:
    return "/".join(action.option_strings) or _name(action)
