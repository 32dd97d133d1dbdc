"""How often a server on PostgreSQL waits for its database, and what a distance costs."""

import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from tests.support.client import COLIBRI, Server
from tests.support.far import Far, socket_of
from tests.support.postgres import fresh_schema, server

QUIET: Any = {"COLIBRI_HEALTH_INTERVAL_MS": "1000000"}  # no health check in between
AHEAD = ["GATHER", "ANALYZE", "PLAN", "APPLY"]
# The most trips of each tool, in a small ledger; reading takes one to enter, one to exit and flush.
TRIPS = {
    "task_create": 2,
    "task_update": 2,
    "thought_record": 2,
    "task_next_actions": 4,
    "audit_session_start": 5,
    "merkle_finalize": 5,
    "task_list": 4,
    "task_get": 3,
    "thought_record_list": 4,
    "merkle_root": 3,
    "skill_list": 2,
}


@pytest.fixture(scope="module")
def far() -> Iterator[Far]:
    here = server()
    with Far(socket_of(here.directory, here.port)) as proxy:
        yield proxy


class Counted:
    """A server behind the proxy, whose trips are counted."""

    def __init__(self, running: Server, far: Far) -> None:
        self.server = running
        self._far = far

    def __call__(self, tool: str, /, **arguments: Any) -> tuple[int, Any]:
        self._settle()
        before = self._far.trips
        data = self.server.data(tool, **arguments)
        self._settle()
        return self._far.trips - before, data

    def _settle(self) -> None:
        """Until nothing is on its way: a probe is recorded after its answer."""
        seen = -1
        while seen != self._far.trips:
            seen = self._far.trips
            time.sleep(0.1)


def start(project: Path, far: Far, schema: str) -> Server:
    url: Any = {"COLIBRI_DB_URL": far.url(f"{schema}_writer"), "COLIBRI_DB_SCHEMA": schema}
    return Server(project, COLIBRI, **QUIET, **url)


def test_a_change_takes_two_trips_and_no_tool_many(tmp_path: Path, far: Far) -> None:
    """Once the statements of a tool are prepared."""
    worst: dict[str, int] = {}

    def note(tool: str, **arguments: Any) -> Any:
        trips, data = call(tool, **arguments)
        worst[tool] = trips
        return data

    with start(tmp_path, far, fresh_schema()) as running:
        call = Counted(running, far)
        for _ in range(2):  # the first time prepares statements, and opens connections
            session = note("audit_session_start", intent="count the trips", agent_id="ada")
            mine = {"session_id": session["session_id"]}
            first = note("task_create", title="one")["task_id"]
            note("task_create", title="two", depends_on=[first], key=mine["session_id"])
            note("task_next_actions", claim=True)
            plan = {"type": "plan", "content": "look, then touch"}
            note("task_update", task_id=first, status=AHEAD, thought=plan)
            done = {"type": "reflection", "content": "it holds"}
            note("task_update", task_id=first, status=["VERIFY", "DONE"], thought=done)
            note("thought_record", type="decision", content="so be it", key="k")
            for tool, arguments in (
                ("task_list", {}),
                ("task_get", {"task_id": first}),
                ("thought_record_list", {}),
                ("skill_list", {}),
            ):
                note(tool, **arguments)
            note("merkle_finalize", **mine)
            note("merkle_root", **mine)
    assert {tool: trips for tool, trips in worst.items() if trips > TRIPS[tool]} == {}
    assert worst.keys() == TRIPS.keys()


@pytest.mark.alone
@pytest.mark.parametrize("trip_ms", [1, 20])
def test_a_distance_costs_a_change_two_trips(tmp_path: Path, trip_ms: int) -> None:
    """The median, compared with the same server at no distance: nearer to two than to three."""
    here = server()
    with (
        Far(socket_of(here.directory, here.port)) as far,
        start(tmp_path, far, fresh_schema()) as running,
    ):
        running.data("task_create", title="the first")
        near = _median_ms(running)
        far.delay = trip_ms / 2000
        assert _median_ms(running) - near <= 2.5 * trip_ms + 5


def _median_ms(running: Server) -> float:
    took = []
    for number in range(30):
        begun = time.perf_counter()
        running.data("task_create", title=f"task {number}")
        took.append((time.perf_counter() - begun) * 1000)
    return median(took)
