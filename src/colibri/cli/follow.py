"""Waiting for more records, cheaply: a look at the newest seq four times a second.

Each look is a read transaction of its own, over before the next, so that nobody's write-ahead log
has to grow because somebody watches.
"""

import argparse
import math
import os
import sys
import time
from collections.abc import Callable, Iterator

from colibri.cli import project
from colibri.cli.complaint import INTERRUPTED
from colibri.core.errors import ResourceError
from colibri.store import ledger
from colibri.store.connection import Connection

SECONDS = 0.25


def option(parser: argparse._ActionsContainer, what: str) -> None:
    """--follow, the same everywhere."""
    text = f"keep showing new {what}; Ctrl-C stops"
    parser.add_argument("-f", "--follow", action="store_true", help=text)


def run(
    options: argparse.Namespace, show: Callable[[Connection, str, argparse.Namespace], None]
) -> int:
    """Show what there is, and perhaps what comes; the exit code."""
    with project.opened(options) as (config, reader):
        try:
            show(reader, config.db_path, options)
        except KeyboardInterrupt:
            if not options.follow:
                raise
            return INTERRUPTED  # the way to end it: there is nothing to explain
    return 0


def heads(
    db: Connection,
    path: str,
    *,
    after: int,
    until: Callable[[int], bool] = lambda seq: False,
    beat: float = math.inf,
) -> Iterator[int]:
    """The seq of the newest record each time that it has grown, until that is the last one; also
    when it has not for `beat` seconds."""
    file = _identity(path)
    told = time.monotonic()
    while not until(after):
        if (seq := ledger.last_seq(db)) > after or time.monotonic() - told >= beat:
            yield seq
            after, told = seq, time.monotonic()
            continue
        if _identity(path) != file:
            raise ResourceError(f"{path} was deleted or replaced", "start the command again")
        sys.stdout.flush()  # nothing is held back while we wait
        time.sleep(SECONDS)


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino
