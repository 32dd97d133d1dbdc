"""Programs that commands run to their end, within limits of time and output.

Each is a process group of its own without a terminal: it can ask nobody, and whatever it started
is killed with it.
"""

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from selectors import EVENT_READ, DefaultSelector
from typing import NamedTuple

_PIECE = 65_536


class Stopped(Exception):
    """It took too long or printed too much; `output` is what it had printed by then."""

    def __init__(self, what: str, output: bytes) -> None:
        super().__init__(what)
        self.output = output


class Done(NamedTuple):
    """How it ended, and what it printed."""

    code: int
    output: bytes
    errors: bytes


def run(
    command: Sequence[str],
    directory: str,
    env: Mapping[str, str],
    *,
    stdin: bytes = b"",
    seconds: float,
    most: int,
) -> Done:
    """Run a program to its end; Stopped after `seconds`, or `most` bytes of output."""
    name, deadline = os.path.basename(command[0]), time.monotonic() + seconds
    with tempfile.TemporaryFile() as given:
        given.write(stdin)
        given.seek(0)
        process = subprocess.Popen(
            command,
            cwd=directory,
            env=env,
            stdin=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    output, errors = bytearray(), bytearray()
    with process:
        try:
            _read(process, (output, errors), deadline, most)
            process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise Stopped(f"{name} took longer than {seconds:.0f} s", bytes(output)) from None
        except OverflowError:
            raise Stopped(f"{name} printed more than {most:,} bytes", bytes(output)) from None
        finally:
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)
    return Done(process.returncode, bytes(output), bytes(errors))


def _read(
    process: "subprocess.Popen[bytes]",
    into: tuple[bytearray, bytearray],
    deadline: float,
    most: int,
) -> None:
    """What it prints until it closes both streams."""
    assert process.stdout is not None and process.stderr is not None
    size = 0
    with DefaultSelector() as selector:
        for stream, read in zip((process.stdout, process.stderr), into, strict=True):
            selector.register(stream, EVENT_READ, read)
        while selector.get_map():
            ready = selector.select(max(0.0, deadline - time.monotonic()))
            if not ready or time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(process.args, 0)
            for key, _ in ready:
                piece = os.read(key.fd, _PIECE)
                size += len(piece)
                if size > most:
                    raise OverflowError
                key.data.extend(piece)
                if not piece:
                    selector.unregister(key.fileobj)


def outside(path: str, work_tree: str) -> str:
    """The absolute directories of a PATH that are not below a work tree."""
    inside = os.path.join(os.path.realpath(work_tree), "")
    absolute = [one for one in path.split(os.pathsep) if os.path.isabs(one)]
    return os.pathsep.join(
        one for one in absolute if not os.path.join(os.path.realpath(one), "").startswith(inside)
    )
