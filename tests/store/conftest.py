"""Real databases in tmp_path, opened with a clock that only moves when someone sleeps."""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from colibri.store.sqlite import opening
from colibri.store.sqlite.identity import Opened
from colibri.store.sqlite.opening import open_writer

LOG = "colibri/" + "0123456789abcdef" * 2

Writer = Callable[..., AbstractContextManager[Opened]]


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "data" / "colibri.db")


@pytest.fixture
def writer(path: str) -> Writer:
    """writer(**options) opens the database at `path` for the length of a with block."""

    @contextmanager
    def opened(**options: object) -> Iterator[Opened]:
        clock = Clock()
        settings: dict[str, object] = {
            "lock_timeout": 1.0,
            "monotonic": clock.monotonic,
            "sleep": clock.sleep,
            "stamp": "20260101T000000Z",
            "new_log": lambda: LOG,
        }
        result = open_writer(path, **(settings | options))  # type: ignore[arg-type]
        try:
            yield result
        finally:
            opening.close(result)

    return opened


@pytest.fixture
def open_umask() -> Iterator[None]:
    """Nothing is taken away from the modes that are asked for."""
    before = os.umask(0)
    try:
        yield
    finally:
        os.umask(before)
