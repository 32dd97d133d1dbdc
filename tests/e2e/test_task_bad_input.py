"""Bad input to the task tools: each is refused in words that help, and nothing is stored."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.client import COLIBRI, JSON, Server
from tests.support.task_client import issues, kept, refusal

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


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A real server with two tasks, T-0001 and T-0002, which depends on it."""
    with Server(tmp_path_factory.mktemp("bad"), COLIBRI) as server:
        server.data("task_create", title="one")
        server.data("task_create", title="two", depends_on=["T-0001"])
        yield server
        assert server.close() == 0


@pytest.fixture(autouse=True)
def nothing_is_stored(server: Server) -> Iterator[None]:
    """Around every test: the same rows and the same task records, before and after."""
    before = kept(server.database)
    yield
    assert kept(server.database) == before


def create(**fields: Any) -> tuple[str, JSON]:
    return "task_create", {"title": "x", **fields}


def update(**fields: Any) -> tuple[str, JSON]:
    return "task_update", {"task_id": "T-0001", **fields}


BAD: list[tuple[tuple[str, JSON], str]] = [
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
]


@pytest.mark.parametrize(
    ("call", "path"),
    BAD,
    ids=[f"{number}-{call[0]}-{path}" for number, (call, path) in enumerate(BAD)],
)
def test_arguments_that_do_not_fit_are_named_with_what_is_allowed(
    server: Server, call: tuple[str, JSON], path: str
) -> None:
    """Design §6 and §7: INVALID_PARAMS with path, what was wrong and what is allowed."""
    tool, arguments = call
    (issue,) = issues(server.call(tool, **arguments))
    assert issue["path"] == path
    assert issue["problem"]
    assert issue["allowed"]


def test_a_refused_value_is_never_repeated(server: Server) -> None:
    """Design §6: never the value itself; it may be a secret, or ten thousand ids."""
    bad: JSON = {"title": f"{SECRET}\0", "priority": SECRET, "depends_on": [SECRET], "status": 1}
    result = server.call("task_create", **bad)
    assert [issue["path"] for issue in issues(result)] == [
        *("status", "title", "priority", "depends_on[0]")
    ]
    assert SECRET not in result["content"][0]["text"]
    long = server.call("task_create", title="x" * 1_000_000, depends_on=MANY)
    assert len(issues(long)) == 2
    assert len(long["content"][0]["text"]) < 1_000


@pytest.mark.parametrize(
    ("call", "code", "facts"),
    [
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
    ],
)
def test_what_fits_but_breaks_a_rule_is_refused_with_its_facts(
    server: Server, call: tuple[str, JSON], code: str, facts: JSON
) -> None:
    """Design §7: the refusals of the task tools, pattern B."""
    tool, arguments = call
    error = refusal(server.call(tool, **arguments))
    assert error["code"] == code
    assert {name: error[name] for name in facts} == facts
    assert error["message"]


@pytest.mark.parametrize(
    "search", ["\0", "ab\0cd", '"', '"""', "'; DROP TABLE tasks; --", "*", "NEAR(", "a" * 256, "-x"]
)
def test_no_search_is_a_fault(server: Server, search: str) -> None:
    """Design §7: words are looked for as they are; none has a meaning of its own."""
    page = server.data("task_list", search=search)
    assert page == {"tasks": [], "total_count": 0, "next_offset": None}
