"""The health loop, every 50 ms: what it notices, and how it reacts."""

from pathlib import Path

import apsw
import pytest

from tests.support.client import JSON, Server
from tests.support.ledger_reader import (
    audited_on_stderr,
    booted,
    calls,
    condition,
    create,
    error,
    eventually,
    verified,
)

EVERY = "50"
CHECKS = {"disk", "lag", "ledger", "memory", "permissions", "queue", "quick_check", "watchers"}


def becomes(server: Server, state: str, cause: str | None) -> None:
    eventually(lambda: condition(server) == (state, cause), f"{state} {cause}", timeout=10)


def checks(server: Server) -> JSON:
    found: JSON = server.data("server_health")["condition"]
    return found


def tamper(database: Path, sql: str) -> None:
    """Change the database as a program of the same user can: drop the triggers, restore them."""
    db = apsw.Connection(str(database))
    db.set_busy_timeout(10_000)
    triggers = list(db.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'"))
    db.execute("BEGIN IMMEDIATE")
    for name, _ in triggers:
        db.execute(f"DROP TRIGGER {name}")
    db.execute(sql)
    for _, statement in triggers:
        db.execute(statement)
    db.execute("COMMIT")
    db.close()


def test_a_sound_server_is_normal_and_says_what_it_checks(tmp_path: Path) -> None:
    """Specification 12.8: condition {state, cause, checks, age_ms}."""
    with Server(tmp_path, COLIBRI_HEALTH_INTERVAL_MS=EVERY) as server:
        server.data("note", n=1)
        eventually(lambda: set(checks(server)["checks"]) == CHECKS, "a whole check")
        found = checks(server)
        assert (found["state"], found["cause"]) == ("NORMAL", None)
        assert found["checks"]["ledger"] == "ok"
        assert found["checks"]["quick_check"] == "ok"
        assert found["checks"]["permissions"] == "ok"
        assert found["age_ms"] < 5000
        assert server.close() == 0


def test_an_open_call_is_counted_while_it_runs_and_no_longer(tmp_path: Path) -> None:
    """Specification 9.8: an enter without an exit is reported as open."""
    with Server(tmp_path, COLIBRI_HEALTH_INTERVAL_MS=EVERY) as server:
        server.data("note", n=1)
        nap = server.post_call("nap_write", ms=2_000)
        eventually(lambda: server.data("server_health")["open_calls"] == 1, "one open call")
        server.answer(nap)
        eventually(lambda: server.data("server_health")["open_calls"] == 0, "no open call")


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE ledger SET leaf = zeroblob(32) WHERE seq = 3",
        "UPDATE ledger SET kind = 'thought' WHERE seq = 3",
        "UPDATE ledger SET body = CAST(replace(body, 'note', 'nota') AS BLOB) WHERE seq = 3",
        "DELETE FROM ledger WHERE seq = 3",
    ],
    ids=["leaf", "column", "payload", "deleted"],
)
def test_a_record_that_is_tampered_with_is_noticed_and_writing_stops(
    tmp_path: Path, sql: str
) -> None:
    """Specification 12.8, 12.12: the newest 200 records; SAFE_MODE integrity for good."""
    with Server(tmp_path, COLIBRI_HEALTH_INTERVAL_MS=EVERY) as server:
        for n in range(5):
            server.data("note", n=n)
        becomes(server, "NORMAL", None)
        tamper(server.database, sql)
        becomes(server, "SAFE_MODE", "integrity")

        refused = error(server.call("note", n=100))
        assert refused["code"] == "UNAVAILABLE"
        assert "record " in refused["message"]
        assert server.data("verify")["valid"] is False
        assert len(audited_on_stderr(server, "verify")) == 2
        assert "[colibri] SAFE_MODE integrity: record " in server.stderr
        assert server.close() == 0
    assert 100 not in [pair.arguments["n"] for pair in calls(server.database, "note")]


def test_damaged_pages_of_the_file_are_noticed_and_writing_stops(tmp_path: Path) -> None:
    """Specification 12.8, 12.12: a random 200 records; damage that SQLite finds counts too."""
    database = tmp_path / "data" / "colibri.db"
    create(database, 10_000)  # more than a connection keeps in memory
    with Server(tmp_path, COLIBRI_HEALTH_INTERVAL_MS=EVERY) as server:
        booted(server)
        size = database.stat().st_size
        with database.open("r+b") as file:
            file.seek(size // 10)
            file.write(b"\xff" * (size * 7 // 10))
        # Not by a probe: writing its record would hit the damage first.
        eventually(lambda: "[colibri] SAFE_MODE integrity: " in server.stderr, "SAFE_MODE")

        assert condition(server) == ("SAFE_MODE", "integrity")
        assert error(server.call("note", n=1))["code"] == "UNAVAILABLE"
        assert server.data("server_ping")["mode"] == "FULL"


def test_too_much_memory_is_an_overload_that_holds_writing_back_but_not_the_records(
    tmp_path: Path,
) -> None:
    """Specification 12.9, 12.10: reads and verification continue and are recorded."""
    settings = {"COLIBRI_HEALTH_INTERVAL_MS": EVERY, "COLIBRI_HEALTH_MAX_RSS_MB": "1"}
    with Server(tmp_path, handshake=True, **settings) as server:
        becomes(server, "SAFE_MODE", "overload")

        refused = error(server.call("note", n=1))
        assert refused["code"] == "UNAVAILABLE"
        assert "held back in SAFE_MODE (overload): memory" in refused["message"]
        assert server.data("verify")["valid"] is True
        assert server.close() == 0
    assert [pair.outcome for pair in calls(server.database, "verify")] == ["ok"]
    assert calls(server.database, "note") == []
    assert audited_on_stderr(server, "verify") == []


@pytest.mark.parametrize(
    ("setting", "word"),
    [("COLIBRI_HEALTH_MAX_QUEUE", "queue"), ("COLIBRI_HEALTH_MAX_LAG_MS", "lag")],
)
def test_an_overload_ends_by_itself_when_the_queue_is_worked_off(
    tmp_path: Path, setting: str, word: str
) -> None:
    """Specification 12.10: SAFE_MODE overload ends by itself; accepted calls are not affected."""
    limit = {"queue": "3", "lag": "150"}[word]
    settings = {"COLIBRI_HEALTH_INTERVAL_MS": EVERY, setting: limit}
    with Server(tmp_path, handshake=True, **settings) as server:
        server.data("note", n=0)
        ids = [server.post_call("nap_write", ms=400) for _ in range(6)]
        becomes(server, "SAFE_MODE", "overload")
        refused = error(server.call("note", n=1))
        assert f"held back in SAFE_MODE (overload): {word} " in refused["message"]

        assert not any(server.answer(id)["result"]["isError"] for id in ids)
        becomes(server, "NORMAL", None)
        assert server.data("note", n=2) == {"n": 2}
        verified(server.database)


def test_while_the_check_itself_cannot_run_only_probes_are_admitted(tmp_path: Path) -> None:
    """Specification 12.11: DIAGNOSE ends with the next check that runs."""
    with Server(tmp_path, COLIBRI_HEALTH_INTERVAL_MS=EVERY) as server:
        server.data("note", n=1)
        server.data("break_check", broken=True)
        becomes(server, "DIAGNOSE", "check")

        for tool in ("note", "verify"):
            refused = error(server.call(tool, n=2))
            assert refused["code"] == "UNAVAILABLE"
            assert "held back in DIAGNOSE" in refused["message"]
        assert server.data("server_ping")["mode"] == "FULL"

        server.data("break_check", broken=False)
        becomes(server, "NORMAL", None)
        assert server.data("note", n=3) == {"n": 3}
        assert server.close() == 0
    assert len(calls(server.database, "server_ping")) == 1
