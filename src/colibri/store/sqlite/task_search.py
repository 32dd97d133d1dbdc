"""Finds tasks by words in their title or description. Owns `task_search`.

The index knows which tasks contain three given characters in a row, but not where. For a longer
word, each task that contains all its three-character sequences is read. Adding one task to the
index costs more than the rest of creating it, and adding a batch hardly costs more than adding one.
So tasks are added in batches, when the last task of a batch is created; the tasks after the last
full batch are read one by one.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from colibri.store.connection import Connection
from colibri.store.tasks import folded

BATCH = 16  # fixed in every file: changing it takes a migration
FEW = 64  # tasks that can be read as quickly as searched

# The shortest sequence that the index can find; longer words are composed of them.
_INDEXED_LENGTH = 3
_UNINDEXED = re.compile("[\0\ufffd-\uffff]")


def add(db: Connection, number: int, title: str, description: str | None) -> None:
    """Index the batch that a new task completes, if it completes one."""
    if number % BATCH:
        return
    rows: list[Any] = db.execute(
        "SELECT number, title, description FROM tasks WHERE number > ?", (number - BATCH,)
    ).fetchall()
    db.executemany(
        "INSERT INTO task_search (rowid, text) VALUES (?, ?)",
        ((one, folded(title, description)) for one, title, description in rows),
    )


def change(db: Connection, number: int, title: str, description: str | None) -> None:
    """Update a task's text, if the task is in the index."""
    text = folded(title, description)
    db.execute("UPDATE task_search SET text = ? WHERE rowid = ?", (text, number))


def forget(db: Connection) -> None:
    """Purge old texts: the index would otherwise keep all their three-character sequences."""
    db.execute("INSERT INTO task_search (task_search) VALUES ('optimize')")


def known(db: Connection) -> int:
    """The last task that must be in the index."""
    last: int = db.execute("SELECT coalesce(max(number), 0) FROM tasks").get
    return last - last % BATCH


def find(db: Connection, text: str, clause: str, values: Sequence[str]) -> list[int]:
    """The numbers of all tasks that contain every word of `text`, oldest first.

    The clause is an additional condition on `tasks`, with its values.
    """
    words = text.casefold().split()
    last = known(db)
    few = _few(db, words, last)
    if few is None:
        found = _match(db, words, last, clause, values)
    else:
        found = (one for it in few for one in _read(db, words, "number = ?", (it, *values), clause))
    return [*found, *_read(db, words, "number > ?", (last, *values), clause)]


def _few(db: Connection, words: Sequence[str], last: int) -> list[int] | None:
    """The tasks with the longest word, which is probably the rarest; None if they are many.

    For a word that most tasks have, the index reads a long list, however rare the others are.
    """
    indexed = [word for word in words if _is_indexed(word)]
    if not indexed:
        return None
    rows: list[Any] = db.execute(
        "SELECT rowid FROM task_search WHERE task_search MATCH ? AND rowid <= ? LIMIT ?",
        (_having(max(indexed, key=len)), last, FEW + 1),
    ).fetchall()
    return [number for (number,) in rows] if len(rows) <= FEW else None


def _match(
    db: Connection, words: Sequence[str], last: int, clause: str, values: Sequence[str]
) -> Iterator[int]:
    """Search by the index; words not exactly three characters long are checked in its results."""
    indexed = [_having(word) for word in words if _is_indexed(word)]
    looked_for = [word for word in words if len(word) != _INDEXED_LENGTH or not _is_indexed(word)]
    tables = "task_search JOIN tasks ON number = task_search.rowid" if values else "task_search"
    rows = db.execute(
        f"SELECT task_search.rowid FROM {tables} WHERE task_search.rowid <= ?"
        f"{' AND task_search MATCH ?' if indexed else ''}"
        f"{' AND instr(text, ?) > 0' * len(looked_for)}{clause} ORDER BY task_search.rowid",
        (last, *([" AND ".join(indexed)] if indexed else []), *looked_for, *values),
    )
    for (number,) in rows:
        yield number


def _read(
    db: Connection, words: Sequence[str], some: str, values: Sequence[object], clause: str
) -> Iterator[int]:
    """Search by reading some of the tasks."""
    query = f"SELECT number, title, description FROM tasks WHERE {some}{clause} ORDER BY number"
    for number, title, description in db.execute(query, values):
        text = folded(title, description)
        if all(word in text for word in words):
            yield number


def _is_indexed(word: str) -> bool:
    return len(word) >= _INDEXED_LENGTH and not _UNINDEXED.search(word)


def _having(word: str) -> str:
    """A query for texts with all the three-character sequences of a word."""
    starts = range(len(word) - _INDEXED_LENGTH + 1)
    parts = dict.fromkeys(word[at : at + _INDEXED_LENGTH] for at in starts)
    return " AND ".join('"' + part.replace('"', '""') + '"' for part in parts)


def texts(db: Connection) -> Iterator[tuple[int, str]]:
    """Number and text of all that is in the index, in order; even what is no text."""
    rows = db.execute("SELECT rowid, CAST(text AS BLOB) FROM task_search ORDER BY rowid")
    for number, text in rows:
        yield number, (text or b"").decode(errors="surrogateescape")
