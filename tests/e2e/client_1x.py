"""A session of the official client mcp 1.30 with a server; run by .venv-client-1x.

    client_1x.py CWD STDERR_FILE COMMAND...

It writes one JSON object to stdout: what the client saw. Results are dumped by alias, because the
1.x models have other attribute names than the 2.x ones that this file is type-checked against.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import anyio
import mcp.client.stdio
from mcp import ClientSession, StdioServerParameters

# The client's two-second timeout is not under test, and the machine may be busy.
mcp.client.stdio.PROCESS_TERMINATION_TIMEOUT = 30.0
TIMEOUT = 60


async def session(cwd: str, stderr: str, command: list[str]) -> dict[str, Any]:
    server = StdioServerParameters(
        command=command[0], args=command[1:], cwd=cwd, env=dict(os.environ)
    )
    seen: dict[str, Any] = {}
    with anyio.fail_after(TIMEOUT), Path(stderr).open("w") as errlog:
        async with (
            mcp.client.stdio.stdio_client(server, errlog=errlog) as (read, write),
            ClientSession(read, write) as client,
        ):
            seen["initialize"] = dump(await client.initialize())
            seen["ping"] = dump(await client.send_ping())
            seen["tools"] = dump(await client.list_tools())["tools"]
            seen["success"] = dump(await client.call_tool("note", {"n": 7}))
            seen["refused"] = dump(await client.call_tool("keep", {"key": "k", "then": "refuse"}))
            seen["invalid"] = dump(await client.call_tool("note", {"n": "seven"}))
            try:
                await client.call_tool("no_such_tool", {})
            except Exception as problem:  # McpError here, MCPError in 2.x
                seen["unknown"] = getattr(problem, "error").code  # noqa: B009 # mypy has 2.x
            seen["after"] = dump(await client.call_tool("server_ping", {}))
    return seen


def dump(result: Any) -> dict[str, Any]:
    dumped: dict[str, Any] = result.model_dump(by_alias=True, mode="json", exclude_none=True)
    return dumped


if __name__ == "__main__":
    sys.stdout.write(json.dumps(anyio.run(session, sys.argv[1], sys.argv[2], sys.argv[3:])))
