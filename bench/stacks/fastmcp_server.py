"""The same tool on FastMCP, written as its documentation shows."""

from typing import Annotated

from fastmcp import FastMCP
from ledger import Ledger
from pydantic import Field

server = FastMCP("stack")
ledger = Ledger()


@server.tool
async def task_create(
    title: Annotated[str, Field(min_length=1, max_length=256)],
) -> dict[str, str | int]:
    """Create a task."""
    return ledger.create(title)


server.run(show_banner=False)
