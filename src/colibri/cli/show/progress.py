"""The progress of a long command: one line on stderr, overwritten, if that is a terminal."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

EVERY = 0.1  # seconds
WIDTH = 24
SLICE = 10_000  # records between two pauses of a verification (Specification 3.10)


@contextmanager
def bar(what: str, unit: str, total: int = 0) -> Iterator["Bar"]:
    """A bar for as long as something takes."""
    made = Bar(what, unit, total)
    try:
        yield made
    finally:
        made._write("")


class Bar:
    """Takes the amount done and the total; silent unless stderr is a terminal."""

    def __init__(self, what: str, unit: str, total: int) -> None:
        self.done = 0
        self.total = total
        self._what = what
        self._unit = unit
        self._began = self._shown = time.monotonic()
        self._is_terminal = sys.stderr.isatty()
        self._length = 0

    def __call__(self, done: int, total: int) -> None:
        self.done, self.total = min(done, total), total
        now = time.monotonic()
        if self._is_terminal and now - self._shown >= EVERY:
            self._shown = now
            self._write(self._line(now - self._began))

    def slice(self) -> None:
        """One more slice of a verification is done."""
        self(self.done + SLICE, self.total)

    def _line(self, seconds: float) -> str:
        filled = WIDTH * self.done // self.total if self.total else 0
        speed = self.done / seconds
        left = f", {(self.total - self.done) / speed:.0f} s left" if speed else ""
        bar = "#" * filled + "." * (WIDTH - filled)
        return (
            f"{self._what} [{bar}] {self.done:,} of {self.total:,} {self._unit},"
            f" {speed:,.0f}/s{left}"
        )

    def _write(self, text: str) -> None:
        """Overwrite the previous line, with blanks, because not every terminal can clear."""
        if not self._is_terminal or not (text or self._length):
            return
        text = text[: os.get_terminal_size(sys.stderr.fileno()).columns - 1]
        sys.stderr.write(f"\r{text.ljust(self._length)}" if text else f"\r{' ' * self._length}\r")
        sys.stderr.flush()
        self._length = len(text)
