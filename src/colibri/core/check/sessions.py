"""Sessions: opened once, their thoughts in a row, sealed once under the right root; which process
continues each, and when it last gave a sign of life.

Memory grows with the number of sessions: of a tree only a few hashes are kept.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from colibri.core.check.kinds import Enter, Seal, SessionOpen, SessionResume, Thought
from colibri.core.ledger import ERASED, NO_LEAF
from colibri.core.merkle import GrowingTree
from colibri.core.report import CALLS, SESSIONS, Findings
from colibri.core.rows import Row

_TOLD = ("client", "host_session")


class Caller(NamedTuple):
    """The enter of a call; what it says is None if that is erased."""

    seq: int
    said: Enter | None


Callers = Callable[[Row], Caller | None]  # of the call that wrote a record, if that is open


class Session:
    """A session as its records leave it."""

    __slots__ = (
        *("caller", "first", "last", "last_leaf", "opening", "resumed", "root"),
        *("seal", "server", "tree"),
    )

    def __init__(self, opening: dict[str, Any], caller: Caller | None) -> None:
        self.opening = opening
        self.caller = caller  # of the call that opened it, or last resumed it; None if not seen
        self.resumed: int | None = None
        self.server: str | None = None  # that continues it; None if any may
        self.tree = GrowingTree()
        self.first: int | None = None
        self.last: int | None = None
        self.last_leaf = NO_LEAF
        self.root: bytes | None = None
        self.seal: Row | None = None

    def push(self, seq: int, leaf: bytes) -> None:
        """One more thought."""
        self.tree.push(leaf)
        self.first = self.first or seq
        self.last, self.last_leaf = seq, leaf

    @property
    def values(self) -> dict[str, Any]:
        """What its row must hold, by column."""
        return {
            **self.opening,
            **self._told(),
            "resume_seq": self.resumed,
            "record_count": self.tree.size,
            "last_leaf": self.last_leaf,
            "finalized_at": self.seal and self.seal.at,
            "seal_seq": self.seal and self.seal.seq,
            "root": self.root,
        }

    def _told(self) -> dict[str, Any]:
        """What its caller said of itself; of an erased enter only that nothing is left."""
        if self.caller is None:
            return {}
        said = self.caller.said
        if said is None:
            return dict.fromkeys(_TOLD)
        return {name: getattr(said, name) for name in ("server", *_TOLD)}


class Sessions:
    """Shown the records of sessions, of one or all, in the order of the log."""

    def __init__(self, found: Findings, only: str | None = None) -> None:
        self.known: dict[str, Session] = {}
        # What the rows of `thoughts` must hold: seq, session, index, task, type; no type if erased.
        self.rows: list[tuple[Any, ...]] = []
        # Whoever a record names: the last sign of life, and whether a seal went by
        self.signs: dict[str, int] = {}
        self.ended: set[str | None] = set()
        self._found = found
        self._only = only

    def open(self, row: Row, said: SessionOpen | None, caller: Caller | None) -> None:
        """A session.open record, and the enter of its call."""
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
                "agent": row.agent,
                "started_at": row.at,
                "open_seq": row.seq,
            },
            caller,
        )

    def resume(self, row: Row, said: SessionResume, caller: Caller | None) -> None:
        """A session.resume record, and the enter of its call."""
        session = self._going_on(row, "change-after-seal")
        if session is not None:
            session.caller, session.resumed, session.server = caller, row.seq, said.server
            self._judge_server(row, session, caller)

    def change(self, row: Row, caller: Callers) -> None:
        """A task or task.text record, which is the work of a session."""
        if row.session is not None:
            self._going_on(row, "change-after-seal", caller)

    def deed(self, row: Row, *, is_sign: bool) -> None:
        """A deed record, which is the work of a session, and of the agent that opened it."""
        if row.session is None:
            return
        session = self._going_on(row, "change-after-seal")
        if session is not None and session.opening["agent"] != row.agent:
            self._found.note(CALLS, row.seq, "bad-pair", "another agent than its session's")
        if is_sign:
            self.signs[row.session] = row.seq

    def thought(self, row: Row, said: Thought | None, caller: Callers) -> None:
        """A thought record; one that is erased keeps its place."""
        session = self._going_on(row, "thought-after-seal", caller)
        if session is None:
            return
        index = session.tree.size
        if said is None:
            self.rows.append((row.seq, row.session, index, row.task))
        else:
            self.rows.append((row.seq, row.session, index, row.task, said.type))
            if said.index != index:
                self._note(row, "wrong-index", f"{said.index}, not {index}")
            if said.prev != session.last_leaf.hex():
                self._note(row, "broken-thought-chain")
        session.push(row.seq, row.leaf)

    def seal(self, row: Row, said: Seal, caller: Callers | None) -> None:
        """A session.seal record."""
        self.ended.add(row.session or "")
        session = self._going_on(row, "second-seal", caller)
        if session is None:
            return
        count = session.tree.size
        if said.count != count:
            self._note(row, "wrong-count", f"{said.count}, not {count}")
        if count and (said.first_seq, said.last_seq) != (session.first, session.last):
            self._note(row, "wrong-range")
        session.root, session.seal = session.tree.root() if count else NO_LEAF, row
        if count and said.root != session.root.hex():
            self._note(row, "wrong-root")

    def erase(self, seq: int) -> None:
        """What a session.open record, or the enter of its call, said is gone by now."""
        for session in self.known.values():
            if session.opening["open_seq"] == seq:
                session.opening["intent"] = ERASED
            elif session.caller is not None and session.caller.seq == seq:
                session.caller = Caller(seq, None)

    def compare(self, row: Mapping[str, Any]) -> str | None:
        """How a row of the table differs from what its records say, or None."""
        session = self.known.get(row["session_id"])
        if session is None:
            return f"{row['session_id']}: no record opened it"
        wrong = [name for name, value in session.values.items() if row[name] != value]
        if not wrong:
            return None
        return f"{row['session_id']}: its records say otherwise: {', '.join(wrong)}"

    def _going_on(self, row: Row, otherwise: str, caller: Callers | None = None) -> Session | None:
        """The session of a record, if that is judged, opened and not sealed."""
        if self._only is not None and self._only != row.session:
            return None
        session = self.known.get(row.session or "")
        if session is None:
            self._note(row, "outside-session")
        elif session.seal is not None:
            self._note(row, otherwise)
        else:
            if session.server is not None and caller is not None:
                self._judge_server(row, session, caller(row))
            return session
        return None

    def _judge_server(self, row: Row, session: Session, caller: Caller | None) -> None:
        """Whether the process that makes a change is the one that continues its session."""
        enter = None if caller is None else caller.said
        if enter is not None and session.server != enter.server:
            self._note(row, "wrong-server", f"another process continues {row.session}")

    def _note(self, row: Row, code: str, detail: str = "") -> None:
        self._found.note(SESSIONS, row.seq, code, detail or f"session {row.session}")
