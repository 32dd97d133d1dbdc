"""The official Python clients, 2.x and 1.x, drive the real server and are satisfied."""

import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import mcp.client.stdio
import mcp_types
import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client

from tests.support.client import COLIBRI, TESTS, TOOLBOX, environment, execute_raw

CLIENT_1X = TESTS.parent / ".venv-client-1x" / "bin" / "python"
PATIENCE = 60.0
MODES = {"legacy": "2025-11-25", "auto": "2026-07-28", "2026-07-28": "2026-07-28"}

# Starts the server for a client, and writes its pid and later its exit code to a file.
WITNESS = """
import pathlib, subprocess, sys
here, shell = sys.argv[1], 'echo $$ >"$0/pid"; exec "$@"'
code = subprocess.run(["sh", "-c", shell, *sys.argv[1:]]).returncode
pathlib.Path(here, "code").write_text(str(code))
"""


def witnessed(project: Path, program: Sequence[str]) -> list[str]:
    return [sys.executable, "-c", WITNESS, str(project), *program]


def ended(project: Path) -> int:
    """The server's exit code; the client waited until it was written."""
    with pytest.raises(ProcessLookupError):
        os.kill(int((project / "pid").read_text()), 0)
    return int((project / "code").read_text())


@asynccontextmanager
async def connected(project: Path, program: Sequence[str], mode: str) -> AsyncIterator[Client]:
    command, *args = witnessed(project, program)
    server = StdioServerParameters(command=command, args=args, cwd=project, env=environment())
    with anyio.fail_after(PATIENCE), (project / "stderr").open("w") as errlog:
        async with Client(stdio_client(server, errlog=errlog), mode=mode) as client:
            yield client


def run(
    project: Path,
    story: Callable[[Client], Awaitable[None]],
    mode: str = "2026-07-28",
    program: Sequence[str] = TOOLBOX,
) -> None:
    """Connect, tell the story, disconnect."""

    async def session() -> None:
        async with connected(project, program, mode) as client:
            await story(client)

    anyio.run(session)


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client's two-second timeout is not under test, and the machine may be busy."""
    monkeypatch.setattr(mcp.client.stdio, "PROCESS_TERMINATION_TIMEOUT", 30.0)


@pytest.mark.parametrize(("mode", "version"), MODES.items())
def test_mcp_2_connects_in_both_eras_and_knows_the_server(
    tmp_path: Path, mode: str, version: str
) -> None:
    """Specification 2.2, 2.3, 2.23: both handshakes."""

    async def story(client: Client) -> None:
        assert client.protocol_version == version
        await client.list_tools()
        if mode != version:  # a client with a given version does not ask for the server's identity
            assert client.server_capabilities.tools is not None
            assert client.instructions
            assert client.server_info is not None
            assert client.server_info.name == "colibri"

    run(tmp_path, story, mode, COLIBRI)
    assert ended(tmp_path) == 0


@pytest.mark.parametrize("mode", MODES)
def test_mcp_2_lists_the_tools_and_calls_the_probes(tmp_path: Path, mode: str) -> None:
    """Specification 4.9: the client checks structuredContent against the advertised schema."""

    async def story(client: Client) -> None:
        tools = (await client.list_tools()).tools
        assert {"server_ping", "server_health"} <= {tool.name for tool in tools}
        for name in ("server_ping", "server_health"):
            result = await client.call_tool(name, {})
            assert not result.is_error
            assert envelope(result)["ok"] is True

    run(tmp_path, story, mode, COLIBRI)
    assert ended(tmp_path) == 0


@pytest.mark.parametrize("mode", MODES)
def test_mcp_2_gets_success_refusal_and_invalid_arguments_as_results(
    tmp_path: Path, mode: str
) -> None:
    """Specification 4.7: isError whenever the operation did not happen, so that clients notice."""

    async def story(client: Client) -> None:
        await client.list_tools()
        success = await client.call_tool("note", {"n": 7})
        assert (success.is_error, envelope(success)["data"]) == (False, {"n": 7})
        assert success.meta is not None
        assert set(success.meta["colibri/receipt"]) == {"log", "seq", "head"}
        refused = await client.call_tool("keep", {"key": "k", "then": "refuse"})
        assert refused.is_error
        assert envelope(refused)["data"]["error"]["code"] == "ERR_TEST"
        invalid = await client.call_tool("note", {"n": "seven"})
        assert invalid.is_error
        assert envelope(invalid)["error"]["code"] == "INVALID_PARAMS"

    run(tmp_path, story, mode)
    assert ended(tmp_path) == 0


@pytest.mark.parametrize("mode", MODES)
def test_mcp_2_gets_an_unknown_tool_as_a_protocol_error_and_continues(
    tmp_path: Path, mode: str
) -> None:
    """Specification 2.17: -32602 naming it."""

    async def story(client: Client) -> None:
        with pytest.raises(MCPError, match="no_such_tool") as caught:
            await client.call_tool("no_such_tool", {})
        assert caught.value.error.code == mcp_types.INVALID_PARAMS
        assert not (await client.call_tool("server_ping", {})).is_error

    run(tmp_path, story, mode, COLIBRI)
    assert ended(tmp_path) == 0


@pytest.mark.parametrize("mode", MODES)
def test_mcp_2_may_have_many_open_calls(tmp_path: Path, mode: str) -> None:
    """Specification 2.14: every request gets exactly one answer."""

    async def story(client: Client) -> None:
        got: list[int] = []

        async def one(number: int) -> None:
            result = await client.call_tool("note", {"n": number})
            got.append(envelope(result)["data"]["n"])

        async with anyio.create_task_group() as group:
            for number in range(100):
                group.start_soon(one, number)
        assert sorted(got) == list(range(100))

    run(tmp_path, story, mode)
    assert ended(tmp_path) == 0


def test_mcp_2_ends_the_server_by_closing_its_input(tmp_path: Path) -> None:
    """Specification 2.22: end of input is a clean shutdown."""

    async def story(client: Client) -> None:
        await client.call_tool("note", {"n": 1})

    run(tmp_path, story)
    assert ended(tmp_path) == 0
    assert "shutdown 1/6 announce: end of input" in (tmp_path / "stderr").read_text()


def test_mcp_2_listens_gets_nothing_granted_and_may_stop(tmp_path: Path) -> None:
    """Specification 2.8: acknowledged with an empty subset; a cancelled one gets no answer."""

    async def story(client: Client) -> None:
        async with client.listen(tools_list_changed=True) as subscription:
            honored = subscription.honored.model_dump(exclude_none=True)
            assert honored == {}
            assert not (await client.call_tool("server_ping", {})).is_error
        assert not (await client.call_tool("note", {"n": 1})).is_error

    run(tmp_path, story)
    assert ended(tmp_path) == 0


def test_mcp_2_gets_the_result_of_its_subscription_when_the_server_stops(tmp_path: Path) -> None:
    """Specification 2.8: one open at shutdown gets its result; an abrupt end would raise here."""
    events: list[object] = []

    async def story(client: Client) -> None:
        async with client.listen(tools_list_changed=True) as subscription:
            os.kill(int((tmp_path / "pid").read_text()), signal.SIGTERM)
            events.extend([event async for event in subscription])

    run(tmp_path, story)
    assert events == []
    assert ended(tmp_path) == 0


@pytest.mark.skipif(
    not CLIENT_1X.exists(), reason=".venv-client-1x with mcp 1.30 is missing: run scripts/setup dev"
)
def test_mcp_1_30_is_served_as_well(tmp_path: Path) -> None:
    """Specification 2.23: the official clients, the older one in its own environment."""
    script = Path(__file__).parent / "client_1x.py"
    done = execute_raw(
        [CLIENT_1X, script, tmp_path, tmp_path / "stderr", *witnessed(tmp_path, TOOLBOX)]
    )
    assert done.returncode == 0, done.stderr.decode()
    seen = json.loads(done.stdout)
    assert seen["initialize"]["protocolVersion"] == "2025-11-25"
    assert seen["initialize"]["serverInfo"]["name"] == "colibri"
    assert "note" in {tool["name"] for tool in seen["tools"]}
    assert seen["success"]["structuredContent"] == {"ok": True, "data": {"n": 7}}
    assert "colibri/receipt" in seen["success"]["_meta"]
    assert seen["refused"]["isError"] is True
    assert seen["refused"]["structuredContent"]["data"]["error"]["code"] == "ERR_TEST"
    assert seen["invalid"]["structuredContent"]["error"]["code"] == "INVALID_PARAMS"
    assert seen["unknown"] == mcp_types.INVALID_PARAMS
    assert seen["after"]["isError"] is False
    assert ended(tmp_path) == 0


def envelope(result: mcp_types.CallToolResult) -> Any:
    """The structured content, which the text repeats."""
    [content] = result.content
    assert isinstance(content, mcp_types.TextContent)
    assert json.loads(content.text) == result.structured_content
    return result.structured_content
