"""What a crash of the database server takes back, and what it must not."""

from pathlib import Path
from typing import Any

import pytest

from tests.support import cluster
from tests.support.client import COLIBRI, Server
from tests.support.cluster import Cluster, make_schema, wait
from tests.support.far import Far
from tests.support.ledger_reader import condition
from tests.support.told import QUIET, Told


@pytest.mark.skipif(cluster.needs() != "", reason=cluster.needs())
def test_records_that_were_not_flushed_may_go_with_a_crash_and_nobody_calls_it_damage(
    tmp_path: Path,
) -> None:
    """Enter records are not flushed. Calls that were entered, and refused or done after the crash,
    leave a log that verifies; the server goes on by itself.
    """
    with Cluster().make() as database, Far(database.socket) as far:
        told = Told(database, make_schema(database, "crash"))
        where: Any = {"COLIBRI_DB_URL": far.url("crash_writer"), "COLIBRI_DB_SCHEMA": "crash"}
        with Server(tmp_path, COLIBRI, **(QUIET | where)) as running:
            told.call_until_done(running)
            for trip in (1.5, 2.0, 2.5):
                far.delay = 0.05
                posted = told.post(running)
                wait(trip * 2 * far.delay)
                database.kill()
                far.delay = 0.0
                database.start()
                told.collect(running, posted)
                told.call_until_done(running, seconds=30)
                assert condition(running) == ("NORMAL", None)
        assert not told.unknown
        told.check()
        told.verify()
