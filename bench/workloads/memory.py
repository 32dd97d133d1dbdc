"""Memory after the start and after many calls, and the disk space per call.

Memory is the resident size of a server and its children. "After the start" is after the first
acknowledged change and a short pause, so that late loading counts too.
"""

import subprocess
import time
from pathlib import Path

import apsw

from bench.contestants import COLIBRI, TYPESCRIPT, Contestant
from bench.stats import Rows, put
from bench.workloads import Plan, project, turns
from bench.workloads.calls import sequential

STARTED, GROWN, TAIL, DISK = (
    "after the start, MB",
    "growth by the calls, MB",
    "of it in their second half, MB",
    "database per call, bytes",
)
REST = 0.4
LONG_ROUNDS = {COLIBRI: 3, TYPESCRIPT: 3}  # one long run is enough for the others


def run(plan: Plan, contestants: list[Contestant]) -> Rows:
    """The start in every round; the many calls in the first rounds."""
    rows: Rows = {}
    for number, one in turns(contestants, plan.rounds):
        with project(one) as folder:
            with one.start(folder) as server:
                server.greet()
                sequential(server, one.create(folder, 1))
                time.sleep(REST)
                started = resident(server.process.pid)
                put(rows, one.name, STARTED, started)
                if number >= LONG_ROUNDS.get(one.name, 1):
                    continue
                sequential(server, one.create(folder, plan.memory_calls // 2))
                half = resident(server.process.pid)
                sequential(server, one.create(folder, plan.memory_calls // 2))
                whole = resident(server.process.pid)
            put(rows, one.name, GROWN, whole - started)
            put(rows, one.name, TAIL, whole - half)
            put(rows, one.name, DISK, _database(folder) / (plan.memory_calls + 1))
    return rows


def resident(pid: int) -> float:
    """MB of a process and all its descendants."""
    listed = subprocess.run(
        ["ps", "-A", "-o", "pid=,ppid=,rss="], check=True, capture_output=True, text=True
    )
    table = [tuple(map(int, line.split())) for line in listed.stdout.splitlines()]
    family = {pid}
    while more := {child for child, parent, _ in table if parent in family} - family:
        family |= more
    return sum(size for child, _, size in table if child in family) / 1024


def _database(folder: Path) -> int:
    """Bytes of the database, including what a killed server left in its WAL."""
    (file,) = folder.rglob("*.db")
    connection = apsw.Connection(str(file))
    connection.pragma("wal_checkpoint", "TRUNCATE")
    connection.close()
    return file.stat().st_size
