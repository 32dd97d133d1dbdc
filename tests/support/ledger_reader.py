"""Reads the ledger from outside the server that writes it, and waits for events with a timeout."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from colibri.core.report import Report
from colibri.store import ledger
from colibri.store.sqlite.connection import Connection
from colibri.store.sqlite.opening import open_reader, open_writer
from colibri.store.sqlite.transaction import Transaction
from colibri.store.verify import verify
from tests.support import engines
from tests.support.client import JSON, PATIENCE, Server

T = TypeVar("T")
LOG = "colibri/" + "0123456789abcdef" * 2


class Pair(NamedTuple):
    """A call as the ledger has it; without an exit record the last three are None."""

    seq: int
    tool: str
    arguments: Any
    exit: int | None
    outcome: str | None
    code: str | None


def eventually(look: Callable[[], T], what: str, timeout: float = PATIENCE) -> T:
    """The first true value of look(); AssertionError if `what` does not happen in time."""
    deadline = time.monotonic() + timeout
    while not (found := look()):
        assert time.monotonic() < deadline, f"not within {timeout:.0f} s: {what}"
        time.sleep(0.005)
    return found


@contextmanager
def reading(database: Path) -> Iterator[Any]:
    """A read-only connection to a Colibri database, or to the one on PostgreSQL in its place."""
    if engines.chosen() == "postgres":
        db: Any = engines.open_reader(database.parent.parent)
    else:
        db = open_reader(str(database))
    try:
        yield db
    finally:
        db.close()


@contextmanager
def holding(database: Path) -> Iterator[None]:
    """Hold the database's write lock, as another process might."""
    db = Connection(str(database))
    db.set_busy_timeout(10_000)  # the server may be writing just now
    try:
        db.execute("BEGIN IMMEDIATE")
        yield
        db.execute("ROLLBACK")
    finally:
        db.close()


def records(database: Path) -> list[JSON]:
    """Every record, in order; `said` is its payload."""
    names = ("seq", "at", "kind", "call", "session", "task", "agent")
    with reading(database) as db:
        rows = db.execute(f"SELECT {', '.join(names)}, body FROM ledger ORDER BY seq")
        return [
            {**dict(zip(names, row, strict=True)), "said": json.loads(body)} for *row, body in rows
        ]


def calls(database: Path, tool: str) -> list[Pair]:
    """Every call of a tool, in the order of the ledger."""
    with reading(database) as db:
        pairs = "kind = 'call.enter' OR kind = 'call.exit'"
        rows = [
            row
            for row in db.execute(
                f"SELECT seq, kind, call, body FROM ledger WHERE {pairs} ORDER BY seq"
            )
            if json.loads(row[3])["tool"] == tool
        ]
    exits = {call: (seq, json.loads(body)) for seq, kind, call, body in rows if kind == "call.exit"}
    return [
        _pair(seq, tool, json.loads(body)["arguments"], *exits.get(call, (None, {})))
        for seq, kind, call, body in rows
        if kind == "call.enter"
    ]


def _pair(seq: int, tool: str, arguments: Any, exit_seq: int | None, left: JSON) -> Pair:
    return Pair(seq, tool, arguments, exit_seq, left.get("outcome"), left.get("code"))


def has_entered(database: Path, tool: str, number: int = 1) -> Callable[[], bool]:
    """For `eventually`: whether the ledger has that many calls of the tool."""

    def look() -> bool:
        return len(calls(database, tool)) >= number

    return look


def booted(server: Server) -> None:
    """Wait until the database is open."""
    eventually(lambda: "[Startup] Complete" in server.stderr, "the end of the boot sequence")


def verified(database: Path) -> Report:
    """Check the whole chain; an AssertionError says what is wrong with it."""
    with reading(database) as db:
        report = verify(db, pause=lambda: None)
    assert report.valid, report.breaks
    return report


def missing(database: Path, receipts: list[JSON]) -> list[JSON]:
    """The receipts whose record the ledger does not have."""
    with reading(database) as db:
        return [
            receipt
            for receipt in receipts
            if ledger.leaf_at(db, receipt["seq"]) != bytes.fromhex(receipt["head"])
        ]


def condition(server: Server) -> tuple[str, str | None]:
    """The state and its cause, as server_health reports them."""
    found = server.data("server_health")["condition"]
    return found["state"], found["cause"]


def error(result: JSON) -> JSON:
    """The error of a failed call, pattern A."""
    assert result["isError"] is True, result
    found: JSON = result["structuredContent"]["error"]
    return found


def audited_on_stderr(server: Server, tool: str) -> list[JSON]:
    """The audit lines that replace a tool's ledger records."""
    lines = [json.loads(line) for line in server.stderr.splitlines() if line.startswith("{")]
    return [line for line in lines if line.get("tool") == tool]


def has_audited(server: Server, tool: str) -> Callable[[], bool]:
    """For `eventually`: whether both audit lines of a call exist; a probe answers before that."""
    return lambda: len(audited_on_stderr(server, tool)) == 2


def create(database: Path, records: int = 0, **options: Any) -> None:
    """A closed database with a ledger of enter and exit records, made without a server."""
    opened = open_writer(
        str(database),
        lock_timeout=1.0,
        monotonic=time.monotonic,
        sleep=time.sleep,
        stamp="20260101T000000Z",
        new_log=lambda: LOG,
        **options,
    )
    try:
        with Transaction(opened.db, durable=True):
            fill(opened.db, records)
    finally:
        opened.close()


def fill(db: Connection, records: int) -> None:
    """Append so many records, two for each call."""
    chain = ledger.Chain(db, LOG, lambda seq: seq.to_bytes(32, "big"))
    enter: JSON = {"tool": "note", "arguments": {}, "size": None, "sha256": None}
    enter |= {"client": None, "host_session": None, "use": None}
    enter["server"] = "00000000-0000-4000-8000-00000000c01b"
    enter |= {"client": None, "host_session": None, "use": None}
    left = {"tool": "note", "outcome": "ok", "code": None, "result_sha256": "0" * 64}
    left["repeats"] = None
    for number in range(0, records, 2):
        call = f"00000000-0000-4000-8000-{number:012x}"
        entry = chain.append("call.enter", enter, at="2026-01-01T00:00:00.000000Z", call=call)
        chain.append(
            "call.exit",
            {**left, "enter": entry.seq, "duration_ms": 0, "repeats": None},
            at="2026-01-01T00:00:00.000000Z",
            call=call,
        )


# Damage to the middle of a ledger made by `create`.


_RECORD = b"call.exit00000000-0000-4000-8000-0000000000f8"  # part of the row of record 250


def flip_in_a_record(path: Path) -> None:
    """One bit of a stored record."""
    data = bytearray(path.read_bytes())
    data[data.index(_RECORD) + len(_RECORD) - 1] ^= 1
    path.write_bytes(data)


def overwrite_a_page(path: Path) -> None:
    """The page that holds it."""
    data = bytearray(path.read_bytes())
    page = 4096 * (data.index(_RECORD) // 4096)
    data[page : page + 4096] = b"\xff" * 4096
    path.write_bytes(data)
