"""Some modules run twice, with servers on SQLite and on PostgreSQL: the fixture `engine` chooses.

Without PostgreSQL or psycopg the second half is skipped.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import engines

ON_BOTH = {"test_claims", "test_story", "test_whose_call"}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if metafunc.module.__name__.rpartition(".")[2] in ON_BOTH:
        metafunc.parametrize("engine", engines.ENGINES, indirect=True, scope="function")


@pytest.fixture(autouse=True)
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The engine that the servers of this test use."""
    name = getattr(request, "param", "sqlite")
    with engines.use(name):
        yield name
    engines.release(tmp_path)
