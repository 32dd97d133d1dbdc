"""Query plans: how SQLite executes every statement that some code runs."""

from collections.abc import Callable
from typing import Any

from apsw import (
    SQLITE_DBSTATUS_CACHE_HIT,
    SQLITE_DBSTATUS_CACHE_MISS,
    SQLITE_TRACE_PROFILE,
    SQLITE_TRACE_STMT,
    Connection,
)

from tests.support import engines


def plans(db: Connection, ask: Callable[[], object]) -> str:
    """A line for each step of each plan."""
    engines.require_sqlite("query plans")
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


def steps(db: Connection, ask: Callable[[], object]) -> int:
    """Steps of SQLite's virtual machine: the work done, however busy the machine is. The search
    index's internal work is not included.
    """
    engines.require_sqlite("steps of a statement")
    ours: set[int] = set()
    counted = 0

    def count(event: dict[str, Any]) -> None:
        nonlocal counted
        if event["code"] == SQLITE_TRACE_STMT:
            ours.add(event["id"])
        elif event["id"] in ours:
            counted += event["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"]

    db.trace_v2(SQLITE_TRACE_STMT | SQLITE_TRACE_PROFILE, count)
    try:
        ask()
    finally:
        db.trace_v2(0)
    return counted


def pages(db: Connection, ask: Callable[[], object]) -> int:
    """How many pages of the database were read, including those of the search index."""
    engines.require_sqlite("pages that are read")
    kinds = (SQLITE_DBSTATUS_CACHE_HIT, SQLITE_DBSTATUS_CACHE_MISS)
    for kind in kinds:
        db.status(kind, True)
    ask()
    return sum(db.status(kind)[0] for kind in kinds)
