"""Work in a process of its own, for a hook that has to end in time.

A server may be out of reach in ways that no signal gets past: a name that is not resolved, packets
that nobody answers. Whatever it hangs on, the process is killed and the report is spooled; if it
was recorded after all, its id shows that later.
"""

import json
import os
import select
import signal

from colibri.core.errors import ResourceError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

    from colibri.hook.clock import Clock

_CHUNK = 65_536


def run(work: "Callable[[], str | None]", clock: "Clock") -> str | None:
    """What the work returns; ResourceError if it fails or takes too long."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        _work(work, theirs, clock)
    os.close(theirs)
    try:
        said = _read(ours, clock)
    finally:
        os.close(ours)
        os.kill(child, signal.SIGKILL)  # it still exists: only waitpid lets it go
        os.waitpid(child, 0)
    if not said.endswith(b"\n"):
        raise ResourceError("the server did not take it in time", "")
    text: str | None = json.loads(said)
    return text


def _work(work: "Callable[[], str | None]", answer: int, clock: "Clock") -> "NoReturn":
    """In the child: it has none of the host's pipes, and ends even if nobody is left to end it."""
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, max(clock.seconds(), 0.001))
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(nothing, descriptor)
        os.write(answer, json.dumps(work()).encode() + b"\n")
    finally:
        os._exit(0)


def _read(ours: int, clock: "Clock") -> bytes:
    """All that the child says until it ends, or until the time is up."""
    said = b""
    while (seconds := clock.seconds()) > 0 and select.select([ours], [], [], seconds)[0]:
        if not (chunk := os.read(ours, _CHUNK)):
            break
        said += chunk
    return said
