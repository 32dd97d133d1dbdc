"""Evidence bundles: which records and payloads each kind holds, and how it is written.

The format, `colibri-bundle/1`, is specified in docs/formats.md. A bundle is written record by
record, so that a large log needs little memory.
"""

import json
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from apsw import Connection

from colibri.core.errors import Refused
from colibri.store import ledger, proofs, sessions
from colibri.store.sessions import Session

FORMAT = "colibri-bundle/1"

# A damaged payload names nothing; that it is damaged is for the verifier to tell.
_BODY = "iif(json_valid(CAST(p.body AS TEXT)), CAST(p.body AS TEXT), 'null')"


@dataclass(slots=True)
class Contents:
    """What goes into a bundle: the seqs of its headers, and those whose payloads are disclosed."""

    scope: str | None
    headers: Sequence[int]
    payloads: set[int] | None  # None: all of them
    proofs: list[dict[str, Any]] = field(default_factory=list)


def whole_log(db: Connection) -> Contents:
    """Every record, every payload; ERR_NO_RECORDS if there are none."""
    newest = ledger.head(db)
    if newest is None:
        raise Refused("ERR_NO_RECORDS", "the log holds no records yet: there is nothing to export")
    return Contents(None, range(1, newest.seq + 1), None)


def of_session(db: Connection, id: str) -> Contents:
    """A session from opening to seal, its tasks from their creation, and the calls of all these."""
    session = sessions.get(db, id)
    newest = ledger.head(db)
    assert newest is not None  # the session's own records
    first = session.open_seq
    last = newest.seq if session.seal_seq is None else session.seal_seq + 1
    own = set(_of_session(db, id, first, last))
    tasks = _tasks_named(db, id)
    disclosed = own | set(_of_tasks(db, tasks, last))
    disclosed |= set(_exits(db, disclosed, tasks, first, last))
    disclosed |= set(_enters(db, disclosed))
    headers = set(range(first, last + 1)) | disclosed
    erasures = set(_erasures(db, headers))
    return Contents(id, sorted(headers | erasures), disclosed | erasures)


def of_thoughts(db: Connection, ids: Sequence[str]) -> Contents:
    """Single thoughts of one sealed session, each with its proof; ERR_NOT_FOUND and the like."""
    seqs = sorted({int(id.removeprefix("R-")) for id in ids})
    session = proofs.sealed(db, _session_of(db, seqs))
    assert session.seal_seq is not None
    proven = [_proof(db, session, seq) for seq in seqs]
    wanted = {*seqs, session.seal_seq}
    wanted |= set(_erasures(db, set(seqs)))
    return Contents(session.session_id, sorted(wanted), wanted, proven)


def write(db: Connection, contents: Contents) -> Iterator[bytes]:
    """The bundle's text, piece by piece; to be taken within one read transaction."""
    scope = None if contents.scope is None else {"session": contents.scope}
    yield b'{"format":"%b","log":"%b",' % (FORMAT.encode(), ledger.log_id(db).encode())
    yield b'"scope":%b,"headers":[' % json.dumps(scope).encode()
    last, seals = 0, []
    for n, (seq, header, kind) in enumerate(_headers(db, contents)):
        yield b"%b\n%b" % (b"," if n else b"", _quoted(header))
        last = seq
        if kind == "session.seal" and (contents.payloads is None or seq in contents.payloads):
            seals.append(seq)
    yield b'\n],"payloads":{'
    for n, (seq, nonce, body) in enumerate(_payloads(db, contents)):
        comma = b"," if n else b""
        yield b'%b\n"%d":{"nonce":%b,"body":%b}' % (comma, seq, _quoted(nonce), _quoted(body))
    head = {"seq": last, "leaf": (ledger.leaf_at(db, last) or b"").hex()}
    tail = {"seals": seals, "head": head, "proofs": contents.proofs}
    yield b"\n}," + json.dumps(tail, separators=(",", ":")).encode()[1:] + b"\n"


def _quoted(data: bytes) -> bytes:
    return b'"' + b64encode(data) + b'"'


# Which records.


def _of_session(db: Connection, id: str, first: int, last: int) -> Iterator[int]:
    """What names a session within its stretch; a thought or seal outside it would be a forgery, and
    a verifier should see it."""
    for (seq,) in db.execute(
        "SELECT seq FROM ledger WHERE session = ?"
        " AND (seq BETWEEN ? AND ? OR kind NOT IN ('call.enter', 'call.exit'))",
        (id, first, last),
    ):
        yield seq


def _tasks_named(db: Connection, session: str) -> set[str]:
    """The tasks of a session's opening and thoughts, and all that these have ever depended on."""
    found = {
        task
        for (task,) in db.execute(
            "SELECT DISTINCT task FROM ledger WHERE session = ? AND task IS NOT NULL"
            " AND kind IN ('session.open', 'thought')",
            (session,),
        )
    }
    queue = sorted(found)
    for task in queue:
        for (other,) in db.execute(
            "SELECT DISTINCT other.value FROM ledger AS l JOIN payloads AS p ON p.seq = l.seq,"
            f" json_each({_BODY}, '$.set.depends_on') AS change,"
            " json_each(change.value) AS other"
            " WHERE l.task = ? AND l.kind = 'task' AND change.type = 'array'",
            (task,),
        ):
            if other not in found:
                found.add(other)
                queue.append(other)
    return found


def _of_tasks(db: Connection, tasks: Iterable[str], last: int) -> Iterator[int]:
    for task in tasks:
        for (seq,) in db.execute(
            "SELECT seq FROM ledger WHERE task = ? AND kind IN ('task', 'task.text') AND seq <= ?",
            (task, last),
        ):
            yield seq


def _exits(
    db: Connection, disclosed: set[int], tasks: Iterable[str], first: int, last: int
) -> Iterator[int]:
    """The exits of the calls that wrote the disclosed records.

    One is in the stretch, or names the task that its call changed: there is no index of calls.
    """
    calls = {call for _, call in _calls(db, disclosed)}
    for seq, call in db.execute(
        "SELECT seq, call FROM ledger WHERE seq BETWEEN ? AND ? AND kind = 'call.exit'",
        (first, last),
    ):
        if call in calls:
            yield seq
    for task in tasks:
        for seq, call in db.execute(
            "SELECT seq, call FROM ledger WHERE task = ? AND kind = 'call.exit' AND seq < ?",
            (task, first),
        ):
            if call in calls:
                yield seq


def _calls(db: Connection, seqs: Iterable[int]) -> Iterator[tuple[int, str]]:
    for seq in seqs:
        call: Any = db.execute("SELECT call FROM ledger WHERE seq = ?", (seq,)).get
        yield seq, call


def _enters(db: Connection, disclosed: Iterable[int]) -> Iterator[int]:
    """The enters that the disclosed exits close."""
    for seq in disclosed:
        enter: Any = db.execute(
            f"SELECT {_BODY} ->> '$.enter' FROM ledger AS l JOIN payloads AS p"
            " ON p.seq = l.seq WHERE l.seq = ? AND l.kind = 'call.exit'",
            (seq,),
        ).get
        if isinstance(enter, int):
            yield enter


def _erasures(db: Connection, headers: set[int]) -> Iterator[int]:
    for seq, erased in db.execute(
        "SELECT l.seq, other.value FROM ledger AS l JOIN payloads AS p ON p.seq = l.seq,"
        f" json_each({_BODY}, '$.seqs') AS other WHERE l.kind = 'erasure'"
    ):
        if erased in headers:
            yield seq


def _session_of(db: Connection, seqs: Sequence[int]) -> str:
    found: set[str | None] = set()
    for seq in seqs:
        found.add(db.execute("SELECT session FROM thoughts WHERE seq = ?", (seq,)).get)
    if None in found or len(found) != 1:
        raise Refused(
            "ERR_NOT_FOUND",
            "these are not thoughts of one session: export the thoughts of one session at a time",
        )
    (session,) = found
    assert session is not None
    return session


def _proof(db: Connection, session: Session, seq: int) -> dict[str, Any]:
    proof = proofs.prove(db, session, f"R-{seq}")
    return {"seq": seq, **{name: proof[name] for name in ("index", "size", "path")}}


# Their bytes.


def _headers(db: Connection, contents: Contents) -> Iterator[tuple[int, bytes, str]]:
    if isinstance(contents.headers, range):
        yield from db.execute("SELECT seq, header, kind FROM ledger ORDER BY seq")
        return
    for seq in contents.headers:
        yield from db.execute("SELECT seq, header, kind FROM ledger WHERE seq = ?", (seq,))


def _payloads(db: Connection, contents: Contents) -> Iterator[tuple[int, bytes, bytes]]:
    if contents.payloads is None:
        yield from db.execute("SELECT seq, nonce, body FROM payloads ORDER BY seq")
        return
    for seq in sorted(contents.payloads):
        yield from db.execute("SELECT seq, nonce, body FROM payloads WHERE seq = ?", (seq,))
