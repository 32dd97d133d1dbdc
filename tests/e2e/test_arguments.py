"""What the tools refuse and what they just accept: clear messages, and nothing else is stored."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.client import COLIBRI, JSON, Server
from tests.support.ledger_reader import reading
from tests.support.task_client import issues

SECRET = "hunter2"
MANY = [f"T-{number:04d}" for number in range(1, 10_001)]
CONTROLS = ("\0", "\x07", "\x1b", "\x7f", "\x85", "\x9f")
BIDI = ("\u202a", "\u202e", "\u2066", "\u2069")
VERSIONS: tuple[Any, ...] = (0, -1, "1", 1.5)
LIMITS: tuple[Any, ...] = (-1, 0, 501, "5", 1.5, None, True, [])
BAD_IDS = (
    "T-1;DROP",
    "T-0001; DROP TABLE tasks",
    "T-0001' OR '1'='1",
    "T-0001\n",
    "T-\uff10\uff10\uff10\uff11",
    "t-0001",
    "T-001",
    "T-0001234567",
    "../T-0001",
    "",
    "T-0001" * 100_000,
)
LARGEST = 65_536
THOUGHT: JSON = {"session_id": "open", "type": "plan", "content": "so"}
# Everything that a call of these tools could leave behind, besides its own enter and exit.
KEPT = (
    "SELECT * FROM tasks",
    "SELECT * FROM task_dependencies",
    "SELECT * FROM task_counts",
    "SELECT count(*) FROM task_search",
    "SELECT * FROM sessions",
    "SELECT * FROM thoughts",
    "SELECT * FROM thought_counts",
    "SELECT * FROM merkle_nodes",
    "SELECT seq, leaf FROM ledger WHERE kind NOT IN ('call.enter', 'call.exit')",
)


@pytest.fixture(scope="module")
def server(engine: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """With T-0001, T-0002 depending on it, an open session, and a sealed one with thoughts."""
    with Server(tmp_path_factory.mktemp("bad"), COLIBRI) as server:
        server.data("task_create", title="one")
        server.data("task_create", title="two", depends_on=["T-0001"])
        for session in ("open", "sealed"):
            server.data("audit_session_start", intent="try", session_id=session)
            server.data("thought_record", **{**THOUGHT, "session_id": session})
        server.data("merkle_finalize", session_id="sealed")
        yield server
        found = server.data("audit_verify_chain")
        assert found["valid"], found
        assert server.close() == 0


@pytest.fixture
def unchanged(server: Server) -> Iterator[Server]:
    """The same rows and the same records, before and after."""

    def kept() -> dict[str, list[Any]]:
        with reading(server.database) as db:
            return {query: list(db.execute(query)) for query in KEPT}

    before = kept()
    yield server
    assert kept() == before


Asked = tuple[str, JSON]


def create(**fields: Any) -> Asked:
    return "task_create", {"title": "x", **fields}


def update(**fields: Any) -> Asked:
    return "task_update", {"task_id": "T-0001", **fields}


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
# The call, the path of the mistake, and the message.
INVALID: list[tuple[Asked, str] | tuple[Asked, str, str]] = [
    *((create(title=f"a{mark}b"), "title") for mark in CONTROLS + BIDI + ("\n", "\t")),
    *((update(title=f"a{mark}b"), "title") for mark in CONTROLS + BIDI),
    *((create(**{name: f"a{mark}"}), name) for name in ("project", "assignee") for mark in BIDI),
    *((update(description=f"a{mark}"), "description") for mark in CONTROLS),
    *((create(title=blank), "title") for blank in ("", " ", "\u3000", "\u00a0 ")),
    *((create(**{name: " "}), name) for name in ("project", "assignee")),
    *((update(**{name: ""}), name) for name in ("project", "assignee")),
    (create(title="x" * 257), "title"),
    (create(title="x" * 3_000_000), "title"),
    (create(description="x" * 8_001), "description"),
    (create(project="x" * 129), "project"),
    *((("task_get", {"task_id": id}), "task_id") for id in BAD_IDS),
    *((("task_update", {"task_id": id, "title": "y"}), "task_id") for id in BAD_IDS),
    *((create(depends_on=["T-0001", id]), "depends_on[1]") for id in BAD_IDS[:6]),
    (create(depends_on=MANY), "depends_on"),
    (update(depends_on=MANY[:101]), "depends_on"),
    (create(depends_on="T-0001"), "depends_on"),
    (create(depends_on={"T-0001": 1}), "depends_on"),
    (create(depends_on=[1]), "depends_on[0]"),
    (create(depends_on=[["T-0001"]]), "depends_on[0]"),
    (update(depends_on=None), "depends_on"),
    *((create(title=value), "title") for value in (None, 1, True, ["x"], {"x": 1})),
    *((create(priority=value), "priority") for value in ("urgent", "HIGH", 3, None)),
    *((update(status=value), "status") for value in ("READY", "done", "", 1, None)),
    *((update(title=value), "title") for value in (None, 7)),
    *((update(title="y", expected_version=value), "expected_version") for value in VERSIONS),
    *((("task_list", {"limit": value}), "limit") for value in LIMITS),
    *((("task_next_actions", {"limit": value}), "limit") for value in (*LIMITS, 101)),
    *((("task_list", {"offset": value}), "offset") for value in (-1, "0", 0.5)),
    (("task_list", {"status": "OPEN"}), "status"),
    (("task_list", {"search": "x" * 257}), "search"),
    (("task_list", {"search": 1}), "search"),
    (("task_list", {"project": "a\u202eb"}), "project"),
    (create(colour="red"), "colour"),
    (create(task_id="T-0009"), "task_id"),
    (update(version=3), "version"),
    (("task_get", {"task_id": "T-0001", "deep": True}), "deep"),
    (("task_next_actions", {"offset": 1}), "offset"),
    (create(project="p", project_id="p"), "project_id"),
    (update(project="p", project_id="q"), "project_id"),
    (("task_get", {"task_id": "T-0001", "id": "T-0001"}), "id"),
    (("task_update", {"task_id": "T-0001", "id": "T-0002", "title": "y"}), "id"),
    (("task_create", {}), "title"),
    (("task_get", {}), "task_id"),
    (("task_update", {"title": "y"}), "task_id"),
    (("task_update", {"task_id": "T-0001"}), ""),
    (("task_update", {"task_id": "T-0001", "expected_version": 1}), ""),
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
    (("skill_list", {"capability": "fly"}), "capability"),
    (("skill_list", {"search": "x" * 257}), "search"),
    (("skill_list", {"serch": "x"}), "serch", "did you mean search?"),
]


def test_arguments_that_do_not_fit_are_named_with_what_is_allowed(unchanged: Server) -> None:
    """Specification 4.11, 5.8: INVALID_PARAMS with path, what was wrong and what is allowed."""
    for (tool, arguments), path, *problem in INVALID:
        result = unchanged.call(tool, **arguments)
        (issue,) = issues(result)
        assert issue["path"] == path, (tool, arguments)
        assert "".join(problem) in issue["problem"] and issue["problem"], (tool, arguments)
        assert issue["allowed"], (tool, arguments)
        assert len(json.dumps(result)) < 3_000  # never the value itself


def test_a_refused_value_is_never_repeated(unchanged: Server) -> None:
    """Specification 4.12: never the value itself; it may be a secret, or ten thousand ids."""
    bad: JSON = {"title": f"{SECRET}\0", "priority": SECRET, "depends_on": [SECRET], "status": 1}
    result = unchanged.call("task_create", **bad)
    assert [issue["path"] for issue in issues(result)] == [
        *("status", "title", "priority", "depends_on[0]")
    ]
    assert SECRET not in result["content"][0]["text"]
    long = unchanged.call("task_create", title="x" * 1_000_000, depends_on=MANY)
    assert len(issues(long)) == 2
    assert len(long["content"][0]["text"]) < 1_000


REFUSED: list[tuple[Asked, str, JSON]] = [
    (update(depends_on=["T-0001"]), "ERR_CYCLE", {"cycle": ["T-0001", "T-0001"]}),
    (
        update(depends_on=["T-0002"]),
        "ERR_CYCLE",
        {"cycle": ["T-0001", "T-0002", "T-0001"]},
    ),
    (create(depends_on=["T-0003"]), "ERR_NOT_FOUND", {"task_id": "T-0003"}),
    (create(depends_on=["T-00001"]), "ERR_NOT_FOUND", {"task_id": "T-00001"}),
    (create(depends_on=MANY[:100]), "ERR_NOT_FOUND", {"task_id": "T-0003"}),
    (update(depends_on=["T-999999999"]), "ERR_NOT_FOUND", {"task_id": "T-999999999"}),
    (("task_get", {"id": "T-0003"}), "ERR_NOT_FOUND", {"task_id": "T-0003"}),
    (update(title="y", expected_version=2**53 - 1), "ERR_VERSION_CONFLICT", {}),
    (thought(session_id="nobody"), "ERR_SESSION_NOT_FOUND", {}),
    (thought(session_id="sealed"), "ERR_ALREADY_FINALIZED", {}),
    (thought(task_id="T-0404"), "ERR_NOT_FOUND", {}),
    (seal(session_id="sealed"), "ERR_ALREADY_FINALIZED", {}),
    (seal(session_id="nobody"), "ERR_SESSION_NOT_FOUND", {}),
    (start(session_id="sealed"), "ERR_SESSION_EXISTS", {}),
    (("audit_verify_chain", {"session_id": "nobody"}), "ERR_SESSION_NOT_FOUND", {}),
    (
        ("merkle_root", {"session_id": "sealed", "proof_for": "R-000000000000008"}),
        "ERR_NOT_FOUND",
        {},
    ),
]


def test_what_fits_but_breaks_a_rule_is_refused_with_its_facts(unchanged: Server) -> None:
    """Specification 4.7, 4.13, 5.16: pattern A of the trail, B of the seals, isError in both."""
    for (tool, arguments), code, facts in REFUSED:
        result = unchanged.call(tool, **arguments)
        assert result["isError"] is True
        content = result["structuredContent"]
        if content["ok"]:
            error = content["data"]["error"]
            assert error["code"] == code and error["message"], (tool, arguments)
            assert {name: error[name] for name in facts} == facts
        else:
            assert content["error"]["message"].startswith(f"{code}: "), (tool, arguments)


@pytest.mark.parametrize(
    "search", ['"', '"""', "'; DROP TABLE tasks; --", "*", "NEAR(", "a" * 256, "-x"]
)
def test_no_search_causes_an_error(unchanged: Server, search: str) -> None:
    """Specification 5.12: words are searched literally; none has a special meaning."""
    page = unchanged.data("task_list", search=search)
    assert page == {"tasks": [], "total_count": 0, "next_offset": None}


@pytest.mark.parametrize("search", ["\0", "ab\0cd", "\x1b[2J"])
def test_a_search_for_control_characters_is_refused(unchanged: Server, search: str) -> None:
    """Specification 5.8: no text can hold them, so that none could be found."""
    content = unchanged.call("task_list", search=search)["structuredContent"]
    (problem,) = content["error"]["details"]["issues"]
    assert (problem["path"], content["error"]["code"]) == ("search", "INVALID_PARAMS")


# What is just accepted.


@pytest.fixture(scope="module")
def limits(engine: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("limits"), COLIBRI) as server:
        yield server
        assert server.close() == 0


@pytest.mark.parametrize(
    "fields",
    [
        {"title": "x" * 256},
        {"title": "🦜" * 256},
        {"title": "e\u0301"},
        {"title": "العربية עברית"},
        {"title": "x", "description": "🦜" * 8_000},
        {"title": "x", "description": "a\n\tb\r\n\u202eprose\u202c"},
        {"title": "x", "description": ""},
        {"title": "x", "project": "p" * 128, "assignee": "Ada Lovelace"},
        {"title": "'; DROP TABLE tasks; --", "project": '"', "assignee": "%"},
    ],
)
def test_text_at_its_limit_comes_back_unchanged(limits: Server, fields: JSON) -> None:
    """Specification 5.7: lengths count code points; nothing is normalised."""
    made = limits.data("task_create", **fields)
    shown = limits.data("task_get", task_id=made["task_id"])
    for name, value in fields.items():
        assert shown[name] == value


def test_a_hundred_dependencies_and_each_twice_are_one_hundred(limits: Server) -> None:
    """Specification 6.9: at most 100 ids, in the order given, without duplicates."""
    ids = [limits.data("task_create", title="x")["task_id"] for _ in range(100)]
    made = limits.data("task_create", title="x", depends_on=ids[::-1])
    assert made["depends_on"] == ids[::-1]
    detail = limits.data("task_get", id=made["task_id"])
    assert detail["blockers"] == ids[::-1]
    half = ids[:50] * 2
    assert limits.data("task_update", id=made["task_id"], depends_on=half)["depends_on"] == ids[:50]


def test_aliases_are_other_names_of_the_same_fields(limits: Server) -> None:
    """Specification 5.10: project (also project_id), task_id (also id)."""
    made = limits.data("task_create", title="x", project_id="alias")
    assert made["project"] == "alias"
    assert limits.data("task_get", id=made["task_id"])["title"] == "x"
    assert limits.data("task_list", project_id="alias")["total_count"] == 1
    assert limits.data("task_next_actions", project_id="alias")["total_count"] == 1
    cleared = limits.data("task_update", id=made["task_id"], project_id=None)
    assert (cleared["project"], cleared["version"]) == (None, 2)


def test_the_defaults_are_those_of_the_description(limits: Server) -> None:
    """Specification 5.1: priority medium; limit 50 for lists and 10 for the queue."""
    for _ in range(60):
        limits.data("task_create", title="x", project="many")
    page = limits.data("task_list", project="many")
    assert (len(page["tasks"]), page["total_count"], page["next_offset"]) == (50, 60, 50)
    rest = limits.data("task_list", project="many", offset=page["next_offset"])
    assert (len(rest["tasks"]), rest["next_offset"]) == (10, None)
    queue = limits.data("task_next_actions", project="many")
    assert (len(queue["tasks"]), queue["total_count"]) == (10, 60)
    assert {task["priority"] for task in queue["tasks"]} == {"medium"}
    assert len(limits.data("task_list", project="many", limit=500)["tasks"]) == 60
    assert len(limits.data("task_next_actions", project="many", limit=100)["tasks"]) == 60


def test_rows_of_a_list_leave_out_description_and_depends_on(limits: Server) -> None:
    """Specification 5.11: rows in lists leave out description and depends_on."""
    made = limits.data("task_create", title="x", project="rows", description="d")
    (row,) = limits.data("task_list", project="rows")["tasks"]
    left_out = ("description", "depends_on", "repeated")
    assert row == {name: value for name, value in made.items() if name not in left_out}
    (action,) = limits.data("task_next_actions", project="rows")["tasks"]
    needs = {"CANCELLED": ["a thought about this attempt"]}
    assert action == {**row, "next_states": ["GATHER", "CANCELLED"], "needs": needs}


def test_the_largest_content_and_every_allowed_character_come_back_as_they_were(
    tmp_path: Path,
) -> None:
    """Specification 5.7: lengths count code points; nothing is normalised."""
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
        found = server.data("audit_verify_chain")
        assert found["valid"], found
        assert server.close() == 0
