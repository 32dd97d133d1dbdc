"""`python -m colibri`: what it prints, and its exit codes."""

import json
import sys
from pathlib import Path

import pytest

from colibri import VERSION
from colibri.__main__ import main
from colibri.config import KNOWN
from tests.support.client import environment, execute
from tests.support.terminal import run_in_terminal

PING = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}) + "\n"


def colibri(*arguments: str, cwd: Path, stdin: str = "", **env: str) -> tuple[int, str, str]:
    """Run it to its end; exit code, stdout, stderr."""
    done = execute(
        [sys.executable, "-m", "colibri", *arguments], cwd=cwd, env=environment(**env), input=stdin
    )
    return done.returncode, done.stdout, done.stderr


def test_version_is_one_line_on_stdout(tmp_path: Path) -> None:
    """Style S12: data goes to stdout."""
    assert colibri("--version", cwd=tmp_path) == (0, f"colibri {VERSION}\n", "")


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"]])
def test_help_says_what_it_is_and_which_commands_there_are(
    tmp_path: Path, arguments: list[str]
) -> None:
    """Specification 1.2: a user who knows nothing finds the next step."""
    code, out, err = colibri(*arguments, cwd=tmp_path)
    assert (code, err) == (0, "")
    assert out.startswith("usage: colibri ")
    assert "serve MCP on stdin and stdout" in out


def test_the_help_of_serve_names_every_variable_and_exit_code(tmp_path: Path) -> None:
    """Specification 14.1."""
    code, out, err = colibri("serve", "--help", cwd=tmp_path)
    assert (code, err) == (0, "")
    assert [name for name in KNOWN if name not in out] == []
    assert "0 done, 1 fault, 73 configuration, 75 resource" in " ".join(out.split())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["bogus"], "there is no command bogus"),
        (["--bogus"], "--bogus"),
        (["serve", "--bogus"], "colibri serve does not take --bogus"),
        (["serve", "extra"], "colibri serve does not take extra"),
        (["serve", "--project"], "--project needs a value"),
        (["serve", "--proj", "."], "did you mean --project?"),
    ],
)
def test_a_bad_option_is_explained_on_stderr(
    tmp_path: Path, arguments: list[str], complaint: str
) -> None:
    """Exit code 2, as everywhere; stdout stays empty, it could be the wire."""
    code, out, err = colibri(*arguments, cwd=tmp_path)
    assert (code, out) == (2, "")
    assert complaint in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "options",
    [
        ["--project", "{}"],
        ["--project={}"],
        ["--project", "elsewhere", "--project", "{}"],
    ],
)
def test_serve_takes_its_project(tmp_path: Path, options: list[str]) -> None:
    """Specification 14.6: the database is made there, not in the working directory."""
    project, working = tmp_path / "project", tmp_path / "working"
    project.mkdir()
    working.mkdir()
    given = [option.format(project) for option in options]
    code, out, _ = colibri("serve", *given, cwd=working, stdin=PING)
    assert (code, json.loads(out)) == (0, {"jsonrpc": "2.0", "id": 1, "result": {}})
    assert (project / "data" / "colibri.db").exists()
    assert list(working.iterdir()) == []


def test_every_problem_of_the_configuration_is_a_line_and_the_exit_code_73(tmp_path: Path) -> None:
    """Specification 14.5: naming each and what to do."""
    code, out, err = colibri(
        "serve",
        cwd=tmp_path,
        stdin=PING,
        AMS_DB="x",
        COLIBRI_TYPO="x",
        COLIBRI_MODE="full",
        COLIBRI_SEED="-1",
    )
    assert (code, out) == (73, "")
    lines = err.splitlines()
    assert [line.split()[2] for line in lines] == [
        "AMS_DB",
        "COLIBRI_TYPO",
        "COLIBRI_MODE",
        "COLIBRI_SEED",
    ]
    assert all(line.startswith("[colibri] fatal: ") for line in lines)
    assert lines[2].endswith("must be one of FULL, READONLY, TEST, MINIMAL")
    assert list(tmp_path.iterdir()) == []


def test_a_project_that_is_not_there_is_exit_code_73(tmp_path: Path) -> None:
    """Specification 14.6: it is named and not created."""
    missing = tmp_path / "missing"
    code, out, err = colibri("serve", "--project", str(missing), cwd=tmp_path, stdin=PING)
    assert (code, out) == (73, "")
    assert err == (
        f"[colibri] fatal: the project directory {missing} does not exist:"
        " create it or name another\n"
    )
    assert not missing.exists()


def test_a_database_that_cannot_be_opened_is_exit_code_75_at_the_end(tmp_path: Path) -> None:
    """Specification 11.5: it stays up and answers until the input ends."""
    (tmp_path / "data").write_text("a file where a folder should be", encoding="utf-8")
    code, out, err = colibri("serve", cwd=tmp_path, stdin=PING)
    assert (code, json.loads(out)["result"]) == (75, {})
    assert f"[colibri] cannot open {tmp_path / 'data' / 'colibri.db'}: " in err


def test_on_a_terminal_serve_says_what_it_waits_for_and_how_to_leave(tmp_path: Path) -> None:
    """Ctrl-D, which it names, ends it; a client on a pipe is told nothing of the kind."""
    command = [sys.executable, "-m", "colibri", "serve"]
    code, shown = run_in_terminal(command, cwd=tmp_path, env=environment(), typed=b"\x04")
    waiting = "[colibri] waiting for an MCP client on stdin; Ctrl-D ends the server\n"
    assert (code, waiting in shown) == (0, True)
    assert waiting not in colibri("serve", cwd=tmp_path, stdin=PING)[2]


def test_an_interrupt_while_commands_load_is_told_by_the_exit_code_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Loading:
        def __getattr__(self, name: str) -> None:
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "colibri.cli", Loading())
    monkeypatch.setattr(sys, "argv", ["colibri", "status"])
    with pytest.raises(SystemExit, match=r"^130$"):
        main()
