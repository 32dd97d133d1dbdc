"""A way to the PostgreSQL server of the tests that takes time, counts trips, and can be cut.

A trip is a question and its answer: it begins where the client sends something after it received
something, or for the first time. The delay is that of a whole trip, half of it each way.
"""

import queue
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self


class Far:
    """A proxy on a loopback port, until the end of a with block."""

    def __init__(self, target: str | tuple[str, int], trip_ms: float = 0.0) -> None:
        self._target = target
        self.delay = trip_ms / 2000
        self.trips = 0
        self._links: list[socket.socket] = []
        self._is_cut = False
        self._answers_left: int | None = None  # that are let through; None if all are
        self._lock = threading.Lock()
        self._door = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._door.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._door.close()
        self.drop()

    def url(self, user: str, database: str = "postgres") -> str:
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    def drop(self) -> None:
        """Break every connection; new ones are let through."""
        with self._lock:
            links, self._links = self._links, []
        for link in links:
            with suppress(OSError):
                link.shutdown(socket.SHUT_RDWR)
            link.close()

    def cut(self) -> None:
        """Let nothing through, and accept no connection: as if a cable was pulled out."""
        self._is_cut = True

    def mute(self, after: int = 0) -> None:
        """Lose what the server answers, after so many more answers."""
        self._answers_left = after

    def restore(self) -> None:
        """Let through again what comes from now on; what was sent meanwhile is lost."""
        self._is_cut = False
        self._answers_left = None
        self.drop()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._door.accept()
            except OSError:
                return
            if self._is_cut:
                near.close()
                continue
            far = self._connect()
            for link in (near, far):
                if link.family != socket.AF_UNIX:
                    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                self._links += [near, far]
            turn = [False]  # whether the server spoke last
            self._pump(near, far, lambda turn=turn: self._count(turn))
            self._pump(far, near, lambda turn=turn: turn.__setitem__(0, True), answers=True)

    def _is_mute(self) -> bool:
        with self._lock:
            if self._answers_left is None:
                return False
            self._answers_left -= 1
            return self._answers_left < 0

    def _connect(self) -> socket.socket:
        if isinstance(self._target, tuple):
            return socket.create_connection(self._target)
        far = socket.socket(socket.AF_UNIX)
        far.connect(self._target)
        return far

    def _count(self, turn: list[bool]) -> None:
        if turn[0]:
            turn[0] = False
            self.trips += 1

    def _pump(
        self, source: socket.socket, target: socket.socket, seen: object, *, answers: bool = False
    ) -> None:
        waiting: queue.SimpleQueue[tuple[float, bytes]] = queue.SimpleQueue()
        threading.Thread(target=self._read, args=(source, waiting, seen), daemon=True).start()
        given = (target, waiting, answers)
        threading.Thread(target=self._write, args=given, daemon=True).start()

    def _read(
        self, source: socket.socket, waiting: "queue.SimpleQueue[tuple[float, bytes]]", seen: object
    ) -> None:
        assert callable(seen)
        data = b"-"
        while data:
            try:
                data = source.recv(65536)
            except OSError:
                data = b""
            seen()
            waiting.put((time.monotonic() + self.delay, data))

    def _write(
        self,
        target: socket.socket,
        waiting: "queue.SimpleQueue[tuple[float, bytes]]",
        answers: bool,
    ) -> None:
        while True:
            due, data = waiting.get()
            if (left := due - time.monotonic()) > 0:
                time.sleep(left)
            if self._is_cut or (answers and data and self._is_mute()):
                continue  # lost on the way
            try:
                if not data:
                    target.shutdown(socket.SHUT_WR)
                    return
                target.sendall(data)
            except OSError:
                return


def socket_of(directory: Path, port: int) -> str:
    """The path of a PostgreSQL server's socket."""
    return str(directory / f".s.PGSQL.{port}")
