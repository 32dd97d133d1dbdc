"""The real server with one fault: it does not wait for another process that holds the database.

The negative control of the trial with many servers.
"""

import sys

from colibri.server import main
from colibri.server.recorder import Patience


def _no_patience(self: Patience, tries: int) -> bool:
    return False


if __name__ == "__main__":
    Patience.__call__ = _no_patience  # type: ignore[method-assign]
    sys.exit(main())
