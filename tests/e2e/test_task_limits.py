"""What the task tools just still take: each limit is met by the value at its edge."""

from collections.abc import Iterator

import pytest

from tests.support.client import COLIBRI, JSON, Server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
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
def test_text_at_its_limit_comes_back_as_it_was_given(server: Server, fields: JSON) -> None:
    """Design §7: lengths count code points; nothing is normalised."""
    made = server.data("task_create", **fields)
    shown = server.data("task_get", task_id=made["task_id"])
    for name, value in fields.items():
        assert shown[name] == value


def test_a_hundred_dependencies_and_each_twice_are_one_hundred(server: Server) -> None:
    """Design §7: depends_on ≤ 100 ids; §8: in the order given, without duplicates."""
    ids = [server.data("task_create", title="x")["task_id"] for _ in range(100)]
    made = server.data("task_create", title="x", depends_on=ids[::-1])
    assert made["depends_on"] == ids[::-1]
    detail = server.data("task_get", id=made["task_id"])
    assert detail["blockers"] == ids[::-1]
    half = ids[:50] * 2
    assert server.data("task_update", id=made["task_id"], depends_on=half)["depends_on"] == ids[:50]


def test_aliases_are_other_names_of_the_same_fields(server: Server) -> None:
    """Design §7: project (also project_id), task_id (also id)."""
    made = server.data("task_create", title="x", project_id="alias")
    assert made["project"] == "alias"
    assert server.data("task_get", id=made["task_id"])["title"] == "x"
    assert server.data("task_list", project_id="alias")["total_count"] == 1
    assert server.data("task_next_actions", project_id="alias")["total_count"] == 1
    cleared = server.data("task_update", id=made["task_id"], project_id=None)
    assert (cleared["project"], cleared["version"]) == (None, 2)


def test_the_defaults_are_those_of_the_description(server: Server) -> None:
    """Design §7: priority medium; limit 50 for lists and 10 for the queue."""
    for _ in range(60):
        server.data("task_create", title="x", project="many")
    page = server.data("task_list", project="many")
    assert (len(page["tasks"]), page["total_count"], page["next_offset"]) == (50, 60, 50)
    rest = server.data("task_list", project="many", offset=page["next_offset"])
    assert (len(rest["tasks"]), rest["next_offset"]) == (10, None)
    queue = server.data("task_next_actions", project="many")
    assert (len(queue["tasks"]), queue["total_count"]) == (10, 60)
    assert {task["priority"] for task in queue["tasks"]} == {"medium"}
    assert len(server.data("task_list", project="many", limit=500)["tasks"]) == 60
    assert len(server.data("task_next_actions", project="many", limit=100)["tasks"]) == 60


def test_rows_of_a_list_leave_out_description_and_depends_on(server: Server) -> None:
    """Design §7: rows in lists leave out description and depends_on."""
    made = server.data("task_create", title="x", project="rows", description="d")
    (row,) = server.data("task_list", project="rows")["tasks"]
    assert row == {
        name: value for name, value in made.items() if name not in ("description", "depends_on")
    }
    (action,) = server.data("task_next_actions", project="rows")["tasks"]
    assert action == {**row, "next_states": ["GATHER", "CANCELLED"], "needs": {}}
