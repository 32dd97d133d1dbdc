"""core/gates.py and store/gate_file.py: the rules of a colibri.toml, and what they match."""

import os
import time
from pathlib import Path

import pytest

from colibri.core import gates
from colibri.core.errors import Malformed
from colibri.core.gates import Done, is_like, matches, may_edit
from colibri.store import gate_file

FULL = (
    '# ours\n[gate.done]\ncommand = "pytest*"\nexit = 5\nafter_last_edit = false\n'
    '[gate.edit]\nstate = "PLAN"\n'
)


def test_the_rules_are_read_with_their_defaults() -> None:
    """Specification 21.1."""
    done = Done(command="pytest*", exit=5, after_last_edit=False)
    assert gates.parse(FULL) == (done, "PLAN")
    usual = Done(command="make test", exit=0, after_last_edit=True)
    assert gates.parse('gate.done.command = " make test "') == (usual, None)
    assert gates.parse("") == gates.parse("[gate]\n") == (None, None)
    assert str(usual) == "`make test` with exit code 0, begun after the last edit"
    assert str(done) == "`pytest*` with exit code 5"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[gate.done]\ncommand = pytest\n", "line 2: Invalid value; correct the TOML"),
        ("a = '''\n\n", "line 3: Expected \"'''\" (at end of document); correct the TOML"),
        ("a = " + "[" * 5000, "line 1: "),
        ("\n[gates.done]\n", "line 2: gates is not known: use [gate.done] and [gate.edit] only"),
        ("gate = 1\n", "line 1: gate must be a table"),
        ("[gate]\ndone = 1\n", "line 2: done must be a table"),
        (
            "[gate.done]\ncommand = 'x'\n\nafter = true",
            "line 4: after is not known: [gate.done] has",
        ),
        ("[gate.edit]\nstate = 'APPLY'\nx = 1", "line 3: x is not known: [gate.edit] has state"),
        ("[gate.done]\nexit = 0\n", "line 1: command must be a pattern"),
        ("[gate.done]\ncommand = ' '\n", "line 2: command must be a pattern"),
        (f"[gate.done]\ncommand = '{'x' * 1025}'", "line 2: command must be a pattern"),
        ("[gate.done]\ncommand = 'x'\nexit = '0'", "line 3: exit must be a whole number"),
        ("[gate.done]\ncommand = 'x'\nexit = true", "line 3: exit must be a whole number"),
        (f"[gate.done]\ncommand = 'x'\nexit = {2**53}", "line 3: exit must be a whole number"),
        ("[gate.done]\ncommand = 'x'\nafter_last_edit = 1", "line 3: after_last_edit must be true"),
        ("[gate.edit]\nstate = 'apply'\n", "line 2: state must be one of INIT, GATHER"),
        ("[gate.edit]\nstate = 'DONE'\n", "line 2: state must be one of INIT, GATHER"),
        ('gate = { "" = {} }', "line 1:  is not known"),
    ],
)
def test_an_error_names_its_line_and_what_to_do(text: str, said: str) -> None:
    """Specification 21.6."""
    with pytest.raises(Malformed) as found:
        gates.parse(text)
    assert found.value.message.startswith(said), found.value.message


def test_a_key_whose_line_is_unknown_is_reported_in_the_first_line() -> None:
    """TOML may spell a key so that it is not there letter by letter."""
    with pytest.raises(Malformed, match="line 1: extra is not known"):
        gates.parse('\n"e\\u0078tra" = 1\n')


@pytest.mark.parametrize(
    ("pattern", "command"),
    [
        ("pytest", "pytest"),
        ("pytest*", "pytest"),
        ("pytest*", "pytest -q tests/a.py"),
        ("*pytest*", "uv run pytest -q"),
        ("npm * test", "npm run test"),
        ("a*b*c", "abbc"),
        ("a*ab", "aab"),
        ("cd app && make *", "cd app && make test"),
        ("*", "ls"),
        ("pytest > out.txt", "pytest > out.txt"),
    ],
)
def test_a_star_is_any_text_and_an_operator_is_itself(pattern: str, command: str) -> None:
    """Specification 21.3."""
    assert matches(pattern, command)
    assert is_like(pattern, command)


@pytest.mark.parametrize(
    "command",
    [
        *("pytest || true", "pytest; true", "pytest & true", "pytest | cat", "pytest\ntrue"),
        *("pytest $(true)", "pytest `true`", "pytest > x", "pytest < x", "pytest # x", "pytest !x"),
        *(
            "pytest 2>&1",
            "(pytest)",
            "pytest\rtrue",
            "! pytest",
            "pytest $X",
            "",
            "pytes",
            " pytest",
        ),
        *("pytest [redacted:key]", "pytest " + "x" * 4089),
    ],
)
def test_a_pattern_without_an_operator_matches_no_command_with_one(command: str) -> None:
    """Specification 21.3."""
    assert not matches("pytest*", command)
    assert not matches("cd app && pytest*", f"cd app && {command}")


@pytest.mark.parametrize(
    ("pattern", "command"),
    [
        ("ab", "abc"),
        ("a*a", "a"),
        ("a*bc*c", "abc"),
        ("a*x*c", "abc"),
        ("*b", "abc"),
        ("make && *", "make || test"),
        ("make && *", "make"),
        ("make", "make && test"),
    ],
)
def test_what_is_not_of_a_pattern_does_not_match(pattern: str, command: str) -> None:
    """Specification 21.3."""
    assert not matches(pattern, command)


def test_no_pattern_makes_matching_slow() -> None:
    """Specification 21.3: patterns on which a backtracking matcher never ends."""
    began = time.process_time()
    for pattern in ("*a" * 511, "a*" * 511 + "b", "*" * 1023, "(" * 1024, "*a*;" * 255):
        for command in ("a" * 4095, "a;" * 2047, "(" * 4095):
            matches(pattern, command)
    assert time.process_time() - began < 1


def test_files_may_be_edited_in_the_state_that_is_named_and_in_later_ones() -> None:
    """Specification 21.1."""
    assert may_edit("APPLY", ["INIT", "APPLY"])
    assert may_edit("APPLY", ["VERIFY"])
    assert not may_edit("APPLY", ["PLAN"])
    assert not may_edit("APPLY", [])


def test_the_file_of_a_project_is_read_with_its_digest(tmp_path: Path) -> None:
    """Specification 21.1."""
    assert gate_file.read(str(tmp_path)) == gates.NONE
    (tmp_path / "colibri.toml").write_text(FULL, encoding="utf-8")
    found = gate_file.read(str(tmp_path))
    assert (found.edit, found.problem, len(found.digest or "")) == ("PLAN", None, 64)


def test_an_unreadable_gate_file_is_reported_and_blocks_every_done(tmp_path: Path) -> None:
    """Specification 21.6: a link, a pipe, a directory, what is too large or no text."""
    path = tmp_path / "colibri.toml"

    def problem() -> str:
        found = gate_file.read(str(tmp_path))
        assert found.done is None and found.problem is not None
        assert found.problem.startswith(f"{path}: ")
        return found.problem

    path.write_bytes(b"# \n\xff")
    assert "line 2: not UTF-8" in problem()
    path.write_bytes(b"#" * 70_000)
    assert "more than 65,536 bytes" in problem()
    path.unlink()
    path.symlink_to("/dev/zero")
    assert "cannot be read" in problem()
    path.unlink()
    os.mkfifo(path)
    assert "an ordinary file" in problem()
    path.unlink()
    path.mkdir()
    assert "an ordinary file" in problem()


def test_a_command_within_another_is_distinguished_from_one_that_never_ran() -> None:
    """Specification 21.2: so that the refusal can name the reason."""
    assert is_like("make test", "cd app && make test")
    assert is_like("make test", "make test || true")
    assert not is_like("make test", "make tests; ls")
