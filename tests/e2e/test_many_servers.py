"""Many servers on one project, as when a developer has several clients open."""

import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.support.client import Server
from tests.support.ledger_reader import calls, condition, missing, verified

SERVERS = 16
CALLS = 200
IN_FLIGHT = 10


class Client(threading.Thread):
    """Shakes hands with its server and makes CALLS writing calls, some at a time."""

    def __init__(self, server: Server, number: int) -> None:
        super().__init__()
        self.server = server
        self.numbers = range(number * CALLS, (number + 1) * CALLS)
        self.results: list[dict[str, object]] = []
        self.times: list[float] = []
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            self.server.handshake()
            for first in range(0, CALLS, IN_FLIGHT):
                began = time.perf_counter()
                batch = self.numbers[first : first + IN_FLIGHT]
                ids = [self.server.post_call("note", n=n) for n in batch]
                self.results += [self.server.answer(id)["result"] for id in ids]
                self.times.append(time.perf_counter() - began)
        except BaseException as problem:
            self.failure = problem


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.timeout(180)
def test_16_servers_started_at_once_on_no_database_share_one_unbroken_chain(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Design §9, §12: no failed start, no error, no call lost or recorded twice."""
    began = time.perf_counter()
    servers = [Server(tmp_path, handshake=False) for _ in range(SERVERS)]
    try:
        clients = [Client(server, number) for number, server in enumerate(servers)]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        took = time.perf_counter() - began

        for client in clients:
            assert client.failure is None, client.failure
            assert [result for result in client.results if result["isError"]] == []
            assert condition(client.server) == ("NORMAL", None)
        receipts = [result["_meta"]["colibri/receipt"] for c in clients for result in c.results]  # type: ignore[index]
        assert missing(servers[0].database, receipts) == []
        assert [server.close() for server in servers] == [0] * SERVERS
    finally:
        for server in servers:
            server.__exit__(None, None, None)

    report = verified(servers[0].database)
    recorded = calls(servers[0].database, "note")
    assert Counter(pair.arguments["n"] for pair in recorded) == Counter(range(SERVERS * CALLS))
    assert {pair.outcome for pair in recorded} == {"ok"}
    assert report.open_calls == ()
    times = sorted(time for client in clients for time in client.times)
    with capsys.disabled():
        print(  # noqa: T201 - figures for the log
            f"\n  {SERVERS} servers, {len(receipts)} calls, {report.record_count} records in"
            f" {took:.1f} s; {IN_FLIGHT} calls took p50 {times[len(times) // 2] * 1000:.0f} ms,"
            f" p99 {times[len(times) * 99 // 100] * 1000:.0f} ms"
        )
