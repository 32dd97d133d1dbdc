"""`colibri status`: the project at a glance."""

import argparse
import os
from dataclasses import dataclass
from typing import Any

from colibri.cli import program, project, terminal
from colibri.cli.show import times, words
from colibri.config import Config, load
from colibri.core.ledger import Head
from colibri.core.states import Status
from colibri.store import ledger, tasks, timeline
from colibri.store.connection import Connection
from colibri.store.sessions import Session
from colibri.store.tasks import Filter
from colibri.store.timeline import OPEN_CALLS_AMONG, Record

HELP = "the project at a glance"

DESCRIPTION = """\
Show where the ledger is and how large it is, its head, open sessions and calls, tasks by state, the
last seal and the latest activity.

Keep the head where nobody who works on the project can change it. colibri verify --head takes it
and detects whether the log was truncated or rewritten since. The status itself verifies nothing.
"""

EPILOG = f"""\
examples:
  colibri status
  colibri status --project ~/site
  colibri status --json

Open calls are searched for among the newest {OPEN_CALLS_AMONG:,} records.

--json prints exists, project and path; if the ledger exists, also bytes, wal_bytes, log, records,
head {{seq, leaf}}, sessions {{open, sealed, newest_open: [Session]}}, tasks {{total, ready, states:
{{STATE: number}}}}, open_calls [{{seq, at, call, tool, server}}], open_calls_after (a seq),
last_seal (a Session) and last_activity. A Session has session_id, intent, task_id, started_at,
record_count, finalized_at and root.

Exit codes: 0 shown, even if there is no ledger yet, 73 configuration, 75 resource.
"""

OPEN_SESSIONS = OPEN_CALLS = 5  # how many are named
KIB = 1024


def configure(parser: argparse.ArgumentParser) -> None:
    """Its options."""
    terminal.json_option(parser)
    project.option(parser)


def run(options: argparse.Namespace) -> int:
    """Show the status; the exit code."""
    config = load(options.project)
    if not os.path.exists(config.db_path):
        _show_nothing(config, options)
        return 0
    with project.reading(options) as (_, reader):
        seen = _look(reader)
    if options.json:
        terminal.emit(_json(config, seen))
    else:
        _show(config, seen)
    return 0


def _show_nothing(config: Config, options: argparse.Namespace) -> None:
    if options.json:
        terminal.emit({"exists": False, "project": config.project, "path": config.db_path})
        return
    terminal.field("project", config.project, whole=True)
    terminal.field("store", config.db_path, whole=True)
    terminal.field("", "there is no ledger yet; the server creates it when it first starts")
    terminal.field("next", program.typed("colibri setup CLIENT --write adds it to your MCP client"))


@dataclass(frozen=True, slots=True)
class Seen:
    """What one look at the database found."""

    log: str
    head: Head | None
    newest: Record | None
    open_sessions: int
    sealed_sessions: int
    newest_open: list[Session]
    states: dict[str, int]
    ready: int
    open_calls: list[Record]
    open_calls_after: int
    last_seal: Session | None


def _look(db: Connection) -> Seen:
    head = ledger.head(db)
    seq = head.seq if head else 0
    still_open, sealed = timeline.count_sessions(db)
    after = max(0, seq - OPEN_CALLS_AMONG)
    return Seen(
        log=ledger.log_id(db),
        head=head,
        newest=timeline.get(db, seq),
        open_sessions=still_open,
        sealed_sessions=sealed,
        newest_open=timeline.newest_sessions(db, OPEN_SESSIONS, only_open=True),
        states={status.value: _count(db, status) for status in Status},
        ready=tasks.ready(db, Filter(), limit=0)[1],
        open_calls=timeline.open_calls(db, after=after),
        open_calls_after=after,
        last_seal=timeline.last_sealed(db),
    )


def _count(db: Connection, status: Status) -> int:
    _, total = tasks.find(db, Filter(status=status), search=None, limit=0, offset=0)
    return total


# For machines.


def _json(config: Config, seen: Seen) -> dict[str, Any]:
    return {
        "exists": True,
        "project": config.project,
        "path": config.db_path,
        "bytes": _size(config.db_path),
        "wal_bytes": _size(f"{config.db_path}-wal"),
        "log": seen.log,
        "records": seen.head.seq if seen.head else 0,
        "head": seen.head and {"seq": seen.head.seq, "leaf": seen.head.leaf.hex()},
        "sessions": {
            "open": seen.open_sessions,
            "sealed": seen.sealed_sessions,
            "newest_open": [words.session_json(one) for one in seen.newest_open],
        },
        "tasks": {
            "total": sum(seen.states.values()),
            "ready": seen.ready,
            "states": seen.states,
        },
        "open_calls": [
            {
                "seq": call.seq,
                "at": call.at,
                "call": call.call,
                "tool": (call.payload or {}).get("tool"),
                "server": (call.payload or {}).get("server"),
            }
            for call in seen.open_calls
        ],
        "open_calls_after": seen.open_calls_after,
        "last_seal": seen.last_seal and words.session_json(seen.last_seal),
        "last_activity": seen.newest and seen.newest.at,
    }


def _size(path: str) -> int:
    """os.stat only: nothing but SQLite may open these files."""
    try:
        return os.path.getsize(path)
    except FileNotFoundError:
        return 0


# For people.


def _show(config: Config, seen: Seen) -> None:
    field = terminal.field
    field("project", (config.project, "bold"), whole=True)
    field("store", config.db_path, whole=True)
    size, wal = _size(config.db_path), _size(f"{config.db_path}-wal")
    field("", (f"{_bytes(size)}, write-ahead log {_bytes(wal)}", "dim"))
    field("log", seen.log, whole=True)
    if seen.head is None or seen.newest is None:
        field("records", "none yet")
        return
    field("records", f"{seen.head.seq:,}")
    field("head", (f"{seen.head.seq}:{seen.head.leaf.hex()}", "bold"), whole=True)
    field("activity", times.shown(seen.newest.at), "  ", *words.summary(seen.newest))
    _show_sessions(seen)
    _show_tasks(seen)
    _show_open_calls(seen)


def _show_sessions(seen: Seen) -> None:
    field = terminal.field
    print()
    field("sessions", f"{seen.open_sessions} open, {seen.sealed_sessions} sealed")
    for session in seen.newest_open:
        thoughts = terminal.count(session.record_count, "thought")
        facts = f"  {thoughts}, opened {times.shown(session.started_at)}"
        field(
            "", (session.session_id, "good"), f"  {words.excerpt(session.intent)}", (facts, "dim")
        )
    if more := seen.open_sessions - len(seen.newest_open):
        lists = program.typed("colibri sessions --open")
        field("", (f"… and {more} more open sessions: {lists}", "dim"))
    if (seal := seen.last_seal) and seal.root and seal.finalized_at:
        thoughts = terminal.count(seal.record_count, "thought")
        facts = f"  {thoughts}, {times.shown(seal.finalized_at)}"
        field("last seal", (seal.session_id, "bold"), (facts, "dim"))
        field("root", seal.root.hex(), whole=True)


def _show_tasks(seen: Seen) -> None:
    total = sum(seen.states.values())
    print()
    terminal.field("tasks", f"{total:,}" + (f", {seen.ready:,} ready to continue" if total else ""))
    spans: list[terminal.Span] = []
    for state, number in seen.states.items():
        if number:
            spans += [*(["  "] if spans else []), (state, state), f" {number:,}"]
    if spans:
        terminal.field("", *spans)


def _show_open_calls(seen: Seen) -> None:
    field = terminal.field
    print()
    field("open calls", str(len(seen.open_calls) or "none"))
    for call in seen.open_calls[:OPEN_CALLS]:
        server = str((call.payload or {}).get("server"))[:8]
        facts = f"  {times.shown(call.at)}, server {server}"
        field("", f"#{call.seq}  ", *words.summary(call), (facts, "dim"))
    if more := len(seen.open_calls[OPEN_CALLS:]):
        field("", (f"… and {more} more; --json names them", "dim"))


def _bytes(size: int) -> str:
    if size < KIB:
        return f"{size} B"
    power = min(3, (size.bit_length() - 1) // 10)
    return f"{size / KIB**power:,.1f} {('', 'KiB', 'MiB', 'GiB')[power]}"
