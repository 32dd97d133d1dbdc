"""Agents: what each of them has done, counted from the records. It owns no table."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from colibri.core.ledger import load
from colibri.store import sessions
from colibri.store.connection import Connection

_NOTHING = (None, None)
_KINDS = ("call.exit", "deed", "session.open", "session.seal", "task", "thought")


@dataclass(slots=True)
class Agent:
    """`name` is None for calls that named no agent. Tasks are counted as often as it did it."""

    name: str | None
    sessions: int = 0
    sealed: int = 0
    calls: int = 0
    refused: int = 0
    thoughts: int = 0
    finished: int = 0
    cancelled: int = 0
    retried: int = 0
    abandoned: int = 0  # held, and then nothing more was heard of it
    verified: int = 0  # times that it had the log checked
    holds: int = 0
    deeds: int = 0
    failed: int = 0  # of these
    last_at: str = ""


def every(db: Connection, *, now: str, minutes: float) -> list[Agent]:
    """All agents, those that were at work last first."""
    counted = _Counted()
    kinds = ", ".join(f"'{kind}'" for kind in _KINDS)
    for kind, session, agent, at, body in db.execute(
        f"SELECT kind, session, agent, at, body FROM ledger WHERE kind IN ({kinds}) ORDER BY seq"
    ):
        counted.take(kind, session, agent, at, body)
    for holder, held in _held(db):
        one = counted.of_session(holder)
        one.holds += held
        if sessions.last_sign(db, holder).minutes_before(now) >= minutes:
            one.abandoned += held
    return sorted(counted.agents.values(), key=lambda one: one.last_at, reverse=True)


class _Counted:
    """Shown the records in the order of the log."""

    def __init__(self) -> None:
        self.agents: dict[str | None, Agent] = {}
        self._openers: dict[str, str | None] = {}

    def of_session(self, session: str) -> Agent:
        return self._named(self._openers.get(session))

    def take(
        self, kind: str, session: str | None, agent: str | None, at: str, body: bytes | None
    ) -> None:
        one = self._named(agent)
        one.last_at = max(one.last_at, at)
        said = _said(body)
        match kind:
            case "call.exit":
                one.calls += 1
                one.refused += said.get("outcome") == "refused"
                checked = said.get("tool") == "audit_verify_chain"
                one.verified += checked and said.get("outcome") == "ok"
            case "session.open":
                one.sessions += 1
                self._openers[session or ""] = agent
            case "session.seal":
                self.of_session(session or "").sealed += 1
            case "thought":
                one.thoughts += 1
            case "deed":
                one.deeds += 1
                went_wrong = said.get("event") in ("tool.failed", "tool.denied")
                one.failed += went_wrong or said.get("exit") not in (None, 0)
            case _:
                self._take_task(one, said)

    def _take_task(self, one: Agent, said: dict[str, Any]) -> None:
        old, new = _pair(said, "status")
        one.finished += new == "DONE"
        one.cancelled += new == "CANCELLED"
        one.retried += (old, new) == ("VERIFY", "GATHER")
        holder = _pair(said, "holder")[0]
        if "taken" in said and isinstance(holder, str):
            self.of_session(holder).abandoned += 1

    def _named(self, name: str | None) -> Agent:
        return self.agents.setdefault(name, Agent(name))


def _said(body: object) -> dict[str, Any]:
    """What a record says; nothing where it is erased or damaged, which `verify` names."""
    try:
        said = load(body) if isinstance(body, bytes) else None
    except ValueError:
        said = None
    return said if isinstance(said, dict) else {}


def _pair(said: dict[str, Any], field: str) -> Sequence[Any]:
    """What a change made of a field, old and new; nothing if the record is of another form."""
    made = said.get("set")
    pair = made.get(field) if isinstance(made, dict) else None
    return pair if isinstance(pair, list) and len(pair) == len(_NOTHING) else _NOTHING


def _held(db: Connection) -> Iterator[tuple[str, int]]:
    """Sessions that hold tasks, and how many."""
    yield from db.execute(
        "SELECT holder, count(*) FROM tasks WHERE holder IS NOT NULL GROUP BY holder"
    )
