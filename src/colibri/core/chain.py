"""The check of a log: every hash again, every damage named once.

A row is intact when its header, made again from its columns, its payload and its predecessor, is
byte for byte the stored one, and the stored leaf is that header's hash. Only what is not is looked
at more closely.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from json import JSONDecoder
from json.encoder import encode_basestring
from typing import Any, Literal, NamedTuple, NoReturn

from colibri.core.canonical import MAX_INTEGER
from colibri.core.ledger import (
    COMMITMENT,
    ERASABLE,
    MEMBERS,
    Entry,
    Head,
    commitment,
    genesis,
    header,
    leaf,
)
from colibri.core.plain import ENTER, EXIT
from colibri.core.rules import Rules

MAX_BREAKS = 100
NO_HEAD = "no head from outside: a cut-off tail or a log written anew cannot be seen"

Damage = Literal[
    "altered record",  # leaf and header disagree, or the header is not one of this log
    "altered payload",  # not what the header committed to
    "altered column",  # a copy beside the header disagrees with it
    "missing record",
    "missing payload",  # and no erasure names it
    "stray payload",  # of no record
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


class Row(NamedTuple):
    """A record as the database holds it; the columns from `prev` on are copies of the header's."""

    seq: int
    header: bytes
    leaf: bytes
    prev: bytes
    at: str
    kind: str
    call: str
    session: str | None
    task: str | None
    agent: str | None
    nonce: bytes | None
    body: bytes | None


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


class _Stated(NamedTuple):
    """What a header says."""

    seq: int
    at: str
    kind: str
    call: str
    session: str | None
    task: str | None
    agent: str | None
    payload: bytes
    prev: bytes

    def copies(self) -> dict[str, Any]:
        """What the columns beside the header should hold."""
        return {name: getattr(self, name) for name in ("at", "kind", "call", "session", "task")}


def _parse_header(data: bytes, log: str) -> _Stated:
    """ValueError unless data is, byte for byte, a version 1 header of this log."""
    try:
        members = load(data)
        stated = _Stated(
            members["seq"],
            members["at"],
            members["kind"],
            members["call"],
            members["session"],
            members["task"],
            members["agent"],
            bytes.fromhex(members["payload"]),
            bytes.fromhex(members["prev"]),
        )
        again = header(log=members["log"], **stated._asdict())
    except (KeyError, TypeError, ValueError):
        raise ValueError("the header is not a record header") from None
    if again != data or type(stated.seq) is not int or stated.kind not in MEMBERS:
        raise ValueError("the header is not in version 1 of the format")
    if members["log"] != log:
        raise ValueError(f"the header belongs to the log {members['log']}")
    return stated


class Checker:
    """Checks a log, fed to it one row at a time in the order of seq.

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
        self._open: dict[int, OpenCall] = {}
        self._plain: dict[int, tuple[str, bytes, tuple[Any, ...]]] = {}  # the same: call, tool, row
        self._last: tuple[Any, ...] | None = None
        self._count = 0
        self._broken = 0
        self._breaks: list[Break] = []
        self._found_erased: list[int] = []

    def expect_erased(self, row: Row) -> None:
        """Take in an erasure record ahead of its turn: it comes later than what it names.

        One that is damaged excuses nothing; feed() says what is wrong with it.
        """
        try:
            stated = _parse_header(row.header, self._log)
            committed = commitment(row.nonce or b"", row.body or b"") == stated.payload
            if committed and leaf(row.header) == row.leaf and stated.kind == "erasure":
                self._erased.update(load(row.body or b"")["seqs"])
        except (KeyError, TypeError, ValueError):
            return

    def feed_all(self, rows: Iterable[tuple[Any, ...]]) -> None:
        """As `feed` for each row, but what is intact and in its place is taken by the short way."""
        try:
            self._take_shortly(rows)
        finally:  # what reads the rows may raise
            self._catch_up()

    def _take_shortly(self, rows: Iterable[tuple[Any, ...]]) -> None:
        """The header is made as `header` makes it; here it is spelled out, because calling it for
        each of a million rows takes as long as their hashes do.
        """
        digest, quote, enter_in, exit_in = sha256, encode_basestring, ENTER.match, EXIT.match
        plain, watched = self._plain, self._watched
        front = f'","log":{quote(self._log)},"payload":"'
        expected, link = self._awaited()
        for row in rows:
            (
                seq,
                stored,
                stored_leaf,
                prev,
                at,
                kind,
                call,
                session,
                task,
                agent,
                nonce,
                body,
            ) = row
            if prev == link and seq == expected != watched and kind in MEMBERS:
                try:
                    made = (
                        f'{{"agent":{"null" if agent is None else quote(agent)}'
                        f',"at":{quote(at)},"call":{quote(call)},"kind":"{kind}{front}'
                        f'{digest(COMMITMENT + nonce + body).hexdigest()}","prev":"{prev.hex()}"'
                        f',"seq":{seq},"session":{"null" if session is None else quote(session)}'
                        f',"task":{"null" if task is None else quote(task)},"v":1}}'
                    ).encode()
                except TypeError:  # no payload, or a column that is no text
                    made = b""
                if made == stored and digest(b"\0" + made).digest() == stored_leaf:
                    if kind == "call.enter" and (found := enter_in(body)):
                        plain[seq] = (call, found[1], row)
                    elif (
                        kind == "call.exit"
                        and (found := exit_in(body))
                        and (opened := plain.get(enter := int(found[1])))
                        and opened[0] == call
                        and opened[1] == found[2]
                    ):
                        del plain[enter]
                    elif kind != "thought" or not self._takes_thought(row):
                        self._read_payload(Row._make(row))
                    expected, link = seq + 1, stored_leaf
                    self._last = row
                    continue
            self._catch_up()
            self.feed(Row._make(row))
            expected, link = self._awaited()

    def _awaited(self) -> tuple[int, bytes | None]:
        """The seq of the next row, and the leaf that it follows if there is just one."""
        return self.seq + 1, self._links[0] if len(self._links) == 1 else None

    def _catch_up(self) -> None:
        """The short way leaves only its last row behind; all before it follow one another."""
        if self._last is not None and self._last[0] > self.seq:
            self._count += self._last[0] - self.seq
            self.seq = self._last[0]
            self._links = (self._last[2],)

    def _takes_thought(self, row: tuple[Any, ...]) -> bool:
        """Whether a thought is plain, and has been taken as the next of its session."""
        rules = self._rules
        return rules is not None and rules.take_plain_thought(
            row[0], row[2], row[7], row[8], row[11]
        )

    def feed(self, row: Row) -> None:
        if row.seq <= self.seq:
            self._note(row.seq, "out of order", "a second record with this number")
            return
        if row.seq > self.seq + 1:
            self._note_gap(row.seq - 1)
        if self._is_intact(row):
            self._links = (row.leaf,)
            self._read_payload(row)
        else:
            self._examine(row)
        if row.seq == self._watched:
            self._compare_with_outside(row)
        self.seq = row.seq
        self._last = row
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
            head=Head(self._last[0], self._last[2]) if self._last else None,
            open_calls=self._open_calls(),
            erased=tuple(self._found_erased),
            not_checked=tuple(self._gaps_of_this_check()),
        )

    def _is_intact(self, row: Row) -> bool:
        """The fast path: made again from its columns, payload and predecessor, it is the same."""
        seq, stored, stored_leaf, prev, at, kind, call, session, task, agent, nonce, body = row
        if nonce is None or body is None or prev not in self._links or kind not in MEMBERS:
            return False
        try:
            made = header(
                log=self._log,
                seq=seq,
                at=at,
                kind=kind,
                call=call,
                session=session,
                task=task,
                agent=agent,
                payload=commitment(nonce, body),
                prev=prev,
            )
        except TypeError:  # a column of another type: someone rebuilt the table
            return False
        return made == stored and leaf(made) == stored_leaf

    def _examine(self, row: Row) -> None:
        """The slow path: name what is wrong with a row, if anything is."""
        # 1 the record itself
        found = leaf(row.header)
        try:
            if found != row.leaf:
                raise ValueError("the stored leaf is not the hash of the stored header")
            stated = _parse_header(row.header, self._log)
        except ValueError as problem:
            self._note_lost(row.seq, "altered record", str(problem))
            self._links = (row.leaf, found)
            return
        # 2 its place
        if stated.seq != row.seq:
            self._note_lost(row.seq, "out of order", f"record {stated.seq} is in its place")
            self._links = ()
            return
        # 3 the copies beside it, 4 what it follows, 5 its payload
        self._check_columns(row, stated)
        self._check_link(stated)
        self._links = (row.leaf,)
        self._check_payload(row._replace(**stated.copies()), stated)

    def _check_columns(self, row: Row, stated: _Stated) -> None:
        names = ("prev", "at", "kind", "call", "session", "task", "agent")
        differing = [name for name in names if getattr(row, name) != getattr(stated, name)]
        if differing:
            self._note(row.seq, "altered column", f"not as in the header: {', '.join(differing)}")

    def _check_link(self, stated: _Stated) -> None:
        if not self._links or stated.prev in self._links:
            return
        known = 0 if stated.prev == genesis(self._log) else self._seq_of(stated.prev)
        if known is not None and known < stated.seq:
            detail = f"it follows record {known}" if known else "it begins the log anew"
            self._note(stated.seq, "forked", detail)
        else:
            self._note(stated.seq, "broken link", "it follows a record that is not in the log")

    def _check_payload(self, row: Row, stated: _Stated) -> None:
        if row.nonce is None or row.body is None:
            self._check_erasure(row)
        elif commitment(row.nonce, row.body) != stated.payload:
            self._note(row.seq, "altered payload", "the payload is not the one the header names")
            self._lose_sight_of(row)
        else:
            self._read_payload(row)
            return
        if row.kind == "call.enter":
            self._open[row.seq] = OpenCall(row.seq, row.call, None, None, row.at)

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

    def _read_payload(self, row: Row) -> None:
        """Hold a payload that is the committed one against its kind and against its call."""
        assert row.body is not None
        try:
            payload = load(row.body)
            fits = payload.keys() == MEMBERS[row.kind]
            for name, kind in _TYPES.get(row.kind, ()) if fits else ():
                fits = fits and type(payload[name]) is kind
        except (AttributeError, ValueError):
            fits = False
        if not fits:
            self._note(row.seq, "bad pair", f"the payload is not that of a {row.kind}")
            self._lose_sight_of(row)
        if row.kind == "call.enter":
            tool, server = (payload["tool"], payload["server"]) if fits else (None, None)
            self._open[row.seq] = OpenCall(row.seq, row.call, tool, server, row.at)
        elif row.kind == "call.exit" and fits:
            self._close(row, payload["enter"], payload["tool"])
        elif fits:
            self._judge(row, payload)

    def _judge(self, row: Row, payload: dict[str, Any] | None) -> None:
        if self._rules is not None:
            for what, detail in self._rules.feed(row, payload):
                self._note(row.seq, what, detail)

    def _lose_sight_of(self, row: Row) -> None:
        if self._rules is not None:
            self._rules.lose(row)

    def _close(self, row: Row, enter: int, tool: str) -> None:
        opened = self._opened(enter)
        if opened is None:
            if not self._is_lost(enter):
                self._note(row.seq, "bad pair", f"record {enter} is not an open call")
        elif opened.call != row.call:
            self._note(row.seq, "bad pair", f"record {enter} is another call's")
        else:
            del self._open[enter]
            if opened.tool not in (tool, None):
                self._note(row.seq, "bad pair", f"record {enter} is of the tool {opened.tool}")

    def _opened(self, enter: int) -> OpenCall | None:
        if enter in self._plain:
            call, tool, row = self._plain.pop(enter)
            server = load(row[11])["server"]
            self._open[enter] = OpenCall(enter, call, tool[1:-1].decode(), server, row[4])
        return self._open.get(enter)

    def _open_calls(self) -> tuple[OpenCall, ...]:
        for enter in list(self._plain):
            self._opened(enter)
        return tuple(self._open[enter] for enter in sorted(self._open))

    def _compare_with_outside(self, row: Row) -> None:
        assert self._outside is not None
        if self._outside.leaf not in (row.leaf, leaf(row.header)):
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


# What the check itself looks at in the payload of a call.
_TYPES: Mapping[str, tuple[tuple[str, type], ...]] = {
    "call.enter": (("tool", str), ("server", str)),
    "call.exit": (("tool", str), ("enter", int)),
}


def _refuse(number: str) -> NoReturn:
    raise ValueError(f"{number} has no place in a record")


_decode = JSONDecoder(parse_float=_refuse, parse_constant=_refuse).raw_decode


def load(data: bytes) -> Any:
    """The one JSON value that some data is; ValueError if it is not one, or holds a float."""
    text = data.decode()
    try:
        value, end = _decode(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if end != len(text):
        raise ValueError("more than one value")
    return value
