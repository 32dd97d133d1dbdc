"""cli/: what a command that is stopped leaves behind, and what it says."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from colibri import cli
from colibri.cli import files
from colibri.core.errors import ResourceError


def interrupted(_: object) -> int:
    raise KeyboardInterrupt


def test_an_interrupted_command_says_so_and_exits_130(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As shells have it: 128 and the number of SIGINT. No traceback."""
    nap = ModuleType("nap")
    vars(nap).update(DESCRIPTION="", EPILOG="", configure=lambda parser: None, run=interrupted)
    monkeypatch.setitem(sys.modules, "colibri.cli.commands.nap", nap)
    monkeypatch.setattr(cli, "COMMANDS", ["nap"])
    assert cli.main(["nap"]) == 130
    assert capsys.readouterr() == ("", "colibri: error: interrupted\n")


def test_a_command_is_loaded_without_the_others() -> None:
    """Else each would wait for all."""
    look = "print(*[name for name in sys.modules if name.startswith('colibri.cli.commands.')])"
    program = f"import sys; from colibri import cli; cli.parser_of('verify'); {look}"
    done = subprocess.run(
        [sys.executable, "-I", "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "colibri.cli.commands.verify\n"


@pytest.mark.parametrize("problem", [KeyboardInterrupt, OSError, ValueError])
def test_a_file_that_cannot_be_finished_is_not_there(
    tmp_path: Path, problem: type[BaseException]
) -> None:
    """All of it or nothing: neither the file nor a part of it, and what was there stays."""

    def pieces() -> Iterator[bytes]:
        yield b"{"
        assert len(list(tmp_path.iterdir())) == 2  # it is under way, under another name
        raise problem

    path = tmp_path / "out"
    path.write_text("mine")
    with pytest.raises(ResourceError if problem is OSError else problem):
        files.write(pieces(), str(path))
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [("out", "mine")]
