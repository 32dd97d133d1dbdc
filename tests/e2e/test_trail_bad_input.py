"""What the tools of the trail refuse: clearly, and without keeping anything of it."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from colibri.store.sqlite.opening import open_reader
from tests.support.client import COLIBRI, JSON, Server

# All that a call of these tools could leave behind, beside its own enter and exit.
KEPT = (
    "SELECT * FROM sessions",
    "SELECT * FROM thoughts",
    "SELECT * FROM thought_counts",
    "SELECT * FROM merkle_nodes",
    "SELECT seq, leaf FROM ledger WHERE kind NOT IN ('call.enter', 'call.exit')",
)
THOUGHT: JSON = {"session_id": "open", "type": "plan", "content": "so"}
START: JSON = {"intent": "try"}
LARGEST = 65_536


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """With an open session and a sealed one, each with a thought."""
    with Server(tmp_path_factory.mktemp("project"), COLIBRI) as server:
        for session in ("open", "sealed"):
            server.data("audit_session_start", intent="try", session_id=session)
            server.data("thought_record", **{**THOUGHT, "session_id": session})
        server.data("merkle_finalize", session_id="sealed")
        yield server
        assert server.data("audit_verify_chain")["valid"]
        assert server.close() == 0


def kept(server: Server) -> dict[str, list[Any]]:
    with closing(open_reader(str(server.database))) as db:
        return {query: list(db.execute(query)) for query in KEPT}


INVALID: dict[str, tuple[str, JSON, str, str]] = {
    "no content": ("thought_record", {**THOUGHT, "content": ""}, "content", "length >= 1"),
    "huge content": (
        "thought_record",
        {**THOUGHT, "content": "x" * (LARGEST + 1)},
        "content",
        "length <= 65536",
    ),
    "a control character": (
        "thought_record",
        {**THOUGHT, "content": "so\x1b[2J"},
        "content",
        "U+001B at position 2",
    ),
    "a C1 control": (
        "thought_record",
        {**THOUGHT, "content": "\x9b31m"},
        "content",
        "U+009B at position 0",
    ),
    "content of another type": (
        "thought_record",
        {**THOUGHT, "content": 5},
        "content",
        "expected str",
    ),
    "content of a list": (
        "thought_record",
        {**THOUGHT, "content": ["so"]},
        "content",
        "expected str",
    ),
    "no type": (
        "thought_record",
        {"session_id": "open", "content": "so"},
        "type",
        "is required",
    ),
    "an unknown type": ("thought_record", {**THOUGHT, "type": "doubt"}, "type", "allowed values"),
    "a session id with a path": (
        "thought_record",
        {**THOUGHT, "session_id": "../../etc/passwd"},
        "session_id",
        "right form",
    ),
    "a session id that begins with a dot": (
        "audit_session_start",
        {**START, "session_id": ".hidden"},
        "session_id",
        "right form",
    ),
    "a session id with a line break": (
        "audit_session_start",
        {**START, "session_id": "mine\n"},
        "session_id",
        "right form",
    ),
    "a session id with a NUL": (
        "audit_session_start",
        {**START, "session_id": "mi\0ne"},
        "session_id",
        "right form",
    ),
    "an endless session id": (
        "audit_session_start",
        {**START, "session_id": "s" * 65},
        "session_id",
        "right form",
    ),
    "no session id": ("merkle_finalize", {}, "session_id", "is required"),
    "a session id of null": ("merkle_finalize", {"session_id": None}, "session_id", "expected str"),
    "an unknown field": (
        "thought_record",
        {**THOUGHT, "contents": "so"},
        "contents",
        "did you mean content?",
    ),
    "an agent with bidi controls": (
        "thought_record",
        {**THOUGHT, "agent_id": "ada\u202e"},
        "agent_id",
        "U+202E",
    ),
    "a blank agent": ("thought_record", {**THOUGHT, "agent_id": " "}, "agent_id", "is blank"),
    "a task that is none": ("thought_record", {**THOUGHT, "task_id": "1"}, "task_id", "right form"),
    "no intent": ("audit_session_start", {"intent": ""}, "intent", "length >= 1"),
    "an endless intent": ("audit_session_start", {"intent": "i" * 2_001}, "intent", "<= 2000"),
    "a control in the intent": ("audit_session_start", {"intent": "\x07"}, "intent", "U+0007"),
    "a proof for no thought": (
        "merkle_root",
        {"session_id": "sealed", "proof_for": "7"},
        "proof_for",
        "right form",
    ),
    "a page of nothing": ("thought_record_list", {"limit": 0}, "limit", ">= 1"),
    "a page of everything": ("thought_record_list", {"limit": 501}, "limit", "<= 500"),
    "an offset before the start": ("thought_record_list", {"offset": -1}, "offset", ">= 0"),
    "a session and a task": (
        "audit_verify_chain",
        {"session_id": "open", "task_id": "T-0001"},
        "",
        "give session_id or task_id, not both",
    ),
}


@pytest.mark.parametrize(("tool", "arguments", "path", "problem"), INVALID.values(), ids=INVALID)
def test_arguments_that_do_not_fit_are_refused_with_the_place_and_the_reason(
    server: Server, tool: str, arguments: JSON, path: str, problem: str
) -> None:
    """Design §6: INVALID_PARAMS; every issue with path, what was wrong, what is allowed."""
    before = kept(server)
    result = server.call(tool, **arguments)
    assert result["isError"] is True
    error = result["structuredContent"]["error"]
    assert error["code"] == "INVALID_PARAMS"
    (issue,) = error["details"]["issues"]
    assert issue["path"] == path
    assert problem in issue["problem"]
    assert issue["allowed"]
    assert len(json.dumps(result)) < 3_000  # never the value itself
    assert kept(server) == before


REFUSED: dict[str, tuple[str, JSON, str]] = {
    "a thought in no session": (
        "thought_record",
        {**THOUGHT, "session_id": "nobody"},
        "ERR_SESSION_NOT_FOUND",
    ),
    "a thought in a sealed session": (
        "thought_record",
        {**THOUGHT, "session_id": "sealed"},
        "ERR_ALREADY_FINALIZED",
    ),
    "a thought about no task": (
        "thought_record",
        {**THOUGHT, "task_id": "T-0404"},
        "ERR_NOT_FOUND",
    ),
    "a second seal": ("merkle_finalize", {"session_id": "sealed"}, "ERR_ALREADY_FINALIZED"),
    "a seal of nobody's": ("merkle_finalize", {"session_id": "nobody"}, "ERR_SESSION_NOT_FOUND"),
    "a second start": (
        "audit_session_start",
        {**START, "session_id": "sealed"},
        "ERR_SESSION_EXISTS",
    ),
    "a check of nobody's": (
        "audit_verify_chain",
        {"session_id": "nobody"},
        "ERR_SESSION_NOT_FOUND",
    ),
    "a proof with zeros": (
        "merkle_root",
        {"session_id": "sealed", "proof_for": "R-000000000000008"},
        "ERR_NOT_FOUND",
    ),
}


@pytest.mark.parametrize(("tool", "arguments", "code"), REFUSED.values(), ids=REFUSED)
def test_what_the_rules_forbid_is_refused_by_its_code_and_changes_nothing(
    server: Server, tool: str, arguments: JSON, code: str
) -> None:
    """Design §7; §6: pattern A for ζ, B for η, isError in both."""
    before = kept(server)
    result = server.call(tool, **arguments)
    assert result["isError"] is True
    content = result["structuredContent"]
    if content["ok"]:
        assert content["data"]["error"]["code"] == code
    else:
        assert content["error"]["message"].startswith(f"{code}: ")
    assert kept(server) == before


@pytest.mark.parametrize("text", ["\ud800", "\udfff and on"])
def test_half_a_surrogate_pair_is_no_text_on_the_wire(server: Server, text: str) -> None:
    """Design §5: lone surrogates get -32700 with id null."""
    before = kept(server)
    arguments = {**THOUGHT, "content": text}
    server.post("tools/call", {"name": "thought_record", "arguments": arguments})
    answer = server.answer(None)
    assert answer["error"]["code"] == -32700
    assert kept(server) == before


def test_the_largest_content_and_every_allowed_character_come_back_as_they_were(
    tmp_path: Path,
) -> None:
    """Design §7: lengths count code points; nothing is normalised."""
    texts = [
        "\N{SNOWMAN}" * LARGEST,
        "\N{PILE OF POO}" * LARGEST,
        "line\r\n\ttab",
        "e\u0301 is not \u00e9",
        '{"tool":"x"}\\"',
        "\u202ebidi is prose\ufffe\uffff",
        " ",
    ]
    with Server(tmp_path, COLIBRI) as server:
        server.data("audit_session_start", intent=texts[0][:2_000], session_id="open")
        for text in texts:
            got = server.data("thought_record", **{**THOUGHT, "content": text})
            assert got["content"] == text
        page = server.data("thought_record_list")
        assert [record["content"] for record in page["records"]] == texts
        assert server.data("merkle_finalize", session_id="open")["record_count"] == len(texts)
        assert server.data("audit_verify_chain")["valid"]
        assert server.close() == 0
