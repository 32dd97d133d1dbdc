"""The chain of checkpoints in git: what a commit of it holds, and how one is added.

Each log has a chain of its own, `refs/colibri/witness/LOG`, or on a branch the folder LOG of its
tree. A commit holds:

    checkpoint       the note (docs/formats.md): the log, its size, the root of its tree
    checkpoint.sig   the SSH signature of that text, if it was signed
    consistency      the size of the checkpoint before, then a hash a line in base64: the proof that
                     this tree begins with that one; empty in the first commit
    diverged         where the log does not extend the checkpoint before and a person accepted that:
                     the reason. The proof is then from the newest one before that it does extend
    accepted         every checkpoint that the log does not extend, and why a person accepted that:
                     the lines of store/head_lines.py

A commit is made by plumbing and becomes the newest only if the one before still is: the index, the
work tree, hooks and other refs have no part in it.
"""

import base64
import os
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeGuard

from colibri.cli import git, objects
from colibri.cli.git import GitError, Repository
from colibri.cli.objects import Fact
from colibri.cli.remotes import Remote
from colibri.cli.user_settings import of_user
from colibri.cli.witness.found import SHORT
from colibri.core import checkpoint as checkpoints
from colibri.core import merkle
from colibri.core.checkpoint import Checkpoint
from colibri.core.witness import Proof

REFS = "refs/colibri/witness/"
TRACKING = "refs/colibri/remotes/"
LOST = "refs/colibri/lost/"
MESSAGE = "Checkpoint of record "
SIGNATURE = "checkpoint.sig"
ACCEPTED = "accepted"
FILES = ("checkpoint", SIGNATURE, "consistency", "diverged", ACCEPTED)
BY_ID = (SIGNATURE, ACCEPTED)  # which an entry only names
PAGE = 5_000  # commits of a chain that are read at once
MAX_COMMITS = 200_000  # of one chain
MAX_FILE = 1 << 14
MAX_TREE = 1 << 20
_IS_SIZE = re.compile("[1-9][0-9]{0,15}").fullmatch
_WHO = {"NAME": ("user.name", "colibri"), "EMAIL": ("user.email", "colibri@localhost")}


class Place(NamedTuple):
    """Where a chain is: a ref, and the folder in its trees."""

    ref: str
    folder: str = ""

    def tracking(self, remote: Remote) -> str:
        """The ref that holds what a remote was last seen to have, while it has that address."""
        return f"{TRACKING}{remote.name}/{remote.mark}/{self._name}"

    def lost(self, remote: Remote, commit: str) -> str:
        """The ref that holds a commit which a remote had, and has no more."""
        return f"{LOST}{remote.name}/{remote.mark}/{commit[:SHORT]}/{self._name}"

    @property
    def _name(self) -> str:
        return self.ref.removeprefix(REFS).removeprefix("refs/")


class Commit(NamedTuple):
    """A commit, the seconds since 1970, and its first parent, or ""."""

    id: str
    at: int = 0
    parent: str = ""


class Entry(NamedTuple):
    """What a commit of a chain holds; `problem` says why its checkpoint cannot be read."""

    commit: str
    at: int
    text: str
    checkpoint: Checkpoint | None
    problem: str
    signature: str  # the id of its blob
    consistency: str
    diverged: str
    accepted: str  # the same


def place(log: str, branch: str | None = None) -> Place:
    return Place(f"refs/heads/{branch}", f"{log}/") if branch else Place(f"{REFS}{log}")


def tip(repository: Repository, ref: str) -> str | None:
    """The commit that a ref names."""
    found = git.run(repository, "for-each-ref", "--format=%(objectname)", ref).split()
    return found[0].decode() if len(found) == 1 else None


def commits(repository: Repository, start: str) -> Iterator[list[Commit]]:
    """The commits from one on, the newest first, in pages.

    GitError comes after those that git could list.
    """
    for skipped in range(0, MAX_COMMITS, PAGE):
        options = (f"--max-count={PAGE}", f"--skip={skipped}", "--format=%H %ct %P")
        failed = None
        try:
            printed = git.run(repository, "log", *options, "--end-of-options", start, "--")
        except GitError as problem:
            printed, failed = problem.output, problem
        page = [_commit(line) for line in printed.decode().split("\n")[:-1]]
        yield page
        if failed:
            raise failed
        if len(page) < PAGE:
            return
    raise GitError(f"it has more than {MAX_COMMITS:,} commits: older ones were not read")


def _commit(line: str) -> Commit:
    id, at, *parents = line.split(" ")
    return Commit(id, int(at), parents[0] if parents else "")


def newest(repository: Repository, commit: str, folder: str) -> Entry | None:
    """What the tree of a commit holds; None if a branch has nothing of this log yet."""
    (found,) = entries(repository, [Commit(commit)], folder)
    return found


def entries(
    repository: Repository, commits: Sequence[Commit], folder: str
) -> Iterator[Entry | None]:
    """What some commits hold; None of one without the folder, if that is named."""
    name = f":{folder.rstrip('/')}" if folder else "^{tree}"
    trees = objects.facts(repository, [f"{commit.id}{name}" for commit in commits])
    small = [tree for tree in trees if tree and tree.kind == "tree" and tree.size <= MAX_TREE]
    listed = {id: _files(text, len(id) // 2) for id, text in objects.read(repository, small)}
    ids = {id for files in listed.values() for name, id in files.items() if name not in BY_ID}
    blobs = dict(zip(ids, objects.facts(repository, [*ids]), strict=True))
    texts = dict(objects.read(repository, filter(_is_short, blobs.values())))
    for commit, tree in zip(commits, trees, strict=True):
        if tree is None and folder:
            yield None
        elif tree is None or (files := listed.get(tree.id)) is None:
            yield _entry(commit, {}, "its tree cannot be read")
        else:
            held = {name: texts.get(id, b"").decode(errors="replace") for name, id in files.items()}
            id = files.get("checkpoint", "")
            problem = "" if id in texts else _unreadable(blobs.get(id), id)
            named = {name: files.get(name, "") for name in BY_ID}
            yield _entry(commit, {**held, **named}, problem)


def _files(tree: bytes, length: int) -> dict[str, str]:
    """The ids of the files of a chain in a tree, whose ids have `length` bytes."""
    found, at = {}, 0
    while (end := tree.find(b"\0", at)) > 0:
        mode, _, name = tree[at:end].partition(b" ")
        at = end + 1 + length
        if mode.startswith(b"100") and (known := name.decode(errors="replace")) in FILES:
            found[known] = tree[end + 1 : at].hex()
    return found


def _is_short(blob: Fact | None) -> TypeGuard[Fact]:
    return blob is not None and blob.kind == "blob" and blob.size <= MAX_FILE


def _unreadable(blob: Fact | None, id: str) -> str:
    """Why a checkpoint was not read."""
    if not id:
        return "the commit has no checkpoint"
    if blob and blob.size > MAX_FILE:
        return f"its checkpoint has {blob.size:,} bytes, more than {MAX_FILE:,}"
    return "its checkpoint is damaged or was not fetched"


def _entry(commit: Commit, files: dict[str, str], problem: str) -> Entry:
    text, found = files.get("checkpoint", ""), None
    try:
        found = None if problem else checkpoints.parse(text)
    except ValueError as broken:
        problem = str(broken)
    rest = (files.get(name, "") for name in FILES[1:])
    return Entry(commit.id, commit.at, text, found, problem, *rest)


def extends(new: Entry, old: Entry) -> str:
    """What is wrong between two commits that follow each other; "" if the proof holds."""
    if new.checkpoint is None or old.checkpoint is None:
        return ""
    if new.diverged:
        return ""
    if new.checkpoint.log != old.checkpoint.log:
        return "the commit before is of another log"
    given = proved(new.consistency)
    holds = (
        given
        and given.size == old.checkpoint.size
        and merkle.check_consistency(
            old_size=old.checkpoint.size,
            old_root=old.checkpoint.root,
            size=new.checkpoint.size,
            root=new.checkpoint.root,
            path=given.path,
        )
    )
    return "" if holds else "its proof does not lead from the checkpoint before it"


def proved(text: str) -> Proof | None:
    """What the file `consistency` says; None if it has no proof."""
    size, *lines = text.split("\n")[:-1] or [""]
    if not _IS_SIZE(size):
        return None
    try:
        return Proof(int(size), tuple(base64.b64decode(line, validate=True) for line in lines))
    except ValueError:
        return None


def proof(size: int, path: Sequence[bytes]) -> str:
    """The file `consistency`."""
    return "".join(
        f"{line}\n" for line in (size, *(base64.b64encode(one).decode() for one in path))
    )


def commit(
    repository: Repository,
    where: Place,
    parent: str | None,
    checkpoint: Checkpoint,
    **files: str,
) -> str:
    """Make a commit with a checkpoint, and with other files of FILES; nothing refers to it yet."""
    texts = {"checkpoint": checkpoints.text(checkpoint), **files}
    lines = []
    for name in FILES:
        if (text := texts.get(name.replace(".", "_"))) is not None:
            blob = git.run(repository, "hash-object", "--stdin", stdin=text.encode())
            lines.append(f"100644 blob {blob.decode().strip()}\t{name}\0".encode())
    tree = git.run(repository, "mktree", "-z", stdin=b"".join(lines)).decode().strip()
    for above, name in _steps(where.folder):
        tree = _put(repository, f"{parent}:{above}" if parent else "", name, tree)
    message = f"{MESSAGE}{checkpoint.size:,}\n"
    settings = of_user(repository.work_tree)
    who = {
        f"GIT_{role}_{part}": settings.get(key) or usual
        for role in ("AUTHOR", "COMMITTER")
        for part, (key, usual) in _WHO.items()
    }
    parents = ("-p", parent) if parent else ()
    made = git.run(repository, "commit-tree", tree, *parents, stdin=message.encode(), also=who)
    return made.decode().strip()


def _steps(folder: str) -> Iterator[tuple[str, str]]:
    """From the innermost folder outwards: what it is in, and its name."""
    path = folder.rstrip("/")
    while path:
        above, name = os.path.split(path)
        yield above, name
        path = above


def _put(repository: Repository, tree: str, name: str, inner: str) -> str:
    """A tree like another, with a folder in it replaced."""
    others: list[bytes] = []
    if tree:
        try:
            listed = git.run(repository, "ls-tree", "-z", tree).split(b"\0")[:-1]
        except GitError:  # there is no such folder yet
            listed = []
        others = [line for line in listed if line.partition(b"\t")[2] != name.encode()]
    lines = (*others, f"040000 tree {inner}\t{name}".encode())
    made = git.run(repository, "mktree", "-z", "--missing", stdin=b"\0".join(lines) + b"\0")
    return made.decode().strip()


def advance(repository: Repository, ref: str, new: str, old: str | None) -> bool:
    """Move a ref if it still is what it was; whether it was moved."""
    try:
        git.run(repository, "update-ref", "-m", "colibri witness", ref, new, old or "0" * len(new))
    except GitError as problem:
        if problem.code is None or tip(repository, ref) == old:
            raise
        return False
    return True


def drop(repository: Repository, ref: str, old: str) -> None:
    """Delete a ref if it still is what it was."""
    git.run(repository, "update-ref", "-d", ref, old)


def contains(repository: Repository, commit: str, older: str) -> bool:
    """Whether a commit is another one or comes from it."""
    try:
        git.run(repository, "merge-base", "--is-ancestor", older, commit)
    except GitError as no:
        if no.code == 1:
            return False
        raise
    return True
