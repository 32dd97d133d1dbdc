"""The one client of all measurements: a subprocess, raw pipes, lines built in advance.

Nothing is parsed while the clock runs: an answer is recognised by the bytes of its id. `results`
checks the answers afterwards.
"""

import json
import os
import select
import subprocess
import time
from collections import deque
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, Self

JSON = dict[str, Any]
PATIENCE = 120.0
GOODBYE = 20.0
_ids = count(10_000_001)  # all of one length: an id is found in an answer by its bytes alone
_CLIENT = {"name": "bench", "version": "1"}
INITIALIZE = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": _CLIENT}
INITIALIZED = b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n'


class Line:
    """A request, ready to be written, and the bytes by which its answer is recognised."""

    __slots__ = ("data", "id", "marks")

    def __init__(self, method: str, params: JSON | None = None) -> None:
        self.id = next(_ids)
        message = {"jsonrpc": "2.0", "id": self.id, "method": method, "params": params or {}}
        self.data = json.dumps(message, separators=(",", ":")).encode() + b"\n"
        self.marks = (b'"id":%d' % self.id, b'"id": %d' % self.id)

    def answered_by(self, line: bytes) -> bool:
        return self.marks[0] in line or self.marks[1] in line


def call(tool: str, arguments: JSON) -> Line:
    return Line("tools/call", {"name": tool, "arguments": arguments})


class Server:
    """A running server, before the handshake."""

    def __init__(
        self, command: Sequence[str], folder: Path, extra: Mapping[str, str] | None = None
    ) -> None:
        self.process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment(extra or {}),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._in, self._out = self.process.stdout.fileno(), self.process.stdin.fileno()
        self._rest = b""
        self._lines: deque[bytes] = deque()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close its input; a server that does not exit by itself is killed."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        try:
            self.process.wait(GOODBYE if self._ends_by_itself() else 0)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()

    def _ends_by_itself(self) -> bool:
        """Keep reading until it exits: a server that still writes must not block."""
        deadline = time.monotonic() + GOODBYE
        while (left := deadline - time.monotonic()) > 0:
            if select.select([self._in], [], [], left)[0] and not os.read(self._in, 65536):
                return True
        return False

    def greet(self) -> None:
        self.ask(Line("initialize", INITIALIZE))
        self.send(INITIALIZED)

    def send(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._out, view) :]

    def ask(self, line: Line) -> bytes:
        """Write a request and wait for its answer; the server may send requests meanwhile."""
        self.send(line.data)
        while True:
            answer = self.next_line()
            if line.answered_by(answer):
                return answer
            self._reply(answer)

    def _reply(self, line: bytes) -> None:
        """Answer a server's request with an empty result; drop notifications and log lines."""
        message = json.loads(line) if line.startswith(b"{") else {}
        if "method" in message and "id" in message:
            result: JSON = {"roots": []} if message["method"] == "roots/list" else {}
            reply = {"jsonrpc": "2.0", "id": message["id"], "result": result}
            self.send(json.dumps(reply).encode() + b"\n")

    def next_line(self) -> bytes:
        while not self._lines:
            self._receive()
        return self._lines.popleft()

    def _receive(self) -> None:
        """Split what arrived into lines; blocks for the first byte, with a timeout."""
        if not select.select([self._in], [], [], PATIENCE)[0]:
            raise TimeoutError(f"no answer within {PATIENCE:g} s")
        data = os.read(self._in, 1 << 20)
        if not data:
            raise EOFError(f"the server ended with {self.process.wait()}")
        *lines, self._rest = (self._rest + data).split(b"\n")
        self._lines.extend(lines)

    def take(self) -> list[bytes]:
        """All lines that have arrived, at least one."""
        if not self._lines:
            self._receive()
        lines = list(self._lines)
        self._lines.clear()
        return lines

    def fileno(self) -> int:
        return self._in


def results(lines: list[Line], answers: list[bytes]) -> list[JSON]:
    """The results of calls; raises unless each succeeded and was answered once."""
    by_id = {}
    for answer in answers:
        message = json.loads(answer)
        if message.get("id") is not None:
            by_id[message["id"]] = message
    if len(by_id) != len(lines) or set(by_id) != {line.id for line in lines}:
        raise AssertionError(f"{len(lines)} calls, {len(by_id)} answers")
    found = [by_id[line.id] for line in lines]
    for message in found:
        if "result" not in message or message["result"].get("isError"):
            raise AssertionError(f"a call failed: {str(message)[:2000]}")
    return [message["result"] for message in found]


def environment(extra: Mapping[str, str]) -> dict[str, str]:
    """Our environment, without variables that would change a server or a Python unnoticed."""
    ours = ("COLIBRI_", "AMS_", "CLAUDE_", "PYTHON", "COVERAGE_", "BENCH_", "NODE_OPTIONS")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return {**kept, **extra}
