"""cli/remotes.py: which addresses are used, with whose settings, and what a remote answers.

Specification 25.4.
"""

import os
import shutil
from pathlib import Path

import pytest

from colibri.cli import git, remotes
from colibri.cli.git import GitError, Repository
from colibri.cli.remotes import Remote
from tests.support.committer import Committer

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="it takes git")

REF = "refs/colibri/x"


@pytest.fixture(scope="module")
def ann(tmp_path_factory: pytest.TempPathFactory) -> Committer:
    made = Committer(tmp_path_factory.mktemp("ann"), story=False)
    made.remote()
    return made


def repository(ann: Committer) -> Repository:
    found = git.find(str(ann.project))
    assert found is not None
    return found


def set_url(ann: Committer, url: str) -> None:
    with (ann.project / ".git" / "config").open("a") as file:
        file.write(f'[remote "r"]\n\turl = "{url}"\n')


REFUSED = {
    "-u./evil": "could be taken for an option",
    "ssh://-oProxyCommand=evil/x": "could be taken for an option",
    "me@-oProxyCommand=evil:x": "could be taken for an option",
    "ext::sh -c evil": "names the program git-remote-ext",
    "fd::17/x": "names the program git-remote-fd",
    "ftp://example.org/x": "has the protocol ftp",
    "evil://x": "has the protocol evil",
    "https://example.org/\\nx": "cannot be printed",
}


@pytest.mark.parametrize(("url", "problem"), REFUSED.items(), ids=REFUSED)
def test_an_address_that_could_run_a_program_is_refused(
    ann: Committer, url: str, problem: str
) -> None:
    set_url(ann, url)
    with ann.at_work(ann.project), pytest.raises(GitError, match=problem):
        remotes.find(repository(ann), "r")


TAKEN = (
    "https://example.org/x",
    "ssh://me@example.org/x",
    "me@example.org:x",
    "gh:me/x",
    "../x.git",
)


@pytest.mark.parametrize("url", TAKEN)
def test_usual_addresses_are_taken(ann: Committer, url: str) -> None:
    set_url(ann, url)
    with ann.at_work(ann.project):
        assert remotes.find(repository(ann), "r") == Remote("r", url)
        assert remotes.names(repository(ann)) == ["origin", "r"]
        assert remotes.find(repository(ann), "none") is None


def test_a_password_in_an_address_is_not_shown() -> None:
    assert str(Remote("r", "https://me:secret@example.org/x")) == "r (https://example.org/x)"


def test_a_remote_on_this_machine_runs_nothing_of_its_own(ann: Committer) -> None:
    """Its hooks and settings may come with an archive, as those of the project."""
    evil = ann.folder / "origin.git"
    for hook in ("pre-receive", "update", "post-receive", "post-update", "reference-transaction"):
        path = evil / "hooks" / hook
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\ntouch {ann.folder}/sprung-{hook}\n")
        path.chmod(0o755)
    ann.git("config", "core.alternateRefsCommand", f"touch {ann.folder}/sprung-alternate", at=evil)
    with ann.at_work(ann.project):
        there = repository(ann)
        remote = Remote("origin", str(evil))
        remotes.push(there, remote, "HEAD", REF)
        assert remotes.listed(there, remote, REF) == ann.git("rev-parse", "HEAD")
        assert remotes.listed(there, remote, "refs/colibri/none") is None
        remotes.fetch(there, Remote("o", f"file://{evil}"), REF, "refs/colibri/fetched")
    assert ann.git("rev-parse", "refs/colibri/fetched") == ann.git("rev-parse", "HEAD")
    assert not (ann.project / ".git" / "FETCH_HEAD").exists()
    assert list(ann.folder.glob("sprung-*")) == []
    ann.git("push", "-q", "origin", "HEAD:refs/heads/plain")  # the control
    assert len(list(ann.folder.glob("sprung-*"))) >= 4


def test_what_a_remote_lacks_is_distinguished_from_what_it_refuses(ann: Committer) -> None:
    other = ann.folder / "fresh.git"
    ann.git("init", "-q", "--bare", str(other))
    old = ann.git("rev-parse", "HEAD")
    (ann.project / "b").write_text("b")
    ann.git("add", ".")
    ann.git("commit", "-q", "-m", "second")
    with ann.at_work(ann.project):
        remotes.push(repository(ann), Remote("f", str(other)), "HEAD", REF)
        with pytest.raises(remotes.Refused, match="non-fast-forward") as behind:
            remotes.push(repository(ann), Remote("f", str(other)), old, REF)
        assert behind.value.behind
        with pytest.raises(remotes.Unreachable, match="no repository of yours at that path"):
            remotes.listed(repository(ann), Remote("f", "../nothing"), REF)


def ssh(ann: Committer, script: str) -> dict[str, str]:
    """An ssh of the user's own that reaches a server on this machine, as it were."""
    path = ann.folder / "ssh"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return {"GIT_SSH_COMMAND": str(path)}


def test_a_server_is_reached_through_the_users_own_settings(ann: Committer) -> None:
    """url.X.insteadOf and the way to ssh are the user's; the repository's count for nothing."""
    server = ann.folder / "server.git"
    ann.git("init", "-q", "--bare", str(server))
    reach = ssh(ann, 'for last; do :; done; exec sh -c "$last"')
    with (ann.home / ".gitconfig").open("a") as file:
        file.write('[url "ssh://example.org/"]\n\tinsteadOf = "gh:"\n')
    ann.git("config", "core.sshCommand", f"touch {ann.folder}/sprung-ssh; false")
    ann.git("config", "url.ext::evil.insteadOf", "gh:")
    remote = Remote("s", f"gh:{server}")
    with ann.at_work(ann.project, **reach):
        remotes.push(repository(ann), remote, "HEAD", REF)
        assert remotes.listed(repository(ann), remote, REF) == ann.git("rev-parse", "HEAD")
        hook = server / "hooks" / "pre-receive"
        hook.parent.mkdir(exist_ok=True)
        hook.write_text("#!/bin/sh\nexit 1\n")
        hook.chmod(0o755)
        with pytest.raises(remotes.Refused, match="pre-receive hook declined") as refused:
            remotes.push(repository(ann), remote, "HEAD", "refs/colibri/y")
        assert not refused.value.behind
    assert not (ann.folder / "sprung-ssh").exists()


def test_a_server_that_cannot_be_reached_is_named(
    ann: Committer, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote = Remote("s", "ssh://example.org/x")
    away = ssh(ann, "echo no route to host >&2; exit 255")
    with ann.at_work(ann.project, **away):
        gone = r"cannot reach s .*no route to host"
        with pytest.raises(remotes.Unreachable, match=gone):
            remotes.push(repository(ann), remote, "HEAD", REF)
        with pytest.raises(remotes.Unreachable, match=gone):
            remotes.fetch(repository(ann), remote, REF, "refs/colibri/y")
    monkeypatch.setattr(remotes, "SECONDS", 0.5)
    with (
        ann.at_work(ann.project, **ssh(ann, "exec sleep 60")),
        pytest.raises(remotes.Unreachable, match=r"cannot reach s .*git took longer than 0 s"),
    ):
        remotes.listed(repository(ann), remote, REF)


def test_a_program_of_the_work_tree_is_not_found(ann: Committer, tmp_path: Path) -> None:
    folder = ann.project / "bin"
    folder.mkdir()
    (folder / "ssh").write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\n")
    (folder / "ssh").chmod(0o755)
    path = f"{folder}:{os.environ['PATH']}"
    with ann.at_work(ann.project, PATH=path), pytest.raises(remotes.Unreachable):
        remotes.listed(repository(ann), Remote("s", "ssh://colibri.invalid/x"), REF)
    assert not (tmp_path / "sprung").exists()
