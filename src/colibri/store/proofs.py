"""Seals: the Merkle tree over a session's thoughts. Owns `merkle_nodes`."""

from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from colibri.core import merkle
from colibri.core.canonical import MAX_INTEGER
from colibri.core.errors import Refused
from colibri.store import claims, sessions, thought_rows, trail
from colibri.store.append import Append
from colibri.store.connection import Connection
from colibri.store.sessions import Session

_PART = 100  # sessions whose trees are asked for at once

if TYPE_CHECKING:  # it loads msgspec
    from colibri.core.check.sessions import Sessions


def seal(db: Connection, append: Append, session: Session, *, now: str) -> Session:
    """Close an open session for good; ERR_NO_RECORDS."""
    id = session.session_id
    found = list(trail.leaves(db, id))
    if not found:
        raise Refused(
            "ERR_NO_RECORDS",
            f"the session {id} has no thoughts to seal: record one with thought_record first",
            session_id=id,
        )
    tree = merkle.levels([leaf for _, leaf in found])
    root = tree[-1][0]
    payload: dict[str, object] = {
        "root": root.hex(),
        "count": len(found),
        "first_seq": found[0][0],
        "last_seq": found[-1][0],
    }
    entry = append("session.seal", payload, session=id)
    db.executemany(
        "INSERT INTO merkle_nodes (session, level, idx, hash) VALUES (?, ?, ?, ?)",
        (
            (id, level, index, hash)
            for level, row in enumerate(tree)
            for index, hash in enumerate(row)
        ),
    )
    db.execute(
        "UPDATE sessions SET finalized_at = ?, seal_seq = ?, root = ? WHERE session_id = ?",
        (now, entry.seq, root, session.session_id),
    )
    claims.end(db, id)
    return sessions.get(db, id)


def sealed(db: Connection, id: str) -> Session:
    """A session that is sealed; ERR_SESSION_NOT_FOUND, ERR_NOT_FINALIZED."""
    session = sessions.get(db, id)
    if session.root is None:
        raise Refused(
            "ERR_NOT_FINALIZED",
            f"the session {id} is still open and has no root: call merkle_finalize to seal it",
            session_id=id,
            record_count=session.record_count,
        )
    if session.record_count > MAX_INTEGER:  # nobody but a forger has counted so far
        raise ValueError(f"the session {id} has a number beyond 2^53-1")
    return session


def ask(db: Connection, id: str, thought: str | None) -> None:
    """Look ahead to a seal and, if one is given, to the place of a thought."""
    place = () if thought is None else (partial(_index, db, id, thought),)
    db.look_ahead((partial(sessions.get, db, id), *place))


def prove(db: Connection, session: Session, thought: str) -> dict[str, Any]:
    """The inclusion proof of a thought of a sealed session; ERR_NOT_FOUND."""
    index = _index(db, session.session_id, thought)
    node = partial(_node, db, session.session_id)
    path = [(0, index), *merkle.inclusion_path(index, session.record_count)]
    db.look_ahead(partial(node, *place) for place in path)
    leaf, *hashes = (node(*place).hex() for place in path)
    return {
        "thought_id": thought,
        "index": index,
        "size": session.record_count,
        "leaf": leaf,
        "path": hashes,
    }


def _index(db: Connection, session: str, thought: str) -> int:
    seq = int(thought.removeprefix("R-"))
    index: int | None = db.execute(
        "SELECT idx FROM thoughts WHERE seq = ? AND session = ?", (seq, session)
    ).get
    if index is None or trail.thought_id(seq) != thought:
        raise Refused(
            "ERR_NOT_FOUND",
            f"there is no thought {thought} in the session {session}:"
            " thought_record_list shows its thoughts",
            thought_id=thought,
        )
    return index


def _node(db: Connection, session: str, level: int, index: int) -> bytes:
    hash: bytes = db.execute(
        "SELECT hash FROM merkle_nodes WHERE session = ? AND level = ? AND idx = ?",
        (session, level, index),
    ).get
    return hash


def altered(
    db: Connection, seen: "Sessions", *, thoughts_after: int | None = None
) -> Iterator[str]:
    """Each row or tree of a session that its records do not explain, and each that is missing.

    The rows of thoughts up to a seq have been compared already, if one is given.
    """
    left, every = set(seen.known), sessions.every(db)
    while some := [*islice(every, _PART)]:
        db.look_ahead(partial(_stored, db, session.session_id) for session in some)
        for session in some:
            left.discard(session.session_id)
            yield from _altered_session(db, seen, session)
    for id in sorted(left):
        yield f"{id}: its row is missing"
    yield from thought_rows.altered(db, after=thoughts_after)


def altered_session(db: Connection, seen: "Sessions", session: Session) -> Iterator[str]:
    """The same for one session."""
    yield from _altered_session(db, seen, session)
    yield from thought_rows.altered_rows(db, session=session.session_id)


def ask_altered(db: Connection, id: str) -> None:
    """Look ahead to what `altered_session` reads."""
    db.look_ahead((partial(_stored, db, id), partial(thought_rows.ask_session, db, id)))


def _altered_session(db: Connection, seen: "Sessions", session: Session) -> Iterator[str]:
    if (problem := seen.compare(session._asdict())) is not None:
        yield problem
    elif not _tree_fits(db, session):
        yield f"{session.session_id}: its stored tree is not that of its thoughts"


def _tree_fits(db: Connection, session: Session) -> bool:
    """Whether the stored nodes are a tree with the session's root; an open one has none.

    Leaves that are not those of its thoughts could not have that root.
    """
    stored = _stored(db, session.session_id)
    if session.root is None:
        return not stored
    tree = merkle.levels([hash or b"" for _, _, hash in stored[: session.record_count]])
    expected = [(n, i, hash) for n, row in enumerate(tree) for i, hash in enumerate(row)]
    return stored == expected and tree[-1] == [session.root]


def _stored(db: Connection, session: str) -> list[Any]:
    return db.execute(
        "SELECT level, idx, hash FROM merkle_nodes WHERE session = ? ORDER BY level, idx",
        (session,),
    ).fetchall()
