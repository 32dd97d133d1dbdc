"""What a remote was read to hold of a chain, and what it held before and has lost.

    refs/colibri/remotes/REMOTE/ADDRESS/LOG        what it was last read to hold
    refs/colibri/lost/REMOTE/ADDRESS/COMMIT/LOG    what it held and no longer does

ADDRESS is a mark of the remote's address: what one repository held says nothing about another that
was given its name. A commit that was lost stays a witness, and is named until the remote has it
again.
"""

import os
from collections.abc import Iterator
from typing import NamedTuple

from colibri.cli import git, remotes
from colibri.cli.git import Repository
from colibri.cli.remotes import Remote
from colibri.cli.witness import chain
from colibri.cli.witness.chain import LOST, Place
from colibri.cli.witness.found import SHORT


class Lost(NamedTuple):
    """A commit that a remote had; `is_back` if it was pushed there again."""

    commit: str
    size: int | None  # of its checkpoint, if that can be read
    is_back: bool

    def told(self, remote: Remote) -> str:
        size = "" if self.size is None else f", the checkpoint of record {self.size:,}"
        what = f"commit {self.commit[:SHORT]}{size}"
        why = "it was deleted or replaced there, or the remote was made again"
        if self.is_back:
            return f"{remote} had lost {what}: {why}; now it is there again"
        return f"{remote} has lost {what}: {why}; this repository still has it"


def pushed(
    repository: Repository, where: Place, remote: Remote, commit: str, before: str | None
) -> list[Lost]:
    """Remember that a remote has a commit now, and had `before` until then; what it had lost."""
    ref = where.tracking(remote)
    last = chain.tip(repository, ref)
    missing = _lost(repository, where, remote)
    if last and (before is None or not chain.contains(repository, before, last)):
        missing[where.lost(remote, last)] = last
    found = []
    for name, one in missing.items():
        is_back = chain.contains(repository, commit, one)
        _remember(repository, name, None if is_back else one)
        found.append(_told(repository, where, one, is_back=is_back))
    chain.advance(repository, ref, commit, last)
    return found


def fetch(repository: Repository, where: Place, remote: Remote) -> tuple[str | None, list[Lost]]:
    """Bring what a remote has now; that, and what it has lost since it was last asked."""
    ref = where.tracking(remote)
    last, there = chain.tip(repository, ref), remotes.listed(repository, remote, where.ref)
    if there is not None and there != last:
        remotes.fetch(repository, remote, where.ref, ref)
        there = chain.tip(repository, ref)
    if last is None or (there and chain.contains(repository, there, last)):
        return there, []
    _remember(repository, where.lost(remote, last), last)
    if there is None:
        _remember(repository, ref, None)
    return there, [_told(repository, where, last, is_back=False)]


def _lost(repository: Repository, where: Place, remote: Remote) -> dict[str, str]:
    """The refs of what a remote was found to have lost of a chain, and their commits."""
    top, _, end = where.lost(remote, "").rpartition("//")
    printed = git.run(repository, "for-each-ref", "--format=%(objectname) %(refname)", top)
    lines = [line.partition(" ") for line in os.fsdecode(printed).splitlines()]
    return {name: commit for commit, _, name in lines if name.endswith(f"/{end}")}


def _remember(repository: Repository, ref: str, commit: str | None) -> None:
    """Let a ref name a commit, or none."""
    known = chain.tip(repository, ref)
    if commit and known is None:
        chain.advance(repository, ref, commit, None)
    elif known and commit is None:
        chain.drop(repository, ref, known)


def _told(repository: Repository, where: Place, commit: str, *, is_back: bool) -> Lost:
    held = chain.newest(repository, commit, where.folder)
    return Lost(commit, held.checkpoint.size if held and held.checkpoint else None, is_back)


def places(repository: Repository, log: str, remote: Remote) -> Iterator[Place]:
    """The chains of a log that a remote may have: its own, and the branches that it was seen on."""
    yield chain.place(log)
    top = chain.Place("refs/heads").tracking(remote)
    printed = git.run(repository, "for-each-ref", "--format=%(refname)", top)
    for name in os.fsdecode(printed).splitlines():
        yield chain.place(log, name.removeprefix(f"{top}/"))


def formerly(ref: str, marks: dict[str, str]) -> str:
    """Why what a ref of this module names is not known to be at its remote; "" if it is."""
    _, _, kind, name, mark, *_ = f"{ref}////".split("/")
    if name not in marks:
        return f"{name}, which had it, is no remote of this repository any more"
    if marks[name] != mark:
        return f"{name}, which had it, has another address now"
    return f"{name} had it and has lost it" if f"refs/colibri/{kind}/" == LOST else ""
