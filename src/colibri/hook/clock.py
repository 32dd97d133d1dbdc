"""The time that a hook has, and what becomes of a report for which it was not enough."""

import os
import signal
import time

from colibri.hook import lost

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from colibri.config import Config

SECONDS, SECONDS_AT_END = 2.0, 0.7
_FOR_SPOOL = 0.25  # seconds that are set aside for it
_PAUSE = 0.003


class Clock:
    """How much time is left; called, it is patience with whoever holds what is needed.

    `pending` has the project of a report that is neither recorded nor kept yet; while it is still
    being read, `find` finds it.
    """

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._until = self._began + SECONDS - _FOR_SPOOL
        self.pending: Config | None = None
        self.find: Callable[[], Config | None] | None = None
        signal.signal(signal.SIGALRM, lambda *_: self._give_up())
        signal.setitimer(signal.ITIMER_REAL, SECONDS)

    def shorten(self) -> None:
        """The host is about to end."""
        self._until = self._began + SECONDS_AT_END - _FOR_SPOOL
        left = self._began + SECONDS_AT_END - time.monotonic()
        signal.setitimer(signal.ITIMER_REAL, max(left, 0.001))

    def extend(self) -> None:
        """Use what was set aside."""
        self._until = time.monotonic() + _FOR_SPOOL / 2

    def left(self) -> bool:
        return self.seconds() > 0

    def seconds(self) -> float:
        return self._until - time.monotonic()

    def __call__(self, _tries: int) -> bool:
        if not self.left():
            return False
        time.sleep(_PAUSE)
        return True

    def count_pending(self) -> None:
        """Nothing more can be done about a report that is not kept."""
        signal.setitimer(signal.ITIMER_REAL, 0)  # the alarm must not find the counter locked by us
        config = self.pending or (self.find() if self.find is not None else None)
        self.pending = self.find = None
        if config is not None:
            lost.add(config)

    def _give_up(self) -> None:
        """Whatever it hangs on, such as a host that never closes its pipe."""
        self.count_pending()
        os._exit(0)
