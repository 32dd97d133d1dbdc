"""Finds the checkpoints of a log that a repository holds, as git last fetched it.

    ref       the chain of this log, and what remotes were last seen to have of it
    branch    folders of this log on branches, of the repository and as fetched from remotes
    trailer   lines `Colibri-Head: LOG@SIZE:ROOT` in messages of commits, also where a squash merge
              indented them
    note      the same line, or a checkpoint's text, in notes of refs/notes/colibri

Other logs that refs and branches hold are found too: one of them may be what this log replaced.

What belongs to this log and cannot be read is a witness as well, one without a checkpoint: whoever
could hide a witness could hide what it reveals. Sizes come first, so no object can be too large.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from colibri.cli import git, objects
from colibri.cli.git import GitError, Repository
from colibri.cli.witness import accepted, chain, refs, signatures, sources
from colibri.cli.witness.found import Found, moment, unread
from colibri.cli.witness.refs import Refs
from colibri.core.checkpoint import Checkpoint
from colibri.core.witness import Acceptance, Signature, Witness

MAX_SIGNATURES = 20  # that are checked: the newest, at three runs of ssh-keygen each


class Collected(NamedTuple):
    """The witnesses, the newest first, what is wrong with some of them, and what was accepted."""

    witnesses: list[Witness]
    problems: list[str]
    accepted: list[Acceptance]


def collect(project: str, log: str) -> Collected:
    """All that a project's repository has of a log, and those around it: whoever makes another one
    inside must not hide them. Nothing where there is no repository."""
    found, asked = Collected([], [], []), set[str]()
    for number, root in enumerate(git.roots(project)):
        repository = git.find(root)
        if repository is not None and repository.common in asked:
            continue
        asked.update([repository.common] if repository else [])
        part = _collect(repository, root, log, is_around=number > 0)
        found.witnesses.extend(part.witnesses)
        found.problems.extend(part.problems)
        found.accepted.extend(part.accepted)
    return found


def _collect(repository: Repository | None, root: str, log: str, *, is_around: bool) -> Collected:
    judged: dict[str, Signature] = {}
    told: list[Acceptance] = []
    try:
        if repository is None:
            all_found = refs.without_git(root, log, "the repository is not one of yours")
        else:
            known = refs.read(repository, log)
            all_found = _found(repository, log, known)
            judged = judge_signatures(repository, all_found)
            told = _accepted(repository, log, all_found)
            all_found += [] if is_around else sources.others(repository, log, known)
    except git.NoGit as problem:
        all_found = refs.without_git(root, log, problem)
    except GitError as problem:
        all_found = [unread("ref", f"the repository {root}", problem)]
    if is_around:
        all_found = _related(all_found, root, log)
    witnesses = [one.witness(log, judged.get(one.commit)) for one in all_found]
    wrong = [one for one in all_found if one.problem and one.checkpoint]
    return Collected(witnesses, [f"{one.where}: {one.problem}" for one in wrong], told)


def _related(some: Sequence[Found], root: str, log: str) -> list[Found]:
    """Of a repository that need not have anything of this log: a place that cannot be read counts
    only if the files of refs name the log."""
    places = [one for one in some if not one.commit and not one.ref.endswith(log)]
    named = refs.without_git(root, log, places[0].problem) if places else []
    return [*(one for one in some if one not in places), *named]


def _accepted(repository: Repository, log: str, found: Sequence[Found]) -> list[Acceptance]:
    own = [one.accepted for one in found if one.accepted]
    return [*accepted.read(repository, log, found), *own]


def newest(project: str, log: str) -> Witness | None:
    """The largest checkpoint of a log at the end of a chain or branch; None if git has none."""
    every = (_newest(repository, log) for repository in map(git.find, git.roots(project)))
    known = [one for one in every if one]
    return max(known, key=lambda one: (one.size, one.remote is not None), default=None)


def _newest(repository: Repository | None, log: str) -> Witness | None:
    if repository is None:
        return None
    try:
        ends = [*sources.ends(repository, log, refs.read(repository, log))]
        known = [one for one in ends if one.checkpoint and one.checkpoint.log == log]
        best = max(known, key=lambda one: (sources.size(one), bool(one.remote)), default=None)
        return best and best._replace(at=_made_at(repository, best, log)).witness(log)
    except GitError:
        return None


def _made_at(repository: Repository, one: Found, log: str) -> str:
    """When the checkpoint at the end of a chain or branch was committed."""
    folder = (f"{log}/",) if one.kind == "branch" else ()
    options = ("--max-count=1", "--format=%ct", "--end-of-options", one.commit, "--", *folder)
    return moment(int(git.run(repository, "log", *options) or 0))


def newest_checkpoint(project: str, log: str) -> Checkpoint | None:
    """The same, without where it is kept."""
    found = newest(project, log)
    return None if found is None else Checkpoint(found.log, found.size, found.hash)


def found(repository: Repository, log: str) -> list[Found]:
    """Everything of a log, the largest checkpoints first; NoGit."""
    return _found(repository, log, refs.read(repository, log))


def _found(repository: Repository, log: str, known: Refs) -> list[Found]:
    everything = [
        *sources.chains(repository, log, known),
        *sources.history(repository, log, known),
        *sources.notes(repository, log, known),
    ]
    seen = {(one.kind, one.text or one.commit) for one in everything}
    everything += [
        one
        for one in sources.tips(repository, log, known)
        if (one.kind, one.text or one.commit) not in seen
    ]
    return sorted([*everything, *known.problems], key=sources.size, reverse=True)


def judge_signatures(repository: Repository, some: Iterable[Found]) -> dict[str, Signature]:
    """Whose signatures they are, by commit; only the newest are checked."""
    signed = [one for one in some if one.signature]
    if not signed:
        return {}
    top = repository.work_tree
    signers = signatures.allowed_signers(top)
    checked = signed[:MAX_SIGNATURES]
    facts = objects.facts(repository, [one.signature for one in checked])
    small = [fact for fact in facts if fact and fact.size <= chain.MAX_FILE]
    texts = dict(objects.read(repository, small))
    judged = {
        one.commit: signatures.judge(
            one.text, texts.get(one.signature, b"").decode(errors="replace"), signers, top
        )
        for one in checked
    }
    return judged | {one.commit: Signature("unchecked") for one in signed[MAX_SIGNATURES:]}
