"""Finds rows of keys that do not match the records of the calls that used the keys.

Reads through the engine: somebody may have stored bytes that are not text.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Any

from colibri.core.check.calls import REPEATED
from colibri.core.check.kinds import Enter, Exit, read_one
from colibri.core.rows import Row
from colibri.store import keys, ledger
from colibri.store.connection import Connection
from colibri.store.tasks import task_id

_PART = 100  # rows whose calls are asked for at once
_COLUMNS = ("tool", "session", "key", "enter", "made")


def altered(db: Connection, firsts: Mapping[int, str], last: int) -> Iterator[str]:
    """Each row that no call explains, and each that is missing.

    `firsts` has the tool of each call up to `last` that may have left a row, by its enter record.
    """
    left = {**firsts, **dict(_later(db, last))}
    rows = iter(_rows(db))
    while some := [*islice(rows, _PART)]:
        db.look_ahead(
            read for row in some for read in (partial(_call, db, row), partial(_made, db, row))
        )
        for row in some:
            tool, _, _, enter, _ = row
            if left.pop(enter, None) != tool or not _is_right(db, row):
                yield f"the row in call_keys for record {enter} is not as its call says"
    for one in ledger.rows(db, sorted(left)):
        if _key_in(one) is not None:
            yield f"call_keys has no row for the key in record {one.seq}"


def ask(db: Connection, last: int) -> None:
    """Look ahead to what `altered` reads first."""
    db.look_ahead((lambda: next(_later(db, last), None), lambda: next(_rows(db), None)))


def _rows(db: Connection) -> Iterator[tuple[Any, ...]]:
    return db.engine.rows(db, _COLUMNS, "FROM call_keys", texts=("tool", "session", "key"))


def _later(db: Connection, last: int) -> Iterator[tuple[int, str]]:
    """Such calls that ended after a record; their records are not checked."""
    query = "SELECT seq FROM ledger WHERE seq > ? AND kind = 'call.exit' ORDER BY seq"
    rows = db.execute(query, (last,))
    for row in ledger.rows(db, [seq for (seq,) in rows.fetchall()]):
        said = read_one(row)
        done = isinstance(said, Exit) and said.outcome == "ok" and said.repeats is None
        if done and said.tool in REPEATED:
            yield said.enter, said.tool


def _is_right(db: Connection, row: tuple[Any, ...]) -> bool:
    """Whether a row has the key its call gave, unless erased, and what the call created."""
    tool, session, key, *_ = row
    call, work = _call(db, row), _made(db, row)
    given = _key_in(call)
    scope, kind = (call.session, "thought") if tool == "thought_record" else ("", "task")
    return (
        session == scope
        and (given is None or key == keys.hash_of(given))
        and work is not None
        and (work.kind, work.call) == (kind, call.call)
    )


def _call(db: Connection, row: tuple[Any, ...]) -> Row:
    return next(ledger.rows(db, [row[3]]))


def _made(db: Connection, row: tuple[Any, ...]) -> Row | None:
    """The record of what a call created."""
    tool, _, _, _, made = row
    if tool == "thought_record":
        return next(ledger.rows(db, [made]), None)
    return ledger.creation_of(db, task_id(made))


def _key_in(call: Row) -> str | None:
    """The key in the arguments of a call; None if there is none, or it is erased."""
    said = read_one(call)
    arguments = said.arguments if isinstance(said, Enter) else None
    return arguments.get("key") if arguments else None
