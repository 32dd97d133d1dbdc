"""Evidence bundles: which records and payloads each kind holds, and how it is written.

The format, `colibri-bundle/2`, is specified in docs/formats.md. A bundle is written line by line, a
record a line, so that a large log needs little memory.
"""

import json
from base64 import b64encode
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, TypeVar

from colibri.core import merkle
from colibri.core.errors import Refused, ResourceError
from colibri.core.ledger import load
from colibri.core.rows import Row
from colibri.store import gates, ledger, proofs, sessions
from colibri.store.connection import Connection

T = TypeVar("T")

FORMAT = "colibri-bundle/2"
MAX_LINE = 16 * 1024 * 1024  # that a verifier reads
_NONCE_SIZE = 32
MAX_TAIL = 100_000  # headers that only link what comes after a session to it: 60 MB of them


@dataclass(slots=True)
class Contents:
    """What goes into a bundle: which records, and those whose payloads are disclosed."""

    scope: dict[str, str] | None  # of what: {"session": ID}, task, thoughts, or the whole log
    spans: list[range]  # of the records' seqs, ascending
    payloads: set[int] | None  # None: all of them
    proofs: list[dict[str, Any]] = field(default_factory=list)

    @property
    def count(self) -> int:
        """How many records."""
        return sum(map(len, self.spans))

    @property
    def last(self) -> int:
        """The seq of the last record."""
        return self.spans[-1][-1]

    def discloses(self, seq: int) -> bool:
        """Whether a record's payload belongs into it."""
        return self.payloads is None or seq in self.payloads


def whole_log(db: Connection) -> Contents:
    """Every record, every payload; ERR_NO_RECORDS if there are none."""
    last = ledger.last_seq(db)
    if not last:
        raise Refused("ERR_NO_RECORDS", "the log holds no records yet: there is nothing to export")
    return Contents(None, [range(1, last + 1)], None)


def of_session(db: Connection, id: str) -> Contents:
    """A session from opening to seal, its tasks from their creation, and the calls of all these."""
    session = sessions.get(db, id)
    first = session.open_seq
    last = ledger.last_seq(db) if session.seal_seq is None else session.seal_seq + 1
    tasks = _with_dependencies(db, sessions.tasks_named(db, id), last)
    holders = set(_holders(db, tasks, last))
    disclosed = _of_session(db, id, first, last) | _of_tasks(db, tasks, last)
    disclosed |= _of_holders(db, holders, last) | _calls_about(db, tasks, first, last)
    calls = _calls(db, disclosed)
    disclosed |= set(_pairs_within(db, calls, first, last))
    disclosed |= set(_pairs_naming(db, calls, {id, *holders}, tasks))
    disclosed |= set(_erasures(db, disclosed, range(first, last + 1)))
    end = max(*disclosed, last)
    stretch = range(first, (end if end - last <= MAX_TAIL else last) + 1)
    return Contents({"session": id}, _spans(disclosed, stretch), disclosed)


def of_task(db: Connection, id: str) -> Contents:
    """A task and those it depends on, the thoughts about it, and the calls of all these.

    Each session that worked on them or held them comes with its opening and its seal, and each
    thought with its proof where there is a seal. ERR_NOT_FOUND.
    """
    if not _seqs(db, "task = ? AND kind = 'task'", id):
        raise Refused("ERR_NOT_FOUND", f"there is no task {id}", task_id=id)
    last = ledger.last_seq(db)
    tasks, thoughts = _with_dependencies(db, [id], last), _thoughts_of_task(db, id)
    wanted = {*thoughts, *_of_tasks(db, tasks, last), *_calls_about(db, {id}, 1, last)}
    involved = {*thoughts.values(), *_holders(db, tasks, last), *_workers(db, tasks)}
    wanted |= _of_holders(db, involved, last) | gates.evidence_of(db, tasks)
    proven: list[dict[str, Any]] = []
    for session in set(thoughts.values()):
        seals = _seqs(db, "session = ? AND kind = 'session.seal'", session)
        proven += _proofs(db, session, min(seals, default=None), thoughts)
    wanted |= set(_pairs_naming(db, _calls(db, wanted), involved, tasks))
    wanted |= set(_erasures(db, wanted))
    proven.sort(key=lambda proof: proof["seq"])
    return Contents({"task": id}, _spans(wanted), wanted, proven)


def of_thoughts(db: Connection, ids: Sequence[str]) -> Contents:
    """Single thoughts of one sealed session, each with its proof; ERR_NOT_FOUND and the like."""
    seqs = {int(id.removeprefix("R-")) for id in ids}
    session = proofs.sealed(db, _session_of(db, seqs))
    assert session.seal_seq is not None
    wanted = {*seqs, session.seal_seq}
    wanted |= set(_erasures(db, seqs))
    proven = list(_proofs(db, session.session_id, session.seal_seq, seqs))
    return Contents({"thoughts": session.session_id}, _spans(wanted), wanted, proven)


def roots(db: Connection, contents: Contents) -> dict[str, str]:
    """The sessions whose seals it discloses, and their roots as SIZE:HEX, oldest first."""
    return {
        one.session_id: one.sized_root
        for one in sessions.every(db)
        if one.sized_root and one.seal_seq is not None and contents.discloses(one.seal_seq)
    }


def write(db: Connection, contents: Contents) -> Iterator[bytes]:
    """The bundle, line by line; to be taken within one read transaction.

    ResourceError if a record is none that a verifier could be handed.
    """
    log = ledger.log_id(db)
    yield _line({"format": FORMAT, "log": log, "scope": contents.scope})
    head: dict[str, Any] = {}
    for row in ledger.rows(db, chain.from_iterable(contents.spans)):
        yield _record(row, log, disclosed=contents.discloses(row.seq))
        head = {"leaf": row.leaf.hex(), "seq": row.seq}
    for proof in contents.proofs:
        yield _line(proof)
    yield _line({"head": head})


def _record(row: Row, log: str, *, disclosed: bool) -> bytes:
    """A payload that cannot be one is left out: that it is missing is for a verifier to tell."""
    try:
        header = b64encode(row.header(log))
    except (TypeError, ValueError) as problem:
        raise _unfit(row.seq) from problem
    if not disclosed or not row.body or len(row.nonce or b"") != _NONCE_SIZE:
        return b'{"header":"%b"}\n' % header
    body, nonce = b64encode(row.body), b64encode(row.nonce or b"")
    line = b'{"body":"%b","header":"%b","nonce":"%b"}\n' % (body, header, nonce)
    if len(line) > MAX_LINE + 1:
        raise _unfit(row.seq)
    return line


def _unfit(seq: int) -> ResourceError:
    return ResourceError(f"no server writes records like {seq}", "colibri verify shows the details")


def _line(value: dict[str, Any]) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode() + b"\n"


# Which records.


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


def _spans(seqs: Iterable[int], stretch: range = range(0)) -> list[range]:
    """The seqs of records, with a stretch of them, in order."""
    apart = sorted(seq for seq in seqs if seq not in stretch)
    spans = [range(seq, seq + 1) for seq in apart] + ([stretch] if stretch else [])
    return sorted(spans, key=lambda span: span.start)


def _seqs(db: Connection, condition: str, *values: object) -> set[int]:
    """Of the records that a condition, one of the constants here, finds."""
    return {seq for (seq,) in db.execute(f"SELECT seq FROM ledger WHERE {condition}", values)}


def _of_session(db: Connection, id: str, first: int, last: int) -> set[int]:
    """What names a session within its stretch; a thought or seal outside it would be a forgery, and
    a verifier should see it."""
    condition = "session = ? AND (seq BETWEEN ? AND ? OR kind NOT IN ('call.enter', 'call.exit'))"
    return _seqs(db, condition, id, first, last)


def _with_dependencies(db: Connection, tasks: Iterable[str], last: int) -> set[str]:
    """These tasks, and all that they have ever depended on, up to a record."""
    found, queue = set(tasks), sorted(tasks)
    for task in queue:
        sides = _values(db, task, "depends_on", last)
        new = {other for side in sides for other in _each(side, str)} - found
        found |= new
        queue += sorted(new)
    return found


def _holders(db: Connection, tasks: Iterable[str], last: int) -> Iterator[str]:
    """The sessions that have ever held one of these tasks, up to a record."""
    for task in tasks:
        yield from _each([*_values(db, task, "holder", last)], str)


def _values(db: Connection, task: str, field: str, last: int) -> Iterator[Any]:
    """What the records of a task up to one say that a field was and became."""
    query = "SELECT body FROM ledger WHERE task = ? AND kind = 'task' AND seq <= ?"
    for (body,) in db.execute(query, (task, last)):
        yield from _each(_said(body, "set", field), object)


def _workers(db: Connection, tasks: Iterable[str]) -> Iterator[str]:
    """The sessions that have changed one of these tasks."""
    query = "SELECT DISTINCT session FROM ledger WHERE task = ? AND kind IN ('task', 'task.text')"
    for task in tasks:
        yield from (session for (session,) in db.execute(query, (task,)) if session is not None)


def _of_holders(db: Connection, sessions: Iterable[str], last: int) -> set[int]:
    """Their openings, resumptions and seals; of more than one, which would be a forgery, all."""
    condition = (
        "session = ? AND seq <= ? AND kind IN ('session.open', 'session.resume', 'session.seal')"
    )
    return set().union(*(_seqs(db, condition, one, last) for one in sessions))


def _of_tasks(db: Connection, tasks: Iterable[str], last: int) -> set[int]:
    condition = "task = ? AND kind IN ('task', 'task.text') AND seq <= ?"
    return set().union(*(_seqs(db, condition, task, last) for task in tasks))


def _calls_about(db: Connection, tasks: Iterable[str], first: int, last: int) -> set[int]:
    """How the calls ended that were about these tasks, those that were refused among them.

    Calls that name a session belong to its bundle.
    """
    condition = "task = ? AND kind = 'call.exit' AND session IS NULL AND seq BETWEEN ? AND ?"
    return set().union(*(_seqs(db, condition, task, first, last) for task in tasks))


def _thoughts_of_task(db: Connection, task: str) -> dict[int, str]:
    """Seq and session of each."""
    query = "SELECT seq, session FROM ledger WHERE task = ? AND kind = 'thought'"
    return dict(db.execute(query, (task,)).fetchall())


def _calls(db: Connection, seqs: Iterable[int]) -> set[str]:
    """The calls that wrote these records."""
    return {db.execute("SELECT call FROM ledger WHERE seq = ?", (seq,)).get for seq in seqs}


def _pairs_naming(
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


def _pairs_within(db: Connection, calls: set[str], first: int, last: int) -> Iterator[int]:
    """The enters and exits of these calls within a stretch, whatever they name."""
    kinds = "kind IN ('call.enter', 'call.exit')"
    query = f"SELECT seq, call FROM ledger WHERE seq BETWEEN ? AND ? AND {kinds}"
    for seq, call in db.execute(query, (first, last)):
        if call in calls:
            yield seq


def _erasures(db: Connection, seqs: Container[int], stretch: Container[int] = ()) -> Iterator[int]:
    """Those that name one of these records."""
    for seq, body in db.execute("SELECT seq, body FROM ledger WHERE kind = 'erasure'"):
        if any(erased in seqs or erased in stretch for erased in _each(_said(body, "seqs"), int)):
            yield seq


def _session_of(db: Connection, seqs: Iterable[int]) -> str:
    query = "SELECT session FROM thoughts WHERE seq = ?"
    found: set[str | None] = {db.execute(query, (seq,)).get for seq in seqs}
    session = found.pop()
    if session is None or found:
        told = "these are not thoughts of one session: export the thoughts of one session at a time"
        raise Refused("ERR_NOT_FOUND", told)
    return session


# Their proofs.


def _proofs(
    db: Connection, session: str, seal: int | None, wanted: Container[int]
) -> Iterator[dict[str, Any]]:
    """Of each wanted thought that its session's seal covers.

    From the records and not from the tree that is stored beside them: these are what is judged.
    """
    query = "SELECT seq, leaf FROM ledger WHERE session = ? AND kind = 'thought' AND seq < ?"
    rows: list[Any] = db.execute(f"{query} ORDER BY seq", (session, seal)).fetchall()
    tree = merkle.levels([leaf for _, leaf in rows])
    for index, (seq, _) in enumerate(rows):
        if seq in wanted:
            path = [hash.hex() for hash in merkle.prove_inclusion(tree, index)]
            yield {"seq": seq, "index": index, "size": len(rows), "path": path}
