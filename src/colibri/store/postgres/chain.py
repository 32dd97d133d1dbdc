"""Records that the database itself puts at the end of the chain, in one trip.

Their numbers and leaves come back with a later answer, and their times are the database's: it may
not have been asked for the time yet. That suits the enter and exit records of calls, which name no
number of their own; and not TEST mode, whose nonces depend on the number.
"""

from collections.abc import Callable
from typing import Any

from colibri.core import ledger as record
from colibri.core.ledger import Entry, Head
from colibri.store.postgres.line import Answer
from colibri.store.postgres.pipelined import Pipelined
from colibri.store.sessions import LONGEST, Caller

_APPEND = (
    "INSERT INTO ledger (at, kind, call, session, task, agent, nonce, body)"
    " VALUES (utc(clock_timestamp()), ?, ?, ?, ?, ?, ?, ?) RETURNING seq, leaf"
)
_ENTER = "SELECT * FROM enter_call(?, ?, ?, ?, ?, ?, ?, ?, CAST(? AS float8), ?, ?)"


class Coming:
    """An Entry whose number is still on its way, of a call; and, of an enter, whose call it is."""

    __slots__ = ("_db", "_entry", "_pending", "call", "kind", "owner")

    owner: tuple[str | None, str | None]

    def __init__(self, db: Pipelined, call: str, kind: str, pending: Answer) -> None:
        self._db = db
        self.call = call
        self.kind = kind
        self._pending = pending
        self._entry: Entry | None = None

    def arrive(self, seq: int, leaf: bytes, *owner: str | None) -> None:
        self._entry = Entry(seq, leaf)
        self.owner = (owner[0], owner[1]) if owner else (None, None)

    @property
    def entry(self) -> Entry:
        if self._entry is None:
            (row,) = self._db.receive(self._pending)
            self.arrive(*row[:4])
        assert self._entry is not None
        return self._entry

    @property
    def seq(self) -> int:
        return self.entry.seq

    @property
    def leaf(self) -> bytes:
        return self.entry.leaf


class FarChain:
    """As ledger.Chain, for records whose number nobody needs before the commit."""

    is_far = True

    def __init__(
        self,
        db: Pipelined,
        nonce: Callable[[int], bytes],
        dump: Callable[[object], bytes] | None,
    ) -> None:
        self._db = db
        self._nonce = nonce
        self._dump = dump
        self.coming: list[Coming] = []

    def append(
        self,
        kind: str,
        payload: record.Said,
        *,
        at: str,
        call: str,
        session: str | None = None,
        task: str | None = None,
        agent: str | None = None,
    ) -> Any:
        body = record.body(kind, payload, self._dump)
        said = (kind, call, session, task, agent, self._nonce(0), body)
        return self._await(call, kind, self._db.send(_APPEND, said))

    def enter(  # noqa: PLR0913 - see enter_call in 0003_trail.sql
        self,
        body: bytes,
        *,
        call: str,
        task: str | None,
        session: str | None,
        agent: str | None,
        seeks: bool,
        caller: Caller,
        minutes: float,
    ) -> Coming:
        """Append the enter record of a call."""
        owner = (session, task, agent, seeks)
        of = (caller.server, caller.client, caller.host_session, min(minutes, LONGEST))
        values = (call, *owner, *of, self._nonce(0), body)
        return self._await(call, "call.enter", self._db.send(_ENTER, values))

    def _await(self, call: str, kind: str, pending: Answer) -> Coming:
        self.coming.append(Coming(self._db, call, kind, pending))
        return self.coming[-1]

    def mark(self) -> Head | None:
        """The newest record, if one was appended; waits for its number and those before it, which
        other threads may ask for while this connection is used for something else.
        """
        return [one.entry for one in self.coming][-1] if self.coming else None

    def is_there(self, since: int) -> bool:
        """Whether the records are in the ledger, after a commit that was not answered; if so, they
        have arrived.
        """
        calls = ", ".join("?" * len(self.coming))
        rows = self._db.execute(
            "SELECT seq, leaf, session, agent, call, kind FROM ledger"
            f" WHERE seq > ? AND call IN ({calls})",
            (since, *(one.call for one in self.coming)),
        )
        found = {(call, kind): said for *said, call, kind in rows}
        if not all((one.call, one.kind) in found for one in self.coming):
            return False
        for one in self.coming:
            one.arrive(*found[one.call, one.kind])
        return True
