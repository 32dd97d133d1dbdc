"""The five stages of every tool call, in their order (Specification 4.1):

    1 lane      a FIFO queue and one thread: a tool never overlaps itself
    2 validate  the arguments against the tool's struct; then secrets in them are replaced
    3 enter     the enter record is committed, then the sink is called
    4 dispatch  the handler runs
    5 exit      its changes and the exit record are committed together, then the sink is called

Each lane has its own way through them. `probe` answers first and records afterwards. `read` commits
one record before the handler runs and one after it. `enter` and `round` serve many writing calls at
once: one transaction for their enter records, one synced transaction for the rest.

If the ledger cannot be written (READONLY, MINIMAL, SAFE_MODE integrity or io, a full disk), calls
are audited on stderr. A server without a configuration has no trail except its sink.
"""

import time
from collections import deque

from colibri.core.errors import Unavailable
from colibri.core.modes import Capability
from colibri.server import envelope
from colibri.server.attempt import Attempt
from colibri.server.call import Call
from colibri.server.envelope import Outcome
from colibri.server.faults import Broken, Busy, CommitFailed, Guard
from colibri.server.journal import Job
from colibri.server.stages import dispatch, validate
from colibri.server.work import Work

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from colibri.config import Config
    from colibri.core.ledger import Entry
    from colibri.server.audit import Audit
    from colibri.server.clock import Clock, Patience
    from colibri.server.health import Health
    from colibri.server.ids import Ids
    from colibri.server.journal import Journal
    from colibri.server.log import Log
    from colibri.server.outbox import Outbox
    from colibri.server.recorder import Recorder
    from colibri.store.connection import Connection
    from colibri.store.ledger import Chain

ROUND_MS = 50
MAX_PROBE_RECORDS = 256


class _Undo(Exception):
    """Leaves a savepoint and rolls it back."""


class _Again(Exception):
    """A handler failed after it wrote: run the round again, each handler in a savepoint."""


class Pipeline:
    """The stages of one server, grouped by the lane whose thread runs them."""

    def __init__(  # noqa: PLR0913 - what a call meets on its way
        self,
        journal: "Journal",
        audit: "Audit",
        outbox: "Outbox",
        clock: "Clock",
        *,
        ids: "Ids",
        health: "Health",
        say: "Log",
        limits: "Config",
        show_stacks: bool,
    ) -> None:
        self._journal = journal
        self._audit = audit
        self._outbox = outbox
        self._clock = clock
        self._ids = ids
        self._health = health
        self._log = say
        self._limits = limits
        self._show_stacks = show_stacks
        self._guard = Guard(health)
        self.has_sink = audit.has_sink

    # The probe lane is the main thread.

    def probe(self, call: Call) -> None:
        """Answer at once; record afterwards, without a receipt."""
        self.prepare(call)  # 1, 2
        if self.has_sink:
            call.id = self._audit.new_call_id()
        outcome = self._run(call, Work(call, "", self._ids, self._limits))  # 3 (the sink), 4
        self.finish(call, outcome)  # 5 (the sink), and the answer
        self._record_probe(call, outcome)  # 3 and 5 (the ledger)

    def _record_probe(self, call: Call, outcome: Outcome) -> None:
        waiting = self._journal.unwritten_probes
        if not self._journal.records_calls():
            self._audit.write_to_stderr(call, outcome)
        elif waiting >= MAX_PROBE_RECORDS:
            self._health.count("probe_records")
            self._log("warn", f"[colibri] {call.name} was not recorded: too many records wait")
        else:
            if waiting > MAX_PROBE_RECORDS // 2:
                time.sleep(0.001)  # the answer is sent: let the write thread catch up
            self._journal.record_later(
                lambda recorder, chain: recorder.exit(chain, call, outcome),
                failed=lambda: self._audit.write_to_stderr(call, outcome),
            )

    # The read lane.

    def read(
        self, call: Call, db: "Connection | None", patience: "Patience", pause: "Callable[[], None]"
    ) -> Busy | None:
        """Serve one reading call; returns Busy if another process made it fail.

        Waiting for its records and waiting on its connection count against the same `patience`.
        """
        self.prepare(call)  # 1, 2
        # A verification returns a head of the log, so the records up to it are synced first.
        heads = call.tool is not None and call.tool.capability == Capability.VERIFY
        begun, entered = time.monotonic(), None
        try:
            entered = self._journal.commit(
                lambda recorder, chain: recorder.enter(chain, call),
                until=begun + patience.left,
                durable=heads,
            )  # 3
            patience.left -= time.monotonic() - begun
            if entered is None and patience.is_mostly_spent:
                # Whatever blocked the record for so long would block the connection as well.
                raise Busy(self._journal.why_not().message)
            call.id = call.id or self._audit.new_call_id()
            outcome = self._run_reading(call, self._reading(call, db, pause))  # 4
            entry = entered and self._journal.commit(
                lambda recorder, chain: recorder.exit(chain, call, outcome),
                until=time.monotonic() + patience.left,
                answered=True,
            )  # 5
        except Unavailable as problem:
            call.entry = entered  # None if it was rolled back
            self.turn_away(call, envelope.UNAVAILABLE, problem.message)
            return problem if isinstance(problem, Busy) else None
        if entry is None:
            if entered is not None:
                self._journal.owe_exit(call, outcome)
            self._audit.write_to_stderr(call, outcome)
        self.finish(call, outcome, entry)
        return None

    def _reading(self, call: Call, db: "Connection | None", pause: "Callable[[], None]") -> Work:
        recorder = self._journal.recorder
        now, gates = (recorder.utc(), recorder.gates) if recorder else (None, None)
        now = now or self._clock.utc()
        return Work(call, now, self._ids, self._limits, db=db, pause=pause, gates=gates)

    def _run_reading(self, call: Call, work: Work) -> Outcome:
        if call.refusal is not None or not self._journal.configured:
            return self._run(call, work)
        if not work.has_db:
            raise self._journal.why_not()
        try:
            return self._read_once(call, work)
        except Broken:  # a connection may break while nobody uses it; the next one is new
            return self._read_once(call, work)

    def _read_once(self, call: Call, work: Work) -> Outcome:
        with self._guard:
            if call.tool is not None and call.tool.sliced:
                outcome = self._run(call, work)
            else:
                with work.db:  # a savepoint; outside a transaction it begins a read transaction
                    outcome = self._run(call, work)
            if work.db.engine.is_far and not self._journal.records_calls():
                work.db.engine.sync(work.db)  # no commit of ours flushes what it has seen
            return outcome

    # The write lane.

    def enter(
        self, recorder: "Recorder", jobs: list[Job], calls: list[Call]
    ) -> Unavailable | CommitFailed | None:
        """Stage 3 for a round, and other lanes' records: one transaction, not synced.

        If it cannot be committed, the calls and jobs are failed and the reason is returned.
        """
        problem = self._journal.write(recorder, jobs, calls)
        if problem is not None:
            for call in calls:
                call.entry = None  # it was rolled back
                if isinstance(problem, Unavailable):
                    self.turn_away(call, envelope.UNAVAILABLE, problem.message)
                else:
                    why = f"{problem}; the call did not run: nothing was changed"
                    self.finish(call, envelope.failure(envelope.AUDIT_ENTER_FAILED, why, problem))
        return problem

    def round(self, recorder: "Recorder", calls: "deque[Call]") -> Unavailable | None:
        """Stages 4 and 5 for entered calls, for ROUND_MS of work: one commit, synced unless they
        only read.

        If nothing could be changed, the calls are failed and the reason is returned.
        """
        attempt = Attempt(
            calls,
            savepoints=self.has_sink
            or any([one.tool is not None and one.tool.once for one in calls]),
        )
        durable = not all(call.changes_nothing for call in calls)
        try:
            try:
                recorder.transact(
                    lambda chain: self._attempt(attempt, recorder, chain), durable=durable
                )
            except _Again:
                attempt = attempt.in_savepoints()
                recorder.transact(
                    lambda chain: self._attempt(attempt, recorder, chain), durable=durable
                )
        except Unavailable as problem:
            if not attempt.started:  # the transaction never began, so no call of this round runs
                attempt.started.extend(calls)
                calls.clear()
            for call in attempt.started:
                call.reset_names()  # what it has created is undone
                self.turn_away(call, envelope.UNAVAILABLE, problem.message)
            return problem
        except CommitFailed as problem:
            message = f"OUTCOME_UNKNOWN: {problem}; check whether it happened before you try again"
            for call in attempt.started:
                self.finish(call, envelope.failure(envelope.HANDLER_ERROR, message, problem))
        else:
            self._outbox.finish(attempt.done)
        return None

    def _attempt(self, attempt: Attempt, recorder: "Recorder", chain: "Chain") -> None:
        run = self._run_in_savepoint if attempt.savepoints else self._run_in_round
        until = self._clock.now_ms() + ROUND_MS
        while attempt.calls and (not attempt.started or self._clock.now_ms() < until):
            call = attempt.calls.popleft()
            attempt.started.append(call)
            recorder.entered(chain, call)
            outcome = run(call, recorder, chain)  # 4
            attempt.done.append((call, outcome, recorder.exit(chain, call, outcome)))  # 5

    def _run_in_round(self, call: Call, recorder: "Recorder", chain: "Chain") -> Outcome:
        """Run without a savepoint: it would cost every call and help only the few that fail."""
        changes = recorder.changes()
        outcome = self._run(call, recorder.work(call, chain))
        if outcome.is_error and recorder.changes() != changes:
            raise _Again
        return outcome

    def _run_in_savepoint(self, call: Call, recorder: "Recorder", chain: "Chain") -> Outcome:
        mark = chain.mark()
        work = recorder.work(call, chain)
        try:
            with recorder.savepoint():
                outcome = self._run(call, work)
                if outcome.is_error:
                    raise _Undo
        except _Undo:
            chain.reset(mark)
        return outcome

    def run_unrecorded(self, call: Call) -> None:
        """Serve a call of the write lane without a ledger: it may not change anything."""
        if self._journal.configured and call.refusal is None:
            self.turn_away(call, envelope.UNAVAILABLE, self._journal.why_not().message)
            return
        call.id = call.id or self._audit.new_call_id()
        outcome = self._run(call, Work(call, self._clock.utc(), self._ids, self._limits))
        self._audit.write_to_stderr(call, outcome)
        self.finish(call, outcome)

    # The stages that the lanes share.

    def prepare(self, call: Call) -> None:
        """Stages 1 and 2: end the time to cancel a call, and set its arguments or its refusal."""
        call.enter_ms = self._clock.now_ms()
        call.begin()
        validate(call)

    def _run(self, call: Call, work: Work) -> Outcome:
        """Stage 3, the sink's part, and stage 4."""
        outcome = self._audit.enter(call) if self.has_sink else None
        if outcome is None:
            outcome = dispatch(call, work, self._log, show_stacks=self._show_stacks)
        call.duration_ms = max(0, int(self._clock.now_ms() - call.enter_ms))
        return outcome

    def finish(self, call: Call, outcome: Outcome, entry: "Entry | None" = None) -> None:
        """Stage 5, the sink's part; then the one answer, if the call gets one."""
        self._outbox.finish([(call, outcome, entry)])

    def turn_away(self, call: Call, code: str, message: str) -> None:
        """Refuse a call: count, log and answer it, and record it only if it was entered."""
        self._health.count(code.lower())
        name = "an unknown tool" if call.tool is None else call.name
        self._log("warn", f"[colibri] {name}: {code}: {message}")
        outcome = envelope.failure(code, message, Unavailable(message))
        if call.entry is not None:
            self._journal.owe_exit(call, outcome)
        self.finish(call, outcome)

    def abandon(self, call: Call) -> None:
        """Answer a call whose lane has died."""
        problem = RuntimeError("an internal error stopped the server before the call was finished")
        self.finish(call, envelope.failure(envelope.HANDLER_ERROR, str(problem), problem))
