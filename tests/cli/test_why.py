"""`colibri why`: every line of a long history leads to its commit, its task and its reason."""

import hashlib
import json
import os
import random
import re
import shutil
import subprocess
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from colibri.cli import objects
from tests.hook.conftest import PATIENT
from tests.hook.fixtures import payload
from tests.support.client import environment
from tests.support.ledger_writer import Lab, opened, without_constraints
from tests.support.sample_project import Printed
from tests.support.worked_repository import BEGUN, Work, git

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="it takes git")

COMMITS = 200
FILES = ("src/a.py", "b é.txt", "c.md")
ODD = 'old "name"\t1'  # git puts it into quotes
RENAMED, RENAMED_AT, RENAMED_TO = "c.md", 120, "docs/d.md"


class Story:
    """Commits of three files, each line of which tells the commit that made it.

    Every tenth commit begins a task, in a session of its own. Each commit has a decision and an
    edit before it, but for two kinds: SHARED ones, for which the task before edited the file as
    well, and UNSEEN ones, which no host has reported.
    """

    SHARED, UNSEEN = frozenset(range(15, COMMITS, 17)), frozenset(range(11, COMMITS, 23))

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._random = random.Random(18)
        self._files: dict[str, list[str]] = {name: [] for name in FILES}
        self._import: list[bytes] = []
        git(folder, "init", "-q")
        with opened(folder) as db:
            self._lab = Lab(db)
            for number in range(COMMITS):
                self._commit(number)
        git(folder, "fast-import", "--quiet", stdin=b"".join(self._import))
        git(folder, "reset", "-q", "--hard", "main")

    def _commit(self, number: int) -> None:
        now = BEGUN + timedelta(minutes=number)
        self._lab.second = f"{now:%Y-%m-%dT%H:%M:%S}"
        if number % 10 == 0:
            self._begin(number // 10)
        self._import.append(
            b"commit refs/heads/main\nauthor Ada <a@example.org> %d +0000\n"
            b"committer Ada <a@example.org> %d +0000\ndata %d\ncommit %d\n"
            % (now.timestamp() + 30, now.timestamp() + 30, len(f"commit {number}"), number)
        )
        if number == RENAMED_AT:
            self._files[RENAMED_TO] = self._files.pop(RENAMED)
            self._import.append(f'R "{RENAMED}" "{RENAMED_TO}"\n'.encode())
        for name in self._random.sample(sorted(self._files), 1 + number % 2):
            self._change(number, name)

    def _begin(self, task: int) -> None:
        self._lab.client = f"host-{task}"
        made = self._lab.create(f"task {task}").task_id
        self._lab.start(f"S-{task}", agent="ada", task=made)
        self._lab.update(made, status="GATHER", session=f"S-{task}", agent="ada")

    def _change(self, number: int, name: str) -> None:
        task = number // 10
        if number in self.SHARED:
            self._edit(number, name, task - 1)
        if number not in self.UNSEEN:
            id = f"T-{task + 1:04d}"
            self._lab.client = f"host-{task}"
            reason = f"because of {number}"
            self._lab.think(f"S-{task}", reason, type="decision", task=id, agent="ada")
        self._edit(number, name, None if number in self.UNSEEN else task)
        text = self._text(name)
        mark = f'M 644 inline "{name}"\ndata {len(text)}\n'.encode()
        self._import.append(mark + text + b"\n")

    def _edit(self, number: int, name: str, task: int | None) -> None:
        lines = self._files[name]
        for _ in range(self._random.randint(1, 3)):
            if len(lines) > 30 and self._random.random() < 0.5:
                lines.pop(self._random.randrange(len(lines)))
            at = self._random.randint(0, len(lines))
            lines.insert(at, f"{number} {self._random.random()}")
        if task is not None:
            sha256 = hashlib.sha256(self._text(name)).hexdigest()
            file = {"n": 0, "sha256": sha256, "size": len(self._text(name))}
            said: dict[str, Any] = {"class_": "edit", "paths": [name], "tree": ".", "files": [file]}
            self._lab.deed(host_session=f"host-{task}", **said)

    def _text(self, name: str) -> bytes:
        return "".join(f"{line}\n" for line in self._files[name]).encode()


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("story")
    Story(folder)
    return folder


def why(colibri: Printed, project: Path, place: str, *options: str) -> list[Any]:
    code, out, err = colibri(project, "why", str(project / place), "--json", *options)
    assert (code, err) == (0, "")
    found: list[Any] = json.loads(out)["versions"]
    return found


def check_lines(colibri: Printed, folder: Path) -> int:
    """Hold every line of the three files against what the line itself tells; how many there are."""
    log = git(folder, "log", "--format=%s/%H").splitlines()
    commits = {subject: commit for subject, commit in (line.split("/") for line in log)}
    total = 0
    for name in (*FILES[:2], RENAMED_TO):
        lines = (folder / name).read_text().splitlines()
        told = {
            number: version
            for version in why(colibri, folder, f"{name}:1-{len(lines)}")
            for first, last in version["lines"]
            for number in range(first, last + 1)
        }
        assert [*sorted(told)] == [*range(1, len(lines) + 1)]
        for number, line in enumerate(lines, 1):
            check_line(told[number], int(line.split()[0]), commits)
        total += len(lines)
    return total


def check_line(version: dict[str, Any], made: int, commits: dict[str, str]) -> None:
    task = f"T-{made // 10 + 1:04d}"
    assert version["commit"] == commits[f"commit {made}"]
    assert version["subject"] == f"commit {made}"
    tasks = [one["task_id"] for one in version["tasks"]]
    if made in Story.UNSEEN:
        assert version["state"] == "unexplained"
        assert not any(deed["left_content"] for deed in version["deeds"])
        return
    assert version["state"] == "explained"
    decisions = version["decisions"]
    assert decisions[0]["content"] == f"because of {made}"
    assert decisions[0]["task_id"] == task
    shared = made in Story.SHARED
    assert version["shared"] == shared
    assert tasks == ([f"T-{made // 10:04d}", task] if shared else [task])
    assert [deed["left_content"] for deed in version["deeds"]] == [False] * shared + [True]
    assert version["deeds"][-1]["session"] == f"S-{made // 10}"


def test_every_line_leads_to_its_commit_task_and_decision(story: Path, colibri: Printed) -> None:
    """Specification 19.10, 19.11: 200 commits, three files, one of them renamed."""
    assert check_lines(colibri, story) > 100


def test_a_rebase_changes_commits_and_no_reason(
    story: Path, colibri: Printed, tmp_path: Path
) -> None:
    """Specification 19.11: contents are compared, not commit ids or dates."""
    folder = tmp_path / "copy"
    shutil.copytree(story, folder)
    before = git(folder, "rev-parse", "main")
    git(folder, "checkout", "-q", "--detach", "main~120")
    (folder / "other").write_text("upstream\n")
    git(folder, "add", "other")
    git(folder, "commit", "-q", "-m", "upstream")
    git(folder, "rebase", "-q", "HEAD", "main")
    assert git(folder, "rev-parse", "main") != before
    assert check_lines(colibri, folder) > 100


def test_where_a_shallow_clone_ends_no_commit_is_named_as_the_origin(
    story: Path, colibri: Printed, tmp_path: Path
) -> None:
    """Specification 19.11: git blames its oldest commit for all that is older."""
    folder, depth = tmp_path / "shallow", 50
    git(tmp_path, "clone", "-q", "--depth", str(depth), story.as_uri(), str(folder))
    shutil.copytree(story / "data", folder / "data")
    oldest = COMMITS - depth
    end = git(folder, "rev-list", "--max-parents=0", "HEAD")
    log = git(folder, "log", "--format=%s/%H").splitlines()
    commits = {subject: commit for subject, commit in (line.split("/") for line in log)}
    cut: list[int] = []
    for name in (*FILES[:2], RENAMED_TO):
        lines = (folder / name).read_text().splitlines()
        for version in why(colibri, folder, f"{name}:1-{len(lines)}"):
            for first, last in version["lines"]:
                made = {int(line.split()[0]) for line in lines[first - 1 : last]}
                if version["state"] == "cut":
                    cut += made
                    assert (version["commit"], version["certain"]) == (end, False)
                    assert not any(deed["left_content"] for deed in version["deeds"])
                else:
                    (number,) = made
                    check_line(version, number, commits)
    assert max(cut) <= oldest and len(set(cut)) > 10
    place = str(folder / FILES[0])
    assert why(colibri, folder, FILES[0])[-1]["state"] == "cut"
    number = next(n for n, line in enumerate(lines_of(folder), 1) if int(line.split()[0]) < oldest)
    _, out, _ = colibri(folder, "why", f"{place}:{number}")
    said = " ".join(out.split())
    assert f"commit {end[:12]} or older" in said
    assert "the history of this clone is cut off at that commit" in said
    git(folder, "fetch", "-q", "--unshallow")
    assert check_lines(colibri, folder) > 100


def lines_of(folder: Path) -> list[str]:
    return (folder / FILES[0]).read_text().splitlines()


# Small histories.


@pytest.fixture
def work(tmp_path: Path) -> Iterator[Work]:
    git(tmp_path, "init", "-q")
    (tmp_path / ".gitignore").write_text("data/\nwt/\n")
    with opened(tmp_path) as db:
        yield Work(tmp_path, Lab(db))


def seqs(version: dict[str, Any]) -> list[int]:
    return [deed["seq"] for deed in version["deeds"]]


def test_what_is_not_committed_is_explained_by_what_is_on_disk(
    work: Work, colibri: Printed
) -> None:
    """Specification 19.11: also where git does not have the file, or has no commit yet."""
    first = work.edit("a", "one\n")
    (found,) = why(colibri, work.folder, "a:1")
    assert (found["commit"], found["author"], found["authored_at"]) == (None, None, None)
    assert (found["state"], seqs(found), found["lines"]) == ("explained", [first], [[1, 1]])
    work.commit()
    second = work.edit("a", "one\ntwo\n")
    committed, uncommitted = why(colibri, work.folder, "a:1-2")
    assert seqs(committed) == [first] and committed["lines"] == [[1, 1]]
    assert seqs(uncommitted) == [second] and uncommitted["lines"] == [[2, 2]]
    assert [one["commit"] is None for one in why(colibri, work.folder, "a")] == [True, False]
    work.write("a", "one\nby hand\n")
    _, uncommitted = why(colibri, work.folder, "a:1-2")
    assert (uncommitted["state"], seqs(uncommitted)) == ("unexplained", [second])
    _, out, _ = colibri(work.folder, "why", str(work.folder / "a:2"))
    assert "not committed\n  no deed explains it: none left the file with this content" in out


def test_a_line_that_nobody_reported_is_not_explained(work: Work, colibri: Printed) -> None:
    """Specification 19.11: what was edited after the version before is named, nothing older."""
    old = work.edit("a", "one\n")
    work.commit()
    work.write("a", "one\nby hand\n")
    work.commit()
    new = work.edit("a", "one\nby hand\nthree\n")
    work.commit()
    one, two, three = why(colibri, work.folder, "a:1-3")
    assert [found["state"] for found in (one, two, three)] == [
        "explained",
        "unexplained",
        "explained",
    ]
    assert (seqs(one), seqs(two), seqs(three)) == ([old], [], [new])


def test_a_content_that_comes_back_has_the_edit_that_brought_it_back(
    work: Work, colibri: Printed
) -> None:
    """Specification 19.11: of several edits that left it, the one before the commit."""
    edits = []
    for text in ("one\n", "two\n", "one\n"):
        edits.append(work.edit("a", text))
        work.commit()
    versions = why(colibri, work.folder, "a")
    assert [seqs(version) for version in versions] == [[seq] for seq in reversed(edits)]


def test_a_file_that_was_deleted_and_comes_back_has_both_lives(
    work: Work, colibri: Printed
) -> None:
    """Specification 19.10: the edits of the first are no part of the second."""
    first = work.edit("a", "one\n")
    work.commit()
    git(work.folder, "rm", "-q", "a")
    work.commit()
    second = work.edit("a", "two\n")
    work.commit()
    assert [seqs(one) for one in why(colibri, work.folder, "a")] == [[second], [first]]


def test_an_amended_commit_is_explained_though_its_date_is_older(
    work: Work, colibri: Printed
) -> None:
    """Specification 19.11."""
    first = work.edit("a", "one\n")
    work.commit()
    second = work.edit("a", "two\n")
    git(work.folder, "commit", "-qa", "--amend", "--no-edit")
    (found,) = why(colibri, work.folder, "a:1")
    assert (found["state"], seqs(found)) == ("explained", [first, second])


def test_a_story_has_every_version_under_every_name(work: Work, colibri: Printed) -> None:
    """Specification 19.10: without a line; --limit leaves out the oldest."""
    first = work.edit(ODD, "".join(f"{n}\n" for n in range(9)))
    decision = work.decide("split it")
    commits = [work.commit()]
    git(work.folder, "mv", ODD, "new")
    commits.insert(0, work.commit())
    second = work.edit("new", "".join(f"{n}\n" for n in range(8)))
    commits.insert(0, work.commit())
    found = why(colibri, work.folder, "new")
    assert [one["commit"] for one in found] == commits
    assert [one["state"] for one in found] == ["explained", "unchanged", "explained"]
    assert [seqs(one) for one in found] == [[second], [], [first]]
    assert [one["path"] for one in found] == ["new", "new", ODD]
    assert [one["seq"] for one in found[2]["decisions"]] == [decision]
    assert why(colibri, work.folder, "new:1")[0]["path"] == ODD
    code, out, err = colibri(work.folder, "why", str(work.folder / "new"), "--limit", "2")
    assert (code, "1 older version left out" in err) == (0, True)
    assert "renamed, or its mode changed; its content did not" in out


def test_other_work_trees_share_the_history_and_not_each_others_edits(
    work: Work, colibri: Printed
) -> None:
    """Specification 19.11: edits in another tree are no part of a commit in this one."""
    work.edit("a", "one\n")
    work.commit()
    tree = work.folder / "wt"
    git(work.folder, "worktree", "add", "-q", "-b", "side", str(tree))
    there = work.edit("a", "side\n", tree="wt")
    here = work.edit("a", "here\n")
    work.commit(at=tree)
    work.commit()
    assert seqs(why(colibri, work.folder, "a:1")[0]) == [here]
    (found,) = why(colibri, work.folder, "wt/a:1")
    assert seqs(found) == [there] and found["deeds"][0]["tree"] == "wt"
    _, out, _ = colibri(work.folder, "why", str(tree / "a:1"))
    assert "edited, left this content in the work tree wt" in out
    git(work.folder, "reset", "-q", "--hard", "side")
    git(work.folder, "worktree", "remove", "--force", str(tree))
    assert seqs(why(colibri, work.folder, "a:1")[0]) == [there]


def test_a_project_in_a_folder_of_a_repository_and_a_repository_in_a_project(
    tmp_path: Path, colibri: Printed
) -> None:
    """Specification 19.11: paths of deeds are those of their work tree."""
    git(tmp_path, "init", "-q")
    project = tmp_path / "part"
    project.mkdir()
    (project / ".gitignore").write_text("data/\n")
    with opened(project) as db:
        work = Work(project, Lab(db))
        mine = work.edit("src/a", "mine\n")
        git(project, "init", "-q", "inner")
        theirs = work.edit("src/a", "theirs\n", tree="inner")
        work.commit(at=project / "inner")
        work.commit()
    assert seqs(why(colibri, project, "src/a:1")[0]) == [mine]
    assert seqs(why(colibri, project, "inner/src/a:1")[0]) == [theirs]


def test_line_ends_that_git_converts_do_not_matter(work: Work, colibri: Printed) -> None:
    """Specification 19.11."""
    git(work.folder, "config", "core.autocrlf", "true")
    seq = work.edit("a", "one\r\ntwo\r\n")
    work.commit()
    assert git(work.folder, "cat-file", "-s", "HEAD:a") == "8"
    (found,) = why(colibri, work.folder, "a:2")
    assert (found["state"], seqs(found)) == ("explained", [seq])


def test_erased_and_damaged_deeds_explain_nothing(work: Work, colibri: Printed) -> None:
    """Specification 19.11: an erased deed names no file; nor does one of a file outside."""
    outside: dict[str, Any] = {"class_": "edit", "paths": [None], "tree": "a"}
    work.lab.deed(host_session="host", **outside, files=[{"n": 0, "sha256": None, "size": None}])
    seqs = [work.edit("a", "one\n"), work.edit("b", "one\n"), work.edit("c", "one\n")]
    work.commit()
    work.lab.erase(seqs[0] + 1)
    body = """UPDATE ledger SET body = CAST('{"files":[{}]}' AS BLOB) WHERE seq = %d"""
    without_constraints(work.folder / "data" / "colibri.db", body % seqs[1])
    states = [why(colibri, work.folder, f"{name}:1")[0]["state"] for name in "abc"]
    assert states == ["unexplained", "unexplained", "explained"]


BASE = "".join(f"line {number} of the file\n" for number in range(20))


@pytest.mark.parametrize("kept", ["in the reflog", "on a branch"])
def test_a_rebase_over_a_change_of_the_same_file_keeps_the_reason(
    work: Work, colibri: Printed, kept: str
) -> None:
    """Specification 19.11: no edit left what the rebased commits hold; what they left is known."""
    work.edit("a", BASE)
    work.commit()
    git(work.folder, "checkout", "-q", "-b", "topic")
    first = work.edit("a", BASE + "mine, the first\n")
    reason = work.decide("append it")
    work.commit()
    other = work.begin("two")
    second = work.edit("a", BASE + "mine, the first\nand the second\n", host="two")
    work.commit()
    git(work.folder, "checkout", "-q", "main")
    work.write("a", "theirs, at the start\n" + BASE)
    work.commit("--author=Eve <eve@example.org>")
    git(work.folder, "checkout", "-q", "topic")
    if kept == "on a branch":
        git(work.folder, "branch", "before")
    git(work.folder, "rebase", "-q", "main")
    if kept == "on a branch":
        shutil.rmtree(work.folder / ".git" / "logs")
    theirs, mine, its = (why(colibri, work.folder, f"a:{line}")[0] for line in (1, 22, 23))
    assert (theirs["author"], theirs["state"]) == ("Eve", "unexplained")
    assert (mine["state"], mine["certain"], seqs(mine)) == ("likely", False, [first])
    assert [one["task_id"] for one in mine["tasks"]] == [work.task]
    assert [one["seq"] for one in mine["decisions"]] == [reason]
    assert (its["state"], seqs(its)) == ("likely", [second])
    assert [one["task_id"] for one in its["tasks"]] == [other]
    _, out, _ = colibri(work.folder, "why", str(work.folder / "a:22"))
    assert "likely these: they left another version with lines that it adds" in out


@pytest.mark.parametrize(
    ("theirs", "place", "state"),
    [("", "a:21-22", "explained"), ("theirs, at the start\n", "a:22-23", "likely")],
)
def test_a_squash_merge_names_every_task_whose_commit_it_joins(
    work: Work, colibri: Printed, theirs: str, place: str, state: str
) -> None:
    """Specification 19.11: the branch that was merged has what the edits left, also if others
    changed the file meanwhile.
    """
    work.edit("a", BASE)
    work.commit()
    git(work.folder, "checkout", "-q", "-b", "topic")
    first = work.edit("a", BASE + "one more\n")
    work.commit()
    work.begin("two")
    second = work.edit("a", BASE + "one more\ntwo more\n", host="two")
    work.commit()
    git(work.folder, "checkout", "-q", "main")
    if theirs:
        work.write("a", theirs + BASE)
        work.commit()
    git(work.folder, "merge", "-q", "--squash", "topic")
    work.commit()
    (found,) = why(colibri, work.folder, place)
    assert (found["state"], found["shared"], seqs(found)) == (state, True, [first, second])


@pytest.mark.parametrize("watched", [False, True])
def test_what_was_committed_on_another_branch_is_no_part_of_a_commit_here(
    work: Work, colibri: Printed, watched: bool
) -> None:
    """Specification 19.11: in one work tree, one task after the other."""
    work.edit("a", BASE)
    work.commit()
    git(work.folder, "checkout", "-q", "-b", "x")
    there = work.edit("a", BASE + "on x\n", watched=watched)
    on_x = work.commit()
    git(work.folder, "checkout", "-q", "main")
    other = work.begin("two")
    here = work.edit("a", BASE + "on main\n", host="two", watched=watched)
    work.commit()
    (found,) = why(colibri, work.folder, "a:21")
    assert (found["state"], found["shared"], seqs(found)) == ("explained", False, [here])
    assert [one["task_id"] for one in found["tasks"]] == [other]
    git(work.folder, "checkout", "-q", "x")
    (found,) = why(colibri, work.folder, "a:21")
    assert (found["commit"], seqs(found)) == (on_x, [there])


def test_an_edit_that_was_taken_back_is_no_part_of_what_came_after_it(
    work: Work, colibri: Printed
) -> None:
    """Specification 19.11: known by what the next edit found, and said where it is not known."""
    work.edit("a", BASE)
    work.commit()
    work.edit("a", BASE + "given up\n")
    git(work.folder, "checkout", "-q", "--", "a")
    work.begin("two")
    here = work.edit("a", BASE + "instead\n", host="two", watched=True)
    more = work.edit("a", BASE + "instead\nof it\n", host="two", watched=True)
    work.commit()
    (found,) = why(colibri, work.folder, "a:21-22")
    assert (found["certain"], found["shared"], seqs(found)) == (True, False, [here, more])
    unknown = work.edit("a", BASE + "not reported\n")
    git(work.folder, "checkout", "-q", "--", "a")
    last = work.edit("a", BASE + "again\n", host="two")
    work.commit()
    (found,) = why(colibri, work.folder, "a:21")
    assert (found["certain"], found["shared"], seqs(found)) == (False, True, [unknown, last])
    _, out, _ = colibri(work.folder, "why", str(work.folder / "a:21"))
    assert "whether it has something of each is not certain" in " ".join(out.split())


def test_edits_at_the_same_time_are_all_a_part(work: Work, colibri: Printed) -> None:
    """Specification 19.11: what the later one found when it began is not what it changed."""
    work.edit("a", BASE)
    work.commit()
    work.begin("two")
    text = (BASE + "both\n").encode()
    said: dict[str, Any] = {"class_": "edit", "paths": ["a"], "tree": "."}
    held = [{"n": 0, "sha256": hashlib.sha256(BASE.encode()).hexdigest(), "size": len(BASE)}]
    work.lab.deed(event="tool.begin", use="u", host_session="two", files=held, **said)
    first = work.edit("a", BASE + "one\n", watched=True)
    (work.folder / "a").write_bytes(text)
    held = [{"n": 0, "sha256": hashlib.sha256(text).hexdigest(), "size": len(text)}]
    entry = work.lab.deed(event="tool.end", use="u", host_session="two", files=held, **said)
    work.commit()
    (found,) = why(colibri, work.folder, "a:21")
    assert entry is not None
    assert (found["shared"], seqs(found)) == (True, [first, entry.seq - 1])


def test_deeds_without_a_session_or_a_task(work: Work, colibri: Printed) -> None:
    """Specification 19.11."""
    work.edit("a", "one\n", host="another")
    (found,) = why(colibri, work.folder, "a:1")
    assert (found["state"], found["tasks"], found["decisions"]) == ("explained", [], [])
    _, out, _ = colibri(work.folder, "why", str(work.folder / "a:1"))
    assert "explained by deeds without a task:\n" in out and "  no session · claude-code · " in out


def test_the_hook_of_a_host_leaves_what_explains_a_line(work: Work, colibri: Printed) -> None:
    """Specification 19.10: from the real payload of a host to the reason, through git."""
    told = json.dumps(payload("claude-code", "PostToolUse.Edit"))
    event = json.loads(told.replace("/project", str(work.folder)))
    path = Path(event["tool_input"]["file_path"])
    path.write_text("HELLO\n")
    work.lab.client = event["session_id"]
    work.lab.start("S-2", agent="bob", task=work.task)
    work.lab.think("S-2", "louder", type="decision", agent="bob")
    subprocess.run(
        PATIENT,
        cwd=work.folder,
        env={**environment(), "CLAUDE_PROJECT_DIR": str(work.folder)},
        input=json.dumps(event).encode(),
        timeout=60,
        check=True,
    )
    git(work.folder, "add", "-A")
    git(work.folder, "commit", "-q", "-m", "shout")
    (found,) = why(colibri, work.folder, f"{path.relative_to(work.folder)}:1")
    assert (found["state"], found["subject"]) == ("explained", "shout")
    assert [one["content"] for one in found["decisions"]] == ["louder"]
    assert (found["deeds"][0]["agent"], found["deeds"][0]["session"]) == ("bob", "S-2")


def test_a_merge_that_a_person_resolved_is_explained_by_what_it_left(
    work: Work, colibri: Printed
) -> None:
    """Specification 19.11: it has a content of its own, like none of its parents."""
    work.edit("a", "one\n")
    work.commit()
    git(work.folder, "checkout", "-q", "-b", "side")
    work.edit("a", "side\n")
    work.commit()
    git(work.folder, "checkout", "-q", "main")
    work.edit("a", "here\n")
    work.commit()
    git(work.folder, "merge", "-q", "-s", "ours", "--no-commit", "side")
    resolved = work.edit("a", "both\n")
    merge = work.commit()
    for place in ("a:1", "a"):
        found = why(colibri, work.folder, place)[0]
        assert (found["commit"], found["state"], seqs(found)) == (merge, "explained", [resolved])
    work.write("a", "neither\n")
    git(work.folder, "commit", "-qa", "--amend", "--no-edit")
    assert why(colibri, work.folder, "a:1")[0]["state"] == "unexplained"


def test_a_date_that_is_none_is_left_out(work: Work, colibri: Printed) -> None:
    """Specification 19.10: commits can have any number there."""
    seq = work.edit("a", "one\n")
    commit = (
        "commit refs/heads/main\nauthor a <a@b> 99999999999999 +0000\n"
        "committer a <a@b> 1 +0000\ndata 1\nx\nM 644 inline a\ndata 4\none\n\n"
    )
    git(
        work.folder, "fast-import", "--quiet", "--date-format=raw-permissive", stdin=commit.encode()
    )
    git(work.folder, "reset", "-q", "main")
    (found,) = why(colibri, work.folder, "a:1")
    assert (found["authored_at"], found["state"], seqs(found)) == (None, "explained", [seq])
    assert "  x  a\n" in colibri(work.folder, "why", str(work.folder / "a:1"))[1]


def test_contents_are_read_a_few_at_a_time(
    work: Work, colibri: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Specification 19.10: what git may print at once has a limit."""
    edits = []
    for number in range(5):
        edits.append(work.edit("a", f"{number}\n" * 20))
        work.commit()
    monkeypatch.setattr(objects, "BATCH", 100)
    found = why(colibri, work.folder, "a")
    assert [seqs(one) for one in found] == [[seq] for seq in reversed(edits)]


def test_several_tasks_are_all_shown(story: Path, colibri: Printed) -> None:
    """Specification 19.11: to people, too, that the lines cannot be split."""
    lines = (story / "src/a.py").read_text().splitlines()
    shared = next(n for n, line in enumerate(lines, 1) if int(line.split()[0]) in Story.SHARED)
    _, out, _ = colibri(story, "why", str(story / f"src/a.py:{shared}"))
    assert "its lines cannot be split between them, and whether" in " ".join(out.split())
    assert len(re.findall(r"^    T-[0-9]{4}  GATHER  task ", out, re.MULTILINE)) == 2


# What goes wrong.


def test_what_cannot_be_asked_is_named(
    work: Work,
    colibri: Printed,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Specification 19.12: each with exit code 1, or 2 for what is no line."""
    work.write("a", "one\ntwo")
    work.write("b", "\0")
    work.write("a:b:9", "odd\n")
    (work.folder / "link").symlink_to("a")
    (work.folder / "large").write_bytes(b"x" * ((16 << 20) + 1))
    outside = tmp_path_factory.mktemp("outside") / "a"
    outside.write_text("one\n")
    problems = {
        "a:3": "has 2 lines, so it has no line 3",
        "a:2-1": "2-1 is no line",
        "a:0": "0 is no line",
        "b:1": "is a binary file",
        "link:1": "is not a regular file",
        "data:1": "is not a regular file",
        "none:1": "there is no file",
        "no/such/folder": "there is no file",
        "large": "is larger than 16 MiB",
        str(outside): "is outside the project",
    }
    for place, problem in problems.items():
        code, out, err = colibri(work.folder, "why", str(work.folder / place))
        assert (code in (1, 2), out, problem in err) == (True, "", True), (place, err)
    assert why(colibri, work.folder, "a:b:9")[0]["state"] == "unexplained"
    assert why(colibri, work.folder, "a:b:9:1")[0]["lines"] == [[1, 1]]
    monkeypatch.setitem(os.environ, "PATH", str(work.folder))
    code, _, err = colibri(work.folder, "why", str(work.folder / "a"))
    assert (code, "cannot read the history of" in err, "there is no git" in err) == (75, True, True)
    shutil.rmtree(work.folder / ".git")
    code, _, err = colibri(work.folder, "why", str(work.folder / "a"))
    assert (code, "is in no git repository that belongs to you" in err) == (1, True)
