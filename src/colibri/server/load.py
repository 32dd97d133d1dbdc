"""What waits: calls that are accepted and not yet answered, and the bounds on them."""

import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from colibri.server.call import Call

MAX_CALLS = 1024
MAX_WAITING_BYTES = 64 * 1024 * 1024  # 32 MiB of lines in ASCII, and those as parsed


class Load:
    """Calls accepted and not yet answered, over all lanes, and what they weigh in memory."""

    def __init__(self, emptied: "Callable[[], None]") -> None:
        self._lock = threading.Lock()
        self._calls: set[Call] = set()
        self._bytes = 0
        self._emptied = emptied

    def accept(self, call: "Call") -> bool:
        """Count a call in, or refuse it because a bound is reached."""
        with self._lock:
            if len(self._calls) >= MAX_CALLS or self._bytes + call.weight > MAX_WAITING_BYTES:
                return False
            self._calls.add(call)
            self._bytes += call.weight
        return True

    def release(self, call: "Call") -> None:
        """Count a call out, if it was counted in."""
        with self._lock:
            if call in self._calls:
                self._calls.remove(call)
                self._bytes -= call.weight
        if not self._calls:
            self._emptied()

    def of(self, lane: str) -> "list[Call]":
        """The calls of a lane that are not answered yet."""
        with self._lock:
            return [call for call in self._calls if call.lane == lane]

    def __len__(self) -> int:
        return len(self._calls)
