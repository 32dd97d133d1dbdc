"""Some modules run twice, with servers on SQLite and on PostgreSQL: the fixture `engine` chooses.

Without PostgreSQL or psycopg the second half is skipped.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import engines

# About behaviour. test_erase, test_export and test_secrets look at the file as well.
ON_BOTH = {
    "test_arguments",
    "test_claim_races",
    "test_claims",
    "test_gates",
    "test_naive_agent",
    "test_official_clients",
    "test_recall",
    "test_refusals",
    "test_story",
    "test_task_model",
    "test_whose_call",
}
OFTEN = {"test_claims", "test_refusals", "test_story", "test_whose_call"}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    engines.parametrize(metafunc, ON_BOTH, set(), OFTEN)


@pytest.fixture(scope="session")
def own_logs() -> bool:
    return True


@pytest.fixture(autouse=True)
def released(engine: str, tmp_path: Path) -> Iterator[None]:
    """Gives the schemas of a test to the next one."""
    yield
    engines.release(tmp_path)
