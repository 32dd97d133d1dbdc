"""libpq's pipeline: statements leave together, as one flight, and are answered together.

Nothing is sent before somebody waits for an answer, so that a flight reaches the server whole or
not at all: one that is stopped or cut off in the middle of it would keep the lock of the head while
PostgreSQL believes that more is on its way. Only a flight of more than 8 KiB leaves in parts.
"""

import select
from collections import deque
from collections.abc import Sequence
from itertools import count
from typing import Any

import psycopg
from psycopg import abc
from psycopg.adapt import PyFormat, Transformer
from psycopg.errors import error_from_result
from psycopg.pq import ConnStatus, DiagnosticField, ExecStatus, Format
from psycopg.pq.abc import PGresult

from colibri.store.postgres.connection import MOST_PREPARED

_Key = tuple[bytes, tuple[int, ...]]  # a statement and the types of its values

_BINARY = PyFormat.BINARY
_BAD = ConnStatus.BAD
_LAST_WORDS = (b"FATAL", b"PANIC")
SILENCE = 300.0  # seconds; nothing that we ask takes so long
_FAILED = (ExecStatus.FATAL_ERROR, ExecStatus.PIPELINE_ABORTED)


class Answer:
    """The rows that a statement was answered with, once its flight is back."""

    __slots__ = ("_loading", "_taken", "result")

    def __init__(self, loading: abc.Transformer) -> None:
        self.result: PGresult | None = None
        self._loading = loading
        self._taken = 0

    @property
    def is_good(self) -> bool:
        """Whether it is here, and no error."""
        return self.result is not None and self.result.status not in _FAILED

    def take(self, most: int | None = None) -> list[tuple[Any, ...]]:
        """So many more of them, or all that are left."""
        assert self.result is not None
        begin, every = self._taken, self.result.ntuples
        self._taken = every if most is None else min(begin + most, every)
        self._loading.set_pgresult(self.result)
        return self._loading.load_rows(begin, self._taken, tuple)


class Line:
    """A connection in pipeline mode; psycopg itself sends nothing over it any more."""

    def __init__(self, pg: "psycopg.Connection[Any]") -> None:
        self._pg = pg.pgconn
        self._dumping, self._loading = Transformer(pg), Transformer(pg)
        self._prepared: dict[_Key, bytes] = {}
        self._numbers = count()
        self._awaited: deque[Answer | _Key | None] = deque()  # a key: of what is being prepared
        self._is_at_end = True  # of a part
        self._poll = select.poll()
        self._poll.register(self._pg.socket, select.POLLIN)
        self._pg.enter_pipeline_mode()

    def send(self, query: bytes, values: Sequence[Any] = ()) -> Answer:
        """Add a statement to the flight."""
        dumping = self._dumping
        dumped = dumping.dump_sequence(values, [_BINARY] * len(values))
        key = (query, dumping.types or ())
        name = self._prepared.get(key) or self._prepare(key)
        self._pg.send_query_prepared(name, dumped, dumping.formats, Format.BINARY)
        self._is_at_end = False
        answer = Answer(self._loading)
        self._awaited.append(answer)
        return answer

    def _prepare(self, key: _Key) -> bytes:
        if len(self._prepared) >= MOST_PREPARED:
            self._prepared.clear()
            self._pg.send_query_params(b"DEALLOCATE ALL", None)
            self._awaited.append(None)
        query, types = key
        self._prepared[key] = name = b"c%d" % next(self._numbers)
        self._pg.send_prepare(name, query, types)
        self._awaited.append(key)
        return name

    def part(self) -> Answer:
        """End a part of the flight: what came outside of BEGIN and COMMIT takes effect here, and
        after an error the rest of the part is left out.
        """
        end = Answer(self._loading)
        if not self._is_at_end:
            self._pg.pipeline_sync()
            self._awaited.append(end)
            self._is_at_end = True
        return end

    def push(self) -> None:
        """Let the flight leave; its answers come with those of the next one."""
        while self._pg.flush():
            self._poll.modify(self._pg.socket, select.POLLIN | select.POLLOUT)
            if any(event & ~select.POLLOUT for _, event in self._listen()):
                self._pg.consume_input()
            self._poll.modify(self._pg.socket, select.POLLIN)

    def _listen(self) -> list[tuple[int, int]]:
        """What happens on the connection. One that is open and silent for too long is given up: its
        server has stopped, and nothing else would tell.
        """
        events = self._poll.poll(SILENCE * 1000)
        if not events:
            self._pg.finish()
            raise psycopg.OperationalError(f"the server has said nothing for {SILENCE:g} s")
        return events

    def wait(self) -> None:
        """Until everything that was sent is answered; raises the first error."""
        self.part()
        self.push()
        pg, awaited = self._pg, self._awaited
        problem: psycopg.Error | None = None
        while awaited:
            while pg.is_busy():
                self._listen()
                pg.consume_input()
            result = pg.get_result()
            if result is None:  # between the results of two statements
                if pg.status == _BAD:
                    raise psycopg.OperationalError("the connection is lost")
                continue
            self._take(awaited.popleft(), result)
            if result.status in _FAILED:
                problem = problem or _problem(result)
                if result.error_field(DiagnosticField.SEVERITY_NONLOCALIZED) in _LAST_WORDS:
                    pg.finish()  # the end of the connection may not have arrived yet
                if pg.status == _BAD:
                    break
        if problem is not None:
            raise problem

    def _take(self, sent: Answer | _Key | None, result: PGresult) -> None:
        if isinstance(sent, Answer):
            sent.result = result
        elif sent is not None and result.status in _FAILED:  # maybe because of an earlier error
            self._prepared.pop(sent, None)

    def require(self) -> None:
        """Raise if the server has ended the connection; for a moment when nothing is awaited."""
        while self._poll.poll(0):
            self._pg.consume_input()


def _problem(result: PGresult) -> psycopg.Error:
    if result.error_field(DiagnosticField.SQLSTATE):
        return error_from_result(result)
    return psycopg.OperationalError(result.get_error_message())  # the connection broke
