"""The official client, mcp 2.x, in front of the real server."""

import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import mcp.client.stdio
import mcp_types
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from tests.support.client import environment

PATIENCE = 60.0


class Caller:
    """Calls a tool and takes its envelope apart."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def envelope(self, tool: str, /, **arguments: Any) -> tuple[bool, Any]:
        """Whether the client saw an error, and the structured content."""
        result = await self.client.call_tool(tool, arguments)
        assert isinstance(result, mcp_types.CallToolResult)
        return bool(result.is_error), result.structured_content

    async def data(self, tool: str, /, **arguments: Any) -> Any:
        """The data of a call that must succeed."""
        is_error, content = await self.envelope(tool, **arguments)
        assert not is_error, content
        return content["data"]

    async def refusal(self, tool: str, /, **arguments: Any) -> Any:
        """The error of a refusal, pattern B."""
        is_error, content = await self.envelope(tool, **arguments)
        assert is_error, content
        assert (content["ok"], content["data"]["ok"]) == (True, False)
        return content["data"]["error"]


def run(project: Path, story: Callable[[Caller], Awaitable[None]]) -> None:
    """Start the server with the client, tell the story, disconnect."""
    mcp.client.stdio.PROCESS_TERMINATION_TIMEOUT = 30.0  # the machine may be busy

    async def session() -> None:
        server = StdioServerParameters(
            command=sys.executable, args=["-m", "colibri", "serve"], cwd=project, env=environment()
        )
        with anyio.fail_after(PATIENCE), (project / "stderr").open("w") as errlog:
            async with Client(stdio_client(server, errlog=errlog), mode="2026-07-28") as client:
                await story(Caller(client))

    anyio.run(session)
