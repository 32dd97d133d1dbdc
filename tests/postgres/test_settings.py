"""Settings of the machine, the role or the database, under which the ledger works all the same."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.client import COLIBRI, Server
from tests.support.postgres import fresh_schema, server
from tests.support.told import QUIET

TITLE = "→ a snowman ☃, and a \\ backslash"


@pytest.mark.parametrize(
    ("setting", "query", "environment"),
    [
        ("", "", {"PGCLIENTENCODING": "LATIN1", "PGTZ": "Asia/Tokyo", "PGDATESTYLE": "German"}),
        ("", "?client_encoding=latin1", {}),
        ("client_encoding = 'LATIN1'", "", {}),
        ("standard_conforming_strings = off", "", {}),
        ("default_transaction_isolation = 'serializable'", "", {}),
        ("bytea_output = 'escape'", "", {}),
    ],
)
def test_a_setting_changes_nothing(
    tmp_path: Path, setting: str, query: str, environment: dict[str, str]
) -> None:
    schema = fresh_schema()
    if setting:
        with server().connect() as admin:
            admin.execute(f"ALTER ROLE {schema}_writer SET {setting}".encode())
    url = server().url(f"{schema}_writer") + query
    where: Any = {"COLIBRI_DB_URL": url, "COLIBRI_DB_SCHEMA": schema}
    with Server(tmp_path, COLIBRI, **(QUIET | where | environment)) as running:
        task = running.data("task_create", title=TITLE)["task_id"]
        assert running.data("task_get", task_id=task)["title"] == TITLE
        assert running.data("task_list", search="☃")["total_count"] == 1
        assert running.data("audit_verify_chain")["valid"]
