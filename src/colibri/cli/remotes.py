"""The remotes of a repository: git reaches them with the user's settings, never the repository's.

which remotes   read from the repository's configuration as data: a name and an address
address         ssh, https, http or git, or a path on this machine; nothing that names a
                program (ext::) or could be taken for an option
configuration   the user's own and the system's: credentials, url.X.insteadOf, proxies. Of the
                repository nothing, and its hooks do not run
environment     made from nothing but what reaching a server takes (PASSED); nobody is asked
a path          receives through a git directory of ours, like the project's own: neither the
                settings nor the hooks of that repository can run anything
"""

import hashlib
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple
from urllib.parse import unquote

from colibri.cli import git, process
from colibri.cli.git import GitError, Repository
from colibri.config import bare_environment

PROTOCOLS = ("ssh", "https", "http", "git", "file")
SECONDS = 20.0
MAX_OUTPUT = 1 << 20

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]{0,20})://")
_SCP = re.compile(r"(?:[^\s/:@]{1,100}@)?(?:[^-\s/:@\[][^\s/:@]{0,252}|\[[^\s\]]{1,100}\]):[^:]")
_REFUSED = re.compile(
    r"![^\n\t]{0,1}\t[^\n\t]{1,4000}\t\[([a-z ]{1,40})\] ?(?:\(([^\n]{1,400})\))?"
)
_MOVED = re.compile(r"(?:^|\n) \t[^\n\t]{1,4000}\t([0-9a-f]{4,64})\.\.[0-9a-f]{4,64}")
_CREATED = re.compile(r"(?:^|\n)\*\t")

# Variables of the user that git, ssh and credential helpers need to reach a server.
PASSED = (
    *("HOME", "USER", "LOGNAME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"),
    *("SSH_AUTH_SOCK", "GIT_SSH", "GIT_SSH_COMMAND", "SSL_CERT_FILE", "SSL_CERT_DIR"),
    *("http_proxy", "https_proxy", "all_proxy", "no_proxy"),
    *("HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
)
_ENVIRONMENT = {
    "LC_ALL": "C",
    "GIT_ALLOW_PROTOCOL": ":".join(PROTOCOLS),
    "GIT_ASKPASS": "false",
    "GIT_EDITOR": "false",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "SSH_ASKPASS": "false",
}


class Remote(NamedTuple):
    """A remote that may be reached."""

    name: str
    url: str

    def __str__(self) -> str:
        return f"{self.name} ({self._shown})"

    @property
    def mark(self) -> str:
        """What tells its address from others; a password in it does not count."""
        return hashlib.sha256(os.fsencode(self._shown)).hexdigest()[:10]

    @property
    def _shown(self) -> str:
        return re.sub("//[^/@]{1,2000}@", "//", self.url)


class Unreachable(GitError):
    """git could not talk to the remote: it is offline, gone, or does not let us in."""


class Refused(GitError):
    """The remote answered and did not take the ref; `behind` if it has other commits there."""

    def __init__(self, what: str, *, behind: bool) -> None:
        super().__init__(what, 1)
        self.behind = behind


def names(repository: Repository) -> list[str]:
    """Those that have an address, in the order in which they were added."""
    keys = [key for key, _ in git.settings(repository)]
    found = [key[len("remote.") : -len(".url")] for key in keys if key.endswith(".url")]
    return list(dict.fromkeys(name for name in found if _NAME.fullmatch(name)))


def find(repository: Repository, name: str) -> Remote | None:
    """The remote of that name; GitError if its address is not one that may be used."""
    found = dict(git.settings(repository))
    url = found.get(f"remote.{name}.pushurl") or found.get(f"remote.{name}.url")
    if url is None or not _NAME.fullmatch(name):
        return None
    problem = _problem(url)
    if problem:
        raise GitError(f"the address of {name} {problem}")
    return Remote(name, url)


def marks(repository: Repository) -> dict[str, str]:
    """The remotes and the marks of their addresses; "" of one that may not be used."""
    found = {}
    for name in names(repository):
        try:
            remote = find(repository, name)
        except GitError:
            remote = None
        found[name] = remote.mark if remote else ""
    return found


def push(repository: Repository, remote: Remote, source: str, target: str) -> str | None:
    """Fast-forward a ref there; Refused or Unreachable if that is not done.

    What the ref was before, perhaps shortened; None if there was no such ref.
    """
    options = ("--porcelain", "--no-verify", "--no-follow-tags", "--recurse-submodules=no")
    done = _reach(repository, remote, "push", *options, "--no-signed", f"{source}:{target}")
    if done.code == 0:
        moved = _MOVED.search(os.fsdecode(done.output))
        return None if _CREATED.search(os.fsdecode(done.output)) else moved[1] if moved else source
    if answer := _REFUSED.search(os.fsdecode(done.output)):
        what, reason = answer[1], answer[2] or answer[1]
        raise Refused(reason, behind=what == "rejected")
    raise _unreachable(remote, done)


def listed(repository: Repository, remote: Remote, ref: str) -> str | None:
    """What a ref is there now."""
    done = _reach(repository, remote, "ls-remote", ref)
    if done.code:
        raise _unreachable(remote, done)
    lines = [line.partition("\t") for line in os.fsdecode(done.output).splitlines()]
    return next((value for value, _, name in lines if name == ref), None)


def fetch(repository: Repository, remote: Remote, ref: str, into: str) -> None:
    """Bring what a ref is there, whatever it was before."""
    git.refuse_links(repository)
    options = ("--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head")
    more = ("--no-auto-maintenance", "--no-prune", f"+{ref}:{into}")
    done = _reach(repository, remote, "fetch", *options, *more)
    if done.code:
        raise _unreachable(remote, done)


def _unreachable(remote: Remote, done: process.Done) -> Unreachable:
    lines = [line for line in os.fsdecode(done.errors).splitlines() if line.strip()]
    # The line before git's advice says what is wrong: "Could not resolve host", say.
    said = next((line for line in lines if not line.startswith("hint:")), "it says nothing")
    return Unreachable(f"cannot reach {remote}: {said}", done.code)


def _reach(repository: Repository, remote: Remote, command: str, *arguments: str) -> process.Done:
    """Run a command that talks to a remote; refs come last in its arguments."""
    *options, ref = arguments
    with git.isolated(repository) as (program, isolated), _address(repository, remote) as url:
        given = bare_environment()
        env = {**_ENVIRONMENT, **{name: given[name] for name in PASSED if name in given}}
        env["PATH"] = process.outside(given.get("PATH", ""), repository.work_tree)
        env["GIT_DIR"] = isolated["GIT_DIR"]
        words = [program, "--no-pager", "-c", "gc.auto=0", command, *options, "--", url, ref]
        try:
            return process.run(words, env["GIT_DIR"], env, seconds=SECONDS, most=MAX_OUTPUT)
        except process.Stopped as stopped:
            raise Unreachable(f"cannot reach {remote}: {stopped}") from None


# Addresses.


def _problem(url: str) -> str:
    """What is wrong with an address; "" if it may be used."""
    if url.startswith("-") or re.search(r"://-|@-", url):
        return "could be taken for an option: it begins with -"
    if not url.isprintable() or "\n" in url:
        return "has characters that cannot be printed"
    if scheme := _SCHEME.match(url):
        known = scheme[1].lower() in PROTOCOLS
        return "" if known else f"has the protocol {scheme[1]}; known are {', '.join(PROTOCOLS)}"
    if "::" in url.partition("/")[0] and not _SCP.match(url):
        return f"names the program git-remote-{url.partition('::')[0]}, which is never run"
    return ""


@contextmanager
def _address(repository: Repository, remote: Remote) -> Iterator[str]:
    """What git is told: the address, or for a path a git directory of ours in its place."""
    scheme = _SCHEME.match(remote.url)
    if (scheme and scheme[1].lower() != "file") or (not scheme and _SCP.match(remote.url)):
        yield remote.url
        return
    path = unquote(remote.url[len("file://") :]) if scheme else os.path.expanduser(remote.url)
    other = _repository_at(os.path.join(repository.work_tree, path))
    if other is None:
        raise Unreachable(f"cannot reach {remote}: there is no repository of yours at that path")
    git.refuse_links(other)
    with git.mirrored(other, bare=other.work_tree == other.own) as folder:
        yield folder


def _repository_at(path: str) -> Repository | None:
    if git.is_ours(os.path.join(path, ".git"), stat.S_ISREG):  # a submodule, or a git dir elsewhere
        found = git.find(path)
        return found if found and found.work_tree == os.path.realpath(path) else None
    for place in (os.path.join(path, ".git"), path, f"{path}.git"):
        own = os.path.realpath(place)
        parts = (own, os.path.join(own, "objects"), os.path.join(own, "refs"))
        if all(git.is_ours(part, stat.S_ISDIR) for part in parts):
            return Repository(path if place.endswith("/.git") else own, own, own)
    return None
