"""plugin/: the server, the hooks and the skills for Claude Code in one folder, with no copies."""

import json
import os
import shutil
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
    assert f"uvx colibri-mcp@{VERSION} " in (PLUGIN / "start").read_text()


def test_the_hooks_are_those_that_only_look_on() -> None:
    hook = {
        "type": "command",
        "command": '"${CLAUDE_PLUGIN_ROOT}"/start hook 2>/dev/null || :',
        "timeout": 10,
    }
    assert read("hooks/hooks.json") == {
        "hooks": {event: [{"hooks": [hook]}] for event in registered("claude-code")}
    }


def test_the_skills_are_colibris_own_and_no_copy() -> None:
    assert (PLUGIN / "skills").resolve() == ROOT / ".agents" / "skills"


def test_the_server_starts_from_the_folder(tmp_path: Path) -> None:
    entry = read(".mcp.json")["mcpServers"]["colibri"]
    command = entry["command"].replace("${CLAUDE_PLUGIN_ROOT}", str(PLUGIN))
    with Server(tmp_path, [command, *entry["args"]], handshake=False) as server:
        assert server.handshake()["serverInfo"]["version"] == VERSION
        assert server.close() == 0


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
