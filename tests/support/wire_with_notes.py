"""A Wire with a service that only records calls, and messages to feed it."""

import json
from typing import Any

from colibri.server.answers import Answers, Request
from colibri.server.wire import Wire

JSON = dict[str, Any]

MODERN = "2026-07-28"
VERSION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
CLIENT_INFO = "io.modelcontextprotocol/clientInfo"
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
SERVER_INFO = "io.modelcontextprotocol/serverInfo"
META = {VERSION: MODERN, CAPABILITIES: {}, CLIENT_INFO: {"name": "t", "version": "1"}}
INFO = {"name": "colibri", "title": "Colibri", "version": "1.2.3"}
HINTS = {"ttlMs": 300_000, "cacheScope": "public"}
ABSENT = object()


class Recording:
    """A service that records its calls; a call in `waiting` can still be cancelled."""

    instructions = "do well"

    def __init__(self) -> None:
        self.calls: list[tuple[Request, str, object]] = []
        self.waiting = True
        self.cancelled: list[object] = []

    def tool_list(self) -> bytes:
        return b'[{"name":"one"}]'

    def call(self, request: Request, name: str, arguments: object) -> None:
        self.calls.append((request, name, arguments))

    def cancel(self, request: Request) -> bool:
        self.cancelled.append(request.id)
        return self.waiting


class Connection:
    """A wire, its service, and the lines it sent."""

    def __init__(self) -> None:
        self.service = Recording()
        self.sent: list[JSON] = []
        self.answers = Answers("1.2.3")
        self.wire = Wire(self.service, self.answers, self._sent)

    def answer(self, request: Request, meta: JSON, *members: bytes) -> None:
        """Send an answer as the service does; an empty one is not sent."""
        told = [json.dumps(meta).encode()[1:-1]] if meta else []
        if line := self.answers.answer(request, told, *members):
            self._sent(line)

    def fail(self, request: Request, code: int, message: str) -> None:
        if line := self.answers.fail(request, code, message):
            self._sent(line)

    def _sent(self, line: bytes) -> None:
        assert line.endswith(b"\n")
        assert line.count(b"\n") == 1
        self.sent.append(json.loads(line))

    def say(self, message: object) -> None:
        self.wire.feed(json.dumps(message).encode() + b"\n")

    def ask(self, message: object) -> JSON:
        """Send a message that must get exactly one answer at once."""
        before = len(self.sent)
        self.say(message)
        assert len(self.sent) == before + 1, self.sent[before:]
        return self.sent[-1]

    def cancel(self, id: object) -> None:
        params = {"requestId": id}
        self.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})


def old(method: str, params: object = ABSENT, id: object = 1) -> JSON:
    message = {"jsonrpc": "2.0", "id": id, "method": method}
    return message if params is ABSENT else {**message, "params": params}


def new(method: str, params: JSON | None = None, id: object = 1) -> JSON:
    return old(method, {**(params or {}), "_meta": META}, id)


def initialize(version: object = "2025-11-25", **changes: object) -> JSON:
    client = {"name": "t", "version": "1"}
    params = {"protocolVersion": version, "capabilities": {}, "clientInfo": client}
    return old("initialize", {**params, **changes})


def listen(id: object = 1) -> JSON:
    return new("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, id)


def acknowledged(id: object) -> JSON:
    return {
        "jsonrpc": "2.0",
        "method": "notifications/subscriptions/acknowledged",
        "params": {"_meta": {SUBSCRIPTION: id}, "notifications": {}},
    }
