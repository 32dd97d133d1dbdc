"""Waiting for more records, cheaply: PostgreSQL tells of them; in a file, a look at the newest seq
four times a second.

Each look is a read transaction of its own, over before the next, so that nobody's write-ahead log
has to grow because somebody watches.
"""

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterator

from colibri.cli import project, terminal
from colibri.cli.complaint import INTERRUPTED
from colibri.config import load
from colibri.core.errors import ResourceError
from colibri.store import ledger
from colibri.store.connection import Connection
from colibri.store.home import Home, Outdated

SECONDS = 0.25
AT_MOST = 10.0  # between two looks, even if nobody told of anything


def option(parser: argparse._ActionsContainer, what: str) -> None:
    """--follow, the same everywhere."""
    text = f"keep showing new {what}; Ctrl-C stops"
    parser.add_argument("-f", "--follow", action="store_true", help=text)


def run(
    options: argparse.Namespace, show: Callable[[Connection, Home, argparse.Namespace], None]
) -> int:
    """Show what there is, and perhaps what comes; the exit code."""
    try:
        if options.follow:
            _wait_for_ledger(project.home(load(options.project)))
        with project.opened(options) as (config, reader):
            show(reader, project.home(config), options)
    except KeyboardInterrupt:
        if not options.follow:
            raise
        return INTERRUPTED  # the way to end it: there is nothing to explain
    return 0


def _wait_for_ledger(home: Home) -> None:
    """The first start of a server makes it: people may watch from before that."""
    if home.is_there():
        return
    terminal.note(f"waiting for a server to create {home.name}; Ctrl-C stops")
    while not _is_made(home):
        time.sleep(SECONDS)


def _is_made(home: Home) -> bool:
    if not home.is_there():
        return False
    try:
        home.open_reader().close()
    except Outdated:  # a server is still at it
        return False
    return True


def heads(
    db: Connection,
    home: Home,
    *,
    after: int,
    until: Callable[[int], bool] = lambda seq: False,
    beat: float = math.inf,
) -> Iterator[int]:
    """The seq of the newest record each time that it has grown, until that is the last one; also
    when it has not for `beat` seconds."""
    identity, told = home.identity(), time.monotonic()
    with db.engine.listening(db) as listen:
        pause = min(AT_MOST if listen else SECONDS, beat)
        while not until(after):
            if (seq := ledger.last_seq(db)) > after or time.monotonic() - told >= beat:
                yield seq
                after, told = seq, time.monotonic()
                continue
            if home.identity() != identity:
                problem = f"{home.name} was deleted or replaced"
                raise ResourceError(problem, "start the command again")
            sys.stdout.flush()  # nothing is held back while we wait
            (listen or time.sleep)(pause)
