"""What commands print: tables and colours on a terminal, plain text elsewhere, JSON for machines.

RULES OF OUTPUT
    stdout      what was asked for; stderr: errors, hints, progress
    --json      one JSON value (commands that follow print one a line), ASCII only
    terminal    tables and colours by rich; NO_COLOR and the width of the window are honoured
    pipe        no colour, nothing cut off, columns two blanks apart
    stored text goes through safe() before it is printed, whoever wrote it
"""

import argparse
import json
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

# Categories that can move the cursor, change what is read, or not be seen at all.
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})

STYLES = {
    "INIT": "dim",
    "GATHER": "cyan",
    "ANALYZE": "cyan",
    "PLAN": "blue",
    "APPLY": "yellow",
    "VERIFY": "magenta",
    "DONE": "green",
    "CANCELLED": "dim strike",
    "good": "bold green",
    "bad": "bold red",
    "refused": "red",
    "dim": "dim",
    "bold": "bold",
    "ok": "green",
    "warning": "yellow",
    "problem": "bold red",
    "added": "green",
    "removed": "red",
}


def json_option(parser: argparse.ArgumentParser, what: str = "print JSON for machines") -> None:
    """--json, the same everywhere."""
    parser.add_argument("--json", action="store_true", help=what)


def safe(text: str, *, lines: bool = False) -> str:
    """The text with everything invisible or dangerous written as \\x1b or \\u202e.

    With `lines`, line breaks and tabs stay.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        character if (lines and character in "\n\t") else _visible(character) for character in text
    )


def _visible(character: str) -> str:
    if unicodedata.category(character) not in _HIDDEN:
        return character
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")


def is_terminal() -> bool:
    """Whether stdout is one."""
    return sys.stdout.isatty()


def console(*, errors: bool = False) -> "Console":
    """Rich, told to take text as it is: no markup, no emoji codes, no guessed highlights."""
    from rich.console import Console  # noqa: PLC0415 - 60 ms that a pipe or --json need not wait

    return Console(stderr=errors, markup=False, emoji=False, highlight=False)


def emit(value: Any) -> None:
    """A JSON value on one line; ASCII, so that no stored text reaches the terminal raw."""
    print(json.dumps(value, ensure_ascii=True), flush=True)


def say(text: str = "", style: str = "", *, lines: bool = False) -> None:
    """A line, in a style of STYLES on a terminal."""
    clean = safe(text, lines=lines)
    if not is_terminal() or not style:
        print(clean)
        return
    console().print(clean, style=STYLES[style], soft_wrap=True)


def complain(error: str, hint: str = "") -> None:
    """What is wrong, and what to do, on stderr."""
    print(f"colibri: error: {safe(error)}", file=sys.stderr)
    if hint:
        print(f"colibri: hint: {safe(hint)}", file=sys.stderr)


def table(headings: Sequence[str], rows: Iterable[Sequence[str]], *, style_of: str = "") -> None:
    """Rows under headings; the column named `style_of` is coloured by its value."""
    cells = [[safe(cell) for cell in row] for row in rows]
    if is_terminal():
        _rich_table(headings, cells, style_of)
    else:
        _plain_table(headings, cells)


def _rich_table(headings: Sequence[str], cells: list[list[str]], style_of: str) -> None:
    from rich import box  # noqa: PLC0415 - see console()
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for heading in headings:
        # The last column takes what is left and folds; ids and states are never cut.
        shown.add_column(heading, overflow="fold", no_wrap=heading != headings[-1])
    for row in cells:
        shown.add_row(
            *(
                Text(cell, style=STYLES.get(cell, "") if heading == style_of else "")
                for heading, cell in zip(headings, row, strict=True)
            )
        )
    console().print(shown)


def _plain_table(headings: Sequence[str], cells: list[list[str]]) -> None:
    lines = [list(headings), *cells]
    widths = [max(len(line[column]) for line in lines) for column in range(len(headings))]
    for line in lines:
        print(
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        )
