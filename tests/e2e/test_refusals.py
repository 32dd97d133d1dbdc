"""Sessions, claims, steps, thoughts with a move, keys and searches: every wrong call is refused
with a message that says what would be right, and changes nothing.
"""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.test_arguments import KEPT
from tests.support.client import COLIBRI, JSON, Server
from tests.support.ledger_reader import reading
from tests.support.task_client import issues, refusal

NEW_TABLES = (
    "SELECT * FROM lost_claims",
    "SELECT * FROM call_keys",
    "SELECT count(*) FROM thought_search",
)
TO_VERIFY = ["GATHER", "ANALYZE", "PLAN", "APPLY", "VERIFY"]
WHY: JSON = {"type": "decision", "content": "so"}
HELD: JSON = {"holder": "theirs", "agent": "bob", "is_alive": True, "free": ["T-0001", "T-0006"]}


@pytest.fixture(scope="module")
def world(engine: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Server]]:
    """A server with the session `mine`, and one that never opened a session.

    T-0001 is free, T-0002 waits for it, T-0003 is held by bob in `theirs`, T-0004 in VERIFY and
    mine, T-0005 CANCELLED, T-0006 made with a key. `sealed` is sealed, `moved` was resumed by bob's
    process.
    """
    project = tmp_path_factory.mktemp("refusals")
    with ExitStack() as stack:
        bob, server, nobody = (stack.enter_context(Server(project, COLIBRI)) for _ in range(3))
        for number, needs in enumerate([[], ["T-0001"], [], [], []], 1):
            server.data("task_create", title=f"task {number}", depends_on=needs)
        for session in ("sealed", "moved"):
            start(server, session)
            server.data("thought_record", session_id=session, **WHY)
        server.data("merkle_finalize", session_id="sealed")
        start(bob, "theirs", agent_id="bob")
        bob.data("task_update", task_id="T-0003", status="GATHER")
        bob.data("audit_session_start", session_id="moved", resume=True)
        start(server, "mine", agent_id="ada")
        server.data("task_update", task_id="T-0004", status=TO_VERIFY)
        server.data("task_update", task_id="T-0005", status="CANCELLED", thought=WHY)
        server.data("task_create", title="keyed", key="k")
        server.data("thought_record", key="k", **WHY)
        yield server, nobody
        assert server.data("audit_verify_chain")["valid"]


def start(server: Server, session: str, **more: Any) -> None:
    server.data("audit_session_start", intent="try", session_id=session, brief=False, **more)


def kept(project: Path) -> dict[str, list[Any]]:
    with reading(project / "data" / "colibri.db") as db:
        return {query: list(db.execute(query)) for query in (*KEPT, *NEW_TABLES)}


def update(**change: Any) -> tuple[str, JSON]:
    return "task_update", {"task_id": "T-0001", **change}


def create(**fields: Any) -> tuple[str, JSON]:
    return "task_create", {"title": "x", **fields}


def opening(**fields: Any) -> tuple[str, JSON]:
    return "audit_session_start", fields


def think(**fields: Any) -> tuple[str, JSON]:
    return "thought_record", {**WHY, **fields}


NO_BOOLS: list[Any] = ["true", 1, None, []]
CALLERS = [
    create(),
    update(title="y"),
    ("task_get", {"task_id": "T-0001"}),
    ("task_list", {}),
    ("task_next_actions", {}),
    think(),
]
# A call, the path of its mistake, and the message.
INVALID: list[tuple[tuple[str, JSON], str, str]] = [
    *(
        ((tool, {**asked, "session_id": bad}), "session_id", said)
        for tool, asked in CALLERS
        for bad, said in (("no id!", "right form"), ("", "right form"), (5, "got int"))
    ),
    *(
        ((tool, {**asked, "agent_id": bad}), "agent_id", said)
        for tool, asked in [*CALLERS, opening(intent="x")]
        for bad, said in (
            ("human:ada", "begins with human:"),
            (" Human:ada", "begins with human:"),
            ("", "length >= 1"),
            (" ", "is blank"),
            ("a\nb", "U+000A"),
            ("a" * 129, "length <= 128"),
            (5, "got int"),
        )
    ),
    *((update(claim=bad), "claim", "expected bool") for bad in NO_BOOLS),
    (update(claim=False, status="GATHER"), "claim", "false goes without status"),
    (update(claim=False, status=["GATHER"]), "claim", "false goes without status"),
    (("task_next_actions", {"claim": "yes"}), "claim", "expected bool"),
    (update(status=[]), "status", "length >= 1"),
    (update(status=["GATHER"] * 9), "status", "length <= 8"),
    (update(status=["GATHER", "READY"]), "status[1]", "allowed values"),
    (update(status=["GATHER", 1]), "status[1]", "got int"),
    (update(status={"to": "GATHER"}), "status", "got object"),
    *((update(thought=bad), "thought", "expected object") for bad in ("so", None, ["so"], 1)),
    (update(thought={"type": "plan"}), "thought.content", "is required"),
    (update(thought={"content": "so"}), "thought.type", "is required"),
    (update(thought={**WHY, "type": "guess"}), "thought.type", "allowed values"),
    (update(thought={**WHY, "content": ""}), "thought.content", "length >= 1"),
    (update(thought={**WHY, "content": "x" * 65_537}), "thought.content", "length <= 65536"),
    (update(thought={**WHY, "content": "a\x1b[2J"}), "thought.content", "U+001B at position 1"),
    (update(thought={**WHY, "content": ["so"]}), "thought.content", "got array"),
    (update(thought={**WHY, "task_id": "T-0001"}), "thought.task_id", "is not a known field"),
    (update(thought=WHY, title=""), "title", "length >= 1"),
    (update(thought={**WHY, "contents": "x"}), "thought.contents", "did you mean content?"),
    *(
        ((tool, {**asked, "key": bad}), "key", said)
        for tool, asked in (create(), think())
        for bad, said in (
            ("", "length >= 1"),
            ("k" * 129, "length <= 128"),
            (" ", "is blank"),
            ("a\tb", "U+0009"),
            (5, "got int"),
        )
    ),
    (update(key="k", title="y"), "key", "is not a known field"),
    (opening(), "intent", "is required for a new session"),
    (opening(intent=None), "intent", "is required for a new session"),
    (opening(session_id="new"), "intent", "is required for a new session"),
    (opening(resume=True), "session_id", "is required with resume"),
    (opening(intent="x", resume=True), "session_id", "is required with resume"),
    (opening(intent="x", resume="yes"), "resume", "expected bool"),
    (opening(intent="x", brief="no"), "brief", "expected bool"),
    (("thought_record_list", {"order": "best"}), "order", "best takes a search"),
    (("thought_record_list", {"order": "best", "search": " "}), "order", "best takes a search"),
    (("thought_record_list", {"order": "worst", "search": "x"}), "order", "allowed values"),
    (("thought_record_list", {"search": "x" * 257}), "search", "length <= 256"),
    (("thought_record_list", {"search": ["x"]}), "search", "got array"),
    (("task_list", {"holder": "no id!"}), "holder", "right form"),
    (("task_list", {"holder": 5}), "holder", "got int"),
    (("merkle_finalize", {}), "session_id", "is required"),
]


def test_what_does_not_fit_is_named_with_what_would(world: tuple[Server, Server]) -> None:
    """Specification 4.11: one issue for one mistake, with its path and what is allowed."""
    server, _ = world
    before = kept(server.project)
    for (tool, arguments), path, said in INVALID:
        (issue,) = issues(server.call(tool, **arguments))
        assert (issue["path"], said in issue["problem"]) == (path, True), (tool, arguments, issue)
        assert issue["allowed"] not in ("", "object", "see the tool's description"), issue
    assert kept(server.project) == before


NOT_OPEN: dict[str, tuple[str, JSON]] = {
    "nobody": ("ERR_SESSION_NOT_FOUND", {"session_id": "nobody"}),
    "sealed": ("ERR_ALREADY_FINALIZED", {"session_id": "sealed", "record_count": 1}),
    "moved": ("ERR_CLAIMED", {"session_id": "moved"}),
}
NO_SESSION: tuple[str, JSON] = ("ERR_SESSION_NOT_FOUND", {"session_id": None})
WRONG = "ERR_INVALID_TRANSITION"
# A call, its code, the details of the error, and what its message suggests.
REFUSED: list[tuple[tuple[str, JSON], str, JSON, str]] = [
    *(
        ((tool, {**asked, "session_id": id}), code, facts, "audit_session_start")
        for tool, asked in (
            create(),
            update(title="y"),
            update(status="GATHER"),
            update(claim=True),
            update(thought=WHY),
            ("task_next_actions", {}),
            ("task_next_actions", {"claim": True}),
            think(),
            ("merkle_finalize", {}),
        )
        for id, (code, facts) in NOT_OPEN.items()
    ),
    (opening(session_id="nobody", resume=True), *NOT_OPEN["nobody"], "audit_session_start"),
    (opening(session_id="sealed", resume=True), *NOT_OPEN["sealed"], "audit_session_start"),
    (opening(intent="x", session_id="mine"), "ERR_SESSION_EXISTS", {}, "resume: true"),
    *(
        (update(task_id="T-0003", **change), "ERR_CLAIMED", HELD, "task_next_actions")
        for change in (
            {"status": "ANALYZE"},
            {"title": "y"},
            {"claim": True},
            {"claim": False},
            {"thought": WHY},
            {"status": "ANALYZE", "expected_version": 99},
            {"depends_on": ["T-0003"]},
        )
    ),
    (update(task_id="T-0005", claim=True), WRONG, {"next_states": [], "to": None}, "final"),
    (update(task_id="T-0005", claim=False), WRONG, {"next_states": []}, "final"),
    (update(task_id="T-0005", thought=WHY), WRONG, {"next_states": []}, "final"),
    (
        update(status=["GATHER", "PLAN"]),
        WRONG,
        {"from": "GATHER", "to": "PLAN", "next_states": ["ANALYZE", "CANCELLED"]},
        "ANALYZE or CANCELLED",
    ),
    (update(status=["INIT"]), WRONG, {"from": "INIT", "to": "INIT"}, "GATHER or CANCELLED"),
    (
        update(status=[*TO_VERIFY, "GATHER"], thought=WHY),
        WRONG,
        {"from": "VERIFY", "to": "GATHER"},
        "leave GATHER out",
    ),
    (
        update(task_id="T-0004", status=[*TO_VERIFY, "DONE"], thought=WHY),
        WRONG,
        {"from": "VERIFY", "to": "DONE"},
        "leave DONE out",
    ),
    (
        update(task_id="T-0004", status=["GATHER", "CANCELLED"], thought=WHY),
        WRONG,
        {"from": "GATHER", "to": "CANCELLED"},
        "leave CANCELLED out",
    ),
    (
        update(status=["CANCELLED", "GATHER"], thought=WHY),
        WRONG,
        {"from": "CANCELLED", "next_states": []},
        "that is final, so leave GATHER out",
    ),
    (
        update(task_id="T-0002", status=TO_VERIFY[:4], thought=WHY),
        "ERR_BLOCKED",
        {"blockers": ["T-0001"]},
        "T-0001 (INIT)",
    ),
    *(
        (
            update(task_id="T-0004", status=to),
            "ERR_WRITEBACK_REQUIRED",
            {"task_id": "T-0004", "attempt": 1},
            "give a thought with the move",
        )
        for to in ("DONE", "CANCELLED", ["DONE"])
    ),
    (
        create(title="another", priority="high", key="k"),
        "ERR_KEY_REUSED",
        {"differ": ["priority", "title"]},
        "a new key",
    ),
    (think(content="another", key="k"), "ERR_KEY_REUSED", {"differ": ["content"]}, "a new key"),
]
WITHOUT_SESSION: list[tuple[tuple[str, JSON], str, JSON, str]] = [
    (update(claim=True), *NO_SESSION, "audit_session_start"),
    (update(thought=WHY), *NO_SESSION, "session_id"),
    (update(task_id="T-0099", claim=True), *NO_SESSION, "session_id"),
    (("task_next_actions", {"claim": True}), *NO_SESSION, "audit_session_start"),
    (think(), *NO_SESSION, "audit_session_start"),
    *(
        (update(task_id="T-0003", **change), "ERR_CLAIMED", HELD, "name it in session_id")
        for change in ({"status": "ANALYZE"}, {"title": "y"}, {"claim": False})
    ),
]


def test_what_breaks_a_rule_is_refused_with_its_facts_and_the_way_on(
    world: tuple[Server, Server],
) -> None:
    """Specification 4.13, 5.15, 6.17, 8.3; pattern B, and pattern A for the trail's tools."""
    before = kept(world[0].project)
    for server, table in zip(world, (REFUSED, WITHOUT_SESSION), strict=True):
        for (tool, arguments), code, facts, way in table:
            result = server.call(tool, **arguments)
            error = said(tool, result)
            assert error["code"] == code, (tool, arguments, error)
            assert {name: error[name] for name in facts} == facts, (tool, arguments, error)
            assert way in error["message"], (tool, arguments, error)
            assert len(json.dumps(error)) < 700
    assert kept(world[0].project) == before


def said(tool: str, result: JSON) -> JSON:
    if tool != "thought_record":
        return refusal(result)
    error = result["structuredContent"]["error"]
    assert (result["isError"], error["code"]) == (True, "HANDLER_ERROR")
    code, _, message = error["message"].partition(": ")
    return {**error["details"], "code": code, "message": message}


def test_a_claim_says_since_when_and_when_its_holder_was_last_seen(
    world: tuple[Server, Server],
) -> None:
    error = refusal(world[0].call("task_update", task_id="T-0003", claim=True))
    assert error["since"] <= error["last_sign"]
    assert set(error) == {
        *("code", "message", "task_id", "holder", "agent", "since", "last_sign", "is_alive"),
        "free",
    }
