"""Finds rows of keys that do not match the records of the calls that used the keys.

Reads through the engine: somebody may have stored bytes that are not text.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from colibri.core.check.calls import REPEATED
from colibri.core.check.kinds import Enter, Exit, read_one
from colibri.store import keys, ledger
from colibri.store.connection import Connection
from colibri.store.tasks import task_id

_COLUMNS = ("tool", "session", "key", "enter", "made")


def altered(db: Connection, firsts: Mapping[int, str], last: int) -> Iterator[str]:
    """Each row that no call explains, and each that is missing.

    `firsts` has the tool of each call up to `last` that may have left a row, by its enter record.
    """
    left = {**firsts, **dict(_later(db, last))}
    rows = db.engine.rows(db, _COLUMNS, "FROM call_keys", texts=("tool", "session", "key"))
    for tool, session, key, enter, made in rows:
        if left.pop(enter, None) != tool or not _is_right(db, (tool, session, key, enter, made)):
            yield f"the row in call_keys for record {enter} is not as its call says"
    for enter in left:
        if _key_in(db, enter) is not None:
            yield f"call_keys has no row for the key in record {enter}"


def _later(db: Connection, last: int) -> Iterator[tuple[int, str]]:
    """Such calls that ended after a record; their records are not checked."""
    rows = db.execute("SELECT seq FROM ledger WHERE seq > ? AND kind = 'call.exit'", (last,))
    for row in ledger.rows(db, [seq for (seq,) in rows.fetchall()]):
        said = read_one(row)
        done = isinstance(said, Exit) and said.outcome == "ok" and said.repeats is None
        if done and said.tool in REPEATED:
            yield said.enter, said.tool


def _is_right(db: Connection, row: tuple[Any, ...]) -> bool:
    """Whether a row has the key its call gave, unless erased, and what the call created."""
    tool, session, key, enter, made = row
    call, given = next(ledger.rows(db, [enter])), _key_in(db, enter)
    if tool == "thought_record":
        scope, place, kind = call.session, made, "thought"
    else:
        scope, place, kind = "", ledger.creation_of(db, task_id(made)), "task"
    work = next(ledger.rows(db, [place]), None)
    return (
        session == scope
        and (given is None or key == keys.hash_of(given))
        and work is not None
        and (work.kind, work.call) == (kind, call.call)
    )


def _key_in(db: Connection, enter: int) -> str | None:
    """The key in the arguments of a call; None if there is none, or it is erased."""
    said = [read_one(row) for row in ledger.rows(db, [enter])]
    given = [one.arguments for one in said if isinstance(one, Enter) and one.arguments]
    return next((arguments.get("key") for arguments in given), None)
