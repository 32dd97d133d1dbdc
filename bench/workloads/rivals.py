"""The servers that a user would pick instead: start-up, create, list, next, with their own tools.

Their stores hold the same small number of tasks when the clock starts. Only Colibri syncs what it
acknowledges and keeps a ledger; the others write files without a sync, as strace shows.
"""

import subprocess
from collections.abc import Callable
from pathlib import Path

from bench.client import Line
from bench.contestants import Contestant
from bench.stats import Rows, percentile, put
from bench.workloads import Plan, running, turns
from bench.workloads.calls import sequential
from bench.workloads.start import STATIONS, server_start

CREATE, LIST, NEXT = "create p50, ms", "list p50, ms", "next task p50, ms"


def run(plan: Plan, contestants: list[Contestant]) -> Rows:
    rows: Rows = {}
    for _, one in turns(contestants, plan.rounds):
        for station, taken in zip(STATIONS[:2], server_start(one), strict=False):
            put(rows, one.name, f"start to {station}, ms", taken)
    with running(contestants) as servers:
        for one in contestants:
            server, folder = servers[one.name]
            sequential(server, one.create(folder, plan.rival_tasks))
        for _, one in turns(contestants, plan.rounds):
            server, folder = servers[one.name]
            lines = {
                LIST: _repeat(one.tools.list, folder, plan.rival_calls),
                NEXT: _repeat(one.tools.next, folder, plan.rival_calls),
                CREATE: one.create(folder, plan.rival_calls),
            }
            for metric, asked in lines.items():
                if asked:
                    put(rows, one.name, metric, percentile(sequential(server, asked), 50))
    return rows


def why_not(contestant: Contestant) -> str | None:
    """Why it cannot take part, or None: it starts, lists its tools and makes a task."""
    try:
        server_start(contestant)
    except (OSError, EOFError, AssertionError, subprocess.SubprocessError) as problem:
        return f"{type(problem).__name__}: {problem}"
    return None


def _repeat(make: Callable[[Path], Line] | None, folder: Path, count: int) -> list[Line]:
    return [make(folder) for _ in range(count)] if make else []
