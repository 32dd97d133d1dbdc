"""How SQLite goes about what it is asked: the plan of every statement that some code runs."""

from collections.abc import Callable
from typing import Any

from apsw import Connection


def plans(db: Connection, ask: Callable[[], object]) -> str:
    """A line for each step of each plan."""
    asked: list[tuple[str, Any]] = []

    def note(cursor: object, sql: str, values: Any) -> bool:
        asked.append((sql, values))
        return True

    db.exec_trace = note
    try:
        ask()
    finally:
        db.exec_trace = None
    found = [
        row[3] for sql, values in asked for row in db.execute(f"EXPLAIN QUERY PLAN {sql}", values)
    ]
    return "".join(f"{step}\n" for step in found)
