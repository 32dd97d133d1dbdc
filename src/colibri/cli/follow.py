"""Waiting for more records, cheaply: a look at the newest seq four times a second.

Each look is a read transaction of its own, over before the next, so that nobody's write-ahead log
has to grow because somebody watches.
"""

import os
import sys
import time
from collections.abc import Callable, Iterator

from colibri.core.errors import ResourceError
from colibri.store import ledger
from colibri.store.connection import Connection

SECONDS = 0.25


def newest(db: Connection) -> int:
    """The seq of the newest record, 0 if there is none."""
    head = ledger.head(db)
    return head.seq if head else 0


def heads(
    db: Connection,
    path: str,
    *,
    after: int,
    until: Callable[[int], bool] = lambda seq: False,
) -> Iterator[int]:
    """The seq of the newest record each time that it has grown, until that is the last one."""
    file = _identity(path)
    while not until(after):
        if (seq := newest(db)) > after:
            yield seq
            after = seq
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
