"""A real server with one more tool, `think`, which gives a task its evidence; and its client.

Run as a program it serves on stdio like `colibri serve`; it reads the same environment.
"""

import sys
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from colibri.config import load
from colibri.core.modes import Capability
from colibri.server.context import add_tool, create_server, register_catalogue
from colibri.server.transport import Stream, claim_stdout
from colibri.store import sessions, tasks, trail
from colibri.tools.text import TaskId
from colibri.tools.tool import Tool, Work
from tests.support.client import JSON, Server
from tests.support.ledger_reader import reading

TASKLAB = (sys.executable, "-m", "tests.support.task_client")
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
        super().__init__(project, TASKLAB)
        self.data("task_next_actions")  # from here on there is a database beside the server

    def create(self, title: str = "a task", **fields: Any) -> str:
        """A new task's id."""
        id: str = self.data("task_create", title=title, **fields)["task_id"]
        return id

    def update(self, id: str, **changes: Any) -> JSON:
        return self.data("task_update", task_id=id, **changes)

    def reach(self, state: str, **fields: Any) -> str:
        """A new task in a state, with its evidence."""
        id = self.create(**fields)
        self.data("think", task_id=id)
        steps = STATES[1 : STATES.index(state) + 1] if state != "CANCELLED" else (state,)
        for status in steps:
            self.update(id, status=status)
        return id

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


class Think(Struct, forbid_unknown_fields=True):
    task_id: TaskId


class Thought(Struct):
    seq: int


def think(work: Work, args: Think) -> Thought:
    """Append a thought about a task, as thought_record does in a session."""
    tasks.get(work.db, args.task_id)
    session = sessions.find(work.db, "lab") or sessions.start(
        work.db, work.record, "lab", intent="so", task_id=args.task_id, now=work.now
    )
    seq, about = work.next_seq, args.task_id
    trail.record(work.db, work.record, session, seq=seq, type="plan", content="so", task=about)
    return Thought(seq)


THINK = Tool(
    name="think",
    title="Think",
    description="A tool for tests.",
    input=Think,
    output=Thought,
    lane="write",
    capability=Capability.CHANGE,
    pattern="B",
    handler=think,
    idempotent=False,
)


def main() -> int:
    """Serve on stdio."""
    private = claim_stdout()
    ctx = create_server(config=load(), transport=Stream(0, private))
    register_catalogue(ctx)
    add_tool(ctx, THINK)
    ctx.start()
    return ctx.run()


if __name__ == "__main__":
    msgspec.json.encode(None)  # loaded, as a server with tools of its own has it
    sys.exit(main())
