"""The descriptors under the wire: bytes in, whole lines out.

`Stream` reads one descriptor and writes another. Any thread may `send`: what the peer does not take
at once is kept and written later, so a peer that does not read blocks no thread. Only the thread
that runs the server calls `receive`; `wake` ends its wait, even from a signal handler.
"""

import fcntl
import os
import select
import threading
from collections import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    class Transport(Protocol):
        """What the server needs of a transport; a signal may write a byte to `wake_fd`."""

        wake_fd: int

        @property
        def unsent(self) -> int:
            """How many bytes the peer has not taken yet."""

        def start(self) -> None:
            """Connect; may block for up to COLIBRI_STARTUP_TIMEOUT_MS."""

        def receive(self, timeout: float | None, *, reading: bool) -> bytes | None:
            """The bytes that came; b"" at the end of input; None if woken or timed out."""

        def send(self, lines: bytes) -> None:
            """Queue whole lines; never blocks, and does nothing once the peer is gone."""

        def wake(self) -> None:
            """Make `receive` return now."""

        def close(self) -> None:
            """Close the descriptors."""


_CHUNK = 65536
_PIPE_BYTES = 512 * 1024  # holds a long list; the system limits the total of a user's pipes
_STDERR = 2


class Stream:
    """A pair of descriptors, by default this process's own stdin and stdout.

    `wake_fd` is where a signal may write its wake-up byte.
    """

    def __init__(self, in_fd: int = 0, out_fd: int | None = None) -> None:
        self.in_fd = in_fd
        self.out_fd = -1 if out_fd is None else out_fd
        self.wake_fd = -1
        self.unsent = 0
        self.broken = False
        self._wake_read = -1
        self._watched = (False, False)
        self._can_refuse = hasattr(os, "RWF_NOWAIT")  # macOS has no such writes
        self._queue: deque[memoryview] = deque()
        self._lock = threading.Lock()
        self._waiting = select.poll()
        self._writable = select.poll()

    def start(self) -> None:
        """Make the wake-up pipe and begin to watch the descriptors."""
        if self.out_fd < 0:
            self.out_fd = claim_stdout()
        _widen(self.out_fd)
        self._wake_read, self.wake_fd = os.pipe()
        os.set_blocking(self._wake_read, False)
        os.set_blocking(self.wake_fd, False)
        self._waiting.register(self._wake_read, select.POLLIN)
        self._writable.register(self.out_fd, select.POLLOUT)

    def receive(self, timeout: float | None, *, reading: bool) -> bytes | None:
        """Wait for bytes, for room to write, or for a wake-up; see Transport."""
        wanted = (reading, self.unsent > 0)
        if wanted != self._watched:
            self._watched = wanted
            self._watch(self.in_fd, select.POLLIN, wanted=wanted[0])
            self._watch(self.out_fd, select.POLLOUT, wanted=wanted[1])
        milliseconds = None if timeout is None else max(0, int(timeout * 1000) + 1)
        ready = dict(self._waiting.poll(milliseconds))
        if self._wake_read in ready:
            os.read(self._wake_read, _CHUNK)
        if self.out_fd in ready:
            with self._lock:
                self._flush(self.unsent)
        if self.broken:
            return b""
        return self._read() if reading and self.in_fd in ready else None

    def send(self, lines: bytes) -> None:
        """Write as much as the peer takes now and keep the rest for `receive` to write."""
        with self._lock:
            if self.broken or self.out_fd < 0:
                return
            self._queue.append(memoryview(lines))
            self._flush(self.unsent + len(lines))
            blocked = self.unsent > 0
        if blocked or self.broken:
            self.wake()

    def wake(self) -> None:
        """End the wait of `receive`; safe from any thread and from a signal handler."""
        try:
            os.write(self.wake_fd, b"\0")
        except OSError:
            return  # full: it wakes anyway; closed: no thread waits

    def close(self) -> None:
        with self._lock:
            descriptors = (self.in_fd, self.out_fd, self._wake_read, self.wake_fd)
            self.in_fd = self.out_fd = self._wake_read = self.wake_fd = -1
        for descriptor in descriptors:
            if descriptor > _STDERR:  # keep 0 to 2: the next file opened would get that number
                os.close(descriptor)

    def _watch(self, descriptor: int, event: int, *, wanted: bool) -> None:
        if wanted:
            self._waiting.register(descriptor, event)
        else:
            try:
                self._waiting.unregister(descriptor)
            except KeyError:
                return

    def _read(self) -> bytes:
        try:
            return os.read(self.in_fd, _CHUNK)
        except OSError:
            return b""  # a closed or reset input counts as its end

    def _flush(self, unsent: int) -> None:
        while self._queue:
            head = self._queue[0]
            try:
                written = self._write(head)
            except OSError:
                self.broken = True
                self._queue.clear()
                unsent = 0
                break
            if not written:
                break
            unsent -= written
            if written == len(head):
                self._queue.popleft()
            else:
                self._queue[0] = head[written:]
        # Only now: if everything was written, `receive` need not watch for room.
        self.unsent = unsent

    def _write(self, data: memoryview) -> int:
        """How many bytes the peer took. Never blocks.

        O_NONBLOCK is not set: it would apply to every process that shares the descriptor.
        """
        if self._can_refuse:
            try:
                return os.pwritev(self.out_fd, (data,), -1, os.RWF_NOWAIT)
            except BlockingIOError:
                return 0
            except (OSError, NotImplementedError):
                self._can_refuse = False  # not every system and file type supports it
        # POLLOUT promises room for PIPE_BUF bytes; a larger write could block.
        return os.write(self.out_fd, data[: select.PIPE_BUF]) if self._writable.poll(0) else 0


def _widen(descriptor: int) -> None:
    """Enlarge a pipe, where possible, so that a long answer fits in one write."""
    try:
        if fcntl.fcntl(descriptor, fcntl.F_GETPIPE_SZ) < _PIPE_BYTES:
            fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    except (AttributeError, OSError):
        return  # not on macOS; not for a file or socket; not beyond the user's limit


def claim_stdout() -> int:
    """Keep the protocol's descriptor private and point fd 1 at fd 2.

    After this no print, warning or child process can write to the client. If one of descriptors 0
    to 2 is closed, it becomes /dev/null; otherwise the next file opened would get its number.
    """
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    private = os.dup(1)
    os.dup2(2, 1)
    return private
