"""The server that tests on PostgreSQL use ends with them, however they end."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.support import postgres

ROOT = Path(__file__).parent.parent
USE = "from tests.support import postgres; print(*postgres.server(), flush=True); input()"


def gone(directory: Path, port: int) -> bool:
    return not directory.exists() and not Path(f"{directory}/.s.PGSQL.{port}").exists()


def user(run: str) -> "subprocess.Popen[str]":
    """A process of another test run."""
    return subprocess.Popen(
        [sys.executable, "-c", USE],
        cwd=ROOT,
        env={**os.environ, "PYTEST_XDIST_TESTRUNUID": run, "PYTHONPATH": f"{ROOT}:{ROOT}/src"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_the_processes_of_a_run_share_a_server_that_ends_with_the_last_of_them() -> None:
    postgres.server()  # or this is skipped
    run = f"ending-{os.getpid()}"
    first, second = user(run), user(run)
    try:
        assert first.stdout and second.stdout
        said = first.stdout.readline()
        assert said and second.stdout.readline() == said
        directory, port = Path(said.split()[0]), int(said.split()[1])
        pid = int((directory / "data/postmaster.pid").read_text().split()[0])
        first.send_signal(signal.SIGKILL)
        first.wait()
        time.sleep(0.3)
        assert not gone(directory, port)
    finally:
        for one in (first, second):
            one.kill()
            one.communicate()
    end = time.monotonic() + 30
    while not gone(directory, port) or Path(f"/proc/{pid}").exists():
        assert time.monotonic() < end, "the server outlives the tests"
        time.sleep(0.05)
    assert not [*Path(tempfile.gettempdir()).glob(f"colibri-postgres-*{run}*")]
