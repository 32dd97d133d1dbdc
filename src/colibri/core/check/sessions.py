"""Sessions: opened once, their thoughts in a row, sealed once under the right root.

Memory grows with the number of sessions: of a tree only the peaks and a few leaves are kept.
"""

from collections.abc import Mapping
from typing import Any

from colibri.core import merkle
from colibri.core.check.kinds import Seal, SessionOpen, Thought
from colibri.core.ledger import ERASED, NO_LEAF
from colibri.core.report import SESSIONS, Findings
from colibri.core.rows import Row

PART = 256  # leaves; a power of two


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


class Session:
    """A session as its records leave it."""

    __slots__ = ("first", "last", "last_leaf", "opening", "peaks", "root", "seal")

    def __init__(self, opening: dict[str, Any]) -> None:
        self.opening = opening
        self.peaks = Peaks()
        self.first: int | None = None
        self.last: int | None = None
        self.last_leaf = NO_LEAF
        self.root: bytes | None = None
        self.seal: Row | None = None

    def push(self, seq: int, leaf: bytes) -> None:
        """One more thought."""
        self.peaks.push(leaf)
        self.first = self.first or seq
        self.last, self.last_leaf = seq, leaf

    @property
    def values(self) -> dict[str, Any]:
        """What its row must hold, by column."""
        return {
            **self.opening,
            "record_count": self.peaks.count,
            "last_leaf": self.last_leaf,
            "finalized_at": self.seal and self.seal.at,
            "seal_seq": self.seal and self.seal.seq,
            "root": self.root,
        }


class Sessions:
    """Shown the records of sessions, of one or all, in the order of the log."""

    def __init__(self, found: Findings, only: str | None = None) -> None:
        self.known: dict[str, Session] = {}
        # What the rows of `thoughts` must hold: seq, session, index, task, type; no type if erased.
        self.rows: list[tuple[Any, ...]] = []
        self._found = found
        self._only = only

    def open(self, row: Row, said: SessionOpen | None) -> None:
        """A session.open record."""
        id = row.session
        if id is None or self._only not in (None, id):
            return
        if id in self.known:
            self._note(row, "second-open")
            return
        self.known[id] = Session(
            {
                "session_id": id,
                "intent": ERASED if said is None else said.intent,
                "task_id": row.task,
                "started_at": row.at,
                "open_seq": row.seq,
            }
        )

    def thought(self, row: Row, said: Thought | None) -> None:
        """A thought record; one that is erased keeps its place."""
        session = self._going_on(row, "thought-after-seal")
        if session is None:
            return
        index = session.peaks.count
        if said is None:
            self.rows.append((row.seq, row.session, index, row.task))
        else:
            self.rows.append((row.seq, row.session, index, row.task, said.type))
            if said.index != index:
                self._note(row, "wrong-index", f"{said.index}, not {index}")
            if said.prev != session.last_leaf.hex():
                self._note(row, "broken-thought-chain")
        session.push(row.seq, row.leaf)

    def seal(self, row: Row, said: Seal) -> None:
        """A session.seal record."""
        session = self._going_on(row, "second-seal")
        if session is None:
            return
        count = session.peaks.count
        if said.count != count:
            self._note(row, "wrong-count", f"{said.count}, not {count}")
        if count and (said.first_seq, said.last_seq) != (session.first, session.last):
            self._note(row, "wrong-range")
        session.root, session.seal = session.peaks.root() if count else NO_LEAF, row
        if count and said.root != session.root.hex():
            self._note(row, "wrong-root")

    def erase(self, seq: int) -> None:
        """What a session.open record said is gone by now."""
        for session in self.known.values():
            if session.opening["open_seq"] == seq:
                session.opening["intent"] = ERASED

    def compare(self, row: Mapping[str, Any]) -> str | None:
        """How a row of the table differs from what its records say, or None."""
        session = self.known.get(row["session_id"])
        if session is None:
            return f"{row['session_id']}: no record opened it"
        wrong = [name for name, value in session.values.items() if row[name] != value]
        if not wrong:
            return None
        return f"{row['session_id']}: its records say otherwise: {', '.join(wrong)}"

    def _going_on(self, row: Row, otherwise: str) -> Session | None:
        """The session of a record, if that is judged, opened and not sealed."""
        if self._only not in (None, row.session):
            return None
        session = self.known.get(row.session or "")
        if session is None:
            self._note(row, "outside-session")
        elif session.seal is not None:
            self._note(row, otherwise)
        else:
            return session
        return None

    def _note(self, row: Row, code: str, detail: str = "") -> None:
        self._found.note(SESSIONS, row.seq, code, detail or f"session {row.session}")
