"""A repository that somebody else made: no command executes what it holds, or writes elsewhere."""

import os
import re
import shutil
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from colibri import cli
from colibri.cli import git
from colibri.cli.settings.clients import CLIENTS
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
            with (self._file(folder) / "config").open("a") as file:
                file.write(f"[include]\n\tpath = {included}\n")
            for hook in HOOKS:
                shutil.copy(self._trap(f"hook {hook}"), self._file(folder) / "hooks" / hook)
        for name in ("git", "exec/git-status", "exec/git-check-ignore", *BROWSERS):
            self._file(name).parent.mkdir(exist_ok=True)
            shutil.copy(self._trap(f"program {name}"), self._file(name))
        self._file("a").write_text("b\n")
        self._file("sub/a").write_text("b\n")
        self._file("new").write_text("new\n")

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
    names = [re.sub("[<>]", "", name.replace("*", "trap")) for name in listed if "." in name]
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
}


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
    assert USES.keys() == git.COMMANDS.keys()
    for command, arguments in USES.items():
        with pytest.raises(git.GitError, match="part of the work tree"):
            git.run(found, command, *arguments)
    monkeypatch.setenv("PATH", f".:bin:{os.environ['PATH'].partition(':bin:')[2]}")
    said = {command: git.run(found, command, *USES[command]) for command in USES}
    assert said["status"].splitlines()[1:] == [b" M a", *map(b"?? %s".__mod__, UNKNOWN)]
    assert b"-a\n+b\n" in said["diff"]
    assert said["cat-file"] == b"a\n"
    assert trapped.sprung() == set()


UNKNOWN = (b".gitattributes", b".gitignore", b".gitmodules", b"exec/", b"new")

COMMANDS = {
    "serve": [],
    "hook": [],
    "demo": ["--dir", "../demo", "--no-pause"],
    **{
        name: []
        for name in ("doctor", "status", "sessions", "tasks", "trail", "log", "brief", "agents")
    },
    "search": ["why"],
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
}


@pytest.mark.long
@EITHER
def test_no_command_executes_what_the_repository_holds(trapped: Trapped, keys: str) -> None:
    trapped.set_traps(KEYS if keys == "those that execute" else every_key())
    assert COMMANDS.keys() == cli.COMMANDS.keys()
    for command, arguments in COMMANDS.items():
        path = f".:bin:{os.environ['PATH']}"
        code, _, err = trapped.run(command, *arguments, PATH=path)
        assert code == 0, (command, err)
    opened = ("report", "S-1", "-o", "opened.html", "--open")
    assert trapped.run(*opened, PATH=".:bin", DISPLAY=":0", BROWSER="")[0] == 0
    for client in CLIENTS.keys() - {"generic"}:
        code, _, err = trapped.run("setup", client, "--write", "--name", "again")
        assert (code, "git would add the ledger" in err) == (0, True), err
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
    known = set(tmp_path.rglob("*"))
    with no_umask():
        for client, facts in CLIENTS.items():
            for user in ([], ["--user"]) if client != "generic" else ():
                code, _, err = home.run("setup", client, "--write", *user)
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
