"""`<db>.lock`: who may write, create or migrate, decided by `flock`.

A writer holds it shared as long as it runs; to create or migrate it must hold it exclusively, and
is then the only writer. It notes which files it opened; a process that comes while others hold the
lock must open the same files or none. Readers do not use the lock.
"""

import fcntl
import os
from typing import Literal

from colibri.core.errors import ResourceError
from colibri.store.sqlite import files

Use = Literal["free", "shared", "exclusive"]

LINE = 128  # bytes of the file's only line
_LEFT = "left:"


def open_lock(path: str) -> int:
    """A descriptor of the lock file, created if needed."""
    files.is_there(path)  # refuses a directory before anything is created next to it
    files.make_directory(os.path.dirname(path))
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    return os.open(f"{path}.lock", flags, 0o600)


def take(lock: int, *, alone: bool) -> bool:
    """Take the lock, shared or exclusively; False if others hold it."""
    try:
        fcntl.flock(lock, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def share(lock: int) -> None:
    """Downgrade to shared. flock releases the lock first, so another process may get it between."""
    fcntl.flock(lock, fcntl.LOCK_SH)


def note(lock: int, text: str) -> None:
    """Write a line for processes that come while the lock is held; needs the exclusive lock."""
    os.pwrite(lock, text.ljust(LINE - 1).encode() + b"\n", 0)


def noted(lock: int) -> str:
    """The line of the last exclusive holder; empty in a new lock file."""
    return os.pread(lock, LINE, 0).decode().strip()


def note_left(lock: int, text: str, size: int) -> None:
    """The same for the last process to close, if it leaves a log of this size on purpose."""
    note(lock, f"{text} {_LEFT}{size}")


def was_left(lock: int, size: int) -> bool:
    """Whether a log of this size was left on purpose."""
    return noted(lock).endswith(f" {_LEFT}{size}")


def release(lock: int) -> None:
    fcntl.flock(lock, fcntl.LOCK_UN)


def use(path: str) -> Use:
    """Who holds the lock file now: nobody, running servers, or one that creates or migrates.

    To find out, it is locked for a moment; a server that starts just then retries soon.
    """
    try:
        lock = os.open(f"{os.path.realpath(path)}.lock", os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return "free"
    try:
        if take(lock, alone=True):
            return "free"
        return "shared" if take(lock, alone=False) else "exclusive"
    finally:
        os.close(lock)


def require_alone(lock: int, path: str) -> None:
    """Keep all writers out until the descriptor is closed; ResourceError if there is one now."""
    if not take(lock, alone=True):
        raise ResourceError(
            f"a Colibri server is using {path}",
            "close the clients of this project: their servers end with them; then try again",
        )
