"""src/colibri/cli/git.py: which repositories it takes, and what stops it."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import colibri
from colibri.cli import git
from colibri.cli.git import GitError, Repository

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="it takes git")


def plain(folder: Path, *arguments: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    return subprocess.check_output(["git", "-C", str(folder), *who, *arguments], text=True)


def repository(folder: Path, *options: str) -> Path:
    folder.mkdir()
    plain(folder, "init", "-q", *options)
    (folder / "a").write_text("a\n")
    (folder / ".gitignore").write_text("data/\n")
    plain(folder, "add", ".")
    plain(folder, "commit", "-q", "-m", "first")
    return folder


def found(folder: Path) -> Repository:
    taken = git.find(str(folder))
    assert taken is not None
    return taken


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return repository(tmp_path / "project")


FORMS = ("sha1", "sha256", "a linked work tree", "packed", "a folder in it", "separate")


@pytest.mark.parametrize("form", FORMS)
def test_it_reports_what_git_reports(tmp_path: Path, form: str) -> None:
    """Nothing is lost by not reading the configuration, which is the point of KEPT."""
    options = ["--object-format=sha256"] if form == "sha256" else []
    folder = repository(tmp_path / "project", *options)
    if form == "a linked work tree":
        plain(folder, "worktree", "add", "-q", "../linked")
        folder = tmp_path / "linked"
    if form == "separate":
        plain(folder, "init", "-q", "--separate-git-dir", "../apart")
    if form == "packed":
        plain(folder, "gc", "-q")
    if form == "a folder in it":
        folder = folder / "deep"
        folder.mkdir()
    taken = found(folder)
    top = Path(taken.work_tree)
    (top / "a").write_text("b\r\n")
    (top / "data").mkdir()
    (top / "data" / "new").write_text("")
    (top / "new").write_text("")
    plain(top, "config", "core.autocrlf", "input")
    for command in (["status", "--porcelain"], ["log", "--format=%H"], ["diff", "--numstat"]):
        assert git.run(taken, *command).decode() == plain(top, *command), command
    assert git.is_ignored(taken, "data/colibri.db")
    assert not git.is_ignored(taken, "a[b]*")


def test_a_repository_without_a_configuration_has_nothing_to_take_over(project: Path) -> None:
    (project / ".git" / "config").unlink()
    assert git.is_ignored(found(project), "data/colibri.db")


def test_reading_leaves_the_repository_as_it_is(project: Path) -> None:
    os.utime(project / "a", (1, 1))  # a plain git would write that down in its index

    def look() -> dict[str, tuple[int, int]]:
        every = (project / ".git", *(project / ".git").rglob("*"))
        return {str(one): (one.stat().st_mtime_ns, one.stat().st_size) for one in every}

    before = look()
    git.run(found(project), "status", "--porcelain")
    assert look() == before


def _not_ours(project: Path) -> None:
    try:
        os.chown(project / ".git", 12345, 12345)
    except PermissionError:
        pytest.skip("only root can give files away")


def _a_link(project: Path) -> None:
    (project / ".git").rename(project / "elsewhere")
    (project / ".git").symlink_to("elsewhere")


def _links_inside(project: Path) -> None:
    (project / ".git" / "refs").rename(project / "refs")
    (project / ".git" / "refs").symlink_to("../refs")


def _another_repository(project: Path) -> None:
    (project.parent / "theirs").mkdir()
    (project / ".git").rename(project.parent / "theirs" / ".git")
    (project / ".git").write_text(f"gitdir: {project.parent / 'theirs' / '.git'}\n")


def _a_pipe(project: Path) -> None:
    shutil.rmtree(project / ".git")
    os.mkfifo(project / ".git")


def _nothing(project: Path) -> None:
    shutil.rmtree(project / ".git")


UNTRUSTED = (_not_ours, _a_link, _links_inside, _another_repository, _a_pipe, _nothing)


@pytest.mark.long
@pytest.mark.parametrize("change", UNTRUSTED)
def test_what_cannot_be_trusted_is_no_repository(
    project: Path, change: Callable[[Path], None]
) -> None:
    change(project)
    assert git.find(str(project)) is None


def test_what_never_ends_or_never_stops_is_ended(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(git, "TIMEOUT", 0.5)
    (project / ".gitignore").unlink()
    os.mkfifo(project / ".gitignore")
    with pytest.raises(GitError, match=r"took longer than 0 s") as late:
        git.is_ignored(found(project), "x")
    assert late.value.code is None
    (project / ".gitignore").unlink()
    monkeypatch.setattr(git, "TIMEOUT", 30.0)
    monkeypatch.setattr(git, "MAX_OUTPUT", 100)
    with pytest.raises(GitError, match="printed more than 100 bytes"):
        git.run(found(project), "log", "-p")


def test_what_git_refuses_is_reported(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(GitError) as unknown:
        git.run(found(project), "rev-parse", "--verify", "no-such-branch")
    assert unknown.value.code == 128
    (project / ".git" / "HEAD").unlink()
    with pytest.raises(GitError, match="no HEAD"):
        git.run(found(project), "status")
    monkeypatch.setenv("PATH", "bin:.")
    with pytest.raises(GitError, match="there is no git"):
        git.run(found(project), "status")


def test_no_other_file_starts_git_or_any_program_unseen() -> None:
    """Later uses go through here, too."""
    source = Path(colibri.__file__).parent
    texts = {str(path.relative_to(source)): path.read_text() for path in source.rglob("*.py")}
    starting = {name for name, text in texts.items() if "subprocess" in text or "os.exec" in text}
    ours = {"cli/commands/demo.py", "cli/demo/client.py", "cli/settings/launch.py"}
    assert starting == {"cli/process.py"} | ours
    assert [name for name in ours if '"git"' in texts[name]] == []
    running = {name for name, text in texts.items() if " process.run(" in text}
    assert running == {"cli/git.py", "cli/remotes.py", "cli/witness/signatures.py"}


def test_writing_adds_objects_and_moves_the_one_ref_and_nothing_else(project: Path) -> None:
    """Decision 017: by plumbing, with the old value; no index, work tree, hook or reflog."""
    hook = project / ".git" / "hooks" / "reference-transaction"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\ntouch sprung\n")
    hook.chmod(0o755)
    taken = found(project)
    left = {
        str(one): one.read_bytes()
        for one in (*project.glob("*"), *(project / ".git").rglob("*"))
        if one.is_file()
    }
    blob = git.run(taken, "hash-object", "--stdin", stdin=b"text").decode().strip()
    line = f"100644 blob {blob}\tname\n".encode()
    tree = git.run(taken, "mktree", stdin=line).decode().strip()
    who = {f"GIT_{role}_{part}": "x" for role in ("AUTHOR", "COMMITTER") for part in PARTS}
    made = git.run(taken, "commit-tree", tree, stdin=b"words", also=who).decode().strip()
    git.run(taken, "update-ref", "refs/colibri/x", made, "0" * len(made))
    assert plain(project, "show", "refs/colibri/x:name") == "text"
    with pytest.raises(GitError, match="cannot lock ref"):
        git.run(taken, "update-ref", "refs/colibri/x", blob, "0" * len(made))
    assert plain(project, "rev-parse", "refs/colibri/x").strip() == made
    assert {path: Path(path).read_bytes() for path in left} == left
    new = {one for one in (project / ".git").rglob("*") if one.is_file()} - {*map(Path, left)}
    objects = project / ".git" / "objects"
    assert {one for one in new if not one.is_relative_to(objects)} == {
        project / ".git" / "refs" / "colibri" / "x"
    }


PARTS = ("NAME", "EMAIL")


def test_a_ref_that_points_at_another_is_replaced_and_the_other_stays(project: Path) -> None:
    plain(project, "symbolic-ref", "refs/colibri/x", "refs/heads/victim")
    head = plain(project, "rev-parse", "HEAD").strip()
    git.run(found(project), "update-ref", "refs/colibri/x", head)
    names = plain(project, "for-each-ref", "--format=%(refname)").split()
    assert names == ["refs/colibri/x", plain(project, "symbolic-ref", "HEAD").strip()]


def test_settings_of_one_work_tree_count_where_the_repository_allows_them(project: Path) -> None:
    plain(project, "config", "core.hooksPath", "all")
    plain(project, "config", "extensions.worktreeConfig", "true")
    plain(project, "config", "--worktree", "core.hooksPath", "one")
    assert dict(git.settings(found(project)))["core.hookspath"] == "one"


@pytest.mark.parametrize("folder", ["refs/colibri", "refs/colibri/x", "objects/ab"])
def test_nothing_is_written_through_a_link(project: Path, tmp_path: Path, folder: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    plain(project, "repack", "-adq")  # or a loose object might be in that very folder
    place = project / ".git" / folder
    place.parent.mkdir(exist_ok=True)
    place.symlink_to(outside)
    with pytest.raises(GitError, match=f"{folder} is a link to {outside}"):
        git.run(found(project), "update-ref", "refs/colibri/x/y", "HEAD")
    assert list(outside.iterdir()) == []
