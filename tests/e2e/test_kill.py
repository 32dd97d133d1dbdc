"""kill -9 at random moments: what was acknowledged is there, and the next start is clean.

COLIBRI_TEST_KILLS sets the number of rounds; each is slower than the last, as the ledger grows.
"""

import json
import os
import random
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.support.client import JSON, TOOLBOX, Server
from tests.support.evidence import calls, condition, missing, reading, verified

ROUNDS = int(os.environ.get("COLIBRI_TEST_KILLS", "200"))
HASTY = (sys.executable, "-m", "tests.support.hasty")
BURST = 150  # calls in flight when the kill comes
INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


@dataclass
class Tally:
    """What the rounds saw."""

    acknowledged: int = 0
    kept: list[str] = field(default_factory=list)  # acknowledged keys
    at_boot: int = 0
    lost: list[JSON] = field(default_factory=list)
    longest_start: float = 0.0


class Killer:
    """Rounds of start, look back, burst and kill, all on one database."""

    def __init__(self, project: Path, program: Sequence[str], seed: int) -> None:
        self.project = project
        self.program = program
        self.random = random.Random(seed)
        self.tally = Tally()
        self._receipts: list[JSON] = []  # of the round before
        self._next = 0

    def round(self) -> None:
        """One life of a server; one in five ends while it starts."""
        began = time.monotonic()
        with Server(self.project, self.program, handshake=False) as server:
            server.post("initialize", INITIALIZE, id="hello")
            if self.random.random() < 0.2 and self._next:
                self.tally.at_boot += 1
                self._burst(server)
                _pass(self.random.uniform(0.05, 0.2))
            else:
                self._look_back(server)
                self.tally.longest_start = max(self.tally.longest_start, time.monotonic() - began)
                self._burst(server)
                _pass(self.random.uniform(0.0, 0.06))
            server.process.kill()
            self._collect(server)

    def _look_back(self, server: Server) -> None:
        """The start was clean, and has all that was acknowledged before."""
        assert server.call("note", n=-1)["isError"] is False  # from here on the database is open
        assert condition(server) == ("NORMAL", None), server.stderr
        self.tally.lost += missing(server.database, self._receipts)
        self._receipts = []

    def _burst(self, server: Server) -> None:
        lines = []
        for _ in range(BURST):
            self._next += 1
            call: JSON = {"name": "note", "arguments": {"n": self._next}}
            if self._next % 2:
                call = {"name": "keep", "arguments": {"key": f"k{self._next}"}}
            request = {"jsonrpc": "2.0", "id": self._next, "method": "tools/call", "params": call}
            lines.append(json.dumps(request).encode() + b"\n")
        server.send(b"".join(lines))  # less than a pipe holds

    def _collect(self, server: Server) -> None:
        """Every answer that has left the server counts, read before the kill or after it."""
        while message := server.receive():
            if isinstance(message["id"], int):
                assert message["result"]["isError"] is False, message
                self.tally.acknowledged += 1
                self._receipts.append(message["result"]["_meta"]["colibri/receipt"])
                if message["id"] % 2:
                    self.tally.kept.append(f"k{message['id']}")


def _pass(seconds: float) -> None:
    time.sleep(seconds)  # the random moment itself: there is no event to wait for


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_no_acknowledged_call_is_lost_to_kill_9_and_every_next_start_is_clean(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Design §4, §6: no answer leaves before the sync that covers it."""
    began = time.monotonic()
    seed = random.randrange(2**32)
    killer = Killer(tmp_path, TOOLBOX, seed)
    for _ in range(ROUNDS):
        killer.round()
        assert killer.tally.lost == [], f"seed {seed}"
    tally = killer.tally
    with Server(tmp_path) as server:
        killer._look_back(server)
        assert server.close() == 0

    assert tally.lost == [], f"seed {seed}"
    assert tally.acknowledged > ROUNDS
    report = verified(server.database)
    _assert_changes_match_records(server.database, tally.kept)
    with capsys.disabled():
        print(  # noqa: T201 - figures for the log
            f"\n  {ROUNDS} kills ({tally.at_boot} during the start) in"
            f" {time.monotonic() - began:.0f} s: {tally.acknowledged} acknowledged,"
            f" {report.record_count} records, {len(report.open_calls)} open calls, slowest start"
            f" {tally.longest_start * 1000:.0f} ms"
        )


def _assert_changes_match_records(database: Path, acknowledged: list[str]) -> None:
    """A handler's change is there exactly when its exit record is."""
    recorded = {pair.arguments["key"] for pair in calls(database, "keep") if pair.outcome == "ok"}
    with reading(database) as db:
        rows = {key for (key,) in db.execute("SELECT key FROM meta WHERE value = 'kept'")}
    assert rows == recorded
    assert set(acknowledged) <= rows


@pytest.mark.slow
def test_a_database_whose_creation_was_killed_is_created_by_the_next_start(tmp_path: Path) -> None:
    """Design §12: created and migrated in transactions, under the lock file."""
    for number in range(ROUNDS // 10):
        project = tmp_path / str(number)
        project.mkdir()
        with Server(project, handshake=False) as server:
            server.post("initialize", INITIALIZE, id="hello")
            _pass(random.uniform(0.06, 0.16))
            server.process.kill()
        with Server(project) as server:
            assert server.data("note", n=1) == {"n": 1}
            assert condition(server) == ("NORMAL", None)
            assert server.close() == 0
        verified(server.database)


@pytest.mark.slow
def test_the_same_rounds_catch_a_server_that_answers_before_it_commits(tmp_path: Path) -> None:
    """The harness must first prove that it can fail."""
    killer = Killer(tmp_path, HASTY, seed=1)
    for _ in range(30):
        killer.round()
        if killer.tally.lost:
            return
    raise AssertionError(f"nothing was lost in 30 rounds: {killer.tally}")
