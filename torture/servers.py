"""Eight servers on one project: all started at once without a database, then all writing."""

import threading
import time
from collections.abc import Sequence
from pathlib import Path

from tests.support.client import COLIBRI, JSON, Server
from tests.support.faulty import program
from tests.support.ledger_reader import reading
from torture import ControlFailed, Lab, Trial, Violation, check_log, check_normal

IMPATIENT = program("does-not-wait")
SERVERS = 8
CALLS_PER_START = 20  # calls of each server for each start of the trial: 2,000 for 100
P99_MS = 500
ENOUGH = 10_000  # calls; with fewer, over 1 % are made while servers still start


class Client(threading.Thread):
    """Makes writing calls on its server, one after the other."""

    def __init__(self, server: Server, calls: int) -> None:
        super().__init__()
        self.server = server
        self.calls = calls
        self.receipts: list[JSON] = []
        self.times: list[float] = []
        self.problem: str | None = None

    def run(self) -> None:
        try:
            self.server.handshake()
            for number in range(self.calls):
                began = time.perf_counter()
                result = self.server.call("task_create", title=f"task {number}")
                self.times.append(time.perf_counter() - began)
                if result["isError"]:
                    raise Violation(f"a call failed: {result['structuredContent']}")
                self.receipts.append(result["_meta"]["colibri/receipt"])
        except BaseException as problem:
            self.problem = f"{type(problem).__name__}: {problem}"


def together(
    project: Path, program: Sequence[str], calls: int, count: int = SERVERS
) -> list[Client]:
    """Start all at once, without a database; raises Violation."""
    servers = [Server(project, program, handshake=False) for _ in range(count)]
    try:
        clients = [Client(server, calls) for server in servers]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        if problems := [client.problem for client in clients if client.problem]:
            raise Violation(problems[0])
        _check(servers, clients)
        return clients
    finally:
        for server in servers:
            server.__exit__(None, None, None)


def _check(servers: list[Server], clients: list[Client]) -> None:
    """The log is one chain without a gap and has every acknowledged call."""
    receipts = [receipt for client in clients for receipt in client.receipts]
    for server in servers:
        check_normal(server, "a server")
        if code := server.close():
            raise Violation(f"a server ended with {code}: {server.stderr[-500:]}")
    if calls := check_log(servers[0].database, receipts).open_calls:
        raise Violation(f"{len(calls)} open calls")
    with reading(servers[0].database) as db:
        tasks = db.execute("SELECT count(*) FROM tasks").get
    if tasks != len(receipts):
        raise Violation(f"{tasks} tasks of {len(receipts)} acknowledged calls")


def control(lab: Lab) -> str:
    """Servers that do not wait for each other must fail calls."""
    try:
        together(lab.fresh("impatient"), IMPATIENT, calls=200)
    except Violation as problem:
        return f"servers that do not wait for each other are caught: {str(problem)[:60]}…"
    raise ControlFailed("eight servers that do not wait for each other failed no call")


def run(lab: Lab) -> dict[str, object]:
    """Starts, then the long run."""
    for number in range(lab.count):
        together(lab.fresh(f"start-{number}"), COLIBRI, calls=1)
        lab.say(f"{number + 1} of {lab.count} starts of {SERVERS}")
    clients = together(lab.fresh("long"), COLIBRI, calls=CALLS_PER_START * lab.count)
    times = sorted(time for client in clients for time in client.times)
    p99 = times[len(times) * 99 // 100] * 1000
    if len(times) >= ENOUGH and p99 >= P99_MS:
        raise Violation(f"p99 of a call is {p99:.0f} ms")
    return {
        "failed starts": 0,
        "calls of 8 servers at once": len(times),
        "lost": 0,
        "p50 ms": round(times[len(times) // 2] * 1000),
        "p99 ms": round(p99),
        "worst ms": round(times[-1] * 1000),
    }


TRIAL = Trial(
    name="servers",
    title="8 servers started at the same instant on no database, then 8 × 20 calls for each start",
    claim="no start and no call fails, one chain without gaps, p99 of a call under 500 ms",
    unit="starts of 8",
    quick=3,
    full=100,
    minutes=3,
    alone=True,
    control=control,
    run=run,
)
