"""A user with a home directory and a project, who runs the installed program."""

import json
import re
import sys
from pathlib import Path
from typing import Any

from tests.support.client import environment, execute

# Variables that move the clients' files; the environment of a test must not set them.
_ELSEWHERE = (
    "CLAUDE_CONFIG_DIR",
    "CLINE_DIR",
    "CODEX_HOME",
    "COPILOT_HOME",
    "GEMINI_CLI_HOME",
    "QWEN_HOME",
    "XDG_CONFIG_HOME",
)


class Home:
    """`path` is $HOME, `project` the working directory."""

    def __init__(self, tmp_path: Path) -> None:
        self.path = tmp_path / "home"
        self.project = tmp_path / "project"
        self.path.mkdir()
        self.project.mkdir()

    def environment(self, **env: str) -> dict[str, str]:
        return environment(**{"HOME": str(self.path), **dict.fromkeys(_ELSEWHERE, ""), **env})

    def run(self, *arguments: str, **env: str) -> tuple[int, str, str]:
        """Run `python -m colibri` to its end: exit code, stdout, stderr."""
        done = execute(
            [sys.executable, "-m", "colibri", *arguments],
            cwd=self.project,
            env=self.environment(**env),
        )
        return done.returncode, done.stdout, done.stderr

    def report(self, *arguments: str, **env: str) -> Any:
        """The same with --json, which must succeed; what it printed."""
        code, out, err = self.run(*arguments, "--json", **env)
        assert (code, err) == (0, "")
        return json.loads(out)


def plain(text: str) -> Any:
    """Read JSON with comments and trailing commas, independently of the program's reader."""
    tokens = r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/'
    bare = re.sub(tokens, lambda found: found[1] or "", text, flags=re.DOTALL)
    bare = re.sub(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])', lambda found: found[1] or "", bare)
    return json.loads(bare.removeprefix("\ufeff"))
