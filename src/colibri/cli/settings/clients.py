"""The MCP clients that `colibri setup` knows: where each keeps its servers, and in which form.

Applications keep theirs in ~/Library/Application Support on macOS and in ~/.config elsewhere. A
server must be told its project where the client does not start it there: by a variable that the
client fills in, or by a fixed path.
"""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from colibri.cli.settings.jsonc import Json
from colibri.cli.settings.toml import Toml
from colibri.config import home_of

NAME = "colibri"
WORKSPACE = "${workspaceFolder}"  # VS Code and what is made of it fill in the open folder
FIXED = "the project's path"

_PLAIN = Json()

_APPLICATIONS = {"darwin": ("", "~/Library/Application Support")}.get(
    sys.platform, ("XDG_CONFIG_HOME", "~/.config")
)


class Language(Protocol):
    """How a settings file is read and changed: Json or Toml."""

    def load(self, text: str) -> Any: ...

    def put(self, text: str, path: tuple[str, ...], value: Any) -> str: ...


@dataclass(frozen=True, slots=True)
class Client:
    title: str
    then: str  # what its user does next
    language: Language = _PLAIN
    servers: str = "mcpServers"
    project_file: str = ""  # below the project directory; "" if it has none
    user_home: tuple[str, str] = ("", "~")  # the variable that moves it, and where it is otherwise
    user_file: str = ""  # below that; "" if it has none
    told: str = ""  # how a server learns its project: "" if it is started there
    type: str = ""  # written out where the client wants it
    one_list: bool = False  # the program and its arguments are one list
    guide: str = "AGENTS.md"  # what its agents read first in a project

    def file(self, project: str, *, user: bool) -> tuple[str, str]:
        """The settings file and its scope: "project" or "user", ("", "") if there is none."""
        if self.project_file and not user:
            return os.path.join(project, self.project_file), "project"
        if self.user_file:
            return os.path.join(home_of(*self.user_home), self.user_file), "user"
        return "", ""

    def files(self, project: str) -> list[tuple[str, str]]:
        """Both of them, once each."""
        both = dict([self.file(project, user=True), self.file(project, user=False)])
        return [(path, scope) for path, scope in both.items() if path]

    def entry(self, command: Sequence[str], project: str) -> dict[str, Any]:
        """What starts the server for a project, "" for the one that the client is in."""
        args = [*command[1:], "serve"]
        if project:
            args += ["--project", project]
        entry: dict[str, Any] = {"type": self.type} if self.type else {}
        if self.one_list:
            return {**entry, "command": [command[0], *args]}
        return {**entry, "command": command[0], "args": args}


CLIENTS = {
    "claude-code": Client(
        title="Claude Code",
        then="start claude in the project and approve the server; /mcp shows it",
        project_file=".mcp.json",
        guide="CLAUDE.md",
        user_home=("CLAUDE_CONFIG_DIR", "~"),
        user_file=".claude.json",
    ),
    "claude-desktop": Client(
        title="Claude Desktop",
        then="quit Claude Desktop and start it again",
        user_home=_APPLICATIONS,
        user_file="Claude/claude_desktop_config.json",
        told=FIXED,
    ),
    "cursor": Client(
        title="Cursor",
        then="switch the server on in the MCP part of Cursor's settings",
        language=Json(comments=True),
        project_file=".cursor/mcp.json",
        user_file=".cursor/mcp.json",
        told=WORKSPACE,
    ),
    "vscode": Client(
        title="VS Code",
        then='run "MCP: List Servers" from the command palette and start it',
        language=Json(comments=True, commas=True),
        servers="servers",
        project_file=".vscode/mcp.json",
        user_home=_APPLICATIONS,
        user_file="Code/User/mcp.json",
        told=WORKSPACE,
        type="stdio",
    ),
    "codex": Client(
        title="Codex",
        then="start codex in the project; /mcp shows the server",
        language=Toml(),
        servers="mcp_servers",
        user_home=("CODEX_HOME", "~/.codex"),
        user_file="config.toml",
    ),
    "gemini": Client(
        title="Gemini CLI",
        then="start gemini in the project; /mcp shows the server",
        language=Json(comments=True),
        project_file=".gemini/settings.json",
        guide="GEMINI.md",
        user_home=("GEMINI_CLI_HOME", "~"),
        user_file=".gemini/settings.json",
    ),
    "copilot": Client(
        title="Copilot CLI",
        then="start copilot in the project; /mcp shows the server",
        project_file=".github/mcp.json",
        user_home=("COPILOT_HOME", "~/.copilot"),
        user_file="mcp-config.json",
    ),
    "qwen": Client(
        title="Qwen Code",
        then="start qwen in the project; /mcp shows the server",
        language=Json(comments=True),
        project_file=".qwen/settings.json",
        user_home=("QWEN_HOME", "~/.qwen"),
        user_file="settings.json",
    ),
    "cline": Client(
        title="Cline",
        then="start cline in the project",
        user_home=("CLINE_DIR", "~/.cline"),
        user_file="data/settings/cline_mcp_settings.json",
        told=FIXED,  # its daemon starts every server in the project that it was first used in
    ),
    "opencode": Client(
        title="OpenCode",
        then="start opencode in the project",
        language=Json(comments=True, commas=True),
        servers="mcp",
        project_file="opencode.json",
        user_home=("XDG_CONFIG_HOME", "~/.config"),
        user_file="opencode/opencode.json",
        type="local",
        one_list=True,
    ),
    "generic": Client(
        title="another client",
        then="start your client again",
        told=FIXED,
    ),
}
