"""The refs of a repository that can hold or lead to checkpoints, and where each is from."""

import os
import re
from collections.abc import Iterator
from typing import NamedTuple

from colibri import project as projects
from colibri.cli import git, remotes
from colibri.cli.git import GitError, Repository
from colibri.cli.witness import seen
from colibri.cli.witness.chain import LOST, REFS, TRACKING
from colibri.cli.witness.found import Found, unread

NOTES = "refs/notes/colibri"
FETCHED = "refs/remotes/"
MOST_BYTES = 16 << 20  # of packed-refs
_IS_ID = re.compile("[0-9a-f]{40}|[0-9a-f]{64}").fullmatch


class Refs(NamedTuple):
    """What the refs of a repository are, and what cannot be read of them."""

    ours: dict[str, str]  # in refs/colibri, and the notes
    others: dict[str, str]
    remotes: dict[str, str]  # their names, and the marks of their addresses
    problems: tuple[Found, ...]

    def of_log(self, log: str) -> list[str]:
        """The chain of a log, after what remotes were last seen to have of it, or had once."""
        tracked = [name for name in self.ours if is_tracking(name, log)]
        tracked.sort(key=lambda name: self.remote(name) is None)
        return [*tracked, *(name for name in (f"{REFS}{log}",) if name in self.ours)]

    def remote(self, name: str) -> str | None:
        """The remote that a ref was fetched from, or pushed to; None if it is only here."""
        if name.startswith(FETCHED):
            rest = name.removeprefix(FETCHED)
            known = [one for one in self.remotes if rest.startswith(f"{one}/")]
            return max(known, key=len, default=rest.partition("/")[0])
        if name.startswith(TRACKING) and not self.formerly(name):
            return name.removeprefix(TRACKING).partition("/")[0]
        return None

    def formerly(self, name: str) -> str:
        """Why a remote that had what a ref names is not known to have it now."""
        return seen.formerly(name, self.remotes) if name.startswith((TRACKING, LOST)) else ""


def is_tracking(name: str, log: str) -> bool:
    return name.startswith((TRACKING, LOST)) and name.endswith(f"/{log}")


def read(repository: Repository, log: str) -> Refs:
    """All of them; those of this log that git cannot read are known by their files."""
    ours, problem = _listed(repository, "refs/colibri", NOTES)
    problems = [unread("ref", "refs/colibri", problem)] if problem else []
    for name in _named(repository.common, log):
        if name not in ours and not problem:
            problems.append(unread("ref", name, "git cannot read this ref"))
    others, problem = _listed(repository)
    problems += [unread("trailer", "the branches", problem)] if problem else []
    return Refs(ours, {**others, **_heads(repository)}, remotes.marks(repository), tuple(problems))


def _listed(repository: Repository, *below: str) -> tuple[dict[str, str], GitError | None]:
    """The commits that refs name, as far as git lists them; without `below`, all but ours."""
    failed = None
    try:
        printed = git.run(repository, "for-each-ref", "--format=%(objectname) %(refname)", *below)
    except git.NoGit:
        raise
    except GitError as problem:
        printed, failed = problem.output, problem
    lines = [line.partition(" ") for line in os.fsdecode(printed).split("\n")[:-1]]
    found = {name: id for id, _, name in lines}
    if not below:
        found = {name: found[name] for name in found if not _is_ours(name)}
    return found, failed


def _is_ours(name: str) -> bool:
    return name.startswith("refs/colibri/") or name == NOTES


def _heads(repository: Repository) -> dict[str, str]:
    """The heads of work trees that are on no branch, as if they were refs."""
    folder = os.path.join(repository.common, "worktrees")
    trees = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    every = {
        "HEAD": repository.common,
        **{f"{one}/HEAD": os.path.join(folder, one) for one in trees},
    }
    found = {name: git.head(own) or "" for name, own in every.items()}
    return {name: id for name, id in found.items() if _IS_ID(id)}


def _named(common: str, log: str) -> Iterator[str]:
    """The refs of a log by the files that hold them, which needs no git."""
    top = os.path.join(common, "refs", "colibri")
    for folder, _, files in os.walk(top):
        for file in files:
            name = os.path.relpath(os.path.join(folder, file), common)
            if name.endswith(f"/{log}"):
                yield name
    try:
        with open(os.path.join(common, "packed-refs"), "rb") as packed:
            lines = os.fsdecode(packed.read(MOST_BYTES)).split("\n")
    except OSError:
        return
    for line in lines:
        name = line.partition(" ")[2]
        if name.startswith("refs/colibri/") and name.endswith(f"/{log}"):
            yield name


def without_git(directory: str, log: str, problem: object) -> list[Found]:
    """What is known of a log in a repository that git cannot be asked about."""
    at = os.path.realpath(directory)
    while not os.path.lexists(entry := os.path.join(at, ".git")):
        if at == (at := os.path.dirname(at)):
            return []
    own = entry if os.path.isdir(entry) else projects.named_by(entry)
    above = own.rpartition(f"{os.sep}worktrees{os.sep}")[0]  # which another work tree shares
    names = [name for one in (own, above) if one for name in _named(one, log)]
    return [unread("ref", name, problem) for name in dict.fromkeys(names)]
