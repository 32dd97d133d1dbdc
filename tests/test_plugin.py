"""plugin/: the server, the hooks and the skills for Claude Code, Codex and Copilot in one folder,
and for Gemini CLI in one inside it, with no copies."""

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from colibri import VERSION
from colibri.hook.hosts import registered
from tests.support.client import TESTS, Server, execute

ROOT = TESTS.parent
PLUGIN = ROOT / "plugin"


def read(name: str) -> Any:
    return json.loads((PLUGIN / name).read_text(encoding="utf-8"))


def test_the_version_is_that_of_colibri() -> None:
    assert read(".claude-plugin/plugin.json")["version"] == VERSION
    assert read("gemini/gemini-extension.json")["version"] == VERSION
    for name in ("start", ".mcp.json"):
        assert f"uvx colibri-mcp@{VERSION} " in (PLUGIN / name).read_text()


def test_the_clone_is_a_marketplace_with_the_plugin() -> None:
    market = json.loads((ROOT / ".claude-plugin" / "marketplace.json").read_text())
    (listed,) = market["plugins"]
    plugin, extension = read(".claude-plugin/plugin.json"), read("gemini/gemini-extension.json")
    assert ROOT / listed["source"] == PLUGIN
    for name in ("name", "description"):
        assert listed[name] == plugin[name] == extension[name]


def test_the_hooks_are_those_that_only_look_on() -> None:
    hook: dict[str, Any] = {
        "type": "command",
        "command": '"${CLAUDE_PLUGIN_ROOT}"/start hook 2>/dev/null || :',
        "timeout": 10,
    }
    assert read("hooks/hooks.json") == {
        "hooks": {event: [{"hooks": [hook]}] for event in registered("claude-code")}
    }
    hook |= {
        "name": "colibri",
        "command": hook["command"].replace("CLAUDE_PLUGIN_ROOT", "extensionPath"),
        "timeout": 10_000,  # milliseconds there
    }
    assert read("gemini/hooks/hooks.json") == {
        "hooks": {event: [{"hooks": [hook]}] for event in registered("gemini")}
    }


def test_the_skills_are_colibris_own_and_no_copy() -> None:
    """Real files here, because Codex copies no links."""
    assert not (PLUGIN / "skills").is_symlink()
    for link in (PLUGIN / "gemini" / "skills", ROOT / ".agents" / "skills"):
        assert link.is_symlink() and link.resolve() == PLUGIN / "skills"


@pytest.mark.parametrize("name", [".mcp.json", "gemini/gemini-extension.json"])
def test_the_server_starts_from_the_folder(name: str, tmp_path: Path) -> None:
    """As hosts fill in their variables."""
    entry = read(name)["mcpServers"]["colibri"]
    command = [
        one.replace("${CLAUDE_PLUGIN_ROOT}", str(PLUGIN)).replace(
            "${extensionPath}", str(PLUGIN / "gemini")
        )
        for one in (entry["command"], *entry["args"])
    ]
    with Server(tmp_path, command, handshake=False) as server:
        assert server.handshake()["serverInfo"]["version"] == VERSION
        assert server.close() == 0


def test_a_server_that_is_started_in_the_folder_serves_where_the_host_works(tmp_path: Path) -> None:
    """As Copilot does, which names no project."""
    copy, project = tmp_path / "copy", tmp_path / "project"
    shutil.copytree(PLUGIN, copy, symlinks=True)
    project.mkdir()
    fake = copy / "colibri"
    fake.write_text("#!/bin/sh\npwd\n")
    fake.chmod(0o755)
    host = "import subprocess, sys; subprocess.run(['./start', sys.argv[2]], cwd=sys.argv[1])"
    env = {"PATH": f"{copy}{os.pathsep}/usr/bin{os.pathsep}/bin"}
    for command, there in (("serve", project), ("hook", copy)):
        done = execute([sys.executable, "-c", host, copy, command], cwd=project, env=env)
        assert (done.stdout, done.stderr) == (f"{there}\n", "")


@pytest.mark.parametrize("program", ["colibri", "uvx"])
def test_away_from_the_clone_the_installed_or_the_published_one_is_started(
    tmp_path: Path, program: str
) -> None:
    """As Claude Code copies it into its cache."""
    copy = tmp_path / "copy"
    shutil.copytree(PLUGIN, copy, symlinks=True)
    fake = tmp_path / "bin" / program
    fake.parent.mkdir()
    fake.write_text('#!/bin/sh\necho "$0 $*"\n')
    fake.chmod(0o755)
    path = f"{fake.parent}{os.pathsep}/usr/bin{os.pathsep}/bin"
    done = execute([copy / "start", "serve"], env={"PATH": path})
    package = f"colibri-mcp@{VERSION} " if program == "uvx" else ""
    assert (done.stdout, done.stderr) == (f"{fake} {package}serve\n", "")
