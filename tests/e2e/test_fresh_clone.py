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


def clone_at(clone: Path) -> Path:
    for part in ("scripts", "locks", "src"):
        shutil.copytree(ROOT / part, clone / part, ignore=shutil.ignore_patterns("__pycache__"))
    return clone


def environment() -> dict[str, str]:
    """Ours, but the clone's Python must not see our packages."""
    strange = ("COLIBRI_", "COVERAGE_", "PYTHON")
    return {name: value for name, value in os.environ.items() if not name.startswith(strange)}


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("number", range(CLONES))
def test_set_up_and_the_demo_started_together_both_succeed(tmp_path: Path, number: int) -> None:
    clone, ours = clone_at(tmp_path / "clone"), environment()
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


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_ledger_on_a_server_brings_its_driver(tmp_path: Path) -> None:
    """With COLIBRI_DB_URL scripts/colibri installs psycopg, once; without it nothing changes."""
    clone, ours = clone_at(tmp_path / "clone"), environment()
    url = {"COLIBRI_DB_URL": "postgresql://a@127.0.0.1:1/x"}
    said = []
    for extra in (url, {}, url):
        ended = subprocess.run(
            [clone / "scripts" / "colibri", "status"],
            cwd=tmp_path,
            env={**ours, **extra},
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
        )
        said.append((ended.returncode, ended.stderr))
    assert [code for code, _ in said] == [75, 0, 75], said
    assert "Connection refused" in said[0][1], "by PostgreSQL's own library"
    assert "setting up" in said[0][1]
    assert "setting up" not in said[1][1] + said[2][1]
    assert len(list(clone.glob(".env-*"))) == 1
    shutil.rmtree(clone)
