"""A connection of a server, which may be far from its database: it waits as seldom as it can.

Statements are kept until a question has to be answered, and leave with it, in order; what they
changed, or why one failed, comes with that answer. Questions that are known beforehand can be sent
ahead: `look_ahead` is given functions of the store, and sends the first question of
each that was not answered yet. Asked in earnest, it has been answered, unless something was changed
meanwhile.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any

import psycopg

from colibri.core.errors import ColibriError
from colibri.store.connection import Bindings
from colibri.store.ledger import INSERT as APPEND
from colibri.store.postgres.connection import PART, Connection, Cursor, numbered
from colibri.store.postgres.line import Answer, Line

MOST_KEPT = 100  # rows of an answer that may be asked for again; a longer one is taken once
_QUESTIONS = ("SELECT", "VALUES", "WITH")


class _Sent(Exception):
    """A question was sent ahead: its function need not go on."""


class Pipelined(Connection):
    """A connection in pipeline mode; `last` is the record that was appended last."""

    def __init__(self, pg: psycopg.Connection[Any]) -> None:
        self.last: tuple[int, bytes] | None = None
        self._within = False
        self._ahead: dict[tuple[str, Bindings], Answer | list[tuple[Any, ...]]] = {}
        self._looking_ahead = False
        super().__init__(pg)

    def use(self, pg: psycopg.Connection[Any]) -> None:
        super().use(pg)
        self._within = False
        self._ahead.clear()
        self.line = Line(pg)

    @property
    def in_transaction(self) -> bool:
        return self._within and not self.pg.closed

    @property
    def is_broken(self) -> bool:
        """Whether it must be replaced before it is used again."""
        return self.pg.closed or self.pg.broken

    def send(self, statement: str, bindings: Bindings = ()) -> Answer:
        """Send one statement with the next flight; `receive` waits for its rows."""
        return self.line.send(numbered(statement), [*bindings])

    def execute(self, statements: str, bindings: Bindings | None = None) -> Cursor:
        if bindings is None and ";" in statements:
            for one in statements.split(";"):
                self.execute(one.strip())
            return Cursor([])
        values = () if bindings is None else bindings
        if statements.lstrip().startswith(_QUESTIONS):
            return self._ask(statements, values)
        if statements == "ROLLBACK":
            self.pg.close()  # that rolls back, too
            return Cursor([])
        if statements is APPEND:
            self.last = (values[0], values[10])  # type: ignore[index]
        else:
            self._ahead.clear()  # it may change their answers
        self._changes += 1
        self.send(statements, values)
        self._within = statements != "COMMIT"
        return Cursor([])

    def executemany(self, statements: str, sequenceofbindings: Iterable[Bindings]) -> Cursor:
        for one in sequenceofbindings:
            self.execute(statements, one)
        return Cursor([])

    def _ask(self, statement: str, values: Bindings) -> Cursor:
        key = (statement, tuple(values))
        found = self._ahead.get(key) if self._ahead or self._looking_ahead else None
        if self._looking_ahead:
            if found is None:
                self._ahead[key] = self.send(statement, values)
            if not isinstance(found, list):
                raise _Sent
            return Cursor(found)
        rows = (
            found
            if isinstance(found, list)
            else self.receive(found or self.send(statement, values))
        )
        if found is not None:
            self._ahead[key] = rows
            if len(rows) > MOST_KEPT:
                del self._ahead[key]
        return Cursor(rows)

    def each(self, statement: str, bindings: Bindings = ()) -> Iterator[Any]:
        if self._looking_ahead or (statement, tuple(bindings)) in self._ahead:
            return iter(self._ask(statement, bindings))
        return self._parts(self.send(statement, bindings))

    def _parts(self, answer: Answer) -> Iterator[Any]:
        rows = self.receive(answer, PART)
        while rows:
            yield from rows
            rows = answer.take(PART)

    def look_ahead(self, reads: Iterable[Callable[[], object]], *, further: bool = False) -> None:
        """Send the next question of each of these functions, for this transaction."""
        if not self._within:
            return
        if further and not self._looking_ahead:
            for key, answer in self._ahead.items():
                self._ahead[key] = answer if isinstance(answer, list) else self.receive(answer)
        outer, self._looking_ahead = self._looking_ahead, True
        try:
            for read in reads:
                with suppress(_Sent, ColibriError):  # which is raised again, if it matters
                    read()
        finally:
            self._looking_ahead = outer

    def receive(self, answer: Answer, most: int | None = None) -> list[Any]:
        """The rows of a question, all or so many of them; waits for it, unless it is answered."""
        if answer.result is None:
            self.line.wait()
        return answer.take(most)

    def __exit__(self, kind: object, problem: BaseException | None, trace: object) -> None:
        was_outermost = self._depth == 1
        super().__exit__(kind, problem if isinstance(problem, psycopg.Error) else None, trace)
        if was_outermost and not self.pg.closed:
            self.line.push()  # nobody waits for the end of a read
