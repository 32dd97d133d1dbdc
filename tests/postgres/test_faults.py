"""What a server does when its database is away, broken, full or not what it was.

Each fault is tried in a few rounds here; torture/team_faults.py tries many.
"""

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.support.client import COLIBRI, JSON, Server
from tests.support.far import Far, socket_of
from tests.support.ledger_reader import eventually
from tests.support.postgres import fresh_schema, psycopg, server
from tests.support.told import QUIET, Told, break_in_flight, come_late, lose_answers, stop_with_lock


@pytest.fixture
def schema() -> str:
    return fresh_schema()


@pytest.fixture
def far() -> Iterator[Far]:
    here = server()
    with Far(socket_of(here.directory, here.port)) as proxy:
        yield proxy


def start(project: Path, url: str, schema: str, **more: Any) -> Server:
    project.mkdir(exist_ok=True)
    where: Any = {"COLIBRI_DB_URL": url, "COLIBRI_DB_SCHEMA": schema}
    return Server(project, COLIBRI, **(QUIET | where | more))


def titles(schema: str) -> list[str]:
    """Of every task, as the database has them."""
    with server().connect() as admin:
        rows = admin.execute(f"SELECT title FROM {schema}.tasks ORDER BY number".encode())
        return [title for (title,) in rows]


def as_admin(statement: str) -> None:
    with server().connect() as admin:
        admin.execute(statement.encode())


def refused(result: JSON) -> str:
    assert result["isError"], result
    message: str = result["structuredContent"]["error"]["message"]
    return message


def verified(running: Server) -> None:
    verdict = running.data("audit_verify_chain")
    assert verdict["valid"], verdict


def test_a_connection_that_broke_while_nobody_used_it_is_replaced(
    tmp_path: Path, far: Far, schema: str
) -> None:
    """No call notices."""
    with start(tmp_path, far.url(f"{schema}_writer"), schema) as running:
        running.data("task_create", title="before")
        for number in range(3):
            far.drop()
            running.data("task_create", title=f"after {number}")
            far.drop()
            assert running.data("task_list")["total_count"] == number + 2
        verified(running)
    assert titles(schema) == ["before", "after 0", "after 1", "after 2"]


def test_a_server_that_is_away_is_said_and_taken_up_again(
    tmp_path: Path, far: Far, schema: str
) -> None:
    with start(tmp_path, far.url(f"{schema}_writer"), schema) as running:
        running.data("task_create", title="before")
        far.cut()
        far.drop()
        message = refused(running.call("task_create", title="lost"))
        assert "the database server cannot be reached" in message
        assert "nothing was changed" in message
        health = running.data("server_health")
        assert "cannot be reached" in health["condition"]["checks"]["server"]
        far.restore()
        running.data("task_create", title="after")
        assert "server" not in running.data("server_health")["condition"]["checks"]
        verified(running)
    assert titles(schema) == ["before", "after"]


@pytest.mark.parametrize("after", range(0, 40, 4))
def test_calls_in_flight_when_the_connection_breaks_are_done_once_or_not_at_all(
    tmp_path: Path, far: Far, schema: str, after: int
) -> None:
    """Cut at many moments: before, during and after the commit."""
    told = Told(server(), schema)
    with start(tmp_path, far.url(f"{schema}_writer"), schema) as running:
        told.call_until_done(running)
        break_in_flight(told, running, far, after / 1000)
        assert all("nothing was changed" in why for why in told.refused.values())
        verified(running)
    assert not told.unknown
    told.check()


@pytest.mark.parametrize("answers", range(4))
def test_what_was_committed_and_not_answered_is_looked_up(
    tmp_path: Path, far: Far, schema: str, answers: int
) -> None:
    """Every answer that may be missing: of the enter, of the commit, of the flush."""
    told = Told(server(), schema)
    with start(tmp_path, far.url(f"{schema}_writer"), schema) as running:
        told.call_until_done(running)
        assert lose_answers(told, running, far, answers)
        running.data("task_list")  # its connection broke as well, and is a new one now
        far.mute(answers)
        id = running.post_call("task_list")
        time.sleep(0.5)
        far.restore()
        listed = running.answer(id)["result"]
        assert listed["isError"] is False, listed
        assert listed["structuredContent"]["data"]["total_count"] == 2
        verified(running)
        assert running.data("audit_verify_chain")["open_call_count"] == 0
    told.check()


def test_a_connection_that_ends_after_all_is_answered_does_not_hide_the_commit(
    schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last words come where PostgreSQL would say that it is ready, the end a moment later."""
    from colibri.store.postgres import opened
    from colibri.store.postgres.home import Home

    as_admin(f"""SET search_path = {schema};
        CREATE TABLE flushes (n int); GRANT INSERT ON flushes TO {schema}_writer;
        CREATE SEQUENCE ends;
        CREATE FUNCTION end_once() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
        SET search_path FROM CURRENT AS $$ BEGIN
            IF nextval('ends') = 1 THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF;
            PERFORM 1; RETURN NULL;
        END $$;
        CREATE CONSTRAINT TRIGGER ends AFTER INSERT ON flushes DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION end_once()""")
    monkeypatch.setattr(opened, "_FLUSH", f"INSERT INTO {schema}.flushes VALUES (1)")
    home = Home(server().url(f"{schema}_writer"), "test", schema)
    clock: Any = {"monotonic": time.monotonic, "sleep": time.sleep}
    with closing(home.open_writer(timeout=5, stamp="", new_log=str, **clock)) as ledger:
        with ledger.transaction(durable=True):
            chain = ledger.chain(ledger.log, lambda _: bytes(32))
            payload = {"seqs": [1], "reason": None}
            made = chain.append("erasure", payload, at=ledger.utc(), call=str(uuid4()))
        assert ledger.connections == 1
    with server().connect() as admin:
        rows = admin.execute(f"SELECT seq, leaf FROM {schema}.ledger".encode()).fetchall()
    assert rows == [(made.seq, made.leaf)]


@pytest.mark.parametrize("after", range(3))
def test_what_comes_late_from_a_broken_connection_is_not_done_any_more(
    tmp_path: Path, far: Far, schema: str, after: int
) -> None:
    """Its client has looked for the outcome already, and may have asked again."""
    told = Told(server(), schema)
    with start(tmp_path, far.url(f"{schema}_writer"), schema) as running:
        told.call_until_done(running)
        come_late(told, running, far, after, seconds=1.0)
        told.call_until_done(running)
        verified(running)
    assert not told.unknown
    told.check()


VERSION = "UPDATE {}.meta SET value = value::int {} WHERE key = 'schema'"


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        ("", ""),
        ("ALTER ROLE {}_writer NOLOGIN", "ALTER ROLE {}_writer LOGIN"),
        (VERSION.format("{}", "+ 1"), VERSION.format("{}", "- 1")),
    ],
    ids=["the server is away", "it does not allow it", "it has another schema"],
)
def test_an_outcome_that_cannot_be_looked_up_is_said_to_be_unknown(
    tmp_path: Path, far: Far, schema: str, begin: str, end: str
) -> None:
    program = (
        "from colibri.store.postgres import opened; opened.LOOKUP_SECONDS = 1.0;"
        "from colibri.__main__ import main; import sys; sys.argv[1:] = ['serve']; main()"
    )
    where: Any = {"COLIBRI_DB_URL": far.url(f"{schema}_writer"), "COLIBRI_DB_SCHEMA": schema}
    with Server(tmp_path, [sys.executable, "-c", program], **(QUIET | where)) as running:
        running.data("task_create", title="first")
        far.delay = 0.5  # each way
        id = running.post_call("task_create", title="second")
        eventually(lambda: len(titles(schema)) == 2, "the commit, whose answer is on its way")
        as_admin(begin.format(schema)) if begin else far.cut()
        far.drop()
        assert "OUTCOME_UNKNOWN" in refused(running.answer(id)["result"])
        far.delay = 0.0
        as_admin(end.format(schema)) if end else far.restore()
        running.data("task_create", title="third")
        verified(running)
    assert titles(schema) == ["first", "second", "third"]


def test_a_stopped_server_does_not_stop_the_others(tmp_path: Path, far: Far, schema: str) -> None:
    """PostgreSQL ends the session of one that holds the lock and does nothing for 5 s."""
    told, url = Told(server(), schema), server().url(f"{schema}_writer")
    with (
        start(tmp_path / "a", far.url(f"{schema}_writer"), schema) as stopped,
        start(tmp_path / "b", url, schema) as other,
    ):
        told.call_until_done(stopped)
        told.call_until_done(other)
        far.delay = 0.03  # each way: so long it holds the lock
        posted = stop_with_lock(told, stopped)
        begun = time.monotonic()
        assert told.call(other) == ""
        assert 3 < time.monotonic() - begun < 9
        stopped.process.send_signal(signal.SIGCONT)
        told.collect(stopped, posted)
        told.call_until_done(stopped)
        verified(other)
    assert not told.unknown
    told.check()


@pytest.mark.parametrize("parts", range(1, 5))
def test_a_server_that_is_cut_off_while_it_sends_does_not_stop_the_others(
    tmp_path: Path, far: Far, schema: str, parts: int
) -> None:
    """Wherever that is: what it sends arrives as a whole, so PostgreSQL knows that it waits."""
    told, url = Told(server(), schema), server().url(f"{schema}_writer")
    with (
        start(tmp_path / "a", far.url(f"{schema}_writer"), schema) as cut,
        start(tmp_path / "b", url, schema) as other,
    ):
        told.call_until_done(cut)
        told.call_until_done(other)
        far.cut_after(parts)
        posted = told.post(cut, 4)
        time.sleep(0.3)
        begun = time.monotonic()
        assert told.call(other) == ""
        assert time.monotonic() - begun < 7
        far.restore()
        told.collect(cut, posted)
        told.call_until_done(cut)
        verified(other)
    assert not told.unknown
    told.check()


def test_a_tail_that_is_gone_is_noticed_by_a_server_that_knew_it(
    tmp_path: Path, schema: str
) -> None:
    """As after the promotion of a standby that lacks it: nothing is written on top."""
    with start(tmp_path, server().url(f"{schema}_writer"), schema) as running:
        running.data("task_create", title="kept")
        cut = psycopg.connect(server().url(), autocommit=True)
        newest: Any = cut.execute(f"SELECT max(seq) FROM {schema}.ledger".encode()).fetchone()
        running.data("task_create", title="gone")
        cut.execute(
            f"SET session_replication_role = replica; DELETE FROM {schema}.tasks WHERE number = 2;"
            f" DELETE FROM {schema}.ledger WHERE seq > {newest[0]}".encode()
        )
        cut.close()
        message = refused(running.call("task_create", title="on top"))
        assert "is missing or differs" in message
        assert running.data("server_health")["condition"]["cause"] == "integrity"
    assert titles(schema) == ["kept"]


def test_a_role_without_rights_and_another_schema_version_are_said(
    tmp_path: Path, schema: str
) -> None:
    url = server().url(f"{schema}_writer")
    with start(tmp_path / "a", url, schema) as running:
        running.data("task_create", title="first")
        as_admin(f"REVOKE INSERT ON {schema}.ledger FROM {schema}_writer")
        message = refused(running.call("task_create", title="second"))
        assert "does not allow it" in message
        assert "CONTEXT" not in message, "an agent need not see our statements"
        as_admin(f"GRANT INSERT ON {schema}.ledger TO {schema}_writer")
        running.data("task_create", title="third")
        as_admin(f"UPDATE {schema}.meta SET value = '6' WHERE key = 'schema'")
        message = refused(running.call("task_create", title="fourth"))
        assert "the schema has version 6" in message
    with start(tmp_path / "b", url, schema) as later:
        message = refused(later.call("task_create", title="fifth"))
        assert "newer schema" in message
    with start(tmp_path / "c", server().url(f"{schema}_reader"), schema) as reader:
        assert "use the newer Colibri" in refused(reader.call("task_list"))
    assert titles(schema) == ["first", "third"]


def test_a_schema_that_the_role_may_not_use_any_more_is_said(tmp_path: Path, schema: str) -> None:
    with start(tmp_path, server().url(f"{schema}_writer"), schema) as running:
        running.data("task_create", title="first")
        as_admin(f"REVOKE USAGE ON SCHEMA {schema} FROM {schema}_writer")
        message = refused(running.call("task_create", title="second"))
        assert "this role may not use the schema any more; check both, then restart" in message
        assert "LINE 1" not in message
    assert titles(schema) == ["first"]


def test_no_server_and_no_schema_are_said_with_what_to_do(tmp_path: Path) -> None:
    nobody = "postgresql://nobody@127.0.0.1:1/none"
    with start(tmp_path / "a", nobody, "colibri", COLIBRI_STARTUP_TIMEOUT_MS="500") as running:
        assert "cannot open postgresql://127.0.0.1:1/none#colibri" in refused(
            running.call("task_list")
        )
        eventually(lambda: "check that the server runs" in running.stderr, "the hint")
        assert running.close() == 75
    with start(tmp_path / "b", server().url(), "nothing_here") as running:
        refused(running.call("task_list"))
        eventually(lambda: "colibri team init URL makes the schema" in running.stderr, "the hint")


def test_records_carry_the_time_of_the_database(tmp_path: Path, schema: str) -> None:
    """The clocks of the machines may differ; the order of times is that of the records."""
    url = server().url(f"{schema}_writer")
    with start(tmp_path / "a", url, schema) as one, start(tmp_path / "b", url, schema) as two:
        for number in range(5):
            for running in (one, two):
                running.data("task_create", title=f"task {number}")
                running.data("task_list")
    with server().connect() as admin:
        rows = admin.execute(
            f"SELECT at, colibri.now FROM {schema}.ledger,"
            f" (SELECT {schema}.utc(clock_timestamp()) AS now) AS colibri ORDER BY seq".encode()
        ).fetchall()
    times = [at for at, _ in rows]
    assert times == sorted(times)
    assert times[-1] <= rows[-1][1]


def test_a_server_that_ends_finds_out_what_became_of_a_commit(
    tmp_path: Path, far: Far, schema: str
) -> None:
    with start(tmp_path, far.url(f"{schema}_writer"), schema) as running:
        running.data("task_create", title="first")
        far.delay = 0.5  # each way
        id = running.post_call("task_create", title="second")
        eventually(lambda: len(titles(schema)) == 2, "the commit, whose answer is on its way")
        far.cut()
        far.drop()
        time.sleep(0.5)
        running.process.send_signal(signal.SIGTERM)
        eventually(lambda: "2/6 quiesce" in running.stderr, "the beginning of the end")
        time.sleep(0.5)
        far.delay = 0.0
        far.restore()
        assert running.answer(id)["result"]["isError"] is False


def test_a_database_that_is_silent_does_not_keep_a_server_from_ending(
    tmp_path: Path, far: Far, schema: str
) -> None:
    program = (
        "from colibri.server import shutdown; shutdown.DRAIN_SECONDS = 2.0;"
        "from colibri.__main__ import main; import sys; sys.argv[1:] = ['serve']; main()"
    )
    where: Any = {"COLIBRI_DB_URL": far.url(f"{schema}_writer"), "COLIBRI_DB_SCHEMA": schema}
    with Server(tmp_path, [sys.executable, "-c", program], **(QUIET | where)) as running:
        running.data("task_create", title="first")
        far.delay = 1000.0
        assert running.close() == 1
        assert "shutdown did not finish in 2 s" in running.stderr
