"""strace on a running server: to count its system calls, or to make them fail."""

import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.client import Server
from tests.support.ledger_reader import eventually

requires_strace = pytest.mark.skipif(
    shutil.which("strace") is None, reason="strace is not installed"
)


class Trace:
    """What strace has seen so far."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def count(self, *names: str) -> int:
        """How many calls with these names were started."""
        lines = self._file.read_text(encoding="utf-8").splitlines()
        return sum(1 for line in lines for name in names if f" {name}(" in line)

    def injected(self) -> int:
        """How many calls were made to fail."""
        return self._file.read_text(encoding="utf-8").count("(INJECTED)")


@contextmanager
def attached(server: Server, names: str, inject: str | None = None) -> Iterator[Trace]:
    """Trace these system calls of all threads; `inject` is strace's option, as `x:error=EIO`.

    An injected call must also be traced, or strace silently does nothing.
    """
    output, words = server.project / "strace.txt", server.project / "strace-stderr.txt"
    command = ["strace", "-f", "-p", str(server.process.pid), "-o", str(output)]
    command += ["-e", f"trace={names}", *(["-e", f"inject={inject}"] if inject else [])]
    with words.open("wb") as stderr:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=stderr)
    try:
        eventually(lambda: _is_attached(process, words), "strace is attached")
        yield Trace(output)
    finally:
        process.send_signal(signal.SIGINT)  # it detaches from the server and exits
        process.wait(10)


def _is_attached(process: "subprocess.Popen[bytes]", words: Path) -> bool:
    said = words.read_text(encoding="utf-8")
    if process.poll() is not None:
        pytest.skip(f"strace cannot attach here: {said.strip()}")
    return "attached" in said
