"""A person's day with only the installed program and a terminal, without any agent."""

import os
import pwd
import re
import sys
from pathlib import Path

from colibri import VERSION
from tests.cli.test_launch import installed  # noqa: F401 - a fixture
from tests.cli.test_person import records
from tests.support.client import COLIBRI, Server, environment
from tests.support.terminal import run_in_terminal

ME = f"human:{pwd.getpwuid(os.geteuid()).pw_name}"

# What is typed, the exit code, and what the terminal must show.
DAY = (
    ('add "Lay the floor" --priority high', 0, "T-0001"),
    ('add "Paint it" --depends-on T-0001', 0, "T-0002"),
    ("tasks --ready", 0, "T-0001"),
    ("claim", 0, "T-0001"),
    ('note "Oak lasts longest" --task T-0001 --type decision', 0, "decision"),
    ('move T-0001 GATHER ANALYZE PLAN APPLY --why "oak it is"', 0, "APPLY"),
    ("move T-0001 VERIFY DONE", 0, "DONE"),
    ("move T-0002 GATHER ANALYZE PLAN", 0, "PLAN"),
    ("move T-0002 DONE", 1, "T-0002 is PLAN: it can move to APPLY or CANCELLED"),
    ("tasks", 0, "DONE"),
    ("seal", 0, "root"),
    ("report SESSION -o day.html", 0, "wrote day.html"),
    ("verify", 0, "GOOD"),
)


def test_plan_claim_note_move_close_seal_report(installed: Path, tmp_path: Path) -> None:  # noqa: F811
    """Every step in an 80-column terminal; every record has the person and the client."""
    env = environment(NO_COLOR="1", PYTHONPATH="", PATH=f"{installed / 'bin'}:/usr/bin:/bin")
    session = ""
    for typed, expected, part in DAY:
        line = f"colibri {typed}".replace("SESSION", session)
        code, shown = run_in_terminal(["sh", "-c", line], cwd=tmp_path, columns=80, env=env)
        assert (typed, code) == (typed, expected), shown
        assert part in " ".join(shown.split()), (typed, shown)
        assert "Traceback" not in shown
        session = (re.findall(r"^sealed +(S-\w+)", shown, re.MULTILINE) or [session])[0]
    every = records(tmp_path)
    assert {one["agent"] for one in every} == {ME}
    clients = {one["said"]["client"] for one in every if one["kind"] == "call.enter"}
    assert clients == {f"colibri-cli {VERSION}"}
    assert {one["session"] for one in every if one["kind"] != "call.enter"} == {session}
    refused = [one["said"] for one in every if one["kind"] == "call.exit"]
    assert [one["code"] for one in refused if one["outcome"] == "refused"] == [
        "ERR_INVALID_TRANSITION"
    ]
    assert b"colibri-bundle" in (tmp_path / "day.html").read_bytes()


def test_an_agent_is_refused_in_the_same_words(tmp_path: Path) -> None:
    with Server(tmp_path, COLIBRI) as server:
        server.data("task_create", title="Paint it")
        server.data("task_update", task_id="T-0001", status=["GATHER", "ANALYZE", "PLAN"])
        said = server.call("task_update", task_id="T-0001", status="DONE")
    command = [sys.executable, "-m", "colibri", "move", "T-0001", "DONE"]
    _, shown = run_in_terminal(command, cwd=tmp_path, columns=400, env=environment())
    assert said["structuredContent"]["data"]["error"]["message"] in shown
