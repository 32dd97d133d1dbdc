"""What commands print: tables and colours on a terminal, plain text elsewhere, JSON for machines.

RULES OF OUTPUT
    stdout      what was asked for; stderr: errors, hints, progress
    --json      one JSON value (commands that follow print one a line), ASCII only
    terminal    tables and colours by rich, with NO_COLOR plain; the width of the window is honoured
    pipe        no colour, nothing cut off or wrapped, columns two blanks apart
    stored text goes through safe() before it is printed, whoever wrote it; its own lines are
                indented, so that none can pass for one of ours
"""

import argparse
import json
import re
import sys
from collections.abc import Iterable, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from colibri.cli import complaint, program
from colibri.cli.complaint import Misuse
from colibri.core.visible import visible as safe

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

Span = str | tuple[str, str]  # text, or text and its style

NARROW = 60  # windows with fewer columns have no room for wide indents
LABEL = 12  # the width of the column of labels

# Shades of the 256-colour palette that are as readable on black as on white; the terminal's own
# yellow and cyan are not.
GREY, BLUE, CYAN, GREEN = "color(243)", "color(63)", "color(31)", "color(28)"
ORANGE, MAGENTA, RED = "color(130)", "color(163)", "color(196)"
STYLES = {
    "INIT": GREY,
    "GATHER": CYAN,
    "ANALYZE": CYAN,
    "PLAN": BLUE,
    "APPLY": ORANGE,
    "VERIFY": MAGENTA,
    "DONE": GREEN,
    "CANCELLED": f"{GREY} strike",
    "plan": f"bold {BLUE}",
    "analysis": f"bold {CYAN}",
    "decision": f"bold {ORANGE}",
    "reflection": f"bold {MAGENTA}",
    "good": f"bold {GREEN}",
    "bad": f"bold {RED}",
    "refused": RED,
    "dim": GREY,
    "bold": "bold",
    "ok": GREEN,
    "warning": ORANGE,
    "problem": f"bold {RED}",
    "added": GREEN,
    "removed": RED,
}
HASH = re.compile("[0-9a-f]{64}")


def limit_option(parser: argparse.ArgumentParser, what: str, default: int) -> None:
    """--limit, the same everywhere."""
    text = f"{what}; 0: all (default: {default or 'all'})"
    parser.add_argument("--limit", metavar="N", type=_count, default=default, help=text)


def _count(text: str) -> int:
    if not re.fullmatch("[0-9]{1,15}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number, 0 or more (0: all)")
    return int(text)


def alone_option(parser: argparse.ArgumentParser, name: str) -> None:
    """Mark the options added so far as useless with this argument; see refuse_filters()."""
    narrowing = [one for one in parser._actions if one.option_strings]
    parser.set_defaults(alone=(name, narrowing))


def refuse_filters(options: argparse.Namespace) -> None:
    """Misuse if a filter is given along with a single thing to show: it would have no effect."""
    name, narrowing = options.alone
    for one in narrowing:
        if getattr(options, one.dest, one.default) != one.default:
            raise Misuse(f"{one.option_strings[-1]} and {name} do not go together")


def is_terminal() -> bool:
    """Whether stdout is one."""
    return sys.stdout.isatty()


@cache
def console(*, errors: bool = False) -> "Console":
    """A rich console that prints text unchanged: no markup, no emoji codes, no highlighting."""
    from rich.console import Console  # noqa: PLC0415 - 60 ms that a pipe or --json need not wait

    made = partial(Console, stderr=errors, markup=False, emoji=False, highlight=False)
    # With NO_COLOR rich drops only colours and would still send bold.
    return made(color_system=None) if made().no_color else made()


def emit(value: Any) -> None:
    """A JSON value on one line; ASCII, so that no stored text reaches the terminal raw."""
    print(json.dumps(value, ensure_ascii=True), flush=True)


def note(text: str) -> None:
    """A remark about the result, on stderr."""
    complaint.say(program.typed(text))


def count(number: int, noun: str) -> str:
    """A number and its noun: 1 record, 2 records."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def say(text: str, style: str = "") -> None:
    """A line, in a style of STYLES on a terminal."""
    clean = safe(text)
    if not is_terminal() or not style:
        print(clean)
        return
    console().print(clean, style=STYLES[style], soft_wrap=True)


def line(*spans: Span, hang: int = 0, whole: bool = False) -> None:
    """A line made of pieces; on a terminal it wraps with an indent of `hang`.

    With `whole` the terminal itself breaks it, so that it can be copied in one piece. A hash that
    ends a line is never broken: it goes below instead, nearer to the edge if it must.
    """
    pieces = [(span, "") if isinstance(span, str) else span for span in spans]
    if not is_terminal():
        print("".join(safe(text) for text, _ in pieces).rstrip())
        return
    from rich.text import Text  # noqa: PLC0415 - see console()

    shown = Text()
    for text, style in pieces:
        shown.append(safe(text), style=STYLES.get(style, ""))
    shown.rstrip()
    width = console().width
    rows = shown.wrap(console(), width, overflow="fold")
    last = shown.plain.split(" ")[-1]
    ends_in_hash = len(last) <= width and HASH.search(last) is not None
    if len(rows) == 1 or (whole and not ends_in_hash):
        console().print(shown, soft_wrap=True)
        return
    if ends_in_hash:
        hang = max(0, min(hang, width - len(last)))
    begun = len(rows[0])
    rest = shown[begun + len(shown.plain[begun:]) - len(shown.plain[begun:].lstrip()) :]
    _print_under(0, rows[:1])
    _print_under(hang, rest.wrap(console(), max(width - hang, 10), overflow="fold"))


def paragraph(text: str, *, indent: int) -> None:
    """Stored text with its own line breaks, every line indented."""
    clean = safe(text, lines=True)
    if not is_terminal():
        print("\n".join(" " * indent + row for row in clean.split("\n")))
        return
    from rich.text import Text  # noqa: PLC0415 - see console()

    full = console().width
    hashes = [len(word) for word in clean.split() if HASH.search(word) and len(word) <= full]
    indent = min([indent, *(full - length for length in hashes)])
    _print_under(indent, Text(clean).wrap(console(), max(full - indent, 10), overflow="fold"))


def _print_under(indent: int, rows: "Iterable[Text]") -> None:
    from rich.text import Text  # noqa: PLC0415 - see console()

    shown = []
    for row in rows:
        row.rstrip()
        shown.append(Text(" " * indent).append_text(row))
    console().print(Text("\n").join(shown), soft_wrap=True)


def field(label: str, *spans: Span, whole: bool = False) -> None:
    """A label and its value."""
    line((f"{label:<{LABEL}}", "dim"), *spans, hang=LABEL, whole=whole)


def hang(wide: int, narrow: int = 2) -> int:
    """The indent of wrapped lines: `wide`, or `narrow` in a narrow window."""
    return narrow if is_terminal() and console().width < NARROW else wide


def heading(text: str) -> None:
    """A blank line and a bold title."""
    print()
    say(text, "bold")


def table(headings: Sequence[str], rows: Iterable[Sequence[str]], *, style_of: str = "") -> None:
    """Rows under headings; the column named `style_of` is coloured by its value."""
    cells = [[safe(cell) for cell in row] for row in rows]
    if not is_terminal():
        _plain_table(headings, cells)
        return
    styled = [
        [(cell, cell if name == style_of else "") for name, cell in zip(headings, row, strict=True)]
        for row in cells
    ]
    if console().width >= NARROW:
        _rich_table(headings, styled)
        return
    for row in styled:  # no headings or columns: each row is a line that wraps
        line(*((f"{cell}  ", style) for cell, style in row if cell), hang=2)


def _rich_table(headings: Sequence[str], rows: list[list[tuple[str, str]]]) -> None:
    from rich import box  # noqa: PLC0415 - see console()
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for heading in headings:
        # The last column takes what is left and folds; ids and states are never cut.
        shown.add_column(heading, overflow="fold", no_wrap=heading != headings[-1])
    for row in rows:
        shown.add_row(*(Text(cell, style=STYLES.get(style, "")) for cell, style in row))
    console().print(shown)


def _plain_table(headings: Sequence[str], cells: list[list[str]]) -> None:
    lines = [list(headings), *cells]
    widths = [max(len(line[column]) for line in lines) for column in range(len(headings))]
    for line in lines:
        print(
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        )
