"""Steps: calls joined with what they wrote, of a session, of a task, or of everything.

It owns no table and changes nothing; it reads page by page, as records.py does.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import merge
from itertools import islice
from typing import Any

from colibri.store import records, sessions
from colibri.store.connection import Connection
from colibri.store.records import Record, enter_of, fetch
from colibri.store.sessions import Session


@dataclass(frozen=True, slots=True)
class Step:
    """A call and what it wrote. Without an exit it is open, or no call at all: an erasure."""

    records: tuple[Record, ...]
    enter: Record | None
    exit: Record | None

    @property
    def first(self) -> Record:
        """What the step is known by: the first record it wrote, else how it ended or began."""
        found = next(iter(self.records), None) or self.exit or self.enter
        assert found is not None
        return found


@dataclass(slots=True)
class _Source:
    """Some records of the ledger, in order, and how far they have been read."""

    where: str
    values: tuple[str, ...]
    after: int
    wanted: str = "true"  # no index knows this, so a page may have less than it looked at
    upto: int | None = None

    def look(self, db: Connection, last: int) -> tuple[list[int], int]:
        """The seqs of its next records, and the seq up to which there are no others."""
        rows: list[Any] = db.execute(
            f"SELECT seq, {self.wanted} FROM ledger WHERE {self.where} AND seq > ? AND seq <= ?"
            f" ORDER BY seq LIMIT {records.PAGE:d}",
            (*self.values, self.after, self._last(last)),
        ).fetchall()
        reached = last if len(rows) < records.PAGE else rows[-1][0]
        return [seq for seq, wanted in rows if wanted], reached

    def newest(self, db: Connection, last: int, count: int) -> list[int]:
        """Where the newest steps end, newest first."""
        rows = db.execute(
            f"SELECT seq FROM ledger WHERE {self.where} AND {self.wanted} AND seq > ? AND seq <= ?"
            " AND kind IN ('call.exit', 'erasure') ORDER BY seq DESC LIMIT ?",
            (*self.values, self.after, self._last(last), count),
        )
        return [seq for (seq,) in rows]

    def _last(self, last: int) -> int:
        return last if self.upto is None else min(last, self.upto)


class Timeline:
    """The steps of a session, of a task, or of everything, in the order of the ledger.

    A session's are those that name it, and, while it is open, those of its tasks that name no
    session: the tasks of its opening and of its thoughts.
    """

    def __init__(
        self, db: Connection, *, session: Session | None = None, task: str | None = None
    ) -> None:
        self._db = db
        self._session = session
        self._task = task
        self._open: dict[str, Record] = {}
        self._tasks: set[str] = set()
        self._sources = [_Source("true", (), 0)]
        if task is not None:
            self._sources = [_Source("task = ?", (task,), 0)]
        if session is not None:
            self._sources = [_Source("session = ?", (session.session_id,), 0)]
            for found in sessions.tasks_named(db, session.session_id):
                self._add_task(found, session)

    def skip_to_newest(self, count: int, *, last: int, types: Sequence[str] = ()) -> None:
        """Leave out all but the newest steps, or all but the newest thoughts of some types."""
        if types:
            ends = self._newest_thoughts(types, last, count + 1)
        else:
            each = (source.newest(self._db, last, count + 1) for source in self._sources)
            ends = list(islice(merge(*each, reverse=True), count + 1))
        if len(ends) > count:
            for source in self._sources:
                source.after = max(source.after, ends[count])

    def advance(self, last: int) -> Iterator[Step]:
        """The steps up to a seq that have not been given yet.

        A task that a session turns out to be about brings its steps since the session's opening.
        """
        group: list[Record] = []
        while any(source.after < last for source in self._sources):
            for record in self._page(last):
                self._look(record)
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
            found = [source.look(self._db, last) for source in self._sources]
            reached = min(seq for _, seq in found)
            seqs = [seq for seq in merge(*(seqs for seqs, _ in found)) if seq <= reached]
            if len(seqs) > records.PAGE:
                seqs, reached = seqs[: records.PAGE], seqs[records.PAGE - 1]
            page = fetch(self._db, seqs)
        for source in self._sources:
            source.after = max(source.after, reached)
        return page

    def _look(self, record: Record) -> None:
        if record.kind == "call.enter":
            self._open[record.call] = record
        elif self._session and record.kind == "thought" and record.task is not None:
            self._add_task(record.task, self._session)

    def _add_task(self, task: str, session: Session) -> None:
        if task not in self._tasks:
            self._tasks.add(task)
            none, seal = "session IS NULL", session.seal_seq
            self._sources.append(_Source("task = ?", (task,), session.open_seq, none, seal))

    def _step(self, group: list[Record]) -> Step:
        last = group[-1]
        enter = self._open.get(last.call)
        if last.kind != "call.exit":
            return Step(tuple(group), enter, None)
        self._open.pop(last.call, None)
        return Step(tuple(group[:-1]), enter or enter_of(self._db, last), last)

    def _newest_thoughts(self, types: Sequence[str], last: int, count: int) -> list[int]:
        marks = ", ".join("?" * len(types))
        where, values = "true", []
        if self._session is not None:
            where, values = "session = ?", [self._session.session_id]
        elif self._task is not None:
            where, values = "task = ?", [self._task]
        # What is erased has no type any more, as far as its record tells.
        rows = self._db.execute(
            f"SELECT seq FROM thoughts WHERE {where} AND type IN ({marks}) AND seq <= ?"
            " AND (SELECT body FROM ledger AS l WHERE l.seq = thoughts.seq) IS NOT NULL"
            " ORDER BY seq DESC LIMIT ?",
            (*values, *types, last, count),
        )
        return [seq for (seq,) in rows]
