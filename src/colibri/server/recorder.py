"""Writes a call's enter and exit records to the ledger.

The Recorder owns the one read-write connection; the journal says who may use it. Before a commit
that is reported to a client, the ledger must still be the one that was opened, at the same schema
version; after the commit it must still be at its place.
"""

from contextlib import suppress
from functools import partial

from colibri.core import ledger as form
from colibri.core.errors import ColibriError
from colibri.hook import lost, spool
from colibri.server.clock import Patience
from colibri.server.faults import Broken, CommitFailed, Guard
from colibri.server.origin import recordable
from colibri.server.owners import Owners
from colibri.server.work import Work
from colibri.store import ledger
from colibri.store.faults import errors
from colibri.store.savepoint import Savepoint
from colibri.tools.schema import dump

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any, TypeVar

    from colibri.config import Config
    from colibri.core.gates import Gates
    from colibri.core.ledger import Entry, Head
    from colibri.server.call import Call
    from colibri.server.clock import Clock
    from colibri.server.envelope import Outcome
    from colibri.server.health import Health
    from colibri.server.ids import Ids
    from colibri.store.home import Opened
    from colibri.store.ledger import Chain

    T = TypeVar("T")

SEAL = "merkle_finalize"  # the tool after which a head is kept


class Recorder:
    """The open ledger; `synced` is the newest head that would survive a power cut."""

    def __init__(
        self,
        opened: "Opened",
        *,
        ids: "Ids",
        clock: "Clock",
        health: "Health",
        config: "Config",
        gates: "Gates",
        idle_shutdown: "Callable[[], bool]",
    ) -> None:
        self.patience = Patience(idle_shutdown)
        opened.wait_with(self.patience, self._checkpoint_failed)
        head = ledger.head(opened.db)
        self.opened = opened
        self.gates = self._gates_now = gates
        self.log = opened.log
        self.log_json = dump(self.log)
        # Rows changed since it was opened
        self.changes: Callable[[], int] = opened.db.total_changes
        self._ids = ids
        # Now, by the ledger's own clock if it has one
        self.utc: Callable[[], str] = clock.utc
        if opened.is_far:
            self.utc = lambda: opened.utc() or clock.utc()
        self._on_server = opened.is_far
        self._is_far = opened.is_far and not ids.seeded and config.person is None
        self._health = health
        self._guard = Guard(health)
        self._config = config
        self.server = ids.uuid("server", head.seq if head else 0)
        self._owners = Owners(self.server, opened.db, config)
        self.synced: Head | None = None
        self._known: Head | None = head
        self._first = head
        self.seals = False  # whether one was made since a head was kept

    def sync(self) -> None:
        """Sync what was written, at the end, if that can still be done."""
        if self._known == self._first or self._health.latched:
            return
        with suppress(*errors(OSError)):
            self.opened.sync()
            self.synced = self._known

    def _checkpoint_failed(self, problem: Exception) -> None:
        why = f"committed pages cannot be copied into the database file: {problem}"
        self._health.degrade("io", why)

    def transact(
        self,
        work: "Callable[[Chain], T]",
        *,
        durable: bool,
        answered: bool = True,
        far: bool = False,
        then: "Sequence[Call]" = (),
    ) -> "T":
        """Extend the chain in one transaction; a durable commit is synced.

        `answered` means that a client learns of this commit. `far` work only enters and exits
        calls; `then` are those that run in the next transaction, so what they read first can be
        read already. Raises Unavailable or CommitFailed, and Busy once another process has held the
        database for longer than `patience` allows.
        """
        if not (far and self._is_far):
            return self._transact(work, durable=durable, answered=answered)
        try:
            return self._transact(work, durable=durable, answered=answered, far=True, then=then)
        except Broken:
            return self._transact(work, durable=durable, answered=answered, far=True, then=then)

    def _transact(
        self,
        work: "Callable[[Chain], T]",
        *,
        durable: bool,
        answered: bool,
        far: bool = False,
        then: "Sequence[Call]" = (),
    ) -> "T":
        opened = self.opened
        # A server that crashes takes back what it has not flushed; that is no damage.
        known = self.synced if self._on_server else self._known
        ahead = partial(self._owners.first_reads, then) if far and then else None
        self._owners.begin()
        with self._guard:
            with opened.transaction(
                durable=durable, answered=answered, known=known, far=far, ahead=ahead
            ):
                chain = opened.chain(self.log, self._ids.nonce, dump, known=known, far=far)
                result = work(chain)
                if answered:
                    opened.check()
                self._guard.committing = True
            self._guard.committed = True
            self._known = chain.mark() or self._known
            self._owners.settle()
            if answered:
                opened.check_again()
        if durable or (answered and self._on_server):
            self.synced = self._known
        self._health.disk_full = False
        self._health.unreachable = ""
        return result

    def savepoint(self) -> Savepoint:
        """A part of the transaction that is open, for one handler."""
        return Savepoint(self.opened.db)

    def work(self, call: "Call", chain: "Chain") -> Work:
        """What the handler of a call that writes is given."""
        now, config = self.utc(), self._config
        gates = self._gates_now
        return Work(call, now, self._ids, config, db=self.opened.db, chain=chain, gates=gates)

    def prepare_gates(self, calls: "Iterable[Call]") -> None:
        """Record what hosts have reported until now, if a call of a round is judged by it; what
        cannot be recorded keeps tasks from being DONE.
        """
        self._gates_now, path = self.gates, self._config.db_path
        ends = (call.name == "task_update" and "DONE" in _states(call) for call in calls)
        if self.gates.done is None or not any(ends):
            return
        with suppress(ColibriError, CommitFailed):
            self.take_in(path)
        if spool.size(path):
            what = f"what your host reported waits in {path}-spool and cannot be recorded now"
            self._gates_now = self.gates.but(problem=f"{what}: send the call again in a moment")

    def entered(self, chain: "Chain", call: "Call") -> "Entry":
        """The enter record of a call. It is appended now if there is none, or if a database server
        that crashed has taken it back.
        """
        if call.entry is not None and call.connection != self.opened.connections:
            self._look_up(call, call.entry)
        return call.entry or self.enter(chain, call)

    def _look_up(self, call: "Call", entry: "Entry") -> None:
        """Whether a record that was sent over an earlier connection is there."""
        if ledger.leaf_at(self.opened.db, entry.seq) != entry.leaf:
            call.entry = None
            call.reset_names()

    def enter(self, chain: "Chain", call: "Call") -> "Entry":
        """Append a call's enter record and give the call its owner and, if it has none, an id."""
        if not call.id:
            call.id = self._ids.uuid("call", 0 if chain.is_far else chain.mark().seq + 1)
        call.connection = self.opened.connections
        now, origin = self.utc(), call.request.origin
        call.caller = caller = self._owners.caller_at(origin)
        if not chain.is_far:
            self._owners.find(call, caller, now)
        size, sha256 = call.digest or (None, None)
        body = form.enter_body(
            server=self.server,
            tool=call.name,
            arguments=call.plain,
            client=caller.client,
            host_session=caller.host_session,
            use=recordable(origin.use),
            size=size,
            sha256=sha256,
            dump=dump,
        )
        if chain.is_far:
            entered: Entry = self._owners.enter(chain, call, caller, body)
            return entered
        call.entry = call.append(chain, "call.enter", body, now)
        return call.entry

    def take_in(self, path: str) -> int:
        """Record the deeds that hooks could not; returns how many bytes they had.

        Called at the start, and before a decision that depends on what the host has reported.
        """
        if not (size := spool.size(path)):
            return 0
        self.patience.begin()
        with spool.Waiting(path, self.patience) as kept:
            before = lost.count(self._config)
            left = self.transact(
                lambda chain: kept.record(
                    self.opened.db,
                    chain,
                    now=self.utc(),
                    lost=before,
                    minutes=self._config.claim_minutes,
                ),
                durable=False,
            )
            kept.done()
        lost.settle(self._config, before, left)
        return size

    def exit(self, chain: "Chain", call: "Call", outcome: "Outcome") -> "Entry":
        """Append a call's exit record; for a probe, the enter record too."""
        entered = self.entered(chain, call)
        self._owners.settle()  # of this very call, whose exit names the same owner
        if call.verified is not None:
            ledger.note_verified(self.opened.db, call.verified)
        body = form.exit_body(
            enter=entered.seq,
            tool=call.name,
            outcome=outcome.outcome,
            code=outcome.code,
            result_sha256=outcome.sha256(),
            duration_ms=call.duration_ms,
            repeats=call.repeats,
        )
        self._owners.remember(call)
        self.seals = self.seals or (call.name == SEAL and outcome.outcome == "ok")
        return call.append(chain, "call.exit", body, self.utc())


def _states(call: "Call") -> "Any":
    """The state, or the list of states, that the arguments of a call name."""
    return (call.plain or {}).get("status", ())
