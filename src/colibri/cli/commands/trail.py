"""`colibri trail`: what happened in a session or with a task, in order, as it happens."""

import argparse
from collections.abc import Callable, Iterator, Sequence

from colibri.cli import follow, lookup, program, project, terminal
from colibri.cli.complaint import Complaint
from colibri.cli.show import steps, times, words
from colibri.core.ledger import TYPES
from colibri.store import ledger, records, sessions
from colibri.store.connection import Connection
from colibri.store.home import Home
from colibri.store.records import Record
from colibri.store.sessions import Session
from colibri.store.tasks import Task
from colibri.store.timeline import Step, Timeline

HELP = "show the timeline of a session or task, live if you like"

DESCRIPTION = """\
Show what happened, in ledger order: full thoughts, task moves, seals, and calls that wrote nothing;
refused calls with their error code. With hooks (colibri setup CLIENT --hooks) also what the agent
did: edits, commands and prompts, with a cross where one failed.

For a session: its own calls and what they wrote, and nothing that others did meanwhile. The others'
records from that time are counted at the end; --all shows them. For a task: everything that names
it, in any session. Without an argument: the newest open session, or else the newest. If a session
and a task share an id, the session wins.
"""

EPILOG = """\
examples:
  colibri trail                         the current session
  colibri trail --follow                the same, live; waits for one to open
  colibri trail S-0123456789ab
  colibri trail T-0001 --type decision  why things are as they are
  colibri trail --all --follow --limit 20

colibri sessions and colibri tasks list the ids.

--follow stops by itself when its session is sealed. A call that belongs to no session, because it
names none and its process has none open or several, is shown only by --all.

--json prints one object per call and line: seq, at, call, session, task, agent, server, client,
tool, arguments, outcome (ok, refused, invalid, error, cancelled; open: has not ended; null: an
erasure or a deed), code, duration_ms, repeats (the record of an earlier call that this one
repeats, or null) and records (what it wrote, each as in colibri log --json).

Exit codes: 0 shown, 1 no such session or task, 73 configuration, 75 resource, 130 interrupted.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    whose = parser.add_mutually_exclusive_group()
    whose.add_argument("id", metavar="SESSION|TASK", nargs="?", help="whose timeline")
    whose.add_argument("--all", action="store_true", help="everything in the ledger")
    parser.add_argument(
        "--type",
        metavar="TYPE",
        choices=TYPES,
        action="append",
        default=[],
        help=f"only thoughts of this type: {', '.join(TYPES)}; repeatable",
    )
    terminal.limit_option(parser, "only the newest N calls and deeds, or thoughts with --type", 0)
    follow.option(parser, "entries")
    project.options(parser, "print one JSON object a line")


def run(options: argparse.Namespace) -> int:
    return follow.run(options, _show)


def _show(db: Connection, home: Home, options: argparse.Namespace) -> None:
    session, task = _whose(db, home, options)
    task_id = None if task is None else task.task_id
    found = Timeline(db, session=None if session is None else session.session_id, task=task_id)
    last = ledger.last_seq(db)
    if options.limit:
        found.skip_to_newest(options.limit, last=last, types=options.type)
    if not options.json:
        _title(db, session, task)
    printer = steps.Printer(hidden=(session.session_id if session else None, task_id))
    time = _time_of(session, last)
    unknown, others = 0, len(time)
    for step in _steps(found, last):
        _print(step, printer, options)
        others -= sum(seq in time for seq in _seqs(step))
        unknown += sum(one.kind == "thought" and one.payload is None for one in step.records)
    if not options.follow:
        printer.finish()
    if options.type and unknown:
        what = terminal.count(unknown, "thought")
        terminal.note(f"{what} left out: erased or unreadable, so their type is unknown")
    if others > 0 and not (options.limit or options.type or options.json or options.follow):
        _note_others(others, options)
    if options.follow:
        for seq in follow.heads(db, home, after=last, until=_end_of(db, session)):
            for step in found.advance(seq):
                _print(step, printer, options)


def _whose(
    db: Connection, home: Home, options: argparse.Namespace
) -> tuple[Session | None, Task | None]:
    if options.all:
        return None, None
    if options.id is not None:
        return lookup.either(db, options.id)
    found = sessions.newest(db, 1, only_open=True)
    if not found and options.follow:
        found = [_next_session(db, home)]
    found = found or sessions.newest(db, 1)
    if not found:
        hint = "an agent opens one when it starts to work; colibri trail --all shows every call"
        raise Complaint("there is no session yet", hint)
    return found[0], None


def _next_session(db: Connection, home: Home) -> Session:
    """Wait for a session to be opened."""
    terminal.note("waiting for a session to open; Ctrl-C stops")
    heads = follow.heads(db, home, after=ledger.last_seq(db))
    return next(found[0] for _ in heads if (found := sessions.newest(db, 1, only_open=True)))


def _end_of(db: Connection, session: Session | None) -> Callable[[int], bool]:
    """Whether a session is over at a seq; its seal and that call's exit are committed at once."""

    def is_over(seq: int) -> bool:
        seal = None if session is None else sessions.get(db, session.session_id).seal_seq
        return seal is not None and seal < seq

    return is_over


def _title(db: Connection, session: Session | None, task: Task | None) -> None:
    if session is not None:
        state = "open" if session.root is None else "sealed"
        style = "good" if session.root is None else "dim"
        facts = [terminal.count(session.record_count, "thought")]
        facts += [words.work(records.work(db, session.session_id))]
        facts += [f"by {session.agent}" if session.agent else ""]
        facts += [f"opened {times.shown(session.started_at)}"]
        told = f"  {' · '.join(filter(None, facts))}"
        terminal.line((session.session_id, "bold"), "  ", (state, style), (told, "dim"), hang=2)
    if task is not None:
        terminal.line(
            (task.task_id, "bold"), "  ", (task.status, task.status), f"  {task.title}", hang=2
        )


def _steps(found: Timeline, last: int) -> Iterator[Step]:
    yield from found.advance(last)
    yield from found.open_calls()


def _time_of(session: Session | None, last: int) -> range:
    """The seqs from its opening to its seal and the exit after that; if it is open, to the last."""
    if session is None:
        return range(0)
    return range(session.open_seq, (last if session.seal_seq is None else session.seal_seq + 1) + 1)


def _seqs(step: Step) -> Iterator[int]:
    """Of its records, each once: a call that another one interrupts is several steps."""
    ends = (step.enter, step.exit) if step.exit or not step.records else ()
    return (one.seq for one in (*step.records, *ends) if one is not None)


def _note_others(count: int, options: argparse.Namespace) -> None:
    """What others did meanwhile is not in its trail: say that there is some."""
    what = f"… {terminal.count(count, 'other record')} from other work at that time"
    shown = program.typed(f"colibri trail --all{project.again(options)}")
    terminal.line((f"{what}: {shown}", "dim"), hang=2)


def _print(step: Step, printer: steps.Printer, options: argparse.Namespace) -> None:
    if options.type and not any(_is_of(record, options.type) for record in step.records):
        return
    if options.json:
        terminal.emit(words.step_json(step))
    else:
        printer.show(step)


def _is_of(record: Record, types: Sequence[str]) -> bool:
    """Whether a record is a thought of one of these types; an erased one no longer has a type."""
    return record.kind == "thought" and (record.payload or {}).get("type") in types
