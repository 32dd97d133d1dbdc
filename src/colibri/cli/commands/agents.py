"""`colibri agents`: what each agent and each person has done."""

import argparse
from dataclasses import asdict

from colibri.cli import project, terminal
from colibri.cli.show import times
from colibri.store import agents
from colibri.store.agents import Agent

HELP = "what each agent finished, retried and left behind"

DESCRIPTION = """\
Show every agent and person that has worked on this project, the most recent first: the tasks they
finished, cancelled, took a second attempt at or left behind, their refused calls, and how often
they had the log checked.

A task is left behind if its holder fell silent: somebody else took it over, or still could. People
have names that begin with human:. Calls that name no agent are counted together.
"""

EPILOG = """\
examples:
  colibri agents
  colibri agents --json

--json prints a list of {name, sessions, sealed, calls, refused, thoughts, finished, cancelled,
retried, abandoned, verified, holds, deeds, failed (of the deeds), last_at}.

Exit codes: 0 shown, even if there are none, 73 configuration, 75 resource.
"""

HEADINGS = (
    *("AGENT", "DONE", "CANCELLED", "RETRIED", "LEFT BEHIND", "HOLDS", "THOUGHTS"),
    *("REFUSED", "FAILED DEEDS", "CHECKED", "SEALED", "LAST SEEN"),
)


NOBODY = "(no name)"
WIDEST = 24  # of the column of names on a terminal; longer names are not cut off


def configure(parser: argparse.ArgumentParser) -> None:
    project.options(parser)


def run(options: argparse.Namespace) -> int:
    with project.reading(options) as (config, reader):
        now = times.recorded(times.now())
        found = agents.every(reader, now=now, minutes=config.claim_minutes)
    if options.json:
        terminal.emit([asdict(one) for one in found])
    elif not found:
        terminal.note("nobody has worked on this project yet; colibri setup CLIENT adds an agent")
    elif terminal.is_terminal():
        column = min(max(len(one.name or NOBODY) for one in found), WIDEST)
        for one in found:
            _show(one, column)
    else:
        terminal.table(HEADINGS, map(_row, found))
    return 0


def _show(one: Agent, column: int) -> None:
    """For people: without counts of zero."""
    name = (one.name or NOBODY).ljust(column)
    counts = (
        *((one.finished, "done"), (one.cancelled, "cancelled"), (one.retried, "retried")),
        *((one.abandoned, "left behind"), (one.holds, "in hand")),
    )
    done = ", ".join(f"{number} {what}" for number, what in counts if number)
    facts = [
        _of(0, one.thoughts, "thought", ""),
        _of(one.refused, one.calls, "call", "refused"),
        _of(one.failed, one.deeds, "deed", "failed"),
        _of(one.sealed, one.sessions, "session", "sealed"),
        f"{terminal.count(one.verified, 'check')} of the log" if one.verified else "",
        f"last seen {times.shown(one.last_at)}",
    ]
    facts = [fact for fact in facts if fact]
    terminal.line(
        (name, "bold"),
        f"  {done}  " if done else "  ",
        (" · ".join(facts), "dim"),
        hang=terminal.hang(column + 2),
    )


def _of(part: int, whole: int, noun: str, what: str) -> str:
    """So many things, and how many of them; "" for none."""
    if not whole:
        return ""
    things = terminal.count(whole, noun)
    return f"{part} of {things} {what}" if part else things


def _row(one: Agent) -> tuple[str, ...]:
    counts = (one.finished, one.cancelled, one.retried, one.abandoned, one.holds, one.thoughts)
    return (
        one.name or "-",
        *map(str, counts),
        f"{one.refused}/{one.calls}",
        f"{one.failed}/{one.deeds}",
        str(one.verified),
        f"{one.sealed}/{one.sessions}",
        one.last_at,
    )
