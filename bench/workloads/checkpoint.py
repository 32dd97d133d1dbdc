"""The first checkpoint of a large log against a bare loop over its leaves, and the next one.

Each runs in a process of its own, and each round on a copy that has no kept roots.
"""

import subprocess
import tempfile
from pathlib import Path

from bench import install, stores
from bench.contestants import Contestant
from bench.stats import Rows, put
from bench.workloads import Plan, turns

BARE, FIRST, NEXT = "bare loop over the leaves", "the first checkpoint", "after 100 more records"
TAKEN = "ms"
_WORDS = {BARE: "bare", FIRST: "first", NEXT: "next"}


def run(plan: Plan, contestants: list[Contestant]) -> Rows:
    """Milliseconds."""
    del contestants
    rows: Rows = {}
    for _ in range(plan.verify_rounds):
        with tempfile.TemporaryDirectory(prefix="bench-") as scratch:
            size = plan.verify_records, plan.verify_records // 10
            path = stores.put(stores.log, Path(scratch), *size)
            for _, name in turns([BARE, FIRST], 1):
                put(rows, name, TAKEN, _timed(name, path))
            put(rows, NEXT, TAKEN, _timed(NEXT, path))
    return rows


def _timed(name: str, path: Path) -> float:
    command = [str(install.colibri()), str(install.STACKS / "tree.py"), _WORDS[name], str(path)]
    done = subprocess.run(command, check=True, capture_output=True, timeout=600)
    return float(done.stdout) * 1000
