"""`colibri log`: the records of the ledger as they are, and one of them in full."""

import argparse
import json
import re
from dataclasses import replace
from typing import Any, NamedTuple

from colibri.cli import follow, lookup, project, terminal
from colibri.cli.complaint import Complaint
from colibri.cli.show import times, words
from colibri.core.ledger import KINDS
from colibri.core.report import Break
from colibri.store import ledger, record_check, records
from colibri.store.connection import Connection
from colibri.store.home import Home
from colibri.store.records import Filter, Record

HELP = "show ledger records, or one record in full"

DESCRIPTION = """\
Show the records of the ledger, oldest first; by default the newest 50. A record is shown only if it
passes every filter.

With SEQ: show one record with its hashes, its header as it was hashed, its payload and nonce, and
the other record of its call. That record is checked as well; colibri verify checks the whole log.
"""

EPILOG = f"""\
examples:
  colibri log
  colibri log 17
  colibri log --session S-0123456789ab --payload
  colibri log --kind call.exit --tool task_update --since today
  colibri log --since 100 --until 200 --limit 0 --json
  colibri log --follow

Kinds: {", ".join(KINDS)}.
Times are local: 2026-03-01, 2026-03-01T14:30, 14:30, today, yesterday, 90m, 2h, 3d. A number is the
seq of a record.

--json prints one object per line: seq, at (UTC), kind, call, session, task, agent, leaf, prev,
payload and payload_state (kept; or erased, missing or unreadable, and then payload is null). With
SEQ it adds header, nonce, enter and exit (the seqs of its call's records) and breaks (what is wrong
with the record).

Exit codes: 0 shown, 1 no such record, session or task, 73 configuration, 75 resource,
130 interrupted.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "seq", metavar="SEQ", nargs="?", type=lookup.seq, help="one record, in full"
    )
    parser.add_argument(
        "--kind",
        choices=KINDS,
        metavar="KIND",
        action="append",
        default=[],
        help="only this kind; repeatable",
    )
    parser.add_argument("--tool", metavar="NAME", help="only calls of this tool")
    parser.add_argument("--session", metavar="ID", help="only records that name this session")
    parser.add_argument(
        "--task", metavar="ID", type=lookup.task_id, help="only records that name this task"
    )
    parser.add_argument("--agent", metavar="NAME", help="only records that name this agent")
    parser.add_argument(
        "--since", metavar="WHEN", type=times.since, help="from this seq or time on"
    )
    parser.add_argument("--until", metavar="WHEN", type=times.until, help="up to this seq or time")
    terminal.limit_option(parser, "only the newest N", 50)
    order = parser.add_mutually_exclusive_group()
    order.add_argument("--reverse", action="store_true", help="newest first")
    follow.option(order, "records")
    terminal.alone_option(parser, "SEQ")
    parser.add_argument("--payload", action="store_true", help="show payloads as well")
    project.options(parser, "print one JSON object a line")


def run(options: argparse.Namespace) -> int:
    if options.seq is None:
        return follow.run(options, _show)
    terminal.refuse_filters(options)
    return follow.run(options, _show_one)


# Many.


def _show(db: Connection, home: Home, options: argparse.Namespace) -> None:
    wanted = _filter(options)
    last = ledger.last_seq(db)
    printer = _Printer(options, len(str(last)))
    hidden = options.limit and records.before_newest(db, wanted, options.limit, last=last)
    shown = replace(wanted, first=hidden + 1) if hidden else wanted
    for record in records.records(db, shown, last=last, newest_first=options.reverse):
        printer.show(record)
    if hidden:
        terminal.note(f"older records are not shown: --limit {options.limit}; --limit 0 shows all")
    if options.follow:
        for seq in follow.heads(db, home, after=last):
            new = replace(wanted, first=max(wanted.first, last + 1))
            for record in records.records(db, new, last=seq):
                printer.show(record)
            last = seq
    elif not printer.count:
        _explain_nothing(db, options)


def _filter(options: argparse.Namespace) -> Filter:
    since, until = options.since, options.until
    return Filter(
        kinds=tuple(options.kind),
        tool=options.tool,
        session=options.session,
        task=options.task,
        agent=options.agent,
        since=since if isinstance(since, str) else None,
        until=until if isinstance(until, str) else None,
        first=since if isinstance(since, int) else 1,
        last=until if isinstance(until, int) else None,
    )


def _explain_nothing(db: Connection, options: argparse.Namespace) -> None:
    """An id that nothing names may be a mistake; anything else is an answer."""
    if options.session is not None:
        lookup.session(db, options.session)
    if options.task is not None:
        lookup.task(db, options.task)
    terminal.note("no record matches")


class _Printer:
    """Prints records, a line each."""

    def __init__(self, options: argparse.Namespace, digits: int) -> None:
        self._options = options
        self._digits = digits
        self._days = times.Days()
        self.count = 0

    def show(self, record: Record) -> None:
        self.count += 1
        if self._options.json:
            terminal.emit(words.record_json(record))
            return
        time = self._days.stamp(record.at)
        start = f"{record.seq:>{self._digits}}  {time}  {record.kind:<12}  "
        hang = terminal.hang(len(start), self._digits + 2)
        about = " · ".join(words.names(record))
        seq, rest = start[: self._digits], start[self._digits :]
        terminal.line(
            (seq, "bold"), (rest, "dim"), *words.summary(record), (f"  {about}", "dim"), hang=hang
        )
        if self._options.payload:
            _show_payload(record, hang)


def _show_payload(record: Record, indent: int) -> None:
    text = words.NOT_KEPT.get(record.state) or json.dumps(
        record.payload, ensure_ascii=False, indent=2
    )
    terminal.paragraph(text, indent=indent)


# One.


class Found(NamedTuple):
    """A record, its call, and what is wrong with it."""

    record: Record
    enter: Record | None
    exit: Record | None
    breaks: list[Break]
    last: int  # of the log


def _show_one(db: Connection, home: Home, options: argparse.Namespace) -> None:
    with db:  # what is read belongs together
        found = _find(db, options.seq)
    if options.json:
        terminal.emit(_json(found))
    else:
        _show_fields(found)
        record = found.record
        terminal.heading("header, as it was hashed")
        header = record.header.decode(errors="backslashreplace")
        terminal.paragraph(_between_fields(header), indent=2)
        terminal.heading("payload")
        _show_payload(record, 2)


def _between_fields(header: str) -> str:
    """On a terminal, with line breaks between fields, so that no hash is broken in two."""
    rows = [""]
    for field in re.split(r'(?<=,)(?=")', header) if terminal.is_terminal() else [header]:
        if rows[-1] and len(rows[-1]) + len(field) > terminal.console().width - 2:
            rows.append("")
        rows[-1] += field
    return "\n".join(rows)


def _find(db: Connection, seq: int) -> Found:
    record, last = records.get(db, seq), ledger.last_seq(db)
    if record is None:
        hint = f"the log has records 1 to {last}" if last else "the log is still empty"
        raise Complaint(f"there is no record {seq}", hint)
    return Found(record, *records.call_of(db, record), record_check.check_range(db, seq, seq), last)


def _json(found: Found) -> dict[str, Any]:
    record = found.record
    return {
        **words.record_json(record),
        "header": record.header.decode(errors="backslashreplace"),
        "nonce": None if record.nonce is None else record.nonce.hex(),
        "enter": None if found.enter is None else found.enter.seq,
        "exit": None if found.exit is None else found.exit.seq,
        "breaks": [{"what": one.what, "detail": one.detail} for one in found.breaks],
    }


def _show_fields(found: Found) -> None:
    record, field = found.record, terminal.field
    field("record", (f"{record.seq}", "bold"), f" of {found.last}")
    field("kind", (record.kind, "bold"))
    field("at", record.at)
    for name in ("session", "task", "agent"):
        field(name, getattr(record, name) or "-")
    field("call", record.call, whole=True)
    for name, other in (("enter", found.enter), ("exit", found.exit)):
        if other is None:
            field(name, "none: the call has not ended, or no call wrote this")
        elif other.seq != record.seq:
            field(name, f"#{other.seq}  ", *words.summary(other))
    field("leaf", record.leaf.hex(), whole=True)
    field("prev", record.prev.hex(), whole=True)
    field("nonce", record.nonce.hex() if record.nonce else "-", whole=True)
    for one in found.breaks:
        field("check", (f"{one.what}: {one.detail}", "bad"))
    if not found.breaks:
        field("check", ("intact", "good"))
