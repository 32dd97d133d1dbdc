"""`<db>.lock`: who may do what, settled by `flock`.

A writer holds it shared for life; to create or migrate it must hold it exclusively, and is then the
only writer there is. That one notes which files it opened; whoever comes while others hold the lock
opens the same ones or none. Readers take no part.
"""

import fcntl
import os
from typing import Literal

from colibri.core.errors import ResourceError
from colibri.store.sqlite import files

Use = Literal["free", "shared", "exclusive"]

LINE = 128  # bytes of the one line in it


def open_lock(path: str) -> int:
    """A descriptor of the lock file, which is made if need be."""
    files.is_there(path)  # refuses a directory before anything is made beside it
    files.make_directory(os.path.dirname(path))
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    return os.open(f"{path}.lock", flags, 0o600)


def take(lock: int, *, alone: bool) -> bool:
    """Hold it, shared or alone; False if others are in the way."""
    try:
        fcntl.flock(lock, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def share(lock: int) -> None:
    """Let others in. flock lets go before it takes hold again: somebody may slip in between."""
    fcntl.flock(lock, fcntl.LOCK_SH)


def note(lock: int, text: str) -> None:
    """Leave a line in the lock file for those who come while it is held; to be held alone."""
    os.pwrite(lock, text.ljust(LINE - 1).encode() + b"\n", 0)


def noted(lock: int) -> str:
    """What whoever held it alone last has noted; nothing in a new lock file."""
    return os.pread(lock, LINE, 0).decode().strip()


def release(lock: int) -> None:
    fcntl.flock(lock, fcntl.LOCK_UN)


def use(path: str) -> Use:
    """Who has the lock file now: nobody, servers at work, or one that creates or migrates.

    To find out it is held for a moment; a server that starts just then tries again soon.
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
    """Keep every writer out until the descriptor is closed; ResourceError while there is one."""
    if not take(lock, alone=True):
        raise ResourceError(
            f"a Colibri server is using {path}",
            "close the clients of this project: their servers end with them; then try again",
        )
