"""`colibri status`: the project at a glance."""

import argparse
import os
from typing import Any

from colibri.cli import program, project, terminal
from colibri.cli.show import times, words
from colibri.config import load
from colibri.core.states import Status
from colibri.store import deed_list, gate_file, ledger, records, sessions, tasks
from colibri.store.connection import Connection
from colibri.store.records import OPEN_CALLS_AMONG, Record, Work
from colibri.store.sessions import Session
from colibri.store.tasks import Filter

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

--json prints exists, project, found_by (which rule found it), gates_problem (what is wrong with the
project's colibri.toml, or null) and path; if the ledger exists, also
bytes, wal_bytes, log, records, head {{seq, leaf}}, sessions {{open, sealed, newest_open:
[Session]}}, tasks {{total, ready, states: {{STATE: number}}}}, open_calls [{{seq, at, call, tool,
server}}], open_calls_after (a seq), last_seal (a Session) and last_activity. A Session is what
colibri sessions --json prints of one.

Exit codes: 0 shown, even if there is no ledger yet, 73 configuration, 75 resource.
"""

SHOWN = 5  # open sessions and open calls that are named
KIB = 1024


def configure(parser: argparse.ArgumentParser) -> None:
    project.options(parser)


def run(options: argparse.Namespace) -> int:
    config = load(options.project)
    path = config.db_path
    seen: dict[str, Any] = {"exists": os.path.exists(path), "project": config.project, "path": path}
    seen["found_by"] = config.found_by
    seen["gates_problem"] = problem = gate_file.read(config.project).problem
    if seen["exists"]:
        with project.reading(options) as (_, reader):
            seen |= {"bytes": _size(path), "wal_bytes": _size(f"{path}-wal"), **_look(reader)}
    if options.json:
        terminal.emit(_json(seen) if seen["exists"] else seen)
    elif seen["exists"]:
        _show(seen)
    else:
        terminal.field("project", config.project, whole=True)
        terminal.field("", (config.found_by, "dim"))
        terminal.field("store", path, whole=True)
        terminal.field("", "there is no ledger yet; the server creates it when it first starts")
        adds = program.typed("colibri setup CLIENT --write adds it to your MCP client")
        terminal.field("next", adds)
    if problem is not None and not options.json:
        terminal.field("gates", (f"{problem}; until then no task can be DONE", "bad"))
    return 0


def _look(db: Connection) -> dict[str, Any]:
    """Everything that is shown, from one read; `newest` and `open_calls` are Records."""
    head = ledger.head(db)
    seq = head.seq if head else 0
    still_open, sealed = sessions.count(db)
    newest_open = sessions.newest(db, SHOWN, only_open=True)
    states = {status.value: _count(db, status) for status in Status}
    last_seal = sessions.last_sealed(db)
    after = max(0, seq - OPEN_CALLS_AMONG)
    return {
        "log": ledger.log_id(db),
        "records": seq,
        "head": words.head_json(head),
        "sessions": {
            "open": still_open,
            "sealed": sealed,
            "newest_open": [_session(db, one) for one in newest_open],
        },
        "tasks": {
            "total": sum(states.values()),
            "ready": tasks.count_ready(db, Filter()),
            "states": states,
        },
        "deeds": dict(zip(("total", "failed"), deed_list.count(db), strict=True)),
        "open_calls": records.open_calls(db, after=after),
        "open_calls_after": after,
        "last_seal": last_seal and _session(db, last_seal),
        "newest": records.get(db, seq),
    }


def _session(db: Connection, session: Session) -> dict[str, Any]:
    return words.session_json(session, records.work(db, session.session_id))


def _count(db: Connection, status: Status) -> int:
    _, total = tasks.find(db, Filter(status=status), search=None, limit=0, offset=0)
    return total


def _size(path: str) -> int:
    """os.stat only: nothing but SQLite may open these files."""
    try:
        return os.path.getsize(path)
    except FileNotFoundError:
        return 0


# For machines.


def _json(seen: dict[str, Any]) -> dict[str, Any]:
    newest: Record | None = seen.pop("newest")
    calls = [_call(call) for call in seen.pop("open_calls")]
    return seen | {"open_calls": calls, "last_activity": newest and newest.at}


def _call(call: Record) -> dict[str, Any]:
    enter = call.payload or {}
    names = {"tool": enter.get("tool"), "server": enter.get("server")}
    return {"seq": call.seq, "at": call.at, "call": call.call, **names}


# For people.


def _show(seen: dict[str, Any]) -> None:
    field = terminal.field
    field("project", (seen["project"], "bold"), whole=True)
    field("", (seen["found_by"], "dim"))
    field("store", seen["path"], whole=True)
    sizes = f"{_bytes(seen['bytes'])}, write-ahead log {_bytes(seen['wal_bytes'])}"
    field("", (sizes, "dim"))
    field("log", seen["log"], whole=True)
    if seen["newest"] is None:
        field("records", "none yet")
        return
    field("records", f"{seen['records']:,}")
    field("head", (words.head(seen["head"]), "bold"), whole=True)
    field("activity", times.shown(seen["newest"].at), "  ", *words.summary(seen["newest"]))
    print()
    _show_sessions(seen["sessions"], seen["last_seal"])
    print()
    _show_tasks(seen["tasks"])
    print()
    if seen["deeds"]["total"]:
        terminal.field("deeds", "{total:,}, {failed:,} failed".format(**seen["deeds"]))
    _show_open_calls(seen["open_calls"])


def _show_sessions(sessions: dict[str, Any], seal: dict[str, Any] | None) -> None:
    field = terminal.field
    field("sessions", "{open} open, {sealed} sealed".format(**sessions))
    for one in sessions["newest_open"]:
        facts = f"  {_done(one)}opened {times.shown(one['started_at'])}"
        intent = f"  {words.excerpt(one['intent'])}"
        field("", (one["session_id"], "good"), intent, (facts, "dim"))
    if more := sessions["open"] - len(sessions["newest_open"]):
        lists = program.typed("colibri sessions --open")
        field("", (f"… and {more} more open sessions: {lists}", "dim"))
    if seal and seal["root"]:
        facts = f"  {_done(seal)}{times.shown(seal['finalized_at'])}"
        field("last seal", (seal["session_id"], "bold"), (facts, "dim"))
        field("root", seal["root"], whole=True)


def _done(session: dict[str, Any]) -> str:
    """Who works in a session, and what it recorded and did."""
    thoughts = terminal.count(session["record_count"], "thought")
    facts = (session["agent_id"], thoughts, words.work(Work(**session["tasks"])))
    return "".join(f"{fact} · " for fact in facts if fact)


def _show_tasks(found: dict[str, Any]) -> None:
    ready = f", {found['ready']:,} ready to continue" if found["total"] else ""
    terminal.field("tasks", f"{found['total']:,}{ready}")
    spans: list[terminal.Span] = []
    for state, number in found["states"].items():
        if number:
            spans += [*(["  "] if spans else []), (state, state), f" {number:,}"]
    if spans:
        terminal.field("", *spans)


def _show_open_calls(calls: list[Record]) -> None:
    field = terminal.field
    field("open calls", str(len(calls) or "none"))
    for call in calls[:SHOWN]:
        facts = f"  {times.shown(call.at)}, server {str(_call(call)['server'])[:8]}"
        field("", f"#{call.seq}  ", *words.summary(call), (facts, "dim"))
    if more := len(calls[SHOWN:]):
        field("", (f"… and {more} more; --json names them", "dim"))


def _bytes(size: int) -> str:
    if size < KIB:
        return f"{size} B"
    power = min(3, (size.bit_length() - 1) // 10)
    return f"{size / KIB**power:,.1f} {('', 'KiB', 'MiB', 'GiB')[power]}"
