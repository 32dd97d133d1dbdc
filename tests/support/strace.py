"""strace on a running server: to count its system calls, or to make them fail."""

import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
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


def failing_copies(database: Path, output: Path) -> tuple[str, ...]:
    """The words before a command that make its every write into the database file fail with EIO.

    Its write-ahead log can be written.
    """
    traced = ("-f", "-qq", "-o", str(output), "-e", "trace=pwrite64,pwritev")
    return ("strace", *traced, "-e", "inject=pwrite64:error=EIO", "-P", str(database))


def lengthen_log(database: Path, pages: int) -> None:
    """Leave so many pages in its write-ahead log, or one more, not copied back."""
    db = apsw.Connection(str(database))
    db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    db.wal_autocheckpoint(0)
    size, there = (pages - 50) * 2048, 0
    while there < pages:
        db.execute("INSERT INTO meta VALUES ('x', hex(zeroblob(?)))", (size,))
        db.execute("DELETE FROM meta WHERE key = 'x'")
        there, _ = db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_NOOP)
        size = 1
    db.close()
