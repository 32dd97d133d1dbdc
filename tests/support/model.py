"""All of Colibri as docs/specification.md describes it, in plain Python.

It adds sessions, the ownership of calls, thoughts, keys, seals, verification and the length of the
ledger to the model of tasks.
What cannot be predicted is taken from an answer once (`adopt`) and must not change after that:
times, ids and hashes that the server makes. A hash of known values, such as a root, is predicted.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.support import engines, task_model
from tests.support.naive_tree import NaiveTree
from tests.support.task_model import JSON, No

ZEROS = "0" * 64
HASH = re.compile(r"[0-9a-f]{64}")
MADE_SESSION = re.compile(r"S-[0-9a-f]{12}")
NO_HEAD = {
    "code": "outside-head",
    "detail": "a truncated or rewritten log, which only a head reveals",
}


@dataclass
class Session:
    session_id: str
    intent: str
    task_id: str | None
    agent: str | None
    started_at: str
    open_seq: int
    server: str  # the process that uses it
    resumed: bool = False  # then no other process may use it
    thoughts: list[JSON] = field(default_factory=list)
    root: str | None = None
    finalized_at: str | None = None
    end_seq: int | None = None  # the exit of the call that sealed it

    def seal(self) -> JSON:
        return {
            "session_id": self.session_id,
            "root": f"{len(self.thoughts)}:{self.root}",
            "record_count": len(self.thoughts),
            "finalized_at": self.finalized_at,
        }


class Ledger:
    """The length of the log. A probe is recorded after its answer, if at all."""

    def __init__(self) -> None:
        self.seq = 0
        self.late = 0  # probes whose records have not been seen yet
        self.leaves: dict[int, str] = {}  # from the receipts
        self.about: dict[str, int] = {}  # task -> how many records name it

    def extend(self, count: int, receipt: JSON) -> None:
        """A call wrote so many records; its receipt names the last of them."""
        more = receipt["seq"] - self.seq - count
        self.check_late(more)
        self.late -= more // 2
        self.seq = receipt["seq"]
        self.leaves[self.seq] = receipt["head"]

    def extend_unseen(self, count: int, receipt: JSON | None) -> None:
        """A read wrote so many records; its receipt, if any, is an older, synced head: at the
        latest the enter of a verification. On PostgreSQL a read is answered after a flush.
        """
        self.seq += count
        if receipt is not None:
            is_flushed = engines.chosen() == "postgres"
            assert receipt["seq"] < self.seq + 2 * self.late + is_flushed, receipt
            assert self.leaves.get(receipt["seq"], receipt["head"]) == receipt["head"], receipt

    def check_late(self, more: int) -> None:
        assert more % 2 == 0 and 0 <= more <= 2 * self.late, (
            f"{more} records more than there should be, and {self.late} probes may be late"
        )

    def check_head(self, head: JSON | None) -> None:
        """Check that a verdict's head equals the receipt's, if there was one."""
        seq, leaf = (head["seq"], head["leaf"]) if head else (0, None)
        assert (self.leaves.get(seq, leaf) == leaf) and (seq or not self.seq), head

    def name(self, task: str | None, count: int) -> None:
        if task is not None:
            self.about[task] = self.about.get(task, 0) + count


SELECTING = {"thought_record_list", "audit_verify_chain", "merkle_root"}  # by their session_id
USUAL: JSON = {"priority": "medium", "depends_on": []}  # arguments with these values may be omitted


class Model(task_model.Model):
    """One method per tool; `server` is the process that gets the call."""

    def __init__(self) -> None:
        super().__init__()
        self.server = ""
        self.sessions: dict[str, Session] = {}
        self.thoughts: list[JSON] = []
        self.unseen: JSON | None = None  # a thought whose id is not known yet
        self.keys: dict[tuple[str, str | None, str], JSON] = {}
        self.ledger = Ledger()
        self.skills: list[JSON] = []  # of the project
        self.packaged: list[JSON] = []

    # Who owns a call.

    def owner(self, tool: str, arguments: JSON) -> tuple[str | None, str | None]:
        """The session and the agent that the enter of a call names."""
        named = None if tool in SELECTING else arguments.get("session_id")
        if named is None and tool != "audit_session_start":
            named = self._current()
        agent: str | None = arguments.get("agent_id")
        if agent is None and named in self.sessions:
            agent = self.sessions[named].agent
        return named, agent

    def _current(self) -> str | None:
        """The one session that the process uses. None has expired: a walk takes minutes."""
        mine = [
            one.session_id
            for one in self.sessions.values()
            if one.server == self.server and one.root is None
        ]
        return mine[0] if len(mine) == 1 else None

    def _working(self, session_id: str | None, *, needed: bool = False) -> Session | None:
        id = session_id or self._current()
        if id is None:
            if needed:
                raise No("ERR_SESSION_NOT_FOUND", session_id=None)
            return None
        session = self._open(id)
        if session.resumed and session.server != self.server:
            raise No("ERR_CLAIMED", session_id=id)
        return session

    def _needed(self, session_id: str | None) -> Session:
        session = self._working(session_id, needed=True)
        assert session is not None
        return session

    # Tasks.

    def create(
        self,
        *,
        key: str | None = None,
        session_id: str | None = None,
        agent_id: str | None = None,
        **fields: Any,
    ) -> JSON:
        self._working(session_id)
        first = self._first(("task_create", None, key), fields)
        if first is not None:
            return {**self.tasks[first["made"]].whole(), "repeated": True}
        made = self.create_task(**fields)
        self._keep(("task_create", None, key), fields, made.task_id)
        return {**made.whole(), "repeated": False}

    def update(
        self,
        task_id: str,
        *,
        status: str | Sequence[str] = (),
        thought: JSON | None = None,
        claim: bool | None = None,
        session_id: str | None = None,
        agent_id: str | None = None,
        **changes: Any,
    ) -> JSON:
        session = self._working(session_id, needed=claim is True or thought is not None)
        task = self.change(
            task_id,
            _id(session),
            steps=[status] if isinstance(status, str) else [*status],
            claim=claim,
            with_thought=thought is not None,
            **changes,
        )
        if session is not None and thought is not None:
            self.unseen = self.thought(session, agent_id, task_id=task_id, **thought)
        return task.whole()

    def next_actions(
        self, session_id: str | None = None, agent_id: str | None = None, **asked: Any
    ) -> JSON:
        session = self._working(session_id, needed=asked.get("claim", False))
        return self.actions(_id(session), **asked)

    def _first(self, key: tuple[str, str | None, str | None], asked: JSON) -> JSON | None:
        """The first call with a key."""
        first = self.keys.get(key)  # type: ignore[arg-type]
        if first is not None and first["asked"] != _plain(asked):
            before, now = first["asked"], _plain(asked)
            names = sorted(name for name in {*before, *now} if before.get(name) != now.get(name))
            enter = {"enter": first["enter"]} if first["enter"] else {}
            raise No("ERR_KEY_REUSED", differ=names, **enter)
        return first

    def _keep(self, key: tuple[str, str | None, str | None], asked: JSON, made: Any) -> None:
        tool, session, text = key
        if text is not None:
            enter = None if self.ledger.late else self.ledger.seq + 1
            self.keys[tool, session, text] = {"asked": _plain(asked), "made": made, "enter": enter}

    # Sessions.

    def start(
        self,
        intent: str | None = None,
        task_id: str | None = None,
        session_id: str | None = None,
        agent_id: str | None = None,
        *,
        resume: bool = False,
        brief: bool = True,
    ) -> JSON:
        """`note` is True if the answer has a note."""
        if resume:
            assert session_id is not None
            session = self._open(session_id)
            session.server, session.resumed = self.server, True
            intent, task_id, agent_id = session.intent, session.task_id, session.agent
        elif task_id is not None:
            self._get(task_id)
        if not resume and session_id in self.sessions:
            raise No("ERR_SESSION_EXISTS", session_id=session_id)
        self.records = 1
        others = [
            one.session_id
            for one in self.sessions.values()
            if (one.server, one.root) == (self.server, None) and one.session_id != session_id
        ]
        made = {"session_id": session_id, "intent": intent, "task_id": task_id}
        said = {"agent_id": agent_id, "resumed": resume, "note": bool(others), "brief": brief}
        return {**made, **said}

    def adopt_session(self, answer: JSON, receipt: JSON) -> None:
        if answer["resumed"]:
            return
        if answer["session_id"] in self.sessions:
            raise AssertionError(f"a new session has the id of an old one: {answer}")
        self.sessions[answer["session_id"]] = Session(
            session_id=answer["session_id"],
            intent=answer["intent"],
            task_id=answer["task_id"],
            agent=answer["agent_id"],
            started_at=answer["started_at"],
            open_seq=receipt["seq"] - 1,
            server=self.server,
        )

    def think_in(
        self,
        type: str,
        content: str,
        task_id: str | None = None,
        session_id: str | None = None,
        agent_id: str | None = None,
        key: str | None = None,
    ) -> JSON:
        session = self._needed(session_id)
        if task_id is not None:
            self._get(task_id)
        asked = {"type": type, "content": content, "task_id": task_id}
        named = ("thought_record", session.session_id, key)
        first = self._first(named, asked)
        if first is not None:
            return {**self.thoughts[first["made"]], "repeated": True}
        self._keep(named, asked, len(self.thoughts))
        if task_id is not None:
            self.think(task_id)
        self.records = 1
        return {**self.thought(session, agent_id, **asked), "repeated": False}

    def thought(self, session: Session, agent: str | None, **said: Any) -> JSON:
        """The next thought of a session, as far as it can be predicted."""
        return {
            "index": len(session.thoughts),
            "session_id": session.session_id,
            "agent_id": agent or session.agent,
            **said,
            "prev_hash": session.thoughts[-1]["hash"] if session.thoughts else ZEROS,
        }

    def adopt_thought(self, answer: JSON, seq: int) -> None:
        assert answer["seq"] == seq
        assert answer["thought_id"] == f"R-{answer['seq']}"
        assert HASH.fullmatch(answer["hash"])
        assert all(answer["hash"] != thought["hash"] for thought in self.thoughts)
        thought = {name: value for name, value in answer.items() if name != "repeated"}
        self.thoughts.append(thought)
        self.sessions[answer["session_id"]].thoughts.append(thought)

    def recall(
        self,
        session_id: str | None = None,
        task_id: str | None = None,
        type: str | None = None,
        search: str | None = None,
        order: str | None = None,
        limit: int = 50,
        offset: int = 0,
    ) -> JSON:
        wanted = {"session_id": session_id, "task_id": task_id, "type": type}
        given = {name: value for name, value in wanted.items() if value is not None}
        found = [thought for thought in self.thoughts if given.items() <= thought.items()]
        if search is not None:
            found = [thought for thought in found if _has_word(thought["content"], search)]
        if order == "newest":
            found.reverse()
        page = found[offset : offset + limit]
        after = offset + len(page)
        return {
            "records": page,
            "total_count": len(found),
            "next_offset": after if page and after < len(found) else None,
        }

    def seal(self, session_id: str) -> JSON:
        session = self._needed(session_id)
        if not session.thoughts:
            raise No("ERR_NO_RECORDS", session_id=session_id)
        session.root = _tree([thought["hash"] for thought in session.thoughts]).root().hex()
        for task in self.tasks.values():
            if task.holder == session_id:
                task.holder = None
        self.records = 1
        return session.seal()

    def adopt_seal(self, answer: JSON, receipt: JSON) -> None:
        session = self.sessions[answer["session_id"]]
        assert answer["finalized_at"] >= session.started_at
        session.finalized_at = answer["finalized_at"]
        session.end_seq = receipt["seq"]

    def root(self, session_id: str, proof_for: str | None = None) -> JSON:
        session = self._session(session_id)
        if session.root is None:
            count = len(session.thoughts)
            raise No("ERR_NOT_FINALIZED", session_id=session_id, record_count=count)
        if proof_for is None:
            return session.seal()
        leaves = [thought["hash"] for thought in session.thoughts]
        ids = [thought["thought_id"] for thought in session.thoughts]
        if proof_for not in ids:
            raise No("ERR_NOT_FOUND", thought_id=proof_for)
        at = ids.index(proof_for)
        proof = {"thought_id": proof_for, "index": at, "size": len(leaves), "leaf": leaves[at]}
        return {
            **session.seal(),
            "proof": {**proof, "path": [step.hex() for step in _tree(leaves).inclusion(at)]},
        }

    # Verification. `before` is the last record before the call's own enter.

    def verify(
        self, before: int, session_id: str | None = None, task_id: str | None = None
    ) -> JSON:
        nothing: JSON = {"breaks": [], "open_calls": [], "erased_count": 0, "erased": []}
        nothing |= {"witnesses": [], "held_to": None, "newer": None}
        good: JSON = {"valid": True, "broken_count": 0, "first_broken_at": None, **nothing}
        if session_id is not None:
            session = self._session(session_id)
            last = session.end_seq or before
            outside = f"records before {session.open_seq} and after {last}"
            outside += ", the moves of tasks, and the indexes"
            count = last - session.open_seq + 1
            notes = [NO_HEAD, {"code": "scope", "detail": outside}]
            return {**good, "record_count": count, "not_checked": notes}
        if task_id is not None:
            self._get(task_id)
            outside = "records that do not name the task, calls that are open, and the indexes"
            count = self.ledger.about[task_id]
            notes = [NO_HEAD, {"code": "scope", "detail": outside}]
            return {**good, "record_count": count, "not_checked": notes}
        empty = {"code": "scope", "detail": "the log holds no records: nothing was checked"}
        notes = [NO_HEAD] if before else [empty, NO_HEAD]
        return {**good, "record_count": before, "newer": before, "not_checked": notes}

    # Calls that change nothing.

    def ping(self) -> JSON:
        return {"mode": "FULL"}

    def health(self) -> JSON:
        """Always the same, since nothing goes wrong here."""
        return {"status": "ok", "mode": "FULL", "state": "NORMAL", "tools": 14, "dropped": 0}

    def find_skills(self, search: str | None = None, capability: str | None = None) -> JSON:
        """Sorted by name, canonical ones first."""

        def names(skills: list[JSON]) -> list[str]:
            found = [skill["name"] for skill in skills if _is_wanted(skill, search, capability)]
            return sorted(found, key=lambda name: (not name.startswith("colibri-"), name))

        return {"skills": names(self.skills), "packaged": names(self.packaged), "skipped": 1}

    def _session(self, id: str) -> Session:
        if id not in self.sessions:
            raise No("ERR_SESSION_NOT_FOUND", session_id=id)
        return self.sessions[id]

    def _open(self, id: str) -> Session:
        session = self._session(id)
        if session.root is not None:
            count = len(session.thoughts)
            raise No(
                "ERR_ALREADY_FINALIZED",
                session_id=id,
                root=f"{count}:{session.root}",
                record_count=count,
            )
        return session


def _id(session: Session | None) -> str | None:
    return None if session is None else session.session_id


def _plain(asked: JSON) -> JSON:
    """Arguments without those that may be omitted."""
    return {name: value for name, value in asked.items() if value not in (None, USUAL.get(name))}


def _has_word(text: str, start: str) -> bool:
    words = re.findall(r"[^\W_]+", text.casefold())
    return any(word.startswith(start.casefold()) for word in words)


def _is_wanted(skill: JSON, search: str | None, capability: str | None) -> bool:
    text = f"{skill['name']}\n{skill['description']}".casefold()
    has_words = all(word in text for word in (search or "").casefold().split())
    return has_words and capability in (None, *skill["capabilities"])


def _tree(leaves: list[str]) -> NaiveTree:
    return NaiveTree([bytes.fromhex(leaf) for leaf in leaves])
