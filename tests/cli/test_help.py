"""cli/__init__.py and cli/help.py: the overview, the help of every command, and what is wrong."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from colibri import cli
from colibri.cli.show import help
from tests.support.client import environment, execute, execute_raw
from tests.support.sample_project import Printed, Workshop
from tests.support.terminal import COLIBRI

NAMES = cli.COMMANDS
EXAMPLE = re.compile(r"^  (?:\w+=\S+ )*colibri (\S+)(.*?)(?:  .*)?$", re.MULTILINE)


def test_the_overview_names_each_command_once_in_its_group() -> None:
    """Specification 1.2: a user who knows nothing finds the next step."""
    text = cli.overview(80)
    listed = re.findall(r"^  ([\w-]+) +\S", text, re.MULTILINE)
    assert sorted(listed) == sorted(NAMES)
    assert listed.index("serve") < listed.index("status") < listed.index("export")
    assert "colibri --version prints the version" in text
    assert text.startswith("usage: colibri COMMAND [options]\n\nColibri makes ")


@pytest.mark.parametrize("name", NAMES)
def test_each_command_explains_itself_with_examples_that_are_right(name: str) -> None:
    """An example that the parser refuses would teach a mistake."""
    module = cli.command(name)
    assert module.HELP[0].islower()
    assert not module.HELP.endswith(".")
    assert len(module.DESCRIPTION.split()) > 5
    assert "examples:\n" in module.EPILOG
    found = EXAMPLE.findall(module.EPILOG.partition("examples:\n")[2].partition("\n\n")[0])
    assert [command for command, _ in found if command == name]
    for command, rest in found:
        given = (
            rest.partition("|")[0]
            .partition(">")[0]
            .partition("<")[0]
            .replace("LOG@", f"colibri/{'0' * 32}@")
            .replace("SIZE:HEX", "5:HEX")
            .replace("HEX", "0" * 64)
        )
        cli.parser_of(command).parse_args(shlex.split(given))


WITHOUT_JSON = ("serve", "hook", "completion")


@pytest.mark.parametrize("name", [name for name in NAMES if name not in WITHOUT_JSON])
def test_help_says_what_json_prints_and_what_exit_codes_mean(name: str) -> None:
    text = " ".join(cli.parser_of(name).help_in(80).split())
    assert "--json prints " in text
    assert "Exit codes: 0 " in text


@pytest.mark.parametrize("name", ["status", "sessions", "tasks", "trail", "log"])
def test_help_fits_a_terminal(name: str) -> None:
    assert max(map(len, cli.parser_of(name).help_in(80).splitlines())) <= 80
    narrow = cli.parser_of(name).help_in(40).partition("examples:")[0]
    assert max(map(len, narrow.splitlines()[1:])) <= 40


def test_the_help_of_edit_and_move_is_about_them() -> None:
    """`edit` shares options with `add`, but not its defaults."""
    edit, add = (" ".join(cli.parser_of(name).help_in(80).split()) for name in ("edit", "add"))
    assert "default: medium" in add and "default" not in edit
    assert "make this field empty: description, project, assignee, depends_on" in edit
    assert "2 a mistyped id or state" in " ".join(cli.parser_of("move").help_in(80).split())


def test_help_has_what_must_be_given_in_its_first_line_and_explains_the_rest() -> None:
    lines = cli.parser_of("export").help_in(80).splitlines()
    assert lines[0] == (
        "usage: colibri export --output FILE"
        " (--all | --session ID | --task ID | --thought ID [...]) [options]"
    )
    assert "  -o, --output FILE     the file to write; - is stdout" in lines
    log = cli.parser_of("log").help_in(80)
    assert log.startswith("usage: colibri log [SEQ] [options]\n")
    assert "  SEQ                   one record, in full\n" in log


def test_help_of_options_that_others_may_declare() -> None:
    parser = help.Parser(prog="colibri nap")
    parser.add_argument("--very-long-option-name", metavar="MINUTES", help="100 %% of %(dest)s")
    parser.add_argument("--quiet", action="store_true")
    parser.add_argument("--pair", nargs=2, metavar="N")
    parser.add_argument("words", nargs="*")
    parser.add_argument("--hidden", help="==SUPPRESS==")
    text = parser.help_in(80)
    assert text.splitlines() == [
        "usage: colibri nap [WORDS ...] [options]",
        "",
        "arguments:",
        "  WORDS",
        "",
        "options:",
        "  -h, --help            show this",
        "  --very-long-option-name MINUTES",
        "                        100 % of very_long_option_name",
        "  --quiet",
        "  --pair N ...",
    ]


def test_prose_is_wrapped_and_what_is_indented_stays() -> None:
    kept = "  as   it is, however long it may be"
    text = f"one two three four\nfive\n\nexamples:\n{kept}\nsix seven eight nine ten\n"
    assert help.flow(text, 20).splitlines() == [
        "one two three four",
        "five",
        "",
        "examples:",
        kept,
        "six seven eight nine",
        "ten",
    ]
    assert help.flow("", 20) == ""


@pytest.mark.parametrize(
    ("command", "hint"),
    [
        ("statsu", "did you mean status?"),
        ("trial", "did you mean trail?"),
        ("version", "did you mean --version?"),
        ("xyzzy", "colibri --help lists them"),
    ],
)
def test_an_unknown_command_gets_the_nearest_one(
    capsys: pytest.CaptureFixture[str], command: str, hint: str
) -> None:
    assert cli.main([command]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err == f"colibri: error: there is no command {command}\ncolibri: hint: {hint}\n"


def test_a_bad_option_is_explained_in_our_own_words(workshop: Workshop, colibri: Printed) -> None:
    code, out, err = colibri(workshop.path, "trail", "--limit", "x\x1b[31m")
    assert (code, out) == (2, "")
    assert err == (
        "colibri: error: --limit: 'x\\x1b[31m' is not a whole number, 0 or more (0: all)\n"
        "colibri: hint: colibri trail --help explains what it takes\n"
    )


MISTAKES = {
    "a misspelt option": (["trail", "--folow"], "colibri trail does not take --folow", "--follow"),
    "a misspelt choice": (
        ["tasks", "--status", "verfy"],
        "--status: 'VERFY' is not one of"
        " INIT, GATHER, ANALYZE, PLAN, APPLY, VERIFY, DONE, CANCELLED",
        "VERIFY",
    ),
    "a value that is missing": (["tasks", "--limit"], "--limit needs a value", ""),
    "a value too many": (["tasks", "--json=x"], "--json takes no value, but was given 'x'", ""),
    "an argument that is missing": (["move"], "missing: TASK, STATE", ""),
}


@pytest.mark.parametrize(("arguments", "error", "meant"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_named_with_what_may_have_been_meant(
    capsys: pytest.CaptureFixture[str], arguments: list[str], error: str, meant: str
) -> None:
    assert cli.main(arguments) == 2
    question = f"did you mean {meant}? " if meant else ""
    assert capsys.readouterr().err == (
        f"colibri: error: {error}\n"
        f"colibri: hint: {question}colibri {arguments[0]} --help explains what it takes\n"
    )


HEX = "ab" * 32
WRONG = {
    "erase": "name at least one record, or give --finish alone",
    "erase 9 --finish": "name at least one record, or give --finish alone",
    "erase 9 --yes": "a reason is missing: --reason TEXT",
    "erase 9 --reason ' '": "the reason is blank",
    "erase 9 --reason a\x1b": "the reason holds the control character",
    f"erase 9 --reason {'x' * 2001}": "the reason is longer than 2000",
    "erase x": "SEQ: 'x' is not the number of a record, such as 17 or R-17",
    "export --all": "missing: -o/--output",
    "export --all --session S-1 -o out": "--session and --all do not go together",
    "export --thought R-09 -o out": "R- and a number",
    "export --thought R-9/.. -o out": "R- and a number",
    "export --thought S-1 -o out": "R- and a number",
    "export -o out": "one of these is missing: --all --session --task --thought",
    "log --follow --reverse": "--reverse and -f/--follow do not go together",
    "log --kind dream": "--kind: 'dream' is not one of call.enter, call.exit, ",
    "log --limit -1": "--limit: '-1' is not a whole number, 0 or more (0: all)",
    "log --since soon": "'soon' is neither the seq of a record",
    "log 31 --follow": "--follow and SEQ do not go together",
    "log 31 --kind task": "--kind and SEQ do not go together",
    "log 31 --limit 3": "--limit and SEQ do not go together",
    "log yesterday": "SEQ: 'yesterday' is not the number of a record, such as 17 or R-17",
    "report S-1 -o - --open": "--open needs a file",
    "report --watch -o -": "--watch needs a file",
    "setup": "error: missing: CLIENT\n",
    "setup codex --name a.b": "a name has only letters, digits, _ and -",
    "setup codex --write --print": "--print and --write do not go together",
    "setup emacs": "CLIENT: 'emacs' is not one of claude-code, claude-desktop, cursor",
    "setup generic --write": "generic has no settings file: name one with --file",
    "tasks T-0001 --limit 3": "error: --limit and TASK do not go together\n",
    "tasks T-0001 --status INIT": "error: --status and TASK do not go together\n",
    "trail S-1 --all": "do not go together",
    f"verify --head 0:{HEX}": "a head is SEQ:HEX",
    f"verify --head 1:{HEX} --session S": "--head needs the whole",
    f"verify --head 1:{HEX} --task T-1": "--head needs the whole",
    f"verify --head {HEX}": "a head is SEQ:HEX",
    "verify --root ab": "a root is SIZE:HEX, a number and 64 hex digits",
    f"verify --root {HEX} --task T-1": "--root needs the whole",
    "verify --session S-1 --task T-1": "do not go together",
    "verify x.json --session S-1": "do not go together",
}


@pytest.mark.parametrize("line", WRONG)
def test_contradictory_options_are_refused_before_anything_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], line: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(shlex.split(line)) == 2
    out, err = capsys.readouterr()
    assert (out, list(tmp_path.iterdir())) == ("", [])
    assert WRONG[line] in err


def test_an_option_before_the_command_is_not_taken_for_a_command(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.main(["--project", "x", "status"]) == 2
    assert capsys.readouterr().err == (
        "colibri: error: --project is not a command\ncolibri: hint: the command comes first, its"
        " options after it; colibri --help lists the commands\n"
    )


def test_help_is_a_command_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["help"]) == 0
    overview = capsys.readouterr().out
    assert cli.main(["--help"]) == 0
    assert capsys.readouterr().out == overview
    with pytest.raises(SystemExit, match="0"):
        cli.main(["help", "log"])
    assert capsys.readouterr().out == cli.parser_of("log").format_help()
    assert cli.main(["help", "lgo"]) == 2
    assert capsys.readouterr().err.endswith("colibri: hint: did you mean log?\n")


def run(workshop: Workshop, *arguments: str, **env: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "colibri", *arguments],
        cwd=workshop.path,
        env=environment(**env),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="latin-1",
    )


def test_a_closed_pager_ends_the_command_silently(workshop: Workshop) -> None:
    """colibri trail | head -1."""
    process = run(workshop, "trail")
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline().startswith(workshop.open)
    process.stdout.close()
    with process.stderr:
        assert process.stderr.read() == ""
    assert process.wait(30) == 141, "as shells call it: 128 and SIGPIPE"


BUFFERED = environment(PYTHONUNBUFFERED="")  # as for people: what is printed waits in a buffer
UNREAD = {
    "an overview": (["--help"], "stdout"),
    "a help": (["log", "--help"], "stdout"),
    "a list": (["sessions"], "stdout"),
    "an error": (["lgo"], "stderr"),
}


@pytest.mark.parametrize(("arguments", "stream"), UNREAD.values(), ids=UNREAD)
def test_a_pipe_without_a_reader_exits_141_silently(
    workshop: Workshop, arguments: list[str], stream: str
) -> None:
    """As shells call the end of a program by SIGPIPE."""
    theirs, ours = os.pipe()
    os.close(theirs)
    process = subprocess.Popen(
        [*COLIBRI, *arguments],
        cwd=workshop.path,
        env=BUFFERED,
        stdout=ours if stream == "stdout" else subprocess.PIPE,
        stderr=ours if stream == "stderr" else subprocess.PIPE,
    )
    os.close(ours)
    said = process.communicate(timeout=30)
    assert (process.returncode, [text for text in said if text]) == (141, [])


@pytest.mark.parametrize(
    ("redirected", "wanted", "said"),
    [(">/dev/full", 75, "colibri: error: No space left on device\n"), ("2>&-", 0, "")],
)
def test_unwritable_output_is_reported_on_stderr(redirected: str, wanted: int, said: str) -> None:
    if "/dev/full" in redirected and not Path("/dev/full").exists():
        pytest.skip("Linux has it")
    script = f"'{sys.executable}' -m colibri --help {redirected}"
    done = execute(["sh", "-c", script], env=BUFFERED)
    assert (done.returncode, done.stderr) == (wanted, said)


def test_a_terminal_with_few_characters_gets_escapes(workshop: Workshop) -> None:
    out, err = run(
        workshop, "log", "--kind", "task", "--limit", "1", PYTHONIOENCODING="latin-1"
    ).communicate(timeout=30)
    assert "INIT \\u2192 CANCELLED" in out
    assert "not shown" in err


def test_a_command_whose_output_is_closed_still_succeeds(workshop: Workshop) -> None:
    done = execute_raw(["sh", "-c", f"'{sys.executable}' -m colibri status >&-"], cwd=workshop.path)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("name", ["sessions", "tasks", "trail", "log", "verify"])
def test_without_a_ledger_there_is_nothing_to_show_and_nothing_is_made(
    tmp_path: Path, colibri: Printed, name: str
) -> None:
    code, out, err = colibri(tmp_path, name)
    assert (code, out) == (75, "")
    assert err.startswith(f"colibri: error: there is no database at {tmp_path}")
    assert list(tmp_path.iterdir()) == []
