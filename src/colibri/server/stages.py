"""The two of the five stages that need only the call: 2 validate and 4 dispatch."""

from colibri.core.errors import Invalid, Refused
from colibri.server import envelope, log
from colibri.server.call import Cancelled, UnknownTool
from colibri.server.envelope import Outcome
from colibri.server.faults import kind_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from colibri.server.call import Call, Registered
    from colibri.server.work import Work

MAX_UNKNOWN_NAME = 128
MAX_SHOWN_NAME = 64
UNKNOWN_TOOL = -32602


def validate(call: "Call") -> None:
    """Stage 2: set the call's arguments, without secrets, or the reason to refuse it."""
    if call.cancelled:
        call.refusal = Cancelled("cancelled by the client")
    if call.tool is None:
        call.name = log.redacted(call.name)[:MAX_UNKNOWN_NAME]
        if isinstance(call.refusal, UnknownTool):
            shown = "".join(c if c.isprintable() else "?" for c in call.name[:MAX_SHOWN_NAME])
            call.refusal = UnknownTool(str(call.refusal).format(shown))
    elif call.refusal is None:
        try:
            _validate(call, call.tool)
            _redact(call, call.tool)
        except Invalid as problem:
            call.take(None, None)
            call.refusal = _without_secrets(problem)
    call.drop_line()


def _validate(call: "Call", tool: "Registered") -> None:
    args = tool.validate(call.raw)
    call.take(args, tool.plain(args))


def _redact(call: "Call", tool: "Registered") -> None:
    """Between 2 and 3: replace secrets of known shapes, so that nothing later sees them.

    The result is validated again: an id cannot be redacted, and a text may become too long.
    """
    if not call.plain:
        return
    # Not on the main thread: the probes have no arguments.
    from colibri.core.redaction import redact

    call.raw, found = redact(call.raw)
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
    """An issue lists unknown keys, and one of them may be a secret."""
    return Invalid(
        [{name: log.scrub(str(text)) for name, text in one.items()} for one in problem.issues]
    )


def dispatch(call: "Call", work: "Work", say: log.Log, *, show_stacks: bool) -> Outcome:
    """Stage 4: what the handler returned or raised, as an outcome; raises the store's errors."""
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
        stack = _described(problem)
        say("error", f"[colibri] {call.name} failed: {stack}")
        details: dict[str, object] = {"stack": stack} if show_stacks else {}
        message = str(problem) or type(problem).__name__
        return envelope.failure(envelope.HANDLER_ERROR, message, problem, details)


def _described(problem: BaseException) -> str:
    from traceback import clear_frames  # 5 ms that only a failure pays

    stack = log.describe(problem)
    clear_frames(problem.__traceback__)  # a cursor in a frame would keep its transaction open
    return stack
