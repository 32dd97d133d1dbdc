"""cli/: what a command that is stopped leaves behind, and what it says."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

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
    command = SimpleNamespace(
        HELP="", DESCRIPTION="", EPILOG="", configure=lambda parser: None, run=interrupted
    )
    monkeypatch.setitem(cli.COMMANDS, "nap", command)
    assert cli.main(["nap"]) == 130
    assert capsys.readouterr() == ("", "colibri: error: interrupted\n")


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
