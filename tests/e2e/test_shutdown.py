"""Shutdown: what causes it, what is still answered, what is left behind."""

import json
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.client import JSON, TOOLBOX, Server
from tests.support.ledger_reader import (
    booted,
    calls,
    condition,
    error,
    eventually,
    has_entered,
    missing,
    verified,
)

STAGES = ("announce", "quiesce", "drain", "finalize", "close", "release")
IMPATIENT = (
    sys.executable,
    "-c",
    "import sys; from colibri.server import shutdown; shutdown.DRAIN_SECONDS = 1.0;"
    " from tests.support.extra_tools import main; sys.exit(main())",
)


class Deaf(Server):
    """A client that never reads."""

    def __init__(self, project: Path, program: Sequence[str]) -> None:
        super().__init__(project, program, handshake=False)

    def _read(self) -> None:
        self._lines.put(None)


def shutdown_lines(server: Server) -> list[str]:
    return [line for line in server.stderr.splitlines() if line.startswith("[colibri] shutdown ")]


def assert_in_order(server: Server, why: str, code: int) -> None:
    """Six lines, in order; the first says why, the last the exit code."""
    lines = shutdown_lines(server)
    numbered = [f"[colibri] shutdown {n}/6 {stage}" for n, stage in enumerate(STAGES, start=1)]
    assert [line.partition(":")[0] for line in lines] == numbered
    assert lines[0].endswith(f": {why}")
    assert lines[-1].endswith(f": exit {code}")


def assert_at_rest(server: Server) -> None:
    """Closed cleanly: no -wal, no -shm, and an unbroken chain."""
    left = {path.name for path in server.database.parent.iterdir()}
    assert left == {"colibri.db", "colibri.db.lock"}
    verified(server.database)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_idle_server_is_gone_two_seconds_after_a_signal(
    tmp_path: Path, number: signal.Signals
) -> None:
    """Specification 13.2: with nothing running it is gone within 2 s; exit 0."""
    with Server(tmp_path) as server:
        server.data("note", n=1)
        began = time.monotonic()
        server.terminate(number)
        assert server.wait() == 0
        assert time.monotonic() - began <= 2
        assert_in_order(server, number.name, 0)
        assert_at_rest(server)


def test_an_idle_server_is_gone_two_seconds_after_its_input_ended(tmp_path: Path) -> None:
    """Specification 2.22, 13.2: end of input is a clean shutdown."""
    with Server(tmp_path) as server:
        server.data("note", n=1)
        began = time.monotonic()
        assert server.close() == 0
        assert time.monotonic() - began <= 2
        assert_in_order(server, "end of input", 0)
        assert_at_rest(server)


def test_a_server_that_gets_a_signal_while_it_starts_ends_in_order(tmp_path: Path) -> None:
    """Specification 13.1: also when the database is not open yet."""
    with Server(tmp_path) as server:  # the handshake is answered before the database is opened
        server.terminate()
        assert server.wait() == 0
        assert_in_order(server, "SIGTERM", 0)
        assert_at_rest(server)


def test_at_the_end_of_input_the_running_and_every_waiting_call_is_answered(tmp_path: Path) -> None:
    """Specification 2.22: a clean shutdown after every accepted call has been answered."""
    with Server(tmp_path) as server:
        ids = [server.post_call("nap_write", ms=300)]
        for n in range(100):
            ids += [server.post_call("note", n=n), server.post_call("nap_read", ms=0)]
        assert server.close() == 0

        results = [server.answer(id)["result"] for id in ids]
        assert not any(result["isError"] for result in results)
        receipts = [result["_meta"]["colibri/receipt"] for result in results]
        assert_in_order(server, "end of input", 0)
        assert_at_rest(server)
        assert missing(server.database, receipts) == []


def test_on_a_signal_accepted_calls_are_finished_and_new_ones_get_shutting_down(
    tmp_path: Path,
) -> None:
    """Specification 13.3: new requests get SHUTTING_DOWN, queued and running calls finish."""
    with Server(tmp_path) as server:
        server.data("note", n=0)
        accepted = [server.post_call("nap_write", ms=1000)]
        eventually(has_entered(server.database, "nap_write"), "the nap's enter record")
        accepted += [server.post_call("note", n=n) for n in range(1, 50)]
        accepted += [server.post_call("nap_read", ms=0)]
        server.data("server_ping")  # so all of them were read
        server.terminate()
        eventually(lambda: "3/6 drain" in server.stderr, "the drain")
        late = [server.call(tool) for tool in ("nap_write", "nap_read", "server_ping")]

        assert [error(result)["code"] for result in late] == ["SHUTTING_DOWN"] * 3
        assert server.wait() == 0
        assert not any(server.answer(id)["result"]["isError"] for id in accepted)
        assert_in_order(server, "SIGTERM", 0)
        assert_at_rest(server)
        assert len(calls(server.database, "note")) == 50
        assert len(calls(server.database, "nap_write")) == 1


def test_a_server_whose_host_is_killed_does_not_stay_behind(tmp_path: Path) -> None:
    """The host's death ends the input."""
    host = "import subprocess, sys; subprocess.Popen(sys.argv[1:], stdin=-1); sys.stdin.read()"
    with Server(tmp_path, (sys.executable, "-c", host, *TOOLBOX), handshake=False) as server:
        booted(server)
        server.process.kill()
        assert server.receive(timeout=5) is None  # no process has its stdout open any longer
        eventually(lambda: "6/6 release" in server.stderr, "the last line")
        assert_in_order(server, "end of input", 0)


def test_a_second_signal_ends_a_stuck_drain_at_once(tmp_path: Path) -> None:
    """Specification 13.4: on a second signal os._exit(1); acknowledged changes are safe."""
    with Server(tmp_path) as server:
        receipt = server.call("note", n=0)["_meta"]["colibri/receipt"]
        server.post_call("nap_write", ms=60_000)
        eventually(has_entered(server.database, "nap_write"), "the nap's enter record")
        server.terminate()
        eventually(lambda: "3/6 drain" in server.stderr, "the drain")
        began = time.monotonic()
        server.terminate(signal.SIGINT)
        assert server.wait() == 1
        assert time.monotonic() - began <= 2
        assert len(shutdown_lines(server)) == 3
    with Server(tmp_path) as server:
        server.data("note", n=1)
        assert condition(server) == ("NORMAL", None)
        assert missing(server.database, [receipt]) == []


def test_a_drain_that_is_not_done_at_its_deadline_ends_the_process_with_1(tmp_path: Path) -> None:
    """Specification 13.4: up to 30 s, here 1; at the deadline os._exit(1)."""
    with Server(tmp_path, IMPATIENT) as server:
        server.data("note", n=0)
        server.post_call("nap_write", ms=60_000)
        eventually(has_entered(server.database, "nap_write"), "the nap's enter record")
        began = time.monotonic()
        assert server.close() == 1
        assert 0.9 <= time.monotonic() - began <= 5
        assert "shutdown did not finish in 1 s: exit 1" in server.stderr


def test_a_client_that_stops_reading_is_given_up_at_the_deadline(tmp_path: Path) -> None:
    """Specification 13.4: unread answers count as unfinished."""
    with Deaf(tmp_path, IMPATIENT) as server:
        booted(server)
        server.post_call("big", bytes=1_000_000)
        eventually(lambda: [c for c in calls(server.database, "big") if c.exit], "the answer")
        began = time.monotonic()
        assert server.close() == 1
        assert 0.9 <= time.monotonic() - began <= 5
    verified(server.database)


def test_a_client_that_closes_its_end_ends_the_server_after_the_accepted_calls(
    tmp_path: Path,
) -> None:
    """Specification 2.21: accepted calls are still done and recorded."""
    with Deaf(tmp_path, TOOLBOX) as server:
        booted(server)
        assert server.process.stdout is not None
        server.process.stdout.close()
        server.send(b"".join(_call(n, "note", {"n": n}) for n in range(3)))
        assert server.wait() == 0
        assert_in_order(server, "end of input", 0)
        assert_at_rest(server)
    assert [pair.outcome for pair in calls(server.database, "note")] == ["ok"] * 3


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc to see CPU time")
def test_a_drain_waits_without_using_the_processor(tmp_path: Path) -> None:
    """Specification 13.5: also when the client's end is closed and cannot be waited for."""
    with Deaf(tmp_path, TOOLBOX) as server:
        booted(server)
        server.send(_call(1, "nap_write", {"ms": 1500}))
        eventually(has_entered(server.database, "nap_write"), "the nap's enter record")
        assert server.process.stdout is not None
        server.process.stdout.close()
        server.send(_call(2, "server_ping", {}))
        eventually(lambda: "3/6 drain" in server.stderr, "the drain")
        before = processor_seconds(server)
        time.sleep(1)  # the measured interval
        assert processor_seconds(server) - before < 0.3
        assert server.wait() == 0


def processor_seconds(server: Server) -> float:
    stat = Path(f"/proc/{server.process.pid}/stat").read_text(encoding="ascii")
    user, system = stat.rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def _call(id: int, tool: str, arguments: JSON) -> bytes:
    params = {"name": tool, "arguments": arguments}
    message = {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}
    return json.dumps(message).encode() + b"\n"


@pytest.mark.parametrize("thread", ["write", "read", "main", "health"])
def test_an_unhandled_exception_in_any_thread_is_logged_and_shuts_the_server_down(
    tmp_path: Path, thread: str
) -> None:
    """Specification 3.14, 13.1: `[colibri] uncaughtException: …`, an orderly shutdown, exit 1."""
    with Server(tmp_path, COLIBRI_HEALTH_INTERVAL_MS="50") as server:
        receipt = server.call("note", n=0)["_meta"]["colibri/receipt"]
        assert server.data("crash", lane=thread) == {}
        assert server.wait() == 1
        assert "[colibri] uncaughtException: Traceback" in server.stderr
        assert_in_order(server, "uncaughtException", 1)
        assert_at_rest(server)
        assert missing(server.database, [receipt]) == []


@pytest.mark.parametrize("thread", ["write", "read", "main", "health"])
def test_after_an_unhandled_exception_every_accepted_call_is_answered(
    tmp_path: Path, thread: str
) -> None:
    """Specification 3.14: HANDLER_ERROR for the dead lane, the rest is finished."""
    with Server(tmp_path, COLIBRI_HEALTH_INTERVAL_MS="50") as server:
        server.data("note", n=0)
        ids = [server.post_call("nap_write", ms=500), server.post_call("nap_read", ms=200)]
        eventually(has_entered(server.database, "nap_write"), "the nap's enter record")
        server.post_call("crash", lane=thread)
        ids += [server.post_call("note", n=1), server.post_call("nap_read", ms=0)]
        results = [server.answer(id)["result"] for id in ids]
        assert server.wait() == 1

        codes = {error(result)["code"] for result in results if result["isError"]}
        assert codes <= {"HANDLER_ERROR", "SHUTTING_DOWN"}
        assert results[0]["isError"] is False  # it ran already
        if thread in ("write", "read"):
            waited = results[2] if thread == "write" else results[3]
            assert error(waited)["code"] == "HANDLER_ERROR"
        assert_in_order(server, "uncaughtException", 1)
        assert_at_rest(server)
