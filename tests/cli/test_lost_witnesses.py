"""A remote that no longer has the checkpoints which it had: the loss is named, by every command.

Specification 25.3, 25.8.
"""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.committer import Committer
from tests.support.ledger_writer import LOG

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="it takes git")

REF = f"refs/colibri/witness/{LOG}"


@pytest.fixture
def ann(tmp_path: Path) -> Committer:
    return Committer(tmp_path)


def listed(ann: Committer, *more: str) -> list[tuple[int, str | None, str | None]]:
    found = ann.report("witness", "list", *more)["witnesses"]
    return [(one["size"], one["remote"], one["formerly"]) for one in found]


def verdict(ann: Committer) -> str:
    code, out, err = ann.colibri("verify")
    assert code == 0, err
    return " ".join(out.split())


def delete(ann: Committer, origin: Path) -> None:
    ann.git("update-ref", "-d", REF, at=origin)


def make_again(ann: Committer, origin: Path) -> None:
    shutil.rmtree(origin)
    ann.git("init", "-q", "--bare", str(origin))


LOSSES = pytest.mark.parametrize("lose", [delete, make_again])
Lose = Callable[[Committer, Path], None]


@LOSSES
def test_a_push_puts_back_what_a_remote_lost_and_names_it(ann: Committer, lose: Lose) -> None:
    origin = ann.remote()
    lost = ann.report("witness", "--push")["commit"]
    lose(ann, origin)
    ann.record()
    code, out, err = ann.colibri("witness", "--push")
    assert (code, "kept at     origin (" in out) == (0, True)
    assert f"had lost commit {lost[:10]}, the checkpoint of record 54" in err
    assert "now it is there again" in err
    assert ann.git("rev-list", REF, at=origin).split()[-1] == lost
    assert listed(ann) == [(58, "origin", None), (54, "origin", None)]
    assert ann.report("witness", "--push")["lost"] == [], "once it is back, nothing is missing"


@LOSSES
def test_a_push_with_nothing_new_names_the_loss_too(ann: Committer, lose: Lose) -> None:
    origin = ann.remote()
    lost = ann.report("witness", "--push")["commit"]
    lose(ann, origin)
    done = ann.report("witness", "--push")
    assert (done["new"], done["pushed"]) == (False, "origin")
    assert done["lost"] == [{"commit": lost, "size": 54, "is_back": True}]


@LOSSES
def test_a_list_that_asks_the_remote_finds_the_loss_and_verify_repeats_it(
    ann: Committer, lose: Lose
) -> None:
    origin = ann.remote()
    lost = ann.report("witness", "--push")["commit"][:10]
    lose(ann, origin)
    assert "kept at origin" in verdict(ann), "nobody asked the remote yet"
    code, out, err = ann.colibri("witness", "list", "--fetch")
    assert (code, f"has lost commit {lost}, the checkpoint of record 54" in err) == (0, True)
    assert ("only here" in out, "origin had it and has lost it" in out) == (True, True)
    assert listed(ann) == [(54, None, "origin had it and has lost it")]
    said = verdict(ann)
    assert f"held to record 54 by commit {lost}" in said
    assert "kept at origin" not in said
    assert f"commit {lost}, record 54: origin had it and has lost it" in said
    assert ann.report("status")["witness"]["remote"] is None
    done = ann.report("witness", "--push")
    assert [(one["size"], one["is_back"]) for one in done["lost"]] == [(54, True)]
    assert "has lost it" not in verdict(ann)


def test_a_chain_that_was_put_back_there_to_an_older_commit_is_a_loss(ann: Committer) -> None:
    origin = ann.remote()
    older = ann.report("witness", "--push")["commit"]
    ann.record()
    newer = ann.report("witness", "--push")["commit"]
    ann.git("update-ref", REF, older, at=origin)
    assert listed(ann, "--fetch") == [
        (58, None, "origin had it and has lost it"),
        (54, "origin", None),
    ]
    ann.git("update-ref", REF, older, at=origin)
    done = ann.report("witness", "--push")
    assert done["lost"] == [{"commit": newer, "size": 58, "is_back": True}]
    ann.git("update-ref", REF, older, at=origin)
    ann.record()
    assert ann.report("witness", "--push")["lost"] == done["lost"], "without a list in between"


def test_what_was_replaced_there_stays_a_witness_and_is_named(ann: Committer) -> None:
    """Somebody pushed other commits that this ledger extends: the chain continues from them."""
    origin = ann.remote()
    older = ann.report("witness", "--push")["commit"]
    ann.record()
    lost = ann.report("witness", "--push")["commit"]
    tree = ann.git("rev-parse", f"{older}^{{tree}}")
    other = ann.git("commit-tree", tree, "-m", "another commit with it")
    ann.git("push", "-q", "-f", "origin", f"{other}:{REF}")
    done = ann.report("witness", "--push")
    assert done["lost"] == [{"commit": lost, "size": 58, "is_back": False}]
    assert ann.git("rev-list", REF, at=origin).split()[-1] == other
    assert (58, None, "origin had it and has lost it") in listed(ann)
    assert f"commit {lost[:10]}, record 58: origin had it and has lost it" in verdict(ann)


def test_a_branch_that_was_deleted_there_is_named(ann: Committer) -> None:
    origin = ann.remote()
    lost = ann.report("witness", "--push", "--branch", "audit")["commit"][:10]
    ann.git("update-ref", "-d", "refs/heads/audit", at=origin)
    _, _, err = ann.colibri("witness", "list", "--fetch")
    assert f"has lost commit {lost}" in err
    assert "kept at origin" not in verdict(ann)
    assert f"commit {lost}, record 54: origin had it and has lost it" in verdict(ann)
    _, _, err = ann.colibri("witness", "--push", "--branch", "audit")
    assert "now it is there again" in err


def test_a_hook_reports_the_loss(ann: Committer) -> None:
    origin = ann.remote()
    ann.report("witness", "--push")
    delete(ann, origin)
    code, _, err = ann.colibri("witness", "--push", "origin", "--hook")
    assert (code, "had lost commit" in err) == (0, True)


def test_what_one_repository_had_says_nothing_about_another_of_its_name(ann: Committer) -> None:
    ann.remote()
    commit = ann.report("witness", "--push")["commit"][:10]
    ann.git("remote", "remove", "origin")
    gone = "origin, which had it, is no remote of this repository any more"
    assert listed(ann) == [(54, None, gone)]
    assert f"commit {commit}, record 54: {gone}" in verdict(ann)
    assert "kept at origin" not in verdict(ann)
    ann.git("init", "-q", "--bare", str(ann.folder / "other.git"))
    ann.git("remote", "add", "origin", str(ann.folder / "other.git"))
    other = "origin, which had it, has another address now"
    assert listed(ann, "--fetch") == [(54, None, other)]
    done = ann.report("witness", "--push")
    assert done["lost"] == [], "this one never had it"
    assert listed(ann) == [(54, "origin", None)]
    assert "kept at origin" in verdict(ann)
