"""Every use of git, and the one place that runs it: nothing in a repository can make it execute.

A repository's own configuration can name programs in dozens of keys, some with names of their own
(`filter.x.clean`, `diff.x.textconv`), and no option of git leaves that file out. So git is never
shown it. Each run gets a git directory of ours, in a temporary place: our configuration, and links
to the objects, refs and index of the repository. See docs/decisions/013.

    configuration   ours alone, with those settings of the repository that say how its files are
                    stored (KEPT); neither the system's nor the user's
    environment     made from nothing: no GIT_* of whoever called us
    program         the first git on the absolute part of PATH, and not below the work tree
    commands        those of COMMANDS, which read; submodules, with configurations of their own,
                    are left alone
    bounds          TIMEOUT seconds and MAX_OUTPUT bytes; then the whole process group is killed
"""

import os
import re
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from selectors import EVENT_READ, DefaultSelector

from colibri.config import bare_environment

TIMEOUT = 10.0
MAX_OUTPUT = 16 << 20
MAX_LINE = 4096  # bytes of HEAD and similar files

_NO_PROGRAMS = ("--no-ext-diff", "--no-textconv", "--ignore-submodules=all")

# What may be run, and the options that it always gets.
COMMANDS: dict[str, tuple[str, ...]] = {
    "cat-file": (),
    "check-ignore": (),
    "diff": _NO_PROGRAMS,
    "log": (*_NO_PROGRAMS, "--no-show-signature"),
    "ls-files": (),
    "rev-parse": (),
    "status": ("--ignore-submodules=all",),
}

# How files are stored; all other settings of a repository are ignored.
KEPT = {
    "core.autocrlf": "true|false|input",
    "core.eol": "lf|crlf|native",
    "core.filemode": "true|false",
    "core.ignorecase": "true|false",
    "core.precomposeunicode": "true|false",
    "core.symlinks": "true|false",
    "extensions.objectformat": "sha1|sha256",
    "extensions.refstorage": "files|reftable",
}

# A second lock: in a git directory of ours nothing sets these to anything else.
_CONFIG = """\
[core]
	repositoryFormatVersion = 1
	bare = false
	fsmonitor = false
	hooksPath = /dev/null
	untrackedCache = false
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
    """git is missing, was stopped, or failed: `code` is its exit code, None if it has none."""

    def __init__(self, what: str, code: int | None = None) -> None:
        super().__init__(what)
        self.code = code


@dataclass(frozen=True, slots=True)
class Repository:
    """A work tree, its own git directory, and the one that it shares with other work trees."""

    work_tree: str
    own: str
    common: str


def find(directory: str) -> Repository | None:
    """The repository that a directory is in, found without git; None if none can be trusted.

    It must belong to this user, and a linked work tree must be named by its repository in return.
    """
    at = os.path.realpath(directory)
    while not os.path.lexists(entry := os.path.join(at, ".git")):
        if at == (at := os.path.dirname(at)):
            return None
    own = _linked(entry) if _is_ours(entry, stat.S_ISREG) else entry
    common = os.path.normpath(os.path.join(own, _line(os.path.join(own, "commondir")) or "."))
    parts = (own, common, os.path.join(common, "objects"), os.path.join(common, "refs"))
    trusted = all(_is_ours(part, stat.S_ISDIR) for part in parts)
    return Repository(at, own, common) if trusted else None


def is_ignored(repository: Repository, path: str) -> bool:
    """Whether git ignores an untracked path."""
    try:
        run(repository, "check-ignore", "--quiet", "--", os.path.join(os.curdir, path))
    except GitError as no:
        if no.code == 1:
            return False
        raise
    return True


def run(repository: Repository, command: str, *arguments: str) -> bytes:
    """What git prints; GitError if it fails."""
    with tempfile.TemporaryDirectory(prefix="colibri-git-") as folder:
        env = _environment(repository, folder)
        program = _program(env["PATH"], repository.work_tree)
        _lay_out(repository, folder, _kept(program, repository, env))
        # Take every path literally; check-ignore always does.
        literal = () if command == "check-ignore" else ("--literal-pathspecs",)
        words = (*literal, command, *COMMANDS[command], *arguments)
        return _output([program, "--no-pager", *words], repository.work_tree, env)


# The repository, looked at without git.


def _linked(entry: str) -> str:
    """The git directory that the file .git of a linked work tree names; "" unless both agree."""
    text = _line(entry) or ""
    own = os.path.normpath(os.path.join(os.path.dirname(entry), text.removeprefix("gitdir: ")))
    return own if _line(os.path.join(own, "gitdir")) == entry else ""


def _is_ours(path: str, is_kind: Callable[[int], bool]) -> bool:
    """Whether it is of the given kind, not a link, and owned by this user."""
    try:
        found = os.lstat(path)
    except (OSError, ValueError):  # ValueError: a zero byte
        return False
    return is_kind(found.st_mode) and found.st_uid == os.getuid()


def _line(path: str) -> str | None:
    """A small file of one line; None if it is anything else."""
    if not _is_ours(path, stat.S_ISREG):
        return None
    with open(path, "rb") as file:
        return os.fsdecode(file.read(MAX_LINE)).rstrip("\n")


# A git directory of ours.


def _lay_out(repository: Repository, folder: str, kept: str) -> None:
    head = _line(os.path.join(repository.own, "HEAD"))
    if head is None:
        raise GitError("the repository has no HEAD that can be read")
    for name, text in (("HEAD", f"{head}\n"), ("config", _CONFIG + kept)):
        with open(os.path.join(folder, name), "wb") as file:
            file.write(os.fsencode(text))
    for name in ("objects", "refs", "packed-refs", "reftable", "shallow", "info"):
        if os.path.exists(os.path.join(repository.common, name)):
            os.symlink(os.path.join(repository.common, name), os.path.join(folder, name))


def _kept(program: str, repository: Repository, env: dict[str, str]) -> str:
    """The lines of the repository's configuration that are copied into ours.

    git reads the file as data here: with --file it acts on nothing in it, and includes nothing.
    """
    path = os.path.join(repository.common, "config")
    if not _is_ours(path, stat.S_ISREG):
        return ""
    listed = ["config", "--file", path, "--no-includes", "--null", "--list"]
    # Run where there can be no repository: git would read its configuration.
    outside = {**env, "GIT_DIR": os.devnull}
    text = _output([program, *listed], os.sep, outside).decode(errors="replace")
    found = dict(entry.partition("\n")[::2] for entry in text.split("\0"))
    kept = {name: value for name, value in found.items() if name in KEPT}
    return "".join(
        "[{}]\n\t{} = {}\n".format(*name.split("."), value)
        for name, value in kept.items()
        if re.fullmatch(KEPT[name], value)
    )


def _environment(repository: Repository, folder: str) -> dict[str, str]:
    given = bare_environment()
    absolute = [one for one in given.get("PATH", "").split(os.pathsep) if os.path.isabs(one)]
    return {
        **_ENVIRONMENT,
        "PATH": os.pathsep.join(absolute),
        "HOME": given.get("HOME", os.devnull),  # the user's own list of what to ignore
        "GIT_DIR": folder,
        "GIT_INDEX_FILE": os.path.join(repository.own, "index"),
        "GIT_WORK_TREE": repository.work_tree,
    }


def _program(path: str, work_tree: str) -> str:
    found = shutil.which("git", path=path)
    if found is None:
        raise GitError("there is no git")
    if os.path.realpath(found).startswith(os.path.join(work_tree, "")):
        raise GitError(f"{found} is a part of the work tree")
    return found


# The process.


def _output(command: list[str], directory: str, env: dict[str, str]) -> bytes:
    nothing = subprocess.DEVNULL
    process = subprocess.Popen(
        command,
        cwd=directory,
        env=env,
        stdin=nothing,
        stdout=subprocess.PIPE,
        stderr=nothing,
        start_new_session=True,
    )
    deadline = time.monotonic() + TIMEOUT
    with process:
        try:
            output = _read(process, deadline)
            process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise GitError(f"git took longer than {TIMEOUT:.0f} s") from None
        finally:
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)
    if process.returncode:
        raise GitError("git failed", process.returncode)
    return output


def _read(process: "subprocess.Popen[bytes]", deadline: float) -> bytes:
    """Its output, within limits of size and time."""
    assert process.stdout is not None
    pieces: list[bytes] = []
    size = 0
    with DefaultSelector() as selector:
        selector.register(process.stdout, EVENT_READ)
        while selector.select(max(0.0, deadline - time.monotonic())):
            piece = os.read(process.stdout.fileno(), 65_536)
            size += len(piece)
            if size > MAX_OUTPUT:
                raise GitError(f"git printed more than {MAX_OUTPUT:,} bytes")
            if not piece:
                return b"".join(pieces)
            pieces.append(piece)
    raise subprocess.TimeoutExpired(process.args, TIMEOUT)
