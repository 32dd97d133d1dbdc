"""The real server on a disk that records every write, sync, truncation and deletion.

It also takes the name of a fault of tests.support.faulty, which this disk must reveal.

The notes, one marshalled tuple after the other, go to the file named by DISK_NOTES. They include
every line that the server sends, in the order of events. From them one can compute what a disk may
hold after a power cut at any moment.
"""

import marshal
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw

from colibri.server import main
from colibri.server.transport import Stream
from tests.support.faulty import FAULTS

Note = tuple[Any, ...]
CHECKPOINT_PAGES = 24  # small, so that a short story has checkpoints and restarts its log
BASE = "unix"
DATABASE = "colibri.db"
NOTABLE = (DATABASE, f"{DATABASE}-wal", f"{DATABASE}-journal")


def read_notes(file: Path) -> Iterator[Note]:
    """What was noted, oldest first."""
    with file.open("rb") as notes:
        while True:
            try:
                yield marshal.load(notes)
            except EOFError:
                return


class Notes:
    """Writes notes, in order, from any thread."""

    def __init__(self, file: str) -> None:
        self._file = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self.lock = threading.RLock()

    def take(self, *note: Any) -> None:
        with self.lock:
            os.write(self._file, marshal.dumps(note))


class Disk(apsw.VFS):
    """SQLite's default VFS, with notes."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        super().__init__("recorded", base=BASE, makedefault=True)

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        short = Path(path or "").name
        if short not in NOTABLE:
            return apsw.VFSFile(BASE, name, flags)
        self._notes.take("open", short, bool(flags[0] & apsw.SQLITE_OPEN_CREATE))
        return File(name, flags, short, self._notes)

    def xDelete(self, name: str, syncdir: bool) -> None:
        with self._notes.lock:
            super().xDelete(name, syncdir)
            if (short := Path(name).name) in NOTABLE:
                self._notes.take("delete", short, bool(syncdir))


class File(apsw.VFSFile):
    """One open file; each operation is noted after it happened."""

    def __init__(self, name: Any, flags: list[int], short: str, notes: Notes) -> None:
        self._short = short
        self._notes = notes
        super().__init__(BASE, name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:
        with self._notes.lock:
            super().xWrite(data, offset)
            self._notes.take("write", self._short, offset, bytes(data))

    def xTruncate(self, size: int) -> None:
        with self._notes.lock:
            super().xTruncate(size)
            self._notes.take("truncate", self._short, size)

    def xSync(self, flags: int) -> None:
        with self._notes.lock:
            super().xSync(flags)
            self._notes.take("sync", self._short)


def _overhear(notes: Notes) -> None:
    send = Stream.send

    def noted(self: Stream, lines: bytes) -> None:
        for line in lines.splitlines(keepends=True):
            notes.take("sent", line)
        send(self, lines)

    Stream.send = noted  # type: ignore[method-assign]


def _checkpoint_often(db: apsw.Connection) -> None:
    db.wal_autocheckpoint(CHECKPOINT_PAGES)


if __name__ == "__main__":
    notes = Notes(os.environ["DISK_NOTES"])
    disk = Disk(notes)  # SQLite's default VFS while this reference exists
    apsw.connection_hooks.append(_checkpoint_often)
    _overhear(notes)
    if sys.argv[1:]:
        FAULTS[sys.argv[1]].install()
    sys.exit(main())
