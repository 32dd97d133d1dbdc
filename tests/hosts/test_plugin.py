"""The plugin folder in real hosts, with nothing set up: the server, the hooks and the skills.

Specification 22.7.
"""

import os
import subprocess
from pathlib import Path

import pytest

from tests.hosts.drive import HOSTS, SCRIPT, Place, program
from tests.hosts.story import CLASSES, Played, play, repository
from tests.support.client import TESTS

pytestmark = pytest.mark.slow

ROOT = TESTS.parent
PLUGIN = ROOT / "plugin"


def place_of(folder: Path) -> Place:
    """A user whose PATH has `colibri`: hosts that copy the folder leave the clone behind."""
    place = Place.below(folder)
    repository(place)
    return place


def host(name: str, place: Place, *arguments: str) -> str:
    """One of its own commands; it must succeed."""
    env = place.environment(GEMINI_CLI_TRUST_WORKSPACE="true")
    done = subprocess.run(
        [*program(name), *arguments],
        env=env,
        cwd=place.project,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def check(played: Played, skill: str = "{}") -> None:
    """Every tool call is a deed of the project, and the model learns of the skills."""
    assert [one["payload"]["class"] for one in played.ends()] == CLASSES
    assert played.verdict()["verdict"] == "good"
    for folder in (PLUGIN / "skills").iterdir():
        assert played.ran.sent(skill.format(folder.name))
    assert not (PLUGIN / "data").exists()


def test_claude_code_takes_the_folder(tmp_path: Path) -> None:
    name, place = "claude-code", place_of(tmp_path)
    tools = HOSTS[name].tools._replace(ours="mcp__plugin_colibri_colibri__{}")
    check(play(name, place, "--plugin-dir", str(PLUGIN), tools=tools), "colibri:{}")


def test_copilot_takes_the_folder(tmp_path: Path) -> None:
    """It starts the server in the folder: the ledger is still the project's."""
    name, place = "copilot", place_of(tmp_path)
    check(play(name, place, "--plugin-dir", str(PLUGIN)))


def test_codex_installs_it_from_the_clone(tmp_path: Path) -> None:
    name, place = "codex", place_of(tmp_path)
    (place.home / "bin").mkdir()
    (place.home / "bin" / "colibri").symlink_to(SCRIPT)
    host(name, place, "plugin", "marketplace", "add", str(ROOT))
    host(name, place, "plugin", "add", "colibri@colibri")
    path = os.pathsep.join([str(place.home / "bin"), place.environment()["PATH"]])
    check(play(name, place, PATH=path))


@pytest.mark.parametrize("how", ["link", "install"])
def test_gemini_takes_the_folder_for_it(how: str, tmp_path: Path) -> None:
    name, place = "gemini", place_of(tmp_path)
    host(name, place, "extensions", how, str(PLUGIN / "gemini"), "--consent")
    check(play(name, place))
