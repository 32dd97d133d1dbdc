"""What anybody may put into a repository, and what it costs: one object, never the others.

Specification 25.9. Whoever can push a branch must not be able to hide what a witness reveals.
"""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from colibri.cli import git, objects
from colibri.cli.witness import chain, collect, sources
from tests.support.committer import Committer
from tests.support.ledger_writer import LOG
from tests.support.program import tell_story

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="it takes git")

REF = f"refs/colibri/witness/{LOG}"
LARGE = 17 << 20  # bytes, more than one run of git may print


@pytest.fixture
def ann(tmp_path: Path) -> Committer:
    """A ledger with a witness that was pushed, and its branch as well."""
    ann = Committer(tmp_path)
    ann.remote()
    ann.git("push", "-q", "origin", "main")
    return ann


def cut(ann: Committer) -> Callable[[], None]:
    """Go on, push a witness, and forget what was added: from now on the log is truncated."""
    database = ann.project / "data" / "colibri.db"
    older = database.read_bytes()
    ann.record()
    ann.report("witness", "--push")

    def put_back() -> None:
        for path in database.parent.glob("colibri.db*"):
            path.unlink()
        database.write_bytes(older)

    return put_back


def verdict(ann: Committer, PATH: str | None = None) -> tuple[int, dict[str, Any], str]:
    env = {} if PATH is None else {"PATH": PATH}
    code, out, _ = ann.colibri("verify", "--json", at=None, **env)
    _, said, err = ann.colibri("verify", at=None, **env)
    return code, json.loads(out), " ".join(f"{said} {err}".split())


def write(ann: Committer, path: str, text: str) -> None:
    """A commit on a branch of its own, which everybody has after a fetch."""
    ann.git("checkout", "-q", "-B", "theirs")
    (ann.project / path).parent.mkdir(parents=True, exist_ok=True)
    (ann.project / path).write_text(text)
    ann.git("add", ".")
    ann.git("commit", "-q", "-m", "words")
    ann.git("push", "-q", "origin", "theirs")
    ann.git("checkout", "-q", "main")
    ann.git("fetch", "-q", "origin")


def large_file(ann: Committer) -> str:
    write(ann, f"{LOG}/checkpoint", "x" * LARGE)
    return f"its checkpoint has {LARGE:,} bytes"


def broken_file(ann: Committer) -> str:
    write(ann, f"{LOG}/checkpoint", "words\n")
    return "a checkpoint has three lines"


def large_note(ann: Committer) -> str:
    (ann.folder / "note").write_text("x" * LARGE)
    ann.git("notes", "--ref", "colibri", "add", "-F", str(ann.folder / "note"))
    return f"it has {LARGE + 1:,} bytes"


def large_message(ann: Committer) -> str:
    text = f"words\n\n{sources.KEY}: {LOG}@1:{'0' * 64}\n{'x' * LARGE}\n"
    (ann.folder / "message").write_text(text)
    ann.git("commit", "-q", "--allow-empty", "-F", str(ann.folder / "message"))
    ann.git("push", "-q", "origin", "main")
    return "bytes: it was not read"


def large_tree(ann: Committer) -> str:
    """The chain itself continues with a commit that has very many files."""
    empty = ann.git("hash-object", "-w", "--stdin")
    listed = "".join(f"100644 blob {empty}\t{number:060}\n" for number in range(15_000))
    tree = ann.git("mktree", input=listed)
    made = ann.git("commit-tree", tree, "-p", REF, "-m", "x")
    ann.git("update-ref", REF, made)
    return f"commit {made[:10]}: its tree cannot be read"


def no_ref(ann: Committer) -> str:
    (ann.project / ".git" / REF).write_text("garbage\n")
    return f"{REF}: git cannot read this ref"


def no_commit(ann: Committer) -> str:
    (ann.project / ".git" / REF).write_text("1" * 40 + "\n")
    return f"{REF}: git failed: fatal: bad object"


def a_damaged_object(ann: Committer) -> str:
    blob = ann.git("rev-parse", f"{REF}:checkpoint")
    file = ann.project / ".git" / "objects" / blob[:2] / blob[2:]
    file.chmod(0o600)
    file.write_bytes(b"x" * 20)
    return "its checkpoint is damaged or was not fetched"


def no_head(ann: Committer) -> str:
    (ann.project / ".git" / "HEAD").write_text("")
    return "refs/colibri: the repository has no HEAD"


UNREAD = (
    large_file,
    broken_file,
    large_note,
    large_message,
    large_tree,
    no_ref,
    no_commit,
    a_damaged_object,
    no_head,
)


@pytest.mark.parametrize("attack", UNREAD, ids=[one.__name__ for one in UNREAD])
def test_a_witness_that_cannot_be_read_is_named_and_nobody_can_tell(
    ann: Committer, attack: Callable[[Committer], str]
) -> None:
    ann.report("witness", "--push")
    problem = attack(ann)
    code, judged, said = verdict(ann)
    assert (code, judged["verdict"]) == (2, "cannot tell"), said
    assert judged["lines"]["witnessed"] == "not checked"
    assert problem in judged["reason"]
    assert "unread" in [one["result"] for one in judged["witnesses"]]
    assert problem.rpartition(": ")[2] in said


HIDING = [one for one in UNREAD if one not in (no_head, a_damaged_object)]  # nothing is left then


@pytest.mark.parametrize("attack", HIDING, ids=[one.__name__ for one in HIDING])
def test_it_hides_nothing_that_others_reveal(
    ann: Committer, attack: Callable[[Committer], str]
) -> None:
    """The log is truncated, and the witness that was pushed before says so."""
    put_back = cut(ann)
    attack(ann)
    put_back()
    code, judged, said = verdict(ann)
    found = [one["code"] for one in judged["findings"]]
    assert (code, judged["verdict"], found) == (1, "bad", ["diverged"]), said


def test_settings_that_git_cannot_read_leave_the_verdict_open(ann: Committer) -> None:
    """And no traceback reaches the user."""
    ann.report("witness")
    (ann.project / ".git" / "config").write_text("[core\n")
    code, judged, said = verdict(ann)
    assert (code, judged["lines"]["witnessed"]) == (2, "not checked")
    assert "bad config line 1" in said


def test_a_repository_that_somebody_makes_inside_hides_no_witness_of_the_one_around_it(
    ann: Committer,
) -> None:
    """The project is a folder of a repository; then its ledger is put back and `git init` run."""
    part = ann.project / "part"
    part.mkdir()
    tell_story(part)
    shutil.copytree(part / "data", ann.folder / "older")
    ann.record(project=part)
    commit = ann.report("witness", at=part)["commit"][:10]
    ann.git("init", "-q", at=part)
    assert ann.report("verify", at=part)["held_to"] == 58, "the control"
    assert ann.report("status", at=part)["witness"]["size"] == 58
    shutil.rmtree(part / "data")
    shutil.copytree(ann.folder / "older", part / "data")
    code, out, _ = ann.colibri("verify", "--json", at=part)
    (found,) = json.loads(out)["findings"]
    assert (code, found["code"], commit in found["detail"]) == (1, "diverged", True)
    (ann.project / ".git" / "config").write_text("[core\n")
    assert ann.colibri("verify", at=part)[0] == 2, "its refs name this log"
    shutil.rmtree(ann.project / ".git" / "refs" / "colibri")
    assert ann.colibri("verify", at=part)[0] == 0, "a broken one has no part in it otherwise"


def test_refs_of_others_that_are_broken_cost_nothing(ann: Committer) -> None:
    ann.report("witness", "--push")
    (ann.project / ".git" / "refs" / "heads" / "bad").write_text("garbage\n")
    (ann.project / ".git" / "refs" / "remotes" / "origin" / "gone").write_text("1" * 40 + "\n")
    code, judged, said = verdict(ann)
    assert (code, judged["held_to"]) == (0, 54), said


def test_a_checkpoint_that_a_later_commit_removed_from_a_branch_still_counts(
    ann: Committer,
) -> None:
    """A host that refuses forced pushes takes a commit that deletes the folder."""
    database = ann.project / "data" / "colibri.db"
    older = database.read_bytes()
    ann.record()
    ann.report("witness", "--push", "--branch", "audit")
    ann.git("update-ref", "-d", "refs/heads/audit")
    ann.git("update-ref", "-d", ann.tracking("heads/audit"))
    ann.git("fetch", "-q", "origin")
    ann.git("checkout", "-q", "audit")
    ann.git("rm", "-q", "-r", LOG)
    ann.git("commit", "-q", "--allow-empty", "-m", "tidy up")
    ann.git("push", "-q", "origin", "audit")
    ann.git("checkout", "-q", "main")
    ann.git("branch", "-q", "-D", "audit")
    for path in database.parent.glob("colibri.db*"):
        path.unlink()
    database.write_bytes(older)
    code, judged, said = verdict(ann)
    assert (code, [one["code"] for one in judged["findings"]]) == (1, ["diverged"]), said
    assert [(one["kind"], one["remote"]) for one in judged["witnesses"]] == [("branch", "origin")]


def test_what_cannot_be_read_is_accepted_once_with_a_reason_that_stays(ann: Committer) -> None:
    """A message stays in the history: it must not spoil every later verdict."""
    ann.report("witness", "--push")
    large_message(ann)
    assert ann.colibri("heads")[0] == 1
    done = ann.report("heads", "accept", "--why", "somebody pushed a film")
    assert done["accepted"] == 1
    code, judged, said = verdict(ann)
    assert (code, judged["lines"]["witnessed"]) == (0, "yes"), said
    assert "(somebody pushed a film): the message of commit" in said
    assert ann.colibri("heads")[0] == 0


def test_without_git_what_the_files_name_is_known(ann: Committer) -> None:
    assert verdict(ann, PATH="")[0] == 0, "there was never a witness"
    ann.report("witness")
    code, judged, _ = verdict(ann, PATH="")
    assert (code, judged["reason"]) == (
        2,
        f"a witness of this log cannot be read: {REF}: there is no git",
    )
    ann.git("pack-refs", "--all")
    assert verdict(ann, PATH="")[0] == 2


def test_a_repository_of_another_user_is_not_asked_and_named(
    ann: Committer, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann.report("witness")
    monkeypatch.setattr(git, "find", lambda _: None)
    code, judged, _ = verdict(ann)
    assert code == 2
    assert judged["reason"].endswith(f"{REF}: the repository is not one of yours")


def test_a_long_chain_of_signed_commits_is_read_to_its_end(ann: Committer) -> None:
    """Signatures of RSA keys, and honest all of it: 18 MB that git would have to print."""
    note = ann.git("show", f"{ann.report('witness')['commit']}:checkpoint") + "\n"
    parts = []
    for number in range(6_000):
        said, signature = f"{chain.MESSAGE}54\n", f"{number:064}" * 48
        parts.append(
            f"commit {REF}\ncommitter A <a@example.org> 1700000000 +0000\n"
            f"data {len(said)}\n{said}\n"
            f"M 100644 inline checkpoint\ndata {len(note)}\n{note}\n"
            f"M 100644 inline checkpoint.sig\ndata {len(signature)}\n{signature}\n"
        )
    ann.git("fast-import", "--quiet", "--force", input="".join(parts))
    with ann.at_work(ann.project):
        found = collect.found(_repository(ann), LOG)
    assert len(found) == 6_000
    assert {one.checkpoint and one.checkpoint.size for one in found} == {54}


def _repository(ann: Committer) -> git.Repository:
    found = git.find(str(ann.project))
    assert found is not None
    return found


LIMITS = {
    "commits of a chain": (chain, "MAX_COMMITS", "it has more than 1 commits"),
    "trailers": (sources, "MAX_TRAILERS", "more than 1 name checkpoints"),
    "notes": (sources, "MAX_NOTES", "there are more than 1 notes"),
}


@pytest.mark.parametrize(("module", "limit", "problem"), LIMITS.values(), ids=LIMITS)
def test_a_limit_that_is_reached_is_named(
    ann: Committer, monkeypatch: pytest.MonkeyPatch, module: Any, limit: str, problem: str
) -> None:
    for _ in range(2):
        ann.record()
        done = ann.report("witness")
        trailer = f"{sources.KEY}: {LOG}@{done['size']}:{done['root']}"
        ann.git("commit", "-q", "--allow-empty", "-m", f"x\n\n{trailer}")
        ann.git("notes", "--ref", "colibri", "add", "-m", trailer)
    assert verdict(ann)[0] == 0
    monkeypatch.setattr(module, limit, 1)
    monkeypatch.setattr(chain, "PAGE", 1)
    monkeypatch.setattr(sources, "PAGE", 1)
    code, judged, _ = verdict(ann)
    assert (code, problem in judged["reason"]) == (2, True), judged["reason"]


def test_pages_and_batches_lose_nothing(ann: Committer, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(4):
        ann.record()
        done = ann.report("witness")
        trailer = f"{sources.KEY}: {LOG}@{done['size']}:{done['root']}"
        ann.git("commit", "-q", "--allow-empty", "-m", f"x\n\n{trailer}")
    with ann.at_work(ann.project):
        whole = collect.found(_repository(ann), LOG)
        monkeypatch.setattr(chain, "PAGE", 2)
        monkeypatch.setattr(sources, "PAGE", 2)
        monkeypatch.setattr(objects, "BATCH", 1)
        monkeypatch.setattr(objects, "MOST_NAMES", 3)
        assert collect.found(_repository(ann), LOG) == whole
    assert [one.problem for one in whole] == [""] * 8


def test_objects_are_known_by_their_sizes_before_they_are_read(ann: Committer) -> None:
    found = _repository(ann)
    small, large = (ann.git("hash-object", "-w", "--stdin", input="x" * n) for n in (5, LARGE))
    damaged = ann.git("hash-object", "-w", "--stdin", input="damaged")
    file = ann.project / ".git" / "objects" / damaged[:2] / damaged[2:]
    file.chmod(0o600)
    file.write_bytes(file.read_bytes()[:-4] + b"\1\2\3\4")
    with ann.at_work(ann.project):
        facts = objects.facts(found, [small, "HEAD", "HEAD:none", large, damaged])
        kinds = [one and (one.kind, one.size) for one in facts[:4]]
        assert kinds[0::2] == [("blob", 5), None]
        assert (facts[1] and facts[1].kind, kinds[3]) == ("commit", ("blob", LARGE))
        asked = [objects.Fact(id, "blob", 5) for id in (damaged, small, "0" * 40)]
        assert dict(objects.read(found, asked)) == {small: b"xxxxx"}
