"""Installs the contestants by package name into bench/.contestants, once per version.

Each folder there holds one environment and a stamp that says what it was built from; a changed
version in a table below rebuilds it. A package that cannot be installed here is not an error of
the benchmark: its contestants are left out, and the results say why.
"""

import json
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

from scripts import environment

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "bench" / ".contestants"
STACKS = ROOT / "bench" / "stacks"
PATIENCE = 900

PYPI: dict[str, tuple[str, ...]] = {
    "mcp": ("mcp==2.3.0",),
    "fastmcp": ("fastmcp==4.1.2",),
}
NPM: dict[str, tuple[str, ...]] = {
    # better-sqlite3 13 wants Node 22; 12 runs on 20 and later
    "sdk": ("@modelcontextprotocol/sdk@1.32.2", "better-sqlite3@12.11.1", "zod@4.6.7"),
    "memory": ("@modelcontextprotocol/server-memory@2026.8.31",),
    "taskmaster": ("task-master-ai@0.43.1",),
    "backlog": ("backlog.md@1.52.0",),
    "shrimp": ("mcp-shrimp-task-manager@1.0.21",),
}


class Missing(Exception):
    """A contestant cannot be installed on this machine; the text says why."""


def python(name: str) -> Path:
    """The interpreter of an environment with these packages from PyPI."""
    folder = FOLDER / f"py-{name}"
    with _Build(folder, PYPI[name]) as build:
        if build.needed:
            venv.create(folder, with_pip=True)
            pip = [str(folder / "bin/python"), "-Im", "pip", "install", "--quiet", "--no-input"]
            _run([*pip, *PYPI[name]], folder)
    return folder / "bin/python"


def colibri() -> Path:
    """The interpreter of an environment with only what `scripts/setup run` installs."""
    folder = FOLDER / "py-colibri"
    with _Build(folder, (environment.lock_id("run").strip(),)) as build:
        if build.needed:
            environment.install(folder, ROOT / "locks/run.txt")
            path = environment.site_packages(folder) / "colibri.pth"
            path.write_text(f"{ROOT / 'src'}\n")
    return folder / "bin/python"


def npm(name: str) -> Path:
    """A folder with these packages from npm."""
    folder = FOLDER / f"npm-{name}"
    if not (shutil.which("node") and shutil.which("npm")):
        raise Missing("Node and npm are not installed")
    with _Build(folder, NPM[name]) as build:
        if build.needed:
            folder.mkdir(parents=True)
            (folder / "package.json").write_text('{"private": true}\n')
            quiet = ["--no-audit", "--no-fund", "--loglevel=error"]
            _run(["npm", "install", *quiet, *NPM[name]], folder)
    return folder


def copy_script(packages: Path, script: str) -> Path:
    """Copy a script of bench/stacks to where Node finds these packages."""
    return Path(shutil.copy(STACKS / script, packages / script))


def version(requirement: str) -> str:
    """`name 1.2` of `name==1.2` or `name@1.2`."""
    return re.sub(r"(?<=.)(==|@)(?=\d)", " ", requirement)


class _Build:
    """Says whether a folder must be built, empties it, and stamps it after a successful build."""

    def __init__(self, folder: Path, wanted: tuple[str, ...]) -> None:
        self._stamp = folder / "stamp"
        self._wanted = json.dumps([*wanted, sys.version.split()[0]])
        self.needed = not (
            self._stamp.is_file() and self._stamp.read_text(encoding="utf-8") == self._wanted
        )
        if self.needed:
            print(f"   installing {folder.name}", file=sys.stderr, flush=True)
            shutil.rmtree(folder, ignore_errors=True)

    def __enter__(self) -> "_Build":
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if kind is None and self.needed:
            self._stamp.write_text(self._wanted, encoding="utf-8")


def _run(command: list[str], folder: Path) -> None:
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Missing(f"{Path(command[0]).name} took more than {PATIENCE} s") from None
    if done.returncode:
        last = done.stdout.strip().splitlines()[-1:] or ["no reason given"]
        raise Missing(f"{Path(command[0]).name} failed: {last[0]}")
