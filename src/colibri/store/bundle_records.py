"""Which records belong together: the queries by which bundle.py chooses what a bundle holds."""

from collections.abc import Container, Iterable, Iterator
from typing import Any, TypeVar

from colibri.core.errors import Refused
from colibri.core.ledger import load
from colibri.store.connection import Connection

T = TypeVar("T")


def _said(body: bytes | None, *path: str) -> Any:
    """What a payload says there; of a damaged one, which a verifier will tell of, None."""
    try:
        value = load(body or b"null")
    except ValueError:
        return None
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _each(items: Any, kind: type[T]) -> Iterator[T]:
    """The items of a list that are of a type."""
    return (one for one in items if isinstance(one, kind)) if isinstance(items, list) else iter(())


def seqs(db: Connection, condition: str, *values: object) -> set[int]:
    """Of the records that a condition, one of the constants here, finds."""
    return {seq for (seq,) in db.execute(f"SELECT seq FROM ledger WHERE {condition}", values)}


def of_session(db: Connection, id: str, first: int, last: int) -> set[int]:
    """What names a session within its stretch; a thought or seal outside it would be a forgery, and
    a verifier should see it."""
    condition = "session = ? AND (seq BETWEEN ? AND ? OR kind NOT IN ('call.enter', 'call.exit'))"
    return seqs(db, condition, id, first, last)


def with_dependencies(db: Connection, tasks: Iterable[str], last: int) -> set[str]:
    """These tasks, and all that they have ever depended on, up to a record."""
    found, queue = set(tasks), sorted(tasks)
    for task in queue:
        sides = _values(db, task, "depends_on", last)
        new = {other for side in sides for other in _each(side, str)} - found
        found |= new
        queue += sorted(new)
    return found


def holders(db: Connection, tasks: Iterable[str], last: int) -> Iterator[str]:
    """The sessions that have ever held one of these tasks, up to a record."""
    for task in tasks:
        yield from _each([*_values(db, task, "holder", last)], str)


def _values(db: Connection, task: str, field: str, last: int) -> Iterator[Any]:
    """What the records of a task up to one say that a field was and became."""
    query = "SELECT body FROM ledger WHERE task = ? AND kind = 'task' AND seq <= ?"
    for (body,) in db.execute(query, (task, last)):
        yield from _each(_said(body, "set", field), object)


def workers(db: Connection, tasks: Iterable[str]) -> Iterator[str]:
    """The sessions that have changed one of these tasks."""
    query = "SELECT DISTINCT session FROM ledger WHERE task = ? AND kind IN ('task', 'task.text')"
    for task in tasks:
        yield from (session for (session,) in db.execute(query, (task,)) if session is not None)


def of_holders(db: Connection, sessions: Iterable[str], last: int) -> set[int]:
    """Their openings, resumptions and seals; of more than one, which would be a forgery, all."""
    condition = (
        "session = ? AND seq <= ? AND kind IN ('session.open', 'session.resume', 'session.seal')"
    )
    return set().union(*(seqs(db, condition, one, last) for one in sessions))


def of_tasks(db: Connection, tasks: Iterable[str], last: int) -> set[int]:
    condition = "task = ? AND kind IN ('task', 'task.text') AND seq <= ?"
    return set().union(*(seqs(db, condition, task, last) for task in tasks))


def calls_about(db: Connection, tasks: Iterable[str], first: int, last: int) -> set[int]:
    """How the calls ended that were about these tasks, those that were refused among them.

    Calls that name a session belong to its bundle.
    """
    condition = "task = ? AND kind = 'call.exit' AND session IS NULL AND seq BETWEEN ? AND ?"
    return set().union(*(seqs(db, condition, task, first, last) for task in tasks))


def thoughts_of_task(db: Connection, task: str) -> dict[int, str]:
    """Seq and session of each."""
    query = "SELECT seq, session FROM ledger WHERE task = ? AND kind = 'thought'"
    return dict(db.execute(query, (task,)).fetchall())


def calls(db: Connection, seqs: Iterable[int]) -> set[str]:
    """The calls that wrote these records."""
    return {db.execute("SELECT call FROM ledger WHERE seq = ?", (seq,)).get for seq in seqs}


def pairs_naming(
    db: Connection, calls: set[str], sessions: Iterable[str], tasks: Iterable[str]
) -> Iterator[int]:
    """The exits of these calls, and the enters that they close.

    There is no index of calls; but an exit names what its call has changed.
    """
    for column, names in (("session", sessions), ("task", tasks)):
        query = f"SELECT seq, call, body FROM ledger WHERE kind = 'call.exit' AND {column} = ?"
        for name in names:
            for seq, call, body in db.execute(query, (name,)):
                if call in calls:
                    yield from _each([seq, _said(body, "enter")], int)


def pairs_within(db: Connection, calls: set[str], first: int, last: int) -> Iterator[int]:
    """The enters and exits of these calls within a stretch, whatever they name."""
    kinds = "kind IN ('call.enter', 'call.exit')"
    query = f"SELECT seq, call FROM ledger WHERE seq BETWEEN ? AND ? AND {kinds}"
    for seq, call in db.execute(query, (first, last)):
        if call in calls:
            yield seq


def erasures(db: Connection, seqs: Container[int], stretch: Container[int] = ()) -> Iterator[int]:
    """Those that name one of these records."""
    for seq, body in db.execute("SELECT seq, body FROM ledger WHERE kind = 'erasure'"):
        if any(erased in seqs or erased in stretch for erased in _each(_said(body, "seqs"), int)):
            yield seq


def session_of(db: Connection, seqs: Iterable[int]) -> str:
    query = "SELECT session FROM thoughts WHERE seq = ?"
    found: set[str | None] = {db.execute(query, (seq,)).get for seq in seqs}
    session = found.pop()
    if session is None or found:
        told = "these are not thoughts of one session: export the thoughts of one session at a time"
        raise Refused("ERR_NOT_FOUND", told)
    return session
