"""One project that agents have worked in, and two ways to look at it: a pipe and a terminal.

Modules that neither tamper with a file nor copy one run twice, with the ledger in a file and on
PostgreSQL: the fixture `engine` chooses. Without PostgreSQL or psycopg the second half is skipped.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from colibri import cli
from tests.support import engines, ledger_reader, ledger_writer
from tests.support.client import environment
from tests.support.program import tell_story
from tests.support.sample_project import Printed, Shown, Workshop
from tests.support.terminal import COLIBRI, run_in_terminal

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")

ON_BOTH = {
    "test_agents",
    "test_brief_search",
    "test_deeds",
    "test_gate",
    "test_log",
    "test_person",
    "test_report",
    "test_sessions",
    "test_status",
    "test_tasks",
    "test_trail",
}
OFTEN = {"test_deeds", "test_gate", "test_log", "test_status", "test_trail"}
# What a test of these modules calls that is about a file alone.
FILE_ONLY = {
    ledger_reader.create,
    ledger_reader.holding,
    ledger_writer.disable_triggers,
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    engines.parametrize(metafunc, ON_BOTH, FILE_ONLY, OFTEN)


@pytest.fixture(autouse=True)
def _free_schemas(tmp_path: Path) -> Iterator[None]:
    yield
    engines.release(tmp_path)


_workshops: dict[str, Workshop] = {}


@pytest.fixture(scope="module")
def workshop(engine: str, tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    if engine not in _workshops:
        _workshops[engine] = Workshop(tmp_path_factory.mktemp("workshop"))
    return _workshops[engine]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with a database of 54 records."""
    monkeypatch.chdir(tmp_path)
    for name, value in engines.environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    return tell_story(tmp_path)


@pytest.fixture
def colibri(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Printed:
    """Run a command in a project; exit code, stdout, stderr."""
    monkeypatch.setattr("os.environ", environment())

    def run(project: Path, *arguments: str) -> tuple[int, str, str]:
        role = "eraser" if arguments[0] == "erase" else "writer"
        os.environ.update(engines.environment(project, role))
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
        surroundings = {**environment(**engines.environment(project)), "TZ": "UTC", **env}
        code, text = run_in_terminal(
            [*COLIBRI, *arguments], cwd=project, columns=columns, env=surroundings
        )
        assert code == 0, text
        return _COLOUR.sub("", text)

    return run
