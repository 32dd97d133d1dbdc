"""The server's two clocks: monotonic milliseconds for durations, UTC for records.

Also how long it waits for another process that holds the database.
"""

import time

FOREVER = float("inf")
PATIENCE_SECONDS = 10.0
# Short and constant: with growing waits, the process that has waited longest would try least often.
_PAUSE = 0.003

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class Clock:
    """Both clocks, and how long the server has been up."""

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
        if known != seconds:  # cached: formatting the seconds is the slow part
            text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
            self._second = (seconds, text)
        return f"{text}.{nanoseconds // 1000:06d}Z"


def _monotonic_ms() -> float:
    return time.monotonic() * 1000


class Patience:
    """How long a connection still waits for another process; SQLite calls it before each retry.

    `left` is in seconds, out of 10 for all transactions of a round or a read. During a shutdown
    with nothing left to write but records of probes there is no wait.
    """

    def __init__(self, idle_shutdown: "Callable[[], bool]" = lambda: False) -> None:
        self.left = 0.0
        self._idle_shutdown = idle_shutdown

    def begin(self, until: float = FOREVER) -> None:
        """Start a round or a read; `until`, on the monotonic clock, is its earliest deadline."""
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
