"""How much of the work deeds show: measured alike by the server and by both verifiers."""

import random
from collections import Counter
from contextlib import suppress
from types import ModuleType
from typing import Any

from colibri.core.errors import Refused
from colibri.core.report import Coverage
from tests.support.ledger_writer import Lab, in_memory
from tests.vectors.builder import b64
from tests.verify.conftest import Node
from tests.web.browser import log_bundle, session_bundle

STORIES, EVENTS = 80, 40
SESSIONS = ("S-1", "S-2", "human")
HOSTS, AGENTS = ("h-1", "h-2", None), (None, "sub")
USES = (None, None, *(f"u-{n}" for n in range(12)))
TOOLS = ("tool.begin", "tool.begin", "tool.end", "tool.end", "tool.failed", "tool.denied")


def happen(lab: Lab, chance: random.Random) -> None:
    """A call or a report, as it may come from any host in any order."""
    session = chance.choice(SESSIONS)
    lab.client, lab.use = chance.choice(HOSTS), chance.choice(USES)
    agent = "human:eve" if session == "human" else "ada"
    match chance.randrange(12):
        case 0:
            lab.start(session, agent=agent)
        case 1 | 2 | 3:
            lab.think(session, agent=agent)
        case 4:
            lab.read(session=session)
        case 5:
            lab.seal(session)
        case 6:
            lab.deed(
                host_session=chance.choice(HOSTS),
                event="session.start",
                class_=None,
                settings=chance.choice("ab") * 64,
                lost=1,
            )
        case _:
            report(lab, chance)


def report(lab: Lab, chance: random.Random) -> None:
    event, kind = chance.choice(TOOLS), chance.choice(("mcp", "mcp", "run", "edit"))
    edits = (event, kind) == ("tool.begin", "edit")
    lab.deed(
        host_session=chance.choice(HOSTS),
        host_agent=chance.choice(AGENTS),
        event=event,
        class_=kind,
        use=chance.choice(USES),
        unjudged="session" if edits else None,
    )


def told(chance: random.Random) -> Lab:
    lab = in_memory()
    lab.start("S-1", agent="ada")
    for _ in range(EVENTS):
        with suppress(Refused):  # a session that is sealed, or not open yet
            happen(lab, chance)
    return lab


def as_json(coverage: Coverage | None) -> dict[str, Any]:
    assert coverage is not None
    lists = {"not_ended": list(coverage.not_ended), "unseen": list(coverage.unseen)}
    return {**coverage._asdict(), **lists}


def test_all_three_measure_the_same(python: ModuleType, node: Node) -> None:
    """docs/formats.md §10: of whole logs and of single sessions."""
    chance, seen = random.Random(1017), Counter[str]()
    cases: list[tuple[bytes, dict[str, Any]]] = []
    for _ in range(STORIES):
        lab = told(chance)
        cases.append((log_bundle(lab), as_json(lab.verify().coverage)))
        for (id,) in lab.db.execute("SELECT session_id FROM sessions").fetchall():
            cases.append((session_bundle(lab, id), as_json(lab.verify_session(id).coverage)))
    others = node("verify", [{"base64": b64(bundle)} for bundle, _ in cases])
    for (bundle, server), other in zip(cases, others, strict=True):
        mine = python.verify(bundle).as_json()
        assert mine["verdict"] == other["verdict"] == "good"
        assert mine["coverage"] == other["coverage"] == server
        seen.update(name for name, value in server.items() if value)
    assert min(seen[name] for name in Coverage._fields) > 20, seen
