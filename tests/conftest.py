"""What holds for every test, and which tests measure coverage."""

import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import coverage
import pytest
from hypothesis import settings

# They test the verifiers and scripts and hardly run the package: measuring only slows them down.
UNMEASURED = (
    "tests/test_mutants.py",
    "tests/verify/test_by_hand.py",
    "tests/verify/test_cli.py",
    "tests/verify/test_hostile.py",
    "tests/verify/test_page.py",
    "tests/verify/test_vectors.py",
)
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
