"""Fault-injection trials on the real server, with counts of what was survived; see scripts/torture.

A trial is a module here that defines TRIAL. Its control comes first: the same harness must catch
something known to be broken; otherwise the trial fails, whatever it finds afterwards. All
randomness comes from one printed seed.
"""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from colibri.core.report import Report
from colibri.store.verify import verify
from tests.support.client import JSON, Server
from tests.support.ledger_reader import condition, missing, reading

SHM = Path("/dev/shm")


class Violation(AssertionError):
    """Something was lost, corrupted or misreported."""


class ControlFailed(AssertionError):
    """The harness missed a known fault, so its results would mean nothing."""


@dataclass(slots=True, kw_only=True)
class Lab:
    """What a trial gets: an empty directory, a source of randomness, and how much to do."""

    directory: Path
    seed: int
    count: int
    random: Random = field(init=False)
    say: Callable[[str], None] = lambda text: None  # progress, in a few words

    def __post_init__(self) -> None:
        self.random = Random(self.seed)

    def fresh(self, name: str) -> Path:
        """A new, empty directory."""
        path = self.directory / name
        path.mkdir()
        return path


@contextmanager
def in_memory() -> Iterator[Path]:
    """A directory in memory, if the system has one: fast, and syncs cost nothing."""
    where = SHM if SHM.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="colibri-", dir=where) as directory:
        yield Path(directory)


def no_needs() -> str:
    """Runs everywhere."""
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One row of docs/reliability.md."""

    name: str  # for the command line
    title: str  # what is done to the server
    claim: str  # what must still hold
    unit: str  # what `quick` and `full` count
    quick: int
    full: int
    control: Callable[[Lab], str]  # what was caught, in words; raises ControlFailed
    run: Callable[[Lab], dict[str, object]]  # figures by name; raises Violation
    needs: Callable[[], str] = no_needs  # why it cannot run on this machine, or ""
    minutes: int = 1  # that a full run takes, roughly
    alone: bool = False  # it judges times, which other trials would distort


def check_log(database: Path, receipts: list[JSON]) -> Report:
    """Every receipt's head is in the log, and the whole log is valid; raises Violation."""
    if lost := missing(database, receipts):
        raise Violation(f"{len(lost)} of {len(receipts)} acknowledged calls are lost")
    with reading(database) as db:
        report = verify(db, pause=lambda: None)
    if not report.valid:
        raise Violation(f"the log is broken: {report.breaks[:3]}")
    return report


def check_normal(server: Server, what: str) -> None:
    """Its condition is NORMAL; raises Violation."""
    if (state := condition(server)) != ("NORMAL", None):
        raise Violation(f"{what} is {state}")
