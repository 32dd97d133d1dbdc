"""A fresh clone sets itself up, even if several programs start it at the same moment.

COLIBRI_FRESH_CLONES=20 tests twenty clones, one after another.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.client import TESTS

ROOT = TESTS.parent
CLONES = int(os.environ.get("COLIBRI_FRESH_CLONES", "1"))


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.timeout(300)
@pytest.mark.parametrize("number", range(CLONES))
def test_set_up_and_the_demo_started_together_both_succeed(tmp_path: Path, number: int) -> None:
    clone = tmp_path / "clone"
    for part in ("scripts", "locks", "src"):
        shutil.copytree(ROOT / part, clone / part, ignore=shutil.ignore_patterns("__pycache__"))
    ours = {name: value for name, value in os.environ.items() if not name.startswith("COLIBRI_")}
    for name in [name for name in ours if name.startswith(("COVERAGE_", "PYTHON"))]:
        del ours[name]  # the clone's Python must not see our packages
    commands = [["scripts/setup"], ["scripts/colibri", "demo", "--json"]]
    if number % 2:
        commands.reverse()
    started = [
        subprocess.Popen(
            command, cwd=clone, env=ours, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for command in commands
    ]
    ended = {
        process.args[0]: (*process.communicate(timeout=280), process.returncode)  # type: ignore[index]
        for process in started
    }
    assert [code for _, _, code in ended.values()] == [0, 0], ended
    outcome = json.loads(ended["scripts/colibri"][0])
    assert (outcome["verified"]["verdict"], outcome["forged"]["verdict"]) == ("good", "bad")
    assert (clone / ".venv").is_symlink()
    assert len(list(clone.glob(".env-*"))) == 1, "nothing is left of a second set-up"
    shutil.rmtree(outcome["directory"])
    shutil.rmtree(clone)
