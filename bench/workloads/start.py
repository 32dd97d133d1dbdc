"""Cold start: process start to `initialize`, to `tools/list`, to the first change acknowledged.

Each process is new and so is its folder; the program's files are in the page cache. The three are
steps of one start, as clients perform it.
"""

import subprocess
import time
from contextlib import nullcontext
from pathlib import Path

from bench.client import INITIALIZE, INITIALIZED, Line, results
from bench.contestants import Contestant, interpreters
from bench.stats import Rows, put
from bench.workloads import Plan, project, turns

STATIONS = ("initialize", "tools/list", "first change")
ENDED = "start to end"


def run(plan: Plan, contestants: list[Contestant]) -> Rows:
    """Milliseconds."""
    rows: Rows = {}
    programs = interpreters()
    everyone: list[Contestant | str] = [*programs, *contestants]
    for one in everyone:  # warms the page cache; not counted
        _interpreter(programs[one]) if isinstance(one, str) else server_start(one)
    for _, one in turns(everyone, plan.rounds):
        if isinstance(one, str):
            put(rows, one, ENDED, _interpreter(programs[one]))
        else:
            for station, taken in zip(STATIONS, server_start(one), strict=True):
                put(rows, one.name, station, taken)
    return rows


def _interpreter(command: tuple[str, ...]) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    return (time.perf_counter() - start) * 1000


def server_start(contestant: Contestant, there: Path | None = None) -> list[float]:
    """Milliseconds to each step, in a new or an existing folder."""
    greeting, listing = Line("initialize", INITIALIZE), Line("tools/list")
    with nullcontext(there) if there else project(contestant) as folder:
        (change,) = contestant.create(folder, 1)
        start = time.perf_counter()
        with contestant.start(folder) as server:
            server.ask(greeting)
            stamps = [time.perf_counter()]
            server.send(INITIALIZED)
            server.ask(listing)
            stamps.append(time.perf_counter())
            answer = server.ask(change)
            stamps.append(time.perf_counter())
        results([change], [answer])
    return [(stamp - start) * 1000 for stamp in stamps]
