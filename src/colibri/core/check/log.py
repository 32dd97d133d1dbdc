"""The log itself: headers, order, links, gaps, payloads and erasures, in one pass.

Rows come in stretches. Those that are intact and in their place are proven so together; only what
is not is looked at row by row, to name it. What a record's payload says is read either way.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from colibri.core.check import kinds
from colibri.core.check.kinds import Erasure
from colibri.core.check.payload import Payload
from colibri.core.check.rows import NOT_A_ROW, Columns, Rows, are_committed, are_headers, leaves
from colibri.core.ledger import ERASABLE, Entry, Head, genesis, leaf
from colibri.core.report import (
    CONTENTS,
    ERASURES,
    GAPS,
    HEADERS,
    LINKS,
    NO_HEAD,
    OUTSIDE,
    PAYLOADS,
    Coverage,
    Findings,
    Note,
    OpenCall,
    Report,
)
from colibri.core.rows import Row

# So many rows are proven together: fewer are slower, more are not faster. Of the largest payloads
# that the tools take these are some 20 MB.
STRETCH = 256


class Table(Protocol):
    """What only damage asks of the table."""

    def has_leaf(self, leaf: bytes) -> bool: ...
    def kind_at(self, seq: int) -> str | None: ...


class Rules(Protocol):
    """Who is shown every record of a sound log, with None for a payload that is erased."""

    def take(self, rows: Rows, c: Columns, said: Sequence[Payload | None]) -> None: ...
    def notes(self) -> Iterable[Note]: ...
    def finish(self) -> tuple[tuple[OpenCall, ...], Coverage]: ...


class _Unlinked(NamedTuple):
    """Two neighbours of which the later does not name the earlier; judged once the next is seen."""

    earlier: int
    later: int
    named: bytes


class LogCheck:
    """Takes the rows of a log in the order of seq, each once; `finish` gives the report.

    Memory grows with what is erased or broken, and with what the rules keep, not with the log.

    after is the record before the first row, if that is not the log's first; head is one that was
    seen outside the database.
    """

    def __init__(
        self,
        log: str,
        table: Table,
        found: Findings,
        *,
        after: Entry | None = None,
        head: Head | None = None,
        rules: Rules | None = None,
    ) -> None:
        self._log, self._table, self._found = log, table, found
        self._rules, self._judges = rules, True
        self._outside = head
        self.seq, before = after or Entry(0, genesis(log))  # the last row's
        self._after, self._leaf, self._altered = self.seq, before, False
        self._unlinked: _Unlinked | None = None
        self._absent: dict[int, str] = {}  # the kinds of records without a payload
        self._erased: set[int] = set()
        self._head: Head | None = None
        self._count = 0

    def take(self, rows: Rows) -> Sequence[bytes]:
        """The next rows, some STRETCH of them; their leaves."""
        c = Columns._make(zip(*rows, strict=True))
        if not self._follow(c):
            for row in map(Row._make, rows):
                self._examine(row)
        self._count += len(rows)
        self._head = Head(self.seq, c.leaves[-1])
        if self._outside is not None and c.seqs[0] <= self._outside.seq <= self.seq:
            self._compare_outside(c)
        if self._found.ends_at >= PAYLOADS:
            said = self._read(rows, c)
            if self._judges and self._found.sound and self._rules is not None:
                self._rules.take(rows, c, said)
        return c.leaves

    def excuse(self, row: Row) -> None:
        """Take in an erasure that came after the last row: what it names may be gone by now.

        One that is damaged excuses nothing.
        """
        c = Columns.of(row)
        intact = _leaf(row, self._log) == row.leaf and are_committed(c)
        for one in (intact and kinds.read(c)) or ():
            assert isinstance(one, Erasure)  # by its kind
            self._erased.update(seq for seq in one.seqs if self._absent.get(seq) in ERASABLE)

    def finish(self, last: int) -> Report:
        """The verdict; last is the seq up to which there should be records."""
        self._judge_link()
        if self.seq < last:
            self._found.note(GAPS, self.seq + 1, "missing-record", _span(self.seq + 1, last))
        for seq in self._absent.keys() - self._erased:
            self._found.note(CONTENTS, seq, "missing-payload", "no erasure names it")
        if self._outside is not None and self._outside.seq > self.seq:
            seen = f"record {self._outside.seq} was seen"
            self._found.note(OUTSIDE, self.seq + 1, "truncated", seen)
        judged = self._rules is not None and self._found.sound
        calls, coverage = self._rules.finish() if self._rules and judged else ((), None)
        count, listed = self._found.listed()
        return Report(
            record_count=self._count,
            broken_count=count,
            breaks=listed,
            head=self._head,
            open_calls=calls,
            erased=tuple(sorted(self._erased)),
            not_checked=tuple(self._notes()),
            coverage=coverage,
        )

    # 3 headers, 5 links, 6 gaps; the order (4) is the table's

    def _follow(self, c: Columns) -> bool:
        """Go on to the last of these rows, if they are intact, in their place and linked."""
        try:
            sound = (
                leaves(c, self._log) == [*c.leaves]
                and c.prevs == (self._leaf, *c.leaves[:-1])
                and c.seqs == (*range(self.seq + 1, self.seq + 1 + len(c.seqs)),)
                and are_headers(c, self._log)
            )
        except NOT_A_ROW:
            return False
        if sound:
            self._judge_link()
            self.seq, self._leaf, self._altered = c.seqs[-1], c.leaves[-1], False
        return sound

    def _examine(self, row: Row) -> None:
        """Name what is wrong with a row, if anything is."""
        if row.seq < 1:
            self._found.note(HEADERS, None, "bad-header", f"a log has no record {row.seq}")
            return
        made = _leaf(row, self._log)
        try:
            is_header = are_headers(Columns.of(row), self._log)
        except NOT_A_ROW:
            is_header = False
        altered = made != row.leaf
        if altered:
            self._found.note(LINKS, row.seq, "altered-header", "its leaf is not the hash of it")
        elif not is_header:
            self._found.note(HEADERS, row.seq, "bad-header", "its time, kind, call or names")
        gap = row.seq > self.seq + 1
        if gap:
            self._found.note(GAPS, self.seq + 1, "missing-record", _span(self.seq + 1, row.seq - 1))
        # What follows an altered record may name the one that was written, or this.
        linked = gap or self._altered or row.prev == self._leaf
        if linked:
            self._judge_link()
        self._unlinked = None if linked or altered else _Unlinked(self.seq, row.seq, row.prev)
        self.seq, self._leaf, self._altered = row.seq, row.leaf, altered

    def _judge_link(self) -> None:
        """What follows two neighbours that are not linked confirms the later one."""
        if self._unlinked is None:
            return
        earlier, later, named = self._unlinked
        self._unlinked = None
        if named == genesis(self._log) or earlier == 0 or self._table.has_leaf(named):
            self._found.note(LINKS, later, "broken-link", f"it does not follow {earlier}")
        else:
            self._found.note(LINKS, earlier, "altered-header", f"{later} follows another record")

    # 7 payloads, 8 erasures; 9 contents is for the end to say

    def _read(self, rows: Rows, c: Columns) -> Sequence[Payload | None]:
        """What records say, with None where that is gone, or broken and told."""
        said = kinds.read(c) if are_committed(c) else None
        if said is None:
            return [self._read_one(Row._make(row)) for row in rows]
        if "erasure" in c.kinds:
            self._judge_erasures(c.seqs, said)
        return said

    def _read_one(self, row: Row) -> Payload | None:
        """The same of a row that may be broken."""
        c = Columns.of(row)
        if row.body is None and row.nonce is None:
            self._absent[row.seq] = row.kind
            self._judges = self._judges and row.kind in ERASABLE
        elif not are_committed(c):
            self._found.note(PAYLOADS, row.seq, "altered-payload", "not what its header commits to")
        elif (said := kinds.read(c)) is None:
            self._found.note(PAYLOADS, row.seq, "bad-payload", f"not made like a {row.kind}")
        else:
            self._judge_erasures(c.seqs, said)
            return said[0]
        return None

    def _judge_erasures(self, seqs: Sequence[int], said: Sequence[Payload]) -> None:
        for at, one in zip(seqs, said, strict=True):
            for seq in one.seqs if isinstance(one, Erasure) else ():
                self._judge_erasure(at, seq)

    def _judge_erasure(self, at: int, seq: int) -> None:
        kind = self._absent.get(seq) or self._table.kind_at(seq)
        if seq >= at or kind not in ERASABLE:
            self._found.note(ERASURES, at, "bad-erasure", f"of {seq}")
        elif seq in self._absent:
            self._erased.add(seq)
        elif seq > self._after:
            self._found.note(ERASURES, seq, "erased-payload", f"by {at}")

    # 14 outside

    def _compare_outside(self, c: Columns) -> None:
        assert self._outside is not None
        seq, leaf = self._outside
        if (seq, leaf) not in zip(c.seqs, c.leaves, strict=True):
            self._found.note(OUTSIDE, seq, "head-differs", "its leaf is not the one that was given")

    def _notes(self) -> Iterable[Note]:
        if not self._count:
            yield Note("scope", "the log holds no records: nothing was checked")
        if self._outside is None:
            yield NO_HEAD
        elif self._outside.seq < self.seq:
            yield Note("outside-head", f"the records after {self._outside.seq} are newer than it")
        if self._erased:
            yield Note("erased", f"payloads that can no longer be read: {len(self._erased)} in all")
        if self._rules is not None:
            yield from self._rules.notes()
        if not self._found.sound:
            yield Note("skipped", "what builds on records that are not intact or complete")


def _leaf(row: Row, log: str) -> bytes:
    """The leaf of a row, whatever it holds; none if no header can be made of it."""
    try:
        return leaf(row.header(log))
    except NOT_A_ROW:
        return b""


def _span(first: int, last: int) -> str:
    return f"{first}" if first == last else f"{first} to {last}"
