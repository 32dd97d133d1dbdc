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


Asked = tuple[str, JSON]


def thought(**fields: Any) -> Asked:
    return "thought_record", {**THOUGHT, **fields}


def start(**fields: Any) -> Asked:
    return "audit_session_start", {"intent": "try", **fields}


def seal(**fields: Any) -> Asked:
    return "merkle_finalize", fields


def page(**fields: Any) -> Asked:
    return "thought_record_list", fields


SEVENTH = ("merkle_root", {"session_id": "sealed", "proof_for": "7"})
BOTH = ("audit_verify_chain", {"session_id": "open", "task_id": "T-0001"})
UNTYPED = ("thought_record", {"session_id": "open", "content": "so"})
# what is asked, where it is wrong, and what is said about it
INVALID: list[tuple[Asked, str, str]] = [
    (thought(content=""), "content", "length >= 1"),
    (thought(content="x" * (LARGEST + 1)), "content", "length <= 65536"),
    (thought(content="so\x1b[2J"), "content", "U+001B at position 2"),
    (thought(content="\x9b31m"), "content", "U+009B at position 0"),
    (thought(content=5), "content", "expected str"),
    (thought(content=["so"]), "content", "expected str"),
    (UNTYPED, "type", "is required"),
    (thought(type="doubt"), "type", "allowed values"),
    (thought(session_id="../../etc/passwd"), "session_id", "right form"),
    (start(session_id=".hidden"), "session_id", "right form"),
    (start(session_id="mine\n"), "session_id", "right form"),
    (start(session_id="mi\0ne"), "session_id", "right form"),
    (start(session_id="s" * 65), "session_id", "right form"),
    (seal(), "session_id", "is required"),
    (seal(session_id=None), "session_id", "expected str"),
    (thought(contents="so"), "contents", "did you mean content?"),
    (thought(agent_id="ada\u202e"), "agent_id", "U+202E"),
    (thought(agent_id=" "), "agent_id", "is blank"),
    (thought(task_id="1"), "task_id", "right form"),
    (start(intent=""), "intent", "length >= 1"),
    (start(intent="i" * 2_001), "intent", "<= 2000"),
    (start(intent="\x07"), "intent", "U+0007"),
    (SEVENTH, "proof_for", "right form"),
    (page(limit=0), "limit", ">= 1"),
    (page(limit=501), "limit", "<= 500"),
    (page(offset=-1), "offset", ">= 0"),
    (BOTH, "", "give session_id or task_id, not both"),
]


@pytest.mark.parametrize(("asked", "path", "problem"), INVALID)
def test_arguments_that_do_not_fit_are_refused_with_the_place_and_the_reason(
    server: Server, asked: Asked, path: str, problem: str
) -> None:
    """Design §6: INVALID_PARAMS; every issue with path, what was wrong, what is allowed."""
    before = kept(server)
    result = server.call(asked[0], **asked[1])
    assert result["isError"] is True
    error = result["structuredContent"]["error"]
    assert error["code"] == "INVALID_PARAMS"
    (issue,) = error["details"]["issues"]
    assert issue["path"] == path
    assert problem in issue["problem"]
    assert issue["allowed"]
    assert len(json.dumps(result)) < 3_000  # never the value itself
    assert kept(server) == before


REFUSED: list[tuple[Asked, str]] = [
    (thought(session_id="nobody"), "ERR_SESSION_NOT_FOUND"),
    (thought(session_id="sealed"), "ERR_ALREADY_FINALIZED"),
    (thought(task_id="T-0404"), "ERR_NOT_FOUND"),
    (seal(session_id="sealed"), "ERR_ALREADY_FINALIZED"),
    (seal(session_id="nobody"), "ERR_SESSION_NOT_FOUND"),
    (start(session_id="sealed"), "ERR_SESSION_EXISTS"),
    (("audit_verify_chain", {"session_id": "nobody"}), "ERR_SESSION_NOT_FOUND"),
    (("merkle_root", {"session_id": "sealed", "proof_for": "R-000000000000008"}), "ERR_NOT_FOUND"),
]


@pytest.mark.parametrize(("asked", "code"), REFUSED)
def test_what_the_rules_forbid_is_refused_by_its_code_and_changes_nothing(
    server: Server, asked: Asked, code: str
) -> None:
    """Design §7; §6: pattern A for ζ, B for η, isError in both."""
    before = kept(server)
    result = server.call(asked[0], **asked[1])
    assert result["isError"] is True
    content = result["structuredContent"]
    if content["ok"]:
        assert content["data"]["error"]["code"] == code
    else:
        assert content["error"]["message"].startswith(f"{code}: ")
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
