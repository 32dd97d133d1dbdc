"""A connection of a server, which may be far from its database: it waits as seldom as it can.

Statements are kept until a question has to be answered, and leave with it; what they changed, or
why one failed, comes with that answer. They keep their order, except that records come before other
changes, many in one statement. Questions that are known beforehand can be sent ahead: `look_ahead`
is given functions of the store, and sends the first question of each that was not answered yet.
Asked in earnest, it has been answered, unless something was changed meanwhile.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import cache, lru_cache
from itertools import chain
from typing import Any

import psycopg

from colibri.core.errors import ColibriError
from colibri.store.connection import Bindings
from colibri.store.ledger import INSERT as APPEND
from colibri.store.postgres.connection import MOST_PREPARED, PART, Connection, Cursor, numbered
from colibri.store.postgres.line import Answer, Line

MOST_KEPT = 100  # rows of an answer that may be asked for again; a longer one is taken once
MOST_RECORDS = 16  # in one statement; each number of them, and each set of NULLs, is prepared
_QUESTIONS = ("SELECT", "VALUES", "WITH")
_CHANGES = ("INSERT", "UPDATE", "DELETE")


class _Sent(Exception):
    """A question was sent ahead: its function need not go on."""


class Pipelined(Connection):
    """A connection in pipeline mode; `last` is the record that was appended last."""

    def __init__(self, pg: psycopg.Connection[Any]) -> None:
        self.last: tuple[int, bytes] | None = None
        self._within = False
        self._ahead: dict[tuple[str, Bindings], Answer | list[tuple[Any, ...]]] = {}
        self._looking_ahead = False
        self._records: list[Bindings] = []  # not sent yet, and changes that follow them
        self._following: list[tuple[str, Bindings]] = []
        super().__init__(pg)

    def use(self, pg: psycopg.Connection[Any]) -> None:
        super().use(pg)
        self._within = False
        self._ahead.clear()
        self._records, self._following = [], []
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
        if self._records or self._following:
            self._send_changes()
        return self.line.send(numbered(statement), [*bindings])

    def _send_changes(self) -> None:
        records, following = self._records, self._following
        self._records, self._following = [], []
        for first in range(0, len(records), MOST_RECORDS):
            some = records[first : first + MOST_RECORDS]
            self.send(_append(len(some)), [*chain.from_iterable(some)])
        for statement, values in following:
            self.send(statement, values)

    def execute(self, statements: str, bindings: Bindings | None = None) -> Cursor:
        if bindings is None and ";" in statements:
            for one in statements.split(";"):
                self.execute(one.strip())
            return Cursor([])
        values = () if bindings is None else bindings
        if _is_question(statements):
            return self._ask(statements, values)
        if statements == "ROLLBACK":
            self.pg.close()  # that rolls back, too; `use` forgets the rest
            return _NO_ROWS
        self._changes += 1
        self._ahead.clear()  # it may change their answers
        if statements is APPEND:
            self.last = (values[0], values[10])  # type: ignore[index]
            self._records.append(values)
            return _NO_ROWS
        if statements.startswith(_CHANGES):
            self._following.append((statements, values))
        else:
            self.send(statements, values)
            self._within = statements != "COMMIT"
        return _NO_ROWS

    def commit(self) -> Answer:
        """Send the end of a transaction that changes something; whether it worked comes later."""
        self._ahead.clear()
        self._within = False
        return self.send("COMMIT")

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
                try:
                    read()
                except (_Sent, ColibriError):
                    continue  # an error is raised again, if it matters
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


_NO_ROWS = Cursor([])


@lru_cache(MOST_PREPARED)
def _is_question(statement: str) -> bool:
    return statement.lstrip().startswith(_QUESTIONS)


@cache
def _append(records: int) -> str:
    """The statement that appends so many."""
    _, _, row = APPEND.partition(" VALUES ")
    return APPEND + f", {row}" * (records - 1)
