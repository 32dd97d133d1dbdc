"""The body of an answer to a tool call: success, refusal (pattern B) or failure (pattern A).

    success     {ok: true, data}
    pattern B   {ok: true, data: {ok: false, error: {code, message, …}}}   a domain rule said no
    pattern A   {ok: false, error: {code, message, details?}}              anything else

The envelope's RFC 8785 bytes are made once. They are the text content and the structured content,
and `result_sha256` in the ledger is their hash: a client can hash the text it got and compare.
"""

import json

from colibri.core import canonical
from colibri.core.errors import Invalid, Refused
from colibri.server import log

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    Ending = Literal["ok", "refused", "invalid", "error", "cancelled"]

INVALID_PARAMS = "INVALID_PARAMS"
HANDLER_ERROR = "HANDLER_ERROR"
AUDIT_ENTER_FAILED = "AUDIT_ENTER_FAILED"
UNAVAILABLE = "UNAVAILABLE"
OVERLOADED = "OVERLOADED"
SHUTTING_DOWN = "SHUTTING_DOWN"


class Outcome:
    """How a call ended: `body` for the client, `outcome` and `code` for the ledger."""

    __slots__ = ("body", "code", "error", "is_error", "outcome")

    def __init__(
        self,
        outcome: "Ending",
        code: str | None,
        body: bytes | None,
        *,
        error: BaseException | None = None,
    ) -> None:
        self.outcome = outcome
        self.code = code
        self.body = body
        self.is_error = outcome != "ok"
        self.error = error

    @property
    def value(self) -> object:
        """What the handler returned, as plain values; None if it did not return."""
        return None if self.is_error or self.body is None else json.loads(self.body)["data"]

    def members(self) -> tuple[bytes, ...]:
        """The members of the CallToolResult, as pieces of JSON without the braces."""
        assert self.body is not None  # a cancelled call is never answered
        text = canonical.quote(self.body)
        flag = b',"isError":true' if self.is_error else b',"isError":false'
        return (
            b'"content":[{"type":"text","text":',
            text,
            b'}],"structuredContent":',
            self.body,
            flag,
        )

    def sha256(self) -> str | None:
        """The hash of what was sent, in hex; None if nothing was sent."""
        return None if self.body is None else canonical.sha256(self.body).hex()


def success(data: bytes) -> Outcome:
    """The handler returned `data`, as RFC 8785 bytes."""
    return Outcome("ok", None, b'{"data":%b,"ok":true}' % data)


def refused(refusal: Refused, pattern: str) -> Outcome:
    """A domain rule said no; the tool's family decides the pattern."""
    if pattern == "A":
        body = _failure(HANDLER_ERROR, f"{refusal.code}: {refusal.message}", refusal.fields)
    else:
        error = {**refusal.fields, "code": refusal.code, "message": refusal.message}
        body = canonical.encode({"ok": True, "data": {"ok": False, "error": error}})
    return Outcome("refused", refusal.code, body, error=refusal)


def invalid(problem: Invalid) -> Outcome:
    """The arguments do not fit the schema; every issue is listed."""
    summary = "; ".join(
        f"{issue['path'] or 'arguments'}: {issue['problem']} (allowed: {issue['allowed']})"
        for issue in problem.issues
    )
    details: dict[str, object] = {"issues": problem.issues}
    body = _failure(INVALID_PARAMS, f"schema validation failed: {summary}", details)
    return Outcome("invalid", INVALID_PARAMS, body, error=problem)


def failure(
    code: str, message: str, error: BaseException, details: dict[str, object] | None = None
) -> Outcome:
    """Pattern A for everything else; the message may come from a foreign exception."""
    return Outcome("error", code, _failure(code, log.scrub(message), details), error=error)


def _failure(code: str, message: str, details: "dict[str, object] | None") -> bytes:
    # A handler's exception may contain a lone surrogate, which UTF-8 cannot encode.
    text = message.encode("utf-8", "backslashreplace").decode()
    error: dict[str, object] = {"code": code, "message": text}
    if details:
        error["details"] = details
    return canonical.encode({"ok": False, "error": error})
