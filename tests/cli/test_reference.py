"""docs/cli.md is the help of the commands."""

import re
import subprocess
import sys
from pathlib import Path

from colibri import cli
from tests.support.client import TESTS, environment, execute

ROOT = TESTS.parent
REFERENCE = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return execute(
        [sys.executable, str(ROOT / "scripts" / "reference.py"), *arguments],
        env=environment(COLUMNS="40"),
    )


def test_a_stale_page_fails_the_check_and_is_rewritten_without_it(tmp_path: Path) -> None:
    """Specification 18.3: generated documents are rebuilt by a script and diffed in the tests."""
    file = tmp_path / "cli.md"
    stale = REFERENCE.replace("--follow", "--fellow")
    file.write_text(stale, encoding="utf-8")
    done = run("--check", str(file))
    assert (done.returncode, done.stderr) == (1, "cli.md is stale: run scripts/reference\n")
    assert file.read_text(encoding="utf-8") == stale
    assert run(str(file)).returncode == 0
    assert file.read_text(encoding="utf-8") == REFERENCE


def test_every_command_has_its_section() -> None:
    sections = re.findall(r"^## colibri ([\w-]+)$", REFERENCE, re.MULTILINE)
    assert sorted(sections) == sorted(cli.COMMANDS)
    for name in cli.COMMANDS:
        assert f"  {name:<12}{cli.command(name).HELP}\n" in REFERENCE
