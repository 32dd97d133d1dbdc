"""What the first change of a server on PostgreSQL costs, from the start of the server."""

import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.client import COLIBRI, Server
from tests.support.far import Far, socket_of
from tests.support.postgres import fresh_schema, server

MOST_TRIPS = 15
MOST_MIB = 60
MOST_TIMES = 3  # the processor time of loading psycopg alone
ROUNDS = 3  # of which the fastest counts


def first_change(project: Path, url: str, schema: str) -> int:
    """Start a server and have it change something; the most memory that it used, in MiB."""
    project.mkdir(exist_ok=True)
    where: Any = {"COLIBRI_DB_URL": url, "COLIBRI_DB_SCHEMA": schema}
    with Server(project, COLIBRI, COLIBRI_HEALTH_INTERVAL_MS="1000000", **where) as running:
        running.data("task_create", title="the first")
        status = Path(f"/proc/{running.process.pid}/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) // 1024


def test_the_first_change_takes_few_trips_and_little_memory(tmp_path: Path) -> None:
    here, schema = server(), fresh_schema()
    with Far(socket_of(here.directory, here.port)) as far:
        mebibytes = first_change(tmp_path, far.url(f"{schema}_writer"), schema)
        trips = far.trips
    assert 0 < trips <= MOST_TRIPS
    assert 0 < mebibytes <= MOST_MIB


@pytest.mark.alone
def test_the_first_change_takes_little_more_than_loading_psycopg(tmp_path: Path) -> None:
    """Processor time, which a loaded machine changes less than the time that passes. Loading takes
    0.15 s on a quiet one, so this is the bar of half a second.
    """
    schema = fresh_schema()
    url = server().url(f"{schema}_writer")
    load = [sys.executable, "-c", "import psycopg"]
    loading = _seconds(lambda _: subprocess.run(load, check=True))
    starting = _seconds(lambda round: first_change(tmp_path / str(round), url, schema))
    assert starting <= MOST_TIMES * loading


def _seconds(work: Callable[[int], object]) -> float:
    """The processor time of the processes that a piece of work starts and ends."""
    took = []
    for round in range(ROUNDS):
        before = _spent()
        work(round)
        took.append(_spent() - before)
    return min(took)


def _spent() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
