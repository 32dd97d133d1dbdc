"""The server's two clocks: monotonic milliseconds for durations, UTC for what is recorded."""

import time

FOREVER = float("inf")

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
