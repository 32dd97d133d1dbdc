"""The one client of all measurements: a subprocess, raw pipes, lines that were built before.

Nothing is parsed while the clock runs: an answer is known by the bytes of its id. What came back is
looked at afterwards, by `results`.
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
    """A request, ready to be written, and the bytes that its answer has."""

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
    """A running server, not yet greeted."""

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
        """End its input; a server that does not end by itself is ended."""
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
        """Read on until its end: a server that still writes must not block."""
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
        """Write a request and wait for its answer; the server may ask something meanwhile."""
        self.send(line.data)
        while True:
            answer = self.next_line()
            if line.answered_by(answer):
                return answer
            self._reply(answer)

    def _reply(self, line: bytes) -> None:
        """Answer what a server asks its client, with nothing; drop notifications and words."""
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
        """What has come, cut into lines; blocks for the first byte, but not for ever."""
        if not select.select([self._in], [], [], PATIENCE)[0]:
            raise TimeoutError(f"no answer within {PATIENCE:g} s")
        data = os.read(self._in, 1 << 20)
        if not data:
            raise EOFError(f"the server ended with {self.process.wait()}")
        *lines, self._rest = (self._rest + data).split(b"\n")
        self._lines.extend(lines)

    def take(self) -> list[bytes]:
        """All lines that are there, at least one."""
        if not self._lines:
            self._receive()
        lines = list(self._lines)
        self._lines.clear()
        return lines

    def fileno(self) -> int:
        return self._in


def results(lines: list[Line], answers: list[bytes]) -> list[JSON]:
    """The results of calls, all of them good and each there once; raises otherwise."""
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
    """Ours, without what would change a server or a Python behind our back."""
    ours = ("COLIBRI_", "AMS_", "CLAUDE_", "PYTHON", "COVERAGE_", "BENCH_", "NODE_OPTIONS")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return {**kept, **extra}
