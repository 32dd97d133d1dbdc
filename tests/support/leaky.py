"""The real server with a leak: python -m tests.support.leaky descriptors|memory.

The negative controls of the soak test.
"""

import os
import sys
from collections.abc import Callable

from colibri.server import main
from colibri.server.call import Call
from colibri.server.pipeline import Pipeline

KEPT: list[bytes] = []
LEAKS: dict[str, Callable[[], object]] = {
    "descriptors": lambda: os.dup(2),
    "memory": lambda: KEPT.append(os.urandom(65_536)),
}


if __name__ == "__main__":
    leak, prepare = LEAKS[sys.argv.pop(1)], Pipeline.prepare

    def leaky(self: Pipeline, call: Call) -> None:
        leak()
        prepare(self, call)

    Pipeline.prepare = leaky  # type: ignore[method-assign]
    sys.exit(main())
