"""project.py: which directory's ledger a program writes, with real repositories."""

import os
import subprocess
from pathlib import Path

import pytest

from colibri import config, project
from colibri.project import HOLDS_LEDGER, IS_MAIN_TREE, IS_REPOSITORY, IS_START, NAMED


@pytest.fixture
def top(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory in which nobody else may write, with nothing of note above it."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    return tmp_path


def git(*arguments: str | Path) -> None:
    identity = ("-c", "user.name=Test", "-c", "user.email=test@example.org")
    subprocess.run(["git", *identity, *arguments], check=True, capture_output=True)


def repository(path: Path) -> Path:
    git("init", "-q", path)
    git("-C", path, "commit", "-q", "--allow-empty", "-m", "First")
    return path


def work_tree(main: Path, path: Path) -> Path:
    git("-C", main, "worktree", "add", "-q", "--detach", path)
    return path


def ledger(path: Path) -> Path:
    (path / "data").mkdir(parents=True)
    (path / "data" / "colibri.db").touch()
    return path


def inside(path: Path) -> str:
    below = path / "some" / "where"
    below.mkdir(parents=True)
    return str(below)


def found(path: Path, rule: str) -> tuple[str, str]:
    return str(path), rule


def test_without_a_ledger_or_a_repository_it_is_where_the_search_began(top: Path) -> None:
    start = inside(top)
    assert project.find(start) == (start, IS_START)


def test_the_nearest_ledger_above_is_taken_before_any_repository(top: Path) -> None:
    """Specification 14.8."""
    outer = ledger(repository(top / "outer"))
    nested = repository(outer / "nested")
    assert project.find(inside(nested)) == found(outer, HOLDS_LEDGER)
    ledger(nested)
    assert project.find(str(nested / "some")) == found(nested, HOLDS_LEDGER)


def test_without_a_ledger_it_is_the_root_of_the_innermost_repository(top: Path) -> None:
    """Specification 14.8."""
    outer = repository(top / "outer")
    assert project.find(inside(outer)) == found(outer, IS_REPOSITORY)
    nested = repository(outer / "nested")
    assert project.find(inside(nested)) == found(nested, IS_REPOSITORY)


def test_work_trees_share_the_ledger_of_the_main_one(top: Path) -> None:
    """Specification 14.8."""
    main = repository(top / "main")
    tree = work_tree(main, top / "elsewhere" / "tree")
    start = inside(tree)
    assert project.find(start) == found(main, IS_MAIN_TREE)
    ledger(main)
    assert project.find(start) == found(main, IS_MAIN_TREE)
    ledger(tree)  # its own wins: it is nearer
    assert project.find(start) == found(tree, HOLDS_LEDGER)


def test_a_submodule_and_a_separate_git_directory_are_their_own_repositories(top: Path) -> None:
    source, outer = repository(top / "source"), repository(top / "outer")
    git("-C", outer, "-c", "protocol.file.allow=always", "submodule", "add", "-q", source, "part")
    assert project.find(inside(outer / "part")) == found(outer / "part", IS_REPOSITORY)
    git("init", "-q", "--separate-git-dir", top / "away.git", top / "apart")
    assert project.find(inside(top / "apart")) == found(top / "apart", IS_REPOSITORY)


def test_a_work_tree_of_a_bare_repository_is_its_own(top: Path) -> None:
    main = repository(top / "main")
    git("clone", "-q", "--bare", main, top / "bare.git")
    tree = work_tree(top / "bare.git", top / "tree")
    assert project.find(inside(tree)) == found(tree, IS_REPOSITORY)


@pytest.mark.parametrize("broken", ["the way back", "the way there", "the common directory"])
def test_links_of_a_work_tree_that_do_not_agree_lead_nowhere(top: Path, broken: str) -> None:
    """A .git file that somebody put there must not point this user's records into a repository."""
    main, other = repository(top / "main"), repository(top / "other")
    tree = work_tree(main, top / "tree")
    work_tree(other, top / "another")
    entry = main / ".git" / "worktrees" / "tree"
    if broken == "the way back":
        (entry / "gitdir").write_text(f"{top / 'another' / '.git'}\n")
    elif broken == "the way there":
        (tree / ".git").write_text(f"gitdir: {other / '.git' / 'worktrees' / 'another'}\n")
    else:
        (entry / "commondir").write_text(f"{other / '.git'}\n")
    assert project.find(inside(tree)) == found(tree, IS_REPOSITORY)


@pytest.mark.parametrize(
    "text", [b"", b"nothing", b"gitdir: /nowhere\n", b"gitdir: " + b"x" * 5000, b"\xff\0"]
)
def test_a_git_file_that_says_nothing_useful_is_passed_over(top: Path, text: bytes) -> None:
    (top / "strange").mkdir()
    (top / "strange" / ".git").write_bytes(text)
    start = inside(top / "strange")
    assert project.find(start) == (start, IS_START)


def test_links_and_odd_things_in_the_places_of_a_ledger_or_repository_do_not_count(
    top: Path,
) -> None:
    """Specification 14.9."""
    real = ledger(top / "real")
    for name, target in (("file", real / "data" / "colibri.db"), ("folder", real / "data")):
        place = top / name
        (place / "data").mkdir(parents=True)
        if name == "file":
            (place / "data" / "colibri.db").symlink_to(target)
        else:
            (place / "data").rmdir()
            (place / "data").symlink_to(target)
        start = inside(place)
        assert project.find(start) == (start, IS_START)
    (top / "half" / ".git").mkdir(parents=True)  # no HEAD: no repository
    start = inside(top / "half")
    assert project.find(start) == (start, IS_START)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to somebody else")
def test_what_belongs_to_somebody_else_does_not_count(top: Path) -> None:
    """Specification 14.9."""
    theirs = ledger(top / "theirs")
    os.chown(theirs / "data" / "colibri.db", 12345, 12345)
    start = inside(theirs)
    assert project.find(start) == (start, IS_START)
    repo = repository(top / "repo")
    os.chown(repo / ".git", 12345, 12345)
    start = inside(repo)
    assert project.find(start) == (start, IS_START)


def test_a_world_writable_directory_is_never_used(top: Path) -> None:
    """Specification 14.9."""
    shared = ledger(top / "shared")
    shared.chmod(0o1777)
    start = inside(shared)
    assert project.find(start) == (start, IS_START)


def test_the_home_directory_is_used_only_when_started_there(top: Path) -> None:
    """Specification 14.9."""
    home = ledger(repository(top / "home"))
    start = inside(home)
    assert project.find(start) == (start, IS_START)
    assert project.find(str(home)) == found(home, IS_START)


def test_a_project_that_is_named_is_taken_as_it_is(
    top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outer = ledger(top / "outer")
    start = inside(outer)
    named = config.load(start, {})
    assert (named.project, named.found_by) == (start, NAMED)
    told = config.load(None, {"CLAUDE_PROJECT_DIR": start})
    assert (told.project, told.found_by) == found(outer, HOLDS_LEDGER)
    monkeypatch.chdir(start)
    assert config.load(None, {}).project == str(outer)


def test_a_directory_that_is_gone_is_where_the_search_began(top: Path) -> None:
    """It may be deleted between two looks; nothing above it is taken for it by mistake."""
    gone = top / "gone" / "deeper"
    assert project.find(str(gone)) == (str(gone), IS_START)


def test_an_unreadable_file_is_ignored() -> None:
    """Linux refuses to read this one from its beginning, whoever asks."""
    assert project._line("/proc/self/mem") == ""
