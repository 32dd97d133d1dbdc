"""What a check of the log says: breaks, each by its name; open calls; what it did not look at."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from colibri.core.ledger import Head

MAX_BREAKS = 100
NO_HEAD = "no head from outside: a cut-off tail or a log written anew cannot be seen"

Damage = Literal[
    "altered record",  # its leaf is not the hash of what the row says
    "altered payload",  # not what the record committed to
    "missing record",
    "missing payload",  # and no erasure names it
    "stray record",  # before the first
    "bad payload",  # the committed one, but not in canonical form
    "bad erasure",  # of what is not an earlier record, or its payload is still there
    "out of order",  # an intact record in another's place
    "forked",  # follows an earlier record than the one before it
    "broken link",  # follows a record that nobody knows
    "bad pair",  # an exit without its enter, or a payload that is not of its kind
    "truncated",  # ends before a head that was seen outside
    "replaced",  # another record stands where a head was seen outside
    "illegal move",  # from here on: what replay.py finds in the records of tasks
    "blocked move",
    "missing evidence",
    "bad task record",
    "altered task",
    "bad session record",  # and trail.py in those of sessions
    "bad thought",
    "thought after seal",
    "bad seal",
    "altered session",
]


class Break(NamedTuple):
    seq: int
    what: Damage
    detail: str


class OpenCall(NamedTuple):
    """An enter without an exit: running somewhere, or its process died. A fact, not a break.

    tool and server are None where the enter's payload cannot be read.
    """

    seq: int
    call: str
    tool: str | None
    server: str | None
    at: str


@dataclass(frozen=True, slots=True)
class Report:
    """What a check found; `breaks` has the first MAX_BREAKS of `broken_count`."""

    record_count: int
    broken_count: int
    breaks: tuple[Break, ...]
    head: Head | None
    open_calls: tuple[OpenCall, ...]
    erased: tuple[int, ...]
    not_checked: tuple[str, ...]

    @property
    def valid(self) -> bool:
        return self.broken_count == 0

    @property
    def first_broken_at(self) -> int | None:
        """None also where only rows are broken: they have no place in the log."""
        return self.breaks[0].seq or None if self.breaks else None

    def with_breaks(self, found: Iterable[Break]) -> "Report":
        """The same with more breaks."""
        more = tuple(found)
        return replace(
            self,
            broken_count=self.broken_count + len(more),
            breaks=(self.breaks + more)[:MAX_BREAKS],
        )
