"""Keeps the roots of the log's tree in the ledger, so that the next checkpoint costs only what is
new."""

import time

from colibri.cli import project
from colibri.config import Config
from colibri.core.errors import Damaged, ResourceError
from colibri.core.modes import Mode
from colibri.store import log_tree
from colibri.store.connection import Connection
from colibri.store.faults import Undone, errors
from colibri.store.sqlite.appending import Uncopied

TRIES, PAUSE = 100, 0.02  # to get a lock that another process holds


def keep(config: Config, reader: Connection) -> ResourceError | None:
    """Keep what is missing, as far as the ledger can be written now: a checkpoint needs none of
    it. What is wrong with the ledger is for the reader to find, but for a log that cannot be copied
    back, which only a writer meets: that is returned."""
    if config.mode == Mode.READONLY or not log_tree.is_behind(reader):
        return None
    try:
        home = project.home(config)
        with home.appending(_wait, monotonic=time.monotonic, sleep=time.sleep) as opened:
            more = True
            while more:
                with opened.transaction(durable=False):
                    more = log_tree.keep(opened.db)
    except Uncopied as problem:
        return problem
    except errors(Damaged, ResourceError, Undone):
        pass
    return None


def _wait(tries: int) -> bool:
    time.sleep(PAUSE)
    return tries < TRIES
