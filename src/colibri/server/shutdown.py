"""The main loop and the end of a server: six stages, each logged.

    1 announce   say why
    2 quiesce    new calls get SHUTTING_DOWN, from the moment there is a reason to stop
    3 drain      accepted calls are finished and their answers taken, for up to 30 s
    4 finalize   nothing is ever pending: a seal is one transaction
    5 close      the read lane ends, then the write lane, then the database is closed
    6 release    the lock file and the transport are let go

Signals only set a flag and wake the loop. A second one, or the deadline, ends the process at once:
what was acknowledged is safe.
"""

import os
import signal
import sys
import threading
import time

from colibri.server import store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from colibri.server.context import ColibriServerContext

DRAIN_SECONDS = 30.0
MAX_UNREAD = 32 * 1024 * 1024
_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def run(ctx: "ColibriServerContext") -> int:
    """Serve until a signal, the end of input or an uncaught exception; the exit code."""
    ctx.runner = threading.current_thread()  # before the first look at stop_reason: see `stop`
    restore = _install_signals(ctx)
    try:
        try:
            while ctx.stop_reason is None:
                _turn(ctx, None)
        except Exception as problem:
            ctx.uncaught(problem)
        return shut_down(ctx)
    finally:
        restore()
        ctx.runner = None


def _turn(ctx: "ColibriServerContext", timeout: float | None) -> None:
    """Wait once, and handle what came."""
    reading = not ctx.input_ended and ctx.transport.unsent <= MAX_UNREAD
    chunk = ctx.transport.receive(timeout, reading=reading)
    if not ctx.room.is_set() and ctx.transport.unsent <= MAX_UNREAD:
        ctx.room.set()
    if chunk:
        ctx.wire.feed(chunk)
    elif chunk == b"" and not ctx.input_ended:
        ctx.input_ended = True
        ctx.wire.end()
        ctx.request_stop("end of input")


def shut_down(ctx: "ColibriServerContext") -> int:
    """The six stages, once; os._exit(1) when they take too long."""
    if not ctx.ending.acquire(blocking=False):  # another thread is at it
        ctx.ended.wait()
        return ctx.exit_code
    deadline = time.monotonic() + DRAIN_SECONDS
    ctx.log("info", f"[colibri] shutdown 1/6 announce: {ctx.stop_reason}")
    ctx.log("info", "[colibri] shutdown 2/6 quiesce: no new calls")
    ctx.log("info", f"[colibri] shutdown 3/6 drain: calls open: {len(ctx.load)}")
    ctx.wire.close_subscriptions()
    while len(ctx.load) or ctx.transport.unsent:
        _turn(ctx, _left(ctx, deadline))
    ctx.log("info", "[colibri] shutdown 4/6 finalize: nothing pending")
    ctx.checks.stop(_left(ctx, deadline))
    for lane in (ctx.read, ctx.write):
        lane.put(None)
        lane.thread.join(_left(ctx, deadline))
        if lane.thread.is_alive():
            _left(ctx, 0)
    store.close_store(ctx)
    ctx.log("info", "[colibri] shutdown 5/6 close: database closed")
    ctx.transport.close()
    ctx.connected = False
    restore_hooks(ctx)
    ctx.log("info", f"[colibri] shutdown 6/6 release: exit {ctx.exit_code}")
    ctx.ended.set()
    return ctx.exit_code


def restore_hooks(ctx: "ColibriServerContext") -> None:
    """Give back what caught uncaught exceptions before the start."""
    if ctx.hooks_before is not None:
        sys.excepthook, threading.excepthook = ctx.hooks_before
        ctx.hooks_before = None


def _left(ctx: "ColibriServerContext", deadline: float) -> float:
    """The seconds that are left; without any the process ends here."""
    left = deadline - time.monotonic()
    if left <= 0:
        ctx.log("error", f"[colibri] shutdown not done in {DRAIN_SECONDS:.0f} s: exit 1")
        os._exit(1)
    return left


def _install_signals(ctx: "ColibriServerContext") -> "Callable[[], None]":
    """Let SIGTERM and SIGINT stop the server, where this thread may say so; how to undo it."""
    if not ctx.install_handlers or threading.current_thread() is not threading.main_thread():
        return lambda: None

    def handle(number: int, frame: "FrameType | None") -> None:
        if ctx.signalled:
            os._exit(1)
        ctx.signalled = True
        ctx.request_stop(signal.Signals(number).name)

    before = {number: signal.signal(number, handle) for number in _SIGNALS}
    # A signal that comes just before the loop begins to wait must end that wait too.
    wakeup = signal.set_wakeup_fd(ctx.transport.wake_fd, warn_on_full_buffer=False)

    def restore() -> None:
        signal.set_wakeup_fd(wakeup)
        for number, handler in before.items():
            signal.signal(number, handler)

    return restore
