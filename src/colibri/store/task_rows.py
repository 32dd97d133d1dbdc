"""Finds rows of tasks that do not match the records or one another.

Reads through the engine: somebody may have stored bytes that are not text.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

from colibri.core.check.tasks import Tasks
from colibri.store.connection import Connection
from colibri.store.tasks import BLOCK, COLUMNS, NUMBERS, folded, get, task_id

_TEXTS = {*COLUMNS} - NUMBERS


def ask(db: Connection) -> None:
    """Look ahead to what `altered` reads."""
    search = db.engine.task_search
    reads = (_all_dependencies, search.known, _lost, _has_wrong_counts)
    rows = (lambda: next(search.texts(db), None), lambda: next(_rows(db), None))
    db.look_ahead((*(partial(read, db) for read in reads), *rows))


def of_task(db: Connection, id: str, replay: Tasks) -> Iterator[str]:
    """How the row of one task differs from its records."""
    row = {**get(db, id)._asdict(), "depends_on": list(get(db, id).depends_on)}
    if (problem := replay.compare(row)) is not None:
        yield problem


def altered(db: Connection, replay: Tasks) -> Iterator[str]:
    """Each row that its records do not explain or that is missing; also derived rows and counts."""
    dependencies = _all_dependencies(db)
    left = set(replay.known)
    search = db.engine.task_search
    indexed, texts = search.known(db), _Texts(search.texts(db))
    for values in _rows(db):
        row: dict[str, Any] = dict(zip(COLUMNS, values, strict=True))
        id, number = row["task_id"], row["number"]
        wanted = folded(row["title"], row["description"]) if number <= indexed else None
        text = texts.of(number)
        row["depends_on"] = dependencies.pop(number, [])
        left.discard(id)
        if (problem := replay.compare(row)) is not None:
            yield problem
        elif text != wanted:
            yield f"{id}: the search index has another text"
    for id in sorted(left):
        yield f"{id}: its row is missing"
    for number in dependencies:
        yield f"{task_id(number)}: it has dependencies, but no row"
    for number in texts.left():
        yield f"{task_id(number)}: the search index has it, but it has no row"
    if _lost(db) != replay.lost:
        yield "lost_claims does not say from which sessions tasks were taken"
    if _has_wrong_counts(db):
        yield "the totals in task_counts are not those of the rows"


class _Texts:
    """The texts of the search index, to be asked for in the order of their numbers."""

    def __init__(self, texts: Iterator[tuple[int, str]]) -> None:
        self._texts = texts
        self._next = next(texts, None)
        self._passed: list[int] = []

    def of(self, number: int) -> str | None:
        """The text of a task, if the index has it."""
        while self._next is not None and self._next[0] < number:
            self._passed.append(self._take()[0])
        is_there = self._next is not None and self._next[0] == number
        return self._take()[1] if is_there else None

    def left(self) -> list[int]:
        """The numbers that nobody asked for."""
        while self._next is not None:
            self._passed.append(self._take()[0])
        return self._passed

    def _take(self) -> tuple[int, str]:
        assert self._next is not None
        taken, self._next = self._next, next(self._texts, None)
        return taken


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
_STORED = (
    "SELECT field, project, assignee, status, is_ready, block, n FROM task_counts WHERE n <> 0"
)
_WRONG_COUNTS = f"""
    SELECT EXISTS (SELECT * FROM ({_COUNTED}) AS counted EXCEPT {_STORED})
        OR EXISTS ({_STORED} EXCEPT SELECT * FROM ({_COUNTED}) AS counted)
"""


def _has_wrong_counts(db: Connection) -> bool:
    return bool(db.execute(_WRONG_COUNTS).get)


def _rows(db: Connection) -> Iterator[tuple[Any, ...]]:
    return db.engine.rows(db, COLUMNS, "FROM tasks ORDER BY number", texts=_TEXTS)


def _lost(db: Connection) -> set[tuple[str, str]]:
    rows = db.engine.rows(db, ("task", "session"), "FROM lost_claims", texts=("session",))
    return {(task_id(number), session) for number, session in rows}


def _all_dependencies(db: Connection) -> dict[int, list[str]]:
    """By the task's number; a position that breaks the sequence is included."""
    found: dict[int, list[str]] = {}
    for task, position, other in db.execute(
        "SELECT task, position, depends_on FROM task_dependencies ORDER BY task, position"
    ):
        names = found.setdefault(task, [])
        names.append(task_id(other) + (f" at {position}" if position != len(names) else ""))
    return found
