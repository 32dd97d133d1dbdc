"""`python -m bench.writers URL [SECONDS]`: how much one PostgreSQL takes from many writers.

URL is that of somebody who may create roles and schemas there. Each writer is a process that
creates tasks with the store's own functions, one after the other: four records in one transaction
that is flushed, as the server's `task_create` makes them. Once they share one log, then several.
"""

import multiprocessing
import os
import sys
import time
from contextlib import closing
from typing import Any, NamedTuple

from psycopg import sql

from bench.stats import percentile
from colibri.core import canonical
from colibri.core.ledger import enter_body, exit_body
from colibri.store import task_changes
from colibri.store.postgres import roles, team
from colibri.store.postgres.home import Home

SHAPES = ((1, 1), (8, 1), (32, 1), (8, 8), (32, 8))  # writers, and how many logs they share
AT = "2026-01-01T00:00:00.000000Z"
SERVER = "00000000-0000-4000-8000-000000000000"
FIELDS = {"title": "a task", "description": None, "project": None, "priority": "medium"}


class Measured(NamedTuple):
    writers: int
    logs: int
    per_second: float
    p50_ms: float
    p99_ms: float


def main(arguments: list[str]) -> int:
    if not arguments:
        print(__doc__, file=sys.stderr)
        return 2
    url, seconds = arguments[0], float(arguments[1]) if arguments[1:] else 10.0
    print("| writers | logs | changes a second | p50 | p99 |\n|---:|---:|---:|---:|---:|")
    for shape in SHAPES:
        found = measure(url, *shape, seconds)
        print(
            f"| {found.writers} | {found.logs} | {found.per_second:,.0f} |"
            f" {found.p50_ms:.1f} ms | {found.p99_ms:.1f} ms |",
            flush=True,
        )
    return 0


def measure(url: str, writers: int, logs: int, seconds: float) -> Measured:
    names = [f"bench_writers_{os.getpid()}_{number}" for number in range(logs)]
    with closing(team.connect(url)) as admin:
        for name in names:
            team.make(admin, name, f"colibri/{os.urandom(16).hex()}")
    try:
        with multiprocessing.Pool(writers) as pool:
            begin = time.monotonic() + 2 + writers / 8  # when all of them are connected
            work = [(url, names[number % logs], begin, seconds) for number in range(writers)]
            times = [one for some in pool.starmap(write, work, chunksize=1) for one in some]
    finally:
        drop(url, names)
    return Measured(
        writers,
        logs,
        len(times) / seconds,
        percentile(times, 50) * 1e3,
        percentile(times, 99) * 1e3,
    )


def write(url: str, schema: str, begin: float, seconds: float) -> list[float]:
    """Create tasks from a moment on, for so long; how long each took. It writes as the
    administrator: the writer's role has no password yet.
    """
    opened: Any = Home(url, schema, schema).open_writer(
        timeout=10, monotonic=time.monotonic, sleep=time.sleep, stamp="", new_log=str
    )
    times: list[float] = []
    with closing(opened):
        change(opened)  # the first prepares its statements
        time.sleep(max(0.0, begin - time.monotonic()))
        while (start := time.monotonic()) < begin + seconds:
            change(opened)
            times.append(time.monotonic() - start)
    return times


def change(opened: Any) -> None:
    call = os.urandom(16).hex()
    with opened.transaction(durable=True, answered=True):
        chain = opened.chain(opened.log, lambda _: os.urandom(32), canonical.dump)

        def append(kind: str, payload: Any, **named: Any) -> Any:
            return chain.append(kind, payload, at=AT, call=call, **named)

        enter = append(
            "call.enter",
            enter_body(
                server=SERVER,
                tool="task_create",
                arguments=FIELDS,
                client=None,
                host_session=None,
                use=None,
            ),
        )
        fields = {**FIELDS, "assignee": None, "depends_on": []}
        task_changes.create(opened.db, append, fields=fields, now=AT)
        append(
            "call.exit",
            exit_body(
                enter=enter.seq,
                tool="task_create",
                outcome="ok",
                code=None,
                result_sha256="0" * 64,
                duration_ms=1,
                repeats=None,
            ),
        )


def drop(url: str, names: list[str]) -> None:
    with closing(team.connect(url)) as admin:
        for name in names:
            admin.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(name)))
            for role in roles.names(name):
                admin.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(role)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
