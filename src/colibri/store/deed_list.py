"""Deeds as people look for them: how many, which commands failed, which have some words."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from colibri.core.ledger import load
from colibri.store.connection import Connection

FAILED = "(event = 'tool.failed' OR event = 'tool.denied' OR coalesce(exit, 0) <> 0)"
_RECENT = 500  # deeds among which commands that failed are looked for
_COMMANDS = """
    SELECT d.seq, l.at, l.session, l.task, l.agent, d.exit, d.event, l.body, {failed}
    FROM {deeds} AS d JOIN ledger AS l ON l.seq = d.seq + 1 AND l.kind = 'deed.text'
    WHERE d.class = 'run' AND d.event <> 'tool.begin' AND l.body IS NOT NULL ORDER BY d.seq DESC
"""


class Command(NamedTuple):
    """A command that an agent ran, as far as its host told."""

    seq: int
    at: str
    session: str | None
    task: str | None
    agent: str | None
    exit: int | None
    event: str
    command: str
    failed: bool


def count(db: Connection) -> tuple[int, int]:
    """How many deeds there are, and how many of them failed."""
    row: Any = db.execute(f"SELECT count(*), coalesce(sum({FAILED}), 0) FROM deeds").get
    total, failed = row
    return total, failed


def failing(db: Connection, most: int) -> list[Command]:
    """The commands of the newest deeds whose last run failed, the newest first."""
    recent = f"(SELECT * FROM deeds ORDER BY seq DESC LIMIT {_RECENT:d})"
    newest: dict[str, Command] = {}
    for one in _commands(db, recent):
        newest.setdefault(one.command, one)
    ran = (one for one in newest.values() if one.event != "tool.denied")
    return [one for one in ran if one.failed][:most]


def find(db: Connection, words: Sequence[str]) -> Iterator[Command]:
    """The commands that have all of some words, the newest first; case does not matter."""
    wanted = [word.casefold() for word in words]
    for one in _commands(db, "deeds"):
        text = one.command.casefold()
        if all(word in text for word in wanted):
            yield one


def _commands(db: Connection, deeds: str) -> Iterator[Command]:
    for row in db.execute(_COMMANDS.format(failed=FAILED, deeds=deeds)):
        seq, at, session, task, agent, exit, event, body, failed = row
        if command := _command(body):
            yield Command(seq, at, session, task, agent, exit, event, command, bool(failed))


def _command(body: bytes) -> str | None:
    """What a text says that was run; nothing where it is damaged, which `verify` names."""
    try:
        said = load(body)
    except ValueError:
        return None
    command = said.get("command") if isinstance(said, dict) else None
    return command if isinstance(command, str) else None
