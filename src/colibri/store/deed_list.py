"""Deeds as people look for them: how many, which commands failed, which have some words, and
which files were edited."""

from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

from colibri.core.canonical import encode
from colibri.core.ledger import load
from colibri.store.connection import Connection

FAILED = "(event = 'tool.failed' OR event = 'tool.denied' OR coalesce(exit, 0) <> 0)"
_RECENT = 500  # deeds among which commands that failed are looked for
_COMMANDS = """
    SELECT d.seq, l.at, l.session, l.task, l.agent, d.exit, d.event, l.body, {failed}
    FROM {deeds} AS d JOIN ledger AS l ON l.seq = d.seq + 1 AND l.kind = 'deed.text'
    WHERE d.class = 'run' AND d.event <> 'tool.begin' AND l.body IS NOT NULL ORDER BY d.seq DESC
"""
_EDITS = """
    SELECT d.event, d.host_session, d.host_agent, d.use,
        d.seq, coalesce(d.late, l.at), l.session, l.task, l.agent, d.host, l.body, t.body
    FROM deeds AS d JOIN ledger AS l ON l.seq = d.seq
    LEFT JOIN ledger AS t ON t.seq = d.seq + 1 AND t.kind = 'deed.text'
    WHERE d.class = 'edit' AND d.event IN ('tool.begin', 'tool.end') ORDER BY d.seq
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


class Edit(NamedTuple):
    """A file after an agent had edited it, as the hook found it on disk."""

    seq: int
    at: str  # when it happened
    session: str | None
    task: str | None
    agent: str | None
    host: str
    tree: str  # the work tree, as it is called from the project
    path: str  # in the work tree
    sha256: str | None
    before: str | None  # the same before the edit; None if the hook was not asked, or saw no file


def count(db: Connection) -> tuple[int, int]:
    """How many deeds there are, and how many of them failed."""
    row: Any = db.execute(f"SELECT count(*), count(*) FILTER (WHERE {FAILED}) FROM deeds").get
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
    plain = [encode(word)[1:-1].lower() for word in wanted if word.isascii()]
    for one in _commands(db, "deeds", plain):
        text = one.command.casefold()
        if all(word in text for word in wanted):
            yield one


def _commands(db: Connection, deeds: str, plain: Sequence[bytes] = ()) -> Iterator[Command]:
    """The commands of some deeds, the newest first; `plain` are words that they must have, in lower
    case: what cannot have them is skipped before it is read."""
    for row in db.execute(_COMMANDS.format(failed=FAILED, deeds=deeds)):
        seq, at, session, task, agent, exit, event, body, failed = row
        # Beyond ASCII a letter may be one of ours in another case: the Kelvin sign is a k.
        if body.isascii() and not all(word in body.lower() for word in plain):
            continue
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


def edits(db: Connection, names: Collection[str]) -> Iterator[Edit]:
    """The files whose paths end in one of some names, each time one was edited, the oldest first.

    An erased deed has no paths, so it is not among them.
    """
    wanted = [encode(name)[1:-1] for name in names]
    begun: dict[tuple[str, str], dict[object, str | None]] = {}
    for event, session, agent, use, *facts, deed, text in db.execute(_EDITS):
        if text is None or not any(name in text for name in wanted):
            continue
        for tree, path, sha256 in _files(deed, text):
            if tree is None or path is None:
                continue
            running = begun.setdefault((tree, path), {})
            if event == "tool.begin":
                running[session, agent, use] = sha256
                continue
            before = running.pop((session, agent, use), None)
            # Another edit that is still going on did not find what it began with.
            begun[tree, path] = dict.fromkeys(running)
            yield Edit._make((*facts, tree, path, sha256, before))


def first_edit(db: Connection) -> str | None:
    """When an edit was first reported."""
    at: str | None = db.execute(
        "SELECT l.at FROM deeds AS d JOIN ledger AS l ON l.seq = d.seq"
        " WHERE d.class = 'edit' ORDER BY d.seq LIMIT 1"
    ).get
    return at


def edited(db: Connection) -> set[str]:
    """The SHA-256 of every content that an edit left."""
    ended = (row for row in db.execute(_EDITS) if row[0] == "tool.end")
    found = (_files(deed, None) for *_, deed, _ in ended)
    return {sha256 for files in found for *_, sha256 in files if sha256 is not None}


def _files(deed: bytes, text: bytes | None) -> list[tuple[str | None, str | None, str | None]]:
    """Work tree, path and SHA-256 of each file; nothing where it is damaged: `verify` says so."""
    try:
        files, told = load(deed)["files"], None if text is None else load(text)
        if told is None:
            return [(None, None, _text(file["sha256"])) for file in files]
        tree, paths = _text(told["tree"]), told["paths"]
        return [(tree, _text(paths[file["n"]]), _text(file["sha256"])) for file in files]
    except (ValueError, LookupError, TypeError):
        return []


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
