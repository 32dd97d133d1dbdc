"""Which hooks Codex would run: only those that its user trusts, as they are now.

Codex keeps the hash of each trusted hook in its settings, under where the hook is: the file, the
event, and its place in the lists. The hash is SHA-256 over the JSON of what the hook does, without
white space and with sorted keys. A hook of a plugin has a second hash, of the plugin, behind it.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from typing import Any

from colibri.cli import files
from colibri.cli.settings.clients import CLIENTS
from colibri.cli.settings.jsonc import Broken
from colibri.core.errors import ResourceError

_SECONDS, _SECONDS_AT_END = 600, 3  # what a hook has if it says nothing, and at most at the end


def untrusted(source: str, hooks: Mapping[str, Any], is_ours: Callable[[Any], bool]) -> list[str]:
    """The events for which a hook of ours would not run; `hooks` is the member of that name."""
    state = _state()
    return [
        event
        for event, key, expected in _wanted(source, hooks, is_ours)
        if not _runs(state.get(key), expected)
    ]


def settings() -> Mapping[str, Any]:
    """Codex's own; {} if they cannot be read."""
    path, _ = CLIENTS["codex"].file("", user=True)
    try:
        found = CLIENTS["codex"].language.load(files.read(path).text)
    except (Broken, ResourceError):
        return {}
    return found if isinstance(found, dict) else {}


def _state() -> Mapping[str, Any]:
    hooks = settings().get("hooks")
    state = hooks.get("state") if isinstance(hooks, dict) else None
    return state if isinstance(state, dict) else {}


def _runs(noted: Any, expected: str) -> bool:
    if not isinstance(noted, dict) or noted.get("enabled") is False:
        return False
    return str(noted.get("trusted_hash")).partition("/")[0] == expected


def _wanted(
    source: str, hooks: Mapping[str, Any], is_ours: Callable[[Any], bool]
) -> Iterator[tuple[str, str, str]]:
    """Of each hook of ours its event, the key and the hash under which Codex trusts it."""
    for event, groups in hooks.items():
        name = re.sub(r"(?<!^)(?=[A-Z])", "_", event).lower()
        for n, group in enumerate(groups if isinstance(groups, list) else ()):
            inner = group.get("hooks") if isinstance(group, dict) else None
            for m, hook in enumerate(inner if isinstance(inner, list) else ()):
                if is_ours(hook):
                    yield event, f"{source}:{name}:{n}:{m}", _hash(name, group, hook)


def _hash(event: str, group: Mapping[str, Any], hook: Mapping[str, Any]) -> str:
    seconds = int(hook.get("timeout", _SECONDS))
    if event == "session_end":
        seconds = min(seconds, _SECONDS_AT_END)
    does = {"type": "command", "command": hook["command"], "timeout": seconds, "async": False}
    told = {name: hook[name] for name in ("statusMessage",) if name in hook}
    where = {name: group[name] for name in ("matcher",) if name in group}
    value = {"event_name": event, **where, "hooks": [{**does, **told}]}
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"sha256:{sha256(text.encode()).hexdigest()}"
