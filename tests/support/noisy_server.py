"""A real server whose tools and imports write to stdout in every possible way.

It also takes the name of a fault of tests.support.faulty: the negative control.
"""

import os
import sys
from typing import Any

from msgspec import Struct

from colibri.config import load
from colibri.core.modes import Capability
from colibri.server import transport
from colibri.server.context import add_tool, create_server, register_catalogue
from colibri.tools.tool import Lane, Tool, Work
from tests.support.faulty import FAULTS

# Statements that print "noise" where only the protocol may write.
NOISE = {
    "print": "print('noise')",
    "a flushed print": "print('noise', flush=True)",
    "the original stdout": "sys.__stdout__.write('noise')",
    "bytes": "sys.stdout.buffer.write(b'noise')",
    "a warning": "import warnings; warnings.warn('noise')",
    "a logger": "import logging; logging.basicConfig(stream=sys.stdout); logging.error('noise')",
    "the descriptor": "os.write(1, b'noise')",
    "a file on the descriptor": "open(1, 'w', closefd=False).write('noise')",
    "a child process": "import subprocess; subprocess.run(['echo', 'noise'])",
    "a shell": "os.system('echo noise')",
    "a fork": "os.fork() or (os.write(1, b'noise'), os._exit(0)); os.wait()",
    "C": "import ctypes; c = ctypes.CDLL(None); c.puts(b'noise'); c.fflush(None)",
    "an uncaught exception": "raise SystemExit('noise')",
}
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
    for fault in options:
        FAULTS[fault].install()
    private = transport.claim_stdout()
    sys.addaudithook(_noisy_import)
    ctx = create_server(config=load(), transport=transport.Stream(0, private))
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
