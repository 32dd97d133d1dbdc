"""git on a repository of this machine: nothing in a repository can make it execute.

A repository's own configuration can name programs in dozens of keys, some with names of their own
(`filter.x.clean`, `diff.x.textconv`), and no option of git leaves that file out. So git is never
shown it. Each run gets a git directory of ours, in a temporary place: our configuration, and links
to the objects, refs and index of the repository. See docs/decisions/013.

    configuration   ours alone, with those settings of the repository that say how its files are
                    stored (KEPT); neither the system's nor the user's
    environment     made from nothing: no GIT_* of whoever called us
    program         the first git on the absolute part of PATH, and not below the work tree
    commands        those of COMMANDS, which read, and of WRITING, which add objects and move refs
                    but touch no index, work tree or hook; submodules, with configurations of
                    their own, are left alone
    bounds          TIMEOUT seconds unless more are given, and MAX_OUTPUT bytes; then the whole
                    process group is killed

remotes.py reaches other repositories, and user_settings.py reads what the user configured.
"""

import os
import re
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache

from colibri import project as projects
from colibri.cli import process
from colibri.config import bare_environment

TIMEOUT = 10.0
MAX_OUTPUT = 16 << 20
MAX_LINE = 4096  # bytes of HEAD and similar files

_NO_PROGRAMS = ("--no-ext-diff", "--no-textconv", "--ignore-submodules=all")

# What may be run, and the options that it always gets.
COMMANDS: dict[str, tuple[str, ...]] = {
    "blame": ("--no-textconv",),
    "cat-file": (),
    "check-ignore": (),
    "diff": _NO_PROGRAMS,
    "for-each-ref": (),
    "log": (*_NO_PROGRAMS, "--no-show-signature"),
    "ls-files": (),
    "ls-tree": (),
    "merge-base": (),
    "rev-parse": (),
    "status": ("--ignore-submodules=all",),
}
WRITING: dict[str, tuple[str, ...]] = {
    "commit-tree": ("--no-gpg-sign",),
    "hash-object": ("-w", "--no-filters"),
    "mktree": (),
    "update-ref": ("--no-deref",),
}

# How files are stored; all other settings of a repository are ignored.
KEPT = {
    "core.autocrlf": "true|false|input",
    "core.eol": "lf|crlf|native",
    "core.filemode": "true|false",
    "core.ignorecase": "true|false",
    "core.precomposeunicode": "true|false",
    "core.sharedrepository": "group|all|world|everybody|true|false|umask|0[0-7]{3}",
    "core.symlinks": "true|false",
    "extensions.objectformat": "sha1|sha256",
    "extensions.refstorage": "files|reftable",
}

# A second lock: in a git directory of ours nothing sets these to anything else.
_CONFIG = """\
[core]
	repositoryFormatVersion = 1
	bare = {bare}
	quotePath = false
	fsmonitor = false
	fsync = committed
	hooksPath = /dev/null
	untrackedCache = false
[advice]
	graftFileDeprecated = false
[diff]
	ignoreSubmodules = all
[gc]
	auto = 0
[protocol]
	allow = never
[submodule]
	recurse = false
"""

_ENVIRONMENT = {
    "LC_ALL": "C",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_ASKPASS": "false",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_EDITOR": "false",
    "GIT_GRAFT_FILE": os.devnull,
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_PAGER": "cat",
    "GIT_PROTOCOL_FROM_USER": "0",
    "GIT_SSH_COMMAND": "false",
    "GIT_TERMINAL_PROMPT": "0",
    "SSH_ASKPASS": "false",
}


class GitError(Exception):
    """git is missing, was stopped, or failed: `code` is its exit code, None if it has none, and
    `output` what it had printed before."""

    def __init__(self, what: str, code: int | None = None, output: bytes = b"") -> None:
        super().__init__(what)
        self.code = code
        self.output = output


class NoGit(GitError):
    """There is no program that may be run as git."""


@dataclass(frozen=True, slots=True)
class Repository:
    """A work tree, its own git directory, and the one that it shares with other work trees."""

    work_tree: str
    own: str
    common: str


def find(directory: str) -> Repository | None:
    """The repository that a directory is in, found without git; None if none can be trusted.

    It must belong to this user. A linked work tree must be named by its repository in return and be
    kept there, and a git directory elsewhere must not be that of another work tree: a file .git
    could name any other repository.
    """
    at = os.path.realpath(directory)
    while not os.path.lexists(entry := os.path.join(at, ".git")):
        if at == (at := os.path.dirname(at)):
            return None
    own = _elsewhere(entry) if is_ours(entry, stat.S_ISREG) else entry
    common = os.path.normpath(os.path.join(own, _line(os.path.join(own, "commondir")) or "."))
    parts = (own, common, os.path.join(common, "objects"), os.path.join(common, "refs"))
    kept = own == common or os.path.dirname(own) == os.path.join(common, "worktrees")
    trusted = kept and all(is_ours(part, stat.S_ISDIR) for part in parts)
    return Repository(at, own, common) if trusted else None


def roots(directory: str) -> Iterator[str]:
    """The directories from one upwards that seem to be work trees, the innermost first."""
    at = os.path.realpath(directory)
    while True:
        if os.path.lexists(os.path.join(at, ".git")):
            yield at
        if at == (at := os.path.dirname(at)):
            return


def is_ignored(repository: Repository, path: str) -> bool:
    """Whether git ignores an untracked path."""
    try:
        run(repository, "check-ignore", "--quiet", "--", os.path.join(os.curdir, path))
    except GitError as no:
        if no.code == 1:
            return False
        raise
    return True


def checked_out(repository: Repository, branch: str) -> Iterator[str]:
    """The git directories of work trees that have a branch checked out."""
    folder = os.path.join(repository.common, "worktrees")
    others = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    for own in (repository.common, *(os.path.join(folder, name) for name in others)):
        if head(own) == f"ref: refs/heads/{branch}":
            yield own


def shallow(repository: Repository) -> frozenset[str]:
    """The commits at which a shallow clone ends: those before them were not fetched."""
    path = os.path.join(repository.common, "shallow")
    return frozenset(os.fsdecode(newest_bytes(path, MAX_OUTPUT)).split())


def head(own: str) -> str | None:
    """What the HEAD of a git directory holds: the name of a branch, or a commit."""
    return _line(os.path.join(own, "HEAD"))


def run(
    repository: Repository,
    command: str,
    *arguments: str,
    stdin: bytes = b"",
    also: Mapping[str, str] | None = None,
    seconds: float | None = None,
) -> bytes:
    """What git prints; GitError if it fails. `also` is added to its environment."""
    if command in WRITING:
        refuse_links(repository)
    with isolated(repository) as (program, env):
        # Take every path literally; check-ignore always does.
        literal = () if command == "check-ignore" else ("--literal-pathspecs",)
        words = (*literal, command, *(COMMANDS | WRITING)[command], *arguments)
        full = [program, "--no-pager", *words]
        try:
            given = {**env, **(also or {})}
            return output(full, repository.work_tree, given, stdin, seconds=seconds)
        except GitError as problem:  # it names our directory where the user knows another
            said = str(problem).replace(env["GIT_DIR"], repository.common)
            raise GitError(said, problem.code, problem.output) from None


def refuse_links(repository: Repository) -> None:
    """GitError if a link leads from the objects or refs of a repository to another place."""
    objects, refs, tables = (
        os.path.join(repository.common, name) for name in ("objects", "refs", "reftable")
    )
    folders = [entry.path for entry in os.scandir(objects) if entry.is_dir()]
    below = os.walk(refs)
    inner = [os.path.join(folder, name) for folder, names, _ in below for name in names]
    for path in (tables, *folders, *inner):
        if os.path.islink(path):
            raise GitError(f"{path} is a link to {os.path.realpath(path)}: delete it")


@contextmanager
def isolated(repository: Repository) -> Iterator[tuple[str, dict[str, str]]]:
    """The program, and the environment that shows it a git directory of ours."""
    env = environment()
    program = program_in(env["PATH"], repository.work_tree)
    with mirrored(repository) as folder:
        env |= {"GIT_DIR": folder, "GIT_WORK_TREE": repository.work_tree}
        yield program, {**env, "GIT_INDEX_FILE": os.path.join(repository.own, "index")}


@contextmanager
def mirrored(repository: Repository, *, bare: bool = False) -> Iterator[str]:
    """A git directory of ours with the objects and refs of a repository."""
    at = head(repository.own)
    if not at:
        raise GitError("the repository has no HEAD that can be read")
    config = _CONFIG.format(bare="true" if bare else "false") + _kept(settings(repository))
    with tempfile.TemporaryDirectory(prefix="colibri-git-") as folder:
        for name, text in (("HEAD", f"{at}\n"), ("config", config)):
            with open(os.path.join(folder, name), "wb") as file:
                file.write(os.fsencode(text))
        for name in ("objects", "refs", "packed-refs", "reftable", "shallow", "info"):
            if os.path.exists(os.path.join(repository.common, name)):
                os.symlink(os.path.join(repository.common, name), os.path.join(folder, name))
        yield folder


def settings(repository: Repository) -> list[tuple[str, str]]:
    """The repository's configuration as data, in order; the last value of a key counts."""
    found = _listed(repository, os.path.join(repository.common, "config"))
    if dict(found).get("extensions.worktreeconfig") == "true":
        found += _listed(repository, os.path.join(repository.own, "config.worktree"))
    return found


def _listed(repository: Repository, path: str) -> list[tuple[str, str]]:
    if not is_ours(path, stat.S_ISREG):
        return []
    found = os.lstat(path)
    program = program_in(environment()["PATH"], repository.work_tree)
    return [*_read_settings(program, path, (found.st_ino, found.st_mtime_ns, found.st_size))]


@lru_cache(maxsize=8)
def _read_settings(program: str, path: str, _: tuple[int, ...]) -> tuple[tuple[str, str], ...]:
    """What a file of settings holds: with --file git acts on nothing that it reads there.

    Every run needs it, so it is read again only if the file has changed.
    """
    env = {**environment(), "GIT_DIR": os.devnull}  # no repository: git would read its own
    listed = [program, "config", "--file", path, "--no-includes", "--null", "--list"]
    return tuple(parse_settings(output(listed, os.sep, env)))


def parse_settings(listed: bytes) -> list[tuple[str, str]]:
    """What `git config --null --list` prints; a key without a value has "true", or as a path ""."""
    entries = os.fsdecode(listed).split("\0")[:-1]
    return [
        (key, value if equals else "" if key == "core.hookspath" else "true")
        for key, equals, value in (entry.partition("\n") for entry in entries)
    ]


# The repository, looked at without git.


def _elsewhere(entry: str) -> str:
    """The git directory that a file .git names; "" unless it belongs to this work tree.

    A linked work tree is named in `gitdir`, that of a submodule in core.worktree. One that was made
    with --separate-git-dir names none. Then it must not be the usual place of another one's, nor
    within one, nor bare.
    """
    own = projects.named_by(entry)
    if not own or os.path.lexists(back := os.path.join(own, "gitdir")):
        named = os.path.normpath(os.path.join(own, _line(back) or "")) if own else ""
        return own if named == entry else ""
    core = projects.core_settings(own)
    if "worktree" in core:
        return own if projects.work_tree_of(own) == os.path.dirname(entry) else ""
    is_apart = ".git" not in own.split(os.sep) and core.get("bare", "false") == "false"
    return own if is_apart and not os.path.lexists(os.path.join(own, "commondir")) else ""


def problem(directory: str) -> str:
    """Why there is no repository that can be trusted, for people; "" if there is none at all."""
    at = os.path.realpath(directory)
    while not os.path.lexists(entry := os.path.join(at, ".git")):
        if at == (at := os.path.dirname(at)):
            return ""
    if not is_ours(entry, stat.S_ISREG) or not (own := projects.named_by(entry)):
        return f"{entry} is not a git directory of yours"
    return f"{entry} names {own}, which does not name {at} as its work tree"


def is_ours(path: str, is_kind: Callable[[int], bool]) -> bool:
    """Whether it is of the given kind, not a link, and owned by this user."""
    try:
        found = os.lstat(path)
    except (OSError, ValueError):  # ValueError: a zero byte
        return False
    return is_kind(found.st_mode) and found.st_uid == os.getuid()


def newest_bytes(path: str, most: int) -> bytes:
    """The end of a file of this user's; nothing if there is none."""
    if not is_ours(path, stat.S_ISREG):
        return b""
    with open(path, "rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - most))
        return file.read(most)


def _line(path: str) -> str | None:
    """A small file of one line; None if it is anything else."""
    if not is_ours(path, stat.S_ISREG):
        return None
    with open(path, "rb") as file:
        return os.fsdecode(file.read(MAX_LINE)).rstrip("\n")


# What git is given.


def _kept(found: list[tuple[str, str]]) -> str:
    """The lines of the repository's configuration that are copied into ours."""
    return "".join(
        "[{}]\n\t{} = {}\n".format(*name.split("."), value)
        for name, value in dict(found).items()
        if name in KEPT and re.fullmatch(KEPT[name], value)
    )


def environment() -> dict[str, str]:
    given = bare_environment()
    absolute = [one for one in given.get("PATH", "").split(os.pathsep) if os.path.isabs(one)]
    home = given.get("HOME", os.devnull)  # the user's own list of what to ignore
    return {**_ENVIRONMENT, "PATH": os.pathsep.join(absolute), "HOME": home}


def program_in(path: str, work_tree: str) -> str:
    found = shutil.which("git", path=path)
    if found is None:
        raise NoGit("there is no git")
    if os.path.realpath(found).startswith(os.path.join(work_tree, "")):
        raise NoGit(f"{found} is a part of the work tree")
    return found


def output(
    command: list[str],
    directory: str,
    env: dict[str, str],
    stdin: bytes = b"",
    *,
    seconds: float | None = None,
) -> bytes:
    most = TIMEOUT if seconds is None else seconds
    try:
        done = process.run(command, directory, env, stdin=stdin, seconds=most, most=MAX_OUTPUT)
    except process.Stopped as stopped:
        raise GitError(str(stopped), output=stopped.output) from None
    if done.code:
        said = _complaint(os.fsdecode(done.errors))
        raise GitError(f"git failed: {said}" if said else "git failed", done.code, done.output)
    return done.output


def _complaint(errors: str) -> str:
    """The line that says what is wrong: hints and warnings may come before it and after it."""
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    chatter = ("hint:", "warning:")
    return next((line for line in lines if not line.startswith(chatter)), "".join(lines[:1]))
