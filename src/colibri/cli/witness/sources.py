"""Where git keeps checkpoints of a log: its chain, branches, messages of commits, and notes.

Each place is read by itself: what cannot be read is named, and the rest is read all the same.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from colibri.cli import git, objects
from colibri.cli.git import GitError, Repository
from colibri.cli.objects import Fact
from colibri.cli.witness import accepted, chain
from colibri.cli.witness.chain import Commit, Entry
from colibri.cli.witness.found import Found, moment, unread
from colibri.cli.witness.refs import FETCHED, NOTES, Refs
from colibri.core import checkpoint as checkpoints
from colibri.core.checkpoint import Checkpoint
from colibri.core.witness import Kind

KEY = "Colibri-Head"
SECONDS = 60.0  # for the messages of all commits
PAGE = 20_000  # commits that name a checkpoint, found by one run
MAX_TRAILERS = 200_000
MAX_MESSAGE = 1 << 20  # bytes of a commit
MAX_NOTE = 1 << 16
MAX_NOTES = 100_000
MAX_OTHERS = 20  # logs other than the one that is asked for
_ENDS_WITH_LOG = re.compile(r"refs/colibri/.{1,1000}/colibri/[0-9a-f]{32}").fullmatch
_FOLDER = re.compile(rb"40000 ([0-9a-f]{32})\0")
_LINE = re.compile(rf"(?:^|\n)[ \t>]{{0,20}}{KEY}: ([^\s]{{1,200}})")


def size(one: Found) -> int:
    return one.checkpoint.size if one.checkpoint else 0


def ends(repository: Repository, log: str, refs: Refs) -> Iterator[Found]:
    """The newest commit of each chain of a log, and what branches hold of it now; GitError."""
    for name in refs.of_log(log):
        for entry in filter(None, chain.entries(repository, [Commit(refs.ours[name])], "")):
            yield _of_entry(entry, "ref", name, refs)
    yield from _tips(repository, log, refs)


# Chains.


def chains(repository: Repository, log: str, refs: Refs) -> Iterator[Found]:
    """The commits of a log's own chain: first those of remotes, then those that are only here."""
    known: set[str] = set()
    for name in refs.of_log(log):
        try:
            for page in chain.commits(repository, refs.ours[name]):
                new = [commit for commit in page if commit.id not in known]
                known.update(commit.id for commit in new)
                for entry, before in _followed(repository, new, ""):
                    yield _of_entry(entry, "ref", name, refs, before)
                if len(new) < len(page):
                    break  # and so are all before it
        except GitError as problem:
            yield unread("ref", name, problem)


def _followed(
    repository: Repository, commits: list[Commit], folder: str
) -> Iterator[tuple[Entry, Entry | None]]:
    """What commits hold that others before them did not, and what the commit before each holds."""
    listed = {commit.id for commit in commits}
    parents = [Commit(one.parent) for one in commits if one.parent and one.parent not in listed]
    found = chain.entries(repository, [*commits, *dict.fromkeys(parents)], folder)
    held = {one.commit: one for one in found if one}
    for commit in commits:
        entry, before = held.get(commit.id), held.get(commit.parent)
        if entry and not (folder and before and _is_same(entry, before)):
            yield entry, before


def _is_same(entry: Entry, before: Entry) -> bool:
    return (entry.text, entry.signature) == (before.text, before.signature)


def _of_entry(entry: Entry, kind: Kind, ref: str, refs: Refs, before: Entry | None = None) -> Found:
    wrong = entry.problem or (chain.extends(entry, before) if before else "")
    held = (entry.checkpoint, refs.remote(ref), entry.text, entry.signature, wrong)
    told = (accepted.of_commit(entry, before), entry.accepted, refs.formerly(ref))
    proof = chain.proved(entry.consistency)
    return Found(kind, entry.commit, ref, moment(entry.at), *held, *told, proof)


# Branches, and messages of commits.


class _Named(NamedTuple):
    """A commit whose message names a checkpoint, and the ref that led to it."""

    commit: Commit
    ref: str


def history(repository: Repository, log: str, refs: Refs) -> Iterator[Found]:
    """Trailers, and checkpoints on branches, also where a later commit has removed them."""
    everything = refs.others | {name: refs.ours[name] for name in refs.ours if "/heads/" in name}
    try:
        facts = objects.facts(repository, [*everything.values()])
    except GitError as problem:
        yield unread("trailer", "the branches", problem)
        return
    present = [name for name, fact in zip(everything, facts, strict=True) if _is_commit(fact)]
    there = {everything[name]: name for name in present if refs.remote(name)}
    former = {everything[name]: name for name in present if refs.formerly(name)}
    here = {everything[name]: name for name in present if not refs.remote(name)}
    for starts, known in ((there, ()), (former, there), (here, there | former)):
        try:
            for page in _naming(repository, log, starts, known):
                yield from _messages(repository, log, page, refs)
        except GitError as problem:
            yield unread("trailer", "messages of commits", problem)


def _is_commit(fact: Fact | None) -> bool:
    return fact is not None and fact.kind in ("commit", "tag")


def _naming(
    repository: Repository, log: str, starts: dict[str, str], known: Iterable[str]
) -> Iterator[list[_Named]]:
    """The commits from some on, but not before known ones, that name a checkpoint; in pages.

    GitError comes after those that git could list.
    """
    words = ("--fixed-strings", f"--grep={KEY}: {log}@", f"--grep={chain.MESSAGE}", "--stdin")
    asked = "".join(f"{id}\n" for id in starts) + "".join(f"^{id}\n" for id in known)
    for skipped in range(0, MAX_TRAILERS if starts else 0, PAGE):
        options = ("--source", f"--max-count={PAGE}", f"--skip={skipped}", "--format=%S %H %ct %P")
        failed = None
        try:
            printed = git.run(
                repository, "log", *options, *words, stdin=asked.encode(), seconds=SECONDS
            )
        except GitError as problem:
            printed, failed = problem.output, problem
        lines = [line.split(" ") for line in printed.decode().split("\n")[:-1]]
        yield [
            _Named(Commit(id, int(at), parents[0]), starts[start])
            for start, id, at, *parents in lines
        ]
        if failed:
            raise failed
        if len(lines) < PAGE:
            return
    if starts:
        raise GitError(f"more than {MAX_TRAILERS:,} name checkpoints: the others were not read")


def _messages(repository: Repository, log: str, page: list[_Named], refs: Refs) -> Iterator[Found]:
    """The checkpoints of a log in messages, and in the folder of commits that were made for one."""
    facts = objects.facts(repository, [one.commit.id for one in page])
    small = (fact for fact in facts if fact and fact.size <= MAX_MESSAGE)
    said = {id: _said(text, log) for id, text in objects.read(repository, small)}
    for one, fact in zip(page, facts, strict=True):
        id, at, _ = one.commit
        about = ("", moment(at))
        if id not in said:
            why = _unread(fact, "is damaged")
            yield Found("trailer", id, *about, None, refs.remote(one.ref), problem=why)
            continue
        for checkpoint in said[id].checkpoints:
            yield Found("trailer", id, *about, checkpoint, refs.remote(one.ref))
    made = {
        one.commit: one.ref for one in page if (known := said.get(one.commit.id)) and known.made
    }
    names = {commit.id: ref for commit, ref in made.items()}
    for entry, before in _followed(repository, [*made], f"{log}/"):
        name = names[entry.commit]
        yield _of_entry(entry, "branch", name, refs, before)


class _Said(NamedTuple):
    """The checkpoints of a message, and whether its commit was made for one."""

    checkpoints: list[Checkpoint]
    made: bool


def _said(commit: bytes, log: str) -> _Said:
    body = commit.partition(b"\n\n")[2].decode(errors="replace")
    return _Said([*in_text(f"\n{body}", log)], chain.MESSAGE in body)


def _unread(fact: Fact | None, otherwise: str) -> str:
    return f"it {f'has {fact.size:,} bytes' if fact else otherwise}: it was not read"


def tips(repository: Repository, log: str, refs: Refs) -> Iterator[Found]:
    """What branches hold of a log now."""
    try:
        yield from _tips(repository, log, refs)
    except GitError as problem:
        yield unread("branch", "the branches", problem)


def _branches(refs: Refs) -> dict[str, str]:
    """The commits at the ends of branches, and a branch of each; rather one of a remote."""
    every = refs.others | refs.ours
    names = [
        name
        for name in every
        if name.startswith((FETCHED, "refs/heads/")) or (name in refs.ours and "/heads/" in name)
    ]
    names.sort(key=lambda name: (refs.remote(name) is None, not refs.formerly(name)))
    return {every[name]: name for name in reversed(names)}


def _tips(repository: Repository, log: str, refs: Refs) -> Iterator[Found]:
    first = _branches(refs)
    for entry in chain.entries(repository, [Commit(id) for id in first], f"{log}/"):
        if entry is not None:
            name = first[entry.commit]
            yield _of_entry(entry, "branch", name, refs)


def others(repository: Repository, log: str, refs: Refs) -> list[Found]:
    """The newest checkpoint of each other log, at the ends of chains and in folders of branches."""
    try:
        found = [*_other_chains(repository, log, refs), *_other_folders(repository, log, refs)]
    except GitError:
        return []  # they say nothing about this log
    largest: dict[str, Found] = {}
    for one in found:
        if one.checkpoint and one.checkpoint.log != log:
            key = one.checkpoint.log
            largest[key] = max(largest.get(key, one), one, key=size)
    return sorted(largest.values(), key=size, reverse=True)[:MAX_OTHERS]


def _other_chains(repository: Repository, log: str, refs: Refs) -> Iterator[Found]:
    names = [name for name in refs.ours if _ENDS_WITH_LOG(name) and not name.endswith(log)]
    names = sorted(names[: MAX_OTHERS * 10], key=lambda name: refs.remote(name) is not None)
    commits = {refs.ours[name]: name for name in names}
    for entry in chain.entries(repository, [Commit(id) for id in commits], ""):
        if entry is not None:
            name = commits[entry.commit]
            yield _of_entry(entry, "ref", name, refs)


def _other_folders(repository: Repository, log: str, refs: Refs) -> Iterator[Found]:
    """Branches whose tree has a folder `colibri`, with a folder for each log."""
    tips = _branches(refs)
    facts = objects.facts(repository, [f"{id}:colibri" for id in tips])
    trees = {fact: id for id, fact in zip(tips, facts, strict=True) if fact}
    small = [one for one in trees if one.kind == "tree" and one.size <= chain.MAX_TREE]
    of = {fact.id: id for fact, id in trees.items()}
    for tree, text in objects.read(repository, small[:MAX_OTHERS]):
        for name in islice(dict.fromkeys(_FOLDER.findall(text)), MAX_OTHERS):
            folder = f"colibri/{name.decode()}"
            if folder != log and (entry := chain.newest(repository, of[tree], f"{folder}/")):
                ref = tips[of[tree]]
                yield _of_entry(entry, "branch", ref, refs)


def in_text(text: str, log: str) -> Iterator[Checkpoint]:
    """The checkpoints of a log that lines of a text name."""
    for line in _LINE.finditer(text):
        try:
            found = checkpoints.parse_trailer(line[1])
        except ValueError:
            continue  # somebody wrote about trailers
        if found.log == log:
            yield found


# Notes.


def notes(repository: Repository, log: str, refs: Refs) -> Iterator[Found]:
    if NOTES not in refs.ours:
        return
    failed: GitError | str | None = None
    try:
        printed = git.run(repository, "ls-tree", "-r", "-z", refs.ours[NOTES])
    except GitError as problem:
        printed, failed = problem.output, problem
    listed = [line.partition("\t") for line in printed.decode(errors="replace").split("\0")[:-1]]
    if len(listed) > MAX_NOTES:
        failed = f"there are more than {MAX_NOTES:,} notes: the others were not read"
    ids = {path.replace("/", ""): about.split(" ")[2] for about, _, path in listed[:MAX_NOTES]}
    try:
        yield from _noted(repository, log, ids)
    except GitError as problem:
        failed = failed or problem
    if failed:
        yield unread("note", NOTES, failed)


def _noted(repository: Repository, log: str, ids: dict[str, str]) -> Iterator[Found]:
    facts = dict(zip(ids, objects.facts(repository, [*ids.values()]), strict=True))
    small = (fact for fact in facts.values() if fact and fact.size <= MAX_NOTE)
    said = {id: [*_in_note(text, log)] for id, text in objects.read(repository, small)}
    for commit, id in ids.items():
        if id not in said:
            why = _unread(facts[commit], "is damaged or was not fetched")
            yield Found("note", commit, NOTES, "", None, problem=why)
        for checkpoint in said.get(id, ()):
            yield Found("note", commit, NOTES, "", checkpoint)


def _in_note(blob: bytes, log: str) -> Iterator[Checkpoint]:
    text = blob.decode(errors="replace")
    yield from in_text(f"\n{text}", log)
    try:
        found = checkpoints.parse(text)
    except ValueError:
        return
    if found.log == log:
        yield found
