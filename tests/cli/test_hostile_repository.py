"""A repository that somebody else made: no command executes what it holds, or writes elsewhere."""

import os
import re
import shutil
import stat
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from colibri import cli
from colibri.cli import git
from colibri.cli.settings.clients import CLIENTS
from colibri.cli.settings.git_hooks import OWNER
from tests.support.program import tell_story
from tests.support.user_home import Home

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="it takes git")

# Keys that execute; every other one that git knows gets a bare trap too.
KEYS = dict.fromkeys(
    (
        *("core.alternateRefsCommand", "core.askPass", "core.editor", "core.fsmonitor"),
        *("core.gitProxy", "core.pager", "core.sshCommand", "diff.external", "diff.trap.command"),
        *("diff.trap.textconv", "filter.trap.clean", "filter.trap.process", "filter.trap.smudge"),
        *("gpg.program", "gpg.ssh.defaultKeyCommand", "gpg.ssh.program", "interactive.diffFilter"),
        *("merge.trap.driver", "pager.log", "remote.origin.receivepack"),
        *("remote.origin.uploadpack", "sequence.editor", "tar.trap.command", "trailer.trap.cmd"),
        *("trailer.trap.command", "uploadpack.packObjectsHook"),
    ),
    "{}",
) | {
    "alias.status": "!{}",
    "commit.gpgSign": "true",
    "core.repositoryFormatVersion": "1",
    "core.bare": "false",
    "core.hooksPath": "../elsewhere",
    "credential.helper": "!{}",
    "diff.submodule": "diff",
    "log.showSignature": "true",
    "protocol.allow": "always",
    "remote.origin.promisor": "true",
    "remote.origin.url": "ext::{}",
    "submodule.recurse": "true",
    "submodule.sub.update": "!{}",
    "url.ext::{}.insteadOf": "https://",
}
HOOKS = (
    *("applypatch-msg", "commit-msg", "fsmonitor-watchman", "post-checkout", "post-commit"),
    *("post-index-change", "post-merge", "post-rewrite", "pre-auto-gc", "pre-commit", "pre-push"),
    *("prepare-commit-msg", "reference-transaction", "sendemail-validate", "update"),
)
BROWSERS = ("xdg-open", "www-browser", "firefox", "chromium", "w3m", "lynx")
# What a plain git springs of these, so that the traps are known to work.
LIVE = {
    *("core.fsmonitor", "diff.external", "diff.trap.textconv", "filter.trap.process"),
    "gpg.program",
}


class Trapped(Home):
    """A user whose project is a repository full of traps; each leaves its name in `sprung`."""

    def __init__(self, tmp_path: Path) -> None:
        super().__init__(tmp_path)
        tell_story(self.project)
        self._sprung = tmp_path / "sprung"
        self._sprung.mkdir()
        self.elsewhere = tmp_path / "elsewhere"  # where KEYS say that hooks are
        self.plain("init", "-q", "sub")
        self.plain("init", "-q")
        self._file("sub/a").write_text("a")
        self._file("a").write_text("a\n")
        for place in ("sub", "."):
            self.plain("-C", place, "add", ".")
            self.plain("-C", place, "commit", "-q", "-m", "first")

    def plain(self, *arguments: str) -> None:
        """git as everybody runs it."""
        who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        command = ["git", "-C", str(self.project), *who, *arguments]
        env = self.environment()
        subprocess.run(command, env=env, capture_output=True, timeout=30, check=False)

    def set_traps(self, keys: dict[str, str]) -> None:
        modules = '[submodule "sub"]\n\tpath = sub\n\turl = ./sub\n\tignore = none\n'
        self._file(".gitmodules").write_text(modules)
        self._file(".gitignore").write_text("\n".join(("git", *BROWSERS)))
        for attributes in (".gitattributes", ".git/info/attributes"):
            self._file(attributes).write_text("* filter=trap diff=trap merge=trap\n")
        for folder in (".git", "sub/.git"):
            values = {key: value.format(self._trap(key)) for key, value in keys.items()}
            included = self._file(folder) / "included"
            included.write_text(_config(values))
            if folder != ".git":  # git looks there whether it can read the submodule's HEAD
                values = {key: one for key, one in values.items() if "extensions." not in key}
            with (self._file(folder) / "config").open("a") as file:
                file.write(f"[include]\n\tpath = {included}\n{_config(values)}")
            self.elsewhere.mkdir(exist_ok=True)
            for hook in HOOKS:
                for place in (self._file(folder) / "hooks", self.elsewhere):
                    shutil.copy(self._trap(f"hook {hook}"), place / hook)
        for name in ("git", "exec/git-status", "exec/git-check-ignore", *BROWSERS):
            self._file(name).parent.mkdir(exist_ok=True)
            shutil.copy(self._trap(f"program {name}"), self._file(name))
        self._file("a").write_text("b\n")
        self._file("sub/a").write_text("b\n")
        self._file("new").write_text("new\n")

    def set_remote(self, url: str) -> None:
        """A remote with that address; the one next to the project is as full of traps."""
        made = str(self.project.parent / "remote.git")
        subprocess.run(["git", "init", "-q", "--bare", made], timeout=30, check=True)
        there = self.project.parent / "remote.git"
        for hook in (
            "pre-receive",
            "update",
            "post-receive",
            "post-update",
            "proc-receive",
            *HOOKS,
        ):
            (there / "hooks").mkdir(exist_ok=True)
            shutil.copy(self._trap(f"remote hook {hook}"), there / "hooks" / hook)
        config = {"core.alternateRefsCommand": self._trap("remote alternates"), "gc.auto": "1"}
        named = {"remote.origin.url": url.format(self._trap("remote"))}
        for folder, values in ((there, config), (self._file(".git"), named)):
            with (folder / "config").open("a") as file:
                file.write(_config(values))

    def sprung(self) -> set[str]:
        return {trap.name for trap in self._sprung.iterdir()}

    def _trap(self, name: str) -> str:
        script = self.path / "traps" / name.replace(" ", "-").replace("/", "-").replace(":", "-")
        script.parent.mkdir(exist_ok=True)
        script.write_text(f"#!/bin/sh\n: >'{self._sprung}/{script.name}'\ncat\nexit 0\n")
        script.chmod(0o755)
        return str(script)

    def _file(self, name: str) -> Path:
        return self.project / name


def _config(values: dict[str, str]) -> str:
    """As git writes it: [section "sub"] and a key."""
    lines = []
    for name, value in values.items():
        section, _, rest = name.partition(".")
        sub, _, key = rest.rpartition(".")
        lines += [f'[{section} "{sub}"]' if sub else f"[{section}]", f'\t{key} = "{value}"']
    return "\n".join(lines) + "\n"


def every_key() -> dict[str, str]:
    """All that this git knows, from its own list, and those that execute."""
    listed = subprocess.check_output(["git", "help", "-c"], text=True, timeout=30).split()
    names = [re.sub("[<>_]", "", name.replace("*", "trap")) for name in listed if "." in name]
    assert len(names) > 300
    return dict.fromkeys(names, "{}") | KEYS


@pytest.fixture
def trapped(tmp_path: Path) -> Trapped:
    return Trapped(tmp_path)


def test_the_traps_work(trapped: Trapped) -> None:
    """The control: git itself, in that repository, springs them."""
    trapped.set_traps(KEYS)
    for command in ("status", "diff", "diff --no-ext-diff", "log -p", "commit --allow-empty -m x"):
        trapped.plain(*command.split())
    trapped.plain("-C", "sub", "status")
    sprung = trapped.sprung()
    assert sprung >= LIVE, LIVE - sprung
    assert "hook-pre-commit" in sprung


USES = {
    "status": ("--porcelain", "--branch"),
    "diff": ("HEAD",),
    "log": ("-p", "--all"),
    "ls-files": ("--others", "--exclude-standard"),
    "check-ignore": ("git",),
    "rev-parse": ("HEAD",),
    "cat-file": ("--textconv", "HEAD:a"),
    "blame": ("--textconv", "--", "a"),
    "for-each-ref": (),
    "ls-tree": ("HEAD",),
    "merge-base": ("HEAD", "HEAD"),
    "hash-object": ("--stdin",),
    "mktree": (),
    "commit-tree": ("HEAD^{tree}", "-m", "x"),
    "update-ref": ("refs/colibri/x", "HEAD"),
}
WHO = {f"GIT_{one}_{part}": "x" for one in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")}


EITHER = pytest.mark.parametrize("keys", ["those that execute", "every one that git knows"])


@EITHER
def test_nothing_executes_whatever_the_repository_configures(
    trapped: Trapped, keys: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    trapped.set_traps(KEYS if keys == "those that execute" else every_key())
    monkeypatch.setenv("PATH", f".:{trapped.project}:bin:{os.environ['PATH']}")
    monkeypatch.setenv("GIT_EXEC_PATH", str(trapped.project / "exec"))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", str(trapped.project / "git"))
    monkeypatch.chdir(trapped.project)
    found = git.find(str(trapped.project))
    assert found is not None
    assert USES.keys() == git.COMMANDS.keys() | git.WRITING.keys()
    for command, arguments in USES.items():
        with pytest.raises(git.GitError, match="part of the work tree"):
            git.run(found, command, *arguments)
    monkeypatch.setenv("PATH", f".:bin:{os.environ['PATH'].partition(':bin:')[2]}")
    said = {command: git.run(found, command, *USES[command], also=WHO) for command in USES}
    assert said["status"].splitlines()[1:] == [b" M a", *map(b"?? %s".__mod__, UNKNOWN)]
    assert b"-a\n+b\n" in said["diff"]
    assert said["cat-file"] == b"a\n"
    assert trapped.sprung() == set()


UNKNOWN = (b".gitattributes", b".gitignore", b".gitmodules", b"exec/", b"new")

NO_SERVER = "postgresql://nobody@127.0.0.1:1/none"
COMMANDS = {
    "serve": [],
    "hook": [],
    "demo": ["--dir", "../demo", "--no-pause"],
    **{
        name: []
        for name in (
            "doctor",
            "status",
            "sessions",
            "tasks",
            "trail",
            "log",
            "brief",
            "agents",
            "heads",
        )
    },
    "search": ["why"],
    "why": ["a:1"],
    "add": ["one"],
    "edit": ["T-0002", "--priority", "high"],
    "claim": ["T-0002"],
    "release": ["T-0002", "--why", "a test"],
    "note": ["a test"],
    "move": ["T-0002", "GATHER"],
    "seal": [],
    "completion": ["bash"],
    "report": ["S-1", "-o", "report.html"],
    "verify": [],
    "gate": ["check"],
    "export": ["--all", "-o", "log.json"],
    "backup": ["copy.db"],
    "restore": ["copy.db", "--force"],
    "erase": ["17", "--reason", "a test", "--yes"],
    "setup": ["claude-code", "--write"],
    "witness": ["--branch", "audit"],
    "team": ["init", NO_SERVER],
    "move-ledger": ["--to", NO_SERVER],
}
AWAY = 75  # what those two find there


@pytest.mark.long
@EITHER
def test_no_command_executes_what_the_repository_holds(trapped: Trapped, keys: str) -> None:
    trapped.set_traps(KEYS if keys == "those that execute" else every_key())
    assert COMMANDS.keys() == {*cli.COMMANDS}
    for command, arguments in COMMANDS.items():
        path = f".:bin:{os.environ['PATH']}"
        code, _, err = trapped.run(command, *arguments, PATH=path)
        assert code == (AWAY if NO_SERVER in arguments else 0), (command, err)
    opened = ("report", "S-1", "-o", "opened.html", "--open")
    assert trapped.run(*opened, PATH=".:bin", DISPLAY=":0", BROWSER="")[0] == 0
    for client in CLIENTS.keys() - {"generic"}:
        code, _, err = trapped.inside("setup", client, "--write", "--name", "again")
        assert (code, "git would add the ledger" in err) == (0, True), err
    assert trapped.sprung() == set()


@pytest.mark.long
@EITHER
def test_no_witness_executes_what_the_repository_or_its_remote_holds(
    trapped: Trapped, keys: str
) -> None:
    """Specification 25.4."""
    trapped.set_traps(KEYS if keys == "those that execute" else every_key())
    path = f".:bin:{os.environ['PATH']}"
    (trapped.project / ".git" / "MESSAGE").write_text("words\n")
    before = snapshot(trapped.elsewhere)
    for more in ("witness", "witness list", "witness --hook trailer .git/MESSAGE"):
        code, _, err = trapped.run(*more.split(), PATH=path)
        assert (code, "not kept" in err) == (0, False), err
    trapped.set_remote("ext::{}")
    code, _, err = trapped.run("witness", "--push", PATH=path)
    assert (code, "the address of origin names the program git-remote-ext" in err) == (1, True)
    trapped.set_remote("../remote.git")
    code, _, err = trapped.run("witness", "--push", PATH=path)
    assert code == 0, err
    assert trapped.run("witness", "list", "--fetch", PATH=path)[0] == 0
    for more in ("", " --write", " --write --remove"):
        code, _, err = trapped.run(*f"setup git{more}".split(), PATH=path)
        assert (code, f"leads outside this repository, to {trapped.elsewhere}" in err) == (1, True)
    assert trapped.run("doctor", PATH=path)[0] == 0
    assert snapshot(trapped.elsewhere) == before
    assert trapped.sprung() == set()


# Links.

LINKS = {
    "a settings file": (".mcp.json", "file", "setup claude-code --write"),
    "a settings file, only looked at": (".mcp.json", "file", "setup claude-code"),
    "a settings file that is not there": (".mcp.json", "new", "setup claude-code --write"),
    "the folder of a settings file": (".cursor", "", "setup cursor --write"),
    "one above it": (".vscode/mcp.json", "new", "setup vscode --write"),
    "a settings file that was named": ("mine", "new", "setup generic --file mine --write"),
    "a folder that was named": ("mine", "", "setup generic --file mine/x.json --write"),
    "a report": ("page.html", "new", "report S-1 -o page.html"),
    "a report, by force": ("page.html", "file", "report S-1 -o page.html --force"),
    "the report of a project": ("colibri-report.html", "new", "report"),
    "the folder of a report": ("out", "", "report S-1 -o out/page.html"),
    "a bundle": ("b.json", "new", "export --all -o b.json"),
    "the folder of a bundle": ("out", "", "export --all -o ./out/../out/b.json"),
    "a backup": ("copy.db", "new", "backup copy.db"),
    "the folder of backups": ("backups", "", "backup backups"),
    "the demo's folder": ("demo", "empty", "demo --dir demo"),
    "the folder of the ledger": ("data", "", "serve"),
    "the ledger itself": ("data/colibri.db", "new", "serve"),
    "the ledger of an erasure": ("data", "", "erase 17 --reason x --yes"),
    "the ledger of a restore": ("data", "", "restore copy.db --force"),
}


@pytest.mark.parametrize(("link", "target", "command"), LINKS.values(), ids=LINKS)
def test_a_link_is_named_and_never_followed_to_where_something_is_written(
    tmp_path: Path, link: str, target: str, command: str
) -> None:
    home = Home(tmp_path)
    outside = tmp_path / "outside"
    (outside / "empty").mkdir(parents=True)
    (outside / "file").write_text("{}")
    if not link.startswith("data"):
        tell_story(home.project)
    (home.project / link).parent.mkdir(exist_ok=True)
    (home.project / link).symlink_to(outside / target)
    before = snapshot(outside)
    code, out, err = home.run(*command.split())
    assert code in (1, 73), (out, err)
    assert f"{home.project / link} is a link to {outside / target}".rstrip("/") in err
    assert snapshot(outside) == before


def snapshot(folder: Path) -> dict[str, bytes | None]:
    return {str(path): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


# Other ways out of a repository: settings and files of git that name a place.


def _set(repository: Path, **files: str) -> None:
    for name, text in files.items():
        with (repository / name.replace("__", ".")).open("a") as file:
            file.write(text)


def _share(project: Path, other: Path) -> None:
    """A git directory that says that it belongs to another repository."""
    _set(project / ".git", commondir=f"{other / '.git'}\n")


def _join(project: Path, other: Path) -> None:
    """A file in place of the git directory, as in a linked work tree of another repository."""
    (project / ".git").rename(project / "own")
    _set(project, __git=f"gitdir: {project / 'own'}\n")
    _set(project / "own", gitdir=f"{project / '.git'}\n", commondir=f"{other / '.git'}\n")


def _link(path: Path, target: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        path.rename(path.with_name("moved"))
    path.symlink_to(target)


def _link_hooks(project: Path, outside: Path) -> None:
    _link(project / "hooks", outside / "empty")
    _set(project / ".git", config="[core]\nhooksPath=hooks\n")


WAYS_OUT: dict[str, tuple[str, Callable[[Path, Path], object]]] = {
    "core.hooksPath": (
        "setup git --write",
        lambda project, out: _set(project / ".git", config=f"[core]\nhooksPath={out}/empty\n"),
    ),
    "core.hooksPath, in reverse": (
        "setup git --write --remove",
        lambda project, out: _set(project / ".git", config=f"[core]\nhooksPath={out}/ours\n"),
    ),
    "core.hooksPath of the work tree": (
        "setup git --write",
        lambda project, out: _set(
            project / ".git",
            config="[extensions]\nworktreeConfig=true\n",
            config__worktree=f"[core]\nhooksPath={out}/empty\n",
        ),
    ),
    "core.hooksPath, as a link": (
        "setup git --write",
        _link_hooks,
    ),
    "the folder of hooks": (
        "setup git --write",
        lambda project, out: _link(project / ".git" / "hooks", out / "empty"),
    ),
    "a shared repository, for hooks": ("setup git --write", _share),
    "a shared repository, for checkpoints": ("witness", _share),
    "a linked work tree, for hooks": ("setup git --write", _join),
    "a linked work tree, for checkpoints": ("witness", _join),
    "the folder of a branch": (
        "witness --branch a/b",
        lambda project, out: _link(project / ".git" / "refs" / "heads" / "a", out / "empty"),
    ),
    "the folder of our refs": (
        "witness",
        lambda project, out: _link(project / ".git" / "refs" / "colibri", out / "empty"),
    ),
    "the tables of refs": (
        "witness",
        lambda project, out: _link(project / ".git" / "reftable", out / "empty"),
    ),
}


@pytest.mark.parametrize(("command", "prepare"), WAYS_OUT.values(), ids=WAYS_OUT)
def test_no_setting_or_file_of_git_leads_what_is_written_out_of_the_repository(
    tmp_path: Path, command: str, prepare: Callable[[Path, Path], object]
) -> None:
    home = Trapped(tmp_path)
    outside = tmp_path / "outside"
    for name in ("empty", "ours"):
        (outside / name).mkdir(parents=True)
    (outside / "ours" / "post-commit").write_text(f"#!/bin/sh\n{OWNER}\n")
    subprocess.run(["git", "init", "-q", str(outside)], timeout=30, check=True)
    prepare(home.project, outside)
    before = snapshot(outside)
    code, out, err = home.run(*command.split())
    assert code == 1, (out, err)
    assert re.search("leads outside|is a link to|not in a git repository of yours", err), err
    assert snapshot(outside) == before


def test_a_ref_that_is_a_link_is_replaced_where_it_is(tmp_path: Path) -> None:
    home = Trapped(tmp_path)
    refs = home.project / ".git" / "refs" / "heads"
    (tmp_path / "outside").write_text("words\n")
    (refs / "audit").symlink_to(tmp_path / "outside")
    code, _, err = home.run("witness", "--branch", "audit")
    assert (tmp_path / "outside").read_text() == "words\n", (code, err)


def test_another_name_of_a_settings_file_keeps_its_text(tmp_path: Path) -> None:
    """A hard link is no link to follow: the file in the project is a new one afterwards."""
    home = Home(tmp_path)
    (tmp_path / "other").write_text("{}")
    (home.project / ".mcp.json").hardlink_to(tmp_path / "other")
    assert home.run("setup", "claude-code", "--write")[0] == 0
    assert (tmp_path / "other").read_text() == "{}"


# Permissions.


@contextmanager
def no_umask() -> Iterator[None]:
    before = os.umask(0)
    try:
        yield
    finally:
        os.umask(before)


def test_without_a_umask_nobody_else_can_write_what_commands_make(tmp_path: Path) -> None:
    home = Home(tmp_path)
    tell_story(home.project)
    subprocess.run(["git", "init", "-q", str(home.project)], timeout=30, check=True)
    shutil.rmtree(home.project / ".git" / "hooks")
    known = set(tmp_path.rglob("*"))
    with no_umask():
        assert home.inside("setup", "git", "--write")[0] == 0
        for client, facts in CLIENTS.items():
            for user in ([], ["--user"]) if client != "generic" else ():
                code, _, err = home.inside("setup", client, "--write", *user)
                assert code == 0, (facts, err)
        for command in ("serve", "demo", "report", "export", "backup", "restore"):
            assert home.run(command, *COMMANDS[command])[0] == 0, command
    made = set(tmp_path.rglob("*")) - known
    assert len(made) > 20
    open_to_others = [
        f"{path} {stat.S_IMODE(path.stat().st_mode):o}"
        for path in made
        if path.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    ]
    assert open_to_others == []
    private = [home.project / name for name in ("report.html", "log.json", "copy.db")]
    assert {stat.S_IMODE(path.stat().st_mode) for path in private} == {0o600}
