"""The main loop: waits for bytes and hands them to the wire, until there is a reason to stop.

Signals only set that reason and wake the loop. A second signal while calls are running ends the
process at once, with 1: acknowledged changes are safe.
"""

import os
import signal
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from colibri.server.call import Load
    from colibri.server.life import Life
    from colibri.server.outbox import Outbox
    from colibri.server.transport import Transport
    from colibri.server.wire import Wire

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Loop:
    """The loop of one server; `runner` is the thread that runs it."""

    def __init__(
        self, life: "Life", transport: "Transport", outbox: "Outbox", wire: "Wire", load: "Load"
    ) -> None:
        self._life = life
        self._outbox = outbox
        self._wire = wire
        self._load = load
        self._input_ended = False
        self.transport = transport
        self.runner: threading.Thread | None = None

    def run(self, shut_down: "Callable[[], int]", *, install_handlers: bool) -> int:
        """Serve until a signal, the end of input or an uncaught exception. The exit code."""
        self.runner = threading.current_thread()  # before stop_reason is read: see End.stop
        restore = self._install_signals() if install_handlers else None
        try:
            try:
                while self._life.stop_reason is None:
                    self._step(None)
            except Exception as problem:
                self._life.uncaught(problem)
            return shut_down()
        finally:
            if restore is not None:
                restore()
            self.runner = None

    def drain(self, left: "Callable[[], float]") -> None:
        """Continue until every accepted call is answered and the client has read the answer."""
        self._wire.close_subscriptions()
        self._load.draining = True  # before looking whether calls are left
        while len(self._load) or self.transport.unsent:
            self._step(left())

    def open_calls(self) -> int:
        return len(self._load)

    def _step(self, timeout: float | None) -> None:
        reading = self._outbox.has_room() and not self._input_ended
        chunk = self.transport.receive(timeout, reading=reading)
        self._outbox.has_room()
        if chunk:
            self._wire.feed(chunk)
        elif chunk == b"" and not self._input_ended:
            self._input_ended = True
            self._wire.end()
            self._life.stop("end of input")

    def _install_signals(self) -> "Callable[[], None] | None":
        """Let SIGTERM and SIGINT stop the server, on the main thread only; returns the undo."""
        if threading.current_thread() is not threading.main_thread():
            return None
        signalled = False

        def handle(number: int, frame: "FrameType | None") -> None:
            nonlocal signalled
            if signalled and len(self._load):
                os._exit(1)
            signalled = True
            self._life.stop(signal.Signals(number).name)

        before = {number: signal.signal(number, handle) for number in _SIGNALS}
        # A signal that arrives just before the loop waits must end that wait too.
        wakeup = signal.set_wakeup_fd(self.transport.wake_fd, warn_on_full_buffer=False)

        def restore() -> None:
            signal.set_wakeup_fd(wakeup)
            for number, handler in before.items():
                signal.signal(number, handler)

        return restore
