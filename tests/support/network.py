"""Machines: network namespaces, each with a cable to this one that can be pulled out.

A namespace lives as long as the process that holds it, which ends with this one.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Self

MOST = 64  # machines of a network
BLOCKS = 510  # of addresses in 198.18.0.0/15, which is kept for such tests


def needs() -> str:
    """Why there cannot be one here, or ""."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    for program in ("ip", "nsenter", "unshare"):
        if not shutil.which(program):
            return f"{program} is missing: .ci/run installs Debian's package iproute2"
    try:
        with Machine(MOST - 1):
            return ""
    except (OSError, subprocess.CalledProcessError) as problem:
        said = getattr(problem, "stderr", "") or problem
        return f"no network namespace can be made here: {str(said).strip()}"


class Machine:
    """A namespace; `hub` is our side of its cable, and our address for its programs."""

    def __init__(self, number: int) -> None:
        block = os.getpid() % BLOCKS
        base = f"198.{18 + block // 255}.{block % 255}"
        self.hub = f"{base}.{number * 4 + 1}"
        self.address = f"{base}.{number * 4 + 2}"
        self._cable = f"col{os.getpid()}-{number}"
        self._holder = subprocess.Popen(
            ["unshare", "--net", "--", "sh", "-c", "echo; exec cat"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        try:
            assert self._holder.stdout is not None
            self._holder.stdout.readline()  # it is in its namespace
            self._connect()
        except BaseException:
            self.__exit__(None, None, None)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        subprocess.run(["ip", "link", "del", self._cable], check=False, capture_output=True)
        self._holder.kill()
        self._holder.wait()
        for stream in (self._holder.stdin, self._holder.stdout):
            assert stream is not None
            stream.close()

    def command(self, program: Sequence[str]) -> tuple[str, ...]:
        """What runs a program on this machine; its process is the program's own."""
        return ("nsenter", f"--net=/proc/{self._holder.pid}/ns/net", "--", *program)

    def cut(self) -> None:
        """Pull the cable out: what either side sends is lost without a word."""
        _ip("link", "set", self._cable, "down")

    def restore(self) -> None:
        _ip("link", "set", self._cable, "up")

    def _connect(self) -> None:
        peer = ("peer", "name", "eth0", "netns", str(self._holder.pid))
        _ip("link", "add", self._cable, "type", "veth", *peer)
        _ip("addr", "add", f"{self.hub}/30", "dev", self._cable)
        _ip("link", "set", self._cable, "up")
        for words in (
            ("link", "set", "lo", "up"),
            ("addr", "add", f"{self.address}/30", "dev", "eth0"),
            ("link", "set", "eth0", "up"),
        ):
            subprocess.run(self.command(("ip", *words)), check=True, capture_output=True, text=True)


def _ip(*words: str) -> None:
    subprocess.run(("ip", *words), check=True, capture_output=True, text=True)


@contextmanager
def machines(count: int) -> Iterator[list[Machine]]:
    """So many of them."""
    with ExitStack() as stack:
        yield [stack.enter_context(Machine(number)) for number in range(count)]
