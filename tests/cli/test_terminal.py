"""src/colibri/cli/terminal.py: what is printed cannot hurt the reader's terminal."""

import json
import re
import sys

import pytest

from colibri.cli import complaint, terminal
from colibri.cli.complaint import Complaint
from tests.support.sample_project import Shown
from tests.support.terminal import run_in_terminal


def test_json_is_one_line_of_ascii(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.emit({"text": "\x9b\u202e é"})
    printed = capsys.readouterr().out
    assert printed.isascii()
    assert printed.count("\n") == 1
    assert json.loads(printed) == {"text": "\x9b\u202e é"}


def test_one_of_a_kind_is_singular() -> None:
    assert [terminal.count(n, "record") for n in (0, 1, 2, 1234)] == [
        *("0 records", "1 record", "2 records", "1,234 records")
    ]


def test_a_pipe_gets_columns_that_are_never_cut(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.table(["ID", "TITLE"], [["T-0001", "x" * 200], ["T-10000", "é\x1b"]])
    assert capsys.readouterr().out.splitlines() == [
        "ID       TITLE",
        f"T-0001   {'x' * 200}",
        "T-10000  é\\x1b",
    ]


PRINTING = """
from colibri.cli import terminal
terminal.table(["ID", "STATE"], [["[red]T-1[/]", "DONE"]], style_of="STATE")
terminal.say("fine", "good")
terminal.say("plain")
"""


def test_a_terminal_gets_colours() -> None:
    code, shown = run_in_terminal([sys.executable, "-c", PRINTING], env={"NO_COLOR": ""})
    assert code == 0
    assert "[red]T-1[/]" in shown, "markup in stored text is text"
    assert "\x1b[38;5;28mDONE" in shown
    assert "\x1b[1;38;5;28mfine" in shown


def test_no_color_is_honoured() -> None:
    _, shown = run_in_terminal([sys.executable, "-c", PRINTING], env={"NO_COLOR": "1"})
    assert "\x1b[38" not in shown
    assert "DONE" in shown
    assert "fine" in shown


LINES = """
from colibri.cli import terminal
terminal.line(("12:00:00", "dim"), "  ", ("T-0001", "bold"), "  one two three four five", hang=10)
terminal.line("日本語日本語日本語 日本語日本語", hang=2)
terminal.line("root ", "f" * 40, whole=True)
terminal.field("label", "a value that is wrapped under itself")
terminal.paragraph("two\\nlines, of which \\x1b one is longer than the window", indent=4)
terminal.line("blanks at the end    ")
"""


def test_lines_are_wrapped_under_their_column_and_hashes_are_left_whole() -> None:
    """A window of 30 columns; Chinese, Japanese and Korean characters take two."""
    code, shown = run_in_terminal([sys.executable, "-c", LINES], columns=30, env={"NO_COLOR": "1"})
    assert code == 0
    assert re.sub(r"\x1b\[[0-9;]*m", "", shown).splitlines() == [
        "12:00:00  T-0001  one two",
        "          three four five",
        "日本語日本語日本語",
        "  日本語日本語",
        f"root {'f' * 40}",
        "label       a value that is",
        "            wrapped under",
        "            itself",
        "    two",
        "    lines, of which \\x1b one",
        "    is longer than the window",
        "blanks at the end",
    ]


def test_a_pipe_gets_lines_whole(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.line(("12:00", "dim"), "  ", "x" * 200, "  ", hang=7)
    terminal.paragraph("two\nlines\x1b", indent=4)
    terminal.field("label", "value")
    out = capsys.readouterr().out
    assert out == f"12:00  {'x' * 200}\n    two\n    lines\\x1b\nlabel       value\n"


def test_words_go_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    assert complaint.show(Complaint("no \x1b", "try \u202e", 7), "") == 7
    assert complaint.show(Complaint("no hint"), "") == 1
    terminal.note("by the way\n")
    assert capsys.readouterr() == (
        "",
        "colibri: error: no \\x1b\ncolibri: hint: try \\u202e\ncolibri: error: no hint\n"
        "colibri: by the way\\n\n",
    )


def test_a_table_in_a_narrow_window_has_no_columns() -> None:
    program = """
from colibri.cli import terminal
rows = [["the file", "bad", ""], ["its copy", "DONE", "looks good"]]
terminal.table(["WHAT", "STATE", "WHY"], rows, style_of="STATE")
"""
    code, shown = run_in_terminal([sys.executable, "-c", program], columns=20, env={"NO_COLOR": ""})
    assert code == 0
    assert shown.splitlines() == [
        "the file  \x1b[1;38;5;196mbad\x1b[0m",
        "its copy  \x1b[38;5;28mDONE\x1b[0m",
        "  looks good",
    ]


def luminance(number: int) -> float:
    """Of a colour of the 256-colour palette, as WCAG defines it."""
    levels = (0, 95, 135, 175, 215, 255)
    grey = 8 + 10 * (number - 232)
    cube = number - 16
    red, green, blue = (
        (grey, grey, grey)
        if number >= 232
        else (levels[cube // 36], levels[cube // 6 % 6], levels[cube % 6])
    )
    shares = (
        share / 12.92 if share <= 0.03928 else ((share + 0.055) / 1.055) ** 2.4
        for share in (red / 255, green / 255, blue / 255)
    )
    return sum(
        weight * share for weight, share in zip((0.2126, 0.7152, 0.0722), shares, strict=True)
    )


@pytest.mark.parametrize("style", terminal.STYLES.values())
def test_every_colour_is_readable_on_black_and_on_white(style: str) -> None:
    named = re.findall(r"color\((\d+)\)", style)
    assert named or style == "bold"
    for colour in map(luminance, map(int, named)):
        assert min(1.05 / (colour + 0.05), (colour + 0.05) / 0.05) > 3.9
    assert not re.search("dim|yellow|cyan|white|black", style)


@pytest.mark.parametrize("number", [7, 1_204, 123_456, 9_999_999])
def test_a_hash_is_never_broken_at_80_columns(number: int) -> None:
    """However many digits the number before it has, and wherever the line puts it."""
    hash = "0123456789abcdef" * 4
    program = f"""
from colibri.cli import terminal
terminal.field("head", "{number}:{hash}", whole=True)
terminal.line(" " * 10, "root {number}:{hash}", hang=10, whole=True)
terminal.line("not checked  of record {number}, {hash}", hang=13)
"""
    code, shown = run_in_terminal(
        [sys.executable, "-c", program], columns=80, env={"NO_COLOR": "1"}
    )
    assert (code, shown.count(hash)) == (0, 3)
    assert max(map(len, shown.splitlines())) <= 80


READING = (
    *("status", "brief", "sessions", "tasks", "tasks T-0001", "trail --all", "log", "log 1"),
    *("log --payload", "agents", "search house", "verify", "backup copy.db --force"),
    "export --all -o all.json --force",
)


@pytest.mark.parametrize("command", READING)
def test_no_command_breaks_a_hash_at_80_columns(shown: Shown, command: str) -> None:
    """A piece of one would be a run of hex digits that is too short; a log's id has 32."""
    text = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", shown(80, *command.split()))
    lines = [piece for line in text.split("\n") for piece in (line[:80], line[80:])]
    runs = [run for line in lines for run in re.findall(r"(?<![0-9a-f])[0-9a-f]{20,}", line)]
    assert {len(run) for run in runs} <= {32, 64}
