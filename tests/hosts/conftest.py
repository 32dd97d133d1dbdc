"""A session in each host, played once for all tests about it, and a browser to look at reports."""

from pathlib import Path

import pytest
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

from tests.hosts.drive import HOSTS, Place
from tests.hosts.story import Played, play, ready
from tests.web.conftest import browser, reader

__all__ = ["browser", "reader"]


@pytest.fixture(scope="module", params=HOSTS)
def played(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Played:
    name = str(request.param)
    place = Place.below(tmp_path_factory.mktemp(name))
    ready(place, name)
    return play(name, place)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Some tests run a host several times."""
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.timeout(600))


class _ByHost(LoadScopeScheduling):  # type: ignore[misc] # it has no types
    """The tests [HOST] go to one process, which plays the session once.

    Groups of xdist 3.8 do the same, but pytest 9.2 loses them without a word.
    """

    def _split_scope(self, nodeid: str) -> str:
        name = nodeid.rpartition("[")[2].removesuffix("]")
        return name if name in HOSTS else nodeid


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> LoadScopeScheduling:
    return _ByHost(config, log)
