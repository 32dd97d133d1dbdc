"""The real server with one fault: no commit is synced.

The negative control of the power cuts.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from apsw import Connection

from colibri.server import main
from colibri.store import db

transaction = db.transaction


@contextmanager
def lazily(connection: Connection, *, durable: bool) -> Iterator[None]:
    with transaction(connection, durable=False):
        yield


if __name__ == "__main__":
    db.transaction = lazily  # type: ignore[assignment]
    sys.exit(main())
