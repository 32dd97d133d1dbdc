"""The end of a server: six stages, each logged.

    1 announce   log the reason
    2 quiesce    new calls get SHUTTING_DOWN, from the moment there is a reason to stop
    3 drain      accepted calls are finished and the client reads their answers, for up to 30 s
    4 finalize   nothing is ever pending: a seal is one transaction
    5 close      the read lane ends, then the write lane, then the database is closed
    6 release    the lock file and the transport are released

At the deadline the process exits at once: acknowledged changes are safe.
"""

import os
import threading
import time
from collections.abc import Sequence

from colibri.server.checks import Checks
from colibri.server.health import Health
from colibri.server.journal import Journal
from colibri.server.lanes import Lane
from colibri.server.life import Life
from colibri.server.log import Log
from colibri.server.loop import Loop

DRAIN_SECONDS = 30.0


class End:
    """Shuts down the parts of a server, in order."""

    def __init__(
        self,
        life: Life,
        loop: Loop,
        checks: Checks,
        lanes: Sequence[Lane],
        journal: Journal,
        health: Health,
        log: Log,
    ) -> None:
        self._life = life
        self._loop = loop
        self._checks = checks
        self._lanes = lanes
        self._journal = journal
        self._health = health
        self._log = log
        self._ending = threading.Lock()
        self._deadline = 0.0

    def shut_down(self) -> int:
        """Run the six stages, once; returns the exit code. os._exit(1) if they take too long."""
        life, log = self._life, self._log
        if not self._ending.acquire(blocking=False):  # another thread is doing it
            life.ended.wait()
            return life.exit_code
        self._deadline = time.monotonic() + DRAIN_SECONDS
        log("info", f"[colibri] shutdown 1/6 announce: {life.stop_reason}")
        log("info", "[colibri] shutdown 2/6 quiesce: no new calls")
        log("info", f"[colibri] shutdown 3/6 drain: calls open: {self._loop.open_calls()}")
        self._loop.drain(self._left)
        log("info", "[colibri] shutdown 4/6 finalize: nothing pending")
        self._checks.stop(self._left())
        for lane in self._lanes:
            lane.put(None)
            lane.thread.join(self._left())
            if lane.thread.is_alive():
                self._give_up()
        last = threading.Timer(self._left(), self._give_up)  # a database may never answer
        last.daemon = True
        last.start()
        try:
            self._close_database()
        finally:
            last.cancel()
            last.join()
        log("info", "[colibri] shutdown 5/6 close: database closed")
        self._loop.transport.close()
        life.connected = False
        log("info", f"[colibri] shutdown 6/6 release: exit {life.exit_code}")
        life.ended.set()
        return life.exit_code

    def stop(self) -> None:
        """Shut down, through the thread that runs the server, or here if there is none."""
        life, loop = self._life, self._loop
        life.stop("stop")
        own = (loop.runner, *(lane.thread for lane in self._lanes))
        if threading.current_thread() in own:
            return  # called by a handler or a sink: the server cannot wait for itself
        while loop.runner is not None and not life.ended.wait(0.05):
            pass  # `run` shuts down; if an exception ended it, we do so below
        if life.connected:
            self.shut_down()
        elif not life.ended.is_set():
            loop.transport.close()

    def _close_database(self) -> None:
        recorder, self._journal.recorder = self._journal.recorder, None
        if recorder is not None:
            if self._journal.keeper is not None:
                self._journal.keeper.keep_last()
            failing = self._health.condition.cause == "io"
            if fate := recorder.opened.close(checkpoint=not failing):
                lost = "records of this server may be lost or elsewhere"
                self._log("error", f"[colibri] {fate} while the server had it open: {lost}")
            self._journal.status = "closed"
            self._health.db_tables = 0

    def _left(self) -> float:
        """The seconds left; if there are none, the process ends here."""
        left = self._deadline - time.monotonic()
        if left <= 0:
            self._give_up()
        return left

    def _give_up(self) -> None:
        self._log("error", f"[colibri] shutdown did not finish in {DRAIN_SECONDS:.0f} s: exit 1")
        os._exit(1)
