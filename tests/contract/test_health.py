"""server_health, as a client and as an embedding program see it."""

import fcntl
import re
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import Struct

import colibri
from colibri.config import Config, load
from colibri.server import ColibriToolConfig, create_server, register_colibri_tool
from colibri.store.sqlite.connection import Connection
from colibri.store.sqlite.schema import table_count
from colibri.tools.system import Health
from tests.contract import JSON, PATIENCE, Linked, Recording, configured
from tests.contract.requirement import requirement
from tests.support import engines
from tests.support.client import COLIBRI, Server
from tests.support.ledger_reader import reading
from tests.support.program import tamper

SIX: dict[str, type] = {
    "status": str,
    "version": str,
    "uptime_ms": int,
    "db_tables": int,
    "phase": str,
    "mode": str,
}
MODES = ("FULL", "READONLY", "TEST", "MINIMAL")


class Nothing(Struct):
    pass


def health(**options: Any) -> JSON:
    """The answer of a newly started server."""
    with Linked(**options) as server:
        return server.data("server_health")


@contextmanager
def held(config: Config) -> Iterator[None]:
    """Keep the server from opening its database: another process is creating or changing it."""
    if engines.chosen() == "postgres":
        from tests.support import postgres

        with postgres.server().connect() as admin, admin.transaction():
            admin.execute(f"LOCK TABLE {config.db_schema}.meta".encode())
            yield
        return
    lock = Path(config.db_path + ".lock")
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def unopenable(project: Path) -> Config:
    """A directory is in the place of the file, or nobody listens where the server should be."""
    if engines.chosen() == "postgres":
        return configured(
            project,
            COLIBRI_DB_URL="postgresql://somebody@127.0.0.1:1/nowhere",
            COLIBRI_STARTUP_TIMEOUT_MS="100",
        )
    config = configured(project)
    Path(config.db_path).mkdir(parents=True)
    return config


# The tables of a ledger, in the words of each engine.
TABLES = {
    "sqlite": "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'",
    "postgres": "SELECT count(*) FROM pg_tables WHERE schemaname = current_schema()",
}


# What goes in and comes out.


@requirement("003:3.1")
def test_fields_that_it_does_not_know_are_discarded() -> None:
    """Specification 12.4."""
    sink = Recording()
    with Linked(audit_sink=sink) as server:
        assert server.data("server_health", {"extra": [1], "status": "bad"})["status"] == "ok"
    assert sink.pair()[0].args == {}


@requirement("003:3.1", "003:6.1")
@pytest.mark.parametrize("arguments", ["foo", 1, 0, False, [], [{}]])
def test_arguments_that_are_not_an_object_get_the_envelope(arguments: object) -> None:
    """Specification 12.4: stage 2 answers, not the protocol."""
    with Linked() as server:
        result = server.call("server_health", arguments)
    error = result["structuredContent"]["error"]
    assert result["isError"] is True
    assert result["structuredContent"]["ok"] is False
    assert error["code"] == "INVALID_PARAMS"
    assert error["message"].startswith("schema validation failed")
    assert error["details"]["issues"] == [
        {"path": "", "problem": "not an object", "allowed": "an object"}
    ]


@requirement("003:3.2")
def test_the_answer_begins_with_the_six_fields_and_fits_its_schema(project: Path) -> None:
    """Specification 12.2: then the report."""
    with Linked(config=configured(project)) as server:
        server.wait_for_store()
        data = server.data("server_health")
        listing = server.ctx.parts.admission.tools["server_health"].listing
    for name, kind in SIX.items():
        assert type(data[name]) is kind, name
    assert data["status"] == "ok"
    assert data["version"]
    assert data["phase"] in ("phase1", "phase2")
    msgspec.convert(data, Health)
    advertised = listing["outputSchema"]["properties"]["data"]
    assert advertised["properties"].keys() == data.keys()
    assert list(advertised["properties"])[:6] == list(SIX)


@requirement("003:4.1")
def test_the_answer_is_made_from_the_context() -> None:
    """Specification 12.2."""
    data = health(version="7.7", mode="TEST", now_ms=lambda: 1500.7, boot_start_ms=500.0)
    shown = {name: data[name] for name in SIX}
    assert shown == {
        "status": "ok",
        "version": "7.7",
        "uptime_ms": 1000,
        "db_tables": 0,
        "phase": "phase1",
        "mode": "TEST",
    }


@requirement("003:5.4")
def test_the_version_is_the_one_the_build_reads() -> None:
    """Specification 12.2."""
    source = Path(colibri.__file__).read_text(encoding="utf-8")
    found = re.search(r'^VERSION(?:: [\w\[\]]+)? = "([^"]+)"', source, re.MULTILINE)
    assert found is not None
    assert health()["version"] == found[1]


@requirement("003:5.5")
@pytest.mark.parametrize("mode", MODES)
def test_each_of_the_four_modes_is_shown(mode: str) -> None:
    """Specification 12.2."""
    assert health(mode=mode)["mode"] == mode


# It always answers, and at once.


@requirement("003:4.2")
def test_it_answers_while_every_lane_is_busy() -> None:
    """Specification 3.2: and it shows what waits."""
    server, release = Linked(), threading.Event()
    hold = ColibriToolConfig(input_schema=Nothing)
    register_colibri_tool(server.ctx, "hold", hold, lambda _: release.wait(PATIENCE))
    with server:
        server.post("hold")
        server.post("hold")
        data = server.data("server_health")
        release.set()
        server.receive()
        server.receive()
    assert data["queues"] == {"read": 0, "write": 2}


@requirement("003:5.1")
def test_it_answers_within_100_ms(project: Path) -> None:
    """Specification 12.3: the fastest of ten, as this machine may be busy with other things."""
    with Server(project, COLIBRI) as server:
        times = []
        for _ in range(10):
            begun = time.monotonic()
            server.data("server_health")
            times.append(time.monotonic() - begun)
    assert min(times) < 0.1


@requirement("003:4.4", "003:5.3:open-failed")
def test_it_answers_when_the_database_cannot_be_opened(project: Path) -> None:
    """Specification 11.5, 12.3, 12.5: it says why, and the exit code is 75."""
    config = unopenable(project)
    with Linked(config=config) as server:
        server.wait_for_store()
        data = server.data("server_health")
    assert (data["phase"], data["db_tables"], data["status"]) == ("phase1", 0, "ok")
    assert data["db"]["path"] == config.ledger_name
    assert data["db"]["status"].startswith("not open: ")
    assert server.exit_code == 75


@requirement("003:4.4")
def test_it_answers_when_the_ledger_is_damaged(project: Path) -> None:
    """Specification 12.2, 12.3: status stays ok, the condition says what is wrong."""
    config = configured(project)
    with Linked(config=config) as server:
        server.data("server_ping")
    tamper(Path(config.db_path), f"UPDATE ledger SET leaf = {engines.blob(bytes(32))}")
    with Linked(config=config) as server:
        server.wait_for_store()
        data = server.data("server_health")
    assert data["status"] == "ok"
    assert (data["condition"]["state"], data["condition"]["cause"]) == ("SAFE_MODE", "integrity")
    assert data["db_tables"] > 0


@requirement("003:4.4")
def test_it_answers_when_the_file_is_deleted_under_it(tmp_path: Path) -> None:
    """Specification 12.3; of a file alone."""
    config = load(str(tmp_path), {})
    server = Linked(config=config)
    look = ColibriToolConfig(input_schema=Nothing, lane="read")
    register_colibri_tool(server.ctx, "look", look, lambda _: True)
    with server:
        server.call("look")  # every connection is open
        Path(config.db_path).unlink()
        data = server.data("server_health")
    assert (data["status"], data["db"]["size_bytes"]) == ("ok", 0)


# The phases.


@requirement("003:4.3", "003:5.3:before-bootstrap")
def test_before_the_start_an_unset_phase_is_shown_as_phase1() -> None:
    """Specification 12.5."""
    ctx = create_server(mode="FULL")
    assert ctx.phase is None
    assert ctx.parts.probes.report()["phase"] == "phase1"


@requirement("003:5.3:bootstrap")
def test_while_the_transport_connects_the_phase_is_phase1() -> None:
    """Specification 12.5."""
    server = Linked()
    seen: list[object] = []
    connect_transport = server.ctx.parts.transport.start

    def observe() -> None:
        seen.append((server.ctx.phase, server.ctx.parts.probes.report()["phase"]))
        connect_transport()

    server.ctx.parts.transport.start = observe  # type: ignore[method-assign]
    with server:
        server.data("server_ping")
    assert seen == [("phase1", "phase1")]


@requirement("003:5.3:started", "003:5.3:opened", "003:5.2")
def test_phase2_begins_when_the_database_is_open(project: Path) -> None:
    """Specification 12.5."""
    config = configured(project)
    with ExitStack() as stack:
        with held(config):
            server = stack.enter_context(Linked(config=config))
            before = server.data("server_health")
        server.wait_for_store()
        after = server.data("server_health")
    assert (before["phase"], before["db_tables"]) == ("phase1", 0)
    assert before["db"]["status"] == "opening"
    assert after["phase"] == "phase2"
    assert after["db_tables"] > 0
    assert after["db"]["status"] == "open"


@requirement("003:5.2")
def test_db_tables_counts_the_tables(project: Path, engine: str) -> None:
    """Specification 12.6."""
    config = configured(project)
    with Linked(config=config) as server:
        server.wait_for_store()
        told = server.data("server_health")["db_tables"]
    with reading(Path(config.db_path)) as db:
        assert told == db.execute(TABLES[engine]).get


@requirement("003:5.2")
def test_db_tables_leaves_out_sqlites_own(tmp_path: Path) -> None:
    """Specification 12.6; of a file alone: they appear with ANALYZE."""
    config = load(str(tmp_path), {})
    with Linked(config=config) as server:
        server.wait_for_store()
    db = Connection(config.db_path)
    counted = table_count(db)
    db.execute("CREATE TABLE one_more (n INTEGER); CREATE INDEX an_index ON one_more (n); ANALYZE")
    assert db.execute("SELECT count(*) FROM sqlite_master WHERE name LIKE 'sqlite_stat%'").get
    assert table_count(db) == db.execute(TABLES["sqlite"]).get == counted + 1
    db.close()


@requirement("003:5.3:closed", "003:6.2")
def test_after_the_shutdown_it_is_still_phase2_without_tables(project: Path) -> None:
    """Specification 12.5, 12.6: asking a closed server raises nothing."""
    with Linked(config=configured(project)) as server:
        server.wait_for_store()
        assert server.data("server_health")["db_tables"] > 0
    data = server.ctx.parts.probes.report()
    assert (data["phase"], data["db_tables"], data["status"]) == ("phase2", 0, "ok")


# Sinks and logs.


@requirement("003:6.3")
def test_a_sink_that_fails_on_exit_does_not_leak_into_the_answer() -> None:
    """Specification 17.7."""
    with Linked(audit_sink=Recording(fail_exit=RuntimeError("disk gone"))) as server:
        assert server.data("server_health")["status"] == "ok"
    assert server.logged.count("[colibri] audit-exit sink failed: disk gone") == 1


@requirement("003:7.1", "003:7.2")
def test_a_probe_is_one_enter_and_one_exit_event() -> None:
    """Specification 17.1, 17.5: result is the value, not the envelope."""
    sink = Recording()
    with Linked(audit_sink=sink, now_ms=lambda: 42.5, boot_start_ms=0.0) as server:
        data = server.data("server_health")
    enter, end = sink.pair()
    assert (enter.tool, enter.args, enter.timestamp) == ("server_health", {}, 42.5)
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", enter.correlation_id)
    assert (end.tool, end.correlation_id) == ("server_health", enter.correlation_id)
    assert (end.duration_ms, end.error) == (0, None)
    assert end.result == data


@requirement("003:7.3")
@pytest.mark.parametrize("mode", MODES)
def test_a_probe_writes_no_log_line(project: Path, mode: str) -> None:
    """Specification 12.7: the audit line of READONLY and MINIMAL is not a log line."""
    config = configured(project, COLIBRI_MODE=mode, COLIBRI_LOG_LEVEL="debug")
    with Linked(config=config) as server:
        server.wait_for_store()
        before = list(server.logged)
        for _ in range(3):
            server.data("server_health")
        after = list(server.logged)
    assert after == before
    assert "[colibri] ready" in before


@requirement("003:5.3:started")
def test_a_server_without_a_database_stays_in_phase1() -> None:
    """Specification 12.5: nothing was opened, so nothing is phase2."""
    with Linked() as server:
        server.wait_for_store()
        assert server.data("server_health")["phase"] == "phase1"
