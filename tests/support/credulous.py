"""The real server with one fault: it parses a line as `json.loads` does, and nothing but that.

The negative control of hostile input.
"""

import json
import sys

from colibri.server import main, wire


def credulous() -> None:
    wire.parse = json.loads  # type: ignore[attr-defined, assignment]


if __name__ == "__main__":
    credulous()
    sys.exit(main())
