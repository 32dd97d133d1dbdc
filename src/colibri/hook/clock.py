"""The time that a hook has, and what becomes of a report for which it was not enough."""

import os
import signal
import time

from colibri.hook import spool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from colibri.config import Config

SECONDS, SECONDS_AT_END = 2.0, 0.7
_FOR_SPOOL = 0.25  # seconds that are set aside for it
_PAUSE = 0.003


class Clock:
    """How much time is left; called, it is patience with whoever holds what is needed.

    `pending` has the project of a report that is neither recorded nor kept yet.
    """

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._until = self._began + SECONDS - _FOR_SPOOL
        self.pending: Config | None = None
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
        return time.monotonic() < self._until

    def __call__(self, _tries: int) -> bool:
        if not self.left():
            return False
        time.sleep(_PAUSE)
        return True

    def count_pending(self) -> None:
        """Nothing more can be done about a report that is not kept."""
        if self.pending is not None:
            spool.add_lost(self.pending.db_path, 1)

    def _give_up(self) -> None:
        """Whatever it hangs on, such as a host that never closes its pipe."""
        self.count_pending()
        os._exit(0)
