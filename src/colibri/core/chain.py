"""The check of a log: every hash again, every damage named once.

Rows that `rows.are_intact` proves to be intact and in their place only have their payloads read.
Only what it does not prove is looked at more closely, row by row.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from itertools import islice, pairwise
from typing import Any

from colibri.core.calls import Calls
from colibri.core.canonical import MAX_INTEGER
from colibri.core.ledger import ERASABLE, MEMBERS, Entry, Head, commitment, genesis, leaf
from colibri.core.payload import PLAIN, is_canonical, load, parse
from colibri.core.report import MAX_BREAKS, NO_HEAD, Break, Damage, OpenCall, Report
from colibri.core.rows import Row, are_intact
from colibri.core.rules import Finding, Rules

# So many rows are proven at once: fewer are slower, more are not faster. Of the largest payloads
# that the tools take these are some 20 MB.
STRETCH = 256


class Checker:
    """Checks a log, fed to it in the order of seq.

    Each damage is named once: what follows is judged by what is stored, so that one altered record
    does not make the rest of the log look broken. Memory grows with open calls, erasures and
    damage, never with the log.

    seq_of finds the record that has a leaf; head is one that was seen outside the database; after
    is the record before the first row, if that is not the log's first; rules are shown the records
    of tasks and sessions.
    """

    def __init__(
        self,
        log: str,
        *,
        seq_of: Callable[[bytes], int | None],
        head: Head | None = None,
        after: Entry | None = None,
        rules: Rules | None = None,
    ) -> None:
        self._rules = rules
        self._log = log
        self._seq_of = seq_of
        self._outside = head
        self._watched = head.seq if head else 0
        self.seq, first = after or (0, genesis(log))  # seq: the last one fed
        self._links: tuple[bytes, ...] = (first,)  # what the next row may follow; () if unknowable
        self._lost = [(1, self.seq)]  # ranges of seq with no readable record, ascending
        self._erased: set[int] = set()
        self._calls = Calls()
        self._head: Head | None = None
        self._count = 0
        self._broken = 0
        self._breaks: list[Break] = []
        self._found_erased: list[int] = []

    def expect_erased(self, row: Row) -> None:
        """Take in an erasure record ahead of its turn: it comes later than what it names.

        One that is damaged excuses nothing; feed() says what is wrong with it.
        """
        try:
            if _is_committed(row) and leaf(row.header(self._log)) == row.leaf:
                named = load(row.body or b"")["seqs"]
                self._erased.update(n for n in named if type(n) is int and n < row.seq)
        except (KeyError, TypeError, ValueError):
            return

    def feed_all(self, rows: Iterable[tuple[Any, ...]]) -> None:
        """As `feed` for each row, but a stretch that is intact is taken by a shorter way."""
        rows, full = iter(rows), True
        while full:
            stretch: list[tuple[Any, ...]] = []
            try:
                stretch.extend(islice(rows, STRETCH))
            finally:  # what came before a row that cannot be read is taken, too
                if stretch:
                    self._feed_stretch(stretch)
            full = len(stretch) == STRETCH

    def feed(self, row: Row) -> None:
        """Take a row by the long way, which names what is wrong."""
        if row.seq <= self.seq:
            self._note(row.seq, "out of order", "a second record with this number")
            return
        if row.seq > self.seq + 1:
            self._note_gap(row.seq - 1)
        if any(are_intact([row], self._log, Entry(self.seq, link)) for link in self._links):
            self._links = (row.leaf,)
            self._take(row)
        else:
            self._examine(row)
        if row.seq == self._watched:
            self._compare_with_outside(row)
        self.seq = row.seq
        self._head = Head(row.seq, row.leaf)
        self._count += 1

    def finish(self, last: int) -> Report:
        """The verdict; last is the seq up to which there should be records."""
        if self.seq < last:
            self._note_gap(last)
            self.seq = last
        if self.seq < self._watched:
            detail = f"the log ends at {self.seq}, but record {self._watched} was seen"
            self._note(self.seq + 1, "truncated", detail)
        return Report(
            record_count=self._count,
            broken_count=self._broken,
            breaks=tuple(self._breaks),
            head=self._head,
            open_calls=self._calls.still_open(),
            erased=tuple(self._found_erased),
            not_checked=tuple(self._gaps_of_this_check()),
        )

    def _feed_stretch(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """In halves, if there is anything to say of it."""
        if self._is_plain(rows):
            self._pass(rows)
        elif len(rows) == 1:
            self.feed(Row._make(rows[0]))
        else:
            half = len(rows) // 2
            self._feed_stretch(rows[:half])
            self._feed_stretch(rows[half:])

    def _is_plain(self, rows: Sequence[tuple[Any, ...]]) -> bool:
        """Whether rows are intact, in their place, and neither erased nor seen outside."""
        seqs = range(self.seq + 1, self.seq + 1 + len(rows))
        if not self._links or self._watched in seqs or not self._erased.isdisjoint(seqs):
            return False
        return are_intact(rows, self._log, Entry(self.seq, self._links[0]))

    def _pass(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """The short way: a payload that looks as it must is not read any further."""
        calls, rules = self._calls, self._rules
        forms = [plain(row[9]) if (plain := PLAIN.get(row[2])) else None for row in rows]
        for row, form in zip(rows, forms, strict=True):
            if form is None:
                if rules is None or not rules.take(row):
                    self._read(Row._make(row))
            elif row[2] == "call.enter":
                calls.enter_plain(row, form[1])
            elif not calls.leave_plain(int(form[1]), row[3], form[2]):
                self._read(Row._make(row))
        self.seq, link = rows[-1][0], rows[-1][10]
        self._links, self._head = (link,), Head(self.seq, link)
        self._count += len(rows)

    def _examine(self, row: Row) -> None:
        """Name what is wrong with a row, if anything is."""
        # 1 the record itself, 2 its place
        found = self._leaf_of(row)
        if found != row.leaf or row.kind not in MEMBERS:
            self._note_altered(row, found)
            return
        # 3 what it follows, 4 its payload
        self._check_link(row)
        self._links = (row.leaf,)
        self._check_payload(row)

    def _leaf_of(self, row: Row) -> bytes | None:
        """The hash of what a row says; None if a column is of another type."""
        try:
            return leaf(row.header(self._log))
        except (AttributeError, TypeError):
            return None

    def _note_altered(self, row: Row, found: bytes | None) -> None:
        """A record that is intact at another place is only in the wrong one."""
        self._links = (row.leaf, found or row.leaf)
        if found == row.leaf:
            self._note_lost(row.seq, "altered record", "there is no such kind of record")
            return
        before = self._seq_of(row.prev) or 0
        for seq in (before + 1, row.seq - 1, row.seq + 1):
            if seq != row.seq and self._leaf_of(row._replace(seq=seq)) == row.leaf:
                self._note_lost(row.seq, "out of order", f"record {seq} is in its place")
                self._links = ()
                return
        detail = "the stored leaf is not the hash of what the row says"
        self._note_lost(row.seq, "altered record", detail)

    def _check_link(self, row: Row) -> None:
        if not self._links or row.prev in self._links:
            return
        known = 0 if row.prev == genesis(self._log) else self._seq_of(row.prev)
        if known is not None and known < row.seq:
            detail = f"it follows record {known}" if known else "it begins the log anew"
            self._note(row.seq, "forked", detail)
        else:
            self._note(row.seq, "broken link", "it follows a record that is not in the log")

    def _check_payload(self, row: Row) -> None:
        if row.nonce is None and row.body is None:
            self._check_erasure(row)
        elif not _is_committed(row):
            self._note(row.seq, "altered payload", "the payload is not the one the record names")
            self._lose_sight_of(row)
        else:
            self._take(row)
            return
        if row.kind == "call.enter":
            self._calls.enter(OpenCall(row.seq, row.call, None, None, row.at))

    def _check_erasure(self, row: Row) -> None:
        if row.seq not in self._erased:
            self._note(row.seq, "missing payload", "no erasure names it")
            self._lose_sight_of(row)
        elif row.kind not in ERASABLE:
            detail = f"an erasure names it, but a {row.kind} payload cannot be erased"
            self._note(row.seq, "missing payload", detail)
            self._lose_sight_of(row)
        else:
            self._found_erased.append(row.seq)
            self._judge(row, None)

    def _take(self, row: Row) -> None:
        """Read a payload that is the committed one."""
        if row.seq in self._erased:
            detail = "an erasure names it, but its payload is still there"
            self._note(row.seq, "bad erasure", detail)
        self._read(row)

    def _read(self, row: Row) -> None:
        """Hold a payload against its kind, its call and the rules."""
        assert row.body is not None
        payload = parse(row.kind, row.body)
        if payload is None:
            self._note(row.seq, "bad pair", f"the payload is not that of a {row.kind}")
            self._lose_sight_of(row)
        elif not is_canonical(row.kind, row.body, payload):
            self._note(row.seq, "bad payload", "it is not in canonical form")
        if row.kind == "call.enter":
            tool, server = (payload["tool"], payload["server"]) if payload else (None, None)
            self._calls.enter(OpenCall(row.seq, row.call, tool, server, row.at))
        elif payload is None:
            return
        elif row.kind == "call.exit":
            self._leave(row, payload["enter"], payload["tool"])
        else:
            if row.kind == "erasure" and not _names_earlier(payload["seqs"], row.seq):
                self._note(row.seq, "bad erasure", "seqs are not those of earlier records")
            self._judge(row, payload)

    def _judge(self, row: Row, payload: dict[str, Any] | None) -> None:
        if self._rules is not None:
            self._note_all(row.seq, self._rules.feed(row, payload))

    def _lose_sight_of(self, row: Row) -> None:
        if self._rules is not None:
            self._rules.lose(row)

    def _leave(self, row: Row, enter: int, tool: str) -> None:
        opened = self._calls.find(enter)
        if opened is None:
            if not self._is_lost(enter):
                self._note(row.seq, "bad pair", f"record {enter} is not an open call")
        elif opened.call != row.call:
            self._note(row.seq, "bad pair", f"record {enter} is another call's")
        else:
            self._calls.leave(enter)
            if opened.tool not in (tool, None):
                self._note(row.seq, "bad pair", f"record {enter} is of the tool {opened.tool}")

    def _compare_with_outside(self, row: Row) -> None:
        assert self._outside is not None
        if self._outside.leaf not in (row.leaf, self._leaf_of(row)):
            self._note(row.seq, "replaced", "its leaf is not the one that was seen")

    def _gaps_of_this_check(self) -> Iterable[str]:
        if not self._count:
            yield "the log holds no records: nothing was checked"
        if self._outside is None:
            yield NO_HEAD
        elif self._watched < self.seq:
            yield f"the records after {self._watched} are newer than the head from outside"
        if self._found_erased:
            count = len(self._found_erased)
            payloads = "1 payload is" if count == 1 else f"{count} payloads are"
            yield f"{payloads} erased and can no longer be read"

    def _note(self, seq: int, what: Damage, detail: str) -> None:
        self._broken += 1
        if len(self._breaks) < MAX_BREAKS:
            self._breaks.append(Break(seq, what, detail))

    def _note_all(self, seq: int, found: Iterable[Finding]) -> None:
        for what, detail in found:
            self._note(seq, what, detail)

    def _note_lost(self, seq: int, what: Damage, detail: str) -> None:
        self._note(seq, what, detail)
        self._lose(seq, seq)

    def _note_gap(self, last: int) -> None:
        first = self.seq + 1
        detail = "it is gone" if first == last else f"all records up to {last} are gone"
        self._note(first, "missing record", detail)
        self._lose(first, last)
        self._links = ()

    def _lose(self, first: int, last: int) -> None:
        if self._rules is not None:
            self._rules.go_blind()
        start, end = self._lost[-1]
        if end == first - 1:
            self._lost[-1] = (start, last)
        else:
            self._lost.append((first, last))

    def _is_lost(self, seq: int) -> bool:
        at = bisect_right(self._lost, (seq, MAX_INTEGER)) - 1
        return at >= 0 and seq <= self._lost[at][1]


def _is_committed(row: Row) -> bool:
    """Whether the payload is there, and the one that the record names."""
    there = row.nonce is not None and row.body is not None
    return there and commitment(row.nonce or b"", row.body or b"") == row.payload


def _names_earlier(seqs: object, seq: int) -> bool:
    """Whether an erasure at a seq names records as the format has it: earlier ones, ascending."""
    return (
        isinstance(seqs, list)
        and all(type(named) is int for named in seqs)
        and all(one < other for one, other in pairwise([0, *seqs, seq]))
        and bool(seqs)
    )
