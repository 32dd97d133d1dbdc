"""Repositories whose git directory is elsewhere: a submodule, and one made with --separate-git-dir.

Every command that uses git works in them. Specification 14.8, 19.11, 25.1, 25.5.
"""

import json
import shutil
from pathlib import Path

import pytest

from colibri import project
from colibri.cli import git
from colibri.project import IS_MAIN_TREE, IS_REPOSITORY
from tests.support.committer import Committer
from tests.support.ledger_writer import LOG, Lab, opened
from tests.support.program import tell_story
from tests.support.worked_repository import Work

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="it takes git")

REF = f"refs/colibri/witness/{LOG}"
FORMS = ("a submodule", "a nested submodule", "separate", "moved apart", "clone")


def repository(ann: Committer, form: str) -> Path:
    """A repository of that form with a ledger, in a folder with a space and a # in its name."""
    apart = ann.folder / "apart"
    if form in ("a submodule", "a nested submodule"):
        apart, name = ann.project, "part # 1"
        for _ in range(1 + (form == "a nested submodule")):
            ann.git("submodule", "--quiet", "add", str(ann.folder / "source"), name, at=apart)
            apart = apart / name
    elif form == "separate":
        ann.git("init", "-q", "--separate-git-dir", str(ann.folder / "away"), str(apart))
    elif form == "moved apart":
        ann.git("init", "-q", str(apart))
        ann.git("init", "-q", "--separate-git-dir", str(ann.folder / "away"), at=apart)
    else:
        away = f"--separate-git-dir={ann.folder / 'away'}"
        ann.git("clone", "-q", away, str(ann.folder / "source"), str(apart))
    assert (apart / ".git").is_file()
    (apart / ".gitignore").write_text("data/\n")
    ann.git("add", ".", at=apart)
    ann.git("commit", "-q", "-m", "ours", at=apart)
    tell_story(apart)
    return apart


@pytest.fixture
def ann(tmp_path: Path) -> Committer:
    made = Committer(tmp_path, story=False)
    source = made.folder / "source"
    made.git("init", "-q", str(source))
    made.git("commit", "-q", "--allow-empty", "-m", "first", at=source)
    return made


@pytest.mark.parametrize("form", FORMS)
def test_a_checkpoint_is_kept_pushed_and_named(ann: Committer, form: str) -> None:
    here = repository(ann, form)
    ann.git("init", "-q", "--bare", str(ann.folder / "backup.git"))
    ann.git("remote", "add", "backup", str(ann.folder / "backup.git"), at=here)
    done = ann.report("witness", "--push", "backup", at=here)
    assert ann.refs(ann.folder / "backup.git") == {REF: done["commit"]}
    assert ann.refs(here)[REF] == done["commit"]
    assert REF not in ann.refs(ann.project), "the one around it has no part in it"
    code, out, _ = ann.colibri("verify", at=here)
    held = f"held to record 54 by commit {done['commit'][:10]}, kept at backup"
    assert (code, held in " ".join(out.split())) == (0, True)
    assert ann.report("status", at=here)["witness"]["remote"] == "backup"


@pytest.mark.parametrize("form", FORMS)
def test_the_hooks_are_where_git_looks_for_them(ann: Committer, form: str) -> None:
    here = repository(ann, form)
    done = ann.report("setup", "git", "--write", at=here)
    hooks = ann.git("rev-parse", "--path-format=absolute", "--git-path", "hooks", at=here)
    assert done["folder"] == hooks
    ann.git("commit", "-q", "--allow-empty", "-m", "work", at=here)
    assert f"Colibri-Head: {LOG}@54:" in ann.git("log", "-1", "--format=%B", at=here)
    assert REF in ann.refs(here)
    ann.report("setup", "git", "--write", "--remove", at=here)
    assert not (Path(hooks) / "post-commit").exists()


@pytest.mark.parametrize("form", FORMS)
def test_why_leads_from_a_line_to_its_deed(ann: Committer, form: str) -> None:
    here = repository(ann, form)
    shutil.rmtree(here / "data")
    with opened(here) as db:
        work = Work(here, Lab(db))
        seq = work.edit("a", "one\n")
        ann.git("add", ".", at=here)
        ann.git("commit", "-q", "-m", "with a", at=here)
    (told,) = ann.report("why", "a:1", at=here)["versions"]
    assert (told["state"], [one["seq"] for one in told["deeds"]]) == ("explained", [seq])


@pytest.mark.parametrize("form", FORMS)
def test_it_is_a_project_of_its_own_and_its_work_trees_share_it(ann: Committer, form: str) -> None:
    here = repository(ann, form)
    shutil.rmtree(here / "data")
    assert project.find(str(here)) == (str(here), IS_REPOSITORY)
    tree = ann.folder / "tree"
    ann.git("worktree", "add", "-q", "--detach", str(tree), at=here)
    # What was made with --separate-git-dir does not say where its main work tree is.
    main = (str(here), IS_MAIN_TREE) if "submodule" in form else (str(tree), IS_REPOSITORY)
    assert project.find(str(tree)) == main
    common = [found.common for found in map(git.find, (str(here), str(tree))) if found]
    assert len(common) == 2 and len(set(common)) == 1
    ann.git("config", "core.worktree", str(here), at=here)
    assert project.find(str(tree)) == (str(here), IS_MAIN_TREE)


def test_a_submodule_of_a_project_with_a_ledger_has_that_ledger(ann: Committer) -> None:
    part = repository(ann, "a submodule")
    shutil.rmtree(part / "data")
    with opened(ann.project) as db:
        work = Work(ann.project, Lab(db))
        seq = work.edit("a", "one\n", tree=part.name)
        ann.git("add", ".", at=part)
        ann.git("commit", "-q", "-m", "with a", at=part)
    (told,) = ann.report("why", "a:1", at=part)["versions"]
    assert (told["state"], [one["seq"] for one in told["deeds"]]) == ("explained", [seq])
    ann.report("witness", at=part)
    assert (REF in ann.refs(ann.project), REF in ann.refs(part)) == (True, False)


def test_a_submodule_can_be_a_remote(ann: Committer) -> None:
    part = repository(ann, "a submodule")
    tell_story(ann.folder / "source")
    ann.git("remote", "add", "part", str(part), at=ann.folder / "source")
    done = ann.report("witness", "--push", at=ann.folder / "source")
    assert (done["pushed"], ann.refs(part)[REF]) == ("part", done["commit"])


OTHERS = ("of another work tree", "bare", "a submodule's", "a linked work tree's")


@pytest.mark.parametrize("whose", OTHERS)
def test_a_file_that_names_the_git_directory_of_others_is_refused_and_explained(
    ann: Committer, whose: str
) -> None:
    """An archive could bring a .git that leads what we read and write to another repository."""
    here = ann.folder / "unpacked"
    here.mkdir()
    tell_story(here)
    named = ann.project / ".git"
    if whose == "bare":
        named = ann.folder / "bare.git"
        ann.git("clone", "-q", "--bare", str(ann.project), str(named))
    elif whose == "a submodule's":
        part = repository(ann, "a submodule")
        named = Path(ann.git("rev-parse", "--absolute-git-dir", at=part))
    elif whose == "a linked work tree's":
        ann.git("worktree", "add", "-q", "--detach", "../tree")
        named = ann.project / ".git" / "worktrees" / "tree"
    (here / ".git").write_text(f"gitdir: {named}\n")
    assert ann.git("rev-parse", "--absolute-git-dir", at=here) == str(named), "git would take it"
    before = ann.refs(here)
    for command in (("witness",), ("setup", "git", "--write")):
        code, _, err = ann.colibri(*command, at=here)
        assert (code, "does not name" in err, str(named) in err) == (1, True, True), err
    assert ann.refs(here) == before


def test_a_witness_is_not_hidden_by_moving_the_git_directory(ann: Committer) -> None:
    tell_story(ann.project)
    database = ann.project / "data" / "colibri.db"
    older = database.read_bytes()
    ann.record()
    ann.report("witness")
    for path in database.parent.glob("colibri.db*"):
        path.unlink()
    database.write_bytes(older)
    (ann.folder / "x").mkdir()
    for named in (ann.folder / "away", ann.folder / "x" / ".git"):
        place = ann.project / ".git"
        real = Path(ann.git("rev-parse", "--absolute-git-dir"))
        real.rename(named)
        place.unlink(missing_ok=True)
        place.write_text(f"gitdir: {named}\n")
        code, out, _ = ann.colibri("verify", "--json")
        told = [(one["kind"], one["result"]) for one in json.loads(out)["witnesses"]]
        is_known = named.name == "away"
        assert (code, told) == (
            (1, [("ref", "diverged")]) if is_known else (2, [("ref", "unread")])
        )
