"""Finds rows of tasks that do not match the records or one another.

Reads through raw.py: somebody may have stored bytes that are not text.
"""

from collections.abc import Iterator
from typing import Any

from colibri.core.check.tasks import Tasks
from colibri.store.connection import Connection
from colibri.store.sqlite import search
from colibri.store.tasks import BLOCK, COLUMNS, NUMBERS, get, task_id


def of_task(db: Connection, id: str, replay: Tasks) -> Iterator[str]:
    """How the row of one task differs from its records."""
    row = {**get(db, id)._asdict(), "depends_on": list(get(db, id).depends_on)}
    if (problem := replay.compare(row)) is not None:
        yield problem


def altered(db: Connection, replay: Tasks) -> Iterator[str]:
    """Each row that its records do not explain or that is missing; also derived rows and counts."""
    dependencies = _all_dependencies(db)
    left = set(replay.known)
    indexed = search.known(db)
    for row, text in _rows_and_texts(db):
        id = row["task_id"]
        row["depends_on"] = dependencies.pop(row["number"], [])
        left.discard(id)
        if (problem := replay.compare(row)) is not None:
            yield problem
        elif text != _text(row, indexed):
            yield f"{id}: the search index has another text"
    for id in sorted(left):
        yield f"{id}: its row is missing"
    for number in dependencies:
        yield f"{task_id(number)}: it has dependencies, but no row"
    for number in search.without_task(db):
        yield f"{task_id(number)}: the search index has it, but it has no row"
    rows = db.execute("SELECT task, CAST(session AS BLOB) FROM lost_claims")
    lost = {(task_id(number), session.decode(errors="surrogateescape")) for number, session in rows}
    if lost != replay.lost:
        yield "lost_claims does not say from which sessions tasks were taken"
    if db.execute(_WRONG_COUNTS).get:
        yield "the totals in task_counts are not those of the rows"


def _text(row: dict[str, Any], indexed: int) -> str | None:
    """The text of a row that the index must have."""
    known = row["number"] <= indexed
    return search.folded(row["title"], row["description"]) if known else None


def _rows_and_texts(db: Connection) -> Iterator[tuple[dict[str, Any], str | None]]:
    """Every row and its text in the index. Bytes that are not text become lone surrogates."""
    columns = ", ".join(name if name in NUMBERS else f"CAST({name} AS BLOB)" for name in COLUMNS)
    rows = db.execute(
        f"SELECT {columns}, CAST(s.text AS BLOB) FROM tasks"
        " LEFT JOIN task_search AS s ON s.rowid = number ORDER BY number"
    )
    for values in rows:
        *row, text = (
            value.decode(errors="surrogateescape") if isinstance(value, bytes) else value
            for value in values
        )
        yield dict(zip(COLUMNS, row, strict=True)), text


# Counts: computed from the rows, and as stored.
_COUNTED = f"""
    SELECT '', coalesce(project, ''), coalesce(assignee, ''), status, is_ready, 0, count(*)
    FROM tasks GROUP BY 2, 3, 4, 5
    UNION ALL SELECT 'status', '', '', status, 0, number / {BLOCK:d}, count(*)
    FROM tasks GROUP BY 4, 6
    UNION ALL SELECT 'project', project, '', '', 0, number / {BLOCK:d}, count(*)
    FROM tasks WHERE project IS NOT NULL GROUP BY 2, 6
    UNION ALL SELECT 'assignee', '', assignee, '', 0, number / {BLOCK:d}, count(*)
    FROM tasks WHERE assignee IS NOT NULL GROUP BY 3, 6
"""
_STORED = "SELECT field, project, assignee, status, is_ready, block, n FROM task_counts WHERE n > 0"
_WRONG_COUNTS = f"""
    SELECT EXISTS (SELECT * FROM ({_COUNTED}) EXCEPT {_STORED})
        OR EXISTS ({_STORED} EXCEPT SELECT * FROM ({_COUNTED}))
"""


def _all_dependencies(db: Connection) -> dict[int, list[str]]:
    """By the task's number; a position that breaks the sequence is included."""
    found: dict[int, list[str]] = {}
    for task, position, other in db.execute(
        "SELECT task, position, depends_on FROM task_dependencies ORDER BY task, position"
    ):
        names = found.setdefault(task, [])
        names.append(task_id(other) + (f" at {position}" if position != len(names) else ""))
    return found
