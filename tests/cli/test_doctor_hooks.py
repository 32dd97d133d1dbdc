"""`colibri doctor` on hooks: where they are, whose, whether trusted, and which report."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from colibri.cli.doctor import codex_trust
from colibri.cli.settings.hooks import HOOKS
from tests.support.client import COLIBRI, TESTS, Server, execute
from tests.support.user_home import Home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def hooks(home: Home) -> list[dict[str, Any]]:
    _, out, _ = home.inside("doctor", "--json")
    return [one for one in json.loads(out)["findings"] if ": hooks" in one["detail"]]


def test_hooks_are_found_in_both_scopes(home: Home) -> None:
    assert hooks(home) == []
    for client in HOOKS:
        home.report("setup", client, "--hooks", "--write")
    found = hooks(home)
    assert [one["check"] for one in found] == list(HOOKS)
    for one in found:
        assert one["status"] == ("warning" if one["check"] == "codex" else "ok")
        assert one["detail"].endswith("; no report yet")
    both = [client for client in HOOKS if HOOKS[client].project_file]
    for client in both:
        home.report("setup", client, "--user", "--hooks", "--write")
    assert Counter(one["check"] for one in hooks(home)) == Counter([*HOOKS, *both])


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


# What Codex 0.166.0 told of its hooks, by the method hooks/list of its app server.
LISTED = {
    "pre_tool_use": "fc3b802ed5022308e6ac89cf9ecaa173c8b35b277b68e129a3a3f9faf88c6573",
    "session_start": "b0c1f3f9f21c04a4bef8044bc0b462355d19305179714159d17d61274794f27c",
    "session_end": "1cbbc7dbe7ac8dc43fa5c6a44fe1f01f5e0d4abf35f88118440e0a2739b66b35",
}


@pytest.mark.parametrize("event", LISTED)
def test_the_hash_of_a_hook_is_that_of_codex(event: str) -> None:
    hook = {"command": "/tmp/h17b/scripts/colibri hook 2>/dev/null || : # colibri setup"}
    assert codex_trust._hash(event, {}, {**hook, "timeout": 10}) == f"sha256:{LISTED[event]}"
    other = codex_trust._hash(event, {"matcher": "x"}, {**hook, "statusMessage": "y"})
    assert other != f"sha256:{LISTED[event]}"


def trust(home: Home, source: str, hooks: Any, skipped: str = "", **more: Any) -> None:
    """Have Codex's settings trust all hooks but those for one event."""
    settings, lines = home.path / ".codex" / "config.toml", []
    for event, key, expected in codex_trust._wanted(source, hooks, lambda hook: True):
        hash = "sha256:0" if event == skipped else expected + more.get("end", "")
        lines += [f'[hooks.state."{key}"]', f'trusted_hash = "{hash}"', more.get("line", "")]
    before = settings.read_text().partition("[hooks.state")[0]
    settings.write_text(before + "\n".join(lines))


def test_hooks_that_codex_does_not_trust_are_a_warning(home: Home) -> None:
    """Each as it is now: one that has changed, or was switched off, is not run."""
    home.report("setup", "codex", "--hooks", "--write")
    (one,) = hooks(home)
    assert "does not trust for SessionStart, " in one["detail"]
    assert "/hooks" in one["hint"]
    path = home.path / ".codex" / "hooks.json"
    ours = json.loads(path.read_text())["hooks"]
    trust(home, str(path), ours)
    assert [one["status"] for one in hooks(home)] == ["ok"]
    trust(home, str(path), ours, "Stop")
    assert "does not trust for Stop; " in hooks(home)[0]["detail"]
    trust(home, str(path), ours, line="enabled = false")
    assert [one["status"] for one in hooks(home)] == ["warning"]
    trust(home, "/elsewhere/hooks.json", ours)
    assert [one["status"] for one in hooks(home)] == ["warning"]
    other = {"hooks": [{"type": "command", "command": "mine"}]}
    path.write_text(json.dumps({"hooks": {**ours, "Stop": [other, *ours["Stop"]], "x": 1}}))
    trust(home, str(path), ours)
    assert "does not trust for Stop; " in hooks(home)[0]["detail"], "it has another place"


# The plugin.


def plugins(home: Home) -> dict[str, str]:
    _, out, _ = home.inside("doctor", "--json")
    found = [
        one
        for one in json.loads(out)["findings"]
        if "plugin with" in one["detail"] or "a plugin" in one["detail"]
    ]
    return {one["check"]: one["status"] for one in found}


def test_a_plugin_that_is_installed_is_found(home: Home) -> None:
    """As the real programs note it."""
    for name, enabled in (("colibri@here", True), ("colibri@there", False), ("other@x", True)):
        for file in (".claude/settings.json", ".copilot/settings.json"):
            path = home.path / file
            path.parent.mkdir(exist_ok=True)
            path.write_text(json.dumps({"enabledPlugins": {name: enabled}}))
        assert plugins(home) == (
            {"claude-code": "ok", "copilot": "ok"} if name == "colibri@here" else {}
        )
    (home.path / ".claude" / "settings.json").write_text("[]")
    (home.path / ".copilot" / "settings.json").write_text("{")
    (home.project / ".claude").mkdir()
    (home.project / ".claude" / "settings.json").write_text('{"enabledPlugins": {"colibri": true}}')
    (home.path / ".gemini" / "extensions" / "colibri").mkdir(parents=True)
    assert plugins(home) == {"claude-code": "ok", "gemini": "ok"}


def test_the_plugins_hooks_must_be_trusted_in_codex_too(home: Home) -> None:
    settings = home.path / ".codex" / "config.toml"
    cache = home.path / ".codex" / "plugins" / "cache" / "here" / "colibri" / "0.1.0" / "hooks"
    cache.mkdir(parents=True)
    settings.write_text('[plugins."colibri@here"]\nenabled = true\n')
    assert plugins(home) == {"codex": "ok"}, "nothing is known of its hooks"
    text = (TESTS.parent / "plugin" / "hooks" / "hooks.json").read_text()
    (cache / "hooks.json").write_text(text)
    assert plugins(home) == {"codex": "warning"}
    trust(home, "colibri@here:hooks/hooks.json", json.loads(text)["hooks"], end="/sha256:1")
    assert plugins(home) == {"codex": "ok"}
    settings.write_text('[plugins."colibri@here"]\nenabled = false\n')
    assert plugins(home) == {}


def test_the_last_report_is_shown(home: Home) -> None:
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
    home.report("setup", "claude-code", "--no-hooks", "--write")
    assert plugins(home) == {"claude-code": "ok"}, "something has reported"
    home.report("setup", "claude-code", "--hooks", "--write")
    (home.project / "data" / "colibri.db").write_bytes(b"no database")
    (one,) = hooks(home)
    assert one["detail"].endswith("no report yet")
