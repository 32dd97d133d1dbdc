"""The task tools as the store grows: 1,000 tasks beside 100,000, in one run.

    python bench/tasks.py [LARGE]

Builds both stores through the store's own functions, every task with its ledger records, every
second one with four dependencies; then asks both servers in turn, over stdio. Bars: each median at
most 5 times that of 1,000 tasks, and under 20 ms.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from colibri.core.ledger import Entry
from colibri.store import db, task_changes
from colibri.store.ledger import Chain, log_id

SMALL, LARGE, ROUNDS = 1_000, 100_000, 101
BAR_RATIO, BAR_MS = 5.0, 20.0
PRIORITIES = ("low", "medium", "high", "critical")
AT = "2026-01-01T00:00:00.000000Z"


def build(path: str, count: int) -> None:
    """A store of tasks with two dependencies each on average, 100 projects and 20 assignees."""
    opened = db.open_writer(
        path,
        lock_timeout=10,
        monotonic=time.monotonic,
        sleep=time.sleep,
        stamp="bench",
        new_log=lambda: "colibri/" + os.urandom(16).hex(),
    )
    log = log_id(opened.db)
    for first in range(0, count, 5_000):
        with db.transaction(opened.db, durable=False):
            chain = Chain(opened.db, log, lambda seq: os.urandom(32))

            def append(
                kind: str, payload: dict[str, object], *, task: str, chain: Chain = chain
            ) -> Entry:
                return chain.append(kind, payload, at=AT, call="bench", task=task)

            for number in range(first + 1, min(first + 5_000, count) + 1):
                task_changes.create(opened.db, append, fields=_fields(number), now=AT)
    db.close(opened)


def _fields(number: int) -> dict[str, Any]:
    others = {number // 2, number // 3, number // 5, number // 7} - {0, number}
    return {
        "title": f"Task {number}: mend the {number % 997} of {number % 89}",
        "description": f"Look at part {number * 7919 % 10007} and write down what you find.",
        "project": f"project-{number % 100}",
        "priority": PRIORITIES[number % 4],
        "assignee": f"agent-{number % 20}",
        "depends_on": [f"T-{other:04d}" for other in sorted(others)] if number % 2 else [],
    }


@contextmanager
def server(project: str) -> Iterator[Callable[..., float]]:
    """A server on a store; calling it times one call in milliseconds."""
    program = [sys.executable, "-I", "-c", "from colibri.__main__ import main; main()", "serve"]
    process = subprocess.Popen(
        [*program, "--project", project],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    incoming, outgoing = process.stdout, process.stdin

    def ask(tool: str, **arguments: Any) -> float:
        params = {"name": tool, "arguments": arguments}
        line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        start = time.perf_counter()
        outgoing.write(line.encode() + b"\n")
        outgoing.flush()
        answer = incoming.readline()
        taken = time.perf_counter() - start
        assert not json.loads(answer)["result"]["isError"], answer
        return taken * 1000

    try:
        yield ask
    finally:
        process.communicate()


def questions(count: int) -> dict[str, tuple[str, dict[str, Any]]]:
    """What is asked of a store with so many tasks."""
    return {
        "task_next_actions": ("task_next_actions", {}),
        "task_next_actions of a project": ("task_next_actions", {"project": "project-7"}),
        "task_list by status": ("task_list", {"status": "INIT", "limit": 50}),
        "task_list by project and assignee": (
            "task_list",
            {"project": "project-7", "assignee": "agent-7"},
        ),
        "task_list, a page at 90 %": ("task_list", {"offset": count * 9 // 10}),
        "task_list by status, at 90 %": (
            "task_list",
            {"status": "INIT", "offset": count * 9 // 10},
        ),
        "search, two words": ("task_list", {"search": f"task {count - 17}:"}),
        "task_get": ("task_get", {"task_id": f"T-{count // 2 + 1:04d}"}),
        "task_create": ("task_create", {"title": "one more", "depends_on": ["T-0001"]}),
        "task_update": ("task_update", {"task_id": "T-0002", "title": "another title"}),
    }


def main() -> None:
    """Build, ask, print a table."""
    large = int(sys.argv[1]) if len(sys.argv) > 1 else LARGE
    with tempfile.TemporaryDirectory() as folder:
        for count in (SMALL, large):
            start = time.perf_counter()
            path = Path(folder, str(count), "data", "colibri.db")
            build(str(path), count)
            size = path.stat().st_size / count
            print(
                f"{count:,} tasks built in {time.perf_counter() - start:.1f} s, {size:,.0f} B each"
            )
        with (
            server(f"{folder}/{SMALL}") as small_server,
            server(f"{folder}/{large}") as large_server,
        ):
            print(f"\n{'median of ' + str(ROUNDS):36} {SMALL:>9,} {large:>9,}  ms  ratio")
            small, big = questions(SMALL), questions(large)
            for name, (tool, arguments) in small.items():
                times: tuple[list[float], list[float]] = ([], [])
                for turn in range(ROUNDS):
                    new = {"title": f"title {turn}"} if tool == "task_update" else {}
                    times[0].append(small_server(tool, **{**arguments, **new}))
                    times[1].append(large_server(tool, **{**big[name][1], **new}))
                few, many = statistics.median(times[0]), statistics.median(times[1])
                print(f"{name:36} {few:9.2f} {many:9.2f}      {many / few:5.2f}")
    print(f"bars: at most {BAR_RATIO:g} times, and under {BAR_MS:g} ms")


if __name__ == "__main__":
    main()
