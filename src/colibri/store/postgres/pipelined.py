"""A connection of a server, which may be far from its database: it waits as seldom as it can.

Statements are sent at once and answered later, in order. Only a question is waited for; what a
statement changed, or why it failed, comes with the next answer. Questions that are known beforehand
can be sent ahead: `look_ahead` is given functions of the store, and sends the first question of
each that was not answered yet. Asked in earnest, it has been answered, unless something was changed
meanwhile.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, suppress
from typing import Any

import psycopg
from psycopg import RawCursor

from colibri.core.errors import ColibriError
from colibri.store.connection import Bindings
from colibri.store.ledger import INSERT as APPEND
from colibri.store.postgres.connection import Connection, Cursor, numbered

MOST_KEPT = 100  # rows of an answer that may be asked for again; a longer one is taken once
_QUESTIONS = ("SELECT", "VALUES", "WITH")

Pending = RawCursor[Any]


class _Sent(Exception):
    """A question was sent ahead: its function need not go on."""


class Pipelined(Connection):
    """A connection in pipeline mode; `last` is the record that was appended last."""

    def __init__(self, pg: psycopg.Connection[Any]) -> None:
        self.last: tuple[int, bytes] | None = None
        self.is_worn = self._within = False
        self._ahead: dict[tuple[str, Bindings], Pending | list[tuple[Any, ...]]] = {}
        self._looking_ahead = False
        self._mode: AbstractContextManager[psycopg.Pipeline] | None = None
        super().__init__(pg)

    def use(self, pg: psycopg.Connection[Any]) -> None:
        self._leave()
        super().use(pg)
        self._within = self.is_worn = False
        self._ahead.clear()
        self._mode = pg.pipeline()
        self._pipeline = self._mode.__enter__()

    def _leave(self) -> None:
        """Leave pipeline mode: psycopg would log it if a broken one were left later."""
        if self._mode is not None:
            with suppress(psycopg.Error):
                self._mode.__exit__(None, None, None)
            self._mode = None

    def close(self) -> None:
        self._leave()
        super().close()

    @property
    def in_transaction(self) -> bool:
        return self._within and not self.pg.closed

    @property
    def is_broken(self) -> bool:
        """Whether it must be replaced before it is used again."""
        return self.pg.closed or self.pg.broken or (self.is_worn and not self._within)

    def send(self, statement: str, bindings: Bindings = ()) -> Pending:
        """Send one statement, and wait for nothing; rows are fetched from what it returns."""
        cursor = RawCursor(self.pg)
        cursor.execute(numbered(statement), bindings, binary=True)
        return cursor

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
        if statements.startswith("ROLLBACK TO"):
            self._forget_prepared()
        elif statements is APPEND:
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
            found if isinstance(found, list) else self._rows(found or self.send(statement, values))
        )
        if found is not None:
            self._ahead[key] = rows
            if len(rows) > MOST_KEPT:
                del self._ahead[key]
        return Cursor(rows)

    def each(self, statement: str, bindings: Bindings = ()) -> Iterator[Any]:
        if self._looking_ahead or (statement, tuple(bindings)) in self._ahead:
            return iter(self._ask(statement, bindings))
        return super().each(statement, bindings)

    def look_ahead(self, reads: Iterable[Callable[[], object]], *, further: bool = False) -> None:
        """Send the next question of each of these functions, for this transaction."""
        if not self._within:
            return
        if further and not self._looking_ahead:
            for key, answer in self._ahead.items():
                self._ahead[key] = answer if isinstance(answer, list) else self._rows(answer)
        outer, self._looking_ahead = self._looking_ahead, True
        try:
            for read in reads:
                with suppress(_Sent, ColibriError):  # which is raised again, if it matters
                    read()
        finally:
            self._looking_ahead = outer

    def _rows(self, pending: Pending) -> list[Any]:
        self.receive(pending)
        return pending.fetchall()

    def receive(self, pending: Pending) -> None:
        """Wait until a question is answered, unless it is.

        To fetch its rows would do, but leave PostgreSQL in the belief that more is on its way: it
        would not end a transaction in which nothing comes any more, with the lock of the head.
        """
        if pending.pgresult is None:
            self.wait()

    def wait(self) -> None:
        """Until everything that was sent is answered; raises the first error."""
        self._pipeline.sync()

    def _forget_prepared(self) -> None:
        """psycopg forgets what it has prepared when it sees the answer to a ROLLBACK: too late for
        statements that are on their way. So none is prepared from here on, and the connection is
        replaced after this transaction.
        """
        self.pg.prepare_threshold = None
        self.is_worn = True
        self._ahead.clear()

    def __exit__(self, kind: object, problem: BaseException | None, trace: object) -> None:
        super().__exit__(kind, problem if isinstance(problem, psycopg.Error) else None, trace)
