"""`colibri setup git`: hooks that witness the ledger; those of others run first and come back.

Specification 25.5.
"""

import shutil
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from colibri.cli.settings.git_hooks import BEFORE, EVENTS, OWNER
from tests.support.committer import Committer
from tests.support.ledger_writer import LOG

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="it takes git")


@pytest.fixture
def ann(tmp_path: Path) -> Committer:
    return Committer(tmp_path)


def snapshot(folder: Path) -> dict[str, tuple[int, str | bytes]]:
    """Every file and link below, with its mode."""
    return {
        str(path): (
            path.lstat().st_mode,
            str(path.readlink()) if path.is_symlink() else _bytes(path),
        )
        for path in sorted(folder.rglob("*"))
    }


def _bytes(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""


def hooks_of(ann: Committer) -> Path:
    return ann.project / ".git" / "hooks"


def put(path: Path, script: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(script)
    path.chmod(0o755)


def test_without_write_it_only_shows_what_would_change(ann: Committer) -> None:
    before = snapshot(ann.project)
    code, out, err = ann.colibri("setup", "git")
    assert code == 0
    for event, command in EVENTS.items():
        assert f"+++ {hooks_of(ann) / event}" in out
        assert f"{command} </dev/null || :" in out
    assert "nothing was written; add --write" in err
    assert snapshot(ann.project) == before


def test_a_commit_gets_the_trailer_and_the_checkpoint_and_a_push_takes_it_along(
    ann: Committer,
) -> None:
    origin = ann.remote()
    ann.colibri("setup", "git", "--write")
    for event in EVENTS:
        assert stat.S_IMODE((hooks_of(ann) / event).stat().st_mode) & 0o755 == 0o755
    ann.git("commit", "-q", "--allow-empty", "-m", "work\n\nwhy\n\nSigned-off-by: Ann <a@b.c>")
    lines = ann.git("log", "-1", "--format=%B").splitlines()
    assert lines[-2] == "Signed-off-by: Ann <a@b.c>"
    assert lines[-1].startswith(f"Colibri-Head: {LOG}@54:")
    assert ann.git("log", "-1", "--format=%(trailers:key=Colibri-Head,valueonly)")
    ref = f"refs/colibri/witness/{LOG}"
    assert ann.refs().keys() == {"refs/heads/main", ref}
    ann.git("push", "-q", "origin", "main")
    assert ann.refs(origin)[ref] == ann.refs()[ref]
    assert ann.refs()[ann.tracking(LOG)] == ann.refs()[ref]
    again = ann.report("setup", "git", "--write")
    assert {hook["action"] for hook in again["hooks"]} == {"none"}


def test_a_ledger_that_git_would_commit_is_pointed_out(ann: Committer) -> None:
    """Whoever begins with `colibri note` and `setup git` has met no other setup."""
    _, _, err = ann.colibri("setup", "git", "--write")
    assert err == ""
    (ann.project / ".gitignore").unlink()
    ann.colibri("setup", "git", "--write", "--remove")
    _, _, err = ann.colibri("setup", "git", "--write")
    assert f"to prevent that: echo data/ >> {ann.project / '.gitignore'}" in err


FOREIGN: dict[str, Callable[[Path], object]] = {
    "a script": lambda path: put(path, '#!/bin/sh\ncat >>log; echo "$@" >>log\n'),
    "a script that is not used": lambda path: path.write_text("#!/bin/sh\nexit 1\n"),
    "no text": lambda path: path.write_bytes(b"\x7fELF\xff\xfe"),
    "a link": lambda path: path.symlink_to("../../elsewhere"),
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_taking_them_out_leaves_everything_as_it_was(ann: Committer, kind: str) -> None:
    put(ann.project / "elsewhere", "#!/bin/sh\n")
    for event in ("commit-msg", "pre-push"):
        hooks_of(ann).mkdir(exist_ok=True)
        FOREIGN[kind](hooks_of(ann) / event)
    before = snapshot(ann.project)
    done = ann.report("setup", "git", "--write")
    assert [hook["backup"] is not None for hook in done["hooks"]] == [True, False, True]
    assert ann.report("setup", "git", "--write")["hooks"][0]["action"] == "none"
    shown = ann.report("setup", "git", "--remove")
    assert {(hook["action"], hook["written"]) for hook in shown["hooks"]} == {("delete", False)}
    assert "as it was before" in ann.colibri("setup", "git", "--remove", "--write")[1]
    assert snapshot(ann.project) == before
    assert "has no hooks of Colibri" in ann.colibri("setup", "git", "--remove", "--write")[1]


def test_the_hook_that_was_there_runs_first_and_decides(ann: Committer) -> None:
    origin = ann.remote()
    put(hooks_of(ann) / "pre-push", '#!/bin/sh\ncat >"$0.input"; echo "$@" >>"$0.input"\n')
    put(hooks_of(ann) / "commit-msg", '#!/bin/sh\ngrep -q good "$1" || exit 3\necho kept >>"$1"\n')
    ann.colibri("setup", "git", "--write")
    ann.git("commit", "-q", "--allow-empty", "-m", "good")
    message = ann.git("log", "-1", "--format=%B")
    assert message.index("kept") < message.index("Colibri-Head")
    done = subprocess.run(
        ["git", "commit", "-q", "--allow-empty", "-m", "bad"],
        cwd=ann.project,
        env=ann.environment(),
        check=False,
    )
    assert done.returncode != 0
    ann.git("push", "-q", "origin", "main")
    read = (hooks_of(ann) / f"pre-push{BEFORE}.input").read_text().split()
    assert read[0] == "refs/heads/main"
    assert read[-2:] == ["origin", str(origin)]


PLACES = {
    "a folder of the work tree": ".githooks",
    "a bare name": "hooks",
    "a folder below": "./tools/hooks/",
    "an absolute one": "{folder}/project/tools",
    "one in the git directory": ".git/more/hooks",
    "up and down again": "tools/../.githooks",
}


@pytest.mark.parametrize("path", PLACES.values(), ids=PLACES)
def test_core_hookspath_is_respected_and_left_as_it_was(ann: Committer, path: str) -> None:
    ann.git("config", "core.hooksPath", path.format(folder=ann.folder))
    done = ann.report("setup", "git", "--write")
    folder = Path(done["folder"])
    assert folder.is_relative_to(ann.project)
    assert folder == (ann.project / ann.git("rev-parse", "--git-path", "hooks")).resolve()
    assert {one.name for one in folder.iterdir()} == EVENTS.keys()
    assert not (hooks_of(ann) / "post-commit").exists()
    if path == "hooks":
        ann.git("commit", "-q", "--allow-empty", "-m", "work")
        assert f"refs/colibri/witness/{LOG}" in ann.refs()
    ann.report("setup", "git", "--write", "--remove")
    assert not folder.exists(), "it was made for the hooks"


OUTSIDE = {
    "an absolute one": "{folder}/elsewhere",
    "one in the home": "~/hooks",
    "one above": "../elsewhere",
    "one that begins alike": "{folder}/project-2",
    "behind a link": "link/hooks",
    "above a link": "link/../elsewhere",
}


@pytest.mark.parametrize("path", OUTSIDE.values(), ids=OUTSIDE)
def test_a_folder_outside_that_the_repository_names_takes_the_users_word(
    ann: Committer, path: str
) -> None:
    """Specification 25.5."""
    (ann.folder / "other").mkdir()
    (ann.project / "link").symlink_to(ann.folder / "other")
    ann.git("config", "core.hooksPath", path.format(folder=ann.folder))
    folder = (ann.project / ann.git("rev-parse", "--git-path", "hooks")).resolve()
    before = snapshot(ann.folder)
    for more in ((), ("--write",), ("--write", "--remove"), ("--write", "--user")):
        code, _, err = ann.colibri("setup", "git", *more)
        assert code == 1
        assert f"core.hooksPath leads outside this repository, to {folder}" in err
        assert f"add --folder {folder}" in err
    code, _, err = ann.colibri("setup", "git", "--write", "--folder", str(ann.home))
    assert (code, f"it looks in {folder}" in err) == (1, True)
    assert snapshot(ann.folder) == before
    assert ann.report("setup", "git", "--write", "--folder", str(folder))["folder"] == str(folder)
    assert {one.name for one in folder.iterdir()} == EVENTS.keys()
    ann.report("setup", "git", "--write", "--remove", "--folder", str(folder))
    assert not folder.exists(), "it was made for the hooks"


def test_a_relative_folder_for_all_repositories_may_not_lead_outside(ann: Committer) -> None:
    """The name is the user's, but the link is the repository's."""
    with (ann.home / ".gitconfig").open("a") as file:
        file.write("[core]\n\thooksPath = .githooks\n")
    (ann.folder / "other").mkdir()
    (ann.project / ".githooks").symlink_to(ann.folder / "other")
    code, _, err = ann.colibri("setup", "git", "--write", "--user")
    assert (code, "leads outside this repository" in err) == (1, True)
    assert list((ann.folder / "other").iterdir()) == []
    (ann.project / ".githooks").unlink()
    assert ann.colibri("setup", "git", "--write", "--user")[0] == 0
    assert {one.name for one in (ann.project / ".githooks").iterdir()} == EVENTS.keys()


def test_a_folder_for_all_repositories_takes_user(ann: Committer) -> None:
    with (ann.home / ".gitconfig").open("a") as file:
        file.write("[core]\n\thooksPath = ~/everywhere\n")
    code, _, err = ann.colibri("setup", "git", "--write")
    assert code == 1
    assert f"one folder of hooks for all repositories: {ann.home}/everywhere" in err
    assert "add --user" in err
    assert ann.colibri("setup", "git", "--write", "--user")[0] == 0
    ann.git("commit", "-q", "--allow-empty", "-m", "work")
    assert f"refs/colibri/witness/{LOG}" in ann.refs()
    ann.git("config", "core.hooksPath", "own")
    code, _, err = ann.colibri("setup", "git", "--user")
    assert (code, "leave out --user" in err) == (1, True)


@pytest.mark.parametrize("value", ["", "/dev/null"])
def test_setup_reports_that_git_runs_no_hooks(ann: Committer, value: str) -> None:
    ann.git("config", "core.hooksPath", value)
    code, _, err = ann.colibri("setup", "git", "--write")
    assert code == 1
    assert f"git runs no hooks here: core.hooksPath is {value or 'empty'}" in err


def test_a_bare_core_hookspath_is_reported_and_no_folder_made_for_it(ann: Committer) -> None:
    """A key without a value: git itself refuses to work with it."""
    with (ann.project / ".git" / "config").open("a") as file:
        file.write("[core]\n\thooksPath\n")
    before = snapshot(ann.project)
    code, _, err = ann.colibri("setup", "git", "--write")
    assert (code, "core.hooksPath is empty" in err) == (1, True)
    assert snapshot(ann.project) == before


@pytest.mark.parametrize("mark", ["lefthook.yml", ".pre-commit-config.yaml", ".husky"])
def test_programs_that_manage_hooks_get_lines_of_their_own(ann: Committer, mark: str) -> None:
    (ann.project / mark).mkdir() if mark == ".husky" else (ann.project / mark).touch()
    before = snapshot(ann.project)
    done = ann.report("setup", "git", "--write")
    assert snapshot(ann.project) == before
    assert (done["manager"] in mark, done["hooks"]) == (True, [])
    code, out, err = ann.colibri("setup", "git", "--write")
    assert (code, out) == (0, done["snippet"])
    assert f"{done['manager']} writes the hooks of this repository" in err
    if mark != ".husky":
        parsed = yaml.safe_load(out)
        text = str(parsed)
        assert "--hook trailer" in text and "witness --push" in text
        return
    subprocess.run(["sh", "-c", out], cwd=ann.project, check=True)
    for event in EVENTS:  # as husky runs them: sh -e FILE, in the top directory
        (ann.project / ".husky" / event).chmod(0o755)
    ann.git("config", "core.hooksPath", ".husky")
    ann.git("commit", "-q", "--allow-empty", "-m", "work")


def test_included_settings_are_not_read_and_that_is_reported(ann: Committer) -> None:
    ann.git("config", "include.path", "more")
    code, _, err = ann.colibri("setup", "git")
    assert (code, "files that .git/config includes are not read" in err) == (0, True)


def test_no_link_is_followed_to_the_folder(ann: Committer) -> None:
    (ann.folder / "outside").mkdir()
    shutil.rmtree(hooks_of(ann), ignore_errors=True)
    hooks_of(ann).symlink_to(ann.folder / "outside")
    code, _, err = ann.colibri("setup", "git", "--write")
    assert (code, f"{hooks_of(ann)} is a link to" in err) == (1, True)
    assert list((ann.folder / "outside").iterdir()) == []


def test_what_is_in_the_way_is_named(ann: Committer) -> None:
    put(hooks_of(ann) / "post-commit", "#!/bin/sh\n")
    put(hooks_of(ann) / f"post-commit{BEFORE}", "#!/bin/sh\n")
    code, _, err = ann.colibri("setup", "git", "--write")
    assert (code, "delete the one that you do not need" in err) == (1, True)
    (hooks_of(ann) / "post-commit").unlink()
    (hooks_of(ann) / "post-commit").mkdir()
    code, _, err = ann.colibri("setup", "git", "--write")
    assert (code, "post-commit is a directory" in err) == (1, True)


def test_a_hook_that_cannot_be_replaced_is_back_in_its_place(
    ann: Committer, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(hooks_of(ann) / "commit-msg", "#!/bin/sh\n")
    before = snapshot(hooks_of(ann))

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("colibri.cli.settings.change.carry_out", fail)
    code, _, err = ann.colibri("setup", "git", "--write")
    assert (code, "No space left" in err) == (75, True)
    assert snapshot(hooks_of(ann)) == before


MISUSED = {
    "git --print": "--print is for clients",
    "git --guide add": "--guide is for clients",
    "git --hooks": "--hooks is for clients",
    "git --file x": "--file is for clients",
    "git --name x": "--name is for clients",
    "codex --remove": "--remove is for git",
    "codex --folder x": "--folder is for git",
}


@pytest.mark.parametrize(("command", "problem"), MISUSED.items())
def test_options_of_clients_and_of_git_do_not_mix(
    ann: Committer, command: str, problem: str
) -> None:
    code, _, err = ann.colibri("setup", *command.split())
    assert (code, problem in err) == (2, True)


def test_a_missing_repository_or_git_is_reported(tmp_path: Path) -> None:
    ann = Committer(tmp_path)
    code, _, err = ann.colibri("setup", "git", PATH="")
    assert (code, "there is no git" in err) == (1, True)
    shutil.rmtree(ann.project / ".git")
    code, _, err = ann.colibri("setup", "git")
    assert (code, "is not in a git repository of yours" in err) == (1, True)


HARMLESS: dict[str, Callable[[Committer], object]] = {
    "no ledger": lambda ann: shutil.rmtree(ann.project / "data"),
    "a broken ledger": lambda ann: (ann.project / "data" / "colibri.db").write_text("x"),
    "an unknown setting": lambda ann: None,
    "a chain that is none": lambda ann: ann.git(
        "update-ref", f"refs/colibri/witness/{LOG}", "HEAD"
    ),
}


@pytest.mark.parametrize("case", HARMLESS)
def test_a_hook_never_fails_a_commit(ann: Committer, case: str) -> None:
    """Specification 25.6."""
    ann.colibri("setup", "git", "--write")
    HARMLESS[case](ann)
    env = {"COLIBRI_MODE": "wrong"} if case == "an unknown setting" else {}
    done = subprocess.run(
        ["git", "commit", "-q", "--allow-empty", "-m", "work"],
        cwd=ann.project,
        env=ann.environment(**env),
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0
    said = done.stderr.decode()
    assert ("the checkpoint was not kept: " in said) == (case != "no ledger"), said
    assert "Traceback" not in said
    assert ann.git("log", "-1", "--format=%s") == "work"


def test_a_program_that_is_gone_is_no_obstacle(ann: Committer) -> None:
    ann.colibri("setup", "git", "--write")
    for event in EVENTS:
        path = hooks_of(ann) / event
        text = path.read_text()
        gone = [line.split()[2] for line in text.splitlines() if line.startswith("command -v ")]
        path.write_text(text.replace(gone[0], "/nothing/here"))
        assert OWNER in text
    ann.git("commit", "-q", "--allow-empty", "-m", "work")
    assert ann.git("log", "-1", "--format=%B") == "work"
    assert ann.report("setup", "git")["hooks"][0]["action"] == "change", "that is repaired"


def test_a_project_below_the_repository_is_named_in_the_hooks(ann: Committer) -> None:
    shutil.rmtree(ann.project / "data")
    inner = Committer(ann.folder / "more").project  # a ledger of its own
    below = ann.project / "part"
    (below / "data").mkdir(parents=True)
    shutil.copy(inner / "data" / "colibri.db", below / "data" / "colibri.db")
    ann.colibri("setup", "git", "--write", at=below)
    ann.git("commit", "-q", "--allow-empty", "-m", "work")
    assert f"refs/colibri/witness/{LOG}" in ann.refs()
