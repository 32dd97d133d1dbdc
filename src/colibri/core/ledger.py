"""The ledger: what a record is, how it is hashed, and how a chain of them is checked.

RECORD FORMAT, version 1

A record is a header and a payload. The header is the RFC 8785 bytes (`canonical.py`) of an object
with exactly these members:

    v        the integer 1
    log      "colibri/" and 32 hex digits, chosen when the database is made
    seq      1 for the first record, then +1, without gaps
    at       UTC, RFC 3339, microseconds, Z; information only: the order is seq
    kind     one of KINDS
    call     the correlation id of the call that wrote the record (uuid 4)
    session  the session, task and agent that the call's validated arguments name, else null;
    task     an id that the call itself makes is null on its enter and set on its later records;
    agent    all three are null for a call whose arguments were refused
    payload  hex of SHA-256("colibri/payload/v1\\n" ‖ 32-byte nonce ‖ payload bytes)
    prev     hex of the leaf of seq − 1; for seq 1 of SHA-256("colibri/ledger/v1\\n" ‖ log)

    leaf = SHA-256(0x00 ‖ header bytes): the chain's link and the Merkle tree's leaf at once

The payload is the RFC 8785 bytes of an object with exactly the members of its kind, null where
there is nothing to say. Its nonce keeps it secret from who holds only the header, so payload and
nonce can be erased and the chain still holds.

    call.enter    server         the process that took the call (uuid 4)
                  tool           the tool's name; of one that there is not, 128 characters
                  arguments      as validated; title, description, content and intent are replaced
                                 by {sha256, size} of their UTF-8 bytes: a text is kept in one place
                  size, sha256   null; of a refused call, whose arguments are null, the size and
                                 hash of the request line without its newline
    call.exit     enter          the seq of the call.enter that it closes
                  tool           the same name
                  outcome        one of OUTCOMES
                  code           refused, invalid, error: why; ok and cancelled: null
                  result_sha256  of the RFC 8785 bytes of the envelope, null where none was sent
                  duration_ms    an integer
    session.open  session_id, intent, task_id
    thought       thought_id     "R-" and the record's seq
                  index          from 0 in the session
                  type, content
                  prev           hex leaf of the session's thought before this, else 64 zeros
    session.seal  root, count, first_seq, last_seq
    task          task_id, version, attempt
                  set            field → [old, new] for status, priority, assignee, project,
                                 depends_on; at creation all of them, old null
    task.text     task_id, version
                  set            the same for title and description
    erasure       seqs, reason   whose payloads are gone; only of ERASABLE kinds

THE VIEWS of the database show the records under the names of the seeds. `actions`, also called
`audit_events`, has a row for each call.enter and call.exit; both carry the enter's seq as
sequence_no, and the outcome of an enter is `running`. `thought_records` has a row for each thought.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from json.decoder import JSONDecoder
from json.encoder import encode_basestring
from typing import Any, Literal, NamedTuple, NoReturn

from colibri.core.canonical import MAX_INTEGER, encode, sha256
from colibri.core.replay import Replay

MEMBERS: Mapping[str, frozenset[str]] = {
    "call.enter": frozenset({"server", "tool", "arguments", "size", "sha256"}),
    "call.exit": frozenset({"enter", "tool", "outcome", "code", "result_sha256", "duration_ms"}),
    "session.open": frozenset({"session_id", "intent", "task_id"}),
    "thought": frozenset({"thought_id", "index", "type", "content", "prev"}),
    "session.seal": frozenset({"root", "count", "first_seq", "last_seq"}),
    "task": frozenset({"task_id", "version", "attempt", "set"}),
    "task.text": frozenset({"task_id", "version", "set"}),
    "erasure": frozenset({"seqs", "reason"}),
}
KINDS = tuple(MEMBERS)
ERASABLE = frozenset({"call.enter", "session.open", "thought", "task.text"})
OUTCOMES = ("ok", "refused", "invalid", "error", "cancelled")
TEXTS = frozenset({"title", "description", "content", "intent"})
MAX_BREAKS = 100

Outcome = Literal["ok", "refused", "invalid", "error", "cancelled"]
Damage = Literal[
    "altered record",  # leaf and header disagree, or the header is not one of this log
    "altered payload",  # not what the header committed to
    "altered column",  # a copy beside the header disagrees with it
    "missing record",
    "missing payload",  # and no erasure names it
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
]


class Entry(NamedTuple):
    """A record's place in the chain."""

    seq: int
    leaf: bytes


Head = Entry  # the newest record's


def genesis(log: str) -> bytes:
    """What the first record names as the one before it."""
    return sha256(b"colibri/ledger/v1\n" + log.encode())


def commitment(nonce: bytes, body: bytes) -> bytes:
    """What a header says of its payload."""
    return sha256(b"colibri/payload/v1\n" + nonce + body)


def header(  # noqa: PLR0913 - one for each member of the format
    *,
    log: str,
    seq: int,
    at: str,
    kind: str,
    call: str,
    session: str | None,
    task: str | None,
    agent: str | None,
    payload: bytes,
    prev: bytes,
) -> bytes:
    """The header's bytes: what canonical.encode gives for these members, four times as fast."""
    quote = encode_basestring
    return (
        f'{{"agent":{"null" if agent is None else quote(agent)},"at":{quote(at)}'
        f',"call":{quote(call)},"kind":{quote(kind)},"log":{quote(log)}'
        f',"payload":"{payload.hex()}","prev":"{prev.hex()}","seq":{seq}'
        f',"session":{"null" if session is None else quote(session)}'
        f',"task":{"null" if task is None else quote(task)},"v":1}}'
    ).encode()


def leaf(header: bytes) -> bytes:
    return sha256(b"\0" + header)


def body(kind: str, payload: Mapping[str, object]) -> bytes:
    """The payload's bytes; ValueError if its members are not those of its kind."""
    if payload.keys() != MEMBERS[kind]:
        raise ValueError(f"a {kind} record has {sorted(MEMBERS[kind])}, not {sorted(payload)}")
    return encode(payload)


def enter_payload(
    *,
    server: str,
    tool: str,
    arguments: Mapping[str, object] | None,
    size: int | None = None,
    sha256: str | None = None,
) -> dict[str, object]:
    """For a refused call: arguments None, and size and sha256 of the request line."""
    return {
        "server": server,
        "tool": tool,
        "arguments": None if arguments is None else _without_texts(arguments),
        "size": size,
        "sha256": sha256,
    }


def exit_payload(
    *,
    enter: int,
    tool: str,
    outcome: Outcome,
    duration_ms: int,
    code: str | None = None,
    result_sha256: str | None = None,
) -> dict[str, object]:
    return {
        "enter": enter,
        "tool": tool,
        "outcome": outcome,
        "code": code,
        "result_sha256": result_sha256,
        "duration_ms": duration_ms,
    }


def _without_texts(arguments: Mapping[str, object]) -> dict[str, object]:
    return {
        name: _digest(value) if name in TEXTS and isinstance(value, str) else value
        for name, value in arguments.items()
    }


def _digest(text: str) -> dict[str, object]:
    data = text.encode()
    return {"sha256": sha256(data).hex(), "size": len(data)}


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
        return self.breaks[0].seq if self.breaks else None


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
        return {name: getattr(self, name) for name in ("at", "kind", "call", "task")}


def _parse_header(data: bytes, log: str) -> _Stated:
    """ValueError unless data is, byte for byte, a version 1 header of this log."""
    try:
        members = _load(data)
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
    is the record before the first row, if that is not the log's first; replay is shown the records
    of tasks, if it is given.
    """

    def __init__(
        self,
        log: str,
        *,
        seq_of: Callable[[bytes], int | None],
        head: Head | None = None,
        after: Entry | None = None,
        replay: Replay | None = None,
    ) -> None:
        self._replay = replay or Replay(blind=True)
        self._log = log
        self._seq_of = seq_of
        self._outside = head
        self._watched = head.seq if head else 0
        self.seq, first = after or (0, genesis(log))  # seq: the last one fed
        self._links: tuple[bytes, ...] = (first,)  # what the next row may follow; () if unknowable
        self._lost = [(1, self.seq)]  # ranges of seq with no readable record, ascending
        self._erased: set[int] = set()
        self._open: dict[int, OpenCall] = {}
        self._last: Row | None = None
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
                self._erased.update(_load(row.body or b"")["seqs"])
        except (KeyError, TypeError, ValueError):
            return

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
            head=Head(self._last.seq, self._last.leaf) if self._last else None,
            open_calls=tuple(self._open.values()),
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
            self._replay.blind = True
            self._links = (row.leaf, found)
            return
        # 2 its place
        if stated.seq != row.seq:
            self._note_lost(row.seq, "out of order", f"record {stated.seq} is in its place")
            self._replay.blind = True
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
            self._replay.lose(row)
        else:
            self._read_payload(row)
            return
        if row.kind == "call.enter":
            self._open[row.seq] = OpenCall(row.seq, row.call, None, None, row.at)

    def _check_erasure(self, row: Row) -> None:
        if row.seq not in self._erased:
            self._note(row.seq, "missing payload", "no erasure names it")
            self._replay.lose(row)
        elif row.kind not in ERASABLE:
            detail = f"an erasure names it, but a {row.kind} payload cannot be erased"
            self._note(row.seq, "missing payload", detail)
            self._replay.lose(row)
        else:
            self._found_erased.append(row.seq)
            for what, detail in self._replay.erase(row):
                self._note(row.seq, what, detail)

    def _read_payload(self, row: Row) -> None:
        """Hold a payload that is the committed one against its kind and against its call."""
        assert row.body is not None
        try:
            payload = _load(row.body)
            fits = payload.keys() == MEMBERS[row.kind] and type(payload.get("enter", 0)) is int
        except (AttributeError, ValueError):
            fits = False
        if not fits:
            self._note(row.seq, "bad pair", f"the payload is not that of a {row.kind}")
            self._replay.lose(row)
        if row.kind == "call.enter":
            tool, server = (payload["tool"], payload["server"]) if fits else (None, None)
            self._open[row.seq] = OpenCall(row.seq, row.call, tool, server, row.at)
        elif row.kind == "call.exit" and fits:
            self._close(row, payload["enter"], payload["tool"])
        elif fits:
            for what, detail in self._replay.feed(row, payload):
                self._note(row.seq, what, detail)

    def _close(self, row: Row, enter: int, tool: str) -> None:
        opened = self._open.get(enter)
        if opened is None:
            if not self._is_lost(enter):
                self._note(row.seq, "bad pair", f"record {enter} is not an open call")
        elif opened.call != row.call:
            self._note(row.seq, "bad pair", f"record {enter} is another call's")
        else:
            del self._open[enter]
            if opened.tool not in (tool, None):
                self._note(row.seq, "bad pair", f"record {enter} is of the tool {opened.tool}")

    def _compare_with_outside(self, row: Row) -> None:
        assert self._outside is not None
        if self._outside.leaf not in (row.leaf, leaf(row.header)):
            self._note(row.seq, "replaced", "its leaf is not the one that was seen")

    def _gaps_of_this_check(self) -> Iterable[str]:
        if not self._count:
            yield "the log holds no records: nothing was checked"
        if self._outside is None:
            yield "no head from outside: a cut-off tail or a log written anew cannot be seen"
        elif self._watched < self.seq:
            yield f"the records after {self._watched} are newer than the head from outside"
        if self._found_erased:
            yield f"{len(self._found_erased)} payloads are erased and can no longer be read"

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
        self._replay.blind = True
        self._lose(first, last)
        self._links = ()

    def _lose(self, first: int, last: int) -> None:
        start, end = self._lost[-1]
        if end == first - 1:
            self._lost[-1] = (start, last)
        else:
            self._lost.append((first, last))

    def _is_lost(self, seq: int) -> bool:
        at = bisect_right(self._lost, (seq, MAX_INTEGER)) - 1
        return at >= 0 and seq <= self._lost[at][1]


def _refuse(number: str) -> NoReturn:
    raise ValueError(f"{number} has no place in a record")


_decode = JSONDecoder(parse_float=_refuse, parse_constant=_refuse).raw_decode


def _load(data: bytes) -> Any:
    """The one JSON value that data is; ValueError if it is not one, or holds a float."""
    text = data.decode()
    try:
        value, end = _decode(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if end != len(text):
        raise ValueError("more than one value")
    return value
