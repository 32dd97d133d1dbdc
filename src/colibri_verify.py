"""Check a Colibri evidence bundle, offline, with nothing but Python 3.11.

    python colibri_verify.py bundle.colibri.jsonl [--root SIZE:HEX] [--head SEQ:HEX]
                             [--checkpoint LOG@SIZE:HEX] [--json]

Exit 0 good, 1 bad, 2 cannot tell. This one file shares no code with the server and reads nothing
but the file it is given, line by line: what it keeps grows with what is open (calls, sessions,
tasks), and by a few bytes for each call, session and task that has ended. It follows
docs/formats.md (§ is a section there); after the tables it is to be read in the order of the
procedure (§9):

     1 read        lines of at most 16 MiB
     2 shape       each line exactly as §8 has it
     3 headers     canonical, with exactly the members of a header
     4 order       by ascending seq
     5 links       each header names the leaf of the one before it
     6 gaps        none but where the kind of bundle has them
     7 payloads    those that the headers commit to, with exactly the members of their kind
     8 erasures    of what can be erased, and it is gone
     9 contents    all that the kind of bundle discloses (§8), and nothing else
    10 sessions    opened once, thoughts in a row, sealed once under the right root
    11 proofs      for thoughts whose session is not here as a whole; for the last record, that a
                   later checkpoint covers it
    12 calls       enter, the changes that the tool makes, exit; its arguments fit these
                   deeds, each under an id of its own, and their texts
    13 tasks       replayed by the rules of §6
    14 outside     the root, the head and the checkpoint that the user has from elsewhere
    15 verdict     and what was not checked

Each record goes through all of them before the next is read. Of steps 1 to 9, only what the first
that finds anything has found is told, and then nothing of 10 to 14. A bundle with a scope is read
twice more before that, to know which records belong into it. verify.mjs has the same parts in the
same order.
"""

import argparse
import base64
import hashlib
import io
import json
import os
import re
import shutil
import sys
import tempfile
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, BinaryIO

MAX_LINE = 16 * 1024 * 1024
MAX_DEPTH = 64
MAX_ITEMS = 200_000  # of all arrays and objects of a value
MAX_INTEGER = 2**53 - 1
MAX_LINKS = 5_000  # of dependencies, from one end at least
MAX_LISTED = 100  # of each list; also characters of a text that is shown
MAX_SHOWN = 20  # of each list, on a terminal
MAX_NAME = 128  # characters of what a client says of itself
MAX_COMMAND = 4096  # characters
MAX_PATTERN = 1024  # characters
RUNS = 64  # commands of a session that are remembered, the last ones
REST = 10  # the first of the steps that are all told
NOWHERE = MAX_INTEGER + 1  # beyond every record
FORMAT = "colibri-bundle/2"
ZEROS = "0" * 64


class Verdict(SimpleNamespace):
    """What §10 lists: verdict (good, bad or cannot tell), bundle, lines, findings and so on."""

    @property
    def exit_code(self) -> int:
        return {"good": 0, "bad": 1, "cannot tell": 2}[self.verdict]

    def as_json(self) -> dict[str, Any]:
        return {"format": "colibri-verdict/1", **vars(self)}


class Unfit(Exception):
    """Steps 1 and 2: why this is no bundle, as a finding."""

    def __init__(self, code: str, fact: object = "") -> None:
        super().__init__(code, fact)


@dataclass(slots=True)
class Record:
    """A header's members, and what becomes known of the record."""

    v: int
    log: str
    seq: int
    at: str
    kind: str
    call: str
    session: str | None
    task: str | None
    agent: str | None
    payload: str
    prev: str
    leaf: str
    body: Any = None  # the members of its payload, or None


@dataclass(slots=True)
class Listed:
    """A list that is cut, and how many there were."""

    items: list[Any] = field(default_factory=list)
    count: int = 0

    def add(self, item: Any) -> None:
        self.count += 1
        if len(self.items) < MAX_LISTED:
            self.items.append(item)


class Seen:
    """Names that were seen, in 80 bits each of a hash under a key that nobody knows."""

    def __init__(self) -> None:
        self.key = os.urandom(16)
        self.shelves: dict[int, bytearray] = {}

    def __contains__(self, name: str) -> bool:
        shelf, mark = self.place(name)
        at = shelf.find(mark)
        while at > 0 and at % len(mark):  # between two marks
            at = shelf.find(mark, at + 1)
        return at >= 0

    def add(self, name: str) -> None:
        shelf, mark = self.place(name)
        shelf += mark

    def place(self, name: str) -> tuple[bytearray, bytes]:
        mark = hashlib.blake2b(name.encode(), digest_size=10, key=self.key).digest()
        return self.shelves.setdefault(mark[0] << 8 | mark[1], bytearray()), mark[2:]


class Gaps:
    """The stretches of missing records, ascending; a place is a record's number in the bundle."""

    def __init__(self) -> None:
        self.first, self.last, self.places = array("Q"), array("Q"), array("Q")

    def __len__(self) -> int:
        return len(self.first)

    def add(self, first: int, last: int) -> None:
        missing = self.missing(len(self))
        self.first.append(first)
        self.last.append(last)
        self.places.append(first - 1 - missing)  # that come before it

    def missing(self, number: int) -> int:
        """How many records are missing in the first gaps."""
        return self.last[number - 1] - self.places[number - 1] if number else 0

    def between(self, first: int, last: int) -> bool:
        """Whether a record between these two, neither included, is missing from the bundle."""
        at = bisect_right(self.first, last - 1)
        return at > 0 and self.last[at - 1] > first

    def place(self, seq: int) -> int:
        """Where a record is in the bundle, counted from 0; -1 if it falls into a gap."""
        at = bisect_right(self.first, seq)
        return -1 if at and seq <= self.last[at - 1] else seq - 1 - self.missing(at)

    def seq(self, place: int) -> int:
        return place + 1 + self.missing(bisect_right(self.places, place))


# What is known of each record when it has gone by
THERE, ERASABLE, ERASED, WANTED = 1, 2, 4, 8  # its payload; its kind; by an erasure; by §8


@dataclass
class Case:
    """A bundle under examination."""

    root: str | None = None  # what the user knows from elsewhere, SIZE:HEX or HEX
    head: tuple[int, str] | None = None
    checkpoint: tuple[str, int, str] | None = None  # log, size and root
    log: str = ""
    kind: str = "log"  # or session, task, thoughts
    session: str | None = None  # the scope, of which one is None at least
    task: str | None = None
    # What the readings before the last have found out; of a log they are not needed.
    gaps: Gaps = field(default_factory=Gaps)
    start: int = NOWHERE  # of the stretch, within which no record is missing
    end: int = NOWHERE
    reach: int = NOWHERE  # where the last header without its payload has a place
    is_whole: bool = True  # whether that with which the scope begins or ends is there
    sessions: set[str | None] = field(default_factory=set)  # whose opening and seal belong in
    tasks: set[str] = field(default_factory=set)  # whose changes belong in
    evidence: set[int] = field(default_factory=set)  # the deeds that these name
    calls: Seen = field(default_factory=Seen)  # that wrote what belongs in
    openings: Seen = field(default_factory=Seen)  # the sessions whose opening is here
    # The chain
    records: int = 0
    first_seq: int = 0
    order: int = 0  # the seq of the last header
    last: Record | None = None
    unlinked: tuple[int, Record] | None = None  # the last two records, if they do not fit
    breaks: Listed = field(default_factory=Listed)  # of such, the later confirmed by the next
    marks: bytearray = field(default_factory=bytearray)
    hidden: int = 0
    # What is open, and what was found
    trail: "Trail" = field(init=False)
    ledger: "Calls" = field(init=False)
    replay: "Replay" = field(init=False)
    gates: "Gates" = field(init=False)
    proofs: "Proofs" = field(init=False)
    deeds: "Deeds" = field(init=False)
    seals: Listed = field(default_factory=Listed)
    fitting: bool = False  # whether a seal has the root that was given
    known: bool = False  # whether the head that was given has gone by
    tree: "Tree" = field(init=False)  # of a log, up to the size of the checkpoint that was given
    stated: dict[str, Any] | None = None  # the bundle's own checkpoint, if its proof holds
    covered: int = 0  # the last record that the checkpoint from elsewhere covers
    found: dict[int, Listed] = field(default_factory=dict)  # by step; those from REST on as one
    bad_lines: dict[int, set[str]] = field(default_factory=dict)
    excused: Listed = field(default_factory=Listed)  # moves whose evidence may lie in a gap
    unseen: Listed = field(default_factory=Listed)  # repeats of what lies in a gap
    taken: Listed = field(default_factory=Listed)  # take-overs
    gated: Listed = field(default_factory=Listed)  # moves whose evidence is not here as a whole
    notes: list[dict[str, str]] = field(default_factory=list)

    def find(self, step: int, code: str, seq: int | None, fact: object = "") -> None:
        """Say that a rule is broken, and at which record."""
        line, detail = CODES[code]
        step = min(step, REST)
        self.bad_lines.setdefault(step, set()).add(line)
        detail += f": {show(fact)}" if fact != "" else ""
        found = {"code": code, "seq": seq, "detail": detail}
        self.found.setdefault(step, Listed()).add(found)

    def note(self, code: str, fact: object = "") -> None:
        """Say that something was not checked."""
        detail = NOTES[code] + (f": {show(fact)}" if fact != "" else "")
        self.notes.append({"code": code, "detail": detail})

    @property
    def is_spoilt(self) -> bool:
        """Whether what builds on these records is not judged."""
        return any(step < REST for step in self.found)


def verify(
    file: BinaryIO | bytes,
    *,
    root: str | None = None,
    head: tuple[int, str] | None = None,
    checkpoint: tuple[str, int, str] | None = None,
) -> Verdict:
    """Judge a bundle; root, head and checkpoint are what the caller knows from elsewhere."""
    case = Case(root, head, checkpoint)
    try:
        examine(case, io.BytesIO(file) if isinstance(file, bytes) else file)
    except Unfit as problem:
        case.find(2, problem.args[0], None, problem.args[1])
        case.last = None
    return conclude(case)  # 15


def examine(case: Case, file: BinaryIO) -> None:
    read_first(case, file)
    if case.kind == "log":
        case.start = 0
    else:
        find_scope(case, file)
    case.trail, case.ledger, case.replay, case.proofs = Trail(), Calls(), Replay(), Proofs()
    case.deeds, case.gates, case.tree = Deeds(), Gates(), Tree()
    end: dict[str, Any] = {}
    for kind, line in read(file):  # 1, 2
        if kind == "record":
            take(case, *line)  # 3 to 10, 12, 13
        elif kind == "proof":
            case.proofs.take(case, line)  # 11
        else:
            end = line
    if case.last is None and not case.found:
        raise Unfit("empty-bundle")
    if case.last is not None:
        finish(case, case.last, end, file)


def finish(case: Case, last: Record, end: dict[str, Any], file: BinaryIO) -> None:
    """What can only be told at the end."""
    check_head(case, last, end["head"], file)  # 5
    if not case.is_whole:
        case.find(6, "missing-record", None, "the one that the scope begins or ends with")
    check_missing(case)  # 9
    if not case.is_spoilt:
        case.proofs.end(case)  # 11
        check_inclusion(case, last, end.get("checkpoint"))  # 11
        case.ledger.end(case)  # 12
        check_outside(case, last)  # 14
        check_checkpoint(case, last)  # 14


def take(case: Case, header: bytes, nonce: bytes, body: bytes) -> None:
    """One record, through all the steps."""
    record = read_header(case, header)  # 3
    if record is None or not is_next(case, record):  # 4
        return
    check_link(case, record)  # 5
    check_gap(case, record)  # 6
    read_payload(case, record, nonce, body)  # 7
    check_erasure(case, record)  # 8
    disclosed = check_contents(case, record)  # 9
    case.records += 1
    case.first_seq = case.first_seq or record.seq
    case.last = record
    if case.is_spoilt:
        return
    check_seen(case, record)  # 14
    if record.kind == "session.seal" and disclosed:
        keep_seal(case, record)
    if case.kind in ("task", "thoughts"):
        case.proofs.keep(record)
    if case.kind != "thoughts":
        case.trail.take(case, record)  # 10
        case.replay.take(case, record, disclosed)  # 13
        if disclosed:
            case.gates.take(case, record)  # 13
        if record.kind in DEEDS and disclosed:
            case.deeds.take(case, record)  # 12
        elif is_of_call(case, record, disclosed):
            case.ledger.take(case, record)  # 12


def is_of_call(case: Case, record: Record, disclosed: bool) -> bool:
    """Whether step 12 looks at a record; of the thoughts of other sessions it needs the header."""
    if record.kind == "thought" and not disclosed:
        return record.call in case.ledger.open
    return disclosed and record.kind != "erasure"


# §2, §3, §8: the members of every object. "a=b" is: the member a is a b, "a+=b": it may be missing;
# "?" is: or null; "*" is: an array of these, "*64" one of at most 64.

# §6: the task states, and the moves from each
MOVES = {
    "INIT": ("GATHER", "CANCELLED"),
    "GATHER": ("ANALYZE", "CANCELLED"),
    "ANALYZE": ("PLAN", "CANCELLED"),
    "PLAN": ("APPLY", "CANCELLED"),
    "APPLY": ("VERIFY", "CANCELLED"),
    "VERIFY": ("DONE", "GATHER", "CANCELLED"),
    "DONE": (),
    "CANCELLED": (),
}
SHAPES = {
    "first": "format=format log=log scope=scope?",
    "of-session": "session=id",
    "of-task": "task=id",
    "of-thoughts": "thoughts=id",
    "proof": "seq=seq index=int size=int path=hash*64",
    "last": "head=head checkpoint+=checkpoint",
    "checkpoint": "size=seq root=hash path=hash*64",
    "head": "seq=seq leaf=hash",
    "header": "v=one log=log seq=seq at=time kind=kind call=uuid session=text? task=text?"
    " agent=text? payload=hash prev=hash",
    "call.enter": "server=uuid tool=text arguments=arguments? client=name? host_session=name?"
    " use=name? size=int? sha256=hash?",
    "digest": "sha256=hash size=int",
    "call.exit": "enter=seq tool=text outcome=outcome code=text? result_sha256=hash?"
    " duration_ms=int repeats=seq?",
    "session.open": "session_id=text intent=text task_id=text? gates+=hash",
    "session.resume": "server=uuid",
    "thought": "thought_id=text index=int type=thinking content=text prev=hash",
    "session.seal": "root=hash count=seq first_seq=seq last_seq=seq",
    "task": "task_id=text version=seq attempt=seq set=fields-changed taken+=taken gate+=gate",
    "gate": "command=pattern exit=integer after_last_edit=flag digest=hash evidence=seq*64"
    " waived+=true",
    "taken": "last=seq minutes=int",
    "task.text": "task_id=text version=seq set=texts-changed",
    "erasure": "seqs=some-seqs reason=text?",
    "deed": "host=name host_version=name? host_session=name? host_agent=name? event=event use=name?"
    " tool=name? class=class? exit=integer? duration_ms=int? input=digest? output=digest?"
    " files=file*64 git=git? settings=hash? late=time? lost=int unjudged+=unjudged",
    "file": "n=int sha256=hash? size=int?",
    "git": "branch=text? commit=commit?",
    "deed.text": "of=seq command=command? paths=text?*64 tree=text? text=text?",
    "fields": "status=status priority=priority assignee=text? project=text? depends_on=tasks"
    " holder=text?",
    "texts": "title=text description=text?",
}
CALLS, CHANGES = ("call.enter", "call.exit"), ("task", "task.text")
DEEDS = ("deed", "deed.text")
TOOL_EVENTS = ("tool.begin", "tool.end", "tool.failed", "tool.denied")
SESSIONS = ("session.open", "session.resume", "session.seal")
TRAIL = (*SESSIONS, "thought")
SCOPES = ("session", "task", "thoughts")
TEXTS = ("title", "description", "content", "intent")  # of which arguments have a digest only
KINDS = (*CALLS, *TRAIL, *CHANGES, "erasure", *DEEDS)
NAMES = dict.fromkeys(TRAIL, "session") | dict.fromkeys(CHANGES, "task")  # never null in a header
SEQ = re.compile("[1-9][0-9]{0,15}")
PATTERNS = {  # ~ is a hex digit
    "hash": "~{64}",
    "uuid": "~{8}-~{4}-4~{3}-[89ab]~{3}-~{12}",
    "log": "colibri/~{32}",
    "time": r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}Z",
    "id": "[A-Za-z0-9][A-Za-z0-9._-]{0,63}",
    "format": FORMAT,
    "outcome": "ok|refused|invalid|error|cancelled",
    "thinking": "plan|analysis|decision|reflection",
    "status": "|".join(MOVES),
    "priority": "low|medium|high|critical",
    "commit": "~{40}|~{64}",
    "class": "edit|run|read|fetch|mcp|other",
    "unjudged": "rules|session|ledger|host",
    "event": "|".join(TOOL_EVENTS).replace(".", "[.]")
    + "|session[.](?:start|end)|prompt|stop|subagent[.](?:start|end)|compact|bind",
}
# What a payload's members must agree on, among themselves and with their header
AGREE: dict[str, Callable[[Record, Any], bool]] = {
    "call.enter": lambda r, b: (
        (b["arguments"] is None) == (b["size"] is not None) == (b["sha256"] is not None)
    ),
    "call.exit": lambda r, b: (b["code"] is None) == (b["outcome"] in ("ok", "cancelled")),
    "session.open": lambda r, b: (b["session_id"], b["task_id"]) == (r.session, r.task),
    "thought": lambda r, b: b["thought_id"] == f"R-{r.seq}",
    "task": lambda r, b: b["task_id"] == r.task,
    "task.text": lambda r, b: b["task_id"] == r.task,
    "deed": lambda r, b: (
        (b["class"] is not None) == (b["event"] in TOOL_EVENTS)
        and (b["exit"] is None or b["event"] in TOOL_EVENTS)
        and ("unjudged" not in b or (b["event"], b["class"]) == ("tool.begin", "edit"))
    ),
    "deed.text": lambda r, b: b["of"] == r.seq - 1,
}
Test = Callable[[Any], bool]


@cache
def test(type: str) -> Test:
    """Whether a value is of a type: of TESTS, of PATTERNS, or a shape."""
    if type in TESTS:
        return TESTS[type]
    if type in PATTERNS:
        match = re.compile(PATTERNS[type].replace("~", "[0-9a-f]")).fullmatch
        return lambda value: TESTS["text"](value) and match(value) is not None
    if type in SHAPES:
        return lambda value: not why_not(value, type)
    if type.endswith("?"):
        plain = test(type[:-1])
        return lambda value: value is None or plain(value)
    item, _, limit = type.partition("*")
    fits, most = test(item), int(limit or MAX_INTEGER)
    return lambda value: TESTS["array"](value) and len(value) <= most and all(map(fits, value))


@cache
def members(shape: str) -> dict[str, Test]:
    pairs = [member.split("=") for member in SHAPES[shape].split()]
    return {name.rstrip("+"): test(type) for name, type in pairs}


@cache
def optional(shape: str) -> frozenset[str]:
    names = [member.partition("+=") for member in SHAPES[shape].split()]
    return frozenset(name for name, mark, _ in names if mark)


def why_not(value: Any, shape: str) -> str:
    """What is wrong with an object's members, or nothing."""
    wanted = members(shape)
    if type(value) is not dict or value.keys() | optional(shape) != wanted.keys():
        return f"its members are not {' '.join(wanted)}"
    wrong = [name for name, fits in wanted.items() if name in value and not fits(value[name])]
    return f"not as the format has it: {' '.join(wrong)}" if wrong else ""


def text_of_thought(arguments: dict[str, Any]) -> Any:
    """The text of a thought that comes with a change, in whose place is a digest."""
    thought = arguments.get("thought")
    return thought.get("content") if type(thought) is dict else None


def are_changes(value: Any, shape: str) -> bool:
    """Whether it is field → [old, new], at least one; old may also be null."""
    wanted = members(shape)
    if type(value) is not dict or not value or not value.keys() <= wanted.keys():
        return False
    return all(
        type(pair) is list
        and len(pair) == len(("old", "new"))
        and (pair[0] is None or wanted[name](pair[0]))
        and wanted[name](pair[1])
        for name, pair in value.items()
    )


TESTS: dict[str, Test] = {
    "text": lambda value: type(value) is str,
    "name": lambda value: type(value) is str and len(value) <= MAX_NAME,
    "command": lambda value: type(value) is str and len(value) <= MAX_COMMAND,
    "pattern": lambda value: type(value) is str and len(value) <= MAX_PATTERN,
    "flag": lambda value: type(value) is bool,
    "true": lambda value: value is True,
    "integer": lambda value: type(value) is int,
    "object": lambda value: type(value) is dict,
    "array": lambda value: type(value) is list,
    "int": lambda value: type(value) is int and value >= 0,
    "seq": lambda value: type(value) is int and value >= 1,
    "kind": lambda value: type(value) is str and value in KINDS,
    "one": lambda value: type(value) is int and value == 1,
    "seqs": lambda value: test("seq*")(value) and all(a < b for a, b in pairwise(value)),
    "some-seqs": lambda value: test("seqs")(value) and len(value) >= 1,
    "tasks": lambda value: test("text*100")(value) and len({*value}) == len(value),
    "scope": lambda value: any(test(f"of-{kind}")(value) for kind in SCOPES),
    "arguments": lambda value: (
        type(value) is dict
        and all(map(test("digest?"), map(value.get, TEXTS)))
        and test("digest?")(text_of_thought(value))
    ),
    "fields-changed": lambda value: are_changes(value, "fields"),
    "texts-changed": lambda value: are_changes(value, "texts"),
}


# §1: strict JSON, and its canonical form


def parse_canonical(data: bytes, shape: str) -> tuple[Any, str]:
    """The value of canonical bytes, or None; and what is wrong with it, or nothing."""
    try:
        check_items(data)
        value = DECODER.decode(data.decode())
        if not data.isascii() or data.count(b"{") + data.count(b"[") > MAX_DEPTH:
            check_keys_and_depth(value)  # elsewhere these cannot be wrong
    except ValueError as problem:
        return None, str(problem)
    except RecursionError:
        return None, "nested too deeply"
    if ENCODER.encode(value).encode(errors="replace") != data:  # "replace" spoils lone surrogates
        return None, "not in canonical form"
    return value, why_not(value, shape)


def check_items(data: bytes) -> None:
    """Before anything is made of them: a few bytes each become many in memory."""
    if len(data) > MAX_ITEMS and sum(map(data.count, (b",", b"{", b"["))) > MAX_ITEMS:
        plain = re.sub(rb'(?s)"(?:[^"\\]++|\\.?)*+"?', b"", data)  # each quote is gone through once
        empty = plain.count(b"{}") + plain.count(b"[]")
        if sum(map(plain.count, (b",", b"{", b"["))) - empty > MAX_ITEMS:
            raise ValueError("too many items")


def check_keys_and_depth(value: Any, depth: int = 1) -> None:
    if type(value) in (dict, list) and depth > MAX_DEPTH:
        raise ValueError("nested too deeply")
    if type(value) is dict:
        if not all(map(str.isascii, value)):
            raise ValueError("a key that is not ASCII")
        value = list(value.values())
    for item in value if type(value) is list else ():
        check_keys_and_depth(item, depth + 1)


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a key comes twice")
    return value


def integer(text: str) -> int:
    long = len(text) > len("-9007199254740991")
    if long or not text.lstrip("-").isdecimal() or abs(int(text)) > MAX_INTEGER:
        raise ValueError("a number that is no integer within ±(2^53-1)")
    return int(text)


ENCODER = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"))
DECODER = json.JSONDecoder(
    object_pairs_hook=unique, parse_int=integer, parse_float=integer, parse_constant=integer
)


# §2, §4: hashes and trees
def sha256(*parts: bytes) -> bytes:
    return hashlib.sha256(b"".join(parts)).digest()


class Tree:
    """RFC 6962's tree hash, leaf by leaf: the roots of the whole trees that the leaves make."""

    def __init__(self) -> None:
        self.size, self.peaks = 0, list[bytes]()

    def add(self, node: bytes) -> None:
        size, self.size = self.size, self.size + 1
        while size & 1:
            node, size = sha256(b"\1", self.peaks.pop(), node), size >> 1
        self.peaks.append(node)

    def root(self) -> bytes:
        """Of at least one leaf."""
        *peaks, root = self.peaks
        for peak in reversed(peaks):
            root = sha256(b"\1", peak, root)
        return root


def root_of_proof(leaf: bytes, index: int, size: int, path: list[bytes]) -> bytes | None:
    """The root that a proof leads to; None if a tree of this size has no such proof."""
    if not 0 <= index < size:
        return None
    f, s, r = index, size - 1, leaf
    for p in path:
        if s == 0:
            return None
        if f & 1 or f == s:
            r = sha256(b"\1", p, r)
            while f and not f & 1:
                f, s = f >> 1, s >> 1
        else:
            r = sha256(b"\1", r, p)
        f, s = f >> 1, s >> 1
    return r if s == 0 else None


# 1 read, 2 shape

BASE64 = rb"([A-Za-z0-9+/]++=?+=?+)"
RECORD = re.compile(
    rb'\{(?:"body":"%b",)?"header":"%b"(?:,"nonce":"([A-Za-z0-9+/]{43}=)")?\}' % (BASE64, BASE64)
)
SPACE = rb"[ \t\r\n]{0,16}"
VERSION = re.compile(
    SPACE.join((b"", b"{", b'"format"', b":", rb'"(colibri-bundle/[^"\\]{0,100})"'))
)


def read(file: BinaryIO) -> Iterator[tuple[str, Any]]:
    """The lines after the first: records, proofs and the last, which is an end."""
    file.seek(0)
    next_line(file)
    proven = False
    while line := next_line(file):
        if line.startswith((b'{"checkpoint":', b'{"head":')):
            end = read_line(line, "last")
            if file.read(1):
                raise Unfit("malformed-bundle", "something follows the last line")
            yield "end", end
            return
        if line.startswith(b'{"index":'):
            proven = True
            yield "proof", read_line(line, "proof")
        elif proven:
            raise Unfit("malformed-bundle", "a record follows a proof")
        else:
            yield "record", read_record(line)
    raise Unfit("malformed-bundle", "the last line is missing")


def next_line(file: BinaryIO) -> bytes:
    """Without its newline; nothing at the end of the file."""
    line = file.readline(MAX_LINE + 1)
    if len(line) > MAX_LINE and not line.endswith(b"\n"):
        raise Unfit("too-large")
    if line and not line.endswith(b"\n"):
        raise Unfit("malformed-bundle", "a line without its end")
    if line == b"\n":
        raise Unfit("malformed-bundle", "an empty line")
    return line[:-1]


def read_line(line: bytes, shape: str) -> Any:
    """Any line but a record."""
    value, wrong = parse_canonical(line, shape)
    if wrong:
        raise Unfit("malformed-bundle", wrong)
    return value


def read_record(line: bytes) -> tuple[bytes, bytes, bytes]:
    """Header, nonce and body; these two are empty where the header stands alone."""
    match = RECORD.fullmatch(line)
    if match is None or (match[1] is None) != (match[3] is None):
        raise Unfit("malformed-bundle", "a line that is no record, no proof and no end")
    return decode(match[2]), decode(match[3] or b""), decode(match[1] or b"")


def decode(text: bytes) -> bytes:
    """The bytes of strict base64."""
    try:
        data = base64.b64decode(text, validate=True)
    except ValueError:
        data = b""
    if base64.b64encode(data) != text:
        raise Unfit("malformed-bundle", "a text that is not base64")
    return data


def read_first(case: Case, file: BinaryIO) -> None:
    version = VERSION.match(file.read(256))
    if version and version[1] != FORMAT.encode():
        raise Unfit("unknown-version", version[1].decode(errors="replace"))
    file.seek(0)
    first = read_line(next_line(file), "first")
    scope = first["scope"] or {"log": None}
    ((case.kind, name),) = scope.items()
    case.log, case.task = first["log"], scope.get("task")
    case.session = None if case.kind == "task" else name


# 3 headers, 4 order, 5 links, 6 gaps


def parse_header(data: bytes) -> tuple[Any, str]:
    header, wrong = parse_canonical(data, "header")
    if not wrong and header[NAMES.get(header["kind"], "kind")] is None:
        wrong = f"a {header['kind']} record without a {NAMES[header['kind']]}"
    return header, wrong


def read_header(case: Case, data: bytes) -> Record | None:
    header, wrong = parse_header(data)
    if wrong:
        seq = header.get("seq") if type(header) is dict else None
        case.find(3, "bad-header", seq if TESTS["seq"](seq) else None, wrong)
    elif header["log"] != case.log:
        case.find(3, "foreign-record", header["seq"], header["log"])
    else:
        return Record(**header, leaf=sha256(b"\0", data).hex())
    return None


def is_next(case: Case, record: Record) -> bool:
    last, case.order = case.order, record.seq
    if record.seq <= last:
        case.find(4, "wrong-order", record.seq)
    return record.seq > last


def genesis(log: str) -> str:
    return sha256(b"colibri/ledger/v1\n", log.encode()).hex()


def check_link(case: Case, record: Record) -> None:
    """A record that does not fit the one before it tells something only if it is not in doubt
    itself: if the next one, or the head, names its leaf."""
    seq, leaf = (case.last.seq, case.last.leaf) if case.last else (0, genesis(case.log))
    linked = record.seq != seq + 1 or record.prev == leaf
    if linked:
        keep_break(case)
    case.unlinked = None if linked else (seq, record)


def keep_break(case: Case) -> None:
    if case.unlinked is not None:
        case.breaks.add(case.unlinked)
    case.unlinked = None


def check_head(case: Case, last: Record, head: dict[str, Any], file: BinaryIO) -> None:
    if head["seq"] > last.seq:
        case.find(5, "truncated", last.seq + 1, f"the bundle's head is {head['seq']}")
    elif (head["seq"], head["leaf"]) != (last.seq, last.leaf):
        case.find(5, "wrong-head", last.seq)
        case.unlinked = None
    keep_break(case)
    if case.breaks.count and not {1, 2, 3, 4} & case.found.keys():
        tell_breaks(case, file)


def tell_breaks(case: Case, file: BinaryIO) -> None:
    """Whether a record follows another one of the bundle, or one that is not here."""
    wanted = {record.prev for _, record in case.breaks.items}
    leaves = (sha256(b"\0", line[0]).hex() for kind, line in read(file) if kind == "record")
    known = {genesis(case.log), *(leaf for leaf in leaves if leaf in wanted)}
    for seq, record in case.breaks.items:
        if seq == 0:
            case.find(5, "broken-link", 1, "not the genesis")
        elif record.prev in known:
            case.find(5, "broken-link", record.seq)
        else:
            case.find(5, "altered-header", seq)
    case.found[5].count += case.breaks.count - len(case.breaks.items)


def check_gap(case: Case, record: Record) -> None:
    before = case.last.seq if case.last else 0
    if record.seq > before + 1 and case.start <= before and record.seq <= case.end:
        case.find(6, "missing-record", before + 1, f"{before + 1} to {record.seq - 1}")


# 7 payloads, 8 erasures


def read_payload(case: Case, record: Record, nonce: bytes, body: bytes) -> None:
    if not nonce:
        return
    if sha256(b"colibri/payload/v1\n", nonce, body).hex() != record.payload:
        return case.find(7, "altered-payload", record.seq)
    value, wrong = parse_canonical(body, record.kind)
    if not wrong and record.kind in AGREE and not AGREE[record.kind](record, value):
        wrong = "its members contradict each other or the header"
    if wrong:
        case.find(7, "bad-payload", record.seq, wrong)
    else:
        record.body = value


def check_erasure(case: Case, record: Record) -> None:
    erasable = record.kind in ("call.enter", "session.open", "thought", "task.text", "deed.text")
    case.marks.append((THERE if record.body else 0) | (ERASABLE if erasable else 0))
    for seq in record.body["seqs"] if record.kind == "erasure" and record.body else ():
        place = case.gaps.place(seq)
        here = 0 <= place < len(case.marks)
        if seq >= record.seq or (here and not case.marks[place] & ERASABLE):
            case.find(8, "bad-erasure", record.seq, seq)
        elif here and case.marks[place] & THERE:
            case.find(8, "erased-payload", seq)
        elif here:
            case.marks[place] |= ERASED


def marked(case: Case, wanted: Callable[[int], bool]) -> Iterator[int]:
    """The records of which this is known."""
    hits = case.marks.translate(bytes(map(wanted, range(256))))
    place = hits.find(True)
    while place >= 0:
        yield case.gaps.seq(place)
        place = hits.find(True, place + 1)


# 9 contents


def check_contents(case: Case, record: Record) -> bool:
    """Whether its payload belongs into the bundle."""
    disclosed = case.kind == "log" or belongs(case, record)
    case.hidden += not disclosed
    if disclosed and record.body is None and case.marks[-1] & ERASABLE:
        case.marks[-1] |= WANTED  # until an erasure names it
    elif disclosed and record.body is None:
        case.find(9, "missing-payload", record.seq)
    elif not disclosed and not case.start <= record.seq <= case.reach:
        case.find(9, "stray-record", record.seq)
    elif not disclosed and record.body is not None:
        case.find(9, "stray-payload", record.seq)
    return disclosed


def check_missing(case: Case) -> None:
    for seq in marked(case, lambda mark: mark & (WANTED | ERASED) == WANTED):
        case.find(9, "missing-payload", seq)


def belongs(case: Case, record: Record) -> bool:
    if record.kind == "erasure":
        return names_ours(case, record)
    if case.kind == "thoughts":
        ours = record.session == case.session
        return ours and (record.kind == "thought" or record.seq == case.end)
    return is_own(case, record, there=record.body is not None) or (
        record.kind in CALLS and record.call in case.calls
    )


def is_own(case: Case, record: Record, *, there: bool) -> bool:
    """Whether it belongs in for itself, and not for the call that wrote it."""
    inside = case.start <= record.seq <= case.end or case.kind == "task"
    if record.kind in CHANGES:
        return record.task in case.tasks and record.seq <= case.end
    if record.kind == "call.exit" and record.session is None and there and inside:
        return record.task in case.tasks  # it may be disclosed: how a call ended that did nothing
    if record.kind in SESSIONS and record.session in case.sessions and record.seq <= case.end:
        return True
    if case.kind == "session":
        named = record.session == case.session
        return named and (record.kind in (*TRAIL, *DEEDS) or inside)
    if record.kind in DEEDS:
        return record.seq - (record.kind == "deed.text") in case.evidence
    return record.kind == "thought" and record.task == case.task


def find_scope(case: Case, file: BinaryIO) -> None:
    """Read the bundle for what belongs into it: its stretch and its tasks, then their calls."""
    case.is_whole, survey = False, Survey(case)
    for record, body in headers(file):
        survey.take(record, body)
    case.end = min(case.end, survey.last)
    if case.kind != "session":
        case.start, case.tasks = NOWHERE, {str(case.task)}
    queue = list(case.tasks)
    for task in queue:
        queue.extend(survey.needs.get(task, set()) - case.tasks)
        case.tasks.update(queue)
        case.sessions.update(survey.holders.get(task, ()))
        case.evidence.update(survey.evidence.get(task, ()))
    if case.kind != "thoughts":
        find_calls(case, file)


class Survey:
    """The first reading of a bundle with a scope."""

    def __init__(self, case: Case) -> None:
        self.case, self.last = case, 0
        self.sealing: str | None = None  # the call that sealed the session
        self.needs: dict[str | None, set[str]] = {}
        self.holders: dict[str | None, set[str | None]] = {}
        self.evidence: dict[str | None, list[int]] = {}

    def take(self, record: Record, body: bytes) -> None:
        if record.seq > self.last + 1:
            self.case.gaps.add(self.last + 1, record.seq - 1)
        self.last = record.seq
        if record.kind == "session.open":
            self.case.openings.add(str(record.session))
        self.find_ends(record, ours=record.session == self.case.session)
        self.find_tasks(record, body)

    def find_ends(self, record: Record, *, ours: bool) -> None:
        case = self.case
        if record.kind == "session.open" and ours and case.start == NOWHERE:
            case.start, case.is_whole = record.seq, case.kind == "session"
        elif record.kind == "session.seal" and ours and self.sealing is None:
            self.sealing = record.call
            if case.kind == "thoughts":
                case.end, case.is_whole = record.seq, True
        elif record.kind == "call.exit" and record.call == self.sealing and case.end == NOWHERE:
            case.end = record.seq

    def find_tasks(self, record: Record, body: bytes) -> None:
        case, ours = self.case, record.session == self.case.session
        if record.kind == "task" and case.end == NOWHERE:
            case.is_whole |= record.task == case.task
            change, wrong = parse_canonical(body, "task") if body else ({}, "no body")
            made = {} if wrong else change["set"]
            for ids in made.get("depends_on", ()):
                self.needs.setdefault(record.task, set()).update(ids or ())
            holders = self.holders.setdefault(record.task, set())
            holders.update(filter(None, made.get("holder", ())))
            gate = {} if wrong else change.get("gate", {})
            self.evidence.setdefault(record.task, []).extend(gate.get("evidence", ()))
        if record.kind in CHANGES and case.kind == "task":
            self.holders.setdefault(record.task, set()).update(filter(None, [record.session]))
        named = ("session.open", "thought", *CHANGES, *DEEDS)
        if record.kind in named and ours and case.end == NOWHERE:
            case.tasks.update(filter(None, [record.task]))
        elif record.kind == "thought" and case.kind == "task" and record.task == case.task:
            case.sessions.add(record.session)


def find_calls(case: Case, file: BinaryIO) -> None:
    shown = 0
    for record, body in headers(file):
        if record.kind == "erasure" and body:
            record.body, wrong = parse_canonical(body, "erasure")
            shown = record.seq if not wrong and names_ours(case, record) else shown
        elif record.call in case.calls:
            own = record.kind in CALLS or is_own(case, record, there=bool(body))
            shown = record.seq if own else shown
        elif is_own(case, record, there=bool(body)):
            case.calls.add(record.call)
            shown = record.seq
    is_linked = not case.gaps.between(case.start, shown)
    case.reach = max(case.end, shown) if is_linked else case.end


def headers(file: BinaryIO) -> Iterator[tuple[Record, bytes]]:
    """The records and the bytes of their bodies, without a judgement."""
    last = 0
    for kind, line in read(file):
        header, wrong = parse_header(line[0]) if kind == "record" else ({}, kind)
        if not wrong and header["seq"] > last:
            last = header["seq"]
            yield Record(**header, leaf=""), line[2]


def names_ours(case: Case, erasure: Record) -> bool:
    seqs = erasure.body["seqs"] if erasure.body else ()
    return any(seq < erasure.seq and case.gaps.place(seq) >= 0 for seq in seqs)


# 10 sessions and seals


@dataclass(slots=True)
class Session:
    opened: int  # its session.open
    placed: int  # the last record whose place in the session is known
    index: int = 0  # of the next thought; after a gap it may be greater
    first: int = 0  # its first thought, and its last
    last: int = 0
    leaf: str = ZEROS  # of its last
    agent: str | None = None  # who opened it
    server: str = ""  # the process that continues it; empty if any may
    tree: Tree = field(default_factory=Tree)


class Trail:
    """The sessions that are open, and the names of those that are sealed.

    `ended` are all whose seal went by, also where the bundle says nothing else of them. Of those
    that can still give one, `signs` is the last sign of life.
    """

    def __init__(self) -> None:
        self.open: dict[str | None, Session] = {}
        self.sealed, self.ended = Seen(), Seen()
        self.signs: dict[str | None, int] = {}

    def live(self, record: Record) -> None:
        """A sign of life: the exit of a call that ended ok, or a deed that is not late."""
        if record.session is not None and record.session not in self.ended:
            self.signs[record.session] = record.seq

    def take(self, case: Case, record: Record) -> None:
        self.judge(case, record)
        if record.kind == "session.seal" and str(record.session) not in self.ended:
            self.ended.add(str(record.session))
            self.signs.pop(record.session, None)

    def judge(self, case: Case, record: Record) -> None:
        kind, seq, id = record.kind, record.seq, record.session
        ours = case.kind != "session" or id == case.session
        if kind not in (*TRAIL, *CHANGES, "deed") or id is None or not ours:
            return
        session, sealed = self.open.get(id), str(id) in self.sealed
        if kind == "session.open" and (session or sealed):
            case.find(10, "second-open", seq, id)
        elif kind == "session.open":
            self.open[id] = Session(seq, seq, agent=record.agent)
            case.deeds.open(record)
        elif sealed:
            case.find(10, AFTER_SEAL.get(kind, "change-after-seal"), seq, id)
        elif not session:
            lost = case.gaps.between(0, seq) and str(id) not in case.openings
            case.find(10, "missing-record" if lost else "outside-session", seq, id)
        else:
            if kind != "deed":
                check_server(case, record, session)
            elif record.agent != session.agent:
                case.find(12, "bad-pair", seq, "another agent than its session's")
            if kind == "thought":
                check_thought(case, record, session)
            elif kind == "session.seal":
                check_seal(case, record, session)
                del self.open[id]
                self.sealed.add(str(id))
                case.deeds.seal(str(id))


AFTER_SEAL = {"thought": "thought-after-seal", "session.seal": "second-seal"}


def check_server(case: Case, record: Record, session: Session) -> None:
    """Whether the process that makes a change is the one that continues its session."""
    if record.kind == "session.resume":
        session.server = record.body["server"]
    call = case.ledger.open.get(record.call)
    if call and call.enter.body and session.server not in ("", call.enter.body["server"]):
        case.find(10, "wrong-server", record.seq, record.session)


def check_thought(case: Case, thought: Record, session: Session) -> None:
    gap = case.gaps.between(session.placed, thought.seq)  # others may lie there
    if thought.body and gap and thought.body["index"] > session.index:
        session.index = thought.body["index"]
    elif thought.body:  # otherwise it is erased; its header still holds its place
        if thought.body["index"] != session.index:
            case.find(10, "wrong-index", thought.seq, thought.body["index"])
        if thought.body["prev"] != session.leaf:
            case.find(10, "broken-thought-chain", thought.seq)
    if thought.body or not gap:
        session.placed = thought.seq
    session.index += 1
    session.first = session.first or thought.seq
    session.last, session.leaf = thought.seq, thought.leaf
    session.tree.add(bytes.fromhex(thought.leaf))


def check_seal(case: Case, seal: Record, session: Session) -> None:
    stated = seal.body
    gap = case.gaps.between(session.opened, seal.seq)  # what lies there is for the proofs to show
    if stated["count"] < session.index or (stated["count"] > session.index and not gap):
        case.find(10, "wrong-count", seal.seq, f"{stated['count']}, not {session.index}")
    if session.first:
        early, late = session.first - stated["first_seq"], stated["last_seq"] - session.last
        if early < 0 or late < 0 or ((early or late) and not gap):
            case.find(10, "wrong-range", seal.seq)
        if not gap and stated["root"] != session.tree.root().hex():
            case.find(10, "wrong-root", seal.seq)


def keep_seal(case: Case, seal: Record) -> None:
    count, root = seal.body["count"], seal.body["root"]
    case.seals.add({"seq": seal.seq, "session": show(seal.session), "count": count, "root": root})
    case.fitting |= case.root in (root, f"{count}:{root}")


# 11 proofs


class Proofs:
    """The thoughts and the first seal of each session, until the proofs have come."""

    def __init__(self) -> None:
        self.thoughts: dict[int, tuple[str | None, bytes, int | None]] = {}
        self.seals: dict[str | None, tuple[int, bytes]] = {}

    def keep(self, record: Record) -> None:
        if record.kind == "thought":
            index = record.body["index"] if record.body else None
            self.thoughts[record.seq] = record.session, bytes.fromhex(record.leaf), index
        elif record.kind == "session.seal":
            stated = record.body["count"], bytes.fromhex(record.body["root"])
            self.seals.setdefault(record.session, stated)

    def take(self, case: Case, proof: dict[str, Any]) -> None:
        if case.kind not in ("task", "thoughts"):
            raise Unfit("malformed-bundle", "a proof in a bundle that has none")
        if case.is_spoilt:
            return None
        session, leaf, index = self.thoughts.pop(proof["seq"], (None, b"", None))
        if session not in self.seals:
            return case.find(11, "bad-proof", proof["seq"], "of no thought here that a seal covers")
        size, root = self.seals[session]
        index = proof["index"] if index is None else index
        path = [bytes.fromhex(step) for step in proof["path"]]
        found = root_of_proof(leaf, index, size, path)
        if (proof["index"], proof["size"], found) != (index, size, root):
            case.find(11, "bad-proof", proof["seq"], f"the thought is {index} of {size}")

    def end(self, case: Case) -> None:
        for seq, (session, _, _) in self.thoughts.items():
            if session in self.seals:
                case.find(11, "missing-proof", seq)


def check_inclusion(case: Case, last: Record, stated: dict[str, Any] | None) -> None:
    """Whether the bundle's checkpoint covers its last record."""
    if stated is None:
        return
    path = [bytes.fromhex(step) for step in stated["path"]]
    size: int = stated["size"]
    found = root_of_proof(bytes.fromhex(last.leaf), last.seq - 1, size, path)
    is_later = size > last.seq and ends_with_log(case)
    if found is None or found.hex() != stated["root"] or is_later:
        case.find(11, "bad-checkpoint", last.seq, f"it is of {size} records")
    else:
        case.stated = stated


def ends_with_log(case: Case) -> bool:
    """Whether the bundle goes to the end of the log."""
    return case.kind == "log" or (case.kind == "session" and not case.seals.count)


# 12 calls

# §5: the changes that a tool makes in a call that ended ok, in this order: a kind, how many at
# least and at most. Any other tool makes none.
Made = tuple[tuple[str, int, int], ...]
MADE_BY: dict[str, Made] = {
    "audit_session_start": (("session.open session.resume", 1, 1),),
    "thought_record": (("thought", 1, 1),),
    "merkle_finalize": (("session.seal", 1, 1),),
    "task_create": (("task", 1, 1), ("task.text", 1, 1)),
    "task_update": (("thought", 0, 1), ("task", 0, 8), ("task.text", 0, 1)),
    "task_next_actions": (("task", 0, 1),),
}
MOST_CHANGES = 10  # of any tool
REPEATED = ("task_create", "thought_record")
# The texts of its arguments that a tool records
RECORDED = {
    "audit_session_start": ("intent",),
    "thought_record": ("content",),
    "task_create": ("title", "description"),
    "task_update": ("title", "description", "content"),
}
TEXTS_OF = {
    "session.open": ("intent",),
    "thought": ("content",),
    "task.text": ("title", "description"),
}
UNKNOWN = object()  # a value that an erased or missing record may have set


@dataclass(slots=True)
class Call:
    """A call that has no exit yet."""

    enter: Record
    changes: list[Record] = field(default_factory=list)
    texts: dict[str, object] = field(default_factory=dict)  # that it recorded, as their digests


class Calls:
    """The calls that are open, the names of all that were entered, and which may be repeated."""

    def __init__(self) -> None:
        self.open: dict[str, Call] = {}
        self.entered, self.first = Seen(), Seen()

    def take(self, case: Case, record: Record) -> None:
        call = self.open.get(record.call)
        if record.kind == "call.enter":
            if call or record.call in self.entered:
                return case.find(12, "bad-pair", record.seq)
            self.open[record.call] = Call(record)
            self.entered.add(record.call)
            case.deeds.unseen.enter(case, record)
        elif call is None:
            self.misplaced(case, record)
        else:
            enter = call.enter
            same = record.agent == enter.agent and enter.session in (record.session, None)
            if not same or enter.task not in (record.task, None):
                case.find(12, "bad-pair", record.seq, "another session, task or agent")
            if record.kind == "call.exit":
                if record.body["outcome"] == "ok":
                    case.trail.live(record)
                check_exit(case, call, record)
                case.deeds.unseen.exit(case, enter, record)
                case.replay.settle(one.task for one in call.changes if one.kind in CHANGES)
                del self.open[record.call]
            elif len(call.changes) == MOST_CHANGES:
                case.find(12, "stray-change", record.seq)
            else:
                call.texts |= recorded(record)
                record.body = None
                call.changes.append(record)

    def misplaced(self, case: Case, record: Record) -> None:
        """A record of a call that was not entered, or has ended."""
        is_exit = record.kind == "call.exit"
        at = record.body["enter"] if is_exit else record.seq
        lost = case.gaps.between(at - 1 if is_exit else 0, at + 1)
        if lost and record.call not in self.entered:
            case.find(12, "missing-record", at)
        else:
            case.find(12, "bad-pair" if is_exit else "stray-change", record.seq)

    def end(self, case: Case) -> None:
        for call in self.open.values():
            for change in call.changes:
                case.find(12, "stray-change", change.seq)

    def listed(self) -> list[dict[str, Any]]:
        calls = [call.enter for call in self.open.values()][:MAX_LISTED]
        tools = [enter.body and show(enter.body["tool"]) for enter in calls]
        return [
            {"seq": enter.seq, "call": enter.call, "tool": tool}
            for enter, tool in zip(calls, tools, strict=True)
        ]


def check_exit(case: Case, call: Call, exit: Record) -> None:
    enter, tool = call.enter, exit.body["tool"]
    if exit.body["enter"] != enter.seq or (enter.body and enter.body["tool"] != tool):
        return case.find(12, "bad-pair", exit.seq, "another enter or tool")
    ended_ok, repeats = exit.body["outcome"] == "ok", exit.body["repeats"]
    makes = MADE_BY.get(tool, ()) if ended_ok and repeats is None else ()
    right = check_changes(case, call.changes, makes, exit)
    if repeats is not None:
        check_repeat(case, exit)
    elif ended_ok and (enter.body is None or "key" in (enter.body["arguments"] or {})):
        case.ledger.first.add(f"{tool} {enter.seq}")
    if right and ended_ok and enter.body and repeats is None:
        check_digests(case, call, exit)


def check_changes(case: Case, changes: list[Record], makes: Made, exit: Record) -> bool:
    """Whether a call has made the changes that its tool makes."""
    left, missing = [*reversed(changes)], False
    for kinds, least, most in makes:
        count = 0
        while left and count < most and left[-1].kind in kinds.split():
            left.pop()
            count += 1
        missing |= count < least
    for change in reversed(left):
        case.find(12, "stray-change", change.seq)
    if missing and not left:
        case.find(12, "missing-change", exit.seq)
    return not left and not missing


def check_repeat(case: Case, exit: Record) -> None:
    """Whether the call that this one repeats has done its work."""
    first, tool = exit.body["repeats"], exit.body["tool"]
    can = exit.body["outcome"] == "ok" and tool in REPEATED and first < exit.seq
    place = case.gaps.place(first)
    if can and (place < 0 or not case.marks[place] & (THERE | WANTED)):  # it is not disclosed
        case.unseen.add(f"record {exit.seq}")
    elif not can or f"{tool} {first}" not in case.ledger.first:
        case.find(12, "bad-repeat", exit.seq, first)


def check_digests(case: Case, call: Call, exit: Record) -> None:
    """Whether the texts of its arguments are those that it recorded, or that stood there before."""
    arguments, task = call.enter.body["arguments"] or {}, case.replay.tasks.get(call.enter.task)
    is_whole = not case.gaps.between(call.enter.seq, exit.seq)
    for name in RECORDED.get(exit.body["tool"], ()):
        stated = arguments.get(name) or (text_of_thought(arguments) if name == "content" else None)
        before = None if name in ("content", "intent") and is_whole else UNKNOWN
        known = call.texts.get(name, task.values.get(name, before) if task else before)
        if stated and known is not UNKNOWN and known != (stated["sha256"], stated["size"]):
            case.find(12, "wrong-digest", call.enter.seq, name)


def recorded(change: Record) -> dict[str, object]:
    """The digests of the texts that a change records."""
    if change.kind == "session.resume":  # it keeps the intent that the session was opened with
        return {"intent": UNKNOWN}
    if change.body is None:
        return dict.fromkeys(TEXTS_OF[change.kind], UNKNOWN)
    texts = {name: change.body[name] for name in ("content", "intent") if name in change.body}
    if change.kind == "task.text":
        texts |= {name: new for name, (_, new) in change.body["set"].items()}
    return {name: digest(text) for name, text in texts.items()}


def digest(text: str | None) -> object:
    if text is None:
        return None
    data = text.encode()
    return sha256(data).hex(), len(data)


# 12 deeds


class Deeds:
    """The deed before, the tool calls that began and did not end, and what §10 measures."""

    def __init__(self) -> None:
        self.last: Record | None = None
        self.begun: dict[tuple[str | None, ...], tuple[int, str]] = {}  # where, and its class
        self.newest: dict[str, tuple[str | None, ...]] = {}  # of each session
        self.sealing: set[tuple[str | None, ...]] = set()  # that began, sealed, and end after it
        self.halves: dict[str | None, Halves] = {}  # of each session of a host
        self.settings: dict[str, str] = {}  # of each host, as they were last
        self.silent: set[str] = set()  # sessions of agents that are open, without a deed
        self.count = self.changes = self.lost = self.unjudged = self.sessions = self.unheard = 0
        self.unseen = Unseen()

    def open(self, record: Record) -> None:
        if not (record.agent or "").startswith(HUMAN):
            self.silent.add(str(record.session))
            self.sessions += 1

    def seal(self, session: str) -> None:
        """The tool call that seals a session ends after it: it counts as ended."""
        self.unseen.seal(session)
        self.unheard += session in self.silent
        self.silent.discard(session)
        use = self.newest.pop(session, None)
        if use is not None and self.begun.get(use, (0, ""))[1] in ("mcp", "run"):
            del self.begun[use]
            self.sealing.add(use)

    def take(self, case: Case, record: Record) -> None:
        last, self.last = self.last, record
        if record.kind == "deed.text":
            check_text(case, last, record)
            return
        if record.call in case.ledger.open or record.call in case.ledger.entered:
            case.find(12, "bad-pair", record.seq, "another call or deed has its id")
        else:
            case.ledger.entered.add(record.call)
        if record.session is None and record.agent is not None:
            case.find(12, "bad-pair", record.seq, "an agent without a session")
        if record.body["late"] is None:
            case.trail.live(record)
        self.measure(record, record.body)

    def measure(self, record: Record, body: dict[str, Any]) -> None:
        self.count += 1
        self.lost += body["lost"]
        self.unjudged += "unjudged" in body
        self.silent.discard(str(record.session))
        self.unseen.deed(record.session, body)
        if body["settings"] is not None:
            self.changes += self.settings.get(body["host"], body["settings"]) != body["settings"]
            self.settings[body["host"]] = body["settings"]
        if body["event"] in TOOL_EVENTS:
            self.pair(record, body)

    def pair(self, record: Record, body: dict[str, Any]) -> None:
        """The report of a tool call's begin or end."""
        halves = self.halves.setdefault(body["host_session"], Halves())
        begins, ends = body["event"] == "tool.begin", body["event"] in ENDS
        use = (body["host_session"], body["host_agent"], body["use"])
        if body["use"] is None:
            halves.begins += begins
            halves.ends += ends
        elif begins:
            halves.early, halves.named = 0, True
            self.begun[use] = record.seq, body["class"]
            if record.session is not None:
                self.newest[record.session] = use
        elif use in self.sealing:
            self.sealing.discard(use)
        elif self.begun.pop(use, None) is None and ends:
            halves.early += not halves.named
            halves.lone += halves.named

    def coverage(self) -> dict[str, Any]:
        begun = [seq for seq, _ in self.begun.values()]
        unseen = self.unseen.found()
        return {
            "deeds": self.count,
            "not_ended": begun[:MAX_LISTED],
            "not_ended_count": len(begun),
            "unpaired": sum(one.unpaired for one in self.halves.values()),
            "unseen": unseen[:MAX_LISTED],
            "unseen_count": len(unseen),
            "unjudged": self.unjudged,
            "settings_changed": self.changes,
            "lost": self.lost,
            "sessions": self.sessions,
            "unreported": self.unheard + len(self.silent),
        }


@dataclass(slots=True)
class Halves:
    """What a session of a host reported of tool calls without saying what belongs together."""

    begins: int = 0  # without an id
    ends: int = 0  # the same
    named: bool = False  # a begin has an id
    early: int = 0  # ends before the first of these: they began before the session did
    lone: int = 0  # ends without a begin, later

    @property
    def unpaired(self) -> int:
        return max(self.begins, self.ends) + self.early + self.lone


@dataclass(slots=True)
class Habits:
    """How a session of a host reports tool calls."""

    gives_ids: bool = False
    begins: bool = False  # it reports them with an id when they begin
    hides_ids: bool = False  # of calls of MCP tools


@dataclass(slots=True)
class Tail:
    """The calls of a session after its last deed, where its host gives the calls no ids."""

    gives_ids: bool = False
    begun: int = 0  # calls of MCP tools that have begun, and whose calls have not ended
    enters: list[int] = field(default_factory=list)


class Unseen:
    """§10: the calls that a host should have reported, and did not."""

    def __init__(self) -> None:
        self.hosts: dict[str | None, Habits] = {}
        self.tails: dict[str | None, Tail] = {}  # of open sessions with a deed of an MCP tool
        self.named: set[str | None] = set()  # sessions with a deed that has an id
        self.begun: set[str] = set()  # ids of tool calls that have not ended
        self.missing: dict[str, tuple[int, bool]] = {}  # enter, and whether it has ended
        self.sealed: list[int] = []  # of the sessions that are sealed

    def deed(self, session: str | None, body: dict[str, Any]) -> None:
        if session in self.tails:
            self.tails[session].enters.clear()
        if body["class"] is None:
            return
        habits, use = self.hosts.setdefault(body["host_session"], Habits()), body["use"]
        if use is not None:
            habits.gives_ids = True
            self.missing.pop(use, None)
            self.named |= {session} - {None}
            if body["event"] == "tool.begin":
                habits.begins = True
                self.begun.add(use)
            else:
                self.begun.discard(use)
        if body["class"] == "mcp":
            habits.hides_ids |= use is None
            if session is not None:
                tail = self.tails.setdefault(session, Tail())
                tail.begun = tail.begun + 1 if body["event"] == "tool.begin" else 0

    def enter(self, case: Case, enter: Record) -> None:
        use = enter.body and enter.body["use"]
        ours = case.kind != "session" or enter.session in (None, case.session)
        if not ours or use is None or use in self.begun or (enter.agent or "").startswith(HUMAN):
            return
        habits = self.hosts.get(enter.body["host_session"], Habits())
        if (habits.gives_ids or enter.session in self.named) and not habits.hides_ids:
            self.missing[use] = enter.seq, False

    def exit(self, case: Case, enter: Record, exit: Record) -> None:
        if enter.body is None or (exit.agent or "").startswith(HUMAN):
            return
        use, outcome, tail = enter.body["use"], exit.body["outcome"], self.tails.get(exit.session)
        if use is not None:
            if tail:
                tail.gives_ids = True
            if self.missing.get(use, (0, False))[0] == enter.seq:
                habits = self.hosts.get(enter.body["host_session"], Habits())
                seals = (exit.body["tool"], outcome) == ("merkle_finalize", "ok")
                ours = case.kind != "session" or exit.session == case.session
                if ours and outcome != "cancelled" and (habits.begins or not seals):
                    self.missing[use] = enter.seq, True
                else:
                    del self.missing[use]
        elif tail and outcome != "cancelled":
            if tail.begun:
                tail.begun -= 1
            else:
                tail.enters.append(enter.seq)

    def seal(self, session: str) -> None:
        tail = self.tails.pop(session, None)
        if tail and not tail.gives_ids:
            self.sealed += tail.enters

    def found(self) -> list[int]:
        tails = [one.enters for one in self.tails.values() if not one.gives_ids]
        ended = [seq for seq, has_ended in self.missing.values() if has_ended]
        return sorted([*self.sealed, *ended, *(seq for tail in tails for seq in tail)])


def check_text(case: Case, deed: Record | None, text: Record) -> None:
    names = (text.seq - 1, "deed", text.call, text.session, text.task, text.agent)
    if not deed or names != (deed.seq, deed.kind, deed.call, deed.session, deed.task, deed.agent):
        case.find(12, "bad-pair", text.seq, "it does not follow its deed")
    elif text.body and any(one["n"] >= len(text.body["paths"]) for one in deed.body["files"]):
        case.find(12, "bad-pair", text.seq, "a file of its deed has no path")


# 13 tasks

ENDED = ("DONE", "CANCELLED")
NEEDS_DEPENDENCIES = ("APPLY", "VERIFY", "DONE")
RETRY = ("VERIFY", "GATHER")
NOTHING = dict.fromkeys((*members("fields"), *members("texts")), UNKNOWN)
CREATED = members("fields").keys() - {"holder"}
HUMAN = "human:"  # how the names of people begin


@dataclass(slots=True)
class Task:
    """A task as its records leave it; before the first of them nothing is known."""

    values: dict[str, Any] = field(default_factory=lambda: NOTHING)  # of its texts the digests
    version: int = 0
    attempt: int = 1
    began: int = 0  # the record that began the attempt
    thought: int = 0  # the last about it
    last: int = 0  # its last record, and the call that wrote it, while that is open
    call: str = ""
    texted: bool = False  # whether its version has its task.text already
    is_new: bool = False  # whether its last record created it
    waiting: set[str | None] = field(default_factory=set)  # the tasks that depend on it

    @property
    def needs(self) -> list[str]:
        ids = self.values["depends_on"]
        return [] if ids is UNKNOWN else ids


class Replay:
    """The tasks that can still change, or lead to one that can; and the names of all others."""

    def __init__(self) -> None:
        self.tasks: dict[str | None, Task] = {}
        self.ended = Seen()

    def take(self, case: Case, record: Record, disclosed: bool) -> None:
        id, task = record.task, self.tasks.get(record.task)
        if record.kind in CHANGES and disclosed:
            self.change(case, record)
        elif record.kind == "deed" and disclosed and id is not None:
            self.work(case, record)
        elif record.kind in ("session.open", "thought") and id is not None:
            ours = case.task in (id, None) and case.session in (record.session, None)
            if disclosed and ours and not self.exists(id):
                case.find(13, "unknown-task", record.seq, id)  # 10
            if task and record.kind == "thought":
                task.thought = record.seq

    def work(self, case: Case, deed: Record) -> None:
        """A deed that names a task, which its session holds."""
        holder = self.tasks[deed.task].values["holder"] if deed.task in self.tasks else None
        ended = type(holder) is str and holder in case.trail.ended
        held = holder is UNKNOWN or (holder == deed.session and not ended)
        if deed.session is None or not held:
            case.find(13, "wrong-holder", deed.seq, deed.task)  # 11

    def exists(self, id: str | None) -> bool:
        return id in self.tasks or str(id) in self.ended

    def change(self, case: Case, record: Record) -> None:
        """A task or task.text record; without a body it is a text that was erased."""
        if str(record.task) in self.ended:
            return case.find(13, "change-after-end", record.seq, record.task)
        task, is_text = self.tasks.setdefault(record.task, Task()), record.kind == "task.text"
        first, old = task.version == 0, task.values["status"]
        shares = is_text and record.call == task.call and not task.texted
        if old in ENDED and not shares:
            return case.find(13, "change-after-end", record.seq, record.task)  # 4
        if type(task.values["holder"]) is str and task.values["holder"] in case.trail.ended:
            task.values = {**task.values, "holder": None}  # 11
        expected = task.version if shares else task.version + 1
        body = record.body or {"version": expected, "set": {}}
        made = {name: tuple(map(stored(name), pair)) for name, pair in body["set"].items()}
        lost = body["version"] > expected and case.gaps.between(task.last, record.seq)
        if lost:  # continue with what this record says, and nothing else
            case.find(13, "missing-record", record.seq, record.task)
            task.values = NOTHING
        else:
            for code in self.broken(case, record, body, made, expected):
                case.find(13, code, record.seq, record.task)
        said = {name: new for name, (_, new) in made.items()}
        if (first and not lost) or said.get("status") in ENDED:
            said["holder"] = None  # 11
        unsaid = {} if record.body else dict.fromkeys(members("texts"), UNKNOWN)
        self.link(record.task, task, {**task.values, **unsaid, **said})
        if first or (not lost and (old, said.get("status")) == RETRY):
            task.began = record.seq
        task.version, task.attempt = body["version"], body.get("attempt", task.attempt)
        task.last, task.call = record.seq, record.call
        task.texted, task.is_new = is_text, first and not lost

    def broken(
        self, case: Case, record: Record, body: Any, made: Any, expected: int
    ) -> Iterator[str]:
        """Which rules of §6 a record breaks."""
        task = self.tasks[record.task]
        first = task.version == 0
        yield from creation(body) if first else changed(task, body, made, expected)
        yield from self.dependencies(record.task, made, first=first)
        if not first and task.values["status"] is not UNKNOWN:
            yield from self.moved(case, record, made, body)
        if not first and task.values["holder"] is not UNKNOWN:
            yield from held(case, record, task.values["holder"], made, body.get("taken"))

    def link(self, id: str | None, task: Task, values: dict[str, Any]) -> None:
        """Give a task its new values, and tell those that it depends on."""
        for other in task.needs:
            if other in self.tasks:
                self.tasks[other].waiting.discard(id)
        task.values = values
        for other in task.needs:
            if other in self.tasks:
                self.tasks[other].waiting.add(id)

    def moved(self, case: Case, record: Record, made: Any, body: Any) -> Iterator[str]:
        """Which rules of §6 about a task's state its change breaks, by their numbers."""
        task = self.tasks[record.task]
        after = {**task.values, **{name: new for name, (_, new) in made.items()}}
        old, new = task.values["status"], after["status"]
        if body.get("attempt", task.attempt) != task.attempt + ((old, new) == RETRY):
            yield "wrong-attempt"  # 6
        if old != new and new not in MOVES[old]:
            yield "illegal-move"  # 5
        elif self.is_blocked(after, made):
            yield "blocked-move"  # 8
        elif old != new and new in ENDED and lacks_evidence(case, record, task):
            yield "missing-evidence"  # 9

    def is_blocked(self, values: dict[str, Any], made: dict[str, Any]) -> bool:
        ids = values["depends_on"]
        return (
            not made.keys().isdisjoint(("status", "depends_on"))
            and values["status"] in NEEDS_DEPENDENCIES
            and ids is not UNKNOWN
            and any(self.tasks[id].values["status"] not in ENDED for id in ids if id in self.tasks)
        )

    def dependencies(self, id: str | None, made: Any, *, first: bool) -> Iterator[str]:
        _, ids = made.get("depends_on", (None, ()))
        if not all(map(self.exists, ids)):
            yield "unknown-task"  # 7
        if id in ids or (ids and not first and self.leads_back(id, ids)):
            yield "dependency-cycle"  # 7

    def leads_back(self, id: str | None, ids: Iterable[str]) -> bool:
        """Whether its dependencies lead back to a task, or nobody could tell: both ends have more
        links than a server follows."""
        ahead = self.reach(ids, lambda task: task.needs)
        if ahead is not None:
            return id in ahead
        behind = self.reach([id], lambda task: task.waiting)
        return behind is None or not behind.isdisjoint(ids)

    def reach(
        self, ids: Iterable[str | None], links: Callable[[Task], Iterable[str | None]]
    ) -> set[str | None] | None:
        """All tasks that links lead to; None if there are too many links."""
        seen, queue, count = {*ids}, [*ids], 0
        for id in queue:
            further = links(self.tasks[id]) if id in self.tasks else ()
            count += len([*further])
            if count > MAX_LINKS:
                return None
            queue.extend({*further} - seen)
            seen.update(further)
        return seen

    def settle(self, ids: Iterable[str | None]) -> None:
        """The call that changed these tasks has ended. One that is final, and depends on
        no other than such, is forgotten but for its name."""
        queue = [id for id in ids if id in self.tasks]
        for id in queue:
            task = self.tasks.get(id)
            if task is None:
                continue
            task.call = ""
            if task.values["status"] in ENDED and not any(one in self.tasks for one in task.needs):
                queue.extend(task.waiting)
                self.ended.add(str(id))
                del self.tasks[id]


def stored(name: str) -> Callable[[Any], Any]:
    return digest if name in members("texts") else lambda value: value


def creation(body: Any) -> Iterator[str]:
    """Which rules of §6 a task's first record breaks, by their numbers."""
    if "taken" in body:
        yield "wrong-takeover"  # 12
    if not is_creation(body["set"], CREATED) or (body["version"], body["attempt"]) != (1, 1):
        yield "bad-creation"  # 1
    elif body["set"]["status"][1] != "INIT":
        yield "illegal-move"  # 1


def changed(task: Task, body: Any, made: Any, expected: int) -> Iterator[str]:
    """The same for a later record, which should have the version that is expected."""
    if task.is_new and expected == task.version:
        if body["set"] and not is_creation(body["set"], members("texts").keys()):
            yield "bad-creation"  # 1
    elif any(is_wrong(task.values[name], *pair) for name, pair in made.items()):
        yield "wrong-change"  # 3
    if body["version"] != expected:
        yield "wrong-version"  # 2


def lacks_evidence(case: Case, record: Record, task: Task) -> bool:
    """Whether no thought is about the attempt; where one may lie in a gap, that is noted."""
    if task.thought > task.began:
        return False
    excused = case.gaps.between(task.began, record.seq) and record.task != case.task
    if excused:
        case.excused.add(f"record {record.seq}, {record.task}")
    return not excused


def held(case: Case, record: Record, holder: str | None, made: Any, taken: Any) -> Iterator[str]:
    """Which rules of §6 about who holds a task its change breaks, by their numbers."""
    mine, new = record.session, made["holder"][1] if "holder" in made else holder
    takes = new is not None and new == mine
    unclaimed = holder is None and "status" in made and mine is not None and not takes
    if unclaimed or ("holder" in made and new not in (mine, None)):
        yield "wrong-holder"  # 11
    if holder in (None, mine) or not takes:
        if taken is not None:
            yield "wrong-takeover"  # 12
        if holder not in (None, mine) and not is_release(case, record, made):
            yield "claimed-change"  # 12
    else:
        case.taken.add(f"record {record.seq}, {record.task}")
        if not is_last_sign(case, holder, taken, record.seq):
            yield "wrong-takeover"  # 12


def is_release(case: Case, record: Record, made: Any) -> bool:
    """Whether a person takes a task from its holder, and says why."""
    only = made.keys() == {"holder"} and made["holder"][1] is None
    return only and is_person_with_reason(case, record)


def is_person_with_reason(case: Case, record: Record) -> bool:
    """Whether a person makes a change and says why in the same call; perhaps in a gap."""
    call = case.ledger.open.get(record.call)
    reasons = [one.task for one in call.changes if one.kind == "thought"] if call else []
    says_why = record.task in reasons or (
        call is not None and case.gaps.between(call.enter.seq, record.seq)
    )
    return (record.agent or "").startswith(HUMAN) and says_why


def is_last_sign(case: Case, holder: str | None, taken: Any, seq: int) -> bool:
    """Whether a take-over names the last sign of life; only a whole log shows them all."""
    if taken is None or taken["last"] >= seq:
        return False
    known = case.trail.signs.get(holder, 0)
    return taken["last"] == known or (case.kind != "log" and taken["last"] > known)


def is_creation(made: dict[str, Any], names: Iterable[str]) -> bool:
    return made.keys() == {*names} and all(old is None for old, _ in made.values())


def is_wrong(now: Any, old: Any, new: Any) -> bool:
    return now is not UNKNOWN and (old != now or old == new)


@dataclass(slots=True)
class Run:
    """The end of a command, or in a task bundle any deed."""

    session: str | None
    body: Any
    begun: int | None  # where it began, if that is known
    command: str | None = None
    is_erased: bool = False


@dataclass(slots=True)
class Work:
    """What hosts reported of a session."""

    edit: int = 0  # the last
    runs: dict[int, Run] = field(default_factory=dict)
    begun: dict[tuple[Any, ...], tuple[int, bool]] = field(default_factory=dict)


class Gates:
    """§6, rule 13: the deeds of the sessions that are open, as far as a rule may ask for them."""

    def __init__(self) -> None:
        self.sessions: dict[str | None, Work] = {}

    def take(self, case: Case, record: Record) -> None:
        if record.kind == "deed" and case.kind == "task":
            self.work(record).runs[record.seq] = Run(record.session, record.body, None)
        elif record.kind == "deed":
            self.observe(record)
        elif record.kind == "deed.text":
            self.tell(record)
        elif record.kind == "session.seal" and case.kind != "task":
            self.sessions.pop(record.session, None)
        elif record.kind == "task" and record.body and "gate" in record.body:
            self.judge(case, record, record.body["gate"])

    def work(self, record: Record) -> Work:
        return self.sessions.setdefault(record.session, Work())

    def observe(self, record: Record) -> None:
        """A deed, where all deeds of its session are."""
        work, body, seq = self.work(record), record.body, record.seq
        if body["class"] == "edit" and body["event"] != "tool.denied":
            work.edit = seq
        if body["class"] != "run":
            return
        use = (body["host_session"], body["host_agent"], body["use"])
        if body["event"] == "tool.begin":
            work.begun[use] = seq, use not in work.begun and body["late"] is None
            return
        begun, is_known = work.begun.pop(use, (seq, False))
        if body["event"] in ENDS:
            work.runs[seq] = Run(record.session, body, begun if is_known else None)
            if len(work.runs) > RUNS:
                del work.runs[next(iter(work.runs))]

    def tell(self, record: Record) -> None:
        run = self.work(record).runs.get(record.seq - 1)
        if run:
            run.is_erased = record.body is None
            run.command = None if record.body is None else record.body["command"]

    def judge(self, case: Case, record: Record, gate: Any) -> None:
        made = record.body["set"]
        if gate.get("waived"):
            fits = not gate["evidence"] and is_person_with_reason(case, record)
        else:
            fits = len(gate["evidence"]) > 0
            fits = fits and all([self.proves(case, record, gate, seq) for seq in gate["evidence"]])
        if not fits or "status" not in made or made["status"][1] != "DONE":
            case.find(13, "wrong-gate", record.seq, record.task)

    def proves(self, case: Case, record: Record, gate: Any, seq: int) -> bool:
        """Whether a deed satisfies a rule; what is not here cannot be told, and is noted."""
        is_whole = case.kind == "log" or (case.kind, case.session) == ("session", record.session)
        work = self.work(record)
        run = work.runs.get(seq)
        if run is None:
            is_elsewhere = not is_whole and (case.kind == "session" or case.gaps.place(seq) < 0)
            if is_elsewhere:
                case.gated.add(record.seq)
            return is_elsewhere and seq < record.seq
        if run.is_erased or (gate["after_last_edit"] and not is_whole):
            case.gated.add(record.seq)
        is_late = run.begun is None or run.begun < work.edit
        return (
            (run.body["class"], run.body["exit"], run.body["late"]) == ("run", gate["exit"], None)
            and run.body["event"] in ENDS
            and (run.is_erased or matches(gate["command"], run.command or ""))
            and not (is_whole and gate["after_last_edit"] and work.edit and is_late)
        )


ENDS = ("tool.end", "tool.failed")
OPERATORS = re.compile("([;&|<>()$`!#\n\r])")


def matches(pattern: str, command: str) -> bool:
    """Whether a command is of a pattern, in which * is any text without a shell operator."""
    if len(command) >= MAX_COMMAND or "[redacted:" in command:
        return False  # it is not known whole
    wanted, given = OPERATORS.split(pattern), OPERATORS.split(command)
    return wanted[1::2] == given[1::2] and all(map(covers, wanted[::2], given[::2]))


def covers(pattern: str, text: str) -> bool:
    first, *others = pattern.split("*")
    if not others:
        return text == first
    *middle, last = others
    at = len(first)
    for part in middle:
        at = text.find(part, at)
        if at < 0:
            return False
        at += len(part)
    return text.startswith(first) and text.endswith(last) and len(text) - at >= len(last)


# 14 outside


def check_seen(case: Case, record: Record) -> None:
    if case.head and case.head[0] == record.seq:
        case.known = True
        if record.leaf != case.head[1]:
            case.find(14, "head-differs", record.seq)
    if case.kind == "log" and case.checkpoint and record.seq <= case.checkpoint[1]:
        case.tree.add(bytes.fromhex(record.leaf))


def check_outside(case: Case, last: Record) -> None:
    seals = case.seals
    if case.root is not None and not case.fitting:
        case.find(14, "root-differs", seals.items[0]["seq"] if seals.count == 1 else None)
    if case.head is None or case.known:
        return
    seq, _ = case.head
    if seq > last.seq and ends_with_log(case):
        case.find(14, "truncated", last.seq + 1, f"record {seq} was seen")
    else:
        case.find(14, "head-not-covered", seq)


def check_checkpoint(case: Case, last: Record) -> None:
    """A checkpoint from elsewhere is that of the bundle, or one of the records of a whole log."""
    if case.checkpoint is None:
        return None
    log, size, root = case.checkpoint
    if log != case.log:
        return case.find(14, "checkpoint-differs", None, "it is of another log")
    if case.stated and case.stated["size"] == size:
        case.covered, found = last.seq, case.stated["root"]
    elif case.tree.size == size:
        case.covered, found = size, case.tree.root().hex()
    elif size > last.seq and ends_with_log(case):
        return case.find(14, "truncated", last.seq + 1, f"a checkpoint of {size} records was seen")
    else:
        return case.find(14, "checkpoint-not-covered", None, f"it is of {size} records")
    if found != root:
        case.find(14, "checkpoint-differs", case.covered)
    return None


# 15 verdict

# §10: the findings, the line of the verdict that each turns to "no", and what it means
CODES = {
    "unreadable": ("unknown", "the file cannot be read"),
    "too-large": ("unknown", "a line of the file is larger than 16 MiB"),
    "malformed-bundle": ("unknown", "the file is not made like a bundle"),
    "unknown-version": ("unknown", "the file is of another version"),
    "empty-bundle": ("unknown", "the bundle holds no records: there is nothing to check"),
    "head-not-covered": ("unknown", "the head that was given is not in this bundle"),
    "checkpoint-not-covered": ("unknown", "the bundle does not lead to the checkpoint given"),
    "bad-header": ("intact", "the header is not made like one"),
    "foreign-record": ("intact", "the record is of another log"),
    "wrong-order": ("intact", "the record does not come after the one before it"),
    "wrong-head": ("intact", "the last record is not the one that head names"),
    "broken-link": ("intact", "the record follows another than the one before it"),
    "altered-header": ("intact", "what comes next follows another record than this"),
    "stray-payload": ("intact", "the payload is of no record whose payload belongs here"),
    "altered-payload": ("intact", "the payload is not the one that the header commits to"),
    "bad-payload": ("intact", "the payload is not made like one of its kind"),
    "head-differs": ("intact", "the record is not the one whose head was given"),
    "bad-checkpoint": ("intact", "the checkpoint of the bundle does not cover its last record"),
    "checkpoint-differs": ("intact", "the log does not have the checkpoint that was given"),
    "truncated": ("complete", "the records from here on are missing"),
    "missing-record": ("complete", "a record is missing"),
    "missing-payload": ("complete", "the payload is missing, and no erasure names it"),
    "stray-record": ("complete", "this kind of bundle has no place for the record"),
    "second-seal": ("sealed", "the session was already sealed"),
    "thought-after-seal": ("sealed", "the session was already sealed"),
    "wrong-index": ("sealed", "the index is not the thought's place in its session"),
    "broken-thought-chain": ("sealed", "the thought does not name the one before it"),
    "wrong-count": ("sealed", "the count is not that of the session's thoughts"),
    "wrong-range": ("sealed", "the session's thoughts do not begin and end there"),
    "wrong-root": ("sealed", "the root is not that of the session's thoughts"),
    "bad-proof": ("sealed", "the proof does not lead from a thought to the root of its seal"),
    "missing-proof": ("sealed", "nothing shows that the seal covers the thought"),
    "root-differs": ("sealed", "no seal of the bundle has the root that was given"),
    "change-after-seal": ("sealed", "the session was already sealed"),
    "second-open": ("rules", "the session was opened already"),
    "outside-session": ("rules", "the session was not open yet"),
    "bad-pair": ("rules", "the record does not fit the call that it names"),
    "stray-change": ("rules", "no call that ended well has made this change"),
    "wrong-server": ("rules", "another process continues the session"),
    "bad-repeat": ("rules", "the call that it repeats has not done the work"),
    "wrong-digest": ("rules", "a text of the call's arguments is not the one that it recorded"),
    "missing-change": ("rules", "the call has not made the changes that its tool makes"),
    "bad-creation": ("rules", "no task begins like this"),
    "wrong-version": ("rules", "the version is not the next"),
    "wrong-change": ("rules", "a value was not what it says, or is no other now"),
    "change-after-end": ("rules", "the task had ended"),
    "illegal-move": ("rules", "no task moves like this"),
    "wrong-attempt": ("rules", "the attempt is not the same, or on a retry not the next"),
    "unknown-task": ("rules", "a task that it names was not created before"),
    "dependency-cycle": ("rules", "the task waits for itself"),
    "blocked-move": ("rules", "the task waits for another"),
    "missing-evidence": ("rules", "it ended without a thought about the attempt"),
    "wrong-holder": ("rules", "a task is held by the session that moves or claims it"),
    "claimed-change": ("rules", "another session holds the task"),
    "wrong-takeover": ("rules", "a task is taken over, but its holder was not silent as claimed"),
    "wrong-gate": (
        "rules",
        "what it names does not satisfy the rule under which the task was DONE",
    ),
    "bad-erasure": ("rules", "the erasure names what cannot be erased, or comes later"),
    "erased-payload": ("rules", "an erasure says that the payload is gone"),
}
LINES = {"intact": "intact", "complete": "complete", "sealed": "sealed", "rules": "rules kept"}

# §11: what can be left open.
NOTES = {
    "truth": "whether what was recorded is true, or something was never recorded",
    "clock": "the times, which come from the server's clock; the record numbers give the order",
    "skipped": "sessions, seals, proofs, calls and tasks, because of what was found",
    "arguments": "whether a call's answer, and arguments other than texts, fit what it recorded",
    "rules": "calls, tasks and the session's other thoughts, which are not in the bundle",
    "outside-head": "a truncated or rewritten log, which only a head from outside reveals",
    "outside-checkpoint": "whether the bundle's checkpoint is one that was published",
    "outside-root": "whether a seal's root is the one that was published",
    "size": "how many thoughts the root that was given covers: it came without its size",
    "gaps": "what the missing records say, and whether those around a gap are of one chain",
    "undisclosed": "records of which only the header is here",
    "erased": "payloads that can no longer be read",
    "evidence": "whether there was a thought about a task that ended",
    "takeover": "for how long the session from which a task was taken over had been silent",
    "gate": "whether a command was the one that a rule asks for, and ran after the last edit",
    "repeats": "whether the first of two calls with the same key has done the work",
}


def conclude(case: Case) -> Verdict:
    step = min(case.found, default=REST)
    skipped, bad, found = (
        step < REST,
        case.bad_lines.get(step, set()),
        case.found.get(step, Listed()),
    )
    lines = dict.fromkeys(LINES, "not checked" if skipped else "yes")
    for code in ("truth", "clock", "skipped") if skipped else ("truth", "clock"):
        case.note(code)
    if not skipped:
        lines["sealed"] = "open" if case.trail.open else "yes" if case.seals.count else "none"
        lines["rules"] = "not checked" if case.kind == "thoughts" else "yes"
        note_what_is_open(case)
    lines |= dict.fromkeys(bad & LINES.keys(), "no")
    seals = Listed() if skipped else case.seals
    erased = [*marked(case, lambda mark: bool(mark & ERASED))] if not skipped else None
    calls = None if skipped or case.kind == "thoughts" else case.ledger
    return Verdict(
        verdict="bad" if "no" in lines.values() else "cannot tell" if bad else "good",
        bundle=described(case, case.last) if case.last else None,
        lines=lines,
        seals=seals.items,
        seal_count=seals.count,
        erased=erased and erased[:MAX_LISTED],
        erased_count=None if erased is None else len(erased),
        open_calls=None if calls is None else calls.listed(),
        open_call_count=None if calls is None else len(calls.open),
        coverage=case.deeds.coverage() if calls and case.kind in ("log", "session") else None,
        findings=found.items,
        finding_count=found.count,
        not_checked=case.notes,
    )


def described(case: Case, last: Record) -> dict[str, Any]:
    return {
        "log": last.log,
        "kind": case.kind,
        "session": case.session,
        "task": case.task,
        "records": case.records,
        "first_seq": case.first_seq,
        "head": {"seq": last.seq, "leaf": last.leaf},
        "checkpoint": case.stated and {name: case.stated[name] for name in ("size", "root")},
    }


def note_what_is_open(case: Case) -> None:
    known, gaps, seals = (case.head[0] if case.head else 0, case.covered), case.gaps, case.seals
    end = min(case.end, case.last.seq) if case.last else 0
    unlinked = all(seq < end or gaps.between(end, seq) for seq in known)
    spans = ", ".join(
        f"{first} to {last}" for first, last in zip(gaps.first[:4], gaps.last[:4], strict=True)
    )
    erased = sum(1 for _ in marked(case, lambda mark: bool(mark & ERASED)))
    evidence = f"{case.excused.count} in all, first {''.join(case.excused.items[:1])}"
    for code, applies, fact in (
        ("arguments", case.kind != "thoughts", ""),
        ("rules", case.kind == "thoughts", ""),
        ("outside-head", unlinked, ""),
        ("outside-checkpoint", case.stated and case.checkpoint is None, ""),
        ("outside-root", seals.count and case.root is None, ""),
        ("size", case.root is not None and ":" not in case.root, ""),
        ("gaps", len(gaps), f"{len(gaps)} in all, {spans}"),
        ("undisclosed", case.hidden, f"{case.hidden} in all"),
        ("erased", erased, f"{erased} in all"),
        ("evidence", case.excused.count, evidence),
        ("takeover", case.taken.count, counted(case.taken.count, "task")),
        ("gate", case.gated.count, counted(case.gated.count, "move")),
        ("repeats", case.unseen.count, counted(case.unseen.count, "call")),
    ):
        if applies:
            case.note(code, fact)


# What a display may ignore and Python calls printable: joiners of letters, fillers, variations.
IGNORABLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)


def show(text: object) -> str:
    """A text of the bundle, short, and harmless to a terminal."""
    text = str(text)
    cut = text if len(text) <= MAX_LISTED else text[:MAX_LISTED] + "…"
    return "".join(
        c if c.isprintable() and not IGNORABLE.match(c) else f"\\u{{{ord(c):x}}}" for c in cut
    )


def as_text(verdict: Verdict) -> str:
    """The verdict for a person, a fact a line."""
    return "".join(f"{title:<12} {fact}\n" for title, fact in as_rows(verdict))


def as_rows(verdict: Verdict) -> list[tuple[str, str]]:
    """The same, title and fact of each line."""
    rows = []
    if verdict.bundle:
        log, kind, session, task, records, first, head, checkpoint = verdict.bundle.values()
        what = " ".join(filter(None, (kind, session, task)))
        many = counted(records, "record")
        rows += [("log", log), ("bundle", f"{what}: {many}, {first} to {head['seq']}")]
        rows += [("head", f"{head['seq']}:{head['leaf']}")]
        if checkpoint:
            rows += [("checkpoint", f"{log}@{checkpoint['size']}:{checkpoint['root']}")]
    rows += [(LINES[line], state) for line, state in verdict.lines.items()]
    for seal in verdict.seals[:MAX_SHOWN]:
        many = counted(seal["count"], "thought")
        rows += [
            (
                "seal",
                "record {seq}: {session}, {many}, root {count}:{root}".format(**seal, many=many),
            )
        ]
    if verdict.seal_count > MAX_SHOWN:
        rows += [("seal", f"… {verdict.seal_count} in all")]
    calls = verdict.open_calls
    opened = calls and [f"{call['seq']} ({call['tool'] or 'erased'})" for call in calls]
    rows += [("erased", listed(verdict.erased, verdict.erased_count))]
    rows += [("open calls", listed(opened, verdict.open_call_count))]
    rows += [("deeds", fact) for fact in covered(verdict.coverage)]
    rows += [("not checked", "{code}: {detail}".format(**note)) for note in verdict.not_checked]
    for found in verdict.findings[:MAX_SHOWN]:
        where = "" if found["seq"] is None else f" at record {found['seq']}"
        rows += [("found", f"{found['code']}{where}: {found['detail']}")]
    return [*rows, ("verdict", f"{verdict.verdict.upper()}, findings: {verdict.finding_count}")]


def covered(coverage: dict[str, Any] | None) -> list[str]:
    """How much of the work the deeds show, a fact each; §10."""
    if coverage is None:
        return []
    if not coverage["deeds"]:
        return ["none: no host reported what was done"]
    begun, count = coverage["not_ended"], coverage["not_ended_count"]
    calls, unseen = coverage["unseen"], coverage["unseen_count"]
    changes, lost, unjudged = (coverage[name] for name in ("settings_changed", "lost", "unjudged"))
    silent, sessions = coverage["unreported"], counted(coverage["sessions"], "session")
    unpaired = coverage["unpaired"]
    facts = {
        f"{counted(count, 'tool call')} began and did not end: {listed(begun, count)}": count,
        f"{counted(unpaired, 'tool call')} whose begin and end cannot be paired: no id, or"
        " no begin, was reported": unpaired,
        f"{counted(unseen, 'call')} to Colibri not reported, though the host had reported before:"
        f" {listed(calls, unseen)}": unseen,
        f"{counted(unjudged, 'edit')} not judged by the rule for edits": unjudged,
        f"the settings of the hooks changed {counted(changes, 'time')}": changes,
        f"{counted(lost, 'deed')} could not be kept": lost,
        f"no deed in {silent} of {sessions}": silent,
    }
    return [f"{coverage['deeds']} recorded", *(fact for fact, applies in facts.items() if applies)]


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def listed(items: list[Any] | None, count: int | None) -> str:
    if items is None or count is None:
        return "not checked"
    more = [f"… {count} in all"] if count > MAX_SHOWN else []
    return ", ".join([*map(str, items[:MAX_SHOWN]), *more]) or "none"


# The command


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="colibri_verify.py",
        description="Check a Colibri evidence bundle. Exit 0 good, 1 bad, 2 cannot tell.",
    )
    parser.add_argument("bundle", help="the file, *.colibri.json")
    parser.add_argument(
        "--root", type=root_of, metavar="SIZE:HEX", help="a seal's root from elsewhere"
    )
    parser.add_argument("--head", type=head_of, metavar="SEQ:HEX", help="a head from elsewhere")
    parser.add_argument(
        "--checkpoint",
        type=checkpoint_of,
        metavar="LOG@SIZE:HEX",
        help="a checkpoint from elsewhere; or the file of its note",
    )
    parser.add_argument("--json", action="store_true", help="the verdict as JSON")
    options = parser.parse_args(arguments)
    try:
        verdict = verify_file(options.bundle, options.root, options.head, options.checkpoint)
        text, code = as_text(verdict), verdict.exit_code
        if options.json:
            text = json.dumps(verdict.as_json(), indent=2).replace("\x7f", "\\u007f") + "\n"
    except (MemoryError, KeyboardInterrupt) as problem:
        text, code = f"verdict      CANNOT TELL: {type(problem).__name__}\n", 2
    write(text)
    return code


def verify_file(
    path: str,
    root: str | None,
    head: tuple[int, str] | None,
    checkpoint: tuple[str, int, str] | None,
) -> Verdict:
    """Judge the bundle in a file."""
    try:
        with open(path, "rb") as file:
            return verify(rereadable(file), root=root, head=head, checkpoint=checkpoint)
    except (OSError, ValueError) as problem:
        case = Case()
        case.find(1, "unreadable", None, getattr(problem, "strerror", None) or problem)
        return conclude(case)


def rereadable(file: BinaryIO) -> BinaryIO:
    """What comes through a pipe is kept on the disk: it may have to be read more than once."""
    if file.seekable():
        return file
    copy = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as it is read
    shutil.copyfileobj(file, copy)
    copy.seek(0)
    return copy


MAX_NOTE = 65536  # bytes
CHECKPOINT = re.compile("(colibri/[0-9a-f]{32})@([1-9][0-9]{0,15}):([0-9a-f]{64})")
NOTE = re.compile(
    rb"(colibri/[0-9a-f]{32})\n([1-9][0-9]{0,15})\n([A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=)\n"
)


def root_of(text: str) -> str:
    root = text.lower()  # as mails and forms may have it
    size, _, hash = root.rpartition(":")
    if not (test("hash")(hash) and (hash == root or SEQ.fullmatch(size))):
        raise argparse.ArgumentTypeError("not SIZE:HEX, a number and 64 hex digits")
    return root


def head_of(text: str) -> tuple[int, str]:
    seq, _, leaf = text.lower().partition(":")
    if not (SEQ.fullmatch(seq) and test("hash")(leaf)):
        raise argparse.ArgumentTypeError("not SEQ:HEX, a number and 64 hex digits")
    return int(seq), leaf


def checkpoint_of(text: str) -> tuple[str, int, str]:
    """Of LOG@SIZE:HEX, or of a file with the note: the log, the size and the base64 root, a line
    each."""
    if found := CHECKPOINT.fullmatch(text.lower()):
        return found[1], int(found[2]), found[3]
    try:
        with open(text, "rb") as file:
            note = NOTE.match(file.read(MAX_NOTE))
    except (OSError, ValueError) as problem:
        why = getattr(problem, "strerror", None) or problem
        raise argparse.ArgumentTypeError(f"not LOG@SIZE:HEX, and no file: {why}") from None
    if note is None:
        raise argparse.ArgumentTypeError("not LOG@SIZE:HEX, and not the file of a checkpoint")
    return note[1].decode(), int(note[2]), base64.b64decode(note[3]).hex()


def write(text: str) -> None:
    """To stdout, whatever its encoding; a reader that went away does not change the verdict."""
    try:
        sys.stdout.buffer.write(text.encode(sys.stdout.encoding or "ascii", "backslashreplace"))
        sys.stdout.buffer.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the interpreter flushes once more at exit


if __name__ == "__main__":
    sys.exit(main())
