"""Checks a log in a separate process: python check.py bare|whole DATABASE

    bare     reads every row as the check reads it and computes the same two hashes, nothing else
    whole    the full check: hashes, rules, and the rows that mirror the log

Prints records, seconds and peak memory in MB.
"""

import json
import resource
import sys
import time
from hashlib import sha256
from pathlib import Path

from colibri.core.ledger import COMMITMENT
from colibri.core.rows import Row
from colibri.store import ledger, verify
from colibri.store.sqlite.opening import open_reader

ROWS = """
    SELECT seq, at, kind, call, session, task, agent, payload, nonce, body, leaf, prev
    FROM ledger ORDER BY seq
"""


def bare(path: str) -> tuple[int, float]:
    reader, count, start = open_reader(path), 0, time.perf_counter()
    log = ledger.log_id(reader)
    for row in map(Row._make, reader.execute(ROWS)):
        if sha256(b"\0" + row.header(log)).digest() != row.leaf:
            raise AssertionError(f"record {row.seq} is not what was hashed")
        sha256(COMMITMENT + (row.nonce or b"") + (row.body or b"")).digest()
        count += 1
    return count, time.perf_counter() - start


def whole(path: str) -> tuple[int, float]:
    reader, start = open_reader(path), time.perf_counter()
    report = verify.verify(reader, pause=lambda: None)
    taken = time.perf_counter() - start
    if not report.valid:
        raise AssertionError(f"the log does not verify: {report.breaks[:5]}")
    return report.record_count, taken


def peak_mb() -> float:
    """Peak memory; not from getrusage on Linux, where a process inherits its parent's peak."""
    if sys.platform == "darwin":
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 / 1024
    with Path("/proc/self/status").open(encoding="ascii") as status:
        (line,) = (line for line in status if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


if __name__ == "__main__":
    measured = {"bare": bare, "whole": whole}[sys.argv[1]](sys.argv[2])
    print(json.dumps([*measured, peak_mb()]))
