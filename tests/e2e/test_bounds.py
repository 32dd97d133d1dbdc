"""The limits of the lanes, through the real server: full queues, deaf clients, few syncs."""

import json
import os
import select
import threading
from pathlib import Path

import pytest

from tests.support.client import COLIBRI, Server
from tests.support.ledger_reader import (
    booted,
    calls,
    error,
    eventually,
    has_entered,
    holding,
    missing,
    verified,
)
from tests.support.strace import attached, requires_strace

MIB = 1024 * 1024


class Deaf(Server):
    """A client that reads nothing until `listen` is set."""

    def __init__(self, project: Path) -> None:
        self.listen = threading.Event()
        super().__init__(project, handshake=False)

    def _read(self) -> None:
        self.listen.wait()
        super()._read()


def codes(server: Server, ids: list[int]) -> list[str | None]:
    """The error code of each answer, None for a success."""
    results = [server.answer(id)["result"] for id in ids]
    return [error(result)["code"] if result["isError"] else None for result in results]


def test_past_1024_open_calls_a_call_gets_overloaded_and_when_they_are_done_it_is_served(
    tmp_path: Path,
) -> None:
    """Specification 3.11, 4.16: 1,024 calls not yet answered, over all lanes."""
    with Server(tmp_path) as server:
        server.data("note", n=-1)
        with holding(server.database):
            ids = [server.post_call("nap_read", ms=0) for _ in range(500)]
            ids += [server.post_call("note", n=n) for n in range(534)]
            assert codes(server, ids[1024:]) == ["OVERLOADED"] * 10

        assert codes(server, ids[:1024]) == [None] * 1024
        assert server.data("note", n=1000) == {"n": 1000}
        assert server.data("server_health")["dropped"]["overloaded"] == 10
        recorded = [pair.arguments["n"] for pair in calls(server.database, "note")]
        assert recorded == [-1, *range(524), 1000]


def test_past_32_mib_of_open_lines_a_call_gets_overloaded_and_when_they_are_done_it_is_served(
    tmp_path: Path,
) -> None:
    """Specification 3.11: 64 MiB in memory are 32 MiB of ASCII lines and their parsed values."""
    pad = "x" * (4 * MIB - 2000)  # 8 lines are just less than 32 MiB
    params = {"name": "note", "arguments": {"n": 1}, "pad": pad}
    with Server(tmp_path) as server:
        server.data("note", n=0)
        with holding(server.database):
            ids = [server.post("tools/call", params) for _ in range(9)]
            small = server.post_call("note", n=2)
            assert codes(server, ids[8:]) == ["OVERLOADED"]

        assert codes(server, [*ids[:8], small]) == [None] * 9
        assert codes(server, [server.post("tools/call", params)]) == [None]


def test_a_client_that_does_not_read_blocks_nothing_before_32_mib(tmp_path: Path) -> None:
    """Specification 3.12: until then a client that does not read blocks nothing."""
    with Deaf(tmp_path) as server:
        booted(server)
        ids = [server.post_call("big", bytes=MIB) for _ in range(12)]  # twice in each answer
        ids += [server.post_call("note", n=n) for n in range(3000)]  # more than a pipe holds
        eventually(has_entered(server.database, "big", 12), "all the large answers")
        eventually(has_entered(server.database, "note", 1000), "calls behind the large answers")

        server.listen.set()
        answers = [server.answer(id) for id in ids]
        assert all("result" in answer for answer in answers)


def test_past_32_mib_of_unread_answers_the_server_stops_reading_until_the_client_reads(
    tmp_path: Path,
) -> None:
    """Specification 3.12: with more than 32 MiB of answers unread the main thread stops reading.

    The lanes begin no further call either: the accepted ones could produce many times as much.
    """
    with Deaf(tmp_path) as server:
        booted(server)
        ids = [server.post_call("big", bytes=MIB) for _ in range(40)]
        eventually(
            lambda: sum(pair.exit is not None for pair in calls(server.database, "big")) >= 16,
            "32 MiB of answers",
        )
        assert server.process.stdin is not None
        stdin = server.process.stdin.fileno()
        os.set_blocking(stdin, False)
        pings = 0
        while select.select([], [stdin], [], 1.0)[1]:
            os.write(stdin, _ping(f"p{pings}"))
            pings += 1
            assert pings < 20_000, "the server goes on reading"
        assert len(calls(server.database, "big")) < 20

        server.listen.set()
        assert select.select([], [stdin], [], 10.0)[1], "the server does not read again"
        os.set_blocking(stdin, True)
        assert all("result" in server.answer(id) for id in ids)
        assert all("result" in server.answer(f"p{n}") for n in range(pings))
        assert server.data("note", n=1) == {"n": 1}


def _ping(id: str) -> bytes:
    """Padded, so that a pipe fills soon, but no longer than an atomic write to a pipe."""
    message = {"jsonrpc": "2.0", "id": id, "method": "ping", "params": {"pad": "x" * 2000}}
    return json.dumps(message).encode() + b"\n"


@requires_strace
def test_looking_at_the_queue_is_not_synced_and_claiming_from_it_is(tmp_path: Path) -> None:
    """Specification 3.5, 8.2: task_next_actions changes something only with `claim: true`."""
    with Server(tmp_path, COLIBRI) as server:
        for n in range(12):
            server.data("task_create", title=f"task {n}")
        server.data("audit_session_start", intent="look, then take", brief=False)
        with attached(server, "fdatasync,fsync") as trace:
            for _ in range(10):
                assert len(server.data("task_next_actions")["tasks"]) == 10
            looking = trace.count("fdatasync", "fsync")
            (task,) = server.data("task_next_actions", claim=True)["tasks"]
            claiming = trace.count("fdatasync", "fsync") - looking
        assert (looking, claiming > 0) == (0, True)
        assert task["holder"] is not None
        verified(server.database)


@requires_strace
def test_64_calls_in_flight_use_far_fewer_syncs_than_calls(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Specification 3.5: one synced commit for up to 64 calls; alone each call has its own."""
    with Server(tmp_path) as server:
        server.data("note", n=0)
        with attached(server, "fdatasync,fsync") as trace:
            for n in range(10):
                server.data("note", n=n)
            alone = trace.count("fdatasync", "fsync")
            server.post_call("nap_write", ms=300)
            eventually(has_entered(server.database, "nap_write"), "the nap's enter record")
            ids = [server.post_call("note", n=n) for n in range(64)]
            answers = [server.answer(id)["result"] for id in ids]
            together = trace.count("fdatasync", "fsync") - alone

        with capsys.disabled():
            print(f"\n  syncs: {alone} of 10 calls alone, {together} of 65 calls in flight")  # noqa: T201
        assert 10 <= alone <= 15  # one sync for each answer, none for its enter record
        assert 1 <= together <= 16
        assert not missing(server.database, [a["_meta"]["colibri/receipt"] for a in answers])
        verified(server.database)
