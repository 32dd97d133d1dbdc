"""The real server with its work counted: `python -m tests.support.counting_server FILE`.

FILE holds three numbers that grow while the server runs, and that a test may read at any time:

    statements    SQL statements that the server ran, without those of triggers and search indexes
    steps         steps of SQLite's virtual machine in these statements, triggers included
    functions     Python function calls, on any thread

They count work, not time: a busy machine does not change them.
"""

import mmap
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple, TypeVar

SIZE = 3 * 8


class Counts(NamedTuple):
    statements: int
    steps: int
    functions: int

    def since(self, before: "Counts") -> "Counts":
        return Counts(*(now - then for now, then in zip(self, before, strict=True)))


def read(file: Path) -> Counts:
    """What has been counted so far."""
    return Counts(*memoryview(file.read_bytes()).cast("Q"))


def main(file: str) -> None:
    with Path(file).open("r+b") as opened:
        counts = memoryview(mmap.mmap(opened.fileno(), SIZE)).cast("Q")
    _count_sql(counts)
    _count_functions(counts)
    from colibri.__main__ import main as colibri

    sys.argv[1:] = ["serve"]
    colibri()


def _count_sql(counts: memoryview) -> None:
    import apsw

    from colibri.store.sqlite import opening
    from colibri.store.sqlite.opened import Opened

    ours: set[int] = set()

    def count(event: dict[str, Any]) -> None:
        if event["code"] == apsw.SQLITE_TRACE_STMT:
            if not event["trigger"]:
                ours.add(event["id"])
                counts[0] += 1
        elif event["id"] in ours:
            ours.remove(event["id"])
            counts[1] += event["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"]

    C = TypeVar("C", bound=apsw.Connection)

    def counted(connection: C) -> C:
        connection.trace_v2(apsw.SQLITE_TRACE_STMT | apsw.SQLITE_TRACE_PROFILE, count)
        return connection

    writer, reader = opening.open_writer, opening.open_reader

    def open_writer(*arguments: Any, **named: Any) -> Opened:
        opened = writer(*arguments, **named)
        counted(opened.db)
        return opened

    opening.open_writer = open_writer
    opening.open_reader = lambda *arguments, **named: counted(reader(*arguments, **named))


def _count_functions(counts: memoryview) -> None:
    def count(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            counts[2] += 1

    watch: Callable[..., None] = count
    threading.setprofile(watch)
    sys.setprofile(watch)


if __name__ == "__main__":
    main(sys.argv[1])
