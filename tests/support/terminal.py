"""Run a program in a pseudo-terminal of a given width, as a person would see it."""

import fcntl
import os
import pty
import shlex
import struct
import subprocess
import sys
import termios
from collections.abc import Mapping, Sequence
from pathlib import Path

COLIBRI = (sys.executable, "-m", "colibri")
TYPED = shlex.join(COLIBRI)  # how hints then spell the command


def run_in_terminal(
    command: Sequence[str],
    *,
    cwd: Path | None = None,
    columns: int = 100,
    env: Mapping[str, str] | None = None,
    timeout: float = 60,
    typed: bytes = b"",
) -> tuple[int, str]:
    """The exit code and all output, stdout and stderr together; line ends as \\n.

    Typed text waits in the terminal until the program reads it, and is part of the output.
    """
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    surroundings = {**os.environ, **(env or {}), "TERM": "xterm-256color"}
    for name in ("COLUMNS", "LINES"):
        surroundings.pop(name, None)
    process = subprocess.Popen(
        command, cwd=cwd, env=surroundings, stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    os.write(ours, typed)
    shown = _read_all(ours)
    os.close(ours)
    return process.wait(timeout), shown.decode("utf-8", "replace").replace("\r\n", "\n")


def _read_all(terminal: int) -> bytes:
    pieces: list[bytes] = []
    while True:
        try:
            piece = os.read(terminal, 65_536)
        except OSError:  # EIO: the last program has closed it
            piece = b""
        if not piece:
            return b"".join(pieces)
        pieces.append(piece)
