"""A small MCP client for a server of our own: a child process, a line out, a line back."""

import json
import os
import selectors
import subprocess
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from colibri import VERSION
from colibri.cli import files
from colibri.core.errors import ResourceError

PROTOCOL = "2025-11-25"
PATIENCE = 10.0  # seconds for an answer, and for the server to end


class Client:
    """A server for the length of a with block; what it says on stderr goes into a log file."""

    def __init__(self, command: Sequence[str], *, env: Mapping[str, str], log: str) -> None:
        self._log = log
        self._last = 0
        self._pending = b""
        with files.create(log) as file:
            self._process = subprocess.Popen(
                command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=file
            )

    def __enter__(self) -> Self:
        """The handshake."""
        try:
            client = {"name": "colibri-demo", "version": VERSION}
            params = {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": client}
            self._request("initialize", params)
            self._send({"method": "notifications/initialized"})
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()

    def call(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Call a tool; the CallToolResult."""
        return self._request("tools/call", {"name": tool, "arguments": arguments})

    def _request(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        self._last += 1
        self._send({"id": self._last, "method": method, "params": params})
        answer = json.loads(self._line())
        if answer.get("id") != self._last or "result" not in answer:
            raise ResourceError(f"the server did not answer {method}: {answer}", self._hint())
        result: dict[str, Any] = answer["result"]
        return result

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise ResourceError("the server ended", self._hint()) from None

    def _line(self) -> bytes:
        """The next line; one that does not come is a ResourceError, not a wait for ever."""
        assert self._process.stdout is not None
        deadline = time.monotonic() + PATIENCE
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._pending:
                if not selector.select(max(0, deadline - time.monotonic())):
                    raise ResourceError("the server does not answer", self._hint())
                piece = os.read(self._process.stdout.fileno(), 65_536)
                if not piece:
                    raise ResourceError("the server ended", self._hint())
                self._pending += piece
        line, _, self._pending = self._pending.partition(b"\n")
        return line

    def _hint(self) -> str:
        return f"{self._log} has what it said"

    def _end(self) -> None:
        """End of input is the way to end a server; one that stays is killed."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.close()
        except OSError:
            pass  # it is gone already
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            pass
        finally:
            self._process.kill()  # does nothing to one that has ended
            self._process.wait()
            self._process.stdout.close()
