"""Waiting: for held databases, unread answers and the shutdown; and who gets an answer."""

import fcntl
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from colibri import config
from colibri.core.errors import ConfigError, Refused
from colibri.server import clock, create_server
from colibri.server.context import add_tool, start
from colibri.server.work import Work
from tests.contract import PATIENCE, Linked, Recording
from tests.support.client import COLIBRI, Server
from tests.support.in_process import project, tool
from tests.support.ledger_reader import calls, condition, error, eventually, holding
from tests.support.linked import linked


def test_an_entered_call_that_finds_the_database_held_is_turned_away_and_closed_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Specification 4.15, 4.16: the next transaction that succeeds writes its exit."""
    monkeypatch.setattr(clock, "PATIENCE_SECONDS", 0.1)
    database = tmp_path / "data" / "colibri.db"
    server = Linked(config=project(tmp_path))
    add_tool(server.ctx, tool("plain", lambda work, args: {}))
    with server:
        server.data("plain")
        held = holding(database)
        enter = server.ctx.parts.pipeline.enter

        def enter_and_lose_the_lock(*args: Any) -> Any:
            found = enter(*args)
            held.__enter__()
            monkeypatch.setattr(server.ctx.parts.pipeline, "enter", enter)
            return found

        monkeypatch.setattr(server.ctx.parts.pipeline, "enter", enter_and_lose_the_lock)
        error = server.call("plain")["structuredContent"]["error"]
        assert error["code"] == "UNAVAILABLE"
        held.__exit__(None, None, None)
        server.data("plain")
    outcomes = [(pair.outcome, pair.code) for pair in calls(database, "plain")]
    assert outcomes == [("ok", None), ("error", "UNAVAILABLE"), ("ok", None)]


@pytest.mark.parametrize("lane", ["write", "read"])
def test_a_retry_after_a_refusal_is_not_refused_with_the_first_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lane: str
) -> None:
    """The retry reaches the lane before its thread has failed the waiting calls."""
    monkeypatch.setattr(clock, "PATIENCE_SECONDS", 0.1)
    server = Linked(config=project(tmp_path))
    add_tool(server.ctx, tool("plain", lambda work, args: {}, lane=lane))
    with server:
        server.data("plain")
        parts = server.ctx.parts
        turn_away = parts.pipeline.turn_away
        with holding(tmp_path / "data" / "colibri.db"):
            told, released = threading.Event(), threading.Event()

            def turn_away_and_wait(*args: Any) -> None:
                turn_away(*args)
                told.set()
                assert released.wait(PATIENCE)

            monkeypatch.setattr(parts.pipeline, "turn_away", turn_away_and_wait)
            server.post("plain")
            assert told.wait(PATIENCE)
        monkeypatch.setattr(parts.pipeline, "turn_away", turn_away)
        server.post("plain")
        eventually(lambda: len(parts.load) == 1, "the second try is accepted")
        released.set()
        answers = [server.receive()["result"]["isError"] for _ in range(2)]
    assert answers == [True, False]


def test_all_calls_that_wait_for_a_held_database_fail_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not each round after its own ten seconds."""
    monkeypatch.setattr(clock, "PATIENCE_SECONDS", 1)
    server = Linked(config=project(tmp_path))
    add_tool(server.ctx, tool("plain", lambda work, args: {}))
    with server:
        server.data("plain")
        with holding(tmp_path / "data" / "colibri.db"):
            start = time.monotonic()
            for _ in range(300):
                server.post("plain")
            passed = threading.Event()
            eventually(lambda: len(server.ctx.parts.load) == 300, "all of them accepted")
            server.ctx.parts.write.put(passed.set)
            codes = {
                server.receive()["result"]["structuredContent"]["error"]["code"] for _ in range(300)
            }
            taken = time.monotonic() - start
        assert codes == {"UNAVAILABLE"}
        assert taken < 4
        assert passed.wait(10)


@pytest.mark.parametrize("first", ["look", "plain"])
def test_calls_of_both_lanes_that_wait_for_a_held_database_fail_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: str
) -> None:
    """Decision 002: in both lanes, not each call after its own ten seconds.

    The record of a ping, which has its answer, keeps waiting.
    """
    monkeypatch.setattr(clock, "PATIENCE_SECONDS", 2)
    database = tmp_path / "data" / "colibri.db"
    server = Linked(config=project(tmp_path))
    add_tool(server.ctx, tool("plain", lambda work, args: {}))
    add_tool(server.ctx, tool("look", lambda work, args: {}, lane="read"))
    with server:
        server.data("look")
        with holding(database):
            start = time.monotonic()
            for name in (first, "look", "plain", "look", "plain"):
                server.post(name)
                time.sleep(0.05)  # so that each finds the earlier ones waiting
            assert server.call("server_ping")["isError"] is False
            answers = [server.receive()["result"] for _ in range(5)]
            taken = time.monotonic() - start
        assert {one["structuredContent"]["error"]["code"] for one in answers} == {"UNAVAILABLE"}
        assert taken < 3.8  # two of them in turn would take 4
        server.data("look")
    assert [pair.outcome for pair in calls(database, "server_ping")] == ["ok"]


@contextmanager
def locked(database: Path, first: int, count: int) -> Iterator[BinaryIO]:
    """Hold locks of the write-ahead log's shared memory, as a process that hangs might."""
    with Path(f"{database}-shm").open("r+b", buffering=0) as shm:
        fcntl.lockf(shm, fcntl.LOCK_EX, count, first)
        yield shm  # closing it releases them


@contextmanager
def recovering(database: Path) -> Iterator[None]:
    """Act like a process that rebuilds the index of the log: readers have to wait."""
    with locked(database, 120, 3) as shm:
        header = shm.read(1)
        os.pwrite(shm.fileno(), bytes([header[0] ^ 1]), 0)
        yield
        os.pwrite(shm.fileno(), header, 0)


@pytest.mark.parametrize(
    ("tool", "hold"), [("nap_read", holding), ("nap_then_look", recovering)], ids=["exit", "look"]
)
def test_a_read_waits_for_held_databases_no_longer_than_promised(
    tmp_path: Path, tool: str, hold: Callable[[Path], AbstractContextManager[None]]
) -> None:
    """Specification 15.5: for its enter, its connection and its exit together (decision 010).

    It waits 2 of 3 s for the first, so that 1 s is left.
    """
    assert clock.PATIENCE_SECONDS == 10
    patient = "from colibri.server import clock; clock.PATIENCE_SECONDS = 3\n"
    program = patient + "from tests.support.extra_tools import main; main()"
    with Server(tmp_path, (sys.executable, "-c", program)) as server:
        server.data("note", n=0)
        begun = time.monotonic()
        with holding(server.database):
            id = server.post_call(tool, ms=1000)
            time.sleep(2)
        eventually(lambda: calls(server.database, tool), "its enter record")
        with hold(server.database):
            refused = error(server.answer(id)["result"])
            taken = time.monotonic() - begun
        assert refused["code"] == "UNAVAILABLE"
        assert "another process held the database" in refused["message"]
        assert 3 < taken < 5  # with a second of sleep in it
        assert server.close() == 0


def test_locks_that_fail_stop_the_writing_and_every_accepted_call_is_answered(
    tmp_path: Path,
) -> None:
    """SQLITE_PROTOCOL, which SQLite returns after ten seconds without a read lock.

    It used to end the lanes, and three of five calls were never answered.
    """
    with Server(tmp_path) as server:
        server.data("note", n=0)
        server.data("nap_read")
        with locked(server.database, 123, 5):
            begun = time.monotonic()
            names = ("note", "nap_read", "note", "nap_read", "server_ping")
            ids = [server.post_call(name, n=1) for name in names]
            answers = [server.answer(id)["result"] for id in ids]
            assert time.monotonic() - begun < 15
        codes = [one["structuredContent"].get("error", {}).get("code") for one in answers]
        assert codes == ["UNAVAILABLE"] * 4 + [None]
        why = "unexpected database error: locking protocol"
        assert f"[colibri] SAFE_MODE io: {why}" in server.stderr
        assert condition(server) == ("SAFE_MODE", "io")
        assert server.close() == 0


def test_a_refusal_that_cannot_be_recorded_fails_alone(tmp_path: Path) -> None:
    """A float in a refusal's fields is a bug of that tool only."""

    def refuse(work: Work, args: object) -> object:
        raise Refused("ERR_X", "no", ratio=0.5)

    server = Linked(config=project(tmp_path))
    add_tool(server.ctx, tool("refuse", refuse))
    with server:
        assert server.call("refuse")["structuredContent"]["error"]["code"] == "HANDLER_ERROR"
        assert server.call("server_ping")["isError"] is False


def test_only_a_shutdown_is_woken_by_the_last_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Waking the main thread after every answer would take it the interpreter for nothing."""
    server, woken = Linked(config=project(tmp_path)), 0
    load, begun, go = server.ctx.parts.load, threading.Event(), threading.Event()
    wake = load._emptied

    def count() -> None:
        nonlocal woken
        woken += 1
        wake()

    def hold(work: Work, args: object) -> object:
        begun.set()
        return {"went": go.wait(PATIENCE)}

    monkeypatch.setattr(load, "_emptied", count)
    add_tool(server.ctx, tool("plain", lambda work, args: {}))
    add_tool(server.ctx, tool("hold", hold))
    with server:
        server.data("plain")
        eventually(lambda: not len(load), "the call is counted out")
        assert woken == 0
        server.post("hold")
        assert begun.wait(PATIENCE)
        threading.Timer(0.2, go.set).start()
    assert woken == 1


def test_a_sink_gets_no_event_of_a_cancelled_call(tmp_path: Path) -> None:
    """Neither that it begins nor that it ends."""
    sink, release = Recording(), threading.Event()
    server = Linked(audit_sink=sink, config=project(tmp_path))
    add_tool(server.ctx, tool("act", lambda work, args: {}))
    add_tool(server.ctx, tool("hold", lambda work, args: {"released": release.wait(PATIENCE)}))
    with server:
        server.post("hold")
        server.cancel(server.post("act"))
        server.post("act")
        server.post("server_ping")
        assert server.receive()["id"] == 4  # the three before it have been read
        release.set()
        assert [server.receive()["id"] for _ in range(2)] == [1, 3]
    assert [event.tool for event in sink.events].count("act") == 2


def test_a_handler_may_stop_the_server_it_runs_in() -> None:
    """stop() on a thread of the server asks and does not wait for itself."""
    server = Linked()

    def halt(work: Work, args: object) -> object:
        server.ctx.stop()
        return {}

    add_tool(server.ctx, tool("halt", halt))
    with server:
        server.call("halt")
    assert server.exit_code == 0


def test_a_server_whose_run_was_left_by_an_exception_can_still_be_stopped() -> None:
    """stop() does the work that run() did not reach."""
    transport, peer = linked()
    ctx = create_server(transport=transport, mode="FULL", install_handlers=False)
    start(ctx)

    def interrupted(*_: object, **__: object) -> Any:
        raise KeyboardInterrupt

    receive = transport.receive
    transport.receive = interrupted  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        ctx.run()
    transport.receive = receive  # type: ignore[method-assign]
    ctx.stop()
    assert not ctx.is_connected()
    peer.close()


def test_a_stop_while_the_lock_file_is_held_is_obeyed_at_once(tmp_path: Path) -> None:
    """The database is no longer needed: no reason to wait thirty seconds for it."""
    (tmp_path / "data").mkdir()
    with (tmp_path / "data" / "colibri.db.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with Server(tmp_path, COLIBRI) as server:
            server.data("server_ping")
            start = time.monotonic()
            server.terminate()
            assert server.wait() == 0
            assert time.monotonic() - start < 2


def test_a_probe_record_that_waits_for_a_held_database_does_not_delay_the_end(
    tmp_path: Path,
) -> None:
    """A kill may lose the records of probes, and so may a shutdown."""
    with Server(tmp_path) as server:
        server.data("note", n=0)
        with holding(server.database):
            server.data("server_ping")
            start = time.monotonic()
            assert server.close() == 0
            assert time.monotonic() - start < 2


def test_unread_answers_stop_the_lanes(tmp_path: Path) -> None:
    """Specification 3.12: no call begins until they are read; then the work continues."""
    server = Linked(config=project(tmp_path))
    begun: list[int] = []

    def big(work: Work, args: object) -> object:
        begun.append(1)
        return {"text": "x" * 2_000_000}

    add_tool(server.ctx, tool("big", big, lane="read"))
    add_tool(server.ctx, tool("small", lambda work, args: {}))
    with server:
        server.wait_for_store()
        server.pause_reading()
        ids = [server.post("big") for _ in range(60)]
        eventually(lambda: not server.ctx.parts.outbox.room.is_set(), "too many unread answers")
        count = len(begun)
        assert count < 20
        ids.append(server.post("small"))
        server.resume_reading()
        assert sorted(server.receive()["id"] for _ in ids) == ids


def test_a_path_that_is_not_utf8_is_a_configuration_error(tmp_path: Path) -> None:
    """SQLite and JSON need paths in UTF-8."""
    strange = os.fsdecode(os.fsencode(tmp_path) + b"/p\xff")
    Path(strange).mkdir()
    with pytest.raises(ConfigError, match="not UTF-8"):
        config.load(strange, {})


def test_the_name_of_an_unknown_tool_is_truncated(tmp_path: Path) -> None:
    """A call of a tool with a name of a megabyte must not fill the ledger with it."""
    with Server(tmp_path) as server:
        answer = server.answer(server.post_call("x" * 1_000_000))
        assert answer["error"]["code"] == -32602
        assert server.close() == 0
        assert len(calls(server.database, "x" * 128)) == 1
