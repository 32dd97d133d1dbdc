"""Session records, replayed: the chain of thoughts within each session, and its seal.

    bad session record  opened twice, or not made like one
    bad thought         in no open session, out of its order, or not naming the one before it
    thought after seal  a sealed session takes nothing more
    bad seal            root, count or range are not those of the session's thoughts; a second seal
    altered session     a row or a tree is not what the records say

A thought whose payload cannot be read keeps its place: its leaf is the header's. A session of which
another record cannot be read is not judged any further. Memory grows with the number of sessions:
of a tree only the peaks are kept.
"""

from collections.abc import Mapping
from typing import Any, Literal

from colibri.core.merkle import node_hash
from colibri.core.plain import CONTENT
from colibri.core.record import Record

TYPES = ("plan", "analysis", "decision", "reflection")
_TYPE_ENDS = frozenset(f'{type}"}}'.encode() for type in TYPES)
NO_LEAF = bytes(32)
ERASED = "[erased]"

What = Literal[
    "bad session record", "bad thought", "thought after seal", "bad seal", "altered session"
]
Finding = tuple[What, str]


class Peaks:
    """The tree of a growing list of leaves, as the roots of its complete parts."""

    __slots__ = ("count", "hashes")

    def __init__(self) -> None:
        self.count = 0
        self.hashes: list[bytes] = []

    def push(self, leaf: bytes) -> None:
        """One more leaf: parts of equal size become one."""
        size, hashes = self.count, self.hashes
        while size & 1:
            leaf = node_hash(hashes.pop(), leaf)
            size >>= 1
        hashes.append(leaf)
        self.count += 1

    def root(self) -> bytes:
        """The root of the tree so far; there is at least one leaf."""
        *left, found = self.hashes
        for peak in reversed(left):
            found = node_hash(peak, found)
        return found


class Replayed:
    """A session as its records leave it; `values` has a column's name for each."""

    __slots__ = ("first_seq", "last_seq", "peaks", "values")

    def __init__(self, record: Record, intent: str) -> None:
        self.peaks = Peaks()
        self.first_seq: int | None = None
        self.last_seq: int | None = None
        self.values: dict[str, Any] = {
            "session_id": record.session,
            "intent": intent,
            "task_id": record.task,
            "started_at": record.at,
            "open_seq": record.seq,
            "record_count": 0,
            "last_leaf": NO_LEAF,
            "finalized_at": None,
            "seal_seq": None,
            "root": None,
        }

    def take(self, seq: int, leaf: bytes) -> None:
        """One more thought."""
        self.peaks.push(leaf)
        self.first_seq = self.first_seq or seq
        self.last_seq = seq
        self.values["record_count"] = self.peaks.count
        self.values["last_leaf"] = leaf


class Trail:
    """Fed the records of KINDS, in the order of the log."""

    def __init__(self, *, only: str | None = None, blind: bool = False) -> None:
        self.sessions: dict[str, Replayed] = {}
        self.blind = blind
        self.lost: set[str | None] = set()  # the sessions that are not judged any further
        self.unreadable: set[int] = set()  # the thoughts whose payloads are not what they were
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

    def take_plain_thought(self, seq: int, leaf: bytes, session: str | None, body: bytes) -> bool:
        """Take the next thought of an open session; False, and nothing is taken, if it may not be
        that."""
        known = self.sessions.get(session or "")
        if known is None or known.values["root"] is not None or not self._is_judged(session):
            return False
        count, prev = known.peaks.count, known.values["last_leaf"].hex()
        middle = f'","index":{count},"prev":"{prev}","thought_id":"R-{seq}'.encode()
        front, _, end = body.rpartition(b'","type":"')
        if end not in _TYPE_ENDS or not front.endswith(middle) or not _is_text(front):
            return False
        if not CONTENT.fullmatch(front, 0, len(front) - len(middle)):
            return False
        known.take(seq, leaf)
        return True

    def _is_judged(self, session: str | None) -> bool:
        return not self.blind and session not in self.lost and self._only in (None, session)

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
        values = session.values
        if values["root"] is not None:
            found.append(("thought after seal", f"the session {record.session} was sealed before"))
        if payload is not None:
            stated = payload["thought_id"], payload["prev"], payload["index"]
            right = f"R-{record.seq}", values["last_leaf"].hex(), values["record_count"]
            formed = type(payload["index"]) is int and type(payload["content"]) is str
            if stated != right or not formed or payload["type"] not in TYPES:
                found.append(("bad thought", "its id, prev, index, type or content cannot be so"))
        session.take(record.seq, record.leaf)
        return found

    def _seal(self, record: Record, payload: Mapping[str, Any] | None) -> list[Finding]:
        found: list[Finding] = []
        session = self.sessions.get(record.session or "")
        if session is None or payload is None or not session.peaks.count:
            return [("bad seal", f"there is nothing to seal in the session {record.session}")]
        if session.values["root"] is not None:
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
        session.values.update(finalized_at=record.at, seal_seq=record.seq, root=root)
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


def _is_text(data: bytes) -> bool:
    try:
        return data.isascii() or bool(data.decode())
    except UnicodeDecodeError:
        return False


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
