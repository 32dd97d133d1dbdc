"""Task states, and the table of the moves between them.

INIT → GATHER → ANALYZE → PLAN → APPLY → VERIFY → DONE, one step at a time. VERIFY → GATHER is the
retry, which begins a new attempt. Every state but DONE and CANCELLED may move to CANCELLED.
"""

from enum import StrEnum


class Status(StrEnum):
    """In the order of the work."""

    INIT = "INIT"
    GATHER = "GATHER"
    ANALYZE = "ANALYZE"
    PLAN = "PLAN"
    APPLY = "APPLY"
    VERIFY = "VERIFY"
    DONE = "DONE"
    CANCELLED = "CANCELLED"


TRANSITIONS: dict[Status, tuple[Status, ...]] = {
    Status.INIT: (Status.GATHER, Status.CANCELLED),
    Status.GATHER: (Status.ANALYZE, Status.CANCELLED),
    Status.ANALYZE: (Status.PLAN, Status.CANCELLED),
    Status.PLAN: (Status.APPLY, Status.CANCELLED),
    Status.APPLY: (Status.VERIFY, Status.CANCELLED),
    Status.VERIFY: (Status.DONE, Status.GATHER, Status.CANCELLED),
    Status.DONE: (),
    Status.CANCELLED: (),
}

TERMINAL = frozenset({Status.DONE, Status.CANCELLED})

# A task may enter one of these only if every dependency is DONE or CANCELLED.
NEEDS_DEPENDENCIES = frozenset({Status.APPLY, Status.VERIFY, Status.DONE})

PRIORITIES = ("low", "medium", "high", "critical")


def is_retry(old: str, new: str) -> bool:
    """Whether a move begins a new attempt."""
    return old == Status.VERIFY and new == Status.GATHER
