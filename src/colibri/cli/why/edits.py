"""The edits of a file that hosts reported, by the path that it has in its repository."""

import os
from collections.abc import Collection, Iterator

from colibri.cli import git
from colibri.cli.git import Repository
from colibri.hook.deed import recorded_path
from colibri.store import deed_list
from colibri.store.connection import Connection
from colibri.store.deed_list import Edit


def of(
    db: Connection, project: str, repository: Repository, paths: Collection[str]
) -> Iterator[Edit]:
    """The edits of some files of a repository in any of its work trees, the oldest first, each
    with the path in the repository."""
    names = {os.path.basename(recorded_path(path) or "") for path in paths}
    trees: dict[str, dict[str, str]] = {}
    for edit in deed_list.edits(db, names):
        if edit.tree not in trees:
            start = _start(os.path.join(project, edit.tree), repository)
            trees[edit.tree] = _recorded(paths, start)
        if (path := trees[edit.tree].get(edit.path)) is not None:
            yield edit._replace(path=path)


def _start(tree: str, repository: Repository) -> str | None:
    """How the paths of a tree's files begin in the repository; None if it belongs to another.

    A directory that is gone is taken for a work tree that was removed: agents make and remove them.
    """
    if not os.path.isdir(tree):
        return ""
    found = git.find(tree)
    if found is None or found.common != repository.common:
        return None
    below = os.path.relpath(os.path.realpath(tree), found.work_tree)
    return "" if below == os.curdir else os.path.join(below, "")


def _recorded(paths: Collection[str], start: str | None) -> dict[str, str]:
    """The paths below a tree as its deeds have them, and what they are in the repository."""
    below = [path for path in paths if start is not None and path.startswith(start)]
    return {recorded_path(path[len(start or "") :]) or "": path for path in below}
