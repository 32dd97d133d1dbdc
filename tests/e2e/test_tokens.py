"""What Colibri costs an agent in tokens, at four characters per token.

Only the structured part of an answer counts; its text repeats the same.
"""

import json
from collections.abc import Callable
from pathlib import Path

from tests.support.client import COLIBRI, JSON, Server

MOST_TO_LIST, MOST_A_TASK, MOST_INSTRUCTIONS = 4_000, 700, 350
TITLE = "Refuse uploads that are larger than 20 MB, and say so"
DESCRIPTION = (
    "The form takes files of any size, and the worker dies of them. Refuse them in the handler,"
    " with 413 and the limit in the answer; test both sides of it."
)
PLAN = (
    "The handler in src/upload/handler.py reads the whole body before it looks at its length. I"
    " will look at Content-Length first and count while reading, because the header may lie, then"
    " answer 413 with the limit. Tests: one byte below, one above, no header."
)
DONE = (
    "Uploads above 20 MB get 413 with the limit; without the header the reading stops there. Three"
    " new tests pass, and the whole suite with its 214 tests."
)
WORK: list[tuple[str, JSON]] = [
    ("task_next_actions", {"claim": True}),
    (
        "task_update",
        {
            "task_id": "T-0001",
            "status": ["GATHER", "ANALYZE", "PLAN", "APPLY"],
            "thought": {"type": "plan", "content": PLAN},
        },
    ),
    (
        "task_update",
        {
            "task_id": "T-0001",
            "status": ["VERIFY", "DONE"],
            "thought": {"type": "reflection", "content": DONE},
        },
    ),
]


def tokens(value: object) -> float:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":"))) / 4


def test_the_tools_and_the_instructions_are_short(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """Specification 5.5."""
    with Server(tmp_path, COLIBRI, handshake=False) as server:
        told = tokens(server.handshake()["instructions"])
        listed = tokens(server.request("tools/list")["result"])
    record_property("tokens", {"instructions": told, "tools/list": listed})
    assert told <= MOST_INSTRUCTIONS
    assert listed <= MOST_TO_LIST


def test_a_task_is_claimed_worked_and_done_in_three_short_calls(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """Specification 6.15, 8.2."""
    with Server(tmp_path, COLIBRI) as server:
        server.data("task_create", title=TITLE, description=DESCRIPTION, priority="high")
        server.data("audit_session_start", intent="Mend the uploads", agent_id="claude-code")
        spent = []
        for name, arguments in WORK:
            answer = server.request("tools/call", {"name": name, "arguments": arguments})["result"]
            assert answer["isError"] is False
            assert json.loads(answer["content"][0]["text"]) == answer["structuredContent"]
            spent += [tokens([name, arguments]), tokens(answer["structuredContent"])]
            (task,) = answer["structuredContent"]["data"].get("tasks", [None])
            assert task is None or (task["title"], task["description"]) == (TITLE, DESCRIPTION)
        assert server.data("task_get", task_id="T-0001")["status"] == "DONE"
    record_property("tokens", spent)
    assert sum(spent) <= MOST_A_TASK, spent
