"""The server's two clocks: monotonic milliseconds for durations, UTC for what is recorded.

And its patience with another process that holds the database.
"""

import time

FOREVER = float("inf")
PATIENCE_SECONDS = 10.0
# Short and always the same: if waits grew, whoever had waited longest would ask least often.
_PAUSE = 0.003

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class Clock:
    """Both, and how long the server is up."""

    def __init__(
        self, now_ms: "Callable[[], float] | None" = None, start_ms: float | None = None
    ) -> None:
        self.now_ms = now_ms or _monotonic_ms
        self._start_ms = self.now_ms() if start_ms is None else start_ms
        self._second = (-1, "")

    def uptime_ms(self) -> int:
        """Whole milliseconds since the boot began."""
        return max(0, int(self.now_ms() - self._start_ms))

    def utc(self) -> str:
        """Now, as RFC 3339 with microseconds."""
        seconds, nanoseconds = divmod(time.time_ns(), 1_000_000_000)
        known, text = self._second
        if known != seconds:  # formatting a second takes longer than all the rest
            text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
            self._second = (seconds, text)
        return f"{text}.{nanoseconds // 1000:06d}Z"


def _monotonic_ms() -> float:
    return time.monotonic() * 1000


class Patience:
    """How long a connection still waits for another process: SQLite asks before each new try.

    It is `left` in seconds, of 10 for all transactions of a round or of a read; but none in a
    shutdown with nothing left but records of probes.
    """

    def __init__(self, idle_shutdown: "Callable[[], bool]" = lambda: False) -> None:
        self.left = 0.0
        self._idle_shutdown = idle_shutdown

    def begin(self, until: float = FOREVER) -> None:
        """A round or a read begins; somebody in it has until then, by the monotonic clock."""
        self.left = PATIENCE_SECONDS
        if until != FOREVER:
            self.left = min(self.left, until - time.monotonic())

    @property
    def is_mostly_spent(self) -> bool:
        return self.left < PATIENCE_SECONDS / 2

    def __call__(self, tries: int) -> bool:
        if self.left <= 0 or self._idle_shutdown():
            return False
        begun = time.monotonic()
        time.sleep(_PAUSE)
        self.left -= time.monotonic() - begun
        return True
