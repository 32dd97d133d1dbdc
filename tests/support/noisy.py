"""A real server whose tools, and whose imports, talk on stdout in every way there is.

With `leaky` it does not put its descriptor away first: the negative control.
"""

import os
import sys
from typing import Any

from msgspec import Struct

from colibri.config import load
from colibri.core.modes import Capability
from colibri.server.boot import register_catalogue
from colibri.server.context import add_tool, create_server
from colibri.server.transport import Stream, claim_stdout
from colibri.tools.tool import Lane, Tool, Work
from tests.support.noise import NOISE

LANES: dict[Lane, Capability] = {
    "probe": Capability.PROBE,
    "read": Capability.BROWSE,
    "write": Capability.CHANGE,
}


class Kind(Struct):
    kind: str


class Anything(Struct):
    pass


def make(work: Work, args: Kind) -> object:
    exec(NOISE[args.kind], {"os": os, "sys": sys})
    return {"made": args.kind}


def _noisy_import(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "import":
        os.write(1, f"noise: {arguments[0]} is imported\n".encode())


def main(*options: str) -> int:
    """Serve on stdio."""
    private = os.dup(1) if "leaky" in options else claim_stdout()
    sys.addaudithook(_noisy_import)
    ctx = create_server(config=load(), transport=Stream(0, private))
    register_catalogue(ctx)
    for lane, capability in LANES.items():
        add_tool(
            ctx,
            Tool(
                name=f"noise_{lane}",
                title="noise",
                description="A tool for tests.",
                input=Kind,
                output=Anything,
                lane=lane,
                capability=capability,
                pattern="B",
                handler=make,
                idempotent=False,
            ),
        )
    ctx.start()
    return ctx.run()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
