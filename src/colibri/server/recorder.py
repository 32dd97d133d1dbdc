"""Enter and exit records: from a call to the ledger.

The Recorder owns the one read-write connection; the write lane says who may use it. Each of its
transactions makes sure, before it commits, that the file is still the one that was opened and holds
what this server wrote.
"""

import time
from contextlib import contextmanager

from colibri.core import canonical
from colibri.core import ledger as form
from colibri.core.errors import Damaged
from colibri.server.faults import Guard
from colibri.store import ledger
from colibri.store.sqlite import connection
from colibri.store.sqlite.checkpoint import set_patience
from colibri.store.sqlite.identity import Opened, check_same_file
from colibri.store.sqlite.transaction import Transaction

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from colibri.core.ledger import Entry, Head
    from colibri.server.call import Call
    from colibri.server.envelope import Outcome
    from colibri.server.health import Health
    from colibri.server.ids import Ids
    from colibri.store.ledger import Chain


# Short and always the same: if waits grew, whoever had waited longest would ask least often.
PAUSE = 0.003


class Patience:
    """How long to wait for another process that holds the database: 10 s, but not in a hurry.

    At the end of a server whose calls are all answered only the records of probes are left, and
    nobody waits for them.
    """

    def __init__(self, hurried: "Callable[[], bool]") -> None:
        self.spent = False
        self._hurried = hurried
        self._until = 0.0

    def __call__(self, tries: int) -> bool:
        if tries == 0:
            self._until = time.monotonic() + connection.BUSY_TIMEOUT_MS / 1000
        if self.spent or self._hurried() or time.monotonic() >= self._until:
            return False
        time.sleep(PAUSE)
        return True


class Recorder:
    """What is known of the open ledger."""

    def __init__(
        self,
        opened: Opened,
        *,
        ids: "Ids",
        utc: "Callable[[], str]",
        health: "Health",
        hurried: "Callable[[], bool]",
    ) -> None:
        self._patience = Patience(hurried)
        set_patience(opened.db, self._patience)
        head = ledger.head(opened.db)
        self.opened = opened
        self.log = ledger.log_id(opened.db)
        self._ids = ids
        self._utc = utc
        self._health = health
        self._guard = Guard(health)
        self.server = ids.uuid("server", head.seq if head else 0)
        self._known: Head | None = head

    @contextmanager
    def transaction(self, *, durable: bool, patient: bool = True) -> "Iterator[Chain]":
        """Extend the chain; a durable commit is synced. Raises Unavailable or CommitFailed.

        Without patience it raises Busy as soon as another process is in the way.
        """
        self._patience.spent = not patient
        with self._guard:
            with Transaction(self.opened.db, durable=durable):
                chain = ledger.Chain(self.opened.db, self.log, self._ids.nonce)
                self._refuse_older(chain)
                yield chain
                check_same_file(self.opened)
                self._guard.committing = True
            self._known = chain.mark()
            self._health.disk_full = False

    def enter(self, chain: "Chain", call: "Call") -> "Entry":
        """Append a call's enter record; here a call gets its id, if it has none."""
        call.id = call.id or self._ids.uuid("call", chain.mark().seq + 1)
        line = call.request.line
        payload = form.enter_payload(
            server=self.server,
            tool=call.name,
            arguments=call.plain,
            size=None if call.refusal is None else len(line),
            sha256=None if call.refusal is None else canonical.sha256(line).hex(),
        )
        call.entry = self._append(chain, "call.enter", payload, call)
        return call.entry

    def exit(self, chain: "Chain", call: "Call", outcome: "Outcome") -> "Entry":
        """Append a call's exit record."""
        assert call.entry is not None  # it was entered
        payload = form.exit_payload(
            enter=call.entry.seq,
            tool=call.name,
            outcome=outcome.outcome,
            code=outcome.code,
            result_sha256=outcome.sha256(),
            duration_ms=call.duration_ms,
        )
        return self._append(chain, "call.exit", payload, call)

    def receipt(self, entry: "Entry") -> dict[str, object]:
        """What a client may keep as proof that its call is in the ledger."""
        return {"log": self.log, "seq": entry.seq, "head": entry.leaf.hex()}

    def _append(
        self, chain: "Chain", kind: str, payload: dict[str, object], call: "Call"
    ) -> "Entry":
        return chain.append(
            kind,
            payload,
            at=self._utc(),
            call=call.id,
            session=call.session,
            task=call.task,
            agent=call.agent,
        )

    def _refuse_older(self, chain: "Chain") -> None:
        """Notice an older copy that was written over the file, so that its inode is the same."""
        known = self._known
        if known is None or chain.mark() == known:
            return
        if ledger.leaf_at(self.opened.db, known.seq) != known.leaf:
            raise Damaged(
                f"the ledger is not the one this server wrote: record {known.seq} is gone or is"
                " another one; was an older copy put back? Restart to go on from the file as it is"
            )
