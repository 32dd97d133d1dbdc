"""Words on stderr, without ever waiting for somebody to read them.

A host may keep stderr in a pipe that nobody empties: after 64 KiB a blocking write would stop the
server. What cannot be written soon is dropped, and the caller counts it.
"""

import os
import select
import threading

LEVELS = ("error", "warn", "info", "debug")
_PATIENCE_MS = 50
_lock = threading.Lock()


def write(text: str) -> bool:
    """Write a line to stderr; False when some of it was lost."""
    rest = (text + "\n").encode("utf-8", "backslashreplace")
    with _lock:
        writable = select.poll()
        writable.register(2, select.POLLOUT)
        while rest:
            if not writable.poll(_PATIENCE_MS):
                return False
            try:
                rest = rest[os.write(2, rest[: select.PIPE_BUF]) :]
            except OSError:
                return False
    return True


def describe(problem: BaseException) -> str:
    """An exception with its traceback, for stderr only."""
    import traceback  # 5 ms that only a failure pays

    return "".join(traceback.format_exception(problem)).rstrip()
