"""Session records, replayed: the chain of thoughts within each session, and its seal.

    bad session record  opened twice, or not made like one
    bad thought         in no open session, out of its order, or not naming the one before it
    thought after seal  a sealed session takes nothing more
    bad seal            root, count or range are not those of the session's thoughts; a second seal
    altered session     a row or a tree is not what the records say

A thought whose payload cannot be read keeps its place: its leaf is the header's. A session of which
another record cannot be read is not judged any further. Memory grows with the number of sessions:
of a tree only the peaks and a few leaves are kept.
"""

from collections.abc import Mapping
from typing import Any, Literal

from colibri.core import merkle
from colibri.core import payload as form
from colibri.core.ledger import TYPES
from colibri.core.record import Record

NO_LEAF = bytes(32)
ERASED = "[erased]"
PART = 256  # leaves; a power of two

What = Literal[
    "bad session record", "bad thought", "thought after seal", "bad seal", "altered session"
]
Finding = tuple[What, str]


class Peaks:
    """The tree of a growing list of leaves: the roots of its complete parts, and the newest leaves.

    Leaves are hashed by the hundred, because that takes half as long as one by one.
    """

    __slots__ = ("count", "hashes", "leaves")

    def __init__(self) -> None:
        self.count = 0
        self.hashes: list[bytes] = []
        self.leaves: list[bytes] = []

    def push(self, leaf: bytes) -> None:
        """One more leaf."""
        self.count += 1
        self.leaves.append(leaf)
        if len(self.leaves) == PART:
            self._fold(self.count // PART - 1)

    def _fold(self, parts: int) -> None:
        """The newest leaves are one part more: parts of equal size become one."""
        found = merkle.root(self.leaves)
        self.leaves.clear()
        while parts & 1:
            found = merkle.node_hash(self.hashes.pop(), found)
            parts >>= 1
        self.hashes.append(found)

    def root(self) -> bytes:
        """The root of the tree so far; there is at least one leaf."""
        roots = [*self.hashes, *([merkle.root(self.leaves)] if self.leaves else [])]
        found = roots.pop()
        while roots:
            found = merkle.node_hash(roots.pop(), found)
        return found


class Replayed:
    """A session as its records leave it."""

    __slots__ = ("_opened", "first_seq", "last_leaf", "last_seq", "peaks", "root", "sealed")

    def __init__(self, record: Record, intent: str) -> None:
        self.peaks = Peaks()
        self.first_seq: int | None = None
        self.last_seq: int | None = None
        self.last_leaf = NO_LEAF
        self.root: bytes | None = None
        self.sealed: tuple[str | None, int | None] = (None, None)  # when, and at which seq
        self._opened = {
            "session_id": record.session,
            "intent": intent,
            "task_id": record.task,
            "started_at": record.at,
            "open_seq": record.seq,
        }

    def push(self, seq: int, leaf: bytes) -> None:
        """One more thought."""
        self.peaks.push(leaf)
        self.first_seq = self.first_seq or seq
        self.last_seq = seq
        self.last_leaf = leaf

    @property
    def values(self) -> dict[str, Any]:
        """What its row must hold, by column."""
        finalized_at, seal_seq = self.sealed
        return {
            **self._opened,
            "record_count": self.peaks.count,
            "last_leaf": self.last_leaf,
            "finalized_at": finalized_at,
            "seal_seq": seal_seq,
            "root": self.root,
        }


class Trail:
    """Fed the records of KINDS, in the order of the log."""

    def __init__(self, *, only: str | None = None, blind: bool = False) -> None:
        self.sessions: dict[str, Replayed] = {}
        self.blind = blind
        self.lost: set[str | None] = set()  # the sessions that are not judged any further
        self.unreadable: set[int] = set()  # the thoughts whose payloads are not what they were
        # What the rows of `thoughts` must hold, if somebody wants to know; of an erased one all but
        # its type.
        self.rows: list[tuple[Any, ...]] | None = None
        self._only = only

    def feed(self, record: Record, payload: Mapping[str, Any] | None) -> list[Finding]:
        """Take a record, without its payload if that is erased; what breaks the rules is told."""
        if not self._is_judged(record.session):
            return []
        try:
            return _TAKERS[record.kind](self, record, payload)
        except (KeyError, TypeError) as problem:
            self.lose(record)
            return [("bad session record", f"it cannot be read: {problem!r}")]

    def think(
        self, seq: int, leaf: bytes, session: str | None, task: str | None, body: bytes
    ) -> bool:
        """Take a thought whose payload says what it must; whether it does.

        One that does not, or not plainly, is left to `feed`.
        """
        known = self._going_on(session)
        if known is None:
            return False
        count = known.peaks.count
        type_ = form.plain_thought(body, count, known.last_leaf, seq)
        if type_ is None:
            return False
        known.push(seq, leaf)
        if self.rows is not None:
            self.rows.append((seq, session, count, task, type_))
        return True

    def seal(self, seq: int, at: str, session: str | None, body: bytes) -> bool:
        """The same for a seal."""
        known = self._going_on(session)
        if known is None or not known.peaks.count:
            return False
        root = known.peaks.root()
        if body != form.seal(known.peaks.count, known.first_seq, known.last_seq, root):
            return False
        known.root, known.sealed = root, (at, seq)
        return True

    def _going_on(self, session: str | None) -> Replayed | None:
        """A session that is open, and judged."""
        known = self.sessions.get(session or "")
        return known if known and known.root is None and self._is_judged(session) else None

    def _is_judged(self, session: str | None) -> bool:
        return not (self.blind or session in self.lost or self._only not in (None, session))

    def lose(self, record: Record) -> None:
        """The payload of a record is not the one that was written, or is gone against the rules."""
        if record.kind == "thought":
            self.unreadable.add(record.seq)
            self.feed(record, None)  # that it is damaged is told already
        elif record.kind in KINDS:
            self.lost.add(record.session)

    def _open(self, record: Record, payload: Mapping[str, Any] | None) -> list[Finding]:
        found: list[Finding] = []
        id = record.session
        if id is None or id in self.sessions:
            return [("bad session record", f"it cannot open the session {id}, or not again")]
        intent = ERASED if payload is None else payload["intent"]
        right = {"session_id": id, "task_id": record.task, "intent": str(intent)}
        if payload is not None and (wrong := _differing(payload, right)):
            found.append(("bad session record", f"not as in its header: {', '.join(wrong)}"))
        self.sessions[id] = Replayed(record, intent)
        return found

    def _thought(self, record: Record, payload: Mapping[str, Any] | None) -> list[Finding]:
        found: list[Finding] = []
        session = self.sessions.get(record.session or "")
        if session is None:
            return [("bad thought", f"there is no session {record.session}")]
        if session.root is not None:
            found.append(("thought after seal", f"the session {record.session} was sealed before"))
        if payload is not None:
            stated = payload["thought_id"], payload["prev"], payload["index"]
            right = f"R-{record.seq}", session.last_leaf.hex(), session.peaks.count
            formed = type(payload["index"]) is int and type(payload["content"]) is str
            if stated != right or not formed or payload["type"] not in TYPES:
                found.append(("bad thought", "its id, prev, index, type or content cannot be so"))
        if self.rows is not None:
            row = record.seq, record.session, session.peaks.count, record.task
            self.rows.append(row if payload is None else (*row, payload.get("type")))
        session.push(record.seq, record.leaf)
        return found

    def _seal(self, record: Record, payload: Mapping[str, Any] | None) -> list[Finding]:
        found: list[Finding] = []
        session = self.sessions.get(record.session or "")
        if session is None or payload is None or not session.peaks.count:
            return [("bad seal", f"there is nothing to seal in the session {record.session}")]
        if session.root is not None:
            found.append(("bad seal", f"the session {record.session} was sealed before"))
        root = session.peaks.root()
        right = {
            "root": root.hex(),
            "count": session.peaks.count,
            "first_seq": session.first_seq,
            "last_seq": session.last_seq,
        }
        if wrong := _differing(payload, right):
            found.append(("bad seal", f"not those of the session's thoughts: {', '.join(wrong)}"))
        session.root, session.sealed = root, (record.at, record.seq)
        return found

    def compare(self, row: Mapping[str, Any]) -> str | None:
        """How a row of the table differs from what its records say, or None."""
        if self.blind or row["session_id"] in self.lost:
            return None
        session = self.sessions.get(row["session_id"])
        if session is None:
            return f"{row['session_id']}: no record opened it"
        wrong = [name for name, value in session.values.items() if row[name] != value]
        if not wrong:
            return None
        return f"{row['session_id']}: its records say otherwise: {', '.join(wrong)}"


def _differing(payload: Mapping[str, Any], right: Mapping[str, Any]) -> list[str]:
    """The members that are not what they must be; true is not 1."""
    return [
        name
        for name, value in right.items()
        if type(payload[name]) is not type(value) or payload[name] != value
    ]


_TAKERS = {
    "session.open": Trail._open,
    "thought": Trail._thought,
    "session.seal": Trail._seal,
}
KINDS = frozenset(_TAKERS)
