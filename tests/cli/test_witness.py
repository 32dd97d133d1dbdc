"""`colibri witness`: the chain of checkpoints in a real repository, and at a remote.

Specification 25.1, 25.2, 25.3.
"""

import argparse
import base64
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest

from colibri.cli import git, project
from colibri.cli.commands import witness
from colibri.cli.complaint import Complaint
from colibri.cli.witness import keep
from colibri.config import Config
from colibri.core import checkpoint, merkle
from colibri.core.checkpoint import Checkpoint
from colibri.store.connection import Connection
from colibri.store.sqlite.checkpoint import CHECKPOINT_PAGES
from tests.support.client import execute
from tests.support.committer import Committer
from tests.support.ledger_reader import reading
from tests.support.ledger_writer import LOG, opened
from tests.support.program import UNMEASURED, database_of
from tests.support.strace import failing_copies, lengthen_log, requires_strace

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="it takes git")

REF = f"refs/colibri/witness/{LOG}"


@pytest.fixture
def ann(tmp_path: Path) -> Committer:
    return Committer(tmp_path)


def root_of(project: Path, size: int) -> bytes:
    """The root by its definition."""
    with reading(database_of(project)) as db:
        rows = db.execute("SELECT leaf FROM ledger WHERE seq <= ? ORDER BY seq", (size,))
        return merkle.root([leaf for (leaf,) in rows])


def everything(ann: Committer) -> dict[str, bytes]:
    """What the user sees of a repository: its files, index, settings and refs, but for ours."""
    kept = ("objects", "refs/colibri", "data/")
    files = [path for path in ann.project.rglob("*") if path.is_file()]
    names = {str(path.relative_to(ann.project)): path for path in files}
    return {
        name: path.read_bytes()
        for name, path in names.items()
        if not any(part in name for part in kept)
    }


def test_a_checkpoint_is_committed_and_nothing_else_changes(ann: Committer) -> None:
    (ann.project / "staged").write_text("staged")
    ann.git("add", ".")
    (ann.project / ".gitignore").write_text("changed")
    before = everything(ann)
    done = ann.report("witness")
    assert done["size"] == 54
    assert bytes.fromhex(done["root"]) == root_of(ann.project, 54)
    assert (done["ref"], done["new"], done["signed"], done["pushed"]) == (REF, True, False, None)
    note = ann.git("show", f"{REF}:checkpoint") + "\n"
    assert checkpoint.parse(note) == Checkpoint(LOG, 54, root_of(ann.project, 54))
    assert ann.git("ls-tree", "--name-only", REF).split() == ["checkpoint", "consistency"]
    assert ann.git("log", "-1", "--format=%an <%ae> %s", REF) == (
        "Ann <ann@example.org> Checkpoint of record 54"
    )
    assert everything(ann) == before
    assert ann.report("witness")["new"] is False, "nothing was recorded since"
    assert ann.git("rev-list", "--count", REF) == "1"


def test_each_commit_proves_that_its_checkpoint_extends_the_one_before(ann: Committer) -> None:
    sizes = []
    for number in (0, 1, 3):
        ann.record(number)
        sizes.append(ann.report("witness")["size"])
    for new, old in zip(sizes[:0:-1], sizes[-2::-1], strict=True):
        n = sizes.index(new)
        text = ann.git("show", f"{REF}~{len(sizes) - 1 - n}:consistency")
        first, *lines = text.splitlines()
        assert int(first) == old
        assert merkle.check_consistency(
            old_size=old,
            old_root=root_of(ann.project, old),
            size=new,
            root=root_of(ann.project, new),
            path=[base64.b64decode(line) for line in lines],
        )
    listed = ann.report("witness", "list")["witnesses"]
    assert [one["size"] for one in listed] == sizes[::-1]
    assert {one["problem"] for one in listed} == {None}


def test_work_trees_share_the_chain_and_a_detached_head_is_no_matter(ann: Committer) -> None:
    ann.git("worktree", "add", "-q", "--detach", "../linked")
    linked = ann.folder / "linked"
    assert ann.report("witness", at=linked)["new"]
    assert not ann.report("witness")["new"]
    own = Path(ann.git("rev-parse", "--absolute-git-dir", at=linked))
    (own / "rebase-merge").mkdir()
    ann.record()
    assert ann.colibri("witness", "--hook", at=linked) == (0, "", "")
    assert ann.git("rev-list", "--count", REF) == "1", "a rebase goes on in that work tree"
    assert ann.colibri("witness", "--hook") == (0, "", "")
    assert ann.git("rev-list", "--count", REF) == "2"


def test_two_at_once_make_one_chain(ann: Committer) -> None:
    """Two processes, each with more records in between; no commit is lost or forks."""
    script = (
        "import sys; from pathlib import Path; from tests.support.committer import Committer\n"
        "ann = Committer.__new__(Committer); ann.folder = Path(sys.argv[1])\n"
        "ann.home, ann.project = ann.folder / 'home', ann.folder / 'project'\n"
        "for _ in range(6):\n"
        "    ann.record()\n"
        "    assert ann.colibri('witness')[0] == 0, ann.colibri('witness')\n"
    )
    command = [sys.executable, "-c", script, str(ann.folder)]
    racing = [subprocess.Popen(command, stderr=subprocess.PIPE) for _ in range(2)]
    for one in racing:
        _, err = one.communicate(timeout=120)
        assert one.returncode == 0, err.decode()
    listed = ann.report("witness", "list")["witnesses"]
    sizes = [one["size"] for one in listed]
    assert sizes == sorted(set(sizes), reverse=True)
    assert {one["problem"] for one in listed} == {None}
    assert len(ann.git("rev-list", "--merges", REF)) == 0


# Pushing.


def test_a_push_is_confirmed_only_after_the_remote_was_read_back(ann: Committer) -> None:
    origin = ann.remote()
    done = ann.report("witness", "--push")
    assert done["pushed"] == "origin"
    assert ann.refs(origin) == {REF: done["commit"]}
    assert ann.refs()[ann.tracking(LOG)] == done["commit"]
    listed = ann.report("witness", "list")["witnesses"]
    assert [one["remote"] for one in listed] == ["origin"]
    ann.record()
    ann.report("witness")
    remotes = [one["remote"] for one in ann.report("witness", "list")["witnesses"]]
    assert remotes == [None, "origin"]
    code, out, _ = ann.colibri("witness", "--push")
    assert (code, "kept at     origin (" in out) == (0, True)


def test_a_remote_that_is_ahead_is_continued(ann: Committer) -> None:
    """The ref here was lost or put back: the remote's is taken over, not rewritten."""
    origin = ann.remote()
    ann.report("witness", "--push")
    ann.record()
    newer = ann.report("witness", "--push")["commit"]
    ann.git("update-ref", "-d", REF)
    ann.record()
    done = ann.report("witness", "--push")
    assert done["size"] == 62
    assert ann.refs(origin)[REF] == done["commit"]
    assert ann.git("rev-parse", f"{REF}~1") == newer
    assert {one["problem"] for one in ann.report("witness", "list")["witnesses"]} == {None}


def test_a_chain_that_was_force_pushed_is_named_and_not_overwritten(ann: Committer) -> None:
    origin = ann.remote()
    ours = ann.report("witness", "--push")["commit"]
    tree = ann.git("mktree", input=f"100644 blob {blob(ann, 'x')}\tcheckpoint\n")
    forged = ann.git("commit-tree", tree, "-m", "forged")
    ann.git("push", "-q", "-f", "origin", f"{forged}:{REF}")
    ann.record()
    code, _, err = ann.colibri("witness", "--push")
    assert code == 1
    assert "the chain at origin" in err and "has diverged" in err
    assert forged[:10] in err
    assert ann.refs(origin)[REF] == forged, "nothing is forced"
    assert ann.git("merge-base", ours, REF) == ours, "and ours goes on here"
    listed = ann.report("witness", "list")["witnesses"]
    assert [one["problem"] for one in listed if one["commit"] == forged] == [
        "the last line of a checkpoint must end with a line feed"
    ]


def blob(ann: Committer, text: str) -> str:
    return ann.git("hash-object", "-w", "--stdin", input=text)


def test_a_remote_that_was_given_more_by_others_is_fetched_for_a_list(ann: Committer) -> None:
    origin = ann.remote()
    ann.report("witness", "--push")
    shutil.copytree(ann.folder, ann.folder.parent / "bob", symlinks=True)
    bob = Committer.__new__(Committer)
    bob.folder = ann.folder.parent / "bob"
    bob.home, bob.project = bob.folder / "home", bob.folder / "project"
    bob.record()
    there = bob.report("witness", "--push")["commit"]
    assert ann.refs(origin)[REF] == there
    assert len(ann.report("witness", "list")["witnesses"]) == 1
    listed = ann.report("witness", "list", "--fetch")["witnesses"]
    assert [(one["size"], one["remote"]) for one in listed] == [(58, "origin"), (54, "origin")]
    ann.git("push", "-q", "origin", f":{REF}")
    code, _, err = ann.colibri("witness", "list", "--fetch", "origin")
    assert (code, f"has lost commit {there[:10]}" in err) == (0, True)
    ann.remote("backup")
    code, _, err = ann.colibri("witness", "list", "--fetch", "backup")
    assert (code, "has no checkpoint of this ledger" in err) == (0, True)


# A branch.


def test_a_branch_keeps_the_checkpoints_of_several_ledgers(ann: Committer) -> None:
    origin = ann.remote()
    ann.git("push", "-q", "origin", "main:audit")  # it has files of its own
    ann.git("fetch", "-q", "origin", "audit:audit")
    done = ann.report("witness", "--branch", "audit", "--push")
    assert done["ref"] == "refs/heads/audit"
    files = ann.git("ls-tree", "-r", "--name-only", "audit").split()
    assert files == [".gitignore", f"{LOG}/checkpoint", f"{LOG}/consistency"]
    # Another clone adds to the branch: ours is put on top of it.
    other = ann.folder / "other"
    ann.git("clone", "-q", "-b", "audit", str(origin), str(other))
    (other / "file").write_text("theirs")
    ann.git("add", ".", at=other)
    ann.git("commit", "-q", "-m", "theirs", at=other)
    ann.git("push", "-q", "origin", "audit", at=other)
    ann.record()
    done = ann.report("witness", "--branch", "audit", "--push")
    assert ann.refs(origin)["refs/heads/audit"] == done["commit"] == ann.refs()["refs/heads/audit"]
    assert "file" in ann.git("ls-tree", "--name-only", "audit").split()
    assert ann.report("witness", "--branch", "audit")["new"] is False
    listed = ann.report("witness", "list")["witnesses"]
    assert [(one["kind"], one["size"], one["remote"]) for one in listed] == [
        ("branch", 58, "origin"),
        ("branch", 54, "origin"),
    ]
    assert {one["problem"] for one in listed} == {None}


def test_a_branch_with_other_work_is_not_moved_away_from_it(ann: Committer) -> None:
    origin = ann.remote()
    ann.report("witness", "--branch", "audit", "--push")
    other = ann.folder / "other"
    ann.git("clone", "-q", "-b", "audit", str(origin), str(other))
    ann.git("commit", "-q", "--allow-empty", "-m", "theirs", at=other)
    ann.git("push", "-q", "origin", "audit", at=other)
    ann.git("worktree", "add", "-q", "../audit", "audit")
    code, _, err = ann.colibri("witness", "--branch", "audit")
    assert (code, "the branch audit is checked out" in err) == (1, True)
    (ann.folder / "audit" / "mine").write_text("mine")
    ann.git("add", ".", at=ann.folder / "audit")
    ann.git("commit", "-q", "-m", "mine", at=ann.folder / "audit")
    ann.git("worktree", "remove", "--force", str(ann.folder / "audit"))
    mine = ann.refs()["refs/heads/audit"]
    code, _, err = ann.colibri("witness", "--branch", "audit", "--push")
    assert (code, "has diverged" in err) == (1, True)
    assert ann.git("merge-base", mine, "audit") == mine


def test_a_branch_that_two_clones_made_is_joined(ann: Committer) -> None:
    origin = ann.remote()
    other = ann.folder / "other"
    ann.git("init", "-q", str(other))
    (other / "theirs").write_text("theirs")
    ann.git("add", ".", at=other)
    ann.git("commit", "-q", "-m", "theirs", at=other)
    ann.git("push", "-q", str(origin), "main:audit", at=other)
    ann.report("witness", "--branch", "audit")
    done = ann.report("witness", "--branch", "audit", "--push")
    assert ann.refs(origin)["refs/heads/audit"] == done["commit"]
    files = ann.git("ls-tree", "-r", "--name-only", "audit").split()
    assert files == [f"{LOG}/checkpoint", f"{LOG}/consistency", "theirs"]


# Others at the same time.


def repository(ann: Committer) -> git.Repository:
    found = git.find(str(ann.project))
    assert found is not None
    return found


def test_a_checkpoint_that_others_added_meanwhile_is_built_on(
    ann: Committer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process adds to the chain between our look at it and our commit."""
    calls = []

    @contextmanager
    def meanwhile() -> Iterator[tuple[Config, Connection]]:
        with project.reading(argparse.Namespace(project=str(ann.project))) as found:
            yield found
        calls.append(1)
        if len(calls) == 2:  # after the look at the ledger
            ann.record()
            keep.keep(repository(ann), None, None, usual)

    def usual() -> AbstractContextManager[tuple[Config, Connection]]:
        return project.reading(argparse.Namespace(project=str(ann.project)))

    with ann.at_work(ann.project):
        _, kept = keep.keep(repository(ann), None, None, meanwhile)
        assert (kept.new, kept.checkpoint.size, len(calls)) == (False, 58, 4)
        monkeypatch.setattr(keep, "TRIES", 1)
        calls.clear()
        ann.record()
        with pytest.raises(Complaint, match="others keep adding to"):
            keep.keep(repository(ann), None, None, meanwhile)
    listed = ann.report("witness", "list")["witnesses"]
    assert {one["problem"] for one in listed} == {None}
    monkeypatch.undo()
    ann.remote()
    ann.report("witness", "--push")
    ann.git("update-ref", "-d", REF)
    ann.record()
    monkeypatch.setattr(keep, "TRIES", 1)
    code, _, err = ann.colibri("witness", "--push")
    assert (code, "others keep pushing to" in err) == (1, True)


def test_a_push_that_the_remote_does_not_keep_is_not_called_pushed(ann: Committer) -> None:
    server, reach = serve(ann, "post-receive", f"git update-ref -d {REF}")
    code, _, err = ann.colibri("witness", "--push", GIT_SSH_COMMAND=reach)
    assert code == 1
    assert f"took the push, but {REF} is not there now" in err
    assert ann.refs(server) == {}
    assert ann.tracking(LOG) not in ann.refs()


def serve(ann: Committer, hook: str, script: str) -> tuple[Path, str]:
    """A server behind ssh with a hook, and what reaches it."""
    server = ann.folder / "server.git"
    ann.git("init", "-q", "--bare", str(server))
    path = server / "hooks" / hook
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    reach = ann.folder / "ssh"
    reach.write_text('#!/bin/sh\nfor last; do :; done; exec sh -c "$last"\n')
    for one in (path, reach):
        one.chmod(0o755)
    ann.git("remote", "add", "origin", f"ssh://example.org{server}")
    return server, str(reach)


# What stops it.


def test_what_is_missing_is_named(ann: Committer) -> None:
    said: dict[str, Callable[[], tuple[int, str, str]]] = {
        "the repository has no remote origin": lambda: ann.colibri("witness", "--push"),
        "the repository has no remote up": lambda: ann.colibri("witness", "--push", "up"),
        "there is no git": lambda: ann.colibri("witness", PATH=""),
        "in TEST mode nothing is witnessed": lambda: ann.colibri("witness", COLIBRI_MODE="TEST"),
        "there is no SSH key": lambda: ann.colibri("witness", "--sign"),
        "the address of bad names the program git-remote-ext": lambda: bad_remote(ann),
    }
    for problem, attempt in said.items():
        code, _, err = attempt()
        assert code == 1, problem
        assert problem in err
        assert "hint: " in err
    assert REF not in ann.refs()
    shutil.rmtree(ann.project / ".git")
    code, _, err = ann.colibri("witness")
    assert (code, "is not in a git repository of yours" in err) == (1, True)
    shutil.rmtree(ann.project / "data")
    ann.git("init", "-q")
    code, _, err = ann.colibri("witness")
    assert (code, "colibri.db" in err) == (75, True)


def bad_remote(ann: Committer) -> tuple[int, str, str]:
    ann.git("remote", "add", "bad", "ext::evil")
    return ann.colibri("witness", "--push", "bad")


def test_an_empty_ledger_has_nothing_to_witness(tmp_path: Path) -> None:
    ann = Committer(tmp_path, story=False)
    with opened(ann.project):
        pass
    code, _, err = ann.colibri("witness")
    assert (code, "nothing was recorded yet" in err) == (1, True)
    message = ann.project / "message"
    message.write_text("words\n")
    assert ann.colibri("witness", "trailer", str(message))[0] == 0
    assert message.read_text() == "words\n"


def test_a_lock_that_somebody_left_is_named(ann: Committer) -> None:
    lock = ann.project / ".git" / f"{REF}.lock"
    lock.parent.mkdir(parents=True)
    lock.touch()
    code, _, err = ann.colibri("witness")
    assert (code, f"{lock}" in err, "File exists" in err) == (1, True, True), err
    assert REF not in ann.refs()


def test_an_only_remote_needs_no_name(ann: Committer) -> None:
    ann.remote("hub")
    assert ann.report("witness", "--push")["pushed"] == "hub"


def test_a_remote_that_is_away_leaves_the_checkpoint_here(ann: Committer) -> None:
    ann.git("remote", "add", "origin", str(ann.folder / "gone.git"))
    code, _, err = ann.colibri("witness", "--push")
    assert code == 1
    assert "cannot reach origin (" in err
    assert "the checkpoint is committed here: try again" in err
    assert REF in ann.refs()


def test_a_server_that_refuses_is_quoted(ann: Committer) -> None:
    _, reach = serve(ann, "update", "exit 1")
    code, _, err = ann.colibri("witness", "--push", GIT_SSH_COMMAND=reach)
    assert (code, "refused the checkpoint: hook declined" in err) == (1, True)
    assert "--branch NAME" in err


MISUSED = {
    "list --push": "--push does not go with list",
    "list --sign": "--sign does not go with list",
    "list --branch x": "--branch does not go with list",
    "--fetch": "--fetch goes with list",
    "trailer": "trailer takes one file",
    "list x": "trailer takes one file",
    "--branch a..b": "cannot be the name of a branch",
    "--branch x.lock": "cannot be the name of a branch",
}


@pytest.mark.parametrize(("command", "problem"), MISUSED.items())
def test_a_wrong_command_line_is_explained(ann: Committer, command: str, problem: str) -> None:
    code, _, err = ann.colibri("witness", *command.split())
    assert (code, problem in err) == (2, True), err


def test_a_hook_ends_in_time(ann: Committer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(witness, "HOOK_SECONDS", 0.3)
    ann.git("remote", "add", "origin", "ssh://example.org/x")
    reach = ann.folder / "ssh"
    reach.write_text("#!/bin/sh\nexec sleep 60\n")
    reach.chmod(0o755)
    code, out, err = ann.colibri(
        "witness", "--push", "origin", "--hook", GIT_SSH_COMMAND=str(reach)
    )
    assert (code, out) == (0, "")
    assert "the checkpoint was not kept: it took longer than 0 s" in err


@pytest.mark.parametrize("state", ["rebase-merge", "sequencer"])
def test_a_hook_leaves_a_rebase_alone(ann: Committer, state: str) -> None:
    (ann.project / ".git" / state).mkdir()
    assert ann.colibri("witness", "--hook") == (0, "", "")
    assert REF not in ann.refs()
    (ann.project / ".git" / state).rmdir()
    assert ann.colibri("witness", "--push", "https://example.org/x", "--hook") == (0, "", "")
    assert ann.colibri("witness", "--hook") == (0, "", "")
    assert REF in ann.refs()


def test_a_hook_adds_the_trailer_to_a_message_whatever_its_encoding(ann: Committer) -> None:
    message = ann.project / ".git" / "MESSAGE"
    message.write_bytes(b"gr\xfc\xdfe\n")
    assert ann.colibri("witness", "--hook", "trailer", str(message)) == (0, "", "")
    line = f"Colibri-Head: {LOG}@54:{root_of(ann.project, 54).hex()}"
    assert message.read_bytes() == b"gr\xfc\xdfe\n\n" + line.encode() + b"\n"
    shutil.rmtree(ann.project / "data")
    assert ann.colibri("witness", "--hook", "trailer", str(message)) == (0, "", "")


# Signatures.


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="it takes ssh-keygen")
def test_a_signed_checkpoint_names_its_signer(ann: Committer) -> None:
    key = ann.home / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    ann.report("witness")
    done = ann.report("witness", "--sign", str(key))
    assert (done["new"], done["signed"]) == (True, True), "the unsigned one is no substitute"
    assert ann.report("witness", "--sign", str(key))["new"] is False

    def first() -> tuple[Any, str]:
        listed = ann.report("witness", "list")["witnesses"]
        return listed[0]["signature"], ann.colibri("witness", "list")[1]

    signature, text = first()
    assert signature["state"] == "unknown key"
    assert "signed by an unknown key, SHA256:" in text
    signers = ann.home / ".config" / "colibri" / "allowed_signers"
    signers.parent.mkdir(parents=True)
    signers.write_text(f"ann@example.org {key.with_suffix('.pub').read_text()}")
    signature, text = first()
    assert signature == {"state": "good", "by": "ann@example.org"}
    assert "signed by ann@example.org" in text


def test_the_list_is_short_unless_all_are_asked_for(ann: Committer) -> None:
    code, out, _ = ann.colibri("witness", "list")
    assert (code, "holds no checkpoint of this ledger" in out) == (0, True)
    for _ in range(3):
        ann.record()
        ann.colibri("witness")
    code, out, err = ann.colibri("witness", "list", "--limit", "2")
    assert (code, len(out.splitlines())) == (0, 3)
    assert "1 older ones are not shown" in err
    assert (
        len(json.loads(ann.colibri("witness", "list", "--json", "--limit", "0")[1])["witnesses"])
        == 3
    )


def test_the_hashes_that_the_next_checkpoint_builds_on_are_kept(ann: Committer) -> None:
    """Only complete parts are, and a database that others write is left alone."""
    path = database_of(ann.project)

    def kept() -> list[object]:
        with reading(path) as db:
            rows = db.execute("SELECT hash FROM log_tree ORDER BY idx").fetchall()
            return [hash for (hash,) in rows]

    ann.record(110)
    with closing(apsw.Connection(str(path))) as other:
        other.execute("BEGIN IMMEDIATE")
        assert ann.report("witness")["new"]
        assert kept() == []
        other.execute("ROLLBACK")
    ann.record()
    size = ann.report("witness")["size"]
    assert kept() == [root_of(ann.project, 256)]
    ann.record()
    assert ann.report("witness")["root"] == root_of(ann.project, size + 4).hex()
    assert ann.colibri("verify")[0] == 0


@requires_strace
@pytest.mark.parametrize("pages", [CHECKPOINT_PAGES, CHECKPOINT_PAGES - 2])
def test_a_log_that_cannot_be_copied_back_is_reported_and_the_checkpoint_kept(
    ann: Committer, tmp_path: Path, pages: int
) -> None:
    """Found before anything is written to the ledger, or by the commit that makes it too long."""
    ann.record(110)
    database = database_of(ann.project)
    lengthen_log(database, pages)
    log = database.with_name("colibri.db-wal").read_bytes()
    words = (*failing_copies(database, tmp_path / "trace"), sys.executable, "-m", "colibri")
    env = ann.environment(**UNMEASURED)
    done = execute([*words, "witness"], cwd=ann.project, env=env)
    assert (done.returncode, "checkpoint of record" in done.stdout) == (75, True)
    assert f"committed pages cannot be copied into {database}" in done.stderr
    assert "nothing more is written" in done.stderr
    assert f"refs/colibri/witness/{LOG}" in ann.refs()
    if pages == CHECKPOINT_PAGES:
        assert database.with_name("colibri.db-wal").read_bytes() == log
    done = execute([*words, "witness", "--hook"], cwd=ann.project, env=env)
    assert (done.returncode, done.stdout) == (0, "")
    assert ann.colibri("witness")[0] == 0
    assert ann.colibri("verify")[0] == 0
