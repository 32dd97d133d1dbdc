"""Evidence bundles: which records and payloads each kind holds, and how it is written.

The format, `colibri-bundle/2`, is specified in docs/formats.md. A bundle is written line by line, a
record a line, so that a large log needs little memory.
"""

import json
from base64 import b64encode
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from colibri.core import merkle
from colibri.core.checkpoint import Checkpoint
from colibri.core.errors import Refused, ResourceError
from colibri.core.rows import Row
from colibri.store import bundle_records as select
from colibri.store import gates, ledger, log_tree, proofs, sessions
from colibri.store.connection import Connection

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
    checkpoint: dict[str, Any] | None = None  # that covers the last record, and the proof of it

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
    tasks = select.with_dependencies(db, sessions.tasks_named(db, id), last)
    holders = set(select.holders(db, tasks, last))
    disclosed = select.of_session(db, id, first, last) | select.of_tasks(db, tasks, last)
    disclosed |= select.of_holders(db, holders, last) | select.calls_about(db, tasks, first, last)
    calls = select.calls(db, disclosed)
    disclosed |= set(select.pairs_within(db, calls, first, last))
    disclosed |= set(select.pairs_naming(db, calls, {id, *holders}, tasks))
    disclosed |= set(select.erasures(db, disclosed, range(first, last + 1)))
    end = max(*disclosed, last)
    stretch = range(first, (end if end - last <= MAX_TAIL else last) + 1)
    return Contents({"session": id}, _spans(disclosed, stretch), disclosed)


def of_task(db: Connection, id: str) -> Contents:
    """A task and those it depends on, the thoughts about it, and the calls of all these.

    Each session that worked on them or held them comes with its opening and its seal, and each
    thought with its proof where there is a seal. ERR_NOT_FOUND.
    """
    if not select.seqs(db, "task = ? AND kind = 'task'", id):
        raise Refused("ERR_NOT_FOUND", f"there is no task {id}", task_id=id)
    last = ledger.last_seq(db)
    tasks, thoughts = select.with_dependencies(db, [id], last), select.thoughts_of_task(db, id)
    wanted = {*thoughts, *select.of_tasks(db, tasks, last), *select.calls_about(db, {id}, 1, last)}
    involved = {*thoughts.values(), *select.holders(db, tasks, last), *select.workers(db, tasks)}
    wanted |= select.of_holders(db, involved, last) | gates.evidence_of(db, tasks)
    proven: list[dict[str, Any]] = []
    for session in set(thoughts.values()):
        seals = select.seqs(db, "session = ? AND kind = 'session.seal'", session)
        proven += _proofs(db, session, min(seals, default=None), thoughts)
    wanted |= set(select.pairs_naming(db, select.calls(db, wanted), involved, tasks))
    wanted |= set(select.erasures(db, wanted))
    proven.sort(key=lambda proof: proof["seq"])
    return Contents({"task": id}, _spans(wanted), wanted, proven)


def of_thoughts(db: Connection, ids: Sequence[str]) -> Contents:
    """Single thoughts of one sealed session, each with its proof; ERR_NOT_FOUND and the like."""
    seqs = {int(id.removeprefix("R-")) for id in ids}
    session = proofs.sealed(db, select.session_of(db, seqs))
    assert session.seal_seq is not None
    wanted = {*seqs, session.seal_seq}
    wanted |= set(select.erasures(db, seqs))
    proven = list(_proofs(db, session.session_id, session.seal_seq, seqs))
    return Contents({"thoughts": session.session_id}, _spans(wanted), wanted, proven)


def cover(db: Connection, contents: Contents, checkpoint: Checkpoint) -> None:
    """Add a checkpoint of the log, with the proof that it covers the last record, if it does.

    ValueError if the log does not have it.
    """
    newest, last = ledger.last_seq(db), contents.last
    if checkpoint.size > newest:
        raise ValueError(f"the log ends at record {newest}, the checkpoint is of {checkpoint.size}")
    if checkpoint.size < last:
        return
    path = log_tree.inclusion(db, last, checkpoint.size)
    leaf, size, root = ledger.leaf_at(db, last) or b"", checkpoint.size, checkpoint.root
    if not merkle.check_inclusion(leaf, index=last - 1, size=size, path=path, root=root):
        raise ValueError(f"record {last} is not in the checkpoint of {size} records")
    hashes = [hash.hex() for hash in path]
    contents.checkpoint = {"path": hashes, "root": root.hex(), "size": size}


def roots(db: Connection, contents: Contents) -> dict[str, str]:
    """The sessions whose seals it discloses, and their roots as SIZE:HEX, oldest first."""
    return {
        one.session_id: one.sized_root
        for one in sessions.every(db)
        if one.sized_root and one.seal_seq is not None and contents.discloses(one.seal_seq)
    }


def write(db: Connection, contents: Contents) -> Iterator[bytes]:
    """The bundle, line by line; to be taken within one read transaction.

    ResourceError if a record is not fit for a verifier.
    """
    log = ledger.log_id(db)
    yield _line({"format": FORMAT, "log": log, "scope": contents.scope})
    head: dict[str, Any] = {}
    for row in ledger.rows(db, chain.from_iterable(contents.spans)):
        yield _record(row, log, disclosed=contents.discloses(row.seq))
        head = {"leaf": row.leaf.hex(), "seq": row.seq}
    for proof in contents.proofs:
        yield _line(proof)
    covered = {} if contents.checkpoint is None else {"checkpoint": contents.checkpoint}
    yield _line({"head": head, **covered})


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


# Their order, and their proofs.


def _spans(seqs: Iterable[int], stretch: range = range(0)) -> list[range]:
    """The seqs of records, with a stretch of them, in order."""
    apart = sorted(seq for seq in seqs if seq not in stretch)
    spans = [range(seq, seq + 1) for seq in apart] + ([stretch] if stretch else [])
    return sorted(spans, key=lambda span: span.start)


def _proofs(
    db: Connection, session: str, seal: int | None, wanted: Container[int]
) -> Iterator[dict[str, Any]]:
    """Of each wanted thought that its session's seal covers.

    From the records and not from the stored tree: these are what is judged.
    """
    query = "SELECT seq, leaf FROM ledger WHERE session = ? AND kind = 'thought' AND seq < ?"
    rows: list[Any] = db.execute(f"{query} ORDER BY seq", (session, seal)).fetchall()
    node = merkle.node_in(merkle.levels([leaf for _, leaf in rows]))
    for index, (seq, _) in enumerate(rows):
        if seq in wanted:
            path = [hash.hex() for hash in merkle.prove_inclusion(node, index, len(rows))]
            yield {"seq": seq, "index": index, "size": len(rows), "path": path}
