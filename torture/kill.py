"""kill -9 at random moments, on the real server with calls in flight.

A round starts a server, checks what the previous round was told, sends a burst and kills. One in
five is killed while it still starts. Every answer that left the server counts as acknowledged,
whether it was read before the kill or after it.
"""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from colibri.store.verify import verify
from tests.support.client import COLIBRI, JSON, Server
from tests.support.faulty import program
from tests.support.ledger_reader import missing, reading
from torture import ControlFailed, Lab, Trial, Violation, check_normal

HASTY = program("answers-early")
ROUNDS_PER_LEDGER = 100  # then a new one: a start after a kill checks the whole file
BURST = 150  # calls in flight when the kill comes
CONTROL_ROUNDS = 30
SESSION = "S-kill"
OPEN_CALLS = "SELECT sum(kind = 'call.enter') - sum(kind = 'call.exit') FROM ledger"
INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "torture", "version": "1"},
}


@dataclass
class Killer:
    """Rounds on one ledger, and what they saw."""

    project: Path
    program: Sequence[str]
    random: Random
    acknowledged: int = 0
    at_boot: int = 0
    records: int = 0
    open_calls: int = 0
    _receipts: list[JSON] = field(default_factory=list)  # of the previous round
    _next: int = 0

    def round(self) -> None:
        """One run of a server; raises Violation."""
        with Server(self.project, self.program, handshake=False) as server:
            server.post("initialize", INITIALIZE, id="hello")
            if self._next and self.random.random() < 0.2:
                self.at_boot += 1
                self._burst(server)
                _pass(self.random.uniform(0.05, 0.2))
            else:
                self._look_back(server)
                self._burst(server)
                _pass(self.random.uniform(0.0, 0.15))
            server.process.kill()
            self._collect(server)

    def finish(self) -> None:
        """Check the whole ledger: chain, rules and rows; every open call must be reported."""
        with Server(self.project, self.program) as server:
            self._look_back(server)
            if code := server.close():
                raise Violation(f"the last server ended with {code}")
        with reading(server.database) as db:
            report = verify(db, pause=lambda: None)
            self.open_calls = db.execute(OPEN_CALLS).get
        if not report.valid:
            raise Violation(f"the log is broken: {report.breaks[:3]}")
        if len(report.open_calls) != self.open_calls:
            raise Violation(f"{self.open_calls} calls are open, {len(report.open_calls)} reported")
        self.records = report.record_count

    def _look_back(self, server: Server) -> None:
        """The start was clean, and everything acknowledged before is present."""
        first = server.call("audit_session_start", intent="be killed", session_id=SESSION)
        if self._next == 0 and first["isError"]:
            raise Violation(f"the first start cannot write: {first}")
        check_normal(server, "after a kill the server")
        if lost := missing(server.database, self._receipts):
            raise Violation(f"{len(lost)} acknowledged calls are lost, the first is {lost[0]}")
        self._receipts = []

    def _burst(self, server: Server) -> None:
        lines = []
        for _ in range(BURST):
            self._next += 1
            params = {"name": "task_create", "arguments": {"title": f"task {self._next}"}}
            if self._next % 2:
                thought = {"session_id": SESSION, "type": "plan", "content": f"{self._next}"}
                params = {"name": "thought_record", "arguments": thought}
            request = {"jsonrpc": "2.0", "id": self._next, "method": "tools/call", "params": params}
            lines.append(json.dumps(request).encode() + b"\n")
        server.send(b"".join(lines))  # less than a pipe holds

    def _collect(self, server: Server) -> None:
        """Every acknowledged change names a different record."""
        while message := server.receive():
            if isinstance(message["id"], int):
                if message["result"]["isError"]:
                    raise Violation(f"a call failed: {message}")
                self.acknowledged += 1
                self._receipts.append(message["result"]["_meta"]["colibri/receipt"])
        if len({receipt["seq"] for receipt in self._receipts}) < len(self._receipts):
            raise Violation("two changes have the same receipt")


def _pass(seconds: float) -> None:
    time.sleep(seconds)  # the random moment itself: there is no event to wait for


def control(lab: Lab) -> str:
    """A server that answers before it commits must lose something."""
    killer = Killer(lab.fresh("hasty"), HASTY, lab.random)
    for number in range(CONTROL_ROUNDS):
        try:
            killer.round()
        except Violation:
            return f"a server that answers before it commits is caught in round {number + 1}"
    raise ControlFailed(f"nothing was lost in {CONTROL_ROUNDS} rounds")


def run(lab: Lab) -> dict[str, object]:
    """Rounds on one ledger after another."""
    killers: list[Killer] = []
    for number in range(lab.count):
        if number % ROUNDS_PER_LEDGER == 0:
            killers.append(Killer(lab.fresh(f"ledger-{number}"), COLIBRI, lab.random))
        killers[-1].round()
        lab.say(f"{number + 1} of {lab.count} kills, {sum(k.acknowledged for k in killers):,} acks")
        if (number + 1) % ROUNDS_PER_LEDGER == 0 or number + 1 == lab.count:
            killers[-1].finish()
    return {
        "acknowledged calls": sum(killer.acknowledged for killer in killers),
        "lost": 0,
        "corrupt": 0,
        "kills during the start": sum(killer.at_boot for killer in killers),
        "open calls, all reported": sum(killer.open_calls for killer in killers),
        "records verified": sum(killer.records for killer in killers),
    }


TRIAL = Trial(
    name="kill",
    title="kill -9 with 150 calls in flight, one in five while the server starts",
    claim="no acknowledged call is lost, every next start is clean, every chain is good",
    unit="kills",
    quick=40,
    full=2_000,
    minutes=10,
    control=control,
    run=run,
)
