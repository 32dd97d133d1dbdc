"""The story of an agent, through the official client: plan, work, crash, resume."""

import os
import re
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from tests.support import engines, ledger_reader
from tests.support.client import COLIBRI, JSON, environment

PATIENCE = 60.0
PLAN = ("read", "measure", "decide", "build", "tell")
WEEDS = "weed the garden"
AHEAD = ["GATHER", "ANALYZE", "PLAN", "APPLY"]


class Agent:
    """Calls tools, and counts them."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.calls: list[str] = []

    async def __call__(self, tool: str, **arguments: Any) -> JSON:
        self.calls.append(tool)
        result = await self.client.call_tool(tool, arguments)
        assert not result.is_error, result
        assert result.structured_content is not None
        data: JSON = result.structured_content["data"]
        return data

    async def work_on_the_next(self, why: str) -> str:
        """Work on a task from claim to end, in three calls."""
        (task,) = (await self("task_next_actions", claim=True))["tasks"]
        id: str = task["task_id"]
        steps = AHEAD[AHEAD.index(task["status"]) + 1 :] if task["status"] in AHEAD else AHEAD
        plan = {"type": "plan", "content": f"{why}: first look, then touch"}
        await self("task_update", task_id=id, status=steps, thought=plan)
        done = {"type": "reflection", "content": f"{why}: it holds"}
        await self("task_update", task_id=id, status=["VERIFY", "DONE"], thought=done)
        return id


@asynccontextmanager
async def connected(project: Path) -> AsyncIterator[Agent]:
    command, *args = COLIBRI
    env = environment(**engines.environment(project))
    server = StdioServerParameters(command=command, args=args, cwd=project, env=env)
    with anyio.fail_after(PATIENCE), (project / "stderr").open("a") as errlog:
        async with Client(stdio_client(server, errlog=errlog)) as client:
            yield Agent(client)


def records(project: Path) -> list[JSON]:
    return ledger_reader.records(project / "data" / "colibri.db")


async def plan_and_die(project: Path) -> None:
    """A session and five dependent tasks, one of them done, one begun; then a crash."""
    async with connected(project) as agent:
        await agent("audit_session_start", intent="make it faster", agent_id="ada")
        before: list[str] = []
        for title in PLAN:
            made = await agent("task_create", title=title, depends_on=before[-1:])
            before.append(made["task_id"])
        planned = len(agent.calls)
        assert await agent.work_on_the_next("read") == "T-0001"
        assert agent.calls[planned:] == ["task_next_actions", "task_update", "task_update"]
        (begun,) = (await agent("task_next_actions", claim=True))["tasks"]
        await agent("task_update", task_id=begun["task_id"], status="GATHER")
        health = await agent("server_health")
        assert health["project"]["path"] == str(project)
        os.kill(_server_of(project), signal.SIGKILL)


def _server_of(project: Path) -> int:
    """The one process that runs in this directory."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                command = (entry / "cmdline").read_bytes()
                if b"colibri\0serve" in command and (entry / "cwd").resolve() == project:
                    found.append(int(entry.name))
            except OSError:
                continue
    (pid,) = found
    return pid


async def go_on(project: Path) -> None:
    """Another process of the same agent, which knows only the brief."""
    async with connected(project) as agent:
        started = await agent("audit_session_start", intent="look around", agent_id="eve")
        line = r'- (\S+) by "ada", last sign of life \S+: "make it faster"'
        told = re.search(line, started["brief"])
        assert told is not None, started["brief"]
        assert "- T-0002 GATHER, held by" in started["brief"]
        resumed = await agent("audit_session_start", session_id=told[1], resume=True, brief=False)
        assert (resumed["intent"], resumed["agent_id"]) == ("make it faster", "ada")
        assert started["session_id"] in resumed["note"]
        named = {"session_id": told[1]}
        for title in PLAN[1:]:
            (task,) = (await agent("task_next_actions", claim=True, **named))["tasks"]
            assert task["title"] == title
            ahead = AHEAD[AHEAD.index(task["status"]) + 1 :] if task["status"] in AHEAD else AHEAD
            done = {"type": "reflection", "content": f"{title}: it holds"}
            steps = [*ahead, "VERIFY", "DONE"]
            await agent("task_update", task_id=task["task_id"], status=steps, thought=done, **named)
            if title == PLAN[2]:
                await work_in_parallel(project)
        await agent("merkle_finalize", session_id=told[1])


async def work_in_parallel(project: Path) -> None:
    """Another agent, with its own process and session, while the first works."""
    async with connected(project) as other:
        await other("audit_session_start", intent=WEEDS, agent_id="bea")
        made = await other("task_create", title="weed", priority="critical")
        assert await other.work_on_the_next("weed") == made["task_id"]
        await other("thought_record", type="decision", content="the thistles stay")


def live(project: Path) -> str:
    """Run the whole story; returns its session."""
    anyio.run(plan_and_die, project)
    anyio.run(go_on, project)
    (mine,) = [
        one["session"]
        for one in records(project)
        if one["kind"] == "session.open" and one["said"]["intent"] == "make it faster"
    ]
    assert isinstance(mine, str)
    return mine


def test_an_agent_plans_works_dies_and_resumes(tmp_path: Path) -> None:
    """Three calls a task; a resumed agent knows where it was; every record names its owner."""
    live(tmp_path)
    log = records(tmp_path)
    opened = {one["said"]["intent"]: one["session"] for one in log if one["kind"] == "session.open"}
    mine, others, beside = (opened[what] for what in ("make it faster", "look around", WEEDS))
    agents = {mine: "ada", others: "eve", beside: "bea"}
    made = [one for one in log if one["kind"] in ("task", "task.text", "thought")]
    assert {one["session"] for one in made} == {mine, beside}
    changes = [one for one in made if one["session"] == mine]
    entered = [one for one in log if one["kind"] == "call.enter"]
    assert all(one["said"]["client"] for one in entered)
    assert {one["call"] for one in entered} == {one["call"] for one in log}
    starts = [one["call"] for one in entered if _opens_a_session(one)]
    nameless = [one for one in log if one["session"] is None]
    assert [(one["kind"], one["call"]) for one in nameless] == [("call.enter", c) for c in starts]
    assert [one["agent"] for one in nameless] == [*agents.values()]
    named = [one for one in log if one["session"] is not None]
    assert all(one["agent"] == agents[one["session"]] for one in named)
    resumed = [one for one in log if one["kind"] == "session.resume"]
    assert [one["session"] for one in resumed] == [mine]
    moves = [one["said"]["set"]["status"][1] for one in changes if "status" in _set(one)]
    assert moves.count("DONE") == len(PLAN)


def _opens_a_session(enter: JSON) -> bool:
    """Whether the server chose the id, which therefore is not known before the call."""
    said = enter["said"]
    return said["tool"] == "audit_session_start" and "session_id" not in said["arguments"]


def _set(record: JSON) -> JSON:
    changed: JSON = record["said"].get("set", {})
    return changed
