"""A ledger on PostgreSQL that is open for writing, as store/home.py describes it.

Whoever appends holds the lock of the log's head from the beginning of a transaction to its commit,
which is not synced: the lock is held for no disk. A commit that a client learns of is flushed
afterwards, by a small transaction of its own that is synced and covers all before it. Until then
nobody may be told of it, not even of what others have written: a crash would take it back.

A broken connection is replaced by the next transaction, and its session ended: what was sent over
it and comes late must not be done any more. If it broke in a commit, the record that was appended
last tells whether that took effect. It is looked up under the lock of the head, which the old
session would still hold if it were about to commit.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

import psycopg

from colibri.core.errors import Damaged, ResourceError
from colibri.core.ledger import Head, genesis
from colibri.store import ledger
from colibri.store.faults import Undone
from colibri.store.home import Patience
from colibri.store.ledger import Chain
from colibri.store.postgres import SCHEMA, faults
from colibri.store.postgres.chain import FarChain
from colibri.store.postgres.line import Answer
from colibri.store.postgres.pipelined import Pipelined

_BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"
_HEAD = f"SELECT * FROM take_head({SCHEMA}, ?, ?)"
# A commit that has written nothing of its own would not wait for the disk.
_FLUSH = (
    "SELECT set_config('synchronous_commit', 'on', true),"
    " pg_logical_emit_message(true, 'colibri', '')"
)
# Sessions of this writer that PostgreSQL has not yet seen to be broken; it waits for their end.
_END = (
    "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
    " WHERE application_name = current_setting('application_name') AND pid <> pg_backend_pid()"
)
_ADVICE = {
    faults.OTHER_VERSION: "restart, and use the newer Colibri that migrated it",
    faults.OTHER_RECORDS: (
        "an older copy was restored, or a standby without it was promoted; restart to continue with"
        " the ledger as it is"
    ),
    **dict.fromkeys(
        faults.GONE,
        "a part of the schema is gone, or this role may not use the schema any more; check both,"
        " then restart",
    ),
}
LOOKUP_SECONDS = 15.0  # for the server to come back, and to end a session that was cut off
_PAUSE = 0.25

Connect = Callable[[], "psycopg.Connection[Any]"]


class Opened:
    """The connection, the head that was read under the lock, and the server's clock."""

    is_far = True
    migrated_from: int | None = None
    backup: str | None = None
    unclean = False
    connections = 0

    def __init__(
        self,
        connect: Connect,
        monotonic: Callable[[], float],
        sleep: Callable[[float], None],
    ) -> None:
        self._connect = connect
        self._monotonic = monotonic
        self._sleep = sleep
        self.db = Pipelined(connect())
        self.log = ledger.log_id(self.db)
        self.begun = False  # a transaction has begun before anybody asked for it
        self.far: FarChain | None = None  # of the transaction that is open
        self._head = Head(0, b"")
        self._clock = (datetime.fromisoformat("1970-01-01T00:00:00Z"), 0.0)

    def transaction(
        self,
        *,
        durable: bool,
        answered: bool = False,
        known: Head | None = None,
        far: bool = False,
        ahead: Callable[[], Iterable[Callable[[], object]]] | None = None,
    ) -> "Change":
        """A transaction under the lock of the head."""
        return Change(self, flushed=durable or answered, known=known, far=far, ahead=ahead)

    def chain(
        self,
        log: str,
        nonce: Callable[[int], bytes],
        dump: Callable[[object], bytes] | None = None,
        *,
        known: Head | None = None,
        far: bool = False,
    ) -> Any:
        """The server has checked that it has what is known."""
        if far:
            self.far = FarChain(self.db, nonce, dump)
            return self.far
        return Chain(self.db, log, nonce, dump, newest=self._head)

    def utc(self) -> str:
        """Now, by the server's clock: never later than that, and in the order of the records."""
        at, read = self._clock
        now = at + timedelta(seconds=self._monotonic() - read)
        return now.isoformat(timespec="microseconds").replace("+00:00", "Z")

    def check(self) -> None:
        """Nothing: the version is checked under the lock, and the rights by the server."""

    def check_again(self) -> None:
        """Nothing, either."""

    def wait_with(self, patience: Patience, failed: Callable[[Exception], None]) -> None:
        """The server waits, for as long as the connection's `lock_timeout` says."""

    def sync(self) -> None:
        if not self.db.is_broken:
            self.flush()

    def close(self, *, checkpoint: bool = True) -> str:
        self.rest()
        self.db.close()
        return ""

    def rest(self) -> None:
        """Give back a transaction that was begun and not used."""
        if self.begun:
            self.begun = False
            with suppress(psycopg.Error):
                self.db.execute("COMMIT")  # nothing was changed
                self.db.line.wait()

    # What a Change is made of.

    def begin(self, known: Head | None) -> Answer:
        """Send what begins a transaction; `read_head` takes the answer."""
        self.db.last = None
        self.db.execute(_BEGIN)
        return self.db.send(_HEAD, known or (0, b""))

    def read_head(self, pending: Answer) -> None:
        ((seq, leaf, at),) = self.db.receive(pending)
        self._head = Head(0, genesis(self.log)) if seq is None else Head(seq, leaf)
        self._clock = (datetime.fromisoformat(at), self._monotonic())

    def flush(self) -> None:
        """Wait until all that was committed before is on disk, and on a synchronous standby."""
        self.send_flush()
        self.db.line.wait()

    def send_flush(self) -> tuple[Answer, Answer]:
        return self.db.send(_FLUSH), self.db.line.part()  # here it commits

    def reconnect(self) -> None:
        """Replace a connection that broke; Damaged if another ledger is there now."""
        self.begun = False
        with suppress(psycopg.Error):
            self.db.pg.close()
        try:
            self.db.use(self._connect())
        except ResourceError as problem:  # another version of the schema, or of the server
            raise Damaged(f"{problem.message}: {problem.hint}") from problem
        self.connections += 1
        self.db.execute(_END)
        if (log := ledger.log_id(self.db)) != self.log:
            raise Damaged(f"the database holds another log now, {log}: restart")

    def has_committed(self, last: tuple[int, bytes] | None, known: Head | None) -> bool:
        """Whether a transaction whose commit was not answered took effect; waits for the server.

        The lock is ours only when the old connection's transaction has ended in one way or another.
        """
        deadline = self._monotonic() + LOOKUP_SECONDS
        while True:
            try:
                self.reconnect()
                self.read_head(self.begin(None))
                found = self._is_there(last, known)
                self.db.execute("COMMIT")
                self.flush()
            except (psycopg.Error, Damaged) as problem:
                passes = faults.fault(problem) in ("unreachable", "busy")
                if not passes or self._monotonic() > deadline:
                    raise faults.OutcomeUnknown(str(problem)) from problem
                self._sleep(_PAUSE)
            else:
                return found

    def _is_there(self, last: tuple[int, bytes] | None, known: Head | None) -> bool:
        if self.far is not None and self.far.coming:
            return self.far.is_there(known.seq if known else 0)
        return last is not None and ledger.leaf_at(self.db, last[0]) == last[1]


class Change:
    """A transaction of an Opened; see there."""

    __slots__ = ("_ahead", "_far", "_flushed", "_head", "_known", "_opened")

    def __init__(
        self,
        opened: Opened,
        *,
        flushed: bool,
        known: Head | None,
        far: bool,
        ahead: Callable[[], Iterable[Callable[[], object]]] | None,
    ) -> None:
        self._opened = opened
        self._flushed = flushed
        self._known = known
        self._far = far
        self._ahead = ahead
        self._head: Answer | None = None

    def __enter__(self) -> None:
        opened = self._opened
        opened.far = None
        if opened.begun:
            opened.begun = False
            return
        try:
            try:
                self._begin()
            except psycopg.Error:
                if not opened.db.is_broken:
                    raise
                self._begin()  # it broke while nobody used it
        except BaseException as problem:
            self._roll_back()
            raise _explained(problem) from problem

    def _begin(self) -> None:
        opened = self._opened
        if opened.db.is_broken:
            opened.reconnect()
        opened.db.line.require()
        self._head = opened.begin(self._known)
        if not self._far:
            opened.read_head(self._head)

    def __exit__(self, kind: object, problem: BaseException | None, trace: object) -> None:
        if problem is None:
            self._commit()
            return
        self._roll_back()
        explained = _explained(problem)
        if explained is not problem:
            raise explained from problem

    def _commit(self) -> None:
        opened, db = self._opened, self._opened.db
        last = db.last
        try:
            db.line.require()
        except psycopg.Error as problem:  # nothing of this flight was sent
            self._roll_back()
            raise Undone(str(problem)) from problem
        ends: list[Answer] = []
        try:
            ends.append(db.commit())
            if self._flushed:
                ends += opened.send_flush()
            if self._ahead is None:
                db.line.wait()
            else:
                self._begin_ahead(self._ahead)
            if self._far and self._head is not None and self._ahead is None:
                opened.read_head(self._head)  # for the time: it has arrived
        except psycopg.Error as problem:
            good = [one.is_good for one in ends]
            if good and all(good):  # what failed is only what was begun ahead
                self._roll_back()
            elif not db.is_broken and not any(good[:1]):
                self._roll_back()
                raise _explained(problem) from problem
            elif not opened.has_committed(last, self._known):
                raise Undone(str(problem)) from problem
        except BaseException:
            self._roll_back()  # or the next transaction would commit what was sent already
            raise

    def _begin_ahead(self, reads: Callable[[], Iterable[Callable[[], object]]]) -> None:
        opened = self._opened
        head = opened.begin(self._known)
        opened.db.look_ahead(reads())
        opened.read_head(head)
        opened.begun = True

    def _roll_back(self) -> None:
        """By closing the connection: that waits for nothing."""
        with suppress(psycopg.Error):
            self._opened.db.pg.close()


def _explained(problem: BaseException) -> BaseException:
    """What an error of the database means for the ledger, where it means something of its own."""
    state = getattr(problem, "sqlstate", None)
    if state in _ADVICE:
        what, *_ = str(problem).splitlines()
        return Damaged(f"{what}: {_ADVICE[state]}")
    if isinstance(problem, psycopg.Error) and faults.breaks_constraint(problem):
        what, *_ = str(problem).splitlines()
        return Damaged(
            f"the database refuses a record: {what}; audit_verify_chain says what is wrong with it"
        )
    return problem
