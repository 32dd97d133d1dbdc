"""What is on disk: digests of the files that a tool named, the work tree, its branch and commit.

Only regular files inside the work tree are read, without following a link, and never for longer
than there is time. Git is not run: its files are read.
"""

import os
import stat

from colibri import project as projects
from colibri.hook.report import LONGEST

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

LARGEST = 16 * 1024 * 1024
_CHUNK = 1024 * 1024
_MOST_GIT = 4096  # bytes of a file of git that holds one line
_MOST_PACKED = 4 * 1024 * 1024
_HEX = frozenset("0123456789abcdef")
_REF, _HEADS, _GIT_FILE = "ref: ", "refs/heads/", "gitdir:"


class Tree:
    """A work tree: where it is, and its name relative to the project."""

    __slots__ = ("name", "root")

    def __init__(self, root: str, name: str) -> None:
        self.root = root
        self.name = name

    def inside(self, path: str, cwd: str) -> str | None:
        """A path, absolute or relative to cwd, as it is called in the tree; None outside it, and
        of one that is longer than any file's: following its parts would take quadratic time."""
        if len(path) > LONGEST:
            return None
        folder, name = os.path.split(os.path.normpath(os.path.join(cwd, path)))
        try:
            real = os.path.join(os.path.realpath(folder), name)
        except (OSError, ValueError):  # a null in it
            return None
        if real == self.root:
            return "."
        return real[len(self.root) + 1 :] if real.startswith(self.root + os.sep) else None


def tree_of(cwd: str, project: str) -> Tree | None:
    """The work tree of a directory, if it is one of the project's."""
    project = os.path.realpath(project)
    here = os.path.realpath(cwd)
    while here != project and not os.path.lexists(os.path.join(here, ".git")):
        above = os.path.dirname(here)
        if above == here:
            return None
        here = above
    if here == project:
        return Tree(here, ".")
    if here.startswith(project + os.sep) or projects.find(here)[0] == project:
        return Tree(here, os.path.relpath(here, project))
    return None


def digest(path: str, in_time: "Callable[[], bool]") -> tuple[str | None, int | None]:
    """SHA-256 and size of a regular file of at most LARGEST bytes; None of anything else."""
    try:
        file = _open(path)
    except (OSError, ValueError):
        return None, None
    try:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode) or found.st_size > LARGEST:
            return None, None
        return _read_through(file, in_time)
    except OSError:
        return None, None
    finally:
        os.close(file)


def _read_through(file: int, in_time: "Callable[[], bool]") -> tuple[str | None, int | None]:
    from hashlib import sha256  # only where there is a file

    hash, size = sha256(), 0
    while chunk := os.read(file, _CHUNK):
        size += len(chunk)
        hash.update(chunk)
        if size > LARGEST or not in_time():
            return None, None
    return hash.hexdigest(), size


def _open(path: str) -> int:
    """A file, and no link to one; opening what is not a file does not block."""
    return os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)


# Git.


def git_of(root: str) -> dict[str, object] | None:
    """Branch and commit of a work tree; None if there is no repository that can be read."""
    git = _git_directory(root)
    head = _line(os.path.join(git, "HEAD")) if git else ""
    if not head.startswith(_REF):
        return {"branch": None, "commit": head} if _is_commit(head) else None
    ref = head.removeprefix(_REF)
    if not ref.startswith(_HEADS) or ".." in ref.split("/") or ref == f"{_HEADS}.invalid":
        return None  # the last: its references are in a form that this does not read
    common = _line(os.path.join(git, "commondir"))
    shared = os.path.join(git, common) if common else git
    commit = _line(os.path.join(shared, ref)) or _packed(shared, ref)
    return {"branch": ref.removeprefix(_HEADS), "commit": commit if _is_commit(commit) else None}


def _git_directory(root: str) -> str:
    path = os.path.join(root, ".git")
    if os.path.isdir(path):
        return path
    line = _line(path)
    return os.path.join(root, line.removeprefix(_GIT_FILE).strip()) if line[:7] == _GIT_FILE else ""


def _is_commit(text: str) -> bool:
    return len(text) in (40, 64) and _HEX.issuperset(text)


def _packed(git: str, ref: str) -> str:
    """The commit of a reference among those that git has packed into one file."""
    for line in _read(os.path.join(git, "packed-refs"), _MOST_PACKED).splitlines():
        commit, _, name = line.partition(" ")
        if name == ref:
            return commit
    return ""


def _line(path: str) -> str:
    return _read(path, _MOST_GIT).strip()


def _read(path: str, most: int) -> str:
    """The text of a small file; nothing if there is none, or it is something else."""
    try:
        file = _open(path)
    except (OSError, ValueError):
        return ""
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            return ""
        return os.read(file, most).decode("utf-8", "replace")
    except OSError:
        return ""
    finally:
        os.close(file)
