"""A fault at a system call: KILL, EIO or ENOSPC as the server writes, syncs, truncates or deletes.

strace starts the server and makes the n-th such call on the database's files fail. A round counts
only if strace reports the fault. Afterwards a normal server must find all that was acknowledged.
"""

import random
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.client import COLIBRI, JSON, Server
from tests.support.faulty import program
from tests.support.ledger_reader import condition
from torture import ControlFailed, Lab, Trial, Violation, check_log, check_normal

HASTY = program("answers-early")
ROUNDS_PER_LEDGER = 50
CONTROL_ROUNDS = 60
# Weights: calls that are made more often are chosen more often.
CALLS = (*["pwrite64"] * 4, *["fdatasync"] * 2, "ftruncate", "unlink", "openat")
WHEN = (1, 2, 3, 4, 5, 7, 9, 12, 16, 22)
FAULTS = ("signal=KILL", "error=EIO", "error=ENOSPC")
FILES = ("", "-wal", "-shm", "-journal", ".lock")
# The errors that a call may get when the disk fails.
EXCUSES = ("UNAVAILABLE", "HANDLER_ERROR", "AUDIT_ENTER_FAILED")


def needs() -> str:
    """Why it cannot run here, or ""."""
    return "" if shutil.which("strace") else "strace is not installed"


@dataclass
class Breaker:
    """Rounds on one ledger."""

    project: Path
    program: Sequence[str]
    random: random.Random
    calls: Sequence[str] = CALLS
    injected: Counter[str] = field(default_factory=Counter)
    acknowledged: int = 0
    stopped: int = 0  # servers that stopped writing after EIO, and reported it
    _receipts: list[JSON] = field(default_factory=list)
    _round: int = 0

    def round(self) -> bool:
        """Whether a fault was injected; raises Violation."""
        self._round += 1
        name, fault = self.random.choice(self.calls), self.random.choice(FAULTS)
        when = self.random.choice(WHEN)
        log = self.project / "strace.txt"
        strace = ["strace", "-f", "-o", str(log), "-e", f"trace={name}"]
        strace += ["-e", f"inject={name}:{fault}:when={when}{self.random.choice(('', '+'))}"]
        for suffix in FILES:
            strace += ["-P", str(self.project / "data" / f"colibri.db{suffix}")]
        with Server(self.project, [*strace, *self.program], handshake=False) as server:
            self._story(server)
            if fault == "error=EIO" and _was_hurt(log, fault):
                self._must_have_stopped(server)
            server.process.kill() if self.random.random() < 0.3 else None
        hurt = _was_hurt(log, fault)
        if hurt:
            self.injected[f"{name} {fault.partition('=')[2]}"] += 1
        self._look_back()
        return hurt

    def _story(self, server: Server) -> None:
        """A session with a task, a thought and a seal; counts the answers."""
        session = f"S-{self._round}"
        try:
            server.handshake()
            for tool, arguments in (
                ("audit_session_start", {"session_id": session, "intent": "be hurt"}),
                ("task_create", {"title": f"task {self._round}"}),
                ("thought_record", {"session_id": session, "type": "plan", "content": "x" * 3000}),
                ("task_list", {}),
                ("merkle_finalize", {"session_id": session}),
                ("task_create", {"title": "after the seal"}),
            ):
                self._take(server.call(tool, **arguments))
        except (AssertionError, OSError):
            return  # it was killed

    def _take(self, result: JSON) -> None:
        if not result["isError"]:
            if receipt := result.get("_meta", {}).get("colibri/receipt"):  # none in SAFE_MODE
                self.acknowledged += 1
                self._receipts.append(receipt)
            return
        envelope = result["structuredContent"]
        failure = envelope.get("error") or envelope["data"]["error"]
        follows = failure["code"].startswith("ERR_SESSION") or failure["code"] == "ERR_NO_RECORDS"
        if failure["code"] not in EXCUSES and not follows:
            raise Violation(f"a failing disk was answered by {failure}")

    def _must_have_stopped(self, server: Server) -> None:
        """After EIO on a commit, nothing more is written, and the server reports that."""
        try:
            state = condition(server)
        except (AssertionError, OSError):
            return  # it has exited
        if state == ("SAFE_MODE", "io"):
            self.stopped += 1
            if not server.call("task_create", title="never")["isError"]:
                raise Violation("a server in SAFE_MODE io wrote on")

    def _look_back(self) -> None:
        """A normal server on the same files finds everything."""
        with Server(self.project, COLIBRI) as server:
            result = server.call("task_create", title="unhurt")
            if result["isError"]:
                raise Violation(f"the next start cannot write: {result['structuredContent']}")
            check_normal(server, "the next start")
            if code := server.close():
                raise Violation(f"the next start ended with {code}")
        check_log(server.database, self._receipts)
        self._receipts = []


def _was_hurt(log: Path, fault: str) -> bool:
    said = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    return "(INJECTED)" in said or (fault == "signal=KILL" and "killed by SIGKILL" in said)


def control(lab: Lab) -> str:
    """A server that answers before it commits must lose something if a commit fails."""
    breaker = Breaker(lab.fresh("hasty"), HASTY, lab.random, calls=["pwrite64"])
    for number in range(CONTROL_ROUNDS):
        try:
            breaker.round()
        except Violation as problem:
            return f"a server that answers before it commits is caught in round {number + 1}" + (
                f" ({problem})"
            )
    raise ControlFailed(f"nothing was lost in {CONTROL_ROUNDS} rounds: {breaker.injected}")


def run(lab: Lab) -> dict[str, object]:
    """Rounds until so many faults were injected."""
    breakers: list[Breaker] = []
    total, rounds = 0, 0
    while total < lab.count:
        if rounds % ROUNDS_PER_LEDGER == 0:
            breakers.append(Breaker(lab.fresh(f"ledger-{rounds}"), COLIBRI, lab.random))
        total += breakers[-1].round()
        rounds += 1
        lab.say(f"{total} of {lab.count} faults, {rounds} rounds")
    by_fault: Counter[str] = Counter()
    for breaker in breakers:
        for name, number in breaker.injected.items():
            by_fault[name.split()[1]] += number
    return {
        **{name: by_fault[name] for name in ("KILL", "EIO", "ENOSPC")},
        "acknowledged calls": sum(breaker.acknowledged for breaker in breakers),
        "lost": 0,
        "corrupt": 0,
        "stopped writing after EIO and reported it": sum(breaker.stopped for breaker in breakers),
    }


TRIAL = Trial(
    name="faults",
    title="KILL, EIO or ENOSPC at a write, sync, truncation, deletion or opening of its files",
    claim="nothing acknowledged is lost, EIO stops all writing, the next start is clean",
    unit="faults injected",
    quick=10,
    full=1_000,
    minutes=25,
    control=control,
    run=run,
    needs=needs,
)
