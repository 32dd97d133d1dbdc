"""Finds the project: it has one ledger, wherever in it a program is started.

A project given by name is used as it is. Otherwise the search starts in the client's directory and
takes the nearest directory upwards that has a ledger, else the root of the git repository, else
the starting directory. Work trees of one repository share the ledger of its main work tree. A
submodule is a repository of its own, and so is one whose git directory is elsewhere.

Other users may be able to put files into a parent directory. So a ledger or a repository counts
only if the user owns it, and a directory that everybody may write, or the user's home, never does.
Git is not run; its files are read.
"""

import os
import stat

LEDGER = os.path.join("data", "colibri.db")
_MOST_BYTES = 4096  # of one of git's files that holds a path
_MOST_SETTINGS = 1 << 20  # bytes of a repository's configuration
_GIT_FILE = "gitdir:"


NAMED = "--project names it"
HOLDS_LEDGER = "the nearest directory with a data/colibri.db"
IS_REPOSITORY = "the root of the git repository"
IS_MAIN_TREE = "the main work tree of the git repository"
IS_START = "where the search began: no ledger and no git repository above it"


def find(start: str) -> tuple[str, str]:
    """The project of a directory, given as an absolute path, and the rule that found it."""
    above = [one for one in _upwards(os.path.realpath(start)) if _is_private(one)]
    for directory in above:
        if _holds_ledger(directory):
            return directory, HOLDS_LEDGER
    for directory in above:
        if (root := _root_of(directory)) is not None:
            return root, IS_REPOSITORY if root == directory else IS_MAIN_TREE
    return start, IS_START


def _upwards(directory: str) -> list[str]:
    found = [directory]
    while (parent := os.path.dirname(found[-1])) != found[-1]:
        found.append(parent)
    return found


def _is_private(directory: str) -> bool:
    """Whether others cannot write here, and it is neither the user's home nor the root."""
    try:
        everybody = os.stat(directory).st_mode & stat.S_IWOTH
    except OSError:
        return False
    home = os.path.realpath(os.path.expanduser("~"))
    return not everybody and directory not in (home, os.path.sep)


def _is_ours(path: str, kind: int) -> bool:
    """Whether it is a file or directory that the user owns, and not a link."""
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return stat.S_IFMT(found.st_mode) == kind and found.st_uid == os.geteuid()


def _holds_ledger(directory: str) -> bool:
    path = os.path.join(directory, LEDGER)
    return _is_ours(os.path.dirname(path), stat.S_IFDIR) and _is_ours(path, stat.S_IFREG)


def _root_of(directory: str) -> str | None:
    """The root of the repository whose work tree is this directory, if it is one."""
    link = os.path.join(directory, ".git")
    if _is_ours(link, stat.S_IFDIR):
        return directory if _is_ours(os.path.join(link, "HEAD"), stat.S_IFREG) else None
    git = named_by(link)
    if not _is_ours(git, stat.S_IFDIR):
        return None
    return _main_tree(git, link) or directory


def named_by(link: str) -> str:
    """The git directory that a file .git names; "" if it is no such file of the user's."""
    text = _line(link)
    if not text.startswith(_GIT_FILE):
        return ""
    named = text.removeprefix(_GIT_FILE).strip()
    return os.path.realpath(os.path.join(os.path.dirname(link), named))


def _main_tree(git: str, link: str) -> str | None:
    """The main work tree, if the git directory is that of a linked one and both links agree."""
    common, back = _line(os.path.join(git, "commondir")), _line(os.path.join(git, "gitdir"))
    if not common or not back:
        return None  # a submodule, or a repository whose git directory is elsewhere
    shared = os.path.realpath(os.path.join(git, common))
    main = work_tree_of(shared) or os.path.dirname(shared)
    agrees = os.path.realpath(os.path.join(git, back)) == os.path.realpath(link)
    within = os.path.dirname(git) == os.path.join(shared, "worktrees")
    return main if agrees and within and _is_main(main, shared) else None


def _is_main(main: str, shared: str) -> bool:
    link = os.path.join(main, ".git")
    agrees = shared in (link, named_by(link))
    return agrees and _is_ours(shared, stat.S_IFDIR) and _is_private(main)


def work_tree_of(git: str) -> str:
    """The work tree that a git directory names itself, as one of a submodule does; else ""."""
    named = core_settings(git).get("worktree", "")
    return os.path.realpath(os.path.join(git, named)) if named else ""


def core_settings(git: str) -> dict[str, str]:
    """The section `core` of a repository's configuration; files that it includes are not read."""
    found: dict[str, str] = {}
    for name in ("config", "config.worktree"):
        section = ""
        for line in _text(os.path.join(git, name), _MOST_SETTINGS).splitlines():
            rest = line.strip()
            if rest.startswith("["):
                section, _, rest = rest[1:].partition("]")
            key, equals, value = rest.partition("=")
            if equals and section.strip().lower() == "core":
                found[key.strip().lower()] = _value(value.strip())
    return found


def _value(text: str) -> str:
    """A value as git writes it: quoted where it has to be, perhaps with a comment after it."""
    found, is_quoted, letters = "", False, iter(text)
    for letter in letters:
        if letter == "\\":
            found += next(letters, "")
        elif letter == '"':
            is_quoted = not is_quoted
        elif letter in "#;" and not is_quoted:
            break
        else:
            found += letter
    return found.rstrip()


def _line(path: str) -> str:
    """The one line of a file; empty if the file is missing, not ours or not text."""
    return _text(path, _MOST_BYTES).strip()


def _text(path: str, most: int) -> str:
    if not _is_ours(path, stat.S_IFREG):
        return ""
    try:
        with open(path, "rb") as file:
            return os.fsdecode(file.read(most))
    except OSError:
        return ""
