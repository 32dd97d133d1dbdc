"""Calls: each enter with its exit, and those that are still open."""

from typing import Any

from colibri.core.payload import load
from colibri.core.report import OpenCall
from colibri.core.rows import Row


class Calls:
    """The calls that were entered and not left; memory grows with these alone."""

    def __init__(self) -> None:
        self._open: dict[int, OpenCall] = {}
        # Call, tool within quotes, and row of each that was entered plainly: most are left so, too,
        # and never looked at more closely.
        self._plain: dict[int, tuple[str, bytes, tuple[Any, ...]]] = {}

    def enter_plain(self, row: tuple[Any, ...], tool: bytes) -> None:
        """Open a call by its enter, whose payload is plain."""
        self._plain[row[0]] = (row[3], tool, row)

    def leave_plain(self, enter: int, call: str, tool: bytes) -> bool:
        """Close a call; whether it was entered plainly, and is the same."""
        entered = self._plain.get(enter)
        if entered is None or entered[0] != call or entered[1] != tool:
            return False
        del self._plain[enter]
        return True

    def enter(self, opened: OpenCall) -> None:
        self._open[opened.seq] = opened

    def find(self, enter: int) -> OpenCall | None:
        """The open call that was entered at a seq."""
        if enter in self._plain:
            _, tool, columns = self._plain.pop(enter)
            row = Row._make(columns)
            server = load(row.body or b"")["server"]
            self._open[enter] = OpenCall(enter, row.call, load(tool), server, row.at)
        return self._open.get(enter)

    def leave(self, enter: int) -> None:
        """Close a call that was found."""
        del self._open[enter]

    def still_open(self) -> tuple[OpenCall, ...]:
        """In the order of their enters."""
        for enter in list(self._plain):
            self.find(enter)
        return tuple(self._open[enter] for enter in sorted(self._open))
