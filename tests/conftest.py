"""What holds for every test, which tests measure coverage, and which engine holds the ledgers.

The conftest.py of a directory says what runs on both engines; without PostgreSQL or psycopg the
second half is skipped.
"""

import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import coverage
import pytest
from hypothesis import settings

from tests.support import engines

# They test the verifiers and scripts and hardly run the package: measuring only slows them down.
UNMEASURED = (
    "tests/test_mutants.py",
    "tests/verify/test_by_hand.py",
    "tests/verify/test_cli.py",
    "tests/verify/test_hostile.py",
    "tests/verify/test_page.py",
    "tests/verify/test_vectors.py",
)
# Here a test that takes a `project` runs on both engines.
OF_PROJECTS = {"contract", "tools"}
_numbers = count()

settings.register_profile("on any machine", deadline=None)
settings.load_profile("on any machine")


@pytest.fixture(autouse=True, scope="session")
def _state_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Servers keep heads in the user's state directory: here, of nobody."""
    with pytest.MonkeyPatch.context() as patch:
        home = tmp_path_factory.mktemp("state")
        patch.setenv("XDG_STATE_HOME", str(home / "shared"))
        yield home


@pytest.fixture(autouse=True)
def _own_state_home(_state_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test has its own, in which fixtures that it shares with others keep nothing."""
    monkeypatch.setenv("XDG_STATE_HOME", str(_state_home / str(next(_numbers))))


@pytest.fixture(autouse=True)
def _within_another_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hints name the program as it was started; a test runner's workers start by `python -c`."""
    monkeypatch.setattr(sys, "argv", ["pytest"])


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    of_projects = metafunc.definition.path.parent.name in OF_PROJECTS
    if of_projects and "project" in metafunc.fixturenames:
        engines.run_on_both(metafunc, often=False)


@pytest.fixture(scope="session")
def own_logs() -> bool:
    """Whether each project on PostgreSQL has a log of its own, or all the one of the tests."""
    return False


@pytest.fixture(scope="module", autouse=True)
def engine(request: pytest.FixtureRequest, own_logs: bool) -> Iterator[str]:
    """The engine of this test: of its stores, and of the servers and commands that it starts."""
    name = getattr(request, "param", "sqlite")
    with engines.use(name, own_logs=own_logs):
        yield name


@pytest.fixture
def project(engine: str, tmp_path: Path) -> Iterator[Path]:
    """An empty directory for servers, whose ledger is on the engine of the test."""
    yield tmp_path
    engines.release(tmp_path)


@pytest.fixture(autouse=True, scope="module")
def _measured_only_where_needed(request: pytest.FixtureRequest) -> Iterator[None]:
    """In this process, and in those that it starts."""
    measuring = coverage.Coverage.current()
    if measuring is None or not request.node.nodeid.startswith(UNMEASURED):
        yield
        return
    measuring.stop()
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("COVERAGE_PROCESS_START", raising=False)
        yield
    measuring.start()
