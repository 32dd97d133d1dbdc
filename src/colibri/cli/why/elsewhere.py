"""A file in all commits that git still has: on any branch, and where branches were before.

It tells two things about an edit: which commits took what it left, and what that was.
"""

import os
import re
from collections.abc import Collection, Iterator
from typing import NamedTuple

from colibri.cli import git, objects
from colibri.cli.git import GitError, Repository
from colibri.cli.why import versions
from colibri.cli.why.versions import Place

MOST_COMMITS = 5_000  # that changed the file
MOST_BYTES = 64 << 20  # of its contents
MOST_LOGS = 200  # of branches
LOG_BYTES = 256 << 10  # of each, its newest lines
_MOVE = re.compile(rb"[0-9a-f]{40,64} ([0-9a-f]{40}|[0-9a-f]{64}) ")


class Commit(NamedTuple):
    """Who first made it and when: a rebase or an amendment does not change that."""

    author: str
    time: int


class Elsewhere:
    """What commits held of a file, under any of some names; read when it is first asked for."""

    def __init__(self, repository: Repository, names: Collection[str]) -> None:
        self._repository, self._names = repository, sorted(names)
        self._current: dict[str, Commit] | None = None  # those that a ref leads to
        self._holding: dict[str, set[str]] = {}  # by the SHA-256 of what they held
        self._places: dict[str, Place] = {}

    def current(self, sha256s: Collection[str | None]) -> dict[str, Commit]:
        """The commits on branches that have one of some contents of the file; none where git
        cannot tell."""
        known = self._read()
        found = {one for sha256 in sha256s for one in self._holding.get(sha256 or "", ())}
        return {one: known[one] for one in found if one in known}

    def text(self, sha256: str | None) -> bytes | None:
        """What an edit left, if a commit has it, or had it before it was replaced."""
        self._read()
        place = self._places.get(sha256 or "")
        return None if place is None else versions.text(self._repository, place)

    def leads(self, first: str, later: str) -> bool:
        """Whether a commit is the same as another, or one of those before it."""
        try:
            git.run(self._repository, "merge-base", "--is-ancestor", first, later)
        except GitError:
            return False
        return True

    def _read(self) -> dict[str, Commit]:
        if self._current is None:
            self._current = {}
            try:
                self._current, replaced = self._changing()
                places = [
                    Place(commit, name)
                    for commit in (*self._current, *replaced)
                    for name in self._names
                ]
                held = versions.contents(self._repository, places, MOST_BYTES)
            except GitError:
                return self._current  # then nothing is known beyond the file's own history
            for place, digests in held.items():
                for sha256 in digests:
                    self._holding.setdefault(sha256, set()).add(place.commit)
                    self._places.setdefault(sha256, place)
        return self._current

    def _changing(self) -> tuple[dict[str, Commit], dict[str, Commit]]:
        """The commits that changed the file: those on branches, and others that were once there."""
        listed = git.run(self._repository, "for-each-ref", "--format=%(objectname)").decode()
        tips = self._existing([*listed.split(), "HEAD"])
        moves = self._existing([*_moves(self._repository)])
        return self._log(tips), self._log([*moves, *(f"^{tip}" for tip in tips)] if moves else [])

    def _existing(self, ids: list[str]) -> list[str]:
        unique = [*dict.fromkeys(ids)]
        facts = objects.facts(self._repository, unique)
        return [fact.id for fact in facts if fact and fact.kind == "commit"]

    def _log(self, starts: list[str]) -> dict[str, Commit]:
        if not starts:
            return {}
        options = ("--full-history", "--format=%H %at %an", f"--max-count={MOST_COMMITS}")
        asked = "".join(f"{start}\n" for start in starts).encode()
        words = (*options, "--stdin", "--", *self._names)
        lines = git.run(self._repository, "log", *words, stdin=asked).decode(errors="replace")
        parts = [line.split(" ", 2) for line in lines.split("\n")[:-1]]
        return {id: Commit(author, int(time)) for id, time, author in parts}


def _moves(repository: Repository) -> Iterator[str]:
    """The commits that HEAD and branches of this clone once were."""
    logs = [os.path.join(repository.own, "logs", "HEAD")]
    below = os.walk(os.path.join(repository.common, "logs", "refs", "heads"))
    logs += [os.path.join(folder, name) for folder, _, names in below for name in sorted(names)]
    for path in logs[:MOST_LOGS]:
        yield from (
            found[1].decode() for found in _MOVE.finditer(git.newest_bytes(path, LOG_BYTES))
        )
