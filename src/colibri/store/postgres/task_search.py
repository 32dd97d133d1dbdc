"""Finds tasks by words in their title or description. Owns `task_search`.

It has the folded text of every task, in which words are looked for one by one.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from colibri.store.connection import Connection
from colibri.store.tasks import folded


def add(db: Connection, number: int, title: str, description: str | None) -> None:
    """A new task has this number and these texts."""
    text = folded(title, description)
    db.execute("INSERT INTO task_search (number, text) VALUES (?, ?)", (number, text))


def change(db: Connection, number: int, title: str, description: str | None) -> None:
    """The texts of a task have changed to these."""
    text = folded(title, description)
    db.execute("UPDATE task_search SET text = ? WHERE number = ?", (text, number))


def forget(db: Connection) -> None:
    """Nothing is left of texts that were there before, but for what PostgreSQL has not vacuumed."""


def known(db: Connection) -> int:
    """The last task that must be in the index."""
    last: int = db.execute("SELECT coalesce(max(number), 0) FROM tasks").get
    return last


def find(db: Connection, text: str, clause: str, values: Sequence[str]) -> list[int]:
    """The numbers of all tasks that contain every word of `text`, oldest first."""
    words = text.casefold().split()
    if "\0" in text:  # which no text has here, and no value can
        return []
    rows = db.execute(
        "SELECT number FROM task_search JOIN tasks USING (number) WHERE true"
        f"{' AND strpos(text, ?) > 0' * len(words)}{clause} ORDER BY number",
        (*words, *values),
    )
    return [number for (number,) in rows]


def texts(db: Any) -> Iterator[tuple[int, str]]:
    """Number and text of all that is in the index, in order."""
    found: Iterator[tuple[int, str]] = db.each(
        "SELECT number, text FROM task_search ORDER BY number"
    )
    return found
