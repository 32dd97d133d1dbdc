"""`colibri status`: the project at a glance."""

import argparse
from typing import Any

from colibri.cli import program, project, terminal, witnesses
from colibri.cli.show import deeds, times, words
from colibri.config import load
from colibri.core.states import Status
from colibri.core.witness import Witness
from colibri.store import deed_list, gate_file, ledger, records, sessions, tasks
from colibri.store.connection import Connection
from colibri.store.records import OPEN_CALLS_AMONG, Record, Work
from colibri.store.sessions import Session
from colibri.store.tasks import Filter

HELP = "the project at a glance"

DESCRIPTION = """\
Show where the ledger is and how large it is, its head and its newest witness, open sessions and
calls, tasks by state, the last seal and the latest activity.

A witness is a head or a checkpoint that is kept outside the ledger: colibri verify detects whether
the log was truncated or rewritten up to there. colibri witness --push keeps one at a git remote; or
keep the head yourself, for colibri verify --head. The status itself verifies nothing.
"""

EPILOG = f"""\
examples:
  colibri status
  colibri status --project ~/site
  colibri status --json

Open calls are searched for among the newest {OPEN_CALLS_AMONG:,} records.

--json prints exists, project, found_by (which rule found it), gates_problem (what is wrong with the
project's colibri.toml, or null), unrecorded [TEXT] (what hooks could not record, and no record
mentions yet) and path; if the ledger exists, also bytes, wal_bytes (of a file) or server {{version,
user, rights, schema, schema_version, standby, tls, sslmode, local}}, log, records, head {{seq,
leaf}}, witness (null, or {{size, kind, where, at, remote, age_seconds}} of the newest), sessions
{{open, sealed, newest_open: [Session]}}, tasks {{total, ready, states: {{STATE: number}}}},
open_calls [{{seq, at, call, tool, server}}], open_calls_after (a seq), last_seal (a Session) and
last_activity. A Session is what colibri sessions --json prints of one.

Exit codes: 0 shown, even if there is no ledger yet, 73 configuration, 75 resource.
"""

SHOWN = 5  # open sessions and open calls that are named
KIB = 1024


def configure(parser: argparse.ArgumentParser) -> None:
    project.options(parser)


def run(options: argparse.Namespace) -> int:
    config = load(options.project)
    path = config.ledger_name
    seen: dict[str, Any] = {"exists": project.home(config).is_there(), "project": config.project}
    seen |= {"path": path, "found_by": config.found_by}
    seen["gates_problem"] = problem = gate_file.read(config.project).problem
    seen["unrecorded"] = untold = deeds.unrecorded(config)
    if seen["exists"]:
        with project.reading(options) as (_, reader):
            seen |= {**reader.engine.facts(reader), **_look(reader)}
            seen["witness"] = witnesses.newest(config, reader)
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
    for fact in () if options.json else untold:
        terminal.field("deeds", (fact, "bad"))
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


# For machines.


def _json(seen: dict[str, Any]) -> dict[str, Any]:
    newest: Record | None = seen.pop("newest")
    witness: Witness | None = seen["witness"]
    names = ("size", "kind", "where", "at", "remote")
    seen["witness"] = witness and {
        **{name: getattr(witness, name) for name in names},
        "age_seconds": times.age(witness.at) if witness.at else None,
    }
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
    field("", (_place(seen), "dim"))
    field("log", seen["log"], whole=True)
    if seen["newest"] is None:
        field("records", "none yet")
        return
    field("records", f"{seen['records']:,}")
    field("head", (words.head(seen["head"]), "bold"), whole=True)
    field("witness", witnesses.told(seen["witness"], seen["records"]))
    field("activity", times.shown(seen["newest"].at), "  ", *words.summary(seen["newest"]))
    print()
    _show_sessions(seen["sessions"], seen["last_seal"])
    print()
    _show_tasks(seen["tasks"])
    print()
    if seen["deeds"]["total"]:
        terminal.field("deeds", "{total:,}, {failed:,} failed".format(**seen["deeds"]))
    _show_open_calls(seen["open_calls"])


def _place(seen: dict[str, Any]) -> str:
    """How large it is and, of a server, who we are there."""
    size, server = _bytes(seen["bytes"]), seen.get("server")
    if server is None:
        return f"{size}, write-ahead log {_bytes(seen['wal_bytes'])}"
    rights = ", ".join(server["rights"]) or "do nothing"
    kind = "a standby" if server["standby"] else "primary"
    secured = server["tls"] or ("on this machine" if server["local"] else "not encrypted")
    return f"{size}, {server['version']}, {kind}, {secured}; {server['user']} may {rights}"


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
    ready = f", {found['ready']:,} can be worked on now" if found["total"] else ""
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
