"""The life of a server: its phase, why it stops, its exit code, and two events of its start."""

import threading

from colibri.server.log import describe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from colibri.server.log import Log


class Life:
    """Any thread may read it, and any thread may ask the server to stop."""

    def __init__(self, log: "Log", wake: "Callable[[], None]") -> None:
        self._log = log
        self._wake = wake
        self.phase: str | None = None
        self.connected = False
        self.stop_reason: str | None = None
        self.exit_code = 0
        self.may_load = threading.Event()  # the handshake is answered, or a call came
        self.store_ready = threading.Event()  # the database is open, or cannot be opened
        self.ended = threading.Event()

    def stop(self, reason: str) -> None:
        """Begin the shutdown; the first reason stays."""
        self.stop_reason = self.stop_reason or reason
        self._wake()

    def uncaught(self, problem: BaseException) -> None:
        """Log an exception that nothing handled and shut down with exit code 1."""
        self._log("error", f"[colibri] uncaughtException: {describe(problem)}")
        self.exit_code = 1
        self.stop("uncaughtException")
