"""`colibri sessions`: all sessions of the project, newest first."""

import argparse

from colibri.cli import project, terminal
from colibri.cli.show import times, words
from colibri.store import records, sessions
from colibri.store.records import Work
from colibri.store.sessions import Session

HELP = "list sessions, open and sealed"

DESCRIPTION = """\
List the sessions, newest first: their intent, task, agent and opening time, how many thoughts they
recorded and how many tasks they created, finished and cancelled themselves, and for sealed sessions
the time of the seal and its root.

colibri trail SESSION shows what happened in a session, colibri report SESSION turns it into a page.
"""

EPILOG = """\
examples:
  colibri sessions
  colibri sessions --open
  colibri sessions --sealed --limit 0 --json

--json prints {total, open, sealed, sessions: [Session]}: the counts, and the sessions listed. A
Session has session_id, intent, task_id, started_at, record_count (its thoughts), finalized_at and
root (null until it is sealed), agent_id, client (the program that opened or last resumed it) and
tasks {created, done, cancelled}.

Exit codes: 0 shown, even if there are none, 73 configuration, 75 resource.
"""

STATE = 6  # the width of the column of states
WIDEST = 24  # of the column of ids; longer ones are not cut off


def configure(parser: argparse.ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--open", action="store_true", help="only open sessions")
    which.add_argument("--sealed", action="store_true", help="only sealed sessions")
    terminal.limit_option(parser, "only the newest N", 20)
    project.options(parser)


def run(options: argparse.Namespace) -> int:
    with project.reading(options) as (_, reader):
        still_open, sealed = sessions.count(reader)
        matching = (0 if options.sealed else still_open) + (0 if options.open else sealed)
        found = sessions.newest(
            reader,
            options.limit or matching,
            only_open=options.open,
            only_sealed=options.sealed,
        )
        works = [records.work(reader, session.session_id) for session in found]
    if options.json:
        counts = {"total": still_open + sealed, "open": still_open, "sealed": sealed}
        terminal.emit({**counts, "sessions": [*map(words.session_json, found, works)]})
        return 0
    if terminal.is_terminal():
        column = max((len(one.session_id) for one in found), default=0)
        for session, work in zip(found, works, strict=True):
            _show(session, work, column)
    elif found:
        terminal.table(HEADINGS, map(_row, found, works))
    _note(len(found), matching, still_open + sealed)
    return 0


def _show(session: Session, work: Work, column: int) -> None:
    """For people: a line that wraps under its intent, one of facts, and the root in one piece."""
    indent = terminal.hang(min(column, WIDEST) + STATE + 4)
    is_sealed = session.sized_root is not None and session.finalized_at is not None
    terminal.line(
        (session.session_id.ljust(min(column, WIDEST)), "bold"),
        "  ",
        (f"{'sealed' if is_sealed else 'open':<{STATE}}", "bold" if is_sealed else "good"),
        f"  “{' '.join(session.intent.split())}”",
        hang=indent,
    )
    facts = [name for name in (session.task_id, session.agent) if name]
    facts += [terminal.count(session.record_count, "thought")]
    facts += [done] if (done := words.work(work)) else []
    facts += [f"opened {times.shown(session.started_at)}"]
    facts += [f"sealed {times.shown(str(session.finalized_at))}"] if is_sealed else []
    terminal.line(" " * indent, (" · ".join(facts), "dim"), hang=indent)
    if is_sealed:
        room = max(0, terminal.console().width - len(f"root {session.sized_root}"))
        terminal.line(" " * min(indent, room), ("root ", "dim"), str(session.sized_root), hang=0)


HEADINGS = (
    *("SESSION", "TASK", "AGENT", "THOUGHTS", "CREATED", "DONE", "CANCELLED", "OPENED", "SEALED"),
    *("ROOT", "INTENT"),
)


def _row(session: Session, work: Work) -> tuple[str, ...]:
    """For a pipe: everything, in columns."""
    return (
        session.session_id,
        session.task_id or "-",
        session.agent or "-",
        str(session.record_count),
        *map(str, work),
        session.started_at,
        session.finalized_at or "open",
        session.sized_root or "-",
        session.intent,
    )


def _note(shown: int, matching: int, total: int) -> None:
    if not matching:
        terminal.note(
            "no session matches"
            if total
            else "there are no sessions yet; an agent opens one when it starts to work"
        )
    elif shown < matching:
        left_out = terminal.count(matching - shown, "older session")
        terminal.note(f"{left_out} left out; --limit 0 shows all")
