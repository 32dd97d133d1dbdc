"""A small MCP client with its own server: a child process, a line out, a line back."""

import json
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from threading import Timer
from typing import Any

from colibri import VERSION
from colibri.cli import files
from colibri.core.errors import ResourceError

PROTOCOL = "2025-11-25"
PATIENCE = 30.0  # seconds to wait for an answer, and for the server to end

Call = Callable[[str, Mapping[str, Any]], dict[str, Any]]  # a tool, arguments; the CallToolResult


@contextmanager
def serving(command: Sequence[str], *, env: Mapping[str, str], log: str) -> Iterator[Call]:
    """A server for the length of a with block; what it says on stderr goes into a log file.

    End of input is the way to end it; one that stays, or does not answer, is killed.
    """
    pipe = subprocess.PIPE
    with (
        files.create(log) as file,
        subprocess.Popen(command, env=env, stdin=pipe, stdout=pipe, stderr=file) as process,
    ):
        assert process.stdin is not None
        watchdog = Timer(PATIENCE, process.kill)
        watchdog.start()
        try:
            request = _requests(process, f"{log} has what it said")
            client = {"name": "colibri-demo", "version": VERSION}
            about = {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": client}
            request("initialize", about)
            process.stdin.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
            yield lambda tool, given: request("tools/call", {"name": tool, "arguments": given})
        finally:
            with suppress(BrokenPipeError):  # it has already ended
                process.stdin.close()
            with suppress(subprocess.TimeoutExpired):
                process.wait(PATIENCE)
            watchdog.cancel()
            process.kill()  # does nothing to one that has ended


def _requests(process: "subprocess.Popen[bytes]", hint: str) -> Call:
    """Sends a request and waits for its result; ResourceError, with a hint, if none comes."""
    stdin, stdout = process.stdin, process.stdout
    assert stdin is not None and stdout is not None
    numbers = count(1)

    def request(method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        id = next(numbers)
        message = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
        try:
            stdin.write(json.dumps(message).encode() + b"\n")
            stdin.flush()
            line = stdout.readline()
        except BrokenPipeError:
            line = b""
        if not line:
            raise ResourceError("the server ended, or did not answer in time", hint)
        answer = json.loads(line)
        if answer.get("id") != id or "result" not in answer:
            raise ResourceError(f"the server did not answer {method}: {answer}", hint)
        result: dict[str, Any] = answer["result"]
        return result

    return request
