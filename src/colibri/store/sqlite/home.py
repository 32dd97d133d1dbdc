"""A ledger in a file, as store/home.py describes it."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from colibri.store import home
from colibri.store.sqlite import appending, opening, place
from colibri.store.sqlite.connection import library_version
from colibri.store.sqlite.opened import Opened
from colibri.store.sqlite.watch import Reader

SMALL_BYTES = 64 * 1024 * 1024


class Home:
    """The path of the file."""

    def __init__(self, path: str) -> None:
        self.name = path

    def open_writer(
        self,
        *,
        timeout: float,
        monotonic: Callable[[], float],
        sleep: Callable[[float], None],
        stamp: str,
        new_log: Callable[[], str],
    ) -> Opened:
        return opening.open_writer(
            self.name,
            lock_timeout=timeout,
            monotonic=monotonic,
            sleep=sleep,
            stamp=stamp,
            new_log=new_log,
        )

    def open_reader(
        self,
        *,
        watched: bool = False,
        patience: home.Patience | None = None,
        older: bool = False,
        untouched: bool = False,
        unchecked: bool = False,
    ) -> Reader:
        reader = opening.open_reader(
            self.name,
            least=1 if older else None,
            untouched=untouched,
            any_schema=unchecked,
            in_use=watched or patience is not None,
            watch_files=watched,
        )
        if patience is not None:
            reader.set_busy_handler(patience)
        return reader

    @contextmanager
    def appending(self, patience: home.Patience, **_: object) -> Iterator[Opened]:
        opened = appending.open_current(self.name, patience)
        try:
            yield opened
            appending.require_copied(opened)
        finally:
            appending.leave(opened)

    def is_there(self) -> bool:
        return os.path.exists(self.name)

    def identity(self) -> tuple[int, int] | None:
        try:
            found = os.stat(self.name)
        except FileNotFoundError:
            return None
        return found.st_dev, found.st_ino

    def version(self) -> str:
        return f"SQLite {library_version()}"

    def exposure(self) -> str:
        return place.exposure(self.name)

    def is_small(self) -> bool:
        return os.stat(self.name).st_size <= SMALL_BYTES
