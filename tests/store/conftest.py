"""Real databases in tmp_path, opened with a clock that only moves when someone sleeps.

Modules that do not tamper with a file run twice, on SQLite and on PostgreSQL: the fixture `engine`
chooses. Without PostgreSQL or psycopg the second half is skipped.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from colibri.store.sqlite import checkpoint
from colibri.store.sqlite.opening import open_writer
from tests.support import engines, ledger_writer, query_plans, task_store

LOG = "colibri/" + "0123456789abcdef" * 2

Writer = Callable[..., AbstractContextManager[Any]]

ON_BOTH = {
    "test_brief",
    "test_bundle",
    "test_claims",
    "test_deeds",
    "test_erasure",
    "test_ledger",
    "test_log_tree",
    "test_proofs",
    "test_sessions",
    "test_task_changes",
    "test_tasks",
    "test_thought_search",
    "test_timeline",
    "test_trail",
    "test_verify_claims",
    "test_verify_erasure",
    "test_verify_meanwhile",
    "test_verify_scopes",
}
OFTEN = {"test_bundle", "test_claims", "test_trail"}
# What a test of these modules calls, or is given, that is about SQLite alone.
SQLITE_ONLY = {
    checkpoint.rewrite,
    engines.require_sqlite,
    ledger_writer.disable_triggers,
    query_plans.pages,
    query_plans.plans,
    query_plans.steps,
    task_store.in_memory,
}
OF_A_FILE = {"intruder", "story"}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    engines.parametrize(metafunc, ON_BOTH, SQLITE_ONLY, OFTEN, OF_A_FILE)


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
    def opened(**options: object) -> Iterator[Any]:
        if engines.chosen() == "postgres":
            yield SimpleNamespace(db=engines.on_postgres(LOG))
            return
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
            result.close()

    return opened


@pytest.fixture
def open_umask() -> Iterator[None]:
    """Nothing is taken away from the modes that are asked for."""
    before = os.umask(0)
    try:
        yield
    finally:
        os.umask(before)
