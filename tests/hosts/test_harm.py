"""Nothing is harmed: whatever is wrong with the ledger, a real host's run is as without Colibri.

The same exit code, and the same answers of tools to the model. Specification 22.5.
"""

import os
import random
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

import apsw
import pytest

from tests.hosts.drive import HOSTS, Place, run
from tests.hosts.model import Part, Request, say
from tests.hosts.story import FAILS, ready
from tests.support import mounts

pytestmark = pytest.mark.slow

QUICK = ("claude-code", "codex")


class Outcome(NamedTuple):
    code: int | None
    answers: list[str]


def work(name: str, place: Place, during: Callable[[], object]) -> Outcome:
    """A run of a host; `during` is called while it waits for the model's first answer."""
    tools = HOSTS[name].tools

    def write(_: Request) -> list[Part]:
        during()
        return [tools.write(str(place.project / "a.txt"), "alpha\n")]

    ran = run(name, [write, [tools.run(FAILS)], [say("Done.")]], place)
    return Outcome(ran.code, [_neutral(one, place) for one in ran.results()])


def _neutral(text: str, place: Place) -> str:
    """Without what differs from run to run: places, ids and times."""
    text = text.replace(str(place.project), "PROJECT").replace(str(place.home), "HOME")
    return re.sub(r"Chunk ID: \w+|\d+(\.\d+)?", "0", text)


@pytest.fixture(scope="module")
def without_hooks(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Outcome]:
    """What a host does by itself; each is asked once."""

    @cache
    def find(name: str) -> Outcome:
        place = Place.below(tmp_path_factory.mktemp(name))
        ready(place, name)
        place.colibri("setup", name, "--no-hooks", "--write")
        place.colibri("add", "something to do")
        return work(name, place, _nothing)

    return find


# What may be wrong; each tells what to do while the host is at work.

During = Callable[[], object]
Trouble = Callable[[Place], AbstractContextManager[During]]


def _nothing() -> None:
    pass


def _database(place: Place) -> Path:
    return place.project / "data" / "colibri.db"


@contextmanager
def _locked(place: Place) -> Iterator[During]:
    with closing(apsw.Connection(str(_database(place)))) as db:
        db.execute("BEGIN IMMEDIATE")
        yield _nothing


@contextmanager
def _damaged(place: Place) -> Iterator[During]:
    _database(place).write_bytes(b"This is no database." * 1000)
    yield _nothing


@contextmanager
def _newer(place: Place) -> Iterator[During]:
    with closing(apsw.Connection(str(_database(place)))) as db:
        db.execute("PRAGMA user_version = 99")
    yield _nothing


@contextmanager
def _gone(place: Place) -> Iterator[During]:
    """Under a server that has it open."""

    def remove() -> None:
        for path in _database(place).parent.iterdir():
            if path.suffix != ".lock":
                path.unlink()

    yield remove


@contextmanager
def _full(place: Place) -> Iterator[During]:
    data = place.project / "data"
    kept = {one.name: one.read_bytes() for one in data.iterdir()}
    with mounts.small_disk(data):
        for name, content in kept.items():
            (data / name).write_bytes(content)
        with (data / "filler").open("wb", buffering=0) as file, suppress(OSError):
            while file.write(b"x" * 4096):
                pass
        yield _nothing


@contextmanager
def _read_only(place: Place) -> Iterator[During]:
    with mounts.read_only(place.project / "data"):
        yield _nothing


@contextmanager
def _killed(place: Place) -> Iterator[During]:
    """Hooks, and the shells that run them, end sooner or later after their start."""
    over, killed = threading.Event(), set[int]()
    chance, due = random.Random(7), dict[int, float]()

    def hunt() -> None:
        while not over.wait(0.003):
            for pid in _hooks(place):
                due.setdefault(pid, time.monotonic() + chance.uniform(0, 0.1))
                if due[pid] <= time.monotonic():
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                        killed.add(pid)

    hunter = threading.Thread(target=hunt)
    hunter.start()
    try:
        yield _nothing
    finally:
        over.set()
        hunter.join()
    assert killed


def _hooks(place: Place) -> Iterator[int]:
    home = f"HOME={place.home}".encode()
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # gone meanwhile
            words = (entry / "cmdline").read_bytes().split(b"\0")
            is_hook = words[-2:-1] == [b"hook"] or any(b"colibri hook" in one for one in words)
            if is_hook and home in (entry / "environ").read_bytes().split(b"\0"):
                yield int(entry.name)


TROUBLES: dict[str, Trouble] = {
    "locked": _locked,
    "damaged": _damaged,
    "newer": _newer,
    "gone": _gone,
    "full": _full,
    "read-only": _read_only,
    "killed": _killed,
}
CASES = [
    pytest.param(name, what, marks=() if what == "locked" else pytest.mark.long)
    for name in HOSTS
    for what in TROUBLES
    if name in QUICK or what == "locked"
]


@pytest.mark.parametrize(("name", "what"), CASES)
def test_whatever_is_wrong_with_the_ledger_the_host_does_the_same(
    name: str, what: str, tmp_path: Path, without_hooks: Callable[[str], Outcome]
) -> None:
    expected = without_hooks(name)
    assert (expected.code, len(expected.answers)) == (0, 2)
    place = Place.below(tmp_path)
    ready(place, name)
    place.colibri("add", "something to do")
    with TROUBLES[what](place) as during:
        assert work(name, place, during) == expected
        assert what in ("killed", "full", "read-only") or _kept_elsewhere(place), (
            "hooks ran, and met it"
        )


def _kept_elsewhere(place: Place) -> int:
    """How many deeds wait in the spool or are counted as lost."""
    spool, lost = (Path(f"{_database(place)}-{end}") for end in ("spool", "lost"))
    counters = [lost, *(place.home / ".local" / "state" / "colibri" / "lost").glob("*")]
    numbers = [int(one.read_text() or 0) for one in counters if one.exists()]
    return sum(numbers) + (len(spool.read_bytes().splitlines()) if spool.exists() else 0)
