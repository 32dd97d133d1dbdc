"""A plain client for the real server: a subprocess, lines in, lines out."""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from subprocess import CompletedProcess as Ended
from typing import Any, Self

from tests.support import engines

TESTS = Path(__file__).parent.parent
COLIBRI = (sys.executable, "-m", "colibri", "serve")
TOOLBOX = (sys.executable, "-m", "tests.support.extra_tools")
PATIENCE = 30.0
GOODBYE = 5.0

JSON = dict[str, Any]


def environment(**extra: str) -> dict[str, str]:
    """The environment of a server under test: ours without any COLIBRI_* or AMS_*."""
    ours = ("COLIBRI_", "AMS_", "CLAUDE_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    paths = [str(TESTS.parent / "src"), str(TESTS.parent), kept.get("PYTHONPATH", "")]
    return {**kept, "PYTHONPATH": os.pathsep.join(filter(None, paths)), **extra}


def execute(command: Sequence[str | Path], *, input: str = "", **options: Any) -> "Ended[str]":
    """Run a program to its end, within PATIENCE; cwd, env and check as in subprocess.run."""
    return subprocess.run(command, input=input, text=True, **_quiet(options))  # noqa: PLW1510 - in it


def execute_raw(
    command: Sequence[str | Path], *, input: bytes = b"", **options: Any
) -> "Ended[bytes]":
    """The same, in bytes."""
    return subprocess.run(command, input=input, **_quiet(options))  # noqa: PLW1510 - in it


def _quiet(options: JSON) -> JSON:
    defaults = {"env": environment(), "capture_output": True, "timeout": 60, "check": False}
    return {**defaults, **options}


class Server:
    """A running server; `stderr` is what it has written so far."""

    def __init__(
        self, project: Path, program: Sequence[str] = TOOLBOX, *, handshake: bool = True, **env: str
    ) -> None:
        self.project = project
        self._log = project / f"stderr-{os.urandom(4).hex()}.txt"
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                program,
                cwd=project,
                env=environment(**{**engines.environment(project), **env}),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        self._lines: queue.Queue[bytes | None] = queue.Queue()
        self._answers: dict[Any, JSON] = {}
        self._last = 0
        threading.Thread(target=self._read, daemon=True).start()
        if handshake:
            self.handshake()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, problem: object, trace: object) -> None:
        self._hang_up()
        try:
            self.process.wait(0 if problem else GOODBYE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()

    def _hang_up(self) -> None:
        """Close its input, so that the server exits by itself and saves its coverage."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.close()
        except OSError:
            return  # data was still buffered for a dead server

    @property
    def stderr(self) -> str:
        return self._log.read_text(encoding="utf-8")

    @property
    def database(self) -> Path:
        return self.project / "data" / "colibri.db"

    def handshake(self, version: str = "2025-11-25") -> JSON:
        """The initialize exchange; its result."""
        client = {"name": "test", "version": "1"}
        params = {"protocolVersion": version, "capabilities": {}, "clientInfo": client}
        answer = self.request("initialize", params)
        self.notify("notifications/initialized")
        result: JSON = answer["result"]
        return result

    def send(self, data: bytes) -> None:
        """Bytes, as they are."""
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def post(self, method: str, params: JSON | None = None, id: Any = None) -> Any:
        """Send a request without waiting; its id."""
        if id is None:
            self._last += 1
            id = self._last
        message: JSON = {"jsonrpc": "2.0", "id": id, "method": method}
        if params is not None:
            message["params"] = params
        self.send(json.dumps(message).encode() + b"\n")
        return id

    def notify(self, method: str, params: JSON | None = None) -> None:
        message: JSON = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            message["params"] = params
        self.send(json.dumps(message).encode() + b"\n")

    def post_call(self, tool: str, /, **arguments: Any) -> Any:
        return self.post("tools/call", {"name": tool, "arguments": arguments})

    def receive(self, timeout: float = PATIENCE) -> JSON | None:
        """The next message; None when the server has closed its end."""
        line = self._lines.get(timeout=timeout)
        if line is None:
            self._lines.put(None)
            return None
        message: JSON = json.loads(line)
        return message

    def answer(self, id: Any, timeout: float = PATIENCE) -> JSON:
        """The answer to a request; other answers that come meanwhile are kept."""
        while id not in self._answers:
            message = self.receive(timeout)
            assert message is not None, f"the server ended before it answered:\n{self.stderr}"
            self._answers[message.get("id")] = message
        return self._answers.pop(id)

    def request(self, method: str, params: JSON | None = None) -> JSON:
        return self.answer(self.post(method, params))

    def call(self, tool: str, /, **arguments: Any) -> JSON:
        """Call a tool; the CallToolResult."""
        answer = self.answer(self.post_call(tool, **arguments))
        assert "result" in answer, answer
        result: JSON = answer["result"]
        return result

    def data(self, tool: str, /, **arguments: Any) -> JSON:
        """Call a tool that must succeed; the data of its envelope."""
        result = self.call(tool, **arguments)
        assert result["isError"] is False, result
        data: JSON = result["structuredContent"]["data"]
        return data

    def close(self, timeout: float = PATIENCE) -> int:
        """End the input and wait; the exit code."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(timeout)

    def terminate(self, number: int = signal.SIGTERM) -> None:
        self.process.send_signal(number)

    def wait(self, timeout: float = PATIENCE) -> int:
        return self.process.wait(timeout)

    def _read(self) -> None:
        assert self.process.stdout is not None
        try:
            for line in self.process.stdout:
                if line.endswith(b"\n") or self.process.wait(GOODBYE) != -signal.SIGKILL:
                    self._lines.put(line)  # a partial line from a killed server is not an answer
        except (OSError, ValueError):
            pass  # closed under us, at the end of a test
        self._lines.put(None)
