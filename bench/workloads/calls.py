"""Durable calls: one after another, and 64 in flight."""

import time
from collections import defaultdict
from pathlib import Path

from bench.client import Line, Server, results
from bench.contestants import Contestant
from bench.stats import Rows, percentile, put
from bench.workloads import Plan, Servers, running, turns

P50, P99 = "sequential p50, ms", "sequential p99, ms"
CPU = "its CPU, ms"
RATE = "64 in flight, calls/s"
IN_FLIGHT = 64
WARM = 32
# Load on a shared machine comes and goes within a round, so contestants also alternate within it,
# after so many calls.
SLICE, SLICE_IN_FLIGHT = 20, 128


def run(plan: Plan, contestants: list[Contestant]) -> Rows:
    """Every round both ways, on servers that stay up."""
    rows: Rows = {}
    with running(contestants) as servers:
        for one in contestants:
            server, folder = servers[one.name]
            sequential(server, one.create(folder, WARM))
            in_flight(server, one.create(folder, WARM))
        for _ in turns([None], plan.rounds):
            _sequential_round(plan, contestants, servers, rows)
            _in_flight_round(plan, contestants, servers, rows)
    return rows


def _sequential_round(
    plan: Plan, contestants: list[Contestant], servers: Servers, rows: Rows
) -> None:
    taken: dict[str, list[float]] = defaultdict(list)
    before = {name: cpu(server.process.pid) for name, (server, _) in servers.items()}
    for _, one in turns(contestants, plan.sequential_calls // SLICE):
        server, folder = servers[one.name]
        taken[one.name] += sequential(server, one.create(folder, SLICE))
    for name, times in taken.items():
        put(rows, name, P50, percentile(times, 50))
        put(rows, name, P99, percentile(times, 99))
        spent = cpu(servers[name][0].process.pid) - before[name]
        if spent:
            put(rows, name, CPU, spent / len(times))


def _in_flight_round(
    plan: Plan, contestants: list[Contestant], servers: Servers, rows: Rows
) -> None:
    taken: dict[str, float] = defaultdict(float)
    slices = plan.inflight_calls // SLICE_IN_FLIGHT
    for _, one in turns(contestants, slices):
        server, folder = servers[one.name]
        taken[one.name] += in_flight(server, one.create(folder, SLICE_IN_FLIGHT))
    for name, seconds in taken.items():
        put(rows, name, RATE, slices * SLICE_IN_FLIGHT / seconds)


def cpu(pid: int) -> float:
    """Processor time of all its threads in milliseconds; 0 if the kernel does not say."""
    total = 0
    for thread in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        total += int(thread.read_text(encoding="ascii").split()[0])
    return total / 1e6


def sequential(server: Server, lines: list[Line]) -> list[float]:
    """Milliseconds of each call."""
    taken, answers = [], []
    for line in lines:
        start = time.perf_counter()
        answer = server.ask(line)
        taken.append((time.perf_counter() - start) * 1000)
        answers.append(answer)
    results(lines, answers)
    return taken


def in_flight(server: Server, lines: list[Line], most: int = IN_FLIGHT) -> float:
    """Seconds for all of them, with at most so many unanswered at any time."""
    answers: list[bytes] = []
    sent = min(most, len(lines))
    start = time.perf_counter()
    server.send(b"".join(line.data for line in lines[:sent]))
    while len(answers) < len(lines):
        come = server.take()
        answers += come
        more = lines[sent : sent + len(come)]
        sent += len(more)
        if more:
            server.send(b"".join(line.data for line in more))
    taken = time.perf_counter() - start
    results(lines, answers)
    return taken
