"""One project that agents have worked in, and two ways to look at it: a pipe and a terminal."""

import re
from pathlib import Path

import pytest

from colibri import cli
from tests.support.client import environment
from tests.support.program import tell_story
from tests.support.sample_project import Printed, Shown, Workshop
from tests.support.terminal import COLIBRI, run_in_terminal

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture(scope="session")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return Workshop(tmp_path_factory.mktemp("workshop"))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with a database of 54 records."""
    monkeypatch.chdir(tmp_path)
    return tell_story(tmp_path)


@pytest.fixture
def colibri(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Printed:
    """Run a command in a project; exit code, stdout, stderr."""
    monkeypatch.setattr("os.environ", environment())

    def run(project: Path, *arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        command, *rest = arguments
        try:
            code = cli.main([command, *rest, "--project", str(project)])
        except SystemExit as end:  # argparse
            code = int(str(end.code))
        out, err = capsys.readouterr()
        return code, out, err

    return run


@pytest.fixture
def shown(workshop: Workshop) -> Shown:
    """What a command shows in a terminal of so many columns, without its colours."""

    def run(columns: int, *arguments: str, project: Path = workshop.path, **env: str) -> str:
        surroundings = {**environment(), "TZ": "UTC", **env}
        code, text = run_in_terminal(
            [*COLIBRI, *arguments], cwd=project, columns=columns, env=surroundings
        )
        assert code == 0, text
        return _COLOUR.sub("", text)

    return run
