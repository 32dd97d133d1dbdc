"""One browser for a module of tests, and readers that use it."""

from collections.abc import Callable, Iterator
from pathlib import Path
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
    """As many as are needed; at the end none may have complained or reached anything."""
    readers: list[Reader] = []

    def make(page: Path | None = None, *, checked: bool = True, **context: Any) -> Reader:
        readers.append(Reader(browser, **context))
        if page is not None:
            readers[-1].open(page, checked=checked)
        return readers[-1]

    yield make
    for one in readers:
        one.close()
    assert [one.complaints for one in readers] == [[] for _ in readers]
    assert [one.reached for one in readers] == [[] for _ in readers]
