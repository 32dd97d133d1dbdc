"""Tasks as they are: the tables `tasks`, `task_dependencies` and `task_counts`.

The rows are a projection of the ledger's records; task_changes.py writes both. task_counts gives
totals and finds a page far into a list; triggers keep it, so that no answer has to count rows or
walk over them.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from colibri.core.canonical import MAX_INTEGER
from colibri.core.errors import Refused
from colibri.core.replay import Replay
from colibri.core.states import NEEDS_DEPENDENCIES, TRANSITIONS, Status
from colibri.store import search as index
from colibri.store.connection import Connection, Cursor

MAX_NAMED = 20  # how many tasks a sentence names
BY_ID = "number = CAST(substr(?1, 3) AS INTEGER) AND task_id = ?1"  # an id says where its row is
BLOCK = 1024  # the numbers that a row of task_counts counts; its triggers know it too

_COLUMNS = (
    "number",
    "task_id",
    "title",
    "description",
    "project",
    "priority",
    "assignee",
    "status",
    "attempt",
    "version",
    "created_at",
    "updated_at",
    "attempt_seq",
    "open_dependencies",
)
_NUMBERS = frozenset({"number", "attempt", "version", "attempt_seq", "open_dependencies"})
_SELECT = f"SELECT {', '.join(_COLUMNS)} FROM tasks"


class Listed(NamedTuple):
    """What a list tells of a task."""

    number: int
    task_id: str
    title: str
    project: str | None
    priority: str
    assignee: str | None
    status: str
    attempt: int
    version: int
    created_at: str
    updated_at: str
    attempt_seq: int
    open_dependencies: int


_LIST = f"SELECT {', '.join(Listed._fields)} FROM tasks"


@dataclass(frozen=True, slots=True)
class Task:
    """A row, with the ids that it depends on."""

    number: int
    task_id: str
    title: str
    description: str | None
    project: str | None
    priority: str
    assignee: str | None
    status: Status
    attempt: int
    version: int
    created_at: str
    updated_at: str
    attempt_seq: int  # of the record that began the current attempt
    open_dependencies: int
    depends_on: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which tasks a list shows; None means any."""

    status: str | None = None
    project: str | None = None
    assignee: str | None = None


def task_id(number: int) -> str:
    """T-0001, with a fifth digit after 9999."""
    return f"T-{number:04d}"


def get(db: Connection, id: str) -> Task:
    """A task by its id; ERR_NOT_FOUND."""
    row = db.execute(f"{_SELECT} WHERE {BY_ID}", (id,)).get
    if row is None:
        message = f"there is no task {id}: task_list shows the tasks there are"
        raise Refused("ERR_NOT_FOUND", message, task_id=id)
    return _task(db, dict(zip(_COLUMNS, row, strict=True)))


def next_states(task: Task | Listed) -> tuple[Status, ...]:
    """The moves that the state machine allows."""
    return TRANSITIONS[Status(task.status)]


def needs(db: Connection, task: Task | Listed) -> dict[str, list[str]]:
    """What each legal move still needs; moves that need nothing are left out."""
    missing: dict[str, list[str]] = {}
    for status in next_states(task):
        if status in NEEDS_DEPENDENCIES and task.open_dependencies:
            names = named(blockers(db, task.number))
            missing[status] = [f"dependencies that are DONE or CANCELLED: {names}"]
        if status == Status.DONE and not has_evidence(db, task):
            need = f"a thought about this attempt: thought_record with task_id {task.task_id}"
            missing.setdefault(status, []).append(need)
    return missing


def blockers(db: Connection, number: int) -> list[str]:
    """The open dependencies of a task, in their order."""
    rows = db.execute(
        "SELECT t.task_id, t.status FROM task_dependencies AS d JOIN tasks AS t"
        " ON t.number = d.depends_on WHERE d.task = ? AND t.status NOT IN ('DONE', 'CANCELLED')"
        " ORDER BY d.position",
        (number,),
    )
    return [f"{id} ({status})" for id, status in rows]


def named(found: Sequence[str]) -> str:
    """A list in words, of which only the beginning is named."""
    more = len(found) - MAX_NAMED
    return ", ".join(found[:MAX_NAMED]) + (f" and {more} more" if more > 0 else "")


def find(
    db: Connection, wanted: Filter, *, search: str | None, limit: int, offset: int
) -> tuple[list[Listed], int]:
    """A page of tasks, oldest first, and how many match in all."""
    rows, total = _find(db, _LIST, wanted, search, limit, offset)
    return [Listed._make(row) for row in rows], total


def find_json(
    db: Connection,
    columns: Iterable[str],
    wanted: Filter,
    *,
    search: str | None,
    limit: int,
    offset: int,
) -> tuple[list[str], int]:
    """The same, each task as the RFC 8785 text of some columns; ValueError where it has none.

    SQLite makes that of a row sooner than a row of Python values.
    """
    names = sorted(columns)
    members = ", ".join(f"'{name}', {name}" for name in names)
    beyond = " OR ".join(f"{name} > {MAX_INTEGER:d}" for name in names if name in _NUMBERS)
    select = f"SELECT json_object({members}), {beyond or 'false'} FROM tasks"
    rows, total = _find(db, select, wanted, search, limit, offset)
    found = []
    for text, is_inexact in rows:
        if is_inexact:  # nobody but a forger has counted so far
            raise ValueError(f"a task has a number beyond 2^53-1: {text}")
        found.append(text)
    return found, total


def ready(db: Connection, wanted: Filter, *, limit: int) -> tuple[list[Listed], int]:
    """The queue: neither terminal nor blocked; by priority, then progress, then age."""
    clause, values = _clause(wanted)
    rows = db.execute(
        f"{_LIST} WHERE is_ready{clause} ORDER BY urgency, remaining, number LIMIT ?",
        (*values, limit),
    )
    return [Listed._make(row) for row in rows], _count(db, wanted, only_ready=True)


def has_evidence(db: Connection, task: Task | Listed) -> bool:
    row = db.execute(
        "SELECT 1 FROM thoughts WHERE task = ? AND seq > ? LIMIT 1",
        (task.task_id, task.attempt_seq),
    ).get
    return row is not None


# Rows.


def _task(db: Connection, row: dict[str, Any]) -> Task:
    depends_on = db.execute(
        "SELECT t.task_id FROM task_dependencies AS d JOIN tasks AS t ON t.number = d.depends_on"
        " WHERE d.task = ? ORDER BY d.position",
        (row["number"],),
    )
    row["status"] = Status(row["status"])
    return Task(**row, depends_on=tuple(other for (other,) in depends_on))


def _find(
    db: Connection, select: str, wanted: Filter, search: str | None, limit: int, offset: int
) -> tuple[Cursor, int]:
    if search is not None and search.split():
        matches = index.find(db, search, *_clause(wanted))
        query = f"{select} WHERE number IN (SELECT value FROM json_each(?)) ORDER BY number"
        page = json.dumps(matches[offset : offset + limit])
        return db.execute(query, (page,)), len(matches)
    total = _count(db, wanted)
    return _page(db, select, wanted, limit, offset), total


def _given(wanted: Filter) -> dict[str, str]:
    names = ("status", "project", "assignee")
    return {name: value for name in names if (value := getattr(wanted, name)) is not None}


def _clause(wanted: Filter) -> tuple[str, list[str]]:
    """The conditions of a filter, from constant pieces; values are always bound."""
    given = _given(wanted)
    return "".join(f" AND {name} = ?" for name in given), list(given.values())


def _page(db: Connection, select: str, wanted: Filter, limit: int, offset: int) -> Cursor:
    clause, values = _clause(wanted)
    after, offset = _skip(db, wanted, offset)
    page = f"WHERE number > ?{clause} ORDER BY number LIMIT ? OFFSET ?"
    if clause:
        # The numbers alone are all in an index, so that what is skipped costs no look at its row.
        page = f"WHERE number IN (SELECT number FROM tasks {page}) ORDER BY number"
    return db.execute(f"{select} {page}", (after, *values, limit, offset))


def _skip(db: Connection, wanted: Filter, offset: int) -> tuple[int, int]:
    """The number up to which no row has to be looked at, and how many matches to skip after it.

    Where several conditions have to be met SQLite walks over what is skipped.
    """
    given = list(_given(wanted).items())
    if not given:  # tasks are never deleted, so their numbers have no gaps
        return offset, 0
    if len(given) > 1 or offset < BLOCK:
        return 0, offset
    ((field, value),), after = given, 0
    key = {"project": "", "assignee": "", "status": ""} | {field: value}
    for block, n in db.execute(
        "SELECT block, n FROM task_counts WHERE field = ? AND project = ? AND assignee = ?"
        " AND status = ? AND is_ready = 0 ORDER BY block",
        (field, *key.values()),
    ):
        if n > offset:
            break
        after, offset = (block + 1) * BLOCK - 1, offset - n
    return after, offset


def _count(db: Connection, wanted: Filter, *, only_ready: bool = False) -> int:
    clause, values = _clause(wanted)
    also = " AND is_ready = 1" if only_ready else ""
    query = f"SELECT ifnull(sum(n), 0) FROM task_counts WHERE field = ''{clause}{also}"
    total: int = db.execute(query, values).get
    return total


# Verification.


def rows(db: Connection, id: str) -> Iterator[dict[str, Any]]:
    """The row of a task, as a replay compares it."""
    task = get(db, id)
    yield {**{name: getattr(task, name) for name in _COLUMNS}, "depends_on": list(task.depends_on)}


def altered(db: Connection, replay: Replay) -> Iterator[str]:
    """Each row that its records do not explain or that is missing, and what derives from rows."""
    dependencies = _all_dependencies(db)
    left = set(replay.tasks)
    indexed = index.known(db)
    for row, text in _rows_and_texts(db):
        id = task_id(row["number"])
        row["depends_on"] = dependencies.pop(row["number"], [])
        left.discard(row["task_id"])
        if row["task_id"] != id:
            yield f"{id}: another id stands in its row"
        elif (problem := replay.compare(row)) is not None:
            yield problem
        elif text != _text(row, indexed):
            yield f"{id}: search does not know it by its text"
    for id in sorted(left):
        yield f"{id}: its row is missing"
    for number in dependencies:
        yield f"{task_id(number)}: it has dependencies, but no row"
    for number in index.strangers(db):
        yield f"{task_id(number)}: search knows it, but it has no row"
    if db.execute(_WRONG_COUNTS).get:
        yield "the totals in task_counts are not those of the rows"


def _text(row: dict[str, Any], indexed: int) -> str | None:
    """What the index has to know of a row."""
    known = row["number"] <= indexed
    return index.folded(row["title"], row["description"]) if known else None


def _rows_and_texts(db: Connection) -> Iterator[tuple[dict[str, Any], str | None]]:
    """Every row, and what search knows of it. Bytes that are no text become lone surrogates."""
    columns = ", ".join(name if name in _NUMBERS else f"CAST({name} AS BLOB)" for name in _COLUMNS)
    rows = db.execute(
        f"SELECT {columns}, CAST(s.text AS BLOB) FROM tasks"
        " LEFT JOIN task_search AS s ON s.rowid = number ORDER BY number"
    )
    for values in rows:
        *row, text = (
            value.decode(errors="surrogateescape") if isinstance(value, bytes) else value
            for value in values
        )
        yield dict(zip(_COLUMNS, row, strict=True)), text


# What is counted, from the rows and as it is stored.
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
    """By the task's number; a place that is not the next one is part of what is told."""
    found: dict[int, list[str]] = {}
    for task, position, other in db.execute(
        "SELECT task, position, depends_on FROM task_dependencies ORDER BY task, position"
    ):
        names = found.setdefault(task, [])
        names.append(task_id(other) + (f" at {position}" if position != len(names) else ""))
    return found
