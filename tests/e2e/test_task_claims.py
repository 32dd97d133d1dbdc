"""Eight servers on one database race for tasks: one wins each, and the others are told so."""

import threading
from collections import Counter
from pathlib import Path

import pytest

from tests.support.client import COLIBRI, JSON, Server
from tests.support.ledger_reader import calls, verified
from tests.support.task_client import refusal

SERVERS = 8
TASKS = 25


class Claimer(threading.Thread):
    """Claims every task at version 1, each together with all the others."""

    def __init__(self, server: Server, number: int, start: threading.Barrier) -> None:
        super().__init__()
        self.server = server
        self.name = f"agent-{number}"
        self.ids = [f"T-{n:04d}" for n in range(1, TASKS + 1)]
        self.answers: dict[str, JSON] = {}
        self.failure: BaseException | None = None
        self._together = start

    def run(self) -> None:
        try:
            for id in self.ids:
                self._together.wait(30)
                claim = {"assignee": self.name, "status": "GATHER", "expected_version": 1}
                self.answers[id] = self.server.call("task_update", task_id=id, **claim)
        except BaseException as problem:
            self.failure = problem


@pytest.mark.slow
def test_of_eight_servers_that_claim_a_task_exactly_one_wins(tmp_path: Path) -> None:
    """Design §7: expected_version; ERR_VERSION_CONFLICT has the current version."""
    servers = [Server(tmp_path, COLIBRI) for _ in range(SERVERS)]
    try:
        for number in range(TASKS):
            servers[0].data("task_create", title=f"task {number}")
        barrier = threading.Barrier(SERVERS)
        claimers = [Claimer(server, n, barrier) for n, server in enumerate(servers)]
        for claimer in claimers:
            claimer.start()
        for claimer in claimers:
            claimer.join()
        assert [claimer.failure for claimer in claimers] == [None] * SERVERS
        for id in claimers[0].ids:
            _assert_one_winner(id, claimers, servers[-1])
        assert [server.close() for server in servers] == [0] * SERVERS
    finally:
        for server in servers:
            server.__exit__(None, None, None)
    verified(servers[0].database)
    outcomes = Counter(pair.code for pair in calls(servers[0].database, "task_update"))
    assert outcomes == {None: TASKS, "ERR_VERSION_CONFLICT": TASKS * (SERVERS - 1)}


def _assert_one_winner(id: str, claimers: list[Claimer], witness: Server) -> None:
    won = [claimer for claimer in claimers if not claimer.answers[id]["isError"]]
    assert len(won) == 1, (id, [claimer.name for claimer in won])
    for claimer in claimers:
        if claimer is not won[0]:
            error = refusal(claimer.answers[id])
            assert error["code"] == "ERR_VERSION_CONFLICT"
            assert (error["task_id"], error["current_version"]) == (id, 2)
            assert error["expected_version"] == 1
            assert f"{id} is at version 2, not 1" in error["message"]
    task = witness.data("task_get", task_id=id)
    assert (task["assignee"], task["status"], task["version"]) == (won[0].name, "GATHER", 2)
    assert won[0].answers[id]["structuredContent"]["data"]["assignee"] == won[0].name
