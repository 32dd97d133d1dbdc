"""Settings files of MCP clients, as clients and users really write them."""

import tomllib
from pathlib import Path
from typing import Any, NamedTuple


class Where(NamedTuple):
    """A client, its name on the command line, and its file below the user's home or project."""

    client: str
    options: tuple[str, ...]
    file: str


CLAUDE_CODE = Where("claude-code", (), "project/.mcp.json")
CLAUDE_USER = Where("claude-code", ("--user",), "home/.claude.json")
CURSOR = Where("cursor", (), "project/.cursor/mcp.json")
CURSOR_USER = Where("cursor", ("--user",), "home/.cursor/mcp.json")
VSCODE = Where("vscode", (), "project/.vscode/mcp.json")
CODEX = Where("codex", (), "home/.codex/config.toml")
GEMINI = Where("gemini", (), "project/.gemini/settings.json")
GEMINI_USER = Where("gemini", ("--user",), "home/.gemini/settings.json")
COPILOT = Where("copilot", (), "project/.github/mcp.json")
COPILOT_USER = Where("copilot", ("--user",), "home/.copilot/mcp-config.json")
QWEN = Where("qwen", (), "project/.qwen/settings.json")
QWEN_USER = Where("qwen", ("--user",), "home/.qwen/settings.json")
CLINE = Where("cline", (), "home/.cline/data/settings/cline_mcp_settings.json")
OPENCODE = Where("opencode", (), "project/opencode.json")
OPENCODE_USER = Where("opencode", ("--user",), "home/.config/opencode/opencode.json")


DATA = Path(__file__).parents[1] / "data" / "client_settings.toml"
_FILES = tomllib.loads(DATA.read_text(encoding="utf-8"))


def _files(title: str, *members: str) -> dict[str, tuple[Any, ...]]:
    """By name: where the file is, and these members."""
    return {
        one["name"]: (globals()[one["where"]], *(one[member] for member in members))
        for one in _FILES[title]
    }


# Files to which setup adds an entry and from which it removes nothing.
ADDED: dict[str, tuple[Where, str]] = _files("added", "file")
# Files that setup changes: before, and after with COLIBRI for the command.
CHANGED: dict[str, tuple[Where, str, str]] = _files("changed", "file", "after")
# What is wrong with each, and where.
BROKEN: dict[str, tuple[Where, str, str]] = {
    **_files("broken", "file", "says"),
    "not UTF-8": (CLAUDE_CODE, "{\n  \udcff}", "line 2, column 3: it is not UTF-8"),
    "nested without end": (GEMINI, "[" * 3000, "line 1, column 1: it is nested too deep"),
}
# Valid TOML in a form that setup does not edit.
UNUSUAL: dict[str, str] = {one["name"]: one["file"] for one in _FILES["unusual"]}
