"""`colibri doctor` on hooks: where they are, whose, whether trusted, and which report."""

import json
from pathlib import Path
from typing import Any

import pytest

from colibri.cli.settings.hooks import HOOKS
from colibri.hook.hosts import registered
from tests.support.client import COLIBRI, Server, execute
from tests.support.user_home import Home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def hooks(home: Home) -> list[dict[str, Any]]:
    _, out, _ = home.run("doctor", "--json")
    return [one for one in json.loads(out)["findings"] if ": hooks" in one["detail"]]


@pytest.mark.parametrize("client", HOOKS)
def test_hooks_are_found_in_both_scopes(home: Home, client: str) -> None:
    assert hooks(home) == []
    home.report("setup", client, "--hooks", "--write")
    (one,) = hooks(home)
    assert (one["check"], one["status"]) == (client, "warning" if client == "codex" else "ok")
    assert one["detail"].endswith("; no report yet")
    if HOOKS[client].project_file:
        home.report("setup", client, "--user", "--hooks", "--write")
        assert [one["check"] for one in hooks(home)] == [client, client]


def test_hooks_of_another_installation_are_a_warning(home: Home) -> None:
    home.report("setup", "gemini", "--user", "--hooks", "--write")
    path = home.path / ".gemini" / "settings.json"
    path.write_text(path.read_text().replace("/scripts/colibri hook", "/old/colibri hook"))
    (one,) = hooks(home)
    assert (one["status"], one["hint"].partition("setup ")[2]) == (
        "warning",
        "gemini --hooks --write --user",
    )
    path.write_text("{")
    assert hooks(home) == [], "that the file is broken is said of the client"


def test_hooks_that_codex_does_not_trust_are_a_warning(home: Home) -> None:
    home.report("setup", "codex", "--hooks", "--write")
    (one,) = hooks(home)
    assert "does not trust yet" in one["detail"]
    assert "/hooks" in one["hint"]
    settings = home.path / ".codex" / "config.toml"
    path = home.path / ".codex" / "hooks.json"
    before = settings.read_text()
    noted = [f'[hooks.state."{path}:e{n}:0:0"]' for n in range(len(registered("codex")))]
    settings.write_text(before + "".join(f'{line}\ntrusted_hash = "sha256:0"\n' for line in noted))
    assert [one["status"] for one in hooks(home)] == ["ok"]
    settings.write_text(before + "".join(f'{line}\ntrusted_hash = ""\n' for line in noted))
    assert [one["status"] for one in hooks(home)] == ["warning"]


def test_the_last_report_is_told(home: Home) -> None:
    home.report("setup", "claude-code", "--hooks", "--write")
    with Server(home.project, COLIBRI) as server:
        server.data("task_create", title="x")
    payload = {
        "hook_event_name": "UserPromptSubmit",
        "session_id": "s",
        "transcript_path": "/home/.claude/projects/x.jsonl",
        "cwd": str(home.project),
        "prompt": "hello",
    }
    done = execute(
        [*COLIBRI[:-1], "hook"],
        input=json.dumps(payload),
        cwd=home.project,
        env=home.environment(CLAUDECODE="1"),
    )
    assert (done.returncode, done.stderr) == (0, "")
    (one,) = hooks(home)
    assert "; last report 20" in one["detail"]
    (home.project / "data" / "colibri.db").write_bytes(b"no database")
    (one,) = hooks(home)
    assert one["detail"].endswith("no report yet")
