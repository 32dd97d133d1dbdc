"""What the task tools of a real server answer, and all that they keep."""

from pathlib import Path
from typing import Any

from tests.support.client import JSON
from tests.support.ledger_reader import reading

STATES = ("INIT", "GATHER", "ANALYZE", "PLAN", "APPLY", "VERIFY", "DONE", "CANCELLED")

# Everything that the task tools keep, and every ledger record that is about a task itself.
KEPT = (
    "SELECT * FROM tasks",
    "SELECT * FROM task_dependencies",
    "SELECT * FROM task_counts",
    "SELECT rowid, text FROM task_search",
    "SELECT seq, leaf FROM ledger WHERE kind IN ('task', 'task.text', 'thought')",
)


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
