"""The real program with clocks that stand still, and randomness that repeats itself.

What is left of chance in mode TEST is time, and what hooks draw. So two runs of it with the same
STILL_SEED can be compared byte for byte. PostgreSQL's clock is its own: see `stop_clock`.
"""

import hashlib
import itertools
import os
import queue
import subprocess
import threading
import time
from collections import defaultdict
from datetime import UTC, datetime
from typing import Any

NOON = 1_767_268_800  # 2026-01-01T12:00:00Z
# They wait by a clock that runs: each took it when it was loaded.
WAITING = (queue, subprocess, threading)


def stop_clock(admin: Any) -> None:
    """Make it always noon in a database of PostgreSQL, whose functions stay as they are."""
    admin.execute(
        "CREATE OR REPLACE FUNCTION pg_catalog.clock_timestamp() RETURNS timestamptz"
        f" LANGUAGE sql STRICT AS 'SELECT to_timestamp({NOON})'"
    )


class Repeating:
    """Bytes by their number; each length has its own numbers, as only one engine draws some."""

    def __init__(self, seed: str) -> None:
        self._seed = seed
        self._drawn: defaultdict[int, itertools.count[int]] = defaultdict(itertools.count)

    def __call__(self, length: int) -> bytes:
        what = f"{self._seed} {length} {next(self._drawn[length])}"
        return hashlib.shake_256(what.encode()).digest(length)


def main() -> None:
    time.time_ns = lambda: NOON * 10**9
    time.monotonic = lambda: 1000.0
    os.urandom = Repeating(os.environ.pop("STILL_SEED"))
    from colibri.__main__ import main as colibri
    from colibri.cli.show import times

    times.now = lambda: datetime.fromtimestamp(NOON, UTC)

    colibri()


if __name__ == "__main__":
    main()
