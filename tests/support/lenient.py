"""The real server with one rule of the domain forgotten: python -m tests.support.lenient RULE.

The negative controls of the model test: a comparison that does not notice them proves nothing.
"""

import sys
from collections.abc import Callable
from typing import Any

from apsw import Connection

from colibri.server import main
from colibri.store import sessions, task_changes, tasks, trail


def forget_writeback() -> None:
    """DONE needs no evidence."""
    for module in (task_changes, tasks):
        setattr(module, "has_evidence", lambda db, task: True)  # noqa: B010 - mypy sees the other


def forget_the_seal() -> None:
    """A sealed session takes thoughts."""
    sessions.get_open = sessions.get


def forget_the_filter() -> None:
    """Totals are those of all thoughts."""
    count = trail._count

    def lax(db: Connection, wanted: Any) -> int:
        return count(db, trail.Filter(type=wanted.type))

    trail._count = lax


RULES: dict[str, Callable[[], None]] = {
    "a task is DONE without evidence": forget_writeback,
    "a sealed session takes thoughts": forget_the_seal,
    "a total ignores the filter": forget_the_filter,
}


if __name__ == "__main__":
    RULES[sys.argv.pop(1)]()
    sys.exit(main())
