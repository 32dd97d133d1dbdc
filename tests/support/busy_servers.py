"""Four servers on one database, each as busy as its client can make it."""

import shutil
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import apsw

from colibri.core.errors import ResourceError
from tests.support.client import COLIBRI, JSON, PATIENCE, Server
from tests.support.ledger_reader import eventually, missing
from tests.support.program import database_of


class Writer(threading.Thread):
    """Makes one call after another on a server and keeps the answers."""

    def __init__(self, project: Path, stop: threading.Event) -> None:
        super().__init__()
        self.server = Server(project, COLIBRI)
        self.receipts: list[JSON] = []
        self.failure: BaseException | None = None
        self.may_write = threading.Event()
        self.may_write.set()
        self._stop_writing = stop

    def run(self) -> None:
        try:
            while self.may_write.wait() and not self._stop_writing.is_set():
                ids = [self.server.post_call("task_create", title="t" * 200) for _ in range(4)]
                for id in ids:
                    result = self.server.answer(id)["result"]
                    self.receipts.append(result["_meta"]["colibri/receipt"])
        except BaseException as problem:
            self.failure = problem


@contextmanager
def four_writers(project: Path) -> Iterator[list[Writer]]:
    """They write until the end of the block, where their servers stop too."""
    stop = threading.Event()
    with ExitStack() as stack:
        started = [Writer(project, stop) for _ in range(4)]
        for writer in started:
            stack.enter_context(writer.server)
            writer.start()
        try:
            yield started
        finally:
            stop.set()
            for writer in started:
                writer.may_write.set()
                writer.join(PATIENCE)


@contextmanager
def resting(writers: list[Writer]) -> Iterator[None]:
    """They make no new calls within the block: else what is checked there grows with the time that
    the check takes.
    """
    for writer in writers:
        writer.may_write.clear()
    yield
    for writer in writers:
        writer.may_write.set()


def acknowledged(writers: list[Writer]) -> list[JSON]:
    return [receipt for writer in writers for receipt in list(writer.receipts)]


def wait_for_calls(writers: list[Writer]) -> None:
    enough = len(acknowledged(writers)) + 40
    eventually(lambda: len(acknowledged(writers)) >= enough, "they write")


def plain_copy_lacks_something(project: Path, writers: list[Writer]) -> bool:
    """Whether a copy of the file without its write-ahead log is corrupt or lacks a call."""
    before = acknowledged(writers)
    shutil.copy(database_of(project), project / "plain.db")
    try:
        return missing(project / "plain.db", before) != []
    except (ResourceError, apsw.Error):
        return True
