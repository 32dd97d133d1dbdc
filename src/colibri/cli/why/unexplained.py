"""Changed files that no deed explains: git has a content of them that no reported edit left.

Looked at are the commits of all branches in a time, and the work tree. A shell command, a person or
a program that no host reports may have made the change.
"""

import os
import stat
from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from colibri.cli import git
from colibri.cli.git import GitError, Repository
from colibri.cli.why import versions
from colibri.config import Config
from colibri.core.visible import visible
from colibri.hook import files
from colibri.store import deed_list, skills
from colibri.store.connection import Connection

MOST_COMMITS = 1000
MOST_BYTES = 64 << 20
MOST_NAMED = 100
NO_REPOSITORY = "the project is in no git repository that belongs to whoever wrote this page"


class Changes(NamedTuple):
    """What was found, if there is no `problem`; `more` is whether not everything was looked at."""

    files: list[dict[str, str | None]]  # path, and the commit of the first such content
    total: int
    more: bool
    problem: str | None


class _Change(NamedTuple):
    path: str
    commit: str | None
    digests: frozenset[str] | None


def find(db: Connection, config: Config, since: str, until: str | None, *, page: str) -> Changes:
    """The files that changed between two times, as records have them, and that no edit explains;
    but for the database, what is next to it, and the page that this is for."""
    repository = git.find(config.project)
    if repository is None:
        return Changes([], 0, False, NO_REPOSITORY)
    try:
        changes = [
            *_committed(repository, since, until),
            *_on_disk(repository, since, until, config, page),
        ]
    except GitError as problem:
        return Changes([], 0, False, str(problem))
    known = deed_list.edited(db)
    found: dict[str, str | None] = {}
    for path, commit, digests in changes:
        if digests and not digests & known:
            found.setdefault(path, commit)
    named = [{"path": visible(path), "commit": found[path]} for path in sorted(found)]
    more = any(digests is None for *_, digests in changes)
    return Changes(named[:MOST_NAMED], len(named), more, None)


def _committed(repository: Repository, since: str, until: str | None) -> Iterator[_Change]:
    """What commits of that time left, the oldest last; without digests, that not all was read."""
    try:
        git.run(repository, "rev-parse", "--verify", "--quiet", "HEAD")
    except GitError as problem:
        if problem.code is None:
            raise
        return  # there is no commit yet
    when = [f"--since={since}", *([f"--until={until}"] if until else [])]
    how = ("--raw", "-z", "--no-abbrev", "--no-renames", "--diff-filter=d", "--format=%H")
    most = f"--max-count={MOST_COMMITS + 1}"
    text = git.run(repository, "log", *how, *when, most, "--branches", "HEAD", "--")
    changes, count = _parsed(text)
    ends = git.shallow(repository)  # where a clone ends, a commit seems to add all that there is
    changes, left = [one for one in changes if one[1] not in ends], len(changes)
    held = versions.hashed(repository, (blob for *_, blob in changes), MOST_BYTES)
    for path, commit, blob in changes:
        yield _Change(path, commit, held.get(blob))
    if count > MOST_COMMITS or len(changes) < left:
        yield _Change("", None, None)


def _parsed(text: bytes) -> tuple[list[tuple[str, str, str]], int]:
    """Path, commit and blob of each regular file that was left; and how many commits there are."""
    fields = iter(text.split(b"\0"))
    found, commit, count = [], "", 0
    for field in fields:
        if field.lstrip(b"\n").startswith(b":"):
            _, mode, _, blob, _ = field.decode().split(" ")
            path = next(fields).decode(errors="surrogateescape")
            if mode.startswith("100"):
                found.append((path, commit, blob))
        elif field:
            commit, count = field.decode(), count + 1
    return found, count


def _on_disk(
    repository: Repository, since: str, until: str | None, config: Config, page: str
) -> Iterator[_Change]:
    """What is not committed and was last written in that time."""
    first, last = _seconds(since), _seconds(until) if until else float("inf")
    ours = tuple(_resolved(path) for path in (config.db_path, page))
    how = ("--porcelain", "-z", "--untracked-files=all", "--no-renames")
    for entry in git.run(repository, "status", *how).split(b"\0"):
        name = entry[3:].decode(errors="surrogateescape")
        path = os.path.join(repository.work_tree, name)
        try:
            found = os.lstat(path)
        except OSError:
            continue  # it was deleted
        in_time = stat.S_ISREG(found.st_mode) and first <= found.st_mtime <= last
        is_database = (found.st_dev, found.st_ino) in skills.only_for_sqlite(config.db_path)
        if in_time and not is_database and not path.startswith(ours):
            sha256, _ = files.digest(path, lambda: True)
            yield _Change(name, None, frozenset([sha256]) if sha256 else None)


def _resolved(path: str) -> str:
    folder, name = os.path.split(os.path.abspath(path))
    return os.path.join(os.path.realpath(folder), name)


def _seconds(at: str) -> float:
    return datetime.fromisoformat(at).timestamp()
