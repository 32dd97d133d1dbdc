"""Tasks as they are: the tables `tasks`, `task_dependencies` and `task_counts`.

The rows are a projection of the ledger's records; task_changes.py writes both. task_counts gives
totals and finds a page far into a list; triggers keep it, so that no answer has to count rows or
walk over them.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import starmap
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

from colibri.core.canonical import MAX_INTEGER
from colibri.core.errors import Refused
from colibri.core.states import TRANSITIONS, Status
from colibri.store.connection import Connection, Cursor

T = TypeVar("T")

BLOCK = 1024  # the numbers that a row of task_counts counts; its triggers know it too


class Task(NamedTuple):
    """A row, with the ids that it depends on; a list leaves out the last two."""

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
    attempt_seq: int  # of the record that began the current attempt
    open_dependencies: int
    holder: str | None  # a session
    description: str | None = None
    depends_on: tuple[str, ...] = ()


LISTED = Task._fields[:-2]
COLUMNS = Task._fields[:-1]
_ONE = f"SELECT {', '.join(COLUMNS)} FROM tasks WHERE number = ?"
_ATTEMPT, _VERSION = attrgetter("attempt"), attrgetter("version")
NUMBERS = frozenset({"number", "attempt", "version", "attempt_seq", "open_dependencies"})


class Filter(NamedTuple):
    """Which tasks a list shows; None means any."""

    status: str | None = None
    project: str | None = None
    assignee: str | None = None
    holder: str | None = None


def task_id(number: int) -> str:
    """T-0001, with a fifth digit after 9999."""
    return f"T-{number:04d}"


def number_of(id: str) -> int:
    """Where the row of a task is; 0 for what is no task's id."""
    digits = id[2:]
    number = int(digits) if digits.isascii() and digits.isdecimal() and len(digits) < 16 else 0  # noqa: PLR2004
    return number if task_id(number) == id else 0


def folded(title: str, description: str | None) -> str:
    """The text to search; words have no line breaks, so none spans title and description."""
    return (title if description is None else f"{title}\n{description}").casefold()


def get(db: Connection, id: str) -> Task:
    """A task by its id; ERR_NOT_FOUND."""
    number = number_of(id)
    db.look_ahead((partial(_row, db, number), partial(_dependencies, db, number)))
    row = _row(db, number)
    if row is None:
        message = f"there is no task {id}: task_list shows the tasks there are"
        raise Refused("ERR_NOT_FOUND", message, task_id=id)
    task = Task._make((*row, _dependencies(db, number)))
    _check_exact([task])
    return task


def _row(db: Connection, number: int) -> Any:
    return db.execute(_ONE, (number,)).fetchone()


def _dependencies(db: Connection, number: int) -> tuple[str, ...]:
    others = db.execute(
        "SELECT depends_on FROM task_dependencies WHERE task = ? ORDER BY position", (number,)
    )
    return tuple(task_id(number) for (number,) in others)


def next_states(task: Task) -> tuple[Status, ...]:
    """The moves that the state machine allows."""
    return TRANSITIONS[Status(task.status)]


def find(
    db: Connection, wanted: Filter, *, search: str | None, limit: int, offset: int
) -> tuple[list[Task], int]:
    """A page of tasks, oldest first, and how many match in all."""
    return page(db, Task, LISTED, wanted, search, limit, offset)


def page(
    db: Connection,
    make: Callable[..., T],
    columns: Sequence[str],
    wanted: Filter,
    search: str | None,
    limit: int,
    offset: int,
) -> tuple[list[T], int]:
    """The same, each made of some columns."""
    select = f"SELECT {', '.join(columns)} FROM tasks"
    if search is not None and search.split():
        matches = db.engine.task_search.find(db, search, *_clause(wanted))
        query = f"{select} WHERE number = ?"
        reads = [partial(db.execute, query, (one,)) for one in matches[offset : offset + limit]]
        db.look_ahead(reads)
        made = [make(*row) for read in reads for row in read()]
        total = len(matches)
    else:
        rows = partial(_page, db, select, wanted, limit, offset)
        db.look_ahead((rows, partial(_count, db, wanted)))
        made = list(starmap(make, rows()))
        total = _count(db, wanted)
    _check_exact(made)
    return made, total


def queue(
    db: Connection, wanted: Filter, most: int, *, besides: Sequence[str] | None = ()
) -> list[Task]:
    """What can be worked on, neither terminal nor blocked: by priority, then progress, then age; at
    most so many.

    Besides what these sessions hold; of None, besides what any session holds.
    """
    found = list(starmap(Task, _ready(db, LISTED, wanted, most, besides)))
    _check_exact(found)
    return found


def first(
    db: Connection, wanted: Filter, *, besides: Sequence[str] | None = ()
) -> list[tuple[Task, bool]]:
    """The first of the queue, if there is one: whole but for its dependencies, and whether a
    thought is about its current attempt.
    """
    rows = _ready(db, (*COLUMNS, _HAS_EVIDENCE), wanted, 1, besides)
    found = [(Task(*row), bool(has_evidence)) for *row, has_evidence in rows]
    _check_exact([task for task, _ in found])
    return found


_HAS_EVIDENCE = (
    "EXISTS (SELECT 1 FROM thoughts WHERE task = tasks.task_id AND seq > tasks.attempt_seq)"
)


def _ready(
    db: Connection,
    columns: Sequence[str],
    wanted: Filter,
    most: int,
    besides: Sequence[str] | None,
) -> Cursor:
    clause, values = _clause(wanted)
    if besides is None:
        clause += " AND holder IS NULL"
    elif besides:
        clause += f" AND (holder IS NULL OR holder NOT IN ({', '.join('?' * len(besides))}))"
        values += besides
    return db.execute(
        f"SELECT {', '.join(columns)} FROM tasks WHERE is_ready = 1{clause}"
        " ORDER BY urgency, remaining, number LIMIT ?",
        (*values, most),
    )


def held(
    db: Connection, wanted: Filter, besides: str | None, also: str
) -> list[tuple[str, int, str]]:
    """How many tasks of the queue each session holds, besides one; and a value that is asked for in
    SQL about `holder`.
    """
    clause, values = _clause(wanted, of_held=True)
    rows: list[Any] = db.execute(
        f"SELECT holder, count(*), {also} FROM tasks WHERE is_ready = 1 AND holder IS NOT NULL"
        f" AND holder IS DISTINCT FROM ?{clause} GROUP BY holder",
        (besides, *values),
    ).fetchall()
    return rows


def count_ready(db: Connection, wanted: Filter) -> int:
    """How many tasks the queue has."""
    return _count(db, wanted, only_ready=True)


# Rows.


def _check_exact(found: Sequence[Any]) -> None:
    """ValueError for a number that JSON cannot say: nobody but a forger has counted so far."""
    if max(map(_ATTEMPT, found), default=0) > MAX_INTEGER or (
        max(map(_VERSION, found), default=0) > MAX_INTEGER
    ):
        raise ValueError("a task has a number beyond 2^53-1: audit_verify_chain names it")


def _given(wanted: Filter) -> dict[str, str]:
    names = ("status", "project", "assignee", "holder")
    return {name: value for name in names if (value := getattr(wanted, name)) is not None}


def _clause(wanted: Filter, *, of_held: bool = False) -> tuple[str, list[str]]:
    """The conditions of a filter, from constant pieces; values are always bound.

    A project may be large, what is held is little: there the index of holders must be the only one.
    """
    given = _given(wanted)
    if not of_held and wanted.holder is None:
        return "".join(f" AND {name} = ?" for name in given), list(given.values())
    columns = (name if name == "holder" else f"coalesce({name}, '')" for name in given)
    return "".join(f" AND {column} = ?" for column in columns), list(given.values())


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
    if len(given) > 1 or offset < BLOCK or wanted.holder is not None:
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
    query = f"SELECT coalesce(sum(n), 0) FROM task_counts WHERE field = ''{clause}{also}"
    if wanted.holder is not None:  # who holds few
        query = f"SELECT count(*) FROM tasks WHERE true{clause}{also}"
    total: int = db.execute(query, values).get
    return total
