"""`python -m bench.moving URL [RECORDS]`: how long it takes to move a large ledger to PostgreSQL.

URL is that of somebody who may create roles and schemas there. One ledger is made of sessions with
their tasks and thoughts, another of almost nothing but tasks. `colibri move-ledger` is killed when
half of the records are copied, and run again. Then the copy must verify with the head of the file,
and nobody may write to the file. Both schemas are dropped in the end.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing, suppress
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import psycopg

from bench import stores
from bench.writers import drop
from colibri.store.postgres import team

RECORDS = 1_000_000
THOUGHTS = 20_000  # in one session of the first ledger
PAUSE = 0.1
MOVED_AWAY = 75  # the exit code of a command that wants to write to the file


def main(arguments: list[str]) -> int:
    if not arguments:
        print(__doc__, file=sys.stderr)
        return 2
    url, records = arguments[0], int((arguments[1:] or [str(RECORDS)])[0])
    with tempfile.TemporaryDirectory(prefix="colibri-moving-") as folder:
        for kind, size in (
            (stores.log, (records, min(THOUGHTS, records // 4))),
            (stores.tasks, (int(records / stores.RECORDS_PER_TASK),)),
        ):
            project = Path(folder) / kind.__name__
            # In a process of its own: what a parent has in memory counts as a child's.
            building = get_context("spawn").Process(target=stores.put, args=(kind, project, *size))
            building.start()
            building.join()
            schema = f"bench_moving_{os.getpid()}_{kind.__name__}"
            try:
                print(f"{kind.__name__}: {move(url, schema, project)}", flush=True)
            finally:
                drop(url, [schema])
    return 0


def move(url: str, schema: str, project: Path) -> str:
    """Move it, with a kill in between; returns what that took, in words."""
    environment = os.environ | {"XDG_STATE_HOME": str(project / "state")}
    colibri = [sys.executable, "-m", "colibri"]
    head = _verified(colibri, project, environment)
    command = [*colibri, "move-ledger", "--to", url, "--schema", schema, "--json"]
    command += ["--project", str(project)]
    killed = _run(command, environment, until=lambda: _copied(url, schema) * 2 >= head["seq"])
    if killed.code != -signal.SIGKILL:
        raise SystemExit(f"the first run was to be killed, and ended with {killed.code}")
    done = _run(command, environment)
    told = json.loads(done.said)
    if done.code or told["found"] != "unfinished" or told["head"] != head:
        raise SystemExit(f"the second run did not finish the first: {done}")
    moved = environment | {"COLIBRI_DB_URL": url, "COLIBRI_DB_SCHEMA": schema}
    if (copied := _verified(colibri, project, moved)) != head:
        raise SystemExit(f"the head of the copy is {copied}, and that of the file {head}")
    note = _run([*colibri, "note", "Is it mine?", "--project", str(project)], environment)
    if note.code != MOVED_AWAY:
        raise SystemExit(f"the file can still be written: {note}")
    return (
        f"{head['seq']:,} records in {killed.seconds + done.seconds:.0f} s, of which"
        f" {killed.seconds:.0f} s until the command was killed;"
        f" {killed.processor + done.processor:.0f} s of its processor time,"
        f" {max(killed.memory, done.memory) / 1e6:.0f} MB"
    )


class _Run:
    """A command that has ended, and what it took."""

    def __init__(self, code: int, said: str, seconds: float, used: Any) -> None:
        self.code = code
        self.said = said
        self.seconds = seconds
        self.processor: float = used.ru_utime + used.ru_stime
        self.memory: int = used.ru_maxrss * 1024

    def __str__(self) -> str:
        return f"exit code {self.code}, {self.said.strip()[:500]}"


def _run(
    command: list[str], environment: dict[str, str], until: Callable[[], bool] | None = None
) -> _Run:
    """Run it to its end, or kill it as soon as something is so."""
    began = time.monotonic()
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=output)
        while until is not None and not _has_ended(process.pid):
            if until():
                process.kill()
                break
            time.sleep(PAUSE)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.monotonic() - began
        output.seek(0)
        return _Run(process.returncode, output.read().decode(), seconds, used)


def _has_ended(pid: int) -> bool:
    """Asked so that what it took can still be read."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _verified(colibri: list[str], project: Path, environment: dict[str, str]) -> dict[str, Any]:
    """The head of a ledger, which must be good."""
    done = _run([*colibri, "verify", "--json", "--project", str(project)], environment)
    if done.code:
        raise SystemExit(f"verify: {done}")
    head: dict[str, Any] = json.loads(done.said)["head"]
    return head


def _copied(url: str, schema: str) -> int:
    """How many records the copy has."""
    with suppress(psycopg.errors.UndefinedTable), closing(team.connect(url)) as asking:
        ((newest,),) = asking.execute(f"SELECT max(seq) FROM {schema}.ledger".encode()).fetchall()
        return newest or 0
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
