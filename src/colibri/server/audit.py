"""The AuditSink seam: who else is told of every call, and the trail on stderr.

The ledger is not a sink: it shares the handler's transaction. A sink is called beside it, at the
same two points. Where no ledger can be written (READONLY, MINIMAL, SAFE_MODE, a full disk) calls
are audited as JSON lines on stderr.
"""

import json

from colibri.core.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from colibri.server.call import Call
    from colibri.server.envelope import Outcome

    class AuditSink(Protocol):
        """Told of each call before its handler runs and after it ended."""

        def enter(self, event: "ToolEnterEvent") -> None:
            """Raise to stop the call: the client gets AUDIT_ENTER_FAILED."""

        def exit(self, event: "ToolExitEvent") -> None:
            """What this raises is logged and changes nothing."""
else:

    class AuditSink:
        """Anything with `enter(event)` and `exit(event)`; the protocol is for type checkers."""


class ToolEnterEvent(Frozen):
    """A call is about to run; `args` are validated, or {size, sha256} of a refused request line."""

    __slots__ = ("args", "correlation_id", "timestamp", "tool")
    tool: str
    args: object
    timestamp: float
    correlation_id: str


class ToolExitEvent(Frozen):
    """A call ended with the handler's `result` or with an `error`; the other one is None."""

    __slots__ = ("correlation_id", "duration_ms", "error", "result", "tool")
    tool: str
    correlation_id: str
    duration_ms: int
    result: object
    error: Exception | None


class _NoOpSink:
    __slots__ = ()

    def enter(self, event: ToolEnterEvent) -> None:
        """Nothing."""

    def exit(self, event: ToolExitEvent) -> None:
        """Nothing."""


_NO_OP = _NoOpSink()


def create_noop_audit_sink() -> "AuditSink":
    """The default sink, which does nothing."""
    return _NO_OP


def as_exception(raised: BaseException) -> Exception:
    """What a sink is shown: an Exception, also where something else was raised."""
    if isinstance(raised, Exception):
        return raised
    return RuntimeError(f"{type(raised).__name__}: {raised}")


def write_lines(write: "Callable[[str], None]", at: str, call: "Call", outcome: "Outcome") -> None:
    """The trail that replaces the ledger: a call's enter and exit, as JSON lines."""
    enter: dict[str, object] = {"arguments": call.plain}
    if call.refusal is not None:
        enter = call.digest()
    end: dict[str, object] = {
        "outcome": outcome.outcome,
        "code": outcome.code,
        "result_sha256": outcome.sha256(),
        "duration_ms": call.duration_ms,
    }
    for phase, fields in (("enter", enter), ("exit", end)):
        record = {"audit": phase, "at": at, "tool": call.name, "call": call.id, **fields}
        write(json.dumps(record, separators=(",", ":")))
