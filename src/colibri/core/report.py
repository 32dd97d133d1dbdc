"""The report of a check of the log: findings by their codes, open calls, what was not checked."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from colibri.core.ledger import Head
from colibri.core.witness import Judged, held_to

MAX_LISTED = 100  # of every list

# Steps of the procedure, docs/formats.md §9. The checks of a database alone come last.
HEADERS, ORDER, LINKS, GAPS, PAYLOADS, ERASURES, CONTENTS = range(3, 10)
SESSIONS, CALLS, TASKS, OUTSIDE, LAST_STEP = 10, 12, 13, 14, 15

# The line of the verdict that each finding turns to "no", docs/formats.md §10. Only a database has
# the lines "rows" and "witnessed".
LINE_OF: Mapping[str, str] = {
    code: line
    for line, codes in {
        "intact": "bad-header wrong-order broken-link altered-header altered-payload bad-payload"
        " head-differs damaged-file",
        "complete": "truncated missing-record missing-payload",
        "sealed": "second-seal thought-after-seal wrong-index broken-thought-chain wrong-count"
        " wrong-range wrong-root change-after-seal root-differs",
        "rules": "second-open outside-session wrong-server bad-pair stray-change missing-change"
        " bad-repeat wrong-digest bad-creation wrong-version wrong-change change-after-end"
        " illegal-move wrong-attempt unknown-task dependency-cycle blocked-move missing-evidence"
        " wrong-holder claimed-change wrong-takeover wrong-gate bad-erasure erased-payload",
        "rows": "altered-task altered-session altered-deed altered-tree foreign-schema",
        "witnessed": "diverged",
    }.items()
    for code in codes.split()
}


class Break(NamedTuple):
    """A broken rule; seq is None if it does not concern one record."""

    seq: int | None
    what: str  # a code of LINE_OF
    detail: str


class Note(NamedTuple):
    """Something that was not checked, by a code of docs/formats.md §11."""

    code: str
    detail: str


NO_HEAD = Note("outside-head", "a truncated or rewritten log, which only a head reveals")


class OpenCall(NamedTuple):
    """An enter without an exit: the call is running, or its process died. Not an error.

    tool and server are None if the enter's payload is erased.
    """

    seq: int
    call: str
    tool: str | None
    server: str | None
    at: str


class Coverage(NamedTuple):
    """How much of the work the deeds show: facts, and no faults."""

    deeds: int
    not_ended: tuple[int, ...]  # the first MAX_LISTED tool calls that began and did not end
    not_ended_count: int
    unpaired: int  # of which nobody can tell which begin and which end belong together
    unseen: tuple[int, ...]  # the first MAX_LISTED calls that a host should have reported
    unseen_count: int
    unjudged: int  # edits that a rule of the project could not judge
    settings_changed: int  # how often the settings of a host's hooks were others than before
    lost: int  # deeds that could not be kept
    sessions: int  # of agents
    unreported: int  # of these, without any deed


class Report(NamedTuple):
    """What a check found; `breaks` has the first MAX_LISTED of `broken_count`."""

    record_count: int
    broken_count: int
    breaks: tuple[Break, ...]
    head: Head | None
    open_calls: tuple[OpenCall, ...]
    erased: tuple[int, ...]
    not_checked: tuple[Note, ...]
    coverage: Coverage | None = None  # None where it was not looked at
    witnesses: tuple[Judged, ...] | None = None  # the same

    @property
    def held_to(self) -> int | None:
        """The newest record that a witness confirms."""
        return held_to(self.witnesses or ())

    @property
    def newer(self) -> int | None:
        """How many records are newer than any witness; None where nobody looked."""
        if self.witnesses is None:
            return None
        return max(0, (self.head.seq if self.head else 0) - (self.held_to or 0))

    @property
    def unread(self) -> list[Judged]:
        """Witnesses that are known to exist and could not be read."""
        return [one for one in self.witnesses or () if one.result == "unread"]

    @property
    def valid(self) -> bool:
        return self.broken_count == 0

    @property
    def first_broken_at(self) -> int | None:
        """The first broken record; None also if no break concerns a record."""
        return min((found.seq for found in self.breaks if found.seq is not None), default=None)

    def with_breaks(self, found: Iterable[Break]) -> "Report":
        """The same report with more findings."""
        more = tuple(found)
        return self._replace(
            broken_count=self.broken_count + len(more),
            breaks=(self.breaks + more)[:MAX_LISTED],
        )

    def with_notes(self, *notes: Note) -> "Report":
        """The same report with more notes on what was not checked."""
        return self._replace(not_checked=(*self.not_checked, *notes))


def only(code: str, details: Sequence[str]) -> Report:
    """A report of problems found before any record was read, which prevent all other checks."""
    breaks = tuple(Break(None, code, detail) for detail in details[:MAX_LISTED])
    note = Note("skipped", "everything else: it could not be trusted")
    return Report(0, len(details), breaks, None, (), (), (note,))


class Findings:
    """The findings while a log is read, by the step of docs/formats.md §9 that makes them."""

    def __init__(self) -> None:
        self.ends_at = LAST_STEP  # later steps do not count: they would build on broken data
        self._count = 0
        self._listed: list[Break] = []

    def note(self, step: int, seq: int | None, code: str, detail: str = "") -> None:
        """Up to CONTENTS, the first step that finds anything is the last that counts."""
        if step > self.ends_at:
            return
        if step < self.ends_at and step <= CONTENTS:
            self.ends_at, self._count, self._listed = step, 0, []
        self._count += 1
        if len(self._listed) < MAX_LISTED:
            self._listed.append(Break(seq, code, detail))

    @property
    def sound(self) -> bool:
        """Whether the records are intact and complete as far as they were read."""
        return self.ends_at == LAST_STEP

    def listed(self) -> tuple[int, tuple[Break, ...]]:
        """How many findings, and the first of them."""
        return self._count, tuple(self._listed)
