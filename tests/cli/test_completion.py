"""`colibri completion`: asked through the shells themselves."""

import os
import pty
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from colibri import cli

QUESTIONS = {
    "colibri mo": ["move", "move-ledger"],
    "colibri move T-0001 DO": ["DONE"],
    "colibri add x --pri": ["--priority"],
    "colibri add x --priority h": ["high"],
    "colibri help rel": ["release"],
    "colibri completion fi": ["fish"],
    "colibri verify --pro": ["--project"],
}


Scripts = Callable[[str], Path]


@pytest.fixture
def script(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Scripts:
    """Writes the completions of a shell into a file."""

    def write(shell: str) -> Path:
        if shutil.which(shell) is None:
            pytest.skip(f"{shell} is not installed")
        capsys.readouterr()
        assert cli.main(["completion", shell]) == 0
        path = tmp_path / f"colibri.{shell}"
        path.write_text(capsys.readouterr().out)
        return path

    return write


@pytest.mark.parametrize(("typed", "offered"), QUESTIONS.items())
def test_bash(script: Scripts, typed: str, offered: list[str]) -> None:
    words = typed.split(" ")
    ask = (
        f"source {script('bash')}; COMP_WORDS=({typed}); COMP_CWORD={len(words) - 1}; _colibri;"
        ' printf "%s\\n" "${COMPREPLY[@]}"'
    )
    answer = subprocess.run(["bash", "-c", ask], capture_output=True, text=True, check=True)
    assert (answer.stdout.split(), answer.stderr) == (offered, "")


@pytest.mark.parametrize(("typed", "offered"), QUESTIONS.items())
def test_fish(script: Scripts, tmp_path: Path, typed: str, offered: list[str]) -> None:
    ask = f'source {script("fish")}; complete -C "{typed}"'
    answer = subprocess.run(
        ["fish", "--no-config", "-c", ask],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "HOME": str(tmp_path)},
    )
    assert ([line.split("\t")[0] for line in answer.stdout.splitlines()], answer.stderr) == (
        offered,
        "",
    )


@pytest.mark.parametrize(("typed", "offered"), QUESTIONS.items())
def test_zsh(script: Scripts, tmp_path: Path, typed: str, offered: list[str]) -> None:
    """Zsh completes only at a terminal: the tab puts the word there, or lists it."""
    settings = f"autoload -Uz compinit; compinit -u -D; source {script('zsh')}; PROMPT='READY> '\n"
    (tmp_path / ".zshrc").write_text(settings)
    ours, theirs = pty.openpty()
    env = {**os.environ, "ZDOTDIR": str(tmp_path), "TERM": "dumb"}
    shell = subprocess.Popen(["zsh", "-i"], stdin=theirs, stdout=theirs, stderr=theirs, env=env)
    os.close(theirs)
    try:
        _read_until(ours, "READY> ")
        os.write(ours, f"{typed}\t".encode())
        assert offered[0] in _read_until(ours, offered[0])
    finally:
        shell.kill()
        shell.wait()
        os.close(ours)


def _read_until(terminal: int, wanted: str) -> str:
    shown, end = "", time.monotonic() + 30
    os.set_blocking(terminal, False)
    while wanted not in shown and time.monotonic() < end:
        try:
            shown += os.read(terminal, 65_536).decode(errors="replace")
        except BlockingIOError:
            time.sleep(0.02)
    return shown


def test_every_command_and_option_is_known_to_every_shell(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for shell in ("bash", "zsh", "fish"):
        capsys.readouterr()
        cli.main(["completion", shell])
        script = capsys.readouterr().out
        for name in cli.COMMANDS:
            options = [
                one for action in cli.parser_of(name)._actions for one in action.option_strings
            ]
            assert name in script
            assert all(one.lstrip("-") in script for one in options), (shell, name)


def test_an_unknown_shell_is_refused_with_the_known_ones(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.main(["completion", "tcsh"]) == 2
    assert "bash, zsh, fish" in capsys.readouterr().err.replace("'", "")
