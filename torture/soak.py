"""Three clients at work for an hour, each with its own server, on one project.

The log grows all the time, and so do the operating system's file cache and the cost of verifying
the whole log, so there is no verification while memory is measured. SQLite's own caches are bounded
and full after the warm-up. A server's memory is its resident size while no call runs.
"""

import time
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any

from tests.support.client import COLIBRI, JSON, Server
from tests.support.faulty import program
from tests.support.task_model import WAY
from torture import ControlFailed, Lab, Trial, Violation, check_log, check_normal

CALLS_A_SECOND = 25  # of each client; more during the warm-up
WARM_UP = 600  # calls of each
WINDOW = 0.2  # share of the samples, at the beginning and at the end
GROWTH = 1.05
MAX_WAL = 16 << 20
LONG = 600  # seconds; in a shorter run the health check's own memory would look like growth
TASKS_PER_SESSION = 3
CONTROL_SECONDS = 6

Life = Generator[tuple[str, JSON], Any, None]


def needs() -> str:
    """Why it cannot run here, or ""."""
    return "" if Path("/proc/self/status").exists() else "there is no /proc to read memory from"


def life() -> Life:
    """What an agent does repeatedly, with all fourteen tools: yields calls, gets their data."""
    while True:
        session = (yield "audit_session_start", {"intent": "soak"})["session_id"]
        here = {"session_id": session}
        for _ in range(TASKS_PER_SESSION):
            id = (yield "task_create", {"title": "a task", "project": session})["task_id"]
            yield "thought_record", {**here, "type": "plan", "content": "x" * 500, "task_id": id}
            for status in WAY[1:]:
                yield "task_update", {"task_id": id, "status": status}
            yield "task_get", {"task_id": id}
            yield "task_list", {"search": "task", "limit": 20}
            yield "task_next_actions", {"limit": 10}
            yield "audit_verify_chain", {"task_id": id}
            yield "server_ping", {}
        thoughts = (yield "thought_record_list", here)["records"]
        yield "merkle_finalize", here
        yield "merkle_root", {**here, "proof_for": thoughts[-1]["thought_id"]}
        yield "audit_verify_chain", here
        yield "skill_list", {}
        yield "server_health", {}


class Client:
    """A server, its agent's calls, and measurements of the process."""

    def __init__(self, project: Path, program: Sequence[str], health_ms: int) -> None:
        self.server = Server(project, program, COLIBRI_HEALTH_INTERVAL_MS=str(health_ms))
        self.calls = 0
        self.last: JSON = {}  # receipt
        self.memory: list[int] = []  # KiB
        self.descriptors: list[int] = []
        self._life = life()
        self._next = next(self._life)

    def work(self, calls: int) -> None:
        for _ in range(calls):
            tool, arguments = self._next
            result = self.server.call(tool, **arguments)
            if result["isError"]:
                raise Violation(f"{tool} failed: {result['structuredContent']}")
            self.last = result.get("_meta", {}).get("colibri/receipt", self.last)
            self._next = self._life.send(result["structuredContent"]["data"])
            self.calls += 1

    def look(self) -> None:
        about = Path("/proc", str(self.server.process.pid))
        lines = about.joinpath("status").read_text().splitlines()
        (resident,) = [line for line in lines if line.startswith("VmRSS:")]
        self.memory.append(int(resident.split()[1]))
        self.descriptors.append(len(list(about.joinpath("fd").iterdir())))

    def problems(self) -> list[str]:
        found = []
        first, last = windows(self.memory)
        if last > first * GROWTH:
            found.append(f"memory grew from {first:,.0f} to {last:,.0f} KiB")
        first, last = windows(self.descriptors)  # a health check has some open for a moment
        if last > first:
            found.append(f"descriptors grew from {first:g} to {last:g}")
        return found


def windows(samples: Sequence[int]) -> tuple[float, float]:
    """The median at the beginning, and at the end."""
    size = max(1, round(len(samples) * WINDOW))
    return median(samples[:size]), median(samples[-size:])


class Soak:
    """Parallel clients, a second's calls at a time, measured in between."""

    def __init__(
        self, lab: Lab, project: Path, programs: Sequence[Sequence[str]], seconds: int
    ) -> None:
        self.lab = lab
        self.seconds = seconds
        health_ms = 30_000 if seconds >= LONG else 1_000
        self.clients = [Client(project, program, health_ms) for program in programs]
        self.wal = 0  # bytes, at most

    def run(self) -> None:
        with ThreadPoolExecutor(len(self.clients)) as pool:
            list(pool.map(lambda client: client.work(WARM_UP), self.clients))
            end = time.monotonic() + self.seconds
            while (now := time.monotonic()) < end:
                list(pool.map(lambda client: client.work(CALLS_A_SECOND), self.clients))
                for client in self.clients:
                    client.look()
                self.wal = max(self.wal, self._log_size())
                self.lab.say(f"{end - now:,.0f} s left, {self.calls:,} calls")
                time.sleep(max(0.0, now + 1 - time.monotonic()))  # keep the pace

    @property
    def calls(self) -> int:
        return sum(client.calls for client in self.clients)

    def _log_size(self) -> int:
        return Path(f"{self.clients[0].server.database}-wal").stat().st_size

    def close(self) -> None:
        for client in self.clients:
            client.server.__exit__(None, None, None)


def control(lab: Lab) -> str:
    """One of three servers leaks descriptors, one memory: both must be caught, not the third."""
    programs = [program("leaks-descriptors"), program("leaks-memory"), COLIBRI]
    soak = Soak(lab, lab.fresh("leaky"), programs, CONTROL_SECONDS)
    try:
        soak.run()
    finally:
        soak.close()
    one, two, three = (" and ".join(client.problems()) for client in soak.clients)
    if "descriptors" not in one or "memory" not in two or "descriptors" in three:
        raise ControlFailed(f"not seen as they are: {one}; {two}; {three}")
    return "a server that leaks a descriptor per call and one that leaks 64 KiB are caught"


def run(lab: Lab) -> dict[str, object]:
    """The hour, and what is left after it."""
    soak = Soak(lab, lab.fresh("soak"), [COLIBRI] * 3, lab.count)
    try:
        soak.run()
        for number, client in enumerate(soak.clients):
            if problems := client.problems():
                raise Violation(f"server {number}: {' and '.join(problems)}")
            check_normal(client.server, f"server {number}")
        if soak.wal > MAX_WAL:
            raise Violation(f"the write-ahead log grew to {soak.wal:,} bytes")
    finally:
        soak.close()
    database = soak.clients[0].server.database
    report = check_log(database, [client.last for client in soak.clients])
    if report.open_calls:
        raise Violation(f"{len(report.open_calls)} open calls")
    growth = max(last / first for first, last in (windows(c.memory) for c in soak.clients))
    return {
        "calls": soak.calls,
        "failed": 0,
        "records verified": report.record_count,
        "unclosed calls": 0,
        "resident at the end": f"{max(c.memory[-1] for c in soak.clients) / 1024:.0f} MiB",
        "most it grew": f"{(growth - 1) * 100:.1f} %",
        "descriptors": soak.clients[0].descriptors[-1],
        "largest write-ahead log": f"{soak.wal / (1 << 20):.1f} MiB",
    }


TRIAL = Trial(
    name="soak",
    title="three clients work with all 14 tools on three servers, 25 calls a second each",
    claim="memory grows by 5 % at most, descriptors not at all, the write-ahead log stays under"
    " 16 MiB, no call stays open, and all of it verifies",
    unit="seconds",
    quick=10,
    full=3_600,
    minutes=60,
    control=control,
    run=run,
    needs=needs,
)
