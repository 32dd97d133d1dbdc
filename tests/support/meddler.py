"""The real server with one fault: before each reading call it looks into the database file itself.

Closing that descriptor drops every lock that SQLite holds on the file for this process. The
negative control of the trial of locks.
"""

import os
import sys
from typing import Any

from colibri.config import load
from colibri.server import main
from colibri.server.pipeline import Pipeline

read = Pipeline.read


def meddling_read(self: Pipeline, *arguments: Any) -> None:
    os.close(os.open(load().db_path, os.O_RDONLY))
    read(self, *arguments)


if __name__ == "__main__":
    Pipeline.read = meddling_read  # type: ignore[assignment, method-assign]
    sys.exit(main())
