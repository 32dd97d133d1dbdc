"""Finds rows of deeds that do not match their records."""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from colibri.core.report import MAX_LISTED
from colibri.store.connection import Connection

_COLUMNS = (
    *("seq", "call", "session", "host", "host_session", "host_agent", "event", "use", "class"),
    *("exit", "late"),
)
_NUMBERS = ("seq", "exit")
_OTHERS = "session = ? AND NOT seq BETWEEN ? AND ?"
_FIRST, _LAST = -(2**63), 2**63 - 1


class Comparison:
    """Compares the rows of `deeds` with the records while the log is being read.

    Its findings count only if the log turns out to be valid.
    """

    def __init__(self, db: Connection, first: int = _FIRST) -> None:
        self._db = db
        self._first = first
        self._wrong: list[int] = []

    def ask(self, last: int, session: str | None = None) -> None:
        """Look ahead to the rows up to a seq, and to those after it, if all are of a small log."""
        later = (
            ("seq BETWEEN ? AND ?", (last + 1, _LAST - 1))
            if session is None
            else (_OTHERS, (session, self._first, last))
        )
        now = ("seq BETWEEN ? AND ?", (self._first, last))
        self._db.look_ahead(partial(self._rows, *one) for one in (now, later))

    def go_on(self, right: Iterable[tuple[Any, ...]], last: int) -> None:
        """Compare the rows up to a seq with the rows that the records up to there require."""
        self._compare(right, "seq BETWEEN ? AND ?", (self._first, last))
        self._first = last + 1

    def altered(self, later: Iterable[tuple[Any, ...]]) -> Iterator[str]:
        """Which rows are wrong; `later` are the rows required by records after those read."""
        self.go_on(later, _LAST - 1)
        return self._told()

    def altered_of(
        self, session: str, later: Iterable[tuple[Any, ...]], first: int
    ) -> Iterator[str]:
        """The same for the records of one session, which were read from `first` on."""
        self._compare(later, _OTHERS, (session, first, self._first - 1))
        return self._told()

    def _compare(
        self, right: Iterable[tuple[Any, ...]], where: str, values: tuple[object, ...]
    ) -> None:
        wrong = {seq for seq, *_ in {*self._rows(where, values)} ^ {*right}}
        self._wrong = [*self._wrong, *sorted(wrong)][:MAX_LISTED]

    def _rows(self, where: str, values: tuple[object, ...]) -> Iterator[tuple[Any, ...]]:
        texts = [name for name in _COLUMNS if name not in _NUMBERS]
        query = f"FROM deeds WHERE {where}"
        return self._db.engine.rows(self._db, _COLUMNS, query, values, texts=texts)

    def _told(self) -> Iterator[str]:
        for seq in self._wrong:
            yield f"record {seq}: its row in deeds is missing or not as the record says"
