"""Durable calls on slower disks: strace delays every sync, equally for all contestants.

The measuring machine may sync in a tenth of a millisecond; most people's disks take one to ten.
"""

import shutil
from dataclasses import replace

from bench.contestants import Contestant
from bench.stats import Rows, percentile, put
from bench.workloads import Plan, running, turns
from bench.workloads.calls import WARM, in_flight, sequential

DELAYS_MS = (1, 5)
NEEDS = "strace"


def run(plan: Plan, contestants: list[Contestant]) -> Rows:
    """Both ways of calling, for each delay."""
    rows: Rows = {}
    for delay in DELAYS_MS:
        with running([_slowed(one, delay) for one in contestants]) as servers:
            for one in contestants:
                sequential(servers[one.name][0], one.create(servers[one.name][1], WARM))
            for _, one in turns(contestants, plan.rounds):
                server, folder = servers[one.name]
                taken = sequential(server, one.create(folder, plan.disk_calls))
                put(rows, one.name, p50(delay), percentile(taken, 50))
                seconds = in_flight(server, one.create(folder, plan.disk_calls_in_flight))
                put(rows, one.name, rate(delay), plan.disk_calls_in_flight / seconds)
    return rows


def p50(delay: int) -> str:
    return f"sequential p50 with {delay} ms, ms"


def rate(delay: int) -> str:
    return f"64 in flight with {delay} ms, calls/s"


def why_not() -> str | None:
    """Why it cannot be measured here, or None."""
    return None if shutil.which(NEEDS) else f"{NEEDS} is not installed"


def _slowed(contestant: Contestant, delay: int) -> Contestant:
    """The same, with each sync delayed. Other system calls are not traced."""
    syncs = "fsync,fdatasync"
    strace = (NEEDS, "-f", "-qq", "--seccomp-bpf", "-o", "/dev/null", "-e", f"trace={syncs}")
    inject = ("-e", f"inject={syncs}:delay_exit={delay * 1000}")
    return replace(contestant, command=(*strace, *inject, *contestant.command))
