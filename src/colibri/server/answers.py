"""Outgoing JSON-RPC lines, and the requests still waiting for one: each is answered once."""

import json
import threading

from colibri.core import canonical
from colibri.server.origin import NOWHERE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeGuard

SERVER_INFO = "io.modelcontextprotocol/serverInfo"


class Fault(Exception):
    """A request that gets a JSON-RPC error."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class Request:
    """An unanswered request; `work` is for the code that serves it, `origin` says who sent it."""

    __slots__ = ("id", "line", "method", "modern", "origin", "params", "work")

    def __init__(self, id: str | int, method: str, line: bytes) -> None:
        self.id = id
        self.method = method
        self.line = line
        self.modern = False
        self.origin = NOWHERE
        self.params: dict[str, object] = {}
        self.work: object = None


class Answers:
    """The unanswered calls of one connection, and the lines that answer them."""

    def __init__(self, version: str) -> None:
        self.server_info = {"name": "colibri", "title": "Colibri", "version": version}
        self._server_info = b'"%b":%b' % (SERVER_INFO.encode(), canonical.dump(self.server_info))
        self.open: dict[str | int, Request] = {}
        self._lock = threading.Lock()

    def answer(self, request: Request, meta: list[bytes], *members: bytes) -> bytes:
        """The line that answers a call; the members of the result, and those of its `_meta`, are
        JSON without the braces.

        Empty if the call was answered before.
        """
        return self.result_line(request, meta, *members) if self.close(request) else b""

    def fail(self, request: Request, code: int, message: str) -> bytes:
        """The line that answers with a JSON-RPC error; empty if the call was answered before."""
        return error_line(request.id, Fault(code, message)) if self.close(request) else b""

    def close(self, request: Request) -> bool:
        """Whether the request was still unanswered; a newer request may have its id by now."""
        with self._lock:
            if self.open.get(request.id) is not request:
                return False
            del self.open[request.id]
            return True

    def result_line(self, request: Request, meta: list[bytes], *members: bytes) -> bytes:
        tail = b""
        if request.modern:
            tail = b',"resultType":"complete"'
            meta = [*meta, self._server_info]
        if meta:
            tail += b',"_meta":{%b}' % b",".join(meta)
        if not members:
            tail = tail.removeprefix(b",")
        id = b"%d" % request.id if isinstance(request.id, int) else dump(request.id)
        # One join, not repeated concatenation: an answer may be large.
        return b"".join((b'{"jsonrpc":"2.0","id":', id, b',"result":{', *members, tail, b"}}\n"))


def error_line(id: object, fault: Fault) -> bytes:
    """The line of an error; its id is null if the request's id is unknown."""
    error: dict[str, object] = {"code": fault.code, "message": fault.message}
    if fault.data is not None:
        error["data"] = fault.data
    return dump({"jsonrpc": "2.0", "id": id if is_id(id) else None, "error": error}) + b"\n"


def is_id(value: object) -> "TypeGuard[str | int]":
    """Whether JSON-RPC allows this value as an id."""
    return isinstance(value, str | int) and not isinstance(value, bool)


_to_text = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def dump(value: object) -> bytes:
    return _to_text(value).encode()
