"""Log lines on stderr, which never block the server.

A host may connect stderr to a pipe that nobody reads: after 64 KiB a blocking write would stop the
server. What cannot be written soon is dropped, and the caller counts it.

Foreign text, such as an exception's, is scrubbed before it is logged: secrets of known shapes are
removed and the home directory becomes `~`. In every message, control characters are escaped and all
lines but the first are indented, so that foreign text cannot pass for a log line.
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
    """The log of one server, from a level up: on stderr, or to the logger it was given."""

    def __init__(self, level: str, logger: "Callable[[str], object] | None" = None) -> None:
        self._most = LOG_LEVELS.index(level)
        self._logger = logger
        self.lost = 0

    def __call__(self, level: str, text: str) -> None:
        """Log a message, if its level is enabled."""
        if LOG_LEVELS.index(level) <= self._most:
            (self._logger or self.write)(presentable(text))

    def write(self, text: str) -> None:
        """Write a line whatever the level, such as the audit trail's."""
        if not write(text):
            self.lost += 1


class _Stderr:
    """Descriptor 2; after a write was stuck, later ones do not wait until one succeeds."""

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
    text = hide_home(text)
    if text.isascii() and text.isprintable():
        return text
    from colibri.core.visible import visible  # rarely needed

    return visible(text, lines=True).replace("\n", "\n    ")


def describe(problem: BaseException) -> str:
    """An exception with its traceback, for stderr only."""
    import traceback  # 5 ms that only a failure pays

    return scrub("".join(traceback.format_exception(problem)).rstrip())


def scrub(text: str) -> str:
    """Foreign text without secrets and without the path of the home directory."""
    return hide_home(redacted(text))


def redacted(text: str) -> str:
    from colibri.core import redaction  # only errors need it

    return redaction.scrub(text)


def hide_home(text: str) -> str:
    """Replace the home directory by `~`, to hide the user's name."""
    for home in _homes():
        if home in text:
            text = re.sub(rf"(?<![\w.-]){re.escape(home)}(?![\w.-])", "~", text)
    return text


@cache
def _homes() -> tuple[str, ...]:
    """The home directory and, if it is a link, its target; nothing if it is the root."""
    home = os.path.expanduser("~").rstrip("/")
    return tuple({home, os.path.realpath(home)}) if home.startswith("/") else ()
