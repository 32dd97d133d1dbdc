"""A user with a home directory and a project, who runs the installed program."""

import json
import re
import sys
import tempfile
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest.mock import patch

from colibri import __main__ as program
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

    def inside(self, *arguments: str, **env: str) -> tuple[int, str, str]:
        """The same in this process, ten times as fast: for many cases of what `run` also tries."""
        command = [sys.executable, "-m", "colibri", *arguments]
        with (
            tempfile.TemporaryFile("w+", encoding="utf-8") as out,
            tempfile.TemporaryFile("w+", encoding="utf-8") as err,
            patch.dict("os.environ", self.environment(**env), clear=True),
            patch.multiple(sys, orig_argv=command, argv=[program.__file__, *arguments]),
            chdir(self.project),
        ):
            with redirect_stdout(out), redirect_stderr(err):
                try:
                    program.main()
                except SystemExit as end:
                    code = int(end.code or 0)
            out.seek(0)
            err.seek(0)
            return code, out.read(), err.read()

    def report(self, *arguments: str, **env: str) -> Any:
        """What a command prints with --json, run inside; it must succeed."""
        code, out, err = self.inside(*arguments, "--json", **env)
        assert (code, err) == (0, "")
        return json.loads(out)


def plain(text: str) -> Any:
    """Read JSON with comments and trailing commas, independently of the program's reader."""
    tokens = r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/'
    bare = re.sub(tokens, lambda found: found[1] or "", text, flags=re.DOTALL)
    bare = re.sub(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])', lambda found: found[1] or "", bare)
    return json.loads(bare.removeprefix("\ufeff"))
