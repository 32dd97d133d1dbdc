"""Words on stderr, without ever waiting for somebody to read them.

A host may keep stderr in a pipe that nobody empties: after 64 KiB a blocking write would stop the
server. What cannot be written soon is dropped, and the caller counts it.

What others wrote, such as the text of an exception, is scrubbed before it is said: no secret of a
known shape, and `~` for the home directory. Whatever is said, control characters are spelt out and
all lines but the first are indented: no text of others passes for a line of ours.
"""

import os
import re
import select
import threading
from functools import cache

from colibri.config import LOG_LEVELS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_PATIENCE_MS = 50


class Log:
    """What one server says, from a level up: on stderr, or to the logger it was given."""

    def __init__(self, level: str, logger: "Callable[[str], object] | None" = None) -> None:
        self._most = LOG_LEVELS.index(level)
        self._logger = logger
        self.lost = 0

    def __call__(self, level: str, text: str) -> None:
        """Say something, if the level is wanted."""
        if LOG_LEVELS.index(level) <= self._most:
            (self._logger or self.write)(presentable(text))

    def write(self, text: str) -> None:
        """A line that no level silences, such as the audit trail."""
        if not write(text):
            self.lost += 1


class _Stderr:
    """Descriptor 2; once it was stuck nobody waits for it again until it takes something."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._patience = _PATIENCE_MS

    def write(self, rest: bytes) -> bool:
        with self._lock:
            writable = select.poll()
            writable.register(2, select.POLLOUT)
            while rest:
                if not writable.poll(self._patience):
                    self._patience = 0
                    return False
                try:
                    rest = rest[os.write(2, rest[: select.PIPE_BUF]) :]
                except OSError:
                    return False
                self._patience = _PATIENCE_MS
        return True


_stderr = _Stderr()


def write(text: str) -> bool:
    """Write a line to stderr; False when some of it was lost."""
    return _stderr.write((text + "\n").encode("utf-8", "backslashreplace"))


def presentable(text: str) -> str:
    text = shorten(text)
    if text.isascii() and text.isprintable():
        return text
    from colibri.core.visible import visible  # few lines need it

    return visible(text, lines=True).replace("\n", "\n    ")


def describe(problem: BaseException) -> str:
    """An exception with its traceback, for stderr only."""
    import traceback  # 5 ms that only a failure pays

    return scrub("".join(traceback.format_exception(problem)).rstrip())


def scrub(text: str) -> str:
    """A text of somebody else without secrets and without the way to the home directory."""
    return shorten(redacted(text))


def redacted(text: str) -> str:
    from colibri.core import redaction  # only what went wrong is scrubbed

    return redaction.scrub(text)


def shorten(text: str) -> str:
    """A text with `~` for the home directory: whose it is need not be said."""
    for home in _homes():
        if home in text:
            text = re.sub(rf"(?<![\w.-]){re.escape(home)}(?![\w.-])", "~", text)
    return text


@cache
def _homes() -> tuple[str, ...]:
    """The home directory, by both its names if one of them is a link; none if it is the root."""
    home = os.path.expanduser("~").rstrip("/")
    return tuple({home, os.path.realpath(home)}) if home.startswith("/") else ()
