"""Every real host, set up by `colibri setup`: it reaches the server, and the model sees enough."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.hosts.drive import HOSTS, Place, Run, run
from tests.hosts.model import Part, Request, say

# Where a host lists our tools to the model at the start, and where it tells who calls.
LISTED = ("gemini", "copilot", "cline", "opencode")
TELLS_SESSION = ("claude-code", "codex", "copilot", "qwen")
TELLS_USE = ("claude-code", "codex")


def session_in(request: Request) -> str:
    found = re.findall(r"S-[0-9a-f]{12}", request.text)
    assert found, "the model never saw the id of its session"
    return str(found[-1])


def story(name: str) -> list[list[Part] | Callable[[Request], list[Part]]]:
    """A session in the host's own words: a task from nothing to its seal."""
    ours = HOSTS[name].tools.colibri
    plan = {"type": "plan", "content": "Look, then write."}
    result = {"type": "reflection", "content": "It is written; the test passes."}
    to_apply, to_done = ["GATHER", "ANALYZE", "PLAN", "APPLY"], ["VERIFY", "DONE"]
    return [
        [ours("audit_session_start", intent="Write a file", agent_id=f"{name}-agent")],
        [ours("task_create", title="Write a file")],
        [ours("task_next_actions", claim=True)],
        [ours("task_update", task_id="T-0001", status=to_apply, thought=plan)],
        [ours("task_update", task_id="T-0001", status="PLAN")],  # refused: not the next state
        [ours("task_update", task_id="T-0001", status=to_done, thought=result)],
        lambda request: [ours("merkle_finalize", session_id=session_in(request))],
        [say("Done.")],
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTS)
def test_a_session_in_a_real_host(name: str, tmp_path: Path) -> None:
    place = Place.below(tmp_path)
    place.colibri("setup", name, "--write")
    ran = run(name, story(name), place)
    assert ran.code == 0, ran.err[-2000:]
    model_saw_what_it_needs(name, ran)
    records = [json.loads(line) for line in place.colibri("log", "--json").splitlines()]
    enters = [one for one in records if one["kind"] == "call.enter"]
    assert len(enters) == len(story(name)) - 1, "every call arrived, once"
    for enter in enters:
        assert bool(enter["payload"]["host_session"]) == (name in TELLS_SESSION)
        assert bool(enter["payload"]["use"]) == (name in TELLS_USE)
    assert json.loads(place.colibri("sessions", "--json"))["sealed"] == 1


def model_saw_what_it_needs(name: str, ran: Run) -> None:
    tools = next(request.tools for request in ran.requests if not request.is_aside)
    ours = [tool for tool in tools if tool.endswith(("task_create", "merkle_root"))]
    assert bool(ours) == (name in LISTED)
    assert ran.sent("T-0001"), "the id of the new task"
    assert ran.sent("ERR_INVALID_TRANSITION"), "the code of a refusal, and with it what to do"
