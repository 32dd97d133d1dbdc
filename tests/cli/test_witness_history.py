"""Witnesses in a repository that lives: what rebase, squash, amend and clones leave of them.

Specification 25.8. Outcomes, each tried with git itself:

    own ref                 untouched by all of them
    rebase, cherry-pick     the trailer is copied along
    merge --squash          the trailer is kept, indented, and found
    amend                   the message keeps it unless it is replaced; the hook adds the newest
    a shallow clone         holds the trailers of the commits that it has
"""

import shutil
import time
from pathlib import Path

import pytest

from colibri.cli import git
from colibri.cli.witness import chain, collect, message
from colibri.cli.witness.collect import Collected
from colibri.core import checkpoint
from colibri.core.checkpoint import Checkpoint
from tests.support.committer import Committer
from tests.support.ledger_writer import LOG
from tests.support.program import tell_story

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="it takes git")

REF = f"refs/colibri/witness/{LOG}"
OTHER = "colibri/" + "f" * 32
NOTHING = Collected([], [], [])


def point(size: int, log: str = LOG) -> Checkpoint:
    return Checkpoint(log, size, size.to_bytes(32, "big"))


def line(size: int, log: str = LOG) -> str:
    return f"Colibri-Head: {checkpoint.trailer(point(size, log))}"


def collected(ann: Committer, at: Path | None = None) -> Collected:
    with ann.at_work(ann.project):
        return collect.collect(str(at or ann.project), LOG)


def sizes(ann: Committer, kind: str, at: Path | None = None) -> list[int]:
    return sorted(one.size for one in collected(ann, at).witnesses if one.kind == kind)


@pytest.fixture
def ann(tmp_path: Path) -> Committer:
    return Committer(tmp_path, story=False)


def commit(ann: Committer, name: str, size: int) -> str:
    (ann.project / name).write_text(name)
    ann.git("add", ".")
    ann.git("commit", "-q", "-m", name, "-m", line(size))
    return ann.git("rev-parse", "HEAD")


def test_rewritten_history_keeps_its_trailers(ann: Committer) -> None:
    ann.git("branch", "base")
    commit(ann, "a", 10)
    commit(ann, "b", 20)
    ann.git("checkout", "-q", "-b", "topic", "base")
    commit(ann, "c", 30)
    ann.git("rebase", "-q", "main")
    assert sizes(ann, "trailer") == [10, 20, 30], "a rebase"
    ann.git("checkout", "-q", "-b", "picked", "base")
    ann.git("cherry-pick", "-x", "main")
    ann.git("branch", "-q", "-D", "main", "topic")
    assert sizes(ann, "trailer") == [20], "a cherry-pick of b, and nothing else is left"
    ann.git("commit", "-q", "--amend", "-m", "another message")
    assert sizes(ann, "trailer") == [], "amend with another message"


def test_a_squash_merge_keeps_them_indented(ann: Committer) -> None:
    ann.git("checkout", "-q", "-b", "topic")
    commit(ann, "a", 10)
    commit(ann, "b", 20)
    ann.git("checkout", "-q", "main")
    ann.git("merge", "-q", "--squash", "topic")
    ann.git("commit", "-q", "--no-edit")
    ann.git("branch", "-q", "-D", "topic")
    assert sizes(ann, "trailer") == [10, 20]
    assert ann.git("log", "-1", "--format=%(trailers:key=Colibri-Head,valueonly)") == "", "to git"


def test_a_shallow_clone_and_a_detached_head_hold_what_they_have(ann: Committer) -> None:
    origin = ann.remote()
    commit(ann, "a", 10)
    commit(ann, "b", 20)
    ann.git("push", "-q", "origin", "main")
    shallow = ann.folder / "shallow"
    ann.git("clone", "-q", "--depth", "1", f"file://{origin}", str(shallow))
    assert sizes(ann, "trailer", shallow) == [20]
    assert {one.remote for one in collected(ann, shallow).witnesses} == {"origin"}
    ann.git("checkout", "-q", "--detach", at=shallow)
    (shallow / "c").write_text("c")
    ann.git("add", ".", at=shallow)
    ann.git("commit", "-q", "-m", "c", "-m", line(30), at=shallow)
    found = {one.size: one.remote for one in collected(ann, shallow).witnesses}
    assert found == {20: "origin", 30: None}


def test_a_commit_that_a_remote_has_names_it(ann: Committer) -> None:
    ann.remote()
    commit(ann, "a", 10)
    ann.git("push", "-q", "origin", "main")
    last = commit(ann, "b", 20)
    found = collected(ann).witnesses
    assert [(one.size, one.remote) for one in found] == [(20, None), (10, "origin")]
    assert found[0].where == f"the message of commit {last[:10]}"
    assert found[0].root == point(20).root
    assert found[0].at and found[0].at.endswith("Z")


def test_notes_are_read_as_lines_or_as_checkpoints(ann: Committer) -> None:
    first = ann.git("rev-parse", "HEAD")
    ann.git("notes", "--ref", "colibri", "add", "-m", line(10))
    assert sizes(ann, "note") == [10]
    assert collected(ann).witnesses[0].where == f"a note on commit {first[:10]}"
    ann.git("notes", "--ref", "colibri", "add", "-f", "-m", checkpoint.text(point(20)))
    assert sizes(ann, "note") == [20]
    ann.git("notes", "--ref", "colibri", "add", "-f", "-m", checkpoint.text(point(20, OTHER)))
    assert sizes(ann, "note") == []


def test_words_about_trailers_and_those_of_other_logs_are_none(ann: Committer) -> None:
    for text in (
        f"see Colibri-Head: {LOG}@ of that commit",
        f"Colibri-Head: {LOG}@x:y",
        f"see {line(5)}",
        line(7, OTHER),
    ):
        ann.git("commit", "-q", "--allow-empty", "-m", text)
    assert collected(ann) == NOTHING


def test_nothing_is_found_where_nothing_is(ann: Committer, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    assert collected(ann, empty) == NOTHING
    with ann.at_work(ann.project):
        assert collect.newest_checkpoint(str(empty), LOG) is None
        ann.git("init", "-q", str(empty))
        assert collect.collect(str(empty), LOG) == NOTHING, "no commit yet"
    with ann.at_work(ann.project, PATH=""):
        assert collect.collect(str(ann.project), LOG) == NOTHING
        assert collect.newest_checkpoint(str(ann.project), LOG) is None


# The chain.


def put(ann: Committer, parent: str | None, size: int, **files: str) -> str:
    """A commit of the chain, made without asking whether it fits."""
    found = git.find(str(ann.project))
    assert found is not None
    with ann.at_work(ann.project):
        made = chain.commit(found, chain.place(LOG), parent, point(size), **files)
        chain.advance(found, REF, made, parent)
    return made


def test_the_newest_checkpoint_is_the_largest_of_the_chain(ann: Committer) -> None:
    put(ann, put(ann, None, 10, consistency=""), 20, consistency="")
    with ann.at_work(ann.project):
        assert collect.newest_checkpoint(str(ann.project), LOG) == point(20)


BROKEN = {
    "no proof": {"consistency": ""},
    "of another size": {"consistency": "9\n"},
    "no base64": {"consistency": "10\n?\n"},
    "of another tree": {"consistency": "10\n" + "A" * 43 + "=\n"},
}


@pytest.mark.parametrize("files", BROKEN.values(), ids=BROKEN)
def test_a_proof_that_does_not_hold_is_named(ann: Committer, files: dict[str, str]) -> None:
    last = put(ann, put(ann, None, 10, consistency=""), 20, **files)
    problem = "its proof does not lead from the checkpoint before it"
    assert collected(ann).problems == [f"commit {last[:10]}: {problem}"]


def test_a_checkpoint_of_another_log_on_the_chain_is_named(ann: Committer) -> None:
    found = git.find(str(ann.project))
    assert found is not None
    first = put(ann, None, 10, consistency="")
    with ann.at_work(ann.project):
        made = chain.commit(found, chain.place(LOG), first, point(20, OTHER), consistency="")
        chain.advance(found, REF, made, first)
    seen = collected(ann)
    assert [one.log for one in seen.witnesses] == [OTHER, LOG]
    assert seen.problems == [f"commit {made[:10]}: the commit before is of another log"]


def test_a_commit_without_a_checkpoint_is_named_and_those_around_it_are_read(
    ann: Committer,
) -> None:
    first = put(ann, None, 10, consistency="")
    tree = ann.git("rev-parse", "HEAD^{tree}")
    strange = ann.git("commit-tree", tree, "-p", first, "-m", "x")
    ann.git("update-ref", REF, strange)
    put(ann, strange, 20, consistency="")
    seen = collected(ann)
    assert [one.size for one in seen.witnesses] == [20, 10, 0]
    unread = seen.witnesses[2]
    assert (unread.where, unread.problem) == (
        f"commit {strange[:10]}",
        "the commit has no checkpoint",
    )


def test_a_time_that_no_calendar_has_is_left_out(ann: Committer) -> None:
    tree = ann.git("rev-parse", "HEAD^{tree}")
    text = f"tree {tree}\nauthor A <a@b.c> 1 +0000\ncommitter A <a@b.c> 999999999999999 +0000\n"
    made = ann.git("hash-object", "-t", "commit", "-w", "--stdin", input=f"{text}\n{line(5)}\n")
    ann.git("update-ref", "refs/heads/late", made)
    assert [(one.size, one.at) for one in collected(ann).witnesses] == [(5, None)]


def test_many_signatures_are_not_all_checked(
    ann: Committer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collect, "MAX_SIGNATURES", 1)
    first = put(ann, None, 10, consistency="", checkpoint_sig="x")
    put(ann, first, 10, consistency="10\n", checkpoint_sig="x")
    found = [one.signature and one.signature.state for one in collected(ann).witnesses]
    assert sorted(map(str, found)) == ["bad", "unchecked"]


# Messages.

MESSAGES = {
    "a subject": ("fix: it\n", "fix: it\n\n{}\n"),
    "a body": ("fix\n\nbecause\n", "fix\n\nbecause\n\n{}\n"),
    "trailers": ("fix\n\nA-b: c\n", "fix\n\nA-b: c\n{}\n"),
    "comments": ("fix\n\n# words\n# more\n", "fix\n\n{}\n\n# words\n# more\n"),
    "comments among trailers": ("fix\n\nA: b\n# words\n", "fix\n\nA: b\n{}\n# words\n"),
    "no end of line": ("fix", "fix\n\n{}\n"),
    "scissors": (
        "fix\n# ------------------------ >8 ------------------------\ndiff\n",
        "fix\n\n{}\n# ------------------------ >8 ------------------------\ndiff\n",
    ),
    "nothing": ("", ""),
    "nothing but comments": ("\n# words\n", "\n# words\n"),
}


@pytest.mark.parametrize(("old", "new"), MESSAGES.values(), ids=MESSAGES)
def test_the_trailer_goes_where_git_looks_for_it(ann: Committer, old: str, new: str) -> None:
    made = message.with_trailer(old, point(7))
    assert made == new.format(line(7))
    if made != old:
        parsed = ann.git("interpret-trailers", "--parse", input=made)
        assert parsed.splitlines()[-1] == line(7)
        again = message.with_trailer(made, point(8))
        assert again == new.format(line(8)), "an older one of the same log is replaced"
        assert line(9, OTHER) in message.with_trailer(f"{old}\n\n{line(9, OTHER)}", point(8))


def test_other_comment_characters_are_known() -> None:
    assert message.with_trailer("; words\n", point(7), ";") == "; words\n"


# Size.


@pytest.mark.long
def test_fifty_thousand_commits_are_searched_in_seconds(ann: Committer) -> None:
    parts = []
    for n in range(50_000):
        said = f"work {n}\n\n{line(n)}\n" if n % 1000 == 0 else f"work {n}\n\nbecause\n"
        parts.append(
            "commit refs/heads/large\ncommitter A <a@example.org> 1700000000 +0000\n"
            f"data {len(said)}\n{said}\n"
        )
    ann.git("fast-import", "--quiet", input="".join(parts))
    began = time.process_time()
    started = time.monotonic()
    assert sizes(ann, "trailer") == list(range(0, 50_000, 1000))
    assert time.monotonic() - started < 10, "git would have been stopped"
    assert time.process_time() - began < 2
    ann.remote()
    tell_story(ann.project)
    for command, most in (("witness", "--push"), 10), (("verify",), 20):
        started = time.monotonic()
        code, _, err = ann.colibri(*command)
        assert time.monotonic() - started < most, command
        assert code == (command == ("verify",)), err  # the trailers were made up
