"""One browser for a module of tests, and readers that use it."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.web.browser import PROGRAM, Reader, chromium

NewReader = Callable[..., Reader]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if PROGRAM is None:
        pytest.skip("Chromium is not installed: reports were not looked at in a browser")
    with chromium() as started:
        yield started


@pytest.fixture
def reader(browser: Any) -> Iterator[NewReader]:
    """Open as many as are needed; at the end none may have complained or reached anything."""
    readers: list[Reader] = []

    def make(**context: Any) -> Reader:
        readers.append(Reader(browser, **context))
        return readers[-1]

    yield make
    for one in readers:
        one.close()
    assert [one.complaints for one in readers] == [[] for _ in readers]
    assert [one.reached for one in readers] == [[] for _ in readers]
