"""AuditSink, which an embedding program may add to observe every call, and the trail on stderr.

The ledger is not a sink: it shares the handler's transaction. A sink is called in addition, at the
same two points. When the ledger cannot be written (READONLY, MINIMAL, SAFE_MODE, a full disk),
calls are audited as JSON lines on stderr.
"""

import json

from colibri.core.frozen import Frozen
from colibri.server import envelope, log
from colibri.server.call import Cancelled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from colibri.server.call import Call
    from colibri.server.clock import Clock
    from colibri.server.envelope import Outcome
    from colibri.server.ids import Ids
    from colibri.server.journal import Journal

    class AuditSink(Protocol):
        """Called before each call's handler runs and after the call ended."""

        def enter(self, event: "ToolEnterEvent") -> None:
            """Raise to stop the call: the client gets AUDIT_ENTER_FAILED."""

        def exit(self, event: "ToolExitEvent") -> None:
            """An exception raised here is logged and changes nothing."""
else:

    class AuditSink:
        """Anything with `enter(event)` and `exit(event)`; the protocol is for type checkers."""


class ToolEnterEvent(Frozen):
    """A call is about to run; `args` is validated, or {size, sha256} of a refused request line."""

    __slots__ = ("args", "correlation_id", "timestamp", "tool")
    tool: str
    args: object
    timestamp: float
    correlation_id: str


class ToolExitEvent(Frozen):
    """A call ended with the handler's `result` or with an `error`; the other is None."""

    __slots__ = ("correlation_id", "duration_ms", "error", "result", "tool")
    tool: str
    correlation_id: str
    duration_ms: int
    result: object
    error: Exception | None


class _NoOpSink:
    __slots__ = ()

    def enter(self, event: ToolEnterEvent) -> None:
        """Do nothing."""

    def exit(self, event: ToolExitEvent) -> None:
        """Do nothing."""


_NO_OP = _NoOpSink()


def create_noop_audit_sink() -> "AuditSink":
    """The default sink, which does nothing."""
    return _NO_OP


class Audit:
    """Reports the calls of one server to its sink, and to stderr if there is no ledger."""

    def __init__(
        self, sink: "AuditSink", journal: "Journal", clock: "Clock", ids: "Ids", say: log.Log
    ) -> None:
        self._sink = sink
        self._journal = journal
        self._clock = clock
        self._ids = ids
        self._log = say
        self._unrecorded = 0
        self.has_sink = sink is not _NO_OP

    def enter(self, call: "Call") -> "Outcome | None":
        """Stage 3, the sink's part; returns an outcome if the sink stops the call."""
        if isinstance(call.refusal, Cancelled):
            return None
        call.sink_entered = True
        event = ToolEnterEvent(
            tool=call.name,
            args=call.line_digest() or call.args,
            timestamp=call.enter_ms,
            correlation_id=call.id,
        )
        try:
            self._sink.enter(event)
        except BaseException as problem:
            message = f"the audit sink refused the call: {problem}"
            return envelope.failure(envelope.AUDIT_ENTER_FAILED, message, problem)
        return None

    def exit(self, call: "Call", outcome: "Outcome") -> None:
        """Stage 5, the sink's part."""
        error = outcome.error
        if error is not None and not isinstance(error, Exception):
            error = RuntimeError(f"{type(error).__name__}: {error}")
        event = ToolExitEvent(
            tool=call.name,
            correlation_id=call.id,
            duration_ms=call.duration_ms,
            result=outcome.value,
            error=error,
        )
        try:
            self._sink.exit(event)
        except BaseException as problem:
            self._log("error", f"[colibri] audit-exit sink failed: {log.scrub(str(problem))}")

    def write_to_stderr(self, call: "Call", outcome: "Outcome") -> None:
        """Write a call's enter and exit as JSON lines, in place of ledger records."""
        if not self._journal.configured:
            return
        call.id = call.id or self.new_call_id()
        enter = call.line_digest() or {"arguments": call.plain}
        end: dict[str, object] = {
            "outcome": outcome.outcome,
            "code": outcome.code,
            "result_sha256": outcome.sha256(),
            "duration_ms": call.duration_ms,
        }
        at = self._clock.utc()
        for phase, fields in (("enter", enter), ("exit", end)):
            record = {"audit": phase, "at": at, "tool": call.name, "call": call.id, **fields}
            self._log.write(json.dumps(record, separators=(",", ":")))

    def new_call_id(self) -> str:
        """An id for a call that gets none from the ledger."""
        self._unrecorded += 1
        recorder = self._journal.recorder
        purpose = f"call without a record of {recorder.server if recorder else 'nobody'}"
        return self._ids.uuid(purpose, self._unrecorded)
