"""Somebody changes the schema under a running server, or before it starts."""

from pathlib import Path

import apsw
import pytest

from tests.support.client import COLIBRI, Server
from tests.support.ledger_reader import condition, error

ENDLESS = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
CHANGES = {
    "trigger": f"CREATE TRIGGER more AFTER INSERT ON ledger BEGIN {ENDLESS}; END",
    "view": "ALTER TABLE tasks RENAME TO others;"
    " CREATE VIEW tasks AS SELECT * FROM others WHERE number > 1",
}


def intrude(database: Path, sql: str) -> None:
    db = apsw.Connection(str(database))
    db.execute(sql)
    db.close()


@pytest.mark.parametrize("change", CHANGES)
def test_a_running_server_stops_writing_and_names_the_change(tmp_path: Path, change: str) -> None:
    with Server(tmp_path, COLIBRI) as server:
        server.data("task_create", title="the first")
        intrude(server.database, CHANGES[change])
        refused = error(server.call("task_create", title="another"))
        assert refused["code"] == "UNAVAILABLE"
        assert "the schema of the database was changed: the " in refused["message"]
        assert condition(server) == ("SAFE_MODE", "integrity")
        verdict = server.data("audit_verify_chain")
        assert verdict["valid"] is False
        assert {broken["what"] for broken in verdict["breaks"]} == {"foreign-schema"}
        assert error(server.call("task_list"))["code"] == "UNAVAILABLE"
        assert server.close() == 0


@pytest.mark.parametrize("mode", ["FULL", "READONLY"])
@pytest.mark.parametrize("change", CHANGES)
def test_no_server_opens_such_a_file(tmp_path: Path, change: str, mode: str) -> None:
    with Server(tmp_path, COLIBRI) as server:
        server.data("task_create", title="the first")
        assert server.close() == 0
    intrude(server.database, CHANGES[change])
    with Server(tmp_path, COLIBRI, COLIBRI_MODE=mode) as server:
        refused = error(server.call("task_list"))
        assert "does not have the schema that Colibri made" in refused["message"]
        assert server.close() == 75
