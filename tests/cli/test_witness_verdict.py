"""What `verify`, `status` and `doctor` make of witnesses in git.

Specification 25.8, 24.5, 24.6.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from colibri.cli import git
from colibri.cli.witness import chain
from colibri.core.checkpoint import Checkpoint
from colibri.store import ledger, log_tree
from tests.support.committer import Committer
from tests.support.ledger_reader import reading
from tests.support.ledger_writer import LOG

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="it takes git")

REF = f"refs/colibri/witness/{LOG}"
OTHER = "colibri/" + "f" * 32


@pytest.fixture
def ann(tmp_path: Path) -> Committer:
    return Committer(tmp_path)


def verdict(ann: Committer) -> tuple[int, dict[str, Any], str]:
    """The exit code, the verdict, and the same in words on one line."""
    code, out, _ = ann.colibri("verify", "--json")
    said = " ".join(ann.colibri("verify")[1].split())
    return code, json.loads(out), said


def forge(ann: Committer, checkpoint: Checkpoint, **files: str) -> str:
    """A commit on the chain that nobody checked."""
    found = git.find(str(ann.project))
    assert found is not None
    with ann.at_work(ann.project):
        before = chain.tip(found, REF)
        made = chain.commit(found, chain.place(LOG), before, checkpoint, consistency="", **files)
        chain.advance(found, REF, made, before)
    return made[:10]


def test_a_verdict_names_the_witness_and_counts_what_is_newer(ann: Committer) -> None:
    ann.remote()
    commit = ann.report("witness", "--push")["commit"][:10]
    code, judged, said = verdict(ann)
    assert (code, judged["lines"]["witnessed"], judged["held_to"]) == (0, "yes", 54)
    assert f"held to record 54 by commit {commit}, kept at origin" in said
    ann.record()
    _, judged, said = verdict(ann)
    assert judged["newer"] == 4
    assert "4 records are newer than any witness" in said


def test_a_log_that_was_cut_off_or_rewritten_is_seen(ann: Committer) -> None:
    """The ledger alone looks sound: only the witness tells."""
    database = ann.project / "data" / "colibri.db"
    older = database.read_bytes()
    ann.record()
    commit = ann.report("witness")["commit"][:10]
    for path in database.parent.glob("colibri.db*"):
        path.unlink()
    database.write_bytes(older)
    code, judged, said = verdict(ann)
    assert (code, judged["lines"]["witnessed"]) == (1, "no")
    assert [one["code"] for one in judged["findings"]] == ["diverged"]
    assert f"commit {commit} has the records up to 58" in said
    assert "the log ends at record 54" in said
    code, _, err = ann.colibri("witness")
    assert code == 1
    assert "the ledger does not extend the checkpoint of record 58" in err
    assert "colibri heads accept --why TEXT" in err


def test_an_accepted_divergence_lets_the_chain_go_on_with_the_reason_in_it(ann: Committer) -> None:
    database = ann.project / "data" / "colibri.db"
    older = database.read_bytes()
    ann.record()
    ann.report("witness")
    for path in database.parent.glob("colibri.db*"):
        path.unlink()
    database.write_bytes(older)
    assert ann.colibri("heads", "accept", "--why", "an old disk came back")[0] == 0
    code, judged, said = verdict(ann)
    assert (code, judged["lines"]["witnessed"]) == (0, "yes"), said
    assert "an old disk came back" in said
    assert ann.report("witness")["new"]
    assert ann.git("show", f"{REF}:diverged") == "an old disk came back"
    assert {one["problem"] for one in ann.report("witness", "list")["witnesses"]} == {None}
    code, judged, _ = verdict(ann)
    assert (code, judged["lines"]["witnessed"]) == (0, "yes")


def test_after_a_loss_that_was_accepted_a_remote_that_is_ahead_is_continued(ann: Committer) -> None:
    """The machine is lost; a new clone and an older copy of the ledger go on."""
    origin = ann.remote()
    ann.git("push", "-q", "origin", "main")
    assert ann.colibri("backup", "../old.db")[0] == 0
    ann.record()
    lost = ann.report("witness", "--push")["commit"]
    shutil.rmtree(ann.project)
    shutil.rmtree(ann.home / ".local", ignore_errors=True)
    ann.git("clone", "-q", str(origin), str(ann.project), at=ann.folder)
    assert ann.colibri("restore", "../old.db")[0] == 0
    assert ann.colibri("note", "we go on")[0] == 0
    code, _, err = ann.colibri("witness", "--push")
    assert (code, "has diverged" in err, "colibri heads accept" in err) == (1, True, True)
    assert ann.report("heads", "accept", "--why", "the machine was lost")["accepted"] == 1
    done = ann.report("witness", "--push")
    assert ann.refs(origin)[REF] == done["commit"], "nothing was forced"
    assert ann.git("rev-parse", f"{REF}~1") == lost
    assert ann.git("show", f"{REF}:diverged") == "the machine was lost"
    code, judged, said = verdict(ann)
    assert (code, judged["lines"]["witnessed"]) == (0, "yes"), said


def put_back(ann: Committer, older: bytes) -> None:
    database = ann.project / "data" / "colibri.db"
    for path in database.parent.glob("colibri.db*"):
        path.unlink()
    database.write_bytes(older)


@pytest.fixture
def accepted(ann: Committer) -> Committer:
    """A loss that three checkpoints and a trailer reveal; it was accepted, and that was pushed."""
    ann.remote()
    ann.git("push", "-q", "origin", "main")
    older = (ann.project / "data" / "colibri.db").read_bytes()
    for _ in range(3):
        ann.record()
        done = ann.report("witness", "--push")
    trailer = f"Colibri-Head: {LOG}@{done['size']}:{done['root']}"
    ann.git("commit", "-q", "--allow-empty", "-m", f"x\n\n{trailer}")
    put_back(ann, older)
    assert verdict(ann)[0] == 1
    assert ann.report("heads", "accept", "--why", "an old disk came back")["accepted"] == 4
    ann.report("witness", "--push")
    shutil.rmtree(ann.home / ".local")
    return ann


def test_an_acceptance_survives_the_state_directory(accepted: Committer) -> None:
    code, judged, said = verdict(accepted)
    assert (code, judged["lines"]["witnessed"]) == (0, "yes"), said
    results = [one["result"] for one in judged["witnesses"]]
    assert sorted(results) == ["accepted"] * 4 + ["held"]
    commit = accepted.git("rev-parse", REF)[:10]
    assert f"in commit {commit} (an old disk came back): the message of commit" in said
    assert "the log ends at record" in said or "the log has other records up to there" in said
    assert accepted.colibri("note", "on we go")[0] == 0
    assert accepted.report("witness", "--push")["new"]
    assert verdict(accepted)[0] == 0, "the next commit has it too"
    assert accepted.report("witness")["new"] is False


def test_every_other_machine_knows_what_was_accepted_and_no_path(accepted: Committer) -> None:
    there = accepted.folder / "there"
    accepted.git("clone", "-q", str(accepted.folder / "origin.git"), str(there))
    shutil.copytree(accepted.project / "data", there / "data")
    (accepted.folder / "other").mkdir()
    home = {"HOME": str(accepted.folder / "other")}
    fetched = accepted.colibri("witness", "list", "--fetch", at=there, **home)
    assert fetched[0] == 0, fetched
    code, out, _ = accepted.colibri("verify", "--json", at=there, **home)
    assert (code, json.loads(out)["lines"]["witnessed"]) == (0, "yes")
    text = accepted.git("show", f"{REF}:accepted")
    assert str(accepted.project) not in text and os.uname().nodename not in text


def test_two_copies_that_push_to_one_remote_accept_each_other_once(ann: Committer) -> None:
    """Each has a home of its own, as on two machines, and each goes on after it."""
    ann.remote()
    ann.report("witness", "--push")
    bob = Committer.__new__(Committer)
    bob.folder = ann.folder.with_name(f"{ann.folder.name}-bob")
    bob.home, bob.project = bob.folder / "home", bob.folder / "project"
    shutil.copytree(ann.folder, bob.folder, symlinks=True)

    def push(who: Committer, text: str) -> int:
        assert who.colibri("note", text)[0] == 0
        return who.colibri("witness", "--push")[0]

    assert push(bob, "of Bob") == 0
    for who, text in ((ann, "of Ann"), (bob, "more of Bob")):
        assert push(who, text) == 1
        assert verdict(who)[0] == 1
        assert who.colibri("heads", "accept", "--why", "the project was copied")[0] == 0
        assert who.colibri("witness", "--push")[0] == 0
    for who, text in ((ann, "1"), (ann, "2"), (bob, "3"), (bob, "4"), (ann, "5"), (bob, "6")):
        assert push(who, text) == 0, "it was accepted once"
        code, judged, said = verdict(who)
        assert (code, judged["lines"]["witnessed"]) == (0, "yes")
        assert "(the project was copied)" in said
        assert ", kept at origin" in said
        assert {one["problem"] for one in who.report("witness", "list")["witnesses"]} == {None}
    shutil.copytree(ann.project / "data", ann.folder / "older")
    assert push(ann, "cut off") == 0
    shutil.rmtree(ann.project / "data")
    shutil.copytree(ann.folder / "older", ann.project / "data")
    code, judged, _ = verdict(ann)
    assert (code, {one["code"] for one in judged["findings"]}) == (1, {"diverged"})


def test_a_later_loss_is_not_covered_by_what_was_accepted(accepted: Committer) -> None:
    older = (accepted.project / "data" / "colibri.db").read_bytes()
    accepted.colibri("note", "soon lost")
    accepted.report("witness", "--push")
    put_back(accepted, older)
    code, judged, _ = verdict(accepted)
    assert (code, {one["code"] for one in judged["findings"]}) == (1, {"diverged"})


def test_the_reason_in_place_of_a_proof_accepts_the_checkpoint_before(ann: Committer) -> None:
    lost = forge(ann, Checkpoint(LOG, 5000, b"\1" * 32))
    assert verdict(ann)[0] == 1
    forge(ann, Checkpoint(LOG, 5001, b"\2" * 32), diverged="an excuse\n")
    assert verdict(ann)[0] == 1, "of a log that is not this one"
    ann.git("update-ref", REF, f"{REF}~1")
    with reading(ann.project / "data" / "colibri.db") as db:
        now = log_tree.checkpoint(db)
    commit = forge(ann, now, diverged="the machine was lost\n")
    code, _, said = verdict(ann)
    assert code == 0, said
    assert f"in commit {commit} (the machine was lost): commit {lost} has the records" in said


def test_a_restore_is_accepted_in_git_as_well(ann: Committer) -> None:
    assert ann.colibri("backup", "../old.db")[0] == 0
    ann.colibri("note", "soon lost")
    ann.report("witness")
    assert ann.report("restore", "../old.db", "--force")["accepted"] == 2, "a head, and the commit"
    assert ann.report("witness")["new"]
    assert ann.report("witness")["new"] is False
    shutil.rmtree(ann.home / ".local")
    code, _, said = verdict(ann)
    assert (code, "(restored from old.db, a copy of the database): commit" in said) == (0, True)


NOT_ACCEPTED = {
    "for no record": {"by": {"seq": 0, "leaf": "0" * 64}},
    "for a record of another log": {"by": {"seq": 3, "leaf": "0" * 64}},
    "of another log": {"log": OTHER},
    "with a path": {"path": "/"},
    "no object": None,
}


@pytest.mark.parametrize("changes", NOT_ACCEPTED.values(), ids=NOT_ACCEPTED)
def test_an_acceptance_that_is_not_of_this_log_accepts_nothing(
    ann: Committer, changes: dict[str, Any] | None
) -> None:
    with reading(ann.project / "data" / "colibri.db") as db:
        now, leaf = log_tree.checkpoint(db), ledger.leaf_at(db, 3) or b""
    forge(ann, Checkpoint(LOG, 5000, b"\1" * 32))
    by = {"seq": 3, "leaf": leaf.hex()}
    said = {"log": LOG, "seq": 5000, "root": "01" * 32, "at": "2026", "why": "x", "by": by}
    forge(ann, now, accepted=json.dumps(said) + "\n")
    assert verdict(ann)[0] == 0, "whoever can write the chain can accept"
    forged = "x" if changes is None else json.dumps(said | changes)
    ann.git("update-ref", REF, f"{REF}~1")
    forge(ann, now, accepted=f"{forged}\n")
    assert verdict(ann)[0] == 1


FORGED = {
    "another root": (Checkpoint(LOG, 50, b"\1" * 32), "the log has other records up to there"),
    "a size beyond the log": (Checkpoint(LOG, 5000, b"\1" * 32), "the log ends at record 54"),
}


@pytest.mark.parametrize(("forged", "detail"), FORGED.values(), ids=FORGED)
def test_a_forged_checkpoint_is_named_for_what_it_is(
    ann: Committer, forged: Checkpoint, detail: str
) -> None:
    commit = forge(ann, forged)
    code, judged, said = verdict(ann)
    assert (code, [one["code"] for one in judged["findings"]]) == (1, ["diverged"])
    assert f"commit {commit} has the records up to {forged.size:,}" in said
    assert detail in said


def test_a_forged_trailer_is_named_with_its_commit(ann: Committer) -> None:
    ann.git("commit", "-q", "--allow-empty", "-m", f"x\n\nColibri-Head: {LOG}@9:{'0' * 64}")
    commit = ann.git("rev-parse", "HEAD")[:10]
    code, _, said = verdict(ann)
    assert (code, f"the message of commit {commit} has the records up to 9" in said) == (1, True)


def test_a_checkpoint_of_another_log_says_nothing_about_this_one(ann: Committer) -> None:
    commit = forge(ann, Checkpoint(OTHER, 5, b"\1" * 32))
    code, judged, said = verdict(ann)
    assert (code, judged["witnesses"][0]["result"]) == (0, "other-log")
    assert f"commit {commit}" in said
    code, _, err = ann.colibri("witness")
    assert code == 1
    assert f"commit {commit} does not belong to this chain" in err
    assert OTHER in err


def test_a_ledger_that_was_deleted_and_begun_again_is_named(ann: Committer) -> None:
    """The new one is sound, and what git has of the old one is not forgotten."""
    ann.remote()
    commit = ann.report("witness", "--push")["commit"][:10]
    for path in (ann.project / "data").glob("colibri.db*"):
        path.unlink()
    shutil.rmtree(ann.home / ".local", ignore_errors=True)
    assert ann.colibri("note", "a new life")[0] == 0
    code, judged, said = verdict(ann)
    told = f"{LOG} to record 54 by commit {commit}, kept at origin"
    assert (code, f"other logs are witnessed in this repository: {told}" in said) == (0, True)
    assert len(judged["remarks"]) == 1
    assert ann.report("witness", "list")["witnesses"] == [], "it is not of this ledger"
    ann.report("witness", "--branch", "audit")
    for path in (ann.project / "data").glob("colibri.db*"):
        path.unlink()
    assert ann.colibri("note", "and another")[0] == 0
    said = verdict(ann)[2]
    assert said.count(" by commit ") == 2 and told in said


def test_what_cannot_be_read_on_the_chain_is_reported(ann: Committer) -> None:
    ann.git("update-ref", REF, "HEAD")
    commit = ann.git("rev-parse", "HEAD")[:10]
    code, _, said = verdict(ann)
    assert (code, f"commit {commit} cannot be read: the commit has no checkpoint" in said) == (
        2,
        True,
    )
    code, _, err = ann.colibri("witness")
    assert (code, "the commit has no checkpoint" in err) == (1, True)


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="it takes ssh-keygen")
def test_a_verdict_names_the_signature(ann: Committer) -> None:
    key = ann.home / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    done = ann.report("witness", "--sign", str(key))
    assert "unknown key signature of SHA256:" in verdict(ann)[2]
    note = ann.git("show", f"{REF}:checkpoint") + "\n"
    command = ["ssh-keygen", "-Y", "sign", "-n", "git", "-f", str(key)]
    signed = subprocess.run(command, input=note.encode(), capture_output=True, check=True)
    root = bytes.fromhex(done["root"])
    forge(ann, Checkpoint(LOG, 54, root), checkpoint_sig=signed.stdout.decode())
    assert "other namespace signature of git" in verdict(ann)[2]


def make_older(ann: Committer, commit: str, *, hours: int) -> str:
    """The same commit as if it had been made hours before, pushed."""
    seconds = int(ann.git("log", "-1", "--format=%ct", commit))
    text = ann.git("cat-file", "commit", commit) + "\n"
    text = text.replace(f"> {seconds} ", f"> {seconds - hours * 3600} ")
    older = ann.git("hash-object", "-t", "commit", "-w", "--stdin", input=text)
    ann.git("push", "-q", "-f", "origin", f"{older}:{REF}")
    ann.git("update-ref", REF, older)
    ann.git("update-ref", ann.tracking(LOG), older)
    return older


def test_status_and_doctor_show_the_newest_witness_and_its_age(ann: Committer) -> None:
    assert ann.report("status")["witness"] is None
    assert "witness     none: " in ann.colibri("status")[1]
    ann.remote()
    done = ann.report("witness", "--push")
    ann.record()
    seen = ann.report("status")["witness"]
    where = f"commit {done['commit'][:10]}"
    assert (seen["size"], seen["kind"], seen["where"], seen["remote"]) == (
        54,
        "ref",
        where,
        "origin",
    )
    assert 0 <= seen["age_seconds"] < 600
    where = f"commit {make_older(ann, done['commit'], hours=73)[:10]}"
    seen = ann.report("status")["witness"]
    assert (seen["where"], seen["age_seconds"] // 3600) == (where, 73)
    line = f"record 54 by {where}, kept at origin, {seen['at']} (3 days ago); 4 records newer"
    assert f"witness     {line}" in ann.colibri("status")[1]
    findings = [one for one in ann.report("doctor")["findings"] if one["check"] == "witness"]
    assert [one["detail"] for one in findings] == [line]
    ann.colibri("setup", "git", "--write")
    findings = [one for one in ann.report("doctor")["findings"] if one["check"] == "witness"]
    assert [one["detail"] for one in findings] == [
        line,
        f"{ann.project}/.git/hooks: hooks that keep a witness at each commit and push",
    ]
    (ann.project / ".git" / "hooks" / "pre-push").unlink()
    findings = [one for one in ann.report("doctor")["findings"] if one["check"] == "witness"]
    assert (findings[1]["status"], findings[1]["hint"]) == ("warning", "colibri setup git --write")
    ann.git("config", "core.hooksPath", "/dev/null")
    assert len([one for one in ann.report("doctor")["findings"] if one["check"] == "witness"]) == 1
