"""Verification of a large log, beside a bare loop over the same rows; and sealing a large session.

    python bench/verify.py [RECORDS]

Builds a log of 1,000,000 records through the store's own functions: stories of a session with its
task, thoughts and reads, each call with its enter and exit, and one open session of 100,000
thoughts. Then, five times in turn and in processes of their own:

    bare loop    reads every row and computes the same two hashes, and nothing else
    verify       the whole check: hashes, rules, and the rows beside the log
and at last

    through MCP  audit_verify_chain of a real server, pinged meanwhile; then merkle_finalize

Rates are by the clock on the wall and, where other work shares the machine, by that of the process.
Each check is held against the bare loop that ran just before it; the ratio is the median of these.

Bars: 150,000 records/s, 0.6 of the bare loop, 100 MB, pings within 100 ms, the seal within 2 s.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from apsw import Connection

from colibri.core.ledger import COMMITMENT, Entry, enter_payload, exit_payload
from colibri.store import db, ledger, proofs, sessions, task_changes, trail, verify
from colibri.store.ledger import Chain

RECORDS, THOUGHTS = 1_000_000, 100_000
BAR_RATE, BAR_RATIO, BAR_MB, BAR_PING_MS, BAR_SEAL_S = 150_000, 0.6, 100, 100, 2
AT = "2026-01-01T00:00:00.000000Z"
BATCH = 20_000
PING_EVERY = 0.005
ROUNDS = 5
MOVES = ("GATHER", "ANALYZE", "PLAN", "APPLY", "VERIFY", "DONE")
SERVER = "00000000-0000-4000-8000-000000000000"
CONTENT = "Because the tests of part 7 say so; the other way would cost a copy of each row."


class Builder:
    """Writes calls as the server does: an enter, what the handler appends, an exit."""

    def __init__(self, connection: Connection, chain: Chain) -> None:
        self.db = connection
        self.chain = chain
        self._call = ""
        self._named: dict[str, str | None] = {}

    def call(self, tool: str, act: Callable[[], object] | None = None, **named: str | None) -> None:
        self._call = f"{os.urandom(4).hex()}-0000-4000-8000-000000000000"
        self._named = {"session": None, "task": None, "agent": "agent-7", **named}
        arguments: dict[str, object] = {f"{name}_id": id for name, id in named.items()}
        if tool == "thought_record":
            arguments |= {"content": CONTENT, "type": "analysis"}
        payload = enter_payload(server=SERVER, tool=tool, arguments=arguments)
        enter = self.record("call.enter", payload)
        if act is not None:
            act()
        left = exit_payload(
            enter=enter.seq, tool=tool, outcome="ok", duration_ms=1, result_sha256="0" * 64
        )
        self.record("call.exit", left)

    def record(
        self,
        kind: str,
        payload: dict[str, object],
        *,
        session: str | None = None,
        task: str | None = None,
    ) -> Entry:
        """Append, as the functions of the store ask for it."""
        made = {"session": session, "task": task}
        self._named |= {name: id for name, id in made.items() if id is not None}
        return self.chain.append(kind, payload, at=AT, call=self._call, **self._named)

    def start(self, session: str) -> None:
        start = partial(sessions.start, intent="bench", task_id=None, now=AT)
        self.call("audit_session_start", partial(start, self.db, self.record, session))

    def think(self, session: str, task: str | None) -> None:
        def act() -> None:
            trail.record(
                self.db,
                self.record,
                sessions.get_open(self.db, session),
                seq=self.chain.mark().seq + 1,
                type="analysis",
                content=CONTENT,
                task=task,
            )

        self.call("thought_record", act, session=session, task=task)

    def story(self, number: int) -> None:
        """A session, a task from INIT to DONE, 20 thoughts, 25 reads, the seal: 138 records."""
        session, task = f"S-{number:012x}", f"T-{number:04d}"
        self.start(session)
        fields: dict[str, Any] = {
            "title": "mend it",
            "description": "Look at it first.",
            "project": None,
        }
        fields |= {"priority": "high", "assignee": "agent-7", "depends_on": []}
        create = partial(task_changes.create, fields=fields, now=AT)
        self.call("task_create", partial(create, self.db, self.record))
        for move in MOVES:
            for _ in range(3):
                self.think(session, task)
            update = partial(task_changes.update, expected_version=None, now=AT)
            change = partial(update, self.db, self.record, task, changes={"status": move})
            self.call("task_update", change, task=task)
        for _ in range(2):
            self.think(session, None)
        for _ in range(25):
            self.call("task_get", task=task)
        seal = partial(proofs.seal, self.db, self.record, session, now=AT)
        self.call("merkle_finalize", seal, session=session)


def build(path: str, records: int, thoughts: int) -> None:
    """The log; the open session is S-large."""
    opened = db.open_writer(
        path,
        lock_timeout=10,
        monotonic=time.monotonic,
        sleep=time.sleep,
        stamp="bench",
        new_log=lambda: "colibri/" + os.urandom(16).hex(),
    )
    log, number, left = ledger.log_id(opened.db), 0, thoughts
    while left or (ledger.head(opened.db) or (0,))[0] < records:
        with db.transaction(opened.db, durable=False):
            chain = Chain(opened.db, log, lambda seq: os.urandom(32))
            builder, first = Builder(opened.db, chain), chain.mark().seq
            if not first:
                builder.start("S-large")
            while left and chain.mark().seq - first < BATCH:
                builder.think("S-large", None)
                left -= 1
            while chain.mark().seq - first < BATCH and chain.mark().seq < records:
                number += 1
                builder.story(number)
    db.close(opened)


def bare(path: str) -> int:
    """Every row read as the check reads it, and the same two hashes."""
    count = 0
    for row in db.open_reader(path).execute(ledger._ROWS, (1, 2**53, 2**53)):
        sha256(COMMITMENT + row[10] + row[11]).hexdigest()
        sha256(b"\0" + row[1]).digest()
        count += 1
    return count


def whole(path: str) -> int:
    """The check; its verdict must be that all is well."""
    report = verify.verify(db.open_reader(path), pause=lambda: None)
    assert report.valid, report.breaks[:5]
    return report.record_count


def alone(what: str, path: str) -> list[float]:
    """Measure in a process of its own: records, seconds, seconds of the process, peak in MB."""
    done = subprocess.run([sys.executable, __file__, what, path], check=True, capture_output=True)
    measured: list[float] = json.loads(done.stdout)
    return measured


def measure(what: str, path: str) -> list[float]:
    """What `alone` asks for."""
    start, spent = time.perf_counter(), time.process_time()
    count = {"bare": bare, "whole": whole}[what](path)
    taken = time.perf_counter() - start, time.process_time() - spent
    return [count, *taken, peak_mb("self")]


def peak_mb(pid: int | str) -> float:
    """VmHWM: the largest resident size a process has had."""
    with Path(f"/proc/{pid}/status").open(encoding="ascii") as status:
        (line,) = (line for line in status if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


class Client:
    """A client that asks one thing and may ask others before the answer is there."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.pid, self._in, self._out = process.pid, process.stdout, process.stdin
        self._answers: dict[int, dict[str, Any]] = {}
        self._last = 0

    def ask(self, tool: str, **arguments: Any) -> int:
        self._last += 1
        params = {"name": tool, "arguments": arguments}
        line = {"jsonrpc": "2.0", "id": self._last, "method": "tools/call", "params": params}
        self._out.write(json.dumps(line).encode() + b"\n")
        self._out.flush()
        return self._last

    def has(self, id: int) -> bool:
        return id in self._answers

    def answer(self, id: int) -> dict[str, Any]:
        while id not in self._answers:
            message = json.loads(self._in.readline())
            assert not message["result"]["isError"], message
            self._answers[message["id"]] = message["result"]["structuredContent"]["data"]
        return self._answers.pop(id)

    def timed(self, tool: str, **arguments: Any) -> tuple[dict[str, Any], float]:
        start = time.perf_counter()
        return self.answer(self.ask(tool, **arguments)), time.perf_counter() - start


@contextmanager
def server(project: str) -> Iterator[Client]:
    program = [sys.executable, "-c", "from colibri.__main__ import main; main()", "serve"]
    process = subprocess.Popen(
        [*program, "--project", project],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    client = Client(process)
    client.timed("task_list", limit=1)  # started, and the database is open
    try:
        yield client
    finally:
        process.communicate()


def through_mcp(project: str) -> tuple[int, float, float, list[float], float]:
    """Records, seconds, peak in MB; the pings' milliseconds; the seconds of the seal."""
    with server(project) as client:
        start, pings = time.perf_counter(), []
        check = client.ask("audit_verify_chain")
        while not client.has(check):
            pings.append(client.timed("server_ping")[1] * 1000)
            time.sleep(PING_EVERY)
        taken = time.perf_counter() - start
        verdict, peak = client.answer(check), peak_mb(client.pid)
        assert verdict["valid"], verdict
        sealed, seal_taken = client.timed("merkle_finalize", session_id="S-large")
        assert sealed["session_id"] == "S-large", sealed
    return verdict["record_count"], taken, peak, pings, seal_taken


def main() -> None:
    """Build, measure, print a table."""
    records = int(sys.argv[1]) if len(sys.argv) > 1 else RECORDS
    thoughts = min(THOUGHTS, records // 10)
    with tempfile.TemporaryDirectory() as folder:
        path, start = Path(folder, "data", "colibri.db"), time.perf_counter()
        build(str(path), records, thoughts)
        size = path.stat().st_size / 1e6
        print(
            f"built {records:,} records, {size:,.0f} MB, in {time.perf_counter() - start:.0f} s\n"
        )
        print(f"{'':22}{'records':>10}{'seconds':>9}{'records/s':>12}{'by CPU':>10}{'peak MB':>9}")
        ratios = []
        for _ in range(ROUNDS):
            loop, check = alone("bare", str(path)), alone("whole", str(path))
            show("bare loop", *loop)
            show("verify", *check)
            ratios.append(loop[2] / check[2])
        count, taken, peak, pings, seal = through_mcp(folder)
        show("through MCP, pinged", count, taken, taken, peak)
    median = statistics.median(pings)
    print(f"\nratio   {statistics.median(ratios):.2f} of the bare loop, by CPU")
    print(f"pings   {len(pings)}, median {median:.1f} ms, max {max(pings):.1f} ms")
    print(f"seal    {thoughts:,} thoughts in {seal:.2f} s")
    print(
        f"bars    {BAR_RATE:,} records/s, {BAR_RATIO} of the bare loop, {BAR_MB} MB,"
        f" {BAR_PING_MS} ms, {BAR_SEAL_S} s"
    )


def show(what: str, count: float, taken: float, spent: float, peak: float) -> None:
    rates = f"{count / taken:>12,.0f}{count / spent:>10,.0f}"
    print(f"{what:22}{count:>10,}{taken:>9.2f}{rates}{peak:>9.1f}", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] in (["bare"], ["whole"]):
        print(json.dumps(measure(sys.argv[1], sys.argv[2])))
    else:
        main()
