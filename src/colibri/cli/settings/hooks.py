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

from colibri.cli.settings.jsonc import Broken, Json
from colibri.config import home_of
from colibri.hook.hosts import registered

MARK = "# colibri setup"  # at the end of each command
OWNER = "colibri setup writes, updates and removes this file"
SECONDS = 10  # the hook itself ends after two
_PLUGIN = os.path.join(os.path.dirname(__file__), "opencode.mjs")
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

    def may_replace(self, text: str) -> bool:
        """Whether a file of that text is ours, or may be shared."""
        return self.item is not None or OWNER in text

    def add(self, client: str, text: str, command: Sequence[str]) -> str:
        """The text of a file with our hooks as they are now, and nothing else changed."""
        if self.program is not None:
            return self.program(command)
        assert self.item is not None
        ours = self.item(line(command))
        wanted = {event: [ours] for event in registered(client)}
        if _ours(self._load(text)) == wanted:
            return text
        new = self.remove(text)
        for name, value in self.frame.items():
            if name not in self._load(new):
                new = self.language.put(new, (name,), value)
        for event in wanted:
            new = self.language.append(new, ("hooks", event), ours)
        return self._compared(text, new, wanted)

    def remove(self, text: str) -> str:
        """The text without our hooks; "" where nothing else was in a file of ours."""
        if self.item is None:
            return ""
        new = text
        for event, items in _lists(self._load(text)).items():
            new = self.language.drop(new, ("hooks", event), is_ours)
            for n in range(sum(not is_ours(one) for one in _list(items))):
                new = self.language.drop(new, ("hooks", event, n, "hooks"), is_ours)
        self._compared(text, new, {})
        return "" if self.alone and self._load(new) in ({}, self.frame) else new

    def _load(self, text: str) -> dict[str, Any]:
        value = self.language.load(text)
        return value if isinstance(value, dict) else {}

    def _compared(self, old: str, new: str, wanted: dict[str, list[Any]]) -> str:
        """The new text, if it has what is wanted of ours and every hook and setting of others."""
        before, after = self._load(old), self._load(new)
        kept = _others({**self.frame, **after}) == _others({**self.frame, **before})
        if _ours(after) != wanted or not kept:
            raise Broken("its hooks have an unusual form")
        return new

    def installed(self, text: str) -> bool:
        """Whether a file has hooks of ours."""
        return OWNER in text if self.item is None else bool(_ours(self._load(text)))


def is_ours(item: Any) -> bool:
    """A hook with our mark, or a group of none but such."""
    if not isinstance(item, dict):
        return False
    if isinstance(inner := item.get("hooks"), list):
        return bool(inner) and all(map(is_ours, inner))
    return any(isinstance(value, str) and value.endswith(MARK) for value in item.values())


def _ours(document: dict[str, Any]) -> dict[str, list[Any]]:
    """What is ours, by event; also what somebody moved into a group of others."""
    found = {}
    for event, items in _lists(document).items():
        groups = [one if not is_ours(one) else {"hooks": [one]} for one in _list(items)]
        inner = [one for group in groups if isinstance(group, dict) for one in _inner(group)]
        if ours := [one for one in inner if is_ours(one)]:
            found[event] = ours
    return found


def _others(document: dict[str, Any]) -> dict[str, Any]:
    """Everything else; lists that are empty count as none."""
    lists: dict[str, Any] = {}
    for event, items in _lists(document).items():
        kept = [_without_ours(one) for one in _list(items) if not is_ours(one)]
        lists[event] = kept if isinstance(items, list) else items
    return {**document, "hooks": {event: items for event, items in lists.items() if items}}


def _without_ours(group: Any) -> Any:
    if not isinstance(group, dict) or "hooks" not in group:
        return group
    return {**group, "hooks": [one for one in _inner(group) if not is_ours(one)]}


def _lists(document: dict[str, Any]) -> dict[str, Any]:
    lists = document.get("hooks")
    return lists if isinstance(lists, dict) else {}


def _inner(group: dict[str, Any]) -> list[Any]:
    return _list(group.get("hooks"))


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


# The forms.


def _grouped(**more: Any) -> Callable[[str], dict[str, Any]]:
    """That of Claude Code, which Codex, Gemini CLI and Qwen Code share."""
    return lambda line: {"hooks": [{"type": "command", "command": line, **more}]}


def _script(command: Sequence[str]) -> str:
    """Cline takes any answer but this one, and every exit code but 0, for an order to stop."""
    hook = shlex.join([*command, "hook"])
    return f"#!/bin/sh\n# {OWNER}.\n{hook} >/dev/null 2>&1\necho '{{\"cancel\":false}}'\n"


def _plugin(command: Sequence[str]) -> str:
    with open(_PLUGIN, encoding="utf-8") as file:
        return file.read().replace(_PLACE, json.dumps([*command, "hook"], ensure_ascii=False), 1)


HOOKS = {
    "claude-code": Hooks(
        project_file=".claude/settings.local.json",
        user_home=("CLAUDE_CONFIG_DIR", "~/.claude"),
        user_file="settings.json",
        item=_grouped(timeout=SECONDS),
        then="start claude in the project; /hooks lists them",
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
        then="start codex, enter /hooks and trust them: it runs none that is not trusted",
    ),
    "gemini": Hooks(
        project_file=".gemini/settings.json",
        user_home=("GEMINI_CLI_HOME", "~"),
        user_file=".gemini/settings.json",
        item=_grouped(name="colibri", timeout=SECONDS * 1000),
        language=Json(comments=True),
        then="/hooks lists the hooks",
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
        then="/hooks lists the hooks",
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
