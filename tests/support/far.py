"""A way to the PostgreSQL server of the tests that takes time, counts trips, and can be cut.

A trip is a question and its answer: it begins where the client sends something after it received
something, or for the first time. The delay is that of a whole trip, half of it each way.

`python -m tests.support.far TARGET MS HOST...` is such a way in a process of its own: it says its
port, takes a new delay from each line of its input, and ends with it.
"""

import ctypes
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Self

LONG_TRIP_MS = 40  # where trips are counted: no answer comes while questions are still being sent
PR_SET_TIMERSLACK = 29


class Far:
    """A proxy on a port of some addresses, until the end of a with block."""

    def __init__(
        self,
        target: str | tuple[str, int],
        trip_ms: float = 0.0,
        hosts: Sequence[str] = ("127.0.0.1",),
    ) -> None:
        self.target = target  # of connections to come
        self.delay = trip_ms / 2000
        self.trips = 0
        self._links: list[tuple[socket.socket, ...]] = []  # near and far
        self._is_cut = False
        self._answers_left: int | None = None  # that are let through; None if all are
        self._questions_left: int | None = None  # until one comes late
        self._lateness = 0.0
        self._parts_left: int | None = None  # of questions, until everything after them is lost
        self._lock = threading.Lock()
        self._doors = [socket.create_server((hosts[0], 0))]
        self.port = int(self._doors[0].getsockname()[1])
        self._doors += [socket.create_server((host, self.port)) for host in hosts[1:]]
        for door in self._doors:
            threading.Thread(target=self._accept, args=(door,), daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for door in self._doors:
            door.close()
        self.drop()

    def url(self, user: str, database: str = "postgres", host: str = "127.0.0.1") -> str:
        return f"postgresql://{user}@{host}:{self.port}/{database}"

    def drop(self) -> None:
        """Break every connection; new ones are let through."""
        with self._lock:
            links, self._links = self._links, []
        for link in links:
            _close(*link)

    def cut(self) -> None:
        """Let nothing through, and accept no connection: as if a cable was pulled out."""
        self._is_cut = True

    def mute(self, after: int = 0) -> None:
        """Lose what the server answers, after so many more answers."""
        self._answers_left = after

    def delay_one(self, seconds: float, after: int = 0) -> None:
        """After so many more questions, one comes late to the server, and to nobody who waits: its
        client's connection breaks at once. New ones are let through.
        """
        self._lateness, self._questions_left = seconds, after

    def cut_after(self, parts: int) -> None:
        """After so many more writes of a client, lose what it sends, without a word."""
        self._parts_left = parts

    def restore(self) -> None:
        """Let through again what comes from now on; what was sent meanwhile is lost."""
        self._is_cut = False
        self._answers_left = self._questions_left = self._parts_left = None
        self.drop()

    def _accept(self, door: socket.socket) -> None:
        while True:
            try:
                near, _ = door.accept()
            except OSError:
                return
            try:
                if self._is_cut:
                    raise OSError
                far = self._connect()
            except OSError:
                near.close()
                continue
            for link in (near, far):
                if link.family != socket.AF_UNIX:
                    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                self._links.append((near, far))
            turn = [False]  # whether the server spoke last
            there = (near, far, partial(self._count, turn), False)
            back = (far, near, partial(turn.__setitem__, 0, True), True)
            for way in (there, back):
                threading.Thread(target=self._carry, args=way, daemon=True).start()

    def _is_late(self) -> bool:
        with self._lock:
            if self._questions_left is None:
                return False
            self._questions_left -= 1
            if self._questions_left >= 0:
                return False
            self._questions_left = None
            return True

    def _is_lost(self) -> bool:
        with self._lock:
            if self._parts_left is None:
                return False
            self._parts_left -= 1
            return self._parts_left < 0

    def _is_mute(self) -> bool:
        with self._lock:
            if self._answers_left is None:
                return False
            self._answers_left -= 1
            return self._answers_left < 0

    def _connect(self) -> socket.socket:
        if isinstance(self.target, tuple):
            return socket.create_connection(self.target)
        far = socket.socket(socket.AF_UNIX)
        try:
            far.connect(self.target)
        except OSError:
            far.close()
            raise
        return far

    def _count(self, turn: list[bool]) -> None:
        if turn[0]:
            turn[0] = False
            self.trips += 1

    def _carry(
        self,
        source: socket.socket,
        target: socket.socket,
        seen: Callable[[], object],
        answers: bool,
    ) -> None:
        """Pass on what comes, after the delay. What comes meanwhile waits for as long again: then
        the way is slower than it says, never faster.
        """
        data = b"-"
        while data:
            try:
                data = source.recv(65536)
            except OSError:
                data = b""
            due = time.monotonic() + self.delay
            seen()
            if data and not answers and self._is_lost():
                continue
            is_late = bool(data) and not answers and self._is_late()
            if is_late:
                data += self._rest(source)
                self._lose(source)
                due += self._lateness
            if not self._deliver(target, data, due, answers) or is_late:
                break
        if data:
            self._deliver(target, b"", 0.0, answers)

    def _deliver(self, target: socket.socket, data: bytes, due: float, answers: bool) -> bool:
        """Whether there is anybody to deliver to."""
        if (left := due - time.monotonic()) > 0:
            time.sleep(left)
        if self._is_cut or (answers and data and self._is_mute()):
            return True  # lost on the way
        try:
            target.sendall(data)
            if not data:
                target.shutdown(socket.SHUT_WR)
        except OSError:
            return False
        return True

    def _rest(self, near: socket.socket) -> bytes:
        """Of a question that is sent in parts."""
        time.sleep(0.05)
        near.setblocking(False)
        with suppress(OSError):
            return near.recv(65536)
        return b""

    def _lose(self, near: socket.socket) -> None:
        """Break a client's side of a connection only."""
        with self._lock:
            links = [tuple(side for side in link if side is not near) for link in self._links]
            self._links = links
        _close(near)


def _close(*links: socket.socket) -> None:
    for link in links:
        with suppress(OSError):
            link.shutdown(socket.SHUT_RDWR)
        link.close()


def socket_of(directory: Path, port: int) -> str:
    """The path of a PostgreSQL server's socket."""
    return str(directory / f".s.PGSQL.{port}")


def _be_punctual() -> None:
    """Wake threads from now on before those of other programs, because a network waits for no
    processor; and without the 50 microseconds that Linux lets timers be late.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0)
        with suppress(PermissionError):  # then trips take longer on a busy machine
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))


def main(target: str, trip_ms: str, *hosts: str) -> None:
    _be_punctual()
    with Far(target, float(trip_ms), hosts) as far:
        _say(f"{far.port}")
        for line in sys.stdin:
            far.delay = float(line) / 2000
            _say("")


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
