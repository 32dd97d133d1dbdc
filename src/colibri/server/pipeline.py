"""The five stages of every tool call, in their canonical order (seed 001 §4):

    1 lane      a FIFO queue and one thread: a tool never overlaps itself
    2 validate  the arguments against the tool's struct; then secrets in them are replaced
    3 enter     the enter record is committed, then the sink is told
    4 dispatch  the handler runs
    5 exit      its changes and the exit record are committed together, then the sink is told

Three ways lead through them, one per lane. `probe` answers first and records after. `read` commits
a record before its handler runs and one after it, or has the write thread do so. `enter` and
`round` work for many writing calls at once: one transaction for their enter records, one, synced,
for the rest.

Where the ledger cannot be written (READONLY, MINIMAL, SAFE_MODE integrity or io, a full disk) calls
are audited on stderr; a server without a configuration has no trail but its sink.
"""

import time
from collections import deque

from colibri.core.errors import Invalid, Refused, Unavailable
from colibri.server import audit, envelope, log
from colibri.server.audit import ToolEnterEvent, ToolExitEvent
from colibri.server.call import Call, Cancelled, UnknownTool, Work
from colibri.server.envelope import Outcome
from colibri.server.faults import Busy, CommitFailed, Guard, kind_of
from colibri.server.lanes import Job

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from colibri.core.ledger import Entry
    from colibri.server.call import Registered
    from colibri.server.context import ColibriServerContext
    from colibri.server.recorder import Recorder
    from colibri.store.connection import Connection
    from colibri.store.ledger import Chain

STAGES = ("lane", "validate", "enter", "dispatch", "exit")
ROUND_MS = 50
WRITE_BYTES = 64 * 1024  # as much as a pipe holds unless somebody widened it
MAX_PROBE_RECORDS = 256
UNKNOWN_TOOL = -32602


class _Undo(Exception):
    """Leaves a savepoint so that what happened in it is undone."""


class Pipeline:
    """The stages of one server; each method says which thread runs it."""

    def __init__(self, ctx: "ColibriServerContext") -> None:
        self._ctx = ctx
        self._guard = Guard(ctx.health)
        self._sink = ctx.audit_sink
        self.has_sink = ctx.audit_sink is not audit.create_noop_audit_sink()
        self.recorder: Recorder | None = None
        self.probe_records = 0
        self._owed: deque[tuple[Call, Outcome]] = deque()  # exits of calls turned away in a round

    # The probe lane is the main thread.

    def probe(self, call: Call) -> None:
        """Answer at once; record afterwards, without a receipt."""
        self.prepare(call)  # 1, 2
        if self.has_sink:
            call.id = self._ctx.new_call_id()
        work = Work(call, "", self._ctx.ids, self._ctx.limits)
        outcome = self._run(call, work)  # 3 (the sink), 4
        self.finish(call, outcome)  # 5 (the sink), and the answer
        self._record_probe(call, outcome)  # 3 and 5 (the ledger)

    def _record_probe(self, call: Call, outcome: Outcome) -> None:
        if not self._ctx.keeps_ledger:
            self._audit_on_stderr(call, outcome)
        elif self.probe_records >= MAX_PROBE_RECORDS:
            self._ctx.health.count("probe_records")
            self._ctx.log("warn", f"[colibri] {call.name} was not recorded: too many records wait")
        else:
            if self.probe_records > MAX_PROBE_RECORDS // 2:
                time.sleep(0.001)  # the answer is out: let the write thread catch up a little
            self.probe_records += 1
            self._ctx.write.put(Job(_pair(call, outcome), self._probe_settled(call, outcome)))

    def _probe_settled(self, call: Call, outcome: Outcome) -> "Callable[[Job], None]":
        def settled(job: Job) -> None:
            self.probe_records -= 1
            if job.failure is not None:
                self._audit_on_stderr(call, outcome)

        return settled

    # The read lane.

    def read(self, call: Call, db: "Connection | None", pause: "Callable[[], None]") -> None:
        """One reading call; raises Busy, once it is answered, if another process was in its way."""
        self.prepare(call)  # 1, 2
        entered = None
        try:
            entered = self._commit(lambda recorder, chain: recorder.enter(chain, call))  # 3
            call.id = call.id or self._ctx.new_call_id()
            outcome = self._run_reading(call, self._work(call, db=db, pause=pause))  # 4
            entry = entered and self._commit(  # 5
                lambda recorder, chain: recorder.exit(chain, call, outcome)
            )
        except Unavailable as problem:
            call.entry = entered
            self.turn_away(call, envelope.UNAVAILABLE, problem.message)
            if isinstance(problem, Busy):
                raise
            return
        if entry is None:
            self._audit_on_stderr(call, outcome)
        self.finish(call, outcome, entry)

    def _run_reading(self, call: Call, work: Work) -> Outcome:
        if call.refusal is not None or self._ctx.config is None:
            return self._run(call, work)
        if not work.has_db:
            raise self._ctx.no_store()
        with self._guard:
            if call.tool is not None and call.tool.sliced:
                outcome = self._run(call, work)
            else:
                with work.db:  # a savepoint, which outside a transaction is a read transaction
                    outcome = self._run(call, work)
        return outcome

    def _commit(self, record: "Callable[[Recorder, Chain], Entry]") -> "Entry | None":
        """Have a record committed; None where the ledger cannot be written."""
        return self._ctx.write.commit(record) if self._ctx.keeps_ledger else None

    # The write lane.

    def enter(
        self, recorder: "Recorder", jobs: list[Job], calls: list[Call], *, patient: bool = True
    ) -> Exception | None:
        """3 for a round, and what other lanes want recorded: one transaction, not synced.

        What kept it from being committed is given back; everybody was told then.
        """
        owed = list(self._owed)
        try:
            with recorder.transaction(durable=False, patient=patient) as chain:
                for call, outcome in owed:
                    recorder.exit(chain, call, outcome)
                for job in jobs:
                    job.entry = job.record(recorder, chain)
                for call in calls:
                    recorder.enter(chain, call)
        except (Unavailable, CommitFailed) as problem:
            _finish(jobs, problem)
            for call in calls:
                self._not_entered(call, problem)
            return problem
        except BaseException:
            _finish(jobs, Unavailable("the write thread has stopped"))
            raise
        for _ in owed:
            self._owed.popleft()
        _finish(jobs, None)
        return None

    def _not_entered(self, call: Call, problem: Unavailable | CommitFailed) -> None:
        call.entry = None  # it was rolled back
        if isinstance(problem, Unavailable):
            self.turn_away(call, envelope.UNAVAILABLE, problem.message)
        else:
            failed = envelope.failure(envelope.AUDIT_ENTER_FAILED, str(problem), problem)
            self.finish(call, failed)

    def round(self, recorder: "Recorder", calls: "deque[Call]") -> None:
        """4 and 5 for calls that were entered, for ROUND_MS of work: one synced commit."""
        started: list[Call] = []
        done: list[tuple[Call, Outcome, Entry]] = []
        until = self._ctx.now_ms() + ROUND_MS
        try:
            with recorder.transaction(durable=True) as chain:
                while calls and (not started or self._ctx.now_ms() < until):
                    call = calls.popleft()
                    started.append(call)
                    outcome = self._run_in_savepoint(call, recorder, chain)  # 4
                    done.append((call, outcome, recorder.exit(chain, call, outcome)))  # 5
        except Unavailable as problem:
            if not started:  # it could not even begin: nobody of this round comes to his turn
                started.extend(calls)
                calls.clear()
            for call in started:
                self.turn_away(call, envelope.UNAVAILABLE, problem.message)
        except CommitFailed as problem:
            message = f"OUTCOME_UNKNOWN: {problem}; look whether it happened before you try again"
            for call in started:
                self.finish(call, envelope.failure(envelope.HANDLER_ERROR, message, problem))
        else:
            self._finish_all(done)

    def _run_in_savepoint(self, call: Call, recorder: "Recorder", chain: "Chain") -> Outcome:
        # With the database open, it is loaded.
        from colibri.store.sqlite.transaction import Savepoint

        mark = chain.mark()
        work = self._work(call, db=recorder.opened.db, chain=chain)
        try:
            with Savepoint(recorder.opened.db):
                outcome = self._run(call, work)
                if outcome.is_error:
                    raise _Undo
        except _Undo:
            chain.reset(mark)
        return outcome

    def unrecorded(self, call: Call) -> None:
        """A call of the write lane where there is no ledger: nothing may be changed there."""
        if self._ctx.config is not None and call.refusal is None:
            self.turn_away(call, envelope.UNAVAILABLE, self._ctx.no_store().message)
            return
        call.id = call.id or self._ctx.new_call_id()
        outcome = self._run(call, self._work(call))
        self._audit_on_stderr(call, outcome)
        self.finish(call, outcome)

    # The stages that the lanes share.

    def prepare(self, call: Call) -> None:
        """1 and 2: from here on a call cannot be cancelled; leaves its arguments or its refusal."""
        call.enter_ms = self._ctx.now_ms()
        with self._ctx.cancel_lock:
            call.taken = True
        if call.cancelled:
            call.refusal = Cancelled("cancelled by the client")
        elif call.tool is None:
            call.refusal = UnknownTool(self._ctx.unknown_tool(call.name))
        else:
            try:
                _validate(call, call.tool)  # 2
                _redact(call, call.tool)
            except Invalid as problem:
                call.take(None, None)
                call.refusal = _without_secrets(problem)

    def _work(self, call: Call, **lane: "Any") -> Work:
        return Work(call, self._ctx.utc(), self._ctx.ids, self._ctx.limits, **lane)

    def _run(self, call: Call, work: Work) -> Outcome:
        """3, the sink's part, and 4."""
        outcome = self._tell_enter(call) or self._dispatch(call, work)
        call.duration_ms = max(0, int(self._ctx.now_ms() - call.enter_ms))
        return outcome

    def _dispatch(self, call: Call, work: Work) -> Outcome:
        """4: what the handler returned or raised, as an outcome; a fault of the store is raised."""
        refusal, tool = call.refusal, call.tool
        if isinstance(refusal, Invalid):
            return envelope.invalid(refusal)
        if isinstance(refusal, Cancelled):
            return Outcome("cancelled", None, None, error=refusal)
        if tool is None:
            return Outcome("invalid", str(UNKNOWN_TOOL), None, error=refusal)
        try:
            try:
                return envelope.success(tool.run(work, call.args))
            except Refused as refused:
                return envelope.refused(refused, tool.pattern)
        except BaseException as problem:
            if work.has_db and kind_of(problem) is not None:
                raise
            return self._handler_failed(call, problem)

    def _handler_failed(self, call: Call, problem: BaseException) -> Outcome:
        from traceback import clear_frames  # 5 ms that only a failure pays

        stack = log.describe(problem)
        clear_frames(problem.__traceback__)  # a cursor in them would keep its transaction open
        self._ctx.log("error", f"[colibri] {call.name} failed: {stack}")
        details: dict[str, object] = {"stack": stack} if self._ctx.mode == "TEST" else {}
        message = str(problem) or type(problem).__name__
        return envelope.failure(envelope.HANDLER_ERROR, message, problem, details)

    def finish(self, call: Call, outcome: Outcome, entry: "Entry | None" = None) -> None:
        """5, the sink's part; then the one answer, if the call gets one."""
        self._finish_all([(call, outcome, entry)])

    def _finish_all(self, done: "Sequence[tuple[Call, Outcome, Entry | None]]") -> None:
        """The same for many calls, whose answers leave together: a write wakes the client."""
        lines, size = [], 0
        for call, outcome, entry in done:
            line = self._answer(call, outcome, entry)
            lines.append(line)
            size += len(line)
            if size >= WRITE_BYTES:
                self._ctx.send(b"".join(lines))
                lines, size = [], 0
        self._ctx.send(b"".join(lines))
        for call, _, _ in done:
            self._ctx.release(call)

    def _answer(self, call: Call, outcome: Outcome, entry: "Entry | None") -> bytes:
        self._tell_exit(call, outcome)
        if outcome.body is None:
            if isinstance(call.refusal, UnknownTool):
                return self._ctx.wire.fail(call.request, UNKNOWN_TOOL, str(call.refusal))
            return b""
        meta: dict[str, object] = {}
        if entry is not None and self.recorder is not None:
            meta["colibri/receipt"] = self.recorder.receipt(entry)
        if call.redacted:
            meta["colibri/redacted"] = call.redacted
        return self._ctx.wire.answer(call.request, meta, *outcome.members())

    def turn_away(self, call: Call, code: str, message: str) -> None:
        """Refuse a call: it is counted, logged and said, and recorded only if it was entered."""
        self._ctx.health.count(code.lower())
        self._ctx.log("warn", f"[colibri] {call.name}: {code}: {message}")
        outcome = envelope.failure(code, message, Unavailable(message))
        if call.entry is not None:  # the next transaction that works closes it in the ledger
            self._owed.append((call, outcome))
        self.finish(call, outcome)

    def abandon(self, call: Call) -> None:
        """Answer a call whose lane has died."""
        problem = RuntimeError("an internal error stopped the server before the call was finished")
        self.finish(call, envelope.failure(envelope.HANDLER_ERROR, str(problem), problem))

    # Who else is told.

    def _tell_enter(self, call: Call) -> Outcome | None:
        if not self.has_sink or isinstance(call.refusal, Cancelled):
            return None
        call.sink_entered = True
        try:
            self._sink.enter(
                ToolEnterEvent(
                    tool=call.name,
                    args=call.args if call.refusal is None else call.digest(),
                    timestamp=call.enter_ms,
                    correlation_id=call.id,
                )
            )
        except BaseException as problem:
            message = f"the audit sink refused the call: {problem}"
            return envelope.failure(envelope.AUDIT_ENTER_FAILED, message, problem)
        return None

    def _tell_exit(self, call: Call, outcome: Outcome) -> None:
        if not call.sink_entered:
            return
        try:
            self._sink.exit(
                ToolExitEvent(
                    tool=call.name,
                    correlation_id=call.id,
                    duration_ms=call.duration_ms,
                    result=outcome.value,
                    error=None if outcome.error is None else audit.as_exception(outcome.error),
                )
            )
        except BaseException as problem:
            self._ctx.log("error", f"[colibri] audit-exit sink failed: {log.scrub(str(problem))}")

    def _audit_on_stderr(self, call: Call, outcome: Outcome) -> None:
        if self._ctx.config is not None:
            call.id = call.id or self._ctx.new_call_id()
            audit.write_lines(self._ctx.write_stderr, self._ctx.utc(), call, outcome)


def _validate(call: Call, tool: "Registered") -> None:
    args = tool.validate(call.raw)
    call.take(args, tool.plain(args))


def _redact(call: Call, tool: "Registered") -> None:
    """Between 2 and 3: replace secrets of known shapes; everything after sees only that.

    What is left has to fit as well: an id cannot be redacted, and a text may grow too long.
    """
    if not call.plain:
        return
    from colibri.core import redaction  # off the main thread: the probes have no arguments

    call.raw, found = redaction.redact(call.raw)
    if not found:
        return
    call.redacted = [{"path": path, "kind": kind} for path, kind in found]
    try:
        _validate(call, tool)
    except Invalid as problem:
        why = "holds a secret, and with that replaced "
        raise Invalid(
            [{**one, "problem": f"{why}{one['problem']}"} for one in problem.issues]
        ) from None


def _without_secrets(problem: Invalid) -> Invalid:
    """An issue names keys that nobody knows: one of them may be a secret."""
    return Invalid(
        [{name: log.scrub(str(text)) for name, text in one.items()} for one in problem.issues]
    )


def _finish(jobs: list[Job], failure: Exception | None) -> None:
    for job in jobs:
        job.finish(failure)


def _pair(call: Call, outcome: Outcome) -> "Callable[[Recorder, Chain], Entry]":
    def record(recorder: "Recorder", chain: "Chain") -> "Entry":
        recorder.enter(chain, call)
        return recorder.exit(chain, call, outcome)

    return record
