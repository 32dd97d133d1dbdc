"""A user with git: a home, a project that is a repository with a ledger, and remotes next to it."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from colibri import cli
from colibri.cli.remotes import Remote
from tests.support.client import environment
from tests.support.ledger_writer import Lab, opened
from tests.support.program import tell_story

NOBODY = {"GIT_CONFIG_NOSYSTEM": "1", "XDG_CONFIG_HOME": "", "XDG_STATE_HOME": ""}


class Committer:
    """`home` is $HOME, `project` the work tree; commands run in this process, as it were there."""

    def __init__(self, folder: Path, *, story: bool = True) -> None:
        self.folder, self.home, self.project = folder, folder / "home", folder / "project"
        self.home.mkdir(parents=True)
        self.project.mkdir()
        (self.home / ".gitconfig").write_text(
            "[user]\n\tname = Ann\n\temail = ann@example.org\n[init]\n\tdefaultBranch = main\n"
            '[protocol "file"]\n\tallow = always\n[advice]\n\tdetachedHead = false\n'
        )
        self.git("init", "-q")
        (self.project / ".gitignore").write_text("data/\n")
        self.git("add", ".")
        self.git("commit", "-q", "-m", "first")
        if story:
            tell_story(self.project)

    def environment(self, **env: str) -> dict[str, str]:
        return environment(**{"HOME": str(self.home), **NOBODY, **env})

    def git(self, *arguments: str, at: Path | None = None, input: str = "") -> str:
        """git as everybody runs it; it must succeed."""
        done = subprocess.run(
            ["git", *arguments],
            cwd=at or self.project,
            env=self.environment(),
            input=input.encode(),
            capture_output=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, (arguments, done.stderr.decode())
        return done.stdout.decode().strip()

    def colibri(self, *arguments: str, at: Path | None = None, **env: str) -> tuple[int, str, str]:
        """A command: exit code, stdout, stderr."""
        with self.at_work(at or self.project, **env) as (out, err):
            try:
                code = cli.main(list(arguments))
            except SystemExit as end:  # argparse, of --help
                code = int(str(end.code))
        return code, _text(out), _text(err)

    def report(self, *arguments: str, at: Path | None = None, **env: str) -> Any:
        """What it prints with --json; it must succeed."""
        code, out, err = self.colibri(*arguments, "--json", at=at, **env)
        assert code == 0, err
        return json.loads(out)

    @contextmanager
    def at_work(self, at: Path, **env: str) -> Iterator[tuple[io.TextIOWrapper, io.TextIOWrapper]]:
        """This process as one that the user started there."""
        before = Path.cwd()
        out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
        os.chdir(at)
        try:
            with (
                mock.patch("os.environ", self.environment(**env)),
                mock.patch.object(sys, "stdout", out),
                mock.patch.object(sys, "stderr", err),
            ):
                yield out, err
        finally:
            os.chdir(before)

    def remote(self, name: str = "origin") -> Path:
        """A bare repository next to the project."""
        path = self.folder / f"{name}.git"
        self.git("init", "-q", "--bare", str(path))
        self.git("remote", "add", name, str(path))
        return path

    def tracking(self, chain: str, name: str = "origin") -> str:
        """The ref that remembers what a remote was seen to have of a chain."""
        mark = Remote(name, self.git("config", f"remote.{name}.url")).mark
        return f"refs/colibri/remotes/{name}/{mark}/{chain}"

    def record(self, number: int = 1, project: Path | None = None) -> None:
        """More records in the ledger: one call each, which is two records."""
        with opened(project or self.project) as db:
            for n in range(number):
                Lab(db).create(f"task {n}")

    def refs(self, at: Path | None = None) -> dict[str, str]:
        """Every ref, by name."""
        lines = self.git("for-each-ref", "--format=%(refname) %(objectname)", at=at).splitlines()
        return dict(line.split(" ", 1) for line in lines)


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    return stream.buffer.getvalue().decode()  # type: ignore[attr-defined,no-any-return]
