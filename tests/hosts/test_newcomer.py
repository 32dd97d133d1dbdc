"""From the README to a session of Claude Code that somebody watches: two commands."""

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from tests.hosts.drive import HOSTS, SCRIPT, Place, run
from tests.hosts.model import say
from tests.support.client import TESTS

pytestmark = pytest.mark.slow


def commands() -> list[str]:
    """Those that the README tells to enter in one's own project."""
    page = (TESTS.parent / "README.md").read_text(encoding="utf-8")
    found = re.search(r"In your own project:\n\n```sh\n(.*?)```", page, re.DOTALL)
    assert found
    return found[1].splitlines()


@contextmanager
def watching(command: str, place: Place, env: dict[str, str], out: Path) -> Iterator[None]:
    with out.open("wb") as file:
        process = subprocess.Popen(
            ["sh", "-c", f"exec {command}"],
            cwd=place.project,
            env=env,
            stdout=file,
            stderr=file,
            # A run in the background ignores it, and so would this.
            preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
        )
    try:
        yield
        assert process.poll() is None, "it goes on until it is told to stop"
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(20)


def test_two_commands_of_the_readme_show_what_claude_code_does(tmp_path: Path) -> None:
    """In a project without git, settings or ledger. Specification 22.6."""
    name, place, out = "claude-code", Place.below(tmp_path), tmp_path / "out"
    (place.home / "bin").mkdir()
    (place.home / "bin" / "colibri").symlink_to(SCRIPT)
    env = place.environment()
    env["PATH"] = os.pathsep.join([str(place.home / "bin"), env["PATH"]])
    env["HOME"] += "/"  # who has the home of the run by name is ended with it
    setup, trail = commands()
    subprocess.run(["sh", "-c", setup], cwd=place.project, env=env, check=True, timeout=60)
    tools = HOSTS[name].tools
    turns = [
        [tools.colibri("audit_session_start", intent="Write a file", agent_id="agent")],
        [tools.write(str(place.project / "a.txt"), "alpha\n")],
        [tools.run("sh -c 'exit 3'")],
        [say("Done.")],
    ]
    with watching(trail, place, env, out):
        ran = run(name, turns, place)
        assert ran.code == 0, ran.err[-2000:]
        _wait_for(out, "host session ended")
    text = out.read_text()
    assert "edited  a.txt" in text
    assert "ran  sh -c 'exit 3'  failed, exit 3" in text


def _wait_for(out: Path, text: str) -> None:
    for _ in range(300):
        if text in out.read_text():
            return
        time.sleep(0.1)
    pytest.fail(f"{text!r} never came: {out.read_text()}")
