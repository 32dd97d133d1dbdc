"""The same tool on the official Python SDK, on its low-level server, the leaner of the two."""

import asyncio
import json
from typing import Annotated, Any

import mcp_types as types
from ledger import Ledger
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from pydantic import BaseModel, Field


class TaskCreate(BaseModel):
    title: Annotated[str, Field(min_length=1, max_length=256)]


ledger = Ledger()
TOOLS = [
    types.Tool(
        name="task_create",
        description="Create a task.",
        input_schema=TaskCreate.model_json_schema(),
    )
]


async def list_tools(context: Any, params: Any) -> types.ListToolsResult:
    return types.ListToolsResult(tools=TOOLS)


async def call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    task = TaskCreate.model_validate(params.arguments)
    text = json.dumps(ledger.create(task.title))
    return types.CallToolResult(content=[types.TextContent(text=text)])


async def main() -> None:
    server = Server("stack", version="1", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


asyncio.run(main())
