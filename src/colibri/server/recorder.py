"""Writes a call's enter and exit records to the ledger.

The Recorder owns the one read-write connection; the journal says who may use it. Before a commit
that is reported to a client, the file must still be the one that was opened, at the same schema
version; after the commit it must still be at its path.
"""

from contextlib import suppress

from colibri.core import ledger as form
from colibri.core.errors import ColibriError, Damaged
from colibri.hook import spool
from colibri.server.clock import Patience
from colibri.server.faults import CommitFailed, Guard
from colibri.server.origin import NOWHERE, recordable
from colibri.store import ledger, sessions
from colibri.store.sessions import Caller
from colibri.store.sqlite.checkpoint import set_patience
from colibri.store.sqlite.identity import Opened, check_same_file, check_same_place
from colibri.store.sqlite.watch import Change
from colibri.tools.schema import dump

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, TypeVar

    from colibri.config import Config
    from colibri.core.gates import Gates
    from colibri.core.ledger import Entry, Head
    from colibri.server.call import Call
    from colibri.server.clock import Clock
    from colibri.server.envelope import Outcome
    from colibri.server.health import Health
    from colibri.server.ids import Ids
    from colibri.server.origin import Origin
    from colibri.store.ledger import Chain

    T = TypeVar("T")


class Recorder:
    """The open ledger; `synced` is the newest head that would survive a power cut."""

    def __init__(
        self,
        opened: Opened,
        *,
        ids: "Ids",
        clock: "Clock",
        health: "Health",
        config: "Config",
        gates: "Gates",
        idle_shutdown: "Callable[[], bool]",
    ) -> None:
        self.patience = Patience(idle_shutdown)
        set_patience(opened.db, self.patience, self._checkpoint_failed)
        head = ledger.head(opened.db)
        self.opened = opened
        self._gates = self._gates_now = gates
        self.log = ledger.log_id(opened.db)
        self.changes: Callable[[], int] = (
            opened.db.total_changes
        )  # rows changed since it was opened
        self._ids = ids
        self._utc = clock.utc
        self._health = health
        self._guard = Guard(health)
        self._claim_minutes = config.claim_minutes
        self._host_session = host = recordable(config.host_session)
        self._person = config.person
        self.server = ids.uuid("server", head.seq if head else 0)
        self._last_caller: tuple[Origin, Caller] = (NOWHERE, Caller(self.server, None, host))
        # The sessions in which callers work, as read in the current transaction.
        self._current: dict[Caller, tuple[str, str | None] | None] = {}
        self.synced: Head | None = None
        self._known: Head | None = head

    def _checkpoint_failed(self, problem: Exception) -> None:
        why = f"committed pages cannot be copied into the database file: {problem}"
        self._health.degrade("io", why)

    def transact(
        self, work: "Callable[[Chain], T]", *, durable: bool, answered: bool = True
    ) -> "T":
        """Extend the chain in one transaction; a durable commit is synced.

        `answered` means that a client learns of this commit. Raises Unavailable or CommitFailed,
        and Busy once another process has held the database for longer than `patience` allows.
        """
        with self._guard:
            with Change(self.opened.db, self.opened.watch, durable=durable):
                chain = ledger.Chain(self.opened.db, self.log, self._ids.nonce, dump)
                self._refuse_older(chain)
                self._current.clear()
                result = work(chain)
                if answered:
                    check_same_file(self.opened)
                self._guard.committing = True
            self._guard.committed = True
            self._known = chain.mark()
            if answered:
                check_same_place(self.opened)
        if durable:
            self.synced = self._known
        self._health.disk_full = False
        return result

    def lane(self, chain: "Chain") -> "dict[str, Any]":
        """What a handler that writes is given of its lane."""
        return {"db": self.opened.db, "chain": chain, "gates": self._gates_now}

    def prepare_gates(self, calls: "Iterable[Call]") -> None:
        """Record what hosts have reported until now, if a call of a round is judged by it; what
        cannot be recorded keeps tasks from being DONE.
        """
        self._gates_now, path = self._gates, self.opened.path
        ends = (call.name == "task_update" and "DONE" in _states(call) for call in calls)
        if self._gates.done is None or not any(ends):
            return
        with suppress(ColibriError, CommitFailed):
            self.take_in(path)
        if spool.size(path):
            what = f"what your host reported waits in {path}-spool and cannot be recorded now"
            self._gates_now = self._gates.but(problem=f"{what}: send the call again in a moment")

    def enter(self, chain: "Chain", call: "Call") -> "Entry":
        """Append a call's enter record and give the call its owner and, if it has none, an id."""
        call.id = call.id or self._ids.uuid("call", chain.mark().seq + 1)
        now, origin = self._utc(), call.request.origin
        caller = self._caller_at(origin)
        self._find_owner(call, caller, now)
        size, sha256 = call.digest or (None, None)
        payload = form.enter_payload(
            server=self.server,
            tool=call.name,
            arguments=call.plain,
            client=caller.client,
            host_session=caller.host_session,
            use=recordable(origin.use),
            size=size,
            sha256=sha256,
        )
        call.entry = call.append(chain, "call.enter", payload, now)
        return call.entry

    def _caller_at(self, origin: "Origin") -> Caller:
        """The caller of this origin; cached, for most calls of a client have the same one."""
        known, caller = self._last_caller
        if known is not origin:
            host_session = recordable(origin.host_session) or self._host_session
            caller = Caller(self.server, recordable(origin.client), host_session)
            self._last_caller = (origin, caller)
        return caller

    def take_in(self, path: str) -> int:
        """Record the deeds that hooks could not; returns how many bytes they had.

        Called at the start, and before a decision that depends on what the host has reported.
        """
        if not (size := spool.size(path)):
            return 0
        self.patience.begin()
        with spool.Waiting(path, self.patience) as kept:
            lost = spool.lost(path)
            left = self.transact(
                lambda chain: kept.record(
                    self.opened.db, chain, now=self._utc(), lost=lost, minutes=self._claim_minutes
                ),
                durable=False,
            )
            kept.done()
        spool.add_lost(path, left - lost)
        return size

    def _find_owner(self, call: "Call", caller: Caller, now: str) -> None:
        """Assign the call to the session it names, else to the one in which its caller works."""
        (session, agent), db = call.owner, self.opened.db
        call.caller = caller
        if self._person is not None:
            call.set_owner(session, self._person)
        elif session is not None:
            if agent is None:
                call.set_owner(session, sessions.agent_of(db, session))
        elif call.tool is None or call.tool.session != "opened":
            if caller not in self._current:
                minutes = self._claim_minutes
                self._current[caller] = sessions.current(db, caller, now=now, minutes=minutes)
            if found := self._current[caller]:
                call.set_owner(found[0], agent or found[1])

    def exit(self, chain: "Chain", call: "Call", outcome: "Outcome") -> "Entry":
        """Append a call's exit record; for a probe, the enter record too."""
        entered = call.entry or self.enter(chain, call)
        if call.verified is not None:
            ledger.note_verified(self.opened.db, call.verified)
        payload = form.exit_payload(
            enter=entered.seq,
            tool=call.name,
            outcome=outcome.outcome,
            code=outcome.code,
            result_sha256=outcome.sha256(),
            duration_ms=call.duration_ms,
            repeats=call.repeats,
        )
        return call.append(chain, "call.exit", payload, self._utc())

    def _refuse_older(self, chain: "Chain") -> None:
        """Detect an older copy written over the file, which keeps the inode."""
        known = self._known
        if known is None or chain.mark() == known:
            return
        if ledger.leaf_at(self.opened.db, known.seq) != known.leaf:
            raise Damaged(
                f"the ledger is not the one this server wrote: record {known.seq} is missing or"
                " differs; was an older copy restored? Restart to continue with the file as it is"
            )


def _states(call: "Call") -> "Any":
    """The state, or the list of states, that the arguments of a call name."""
    return (call.plain or {}).get("status", ())
