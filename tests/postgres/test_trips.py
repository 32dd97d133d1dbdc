"""How often a server on PostgreSQL waits for its database, and what a distance costs."""

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from colibri.store import log_tree
from colibri.store.record_check import SLICE
from colibri.tools.catalogue import CATALOGUE
from tests.support.client import COLIBRI, Server
from tests.support.far import LONG_TRIP_MS, Far, socket_of
from tests.support.ledger_writer import in_memory
from tests.support.postgres import connection, copying, fresh_schema, server

QUIET: Any = {"COLIBRI_HEALTH_INTERVAL_MS": "1000000"}  # no health check in between
AHEAD = ["GATHER", "ANALYZE", "PLAN", "APPLY"]
TRIPS_OF_A_SLICE = 16  # of 10,000 records, in a longer one,
AROUND = 25  # and besides, for all tables
MOST = 5  # trips of any call, in a small ledger
# Of these fewer; reading takes one to enter, one to exit and flush.
TRIPS = {
    "server_ping": 2,
    "server_health": 2,
    "task_create": 2,
    "task_create with a dependency and a key": 2,
    "task_update along several states, with a thought": 2,
    "task_update to DONE": 2,
    "task_update of texts": 2,
    "thought_record": 2,
    "skill_list": 2,
    "task_next_actions to claim, while others hold some": 2,
    "task_get": 3,
    "merkle_root": 3,
}


@pytest.fixture(scope="module")
def far() -> Iterator[Far]:
    here = server()
    with Far(socket_of(here.directory, here.port)) as proxy:
        yield proxy


class Counted:
    """A server behind the proxy, whose trips are counted; `worst` has the last count of each kind
    of call.
    """

    def __init__(self, running: Server, far: Far) -> None:
        self.server = running
        self.worst: dict[str, int] = {}
        self.is_counting = False
        self._far = far

    def __call__(self, tool: str, how: str = "", /, **arguments: Any) -> Any:
        """Make a call of some kind; its data, unless it must be refused."""
        before = self._far.trips
        result = self.server.call(tool, **arguments)
        assert result["isError"] == how.startswith("refused"), result
        if self.is_counting:
            self.settle()
            self.worst[f"{tool} {how}".strip()] = self._far.trips - before
        return result.get("structuredContent", {}).get("data")

    def settle(self) -> None:
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
    with start(tmp_path, far, fresh_schema()) as running:
        call = Counted(running, far)
        _use_every_tool(call, "S-1")  # prepares statements, and opens connections
        call.settle()
        call.is_counting, far.delay = True, LONG_TRIP_MS / 2000
        _use_every_tool(call, "S-2")
        far.delay = 0
    allowed = {kind: TRIPS.get(kind, MOST) for kind in call.worst}
    assert {kind: trips for kind, trips in call.worst.items() if trips > allowed[kind]} == {}
    assert TRIPS.keys() <= call.worst.keys()
    assert {kind.split()[0] for kind in call.worst} == {tool.name for tool in CATALOGUE}


def _use_every_tool(call: Counted, session: str) -> None:
    """Each kind of call that docs/tools.md describes, in one session."""
    call("server_ping")
    call("server_health")
    call("skill_list")
    call("audit_session_start", intent="count the trips", agent_id="ada")
    call("audit_session_start", "with an id", session_id=session, intent="count", agent_id="ada")
    call("audit_session_start", "to resume", session_id=session, resume=True)
    mine = {"session_id": session, "agent_id": "ada"}
    first, second = _change(call, mine)
    _read(call, session, first, second)
    call("audit_session_start", "about a task", intent="look", task_id=first, brief=False)
    call("merkle_finalize", session_id=session)
    call("merkle_finalize", "refused: sealed", session_id=session)
    call("merkle_root", session_id=session)
    thoughts = call("thought_record_list", "of a session", session_id=session)["records"]
    call("merkle_root", "with a proof", session_id=session, proof_for=thoughts[3]["thought_id"])
    call("audit_verify_chain")
    call("audit_verify_chain", "of a session", session_id=session)
    call("audit_verify_chain", "of a task", task_id=first)
    call("audit_verify_chain", "of a task with dependencies", task_id=second)
    call("audit_verify_chain", "refused: no such task", task_id="T-9999")


def _change(call: Counted, mine: dict[str, str]) -> tuple[str, str]:
    """Two tasks; the second depends on the first."""
    first = call("task_create", title="one", project="far", assignee="ada", **mine)["task_id"]
    keyed: Any = {"depends_on": [first], "key": mine["session_id"], "project": "far", **mine}
    how = "with a dependency and a key"
    second = call("task_create", how, title="two", **keyed)["task_id"]
    call("task_create", "again, with its key", title="two", **keyed)
    call("task_next_actions", **mine)
    call("task_next_actions", "of a project", project="far", limit=100, **mine)
    others = {"session_id": f"{mine['session_id']}-b", "agent_id": "bob"}
    call("audit_session_start", "of another", intent="hold one", brief=False, **others)
    call("task_create", title="three", project="far", priority="high", **others)
    call("task_next_actions", "to claim", project="far", claim=True, **others)
    how = "to claim, while others hold some"
    call("task_next_actions", how, project="far", claim=True, **mine)
    call("task_update", "to give it back", task_id=first, claim=False, **mine)
    plan = {"type": "plan", "content": "look, then touch"}
    how = "along several states, with a thought"
    call("task_update", how, task_id=first, status=AHEAD, thought=plan, **mine)
    call("task_update", "refused: blocked", task_id=second, status=AHEAD, **mine)
    call("task_update", "of texts", task_id=first, description="more of it", **mine)
    done = {"type": "reflection", "content": "it holds"}
    call("task_update", "to DONE", task_id=first, status=["VERIFY", "DONE"], thought=done, **mine)
    call("task_update", "of dependencies", task_id=second, depends_on=[], **mine)
    call("task_update", "to claim", task_id=second, claim=True, **mine)
    call("thought_record", type="decision", content="so be it", task_id=first, key="k", **mine)
    again: Any = {"type": "decision", "content": "so be it", "task_id": first, "key": "k"}
    call("thought_record", "again, with its key", **again, **mine)
    for number in range(20):  # more than wait for the index of words
        call.server.data("thought_record", type="analysis", content=f"word{number} seen", **mine)
    return first, second


def _read(call: Counted, session: str, first: str, second: str) -> None:
    call("task_get", task_id=first)
    call("task_get", "with dependencies", task_id=second)
    call("task_get", "refused: no such task", task_id="T-9999")
    call("task_list")
    call("task_list", "with filters", status="DONE", project="far", assignee="ada")
    call("task_list", "of a holder", holder=session, limit=1, offset=0)
    call("task_list", "with words", search="o", project="far")
    call("thought_record_list")
    call("thought_record_list", "of a task", task_id=first, type="plan", order="newest")
    call("thought_record_list", "with words", search="word1 seen so-be")
    some: Any = {"session_id": session, "type": "analysis"}
    call("thought_record_list", "with words, of a session", search="word1 seen", **some)
    call("thought_record_list", "with words nobody said", search="nothing")


def test_verifying_a_long_log_takes_few_trips_for_each_slice(tmp_path: Path, far: Far) -> None:
    lab = in_memory()
    for _ in range(2 * SLICE // 2):
        lab.read()
    while log_tree.is_behind(lab.db):
        log_tree.keep(lab.db)
    schema = fresh_schema(lab.log)
    with closing(connection.connect(server().url())) as owner:
        owner.execute(f"SET search_path = {schema}")
        copying.copy(lab.db, owner, lambda done, every: None)
    with start(tmp_path, far, schema) as running:
        call = Counted(running, far)
        call("task_list")
        call.settle()
        call.is_counting, far.delay = True, LONG_TRIP_MS / 2000
        assert call("audit_verify_chain")["record_count"] > 2 * SLICE
        far.delay = 0
    assert MOST < call.worst["audit_verify_chain"] <= TRIPS_OF_A_SLICE * 2 + AROUND


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
