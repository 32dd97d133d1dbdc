"""Hooks: what makes a client start `colibri hook` on its events, and how that is taken out again.

Most clients keep lists of hooks, one per event, in a JSON file that they share with other programs.
Copilot and OpenCode read every file of a folder, Cline one script per event: those files are ours
alone. What is ours carries a mark, so that it is replaced and never doubled, and removed without
touching the rest. A program that is missing or fails does no harm: the shell hides it.
"""

import json
import os
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from colibri.cli.settings.jsonc import Json
from colibri.config import home_of
from colibri.hook.hosts import registered

MARK = "# colibri setup"  # at the end of each command
OWNER = "colibri setup writes, updates and removes this file"
SECONDS = 10  # the hook itself ends after two
_PLUGIN = os.path.join(os.path.dirname(__file__), "opencode.js")
_PLACE = '["colibri", "hook"]'  # where the plugin has the command


def line(command: Sequence[str]) -> str:
    """The hook as a shell starts it: nothing that goes wrong with it reaches the client."""
    return f"{shlex.join([*command, 'hook'])} 2>/dev/null || : {MARK}"


@dataclass(frozen=True, slots=True)
class Hooks:
    """Where a client keeps its hooks and in which form: `item` for lists, `program` for files."""

    project_file: str = ""  # below the project directory, with {event} where each has its own
    user_home: tuple[str, str] = ("", "~")
    user_file: str = ""
    item: Callable[[str], dict[str, Any]] | None = None
    program: Callable[[Sequence[str]], str] | None = None
    mode: int = 0o644
    language: Json = field(default_factory=Json)
    frame: dict[str, Any] = field(default_factory=dict)  # what such a file needs besides hooks
    alone: bool = False  # the file is ours
    then: str = ""  # what its user does next

    def files(self, client: str, project: str, *, user: bool) -> list[str]:
        if self.project_file and not user:
            name = os.path.join(project, self.project_file)
        else:
            name = os.path.join(home_of(*self.user_home), self.user_file)
        if "{event}" not in name:
            return [name]
        return [name.replace("{event}", event) for event in registered(client)]

    def add(self, client: str, text: str, command: Sequence[str]) -> str:
        """The text of a file with our hooks as they are now, and nothing else changed."""
        if self.program is not None:
            return self.program(command)
        assert self.item is not None
        before = _object(self.language.load(text))
        ours = self.item(line(command))
        lists = _object(before.get("hooks"))
        if _ours(lists) == {event: [ours] for event in registered(client)}:
            return text
        new = self.remove(text)
        for name, value in self.frame.items():
            if name not in before:
                new = self.language.put(new, (name,), value)
        for event in registered(client):
            new = self.language.append(new, ("hooks", event), ours)
        return new

    def remove(self, text: str) -> str:
        """The text without our hooks; "" where nothing else was in a file of ours."""
        if self.item is None:
            return ""
        lists = _object(_object(self.language.load(text)).get("hooks"))
        for event, items in lists.items():
            text = self.language.drop(text, ("hooks", event), is_ours)
            mixed = [one for one in _list(items) if not is_ours(one)]
            for n in range(len(mixed)):
                text = self.language.drop(text, ("hooks", event, n, "hooks"), is_ours)
        left = self.language.load(text) if text else None
        return "" if self.alone and left in (None, {}, self.frame) else text

    def installed(self, text: str) -> dict[str, list[str]]:
        """The commands of ours that a file has, by event; by "" where the file is the hook."""
        if self.item is None:
            return {"": [text]} if OWNER in text else {}
        lists = _object(_object(self.language.load(text)).get("hooks"))
        return {event: [*map(json.dumps, items)] for event, items in _ours(lists).items()}


def is_ours(item: Any) -> bool:
    """A hook with our mark, or a group of none but such."""
    if not isinstance(item, dict):
        return False
    if isinstance(inner := item.get("hooks"), list):
        return bool(inner) and all(map(is_ours, inner))
    return any(isinstance(value, str) and value.endswith(MARK) for value in item.values())


def _ours(lists: dict[str, Any]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for event, items in lists.items():
        for item in _list(items):
            inner = _list(item.get("hooks")) if isinstance(item, dict) else []
            if is_ours(item):
                found.setdefault(event, []).append(item)
            else:
                found.setdefault(event, []).extend(filter(is_ours, inner))
    return {event: items for event, items in found.items() if items}


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


# The forms.


def _grouped(**more: Any) -> Callable[[str], dict[str, Any]]:
    """That of Claude Code, which Codex, Gemini CLI and Qwen Code share."""
    return lambda line: {"hooks": [{"type": "command", "command": line, **more}]}


def _script(command: Sequence[str]) -> str:
    """Cline takes silence, and every exit code but 0, for an order to stop."""
    return f"#!/bin/sh\n# {OWNER}.\n{line(command)}\necho '{{\"cancel\":false}}'\n"


def _plugin(command: Sequence[str]) -> str:
    with open(_PLUGIN, encoding="utf-8") as file:
        return file.read().replace(_PLACE, json.dumps([*command, "hook"], ensure_ascii=False), 1)


HOOKS = {
    "claude-code": Hooks(
        project_file=".claude/settings.local.json",
        user_home=("CLAUDE_CONFIG_DIR", "~/.claude"),
        user_file="settings.json",
        item=_grouped(timeout=SECONDS),
        then="/hooks in claude lists them",
    ),
    "cursor": Hooks(
        project_file=".cursor/hooks.json",
        user_file=".cursor/hooks.json",
        item=lambda line: {"command": line},
        frame={"version": 1},
    ),
    "codex": Hooks(
        user_home=("CODEX_HOME", "~/.codex"),
        user_file="hooks.json",
        item=_grouped(timeout=SECONDS),
        then="enter /hooks in codex and trust them: until then it does not run them",
    ),
    "gemini": Hooks(
        project_file=".gemini/settings.json",
        user_home=("GEMINI_CLI_HOME", "~"),
        user_file=".gemini/settings.json",
        item=_grouped(name="colibri", timeout=SECONDS * 1000),
        language=Json(comments=True),
        then="/hooks in gemini lists them",
    ),
    "copilot": Hooks(
        project_file=".github/hooks/colibri.json",
        user_home=("COPILOT_HOME", "~/.copilot"),
        user_file="hooks/colibri.json",
        item=lambda line: {"type": "command", "bash": line, "timeoutSec": SECONDS},
        frame={"version": 1},
        alone=True,
    ),
    "qwen": Hooks(
        project_file=".qwen/settings.json",
        user_home=("QWEN_HOME", "~/.qwen"),
        user_file="settings.json",
        item=_grouped(name="colibri"),
        language=Json(comments=True),
        then="/hooks in qwen lists them",
    ),
    "cline": Hooks(
        project_file=".clinerules/hooks/{event}.sh",
        user_home=("CLINE_DIR", "~/.cline"),
        user_file="hooks/{event}.sh",
        program=_script,
        mode=0o755,
        alone=True,
    ),
    "opencode": Hooks(
        project_file=".opencode/plugins/colibri.js",
        user_home=("XDG_CONFIG_HOME", "~/.config"),
        user_file="opencode/plugins/colibri.js",
        program=_plugin,
        alone=True,
    ),
}
