"""Objects of a repository, by their names: sizes first, then what is small enough to be read.

An object that is too large, or that git cannot read, costs nothing but itself.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from colibri.cli import git
from colibri.cli.git import GitError, Repository

BATCH = 8 << 20  # bytes of objects that one run of git prints
MOST_NAMES = 50_000  # that one run is asked for
MOST_FAILURES = 20  # objects that git cannot read; then it is not asked again
_FACT = re.compile(rb"([0-9a-f]{40}|[0-9a-f]{64}) ([a-z]{1,10}) ([0-9]{1,18})")


class Fact(NamedTuple):
    """What an object is."""

    id: str
    kind: str
    size: int


def facts(repository: Repository, names: Sequence[str]) -> list[Fact | None]:
    """What the objects of some names are; None of one that does not exist."""
    found: list[Fact | None] = []
    failures = 0
    while len(found) < len(names):
        asked = names[len(found) : len(found) + MOST_NAMES]
        printed, failed = _run(repository, "--batch-check", asked)
        found += [_fact(line) for line in printed.split(b"\n")[:-1]]
        if failed:
            failures += 1
            if failures > MOST_FAILURES:
                raise failed
            found.append(None)  # the next one is what git cannot look at
    return found


def _fact(line: bytes) -> Fact | None:
    known = _FACT.fullmatch(line)
    return Fact(known[1].decode(), known[2].decode(), int(known[3])) if known else None


def read(repository: Repository, wanted: Iterable[Fact]) -> Iterator[tuple[str, bytes]]:
    """The contents of some objects by their ids, but for those that git cannot read."""
    failures = 0
    for batch in _batches(dict.fromkeys(wanted)):
        done = 0
        while done < len(batch):
            asked = batch[done:]
            printed, failed = _run(repository, "--batch", [one.id for one in asked])
            for id, content in _contents(printed, asked):
                done += 1
                if content is not None:
                    yield id, content
            if failed:
                failures += 1
                if failures > MOST_FAILURES:
                    raise failed
                done += 1  # the next one is what git cannot read


def _batches(wanted: Iterable[Fact]) -> Iterator[list[Fact]]:
    """Groups that one run of git can print."""
    batch: list[Fact] = []
    total = 0
    for one in wanted:
        if batch and (total + one.size > BATCH or len(batch) == MOST_NAMES):
            yield batch
            batch, total = [], 0
        batch.append(one)
        total += one.size
    if batch:
        yield batch


def _contents(printed: bytes, batch: Iterable[Fact]) -> Iterator[tuple[str, bytes | None]]:
    """What is complete of it; None of an object that went missing."""
    at = 0
    for one in batch:
        end = printed.find(b"\n", at)
        if end < 0:
            return
        fact = _fact(printed[at:end])
        at = end + 1
        if fact is None:
            yield one.id, None
            continue
        end = at + fact.size
        if len(printed) <= end:
            return
        yield one.id, printed[at:end]
        at = end + 1


def _run(repository: Repository, how: str, names: Sequence[str]) -> tuple[bytes, GitError | None]:
    """What git prints about some names, also if it failed at one of them."""
    text = "".join(f"{name}\n" for name in names).encode(errors="surrogateescape")
    try:
        return git.run(repository, "cat-file", how, stdin=text), None
    except GitError as failed:
        if failed.code is None:
            raise
        return failed.output, failed
