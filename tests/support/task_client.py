"""A client of the task tools of a real server, which gives tasks their evidence."""

from pathlib import Path
from typing import Any

from tests.support.client import COLIBRI, JSON, Server
from tests.support.ledger_reader import reading

STATES = ("INIT", "GATHER", "ANALYZE", "PLAN", "APPLY", "VERIFY", "DONE", "CANCELLED")
ZEROS = "0" * 64

# Everything that the task tools keep, and every ledger record that is about a task itself.
KEPT = (
    "SELECT * FROM tasks",
    "SELECT * FROM task_dependencies",
    "SELECT * FROM task_counts",
    "SELECT rowid, text FROM task_search",
    "SELECT seq, leaf FROM ledger WHERE kind IN ('task', 'task.text', 'thought')",
)


class Lab(Server):
    """A client of the task tools."""

    def __init__(self, project: Path) -> None:
        super().__init__(project, COLIBRI)
        self.data("audit_session_start", session_id="lab", intent="so")

    def create(self, title: str = "a task", **fields: Any) -> str:
        """A new task's id."""
        id: str = self.data("task_create", title=title, **fields)["task_id"]
        return id

    def update(self, id: str, **changes: Any) -> JSON:
        return self.data("task_update", task_id=id, **changes)

    def reach(self, state: str, **fields: Any) -> str:
        """A new task in a state, with its evidence."""
        id = self.create(**fields)
        self.think(id)
        steps = STATES[1 : STATES.index(state) + 1] if state != "CANCELLED" else (state,)
        for status in steps:
            self.update(id, status=status)
        return id

    def think(self, id: str) -> None:
        """Give a task its evidence."""
        self.data("thought_record", session_id="lab", task_id=id, type="plan", content="so")

    def refusal(self, tool: str, /, **arguments: Any) -> JSON:
        """Call a tool that must refuse, pattern B; the error."""
        return refusal(self.call(tool, **arguments))

    def invalid(self, tool: str, /, **arguments: Any) -> list[JSON]:
        """Call a tool whose arguments must not fit; the issues."""
        return issues(self.call(tool, **arguments))

    def kept(self) -> dict[str, list[Any]]:
        """All that is stored about tasks, read beside the server."""
        return kept(self.database)


def refusal(result: JSON) -> JSON:
    """The error of a domain refusal: pattern B, and isError for those who look no further."""
    assert result["isError"] is True, result
    content = result["structuredContent"]
    assert (content["ok"], content["data"]["ok"]) == (True, False)
    error: JSON = content["data"]["error"]
    return error


def issues(result: JSON) -> list[JSON]:
    """The issues of a call that stage 2 refused: pattern A."""
    assert result["isError"] is True, result
    content = result["structuredContent"]
    assert (content["ok"], content["error"]["code"]) == (False, "INVALID_PARAMS")
    assert content["error"]["message"].startswith("schema validation failed: ")
    found: list[JSON] = content["error"]["details"]["issues"]
    assert found
    assert all(issue.keys() == {"path", "problem", "allowed"} for issue in found)
    return found


def kept(database: Path) -> dict[str, list[Any]]:
    with reading(database) as db:
        return {query: list(db.execute(query)) for query in KEPT}
