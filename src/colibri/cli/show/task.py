"""One task in one line, as every command that shows tasks has it."""

from collections.abc import Mapping, Sequence
from typing import Any

from colibri.cli import terminal

PRIORITIES = {"critical": "bad", "high": "bold"}  # those that stand out


def line(task: Mapping[str, Any], *facts: str, indent: int = 0, state: bool = True) -> None:
    """Its id, its state, its title, and facts about it."""
    id, status, priority = task["task_id"], task["status"], task["priority"]
    named: Sequence[str] = [task[name] for name in ("project", "assignee") if task[name]]
    retried = [f"attempt {task['attempt']}"] if task["attempt"] > 1 else []
    shown: list[terminal.Span] = ["  ", (status, status)] if state else []
    terminal.line(
        " " * indent,
        (id, "bold"),
        *shown,
        f"  {task['title']}  ",
        (priority, PRIORITIES.get(priority, "dim")),
        *((f" · {fact}", "dim") for fact in (*named, *retried, *facts)),
        hang=indent + 2 + len(id),
    )
