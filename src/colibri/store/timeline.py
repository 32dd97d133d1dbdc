"""Steps: calls joined with what they wrote, of a session, of a task, or of everything.

It owns no table and changes nothing; it reads page by page, as records.py does.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from colibri.store import records
from colibri.store.connection import Connection
from colibri.store.records import Record, enter_of, fetch


@dataclass(frozen=True, slots=True)
class Step:
    """A call and what it wrote. Without an exit it is open, or no call: an erasure, or a deed."""

    records: tuple[Record, ...]
    enter: Record | None
    exit: Record | None

    @property
    def first(self) -> Record:
        """What the step is known by: the first record it wrote, else how it ended or began."""
        found = next(iter(self.records), None) or self.exit or self.enter
        assert found is not None
        return found


class Timeline:
    """The steps of a session, of a task, or of everything, in the order of the ledger.

    A session's are those that name it: what others did meanwhile is not its work.
    """

    def __init__(
        self, db: Connection, *, session: str | None = None, task: str | None = None
    ) -> None:
        self._db = db
        self._open: dict[str, Record] = {}
        self._where, self._after = "true", 0
        self._values: tuple[str, ...] = ()
        if session is not None:
            self._where, self._values = "session = ?", (session,)
        elif task is not None:
            self._where, self._values = "task = ?", (task,)

    def skip_to_newest(self, count: int, *, last: int, types: Sequence[str] = ()) -> None:
        """Leave out all but the newest steps, or all but the newest thoughts of some types."""
        find = self._newest_thoughts if types else self._newest_steps
        ends = find(types, last, count + 1)
        if len(ends) > count:
            self._after = ends[count]

    def advance(self, last: int) -> Iterator[Step]:
        """The steps up to a seq that have not been given yet."""
        group: list[Record] = []
        while self._after < last:
            for record in self._page(last):
                if record.kind == "call.enter":
                    self._open[record.call] = record
                if group and group[0].call != record.call:
                    yield self._step(group)
                    group = []
                if record.kind != "call.enter":
                    group.append(record)
        if group:
            yield self._step(group)

    def open_calls(self) -> list[Step]:
        """The calls among what was given that have not ended."""
        return [Step((), enter, None) for enter in self._open.values()]

    def _page(self, last: int) -> list[Record]:
        with self._db:
            rows: list[Any] = self._db.execute(
                f"SELECT seq FROM ledger WHERE {self._where} AND seq > ? AND seq <= ?"
                f" ORDER BY seq LIMIT {records.PAGE:d}",
                (*self._values, self._after, last),
            ).fetchall()
            seqs = [seq for (seq,) in rows]
            page = fetch(self._db, seqs)
        self._after = last if len(seqs) < records.PAGE else seqs[-1]
        return page

    def _step(self, group: list[Record]) -> Step:
        last = group[-1]
        enter = self._open.get(last.call)
        if last.kind != "call.exit":
            return Step(tuple(group), enter, None)
        self._open.pop(last.call, None)
        return Step(tuple(group[:-1]), enter or enter_of(self._db, last), last)

    def _newest_steps(self, types: Sequence[str], last: int, count: int) -> list[int]:
        """Where the newest steps end, newest first."""
        rows = self._db.execute(
            "SELECT CASE WHEN kind = 'deed' AND EXISTS (SELECT 1 FROM ledger AS t"
            " WHERE t.seq = ledger.seq + 1 AND t.kind = 'deed.text') THEN seq + 1 ELSE seq END"
            f" FROM ledger WHERE {self._where} AND seq <= ?"
            " AND kind IN ('call.exit', 'erasure', 'deed') ORDER BY seq DESC LIMIT ?",
            (*self._values, last, count),
        )
        return [seq for (seq,) in rows]

    def _newest_thoughts(self, types: Sequence[str], last: int, count: int) -> list[int]:
        marks = ", ".join("?" * len(types))
        # What is erased has no type any more, as far as its record tells.
        rows = self._db.execute(
            f"SELECT seq FROM thoughts WHERE {self._where} AND type IN ({marks}) AND seq <= ?"
            " AND (SELECT body FROM ledger AS l WHERE l.seq = thoughts.seq) IS NOT NULL"
            " ORDER BY seq DESC LIMIT ?",
            (*self._values, *types, last, count),
        )
        return [seq for (seq,) in rows]
