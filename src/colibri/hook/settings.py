"""The digest of a host's hook settings: whether hooks were changed between two sessions shows.

Only what concerns hooks counts: hosts write other things into the same files all the time.
"""

import json
import os
import stat

from colibri.core import canonical

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_LARGEST = 1024 * 1024
_MOST_FILES = 64

# host -> variable that moves its folder, its folder in the home, and files or folders of hooks,
# first of the user, then of the project; of a JSON file its member `hooks` counts.
_PLACES: dict[str, tuple[str, str, tuple[str, ...], tuple[str, ...]]] = {
    "claude-code": (
        "CLAUDE_CONFIG_DIR",
        ".claude",
        ("settings.json",),
        (".claude/settings.json", ".claude/settings.local.json"),
    ),
    "codex": ("CODEX_HOME", ".codex", ("hooks.json",), (".codex/hooks.json",)),
    "gemini": ("", ".gemini", ("settings.json",), (".gemini/settings.json",)),
    "copilot": (
        "COPILOT_HOME",
        ".copilot",
        ("hooks",),
        (".github/hooks", ".claude/settings.json", ".claude/settings.local.json"),
    ),
    "qwen": ("QWEN_HOME", ".qwen", ("settings.json",), (".qwen/settings.json",)),
    "cline": ("CLINE_DIR", ".cline", ("hooks",), (".clinerules/hooks",)),
    "opencode": ("", ".config/opencode", ("plugins", "plugin"), (".opencode/plugins",)),
    "cursor": ("", ".cursor", ("hooks.json",), (".cursor/hooks.json",)),
    "vscode": ("", ".copilot", ("hooks",), (".github/hooks", ".claude/settings.json")),
    "windsurf": ("", ".codeium/windsurf", ("hooks.json",), (".windsurf/hooks.json",)),
}


def digest(host: str, project: str, environ: "Mapping[str, str]") -> str | None:
    """Of all existing hook settings of a host; None if there are none."""
    variable, folder, users, projects = _PLACES[host]
    home = environ.get(variable) or os.path.join(os.path.expanduser("~"), folder)
    places = [os.path.join(home, one) for one in users]
    places += [os.path.join(project, one) for one in projects]
    found = [text for place in places for path in _files(place) if (text := _hooks(path))]
    return canonical.sha256(b"\n".join(found)).hex() if found else None


def _files(place: str) -> "Iterator[str]":
    try:
        names = sorted(os.listdir(place))[:_MOST_FILES]
    except OSError:  # no folder
        yield place
        return
    yield from (os.path.join(place, name) for name in names)


def _hooks(path: str) -> bytes:
    """What a file says of hooks; nothing if it is not there or says nothing."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return b""
    try:
        found = os.fstat(file)
        is_small = stat.S_ISREG(found.st_mode) and found.st_size <= _LARGEST
        data = os.read(file, _LARGEST) if is_small else b""
    finally:
        os.close(file)
    if not path.endswith(".json"):
        return data
    try:
        hooks = json.loads(data).get("hooks")
        return canonical.dump(hooks) if hooks else b""
    except (ValueError, AttributeError, RecursionError):
        return data
