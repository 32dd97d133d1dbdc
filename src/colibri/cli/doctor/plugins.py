"""What `colibri doctor` asks about the plugin: which clients have it installed, and do its hooks
report? One that is named at each start, as with --plugin-dir, shows by its reports alone."""

import os
from collections.abc import Iterator, Mapping
from typing import Any

from colibri.cli import files
from colibri.cli.doctor import Finding, codex_trust, ok, warning
from colibri.cli.settings.clients import CLIENTS
from colibri.cli.settings.jsonc import Broken, Json
from colibri.config import home_of
from colibri.core.errors import ResourceError
from colibri.hook.hosts import registered

NAME = "colibri"
HOOKS = "hooks/hooks.json"  # in the plugin
TRUST = "start codex, enter /hooks and trust them: it runs none that is not trusted"


def examine(project: str, reported: Mapping[str, str]) -> Iterator[Finding]:
    """Of each client that has the plugin; `reported` says when a client last did, in words."""
    for client, where in installed(project):
        detail = f"{where}: the plugin with its hooks; {reported[client]}"
        if client == "codex" and (events := _untrusted(where)):
            what = f"Codex does not trust its hooks for {', '.join(events)}"
            yield warning(f"{detail}; {what}", TRUST, client)
        else:
            yield ok(detail, client)


def installed(project: str) -> Iterator[tuple[str, str]]:
    """The clients that have the plugin, with the name or the folder that they know it by."""
    claude = home_of("CLAUDE_CONFIG_DIR", "~/.claude")
    names = ("settings.json", "settings.local.json")
    here = [os.path.join(project, ".claude", name) for name in names]
    for path in (os.path.join(claude, "settings.json"), *here):
        yield from (("claude-code", name) for name in _enabled(_json(path).get("enabledPlugins")))
    copilot = os.path.join(home_of("COPILOT_HOME", "~/.copilot"), "settings.json")
    yield from (("copilot", name) for name in _enabled(_json(copilot).get("enabledPlugins")))
    for name, plugin in _ours(codex_trust.settings().get("plugins")):
        if isinstance(plugin, dict) and plugin.get("enabled") is True:
            yield "codex", name
    gemini = os.path.join(home_of("GEMINI_CLI_HOME", "~"), ".gemini", "extensions", NAME)
    if os.path.isdir(gemini):
        yield "gemini", gemini


def _ours(listed: Any) -> list[tuple[str, Any]]:
    """The entries of our plugin, from whichever marketplace."""
    entries = listed.items() if isinstance(listed, dict) else ()
    return [(name, value) for name, value in entries if name.partition("@")[0] == NAME]


def _enabled(listed: Any) -> list[str]:
    return [name for name, value in _ours(listed) if value is True]


def _json(path: str) -> dict[str, Any]:
    try:
        found = Json(comments=True).load(files.read(path).text)
    except (Broken, ResourceError):
        return {}
    return found if isinstance(found, dict) else {}


def _untrusted(name: str) -> list[str]:
    """The events of a plugin whose hooks Codex does not run, as far as this can be told."""
    folder, _ = CLIENTS["codex"].file("", user=True)
    market = name.partition("@")[2]
    cache = os.path.join(os.path.dirname(folder), "plugins", "cache", market, NAME)
    versions = sorted(os.listdir(cache)) if os.path.isdir(cache) else []
    hooks = _json(os.path.join(cache, versions[-1], HOOKS)).get("hooks", {}) if versions else {}
    ours = {event: hooks[event] for event in registered("codex") if event in hooks}
    return codex_trust.untrusted(f"{name}:{HOOKS}", ours, lambda hook: True)
