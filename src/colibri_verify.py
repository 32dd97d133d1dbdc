"""Check a Colibri evidence bundle, offline, with nothing but Python 3.11.

    python colibri_verify.py bundle.colibri.json [--root HEX] [--head SEQ:HEX] [--json]

Exit 0 good, 1 bad, 2 cannot tell. This one file shares no code with the server and reads nothing
but the file it is given. It follows docs/formats.md (§ is a section there); after the tables it is
to be read in the order of the procedure (§9):

     1 read        at most 256 MiB
     2 shape       strict JSON, with exactly the members of a bundle
     3 headers     canonical, with exactly the members of a header
     4 order       by ascending seq
     5 links       each header names the leaf of the one before it
     6 gaps        none but where the kind of bundle has them
     7 payloads    those that the headers commit to, with exactly the members of their kind
     8 erasures    of what can be erased, and it is gone
     9 contents    all that the kind of bundle discloses (§8), and nothing else
    10 sessions    opened once, thoughts in a row, sealed once under the right root
    11 proofs      for thoughts whose session is not here as a whole
    12 calls       enter, the changes that the tool makes, exit
    13 tasks       replayed by the rules of §6
    14 outside     the root and the head that the user has from elsewhere
    15 verdict     and what was not checked

Up to 9, the first step that finds anything is the last to run; then 10 to 14 all run. verify.mjs
has the same parts in the same order.
"""

import argparse
import base64
import hashlib
import json
import os
import re
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

MAX_FILE = 256 * 1024 * 1024
MAX_DEPTH = 64
MAX_INTEGER = 2**53 - 1
MAX_STEPS = 20_000_000  # of following dependencies
MAX_LISTED = 100  # findings; also characters of a text that is shown
MAX_SHOWN = 20  # of each list, on a terminal
NOWHERE = MAX_INTEGER + 1  # beyond every record
FORMAT = "colibri-bundle/1"
ZEROS = "0" * 64


class Verdict(SimpleNamespace):
    """What §10 lists: verdict (good, bad or cannot tell), bundle, lines, findings and so on."""

    @property
    def exit_code(self) -> int:
        return {"good": 0, "bad": 1, "cannot tell": 2}[self.verdict]

    def as_json(self) -> dict[str, Any]:
        return {"format": "colibri-verdict/1", **vars(self)}


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
    disclosed: bool = False  # whether its payload belongs into the bundle


@dataclass
class Case:
    """A bundle under examination."""

    root: str | None = None  # what the user knows from elsewhere
    head: tuple[int, str] | None = None
    bundle: dict[str, Any] = field(default_factory=dict)
    kind: str = "log"  # or session, task, thoughts
    session: str | None = None  # the scope, of which one is None at least
    task: str | None = None
    records: list[Record] = field(default_factory=list)
    by_seq: dict[int, Record] = field(default_factory=dict)
    gaps: list[tuple[int, int]] = field(default_factory=list)  # first and last missing, ascending
    start: int = NOWHERE  # of the stretch, within which no record is missing
    end: int = 0
    erased: set[int] = field(default_factory=set)
    open_sessions: int = 0
    open_calls: list[dict[str, Any]] = field(default_factory=list)
    findings: list[dict[str, Any]] = field(default_factory=list)  # the first MAX_LISTED
    finding_count: int = 0
    bad_lines: set[str] = field(default_factory=set)
    notes: list[dict[str, str]] = field(default_factory=list)

    def find(self, code: str, seq: int | None, fact: object = "") -> None:
        """Say that a rule is broken, and at which record."""
        line, detail = CODES[code]
        self.bad_lines.add(line)
        self.finding_count += 1
        if len(self.findings) < MAX_LISTED:
            detail += f": {show(fact)}" if fact != "" else ""
            self.findings.append({"code": code, "seq": seq, "detail": detail})

    def note(self, code: str, fact: object = "") -> None:
        """Say that something was not checked."""
        detail = NOTES[code] + (f": {show(fact)}" if fact != "" else "")
        self.notes.append({"code": code, "detail": detail})

    def has_gap(self, first: int, last: int) -> bool:
        """Whether a record between these two, neither included, is missing from the bundle."""
        at = bisect_right(self.gaps, (last - 1, MAX_INTEGER)) - 1
        return at >= 0 and self.gaps[at][1] > first

    def first(self, kind: str, member: str, value: str | None, after: int = 0) -> Record | None:
        """The first record of a kind, after a seq, whose header has this member."""
        found = (r for r in self.records if r.kind == kind and r.seq > after)
        return next((r for r in found if getattr(r, member) == value), None)


def verify(data: bytes, *, root: str | None = None, head: tuple[int, str] | None = None) -> Verdict:
    """Judge a bundle; root and head are what the caller knows from elsewhere."""
    case = Case(root, head)
    read_bundle(case, data)  # 1, 2
    for step in (
        read_headers,  # 3
        check_order,  # 4
        check_links,  # 5
        check_gaps,  # 6
        read_payloads,  # 7
        check_erasures,  # 8
        check_contents,  # 9
    ):
        if not case.findings:
            step(case)
    if case.findings:
        return conclude(case, skipped=True)  # 15
    if case.kind != "thoughts":
        check_sessions(case)  # 10
    if case.kind in ("task", "thoughts"):
        check_proofs(case)  # 11
    if case.kind != "thoughts":
        check_calls(case)  # 12
        check_tasks(case)  # 13
    check_outside(case)  # 14
    return conclude(case, skipped=False)  # 15


# §2, §3, §8: the members of every object. "a=b" is: the member a is a b; "?" is: or null; "*" is:
# an array of these, "*64" one of at most 64.

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
    "bundle": "format=format log=log scope=scope? headers=text* payloads=object seals=seqs"
    " head=head proofs=proof*",
    "of-session": "session=id",
    "of-task": "task=id",
    "head": "seq=seq leaf=hash",
    "proof": "seq=seq index=int size=int path=hash*64",
    "secret": "nonce=text body=text",
    "header": "v=one log=log seq=seq at=time kind=kind call=uuid session=text? task=text?"
    " agent=text? payload=hash prev=hash",
    "call.enter": "server=uuid tool=text arguments=object? size=int? sha256=hash?",
    "call.exit": "enter=seq tool=text outcome=outcome code=text? result_sha256=hash?"
    " duration_ms=int",
    "session.open": "session_id=text intent=text task_id=text?",
    "thought": "thought_id=text index=int type=thinking content=text prev=hash",
    "session.seal": "root=hash count=seq first_seq=seq last_seq=seq",
    "task": "task_id=text version=seq attempt=seq set=fields-changed",
    "task.text": "task_id=text version=seq set=texts-changed",
    "erasure": "seqs=some-seqs reason=text?",
    "fields": "status=status priority=priority assignee=text? project=text? depends_on=tasks",
    "texts": "title=text description=text?",
}
CALLS, TRAIL = ("call.enter", "call.exit"), ("session.open", "thought", "session.seal")
CHANGES = ("task", "task.text")
KINDS = (*CALLS, *TRAIL, *CHANGES, "erasure")
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
    return {name: test(type) for name, type in pairs}


def why_not(value: Any, shape: str) -> str:
    """What is wrong with an object's members, or nothing."""
    wanted = members(shape)
    if type(value) is not dict or value.keys() != wanted.keys():
        return f"its members are not {' '.join(wanted)}"
    wrong = [name for name, fits in wanted.items() if not fits(value[name])]
    return f"not as the format has it: {' '.join(wrong)}" if wrong else ""


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
    "object": lambda value: type(value) is dict,
    "array": lambda value: type(value) is list,
    "int": lambda value: type(value) is int and value >= 0,
    "seq": lambda value: type(value) is int and value >= 1,
    "kind": lambda value: type(value) is str and value in KINDS,
    "one": lambda value: type(value) is int and value == 1,
    "seqs": lambda value: test("seq*")(value) and all(a < b for a, b in pairwise(value)),
    "some-seqs": lambda value: test("seqs")(value) and len(value) >= 1,
    "tasks": lambda value: test("text*100")(value) and len({*value}) == len(value),
    "scope": lambda value: test("of-session")(value) or test("of-task")(value),
    "fields-changed": lambda value: are_changes(value, "fields"),
    "texts-changed": lambda value: are_changes(value, "texts"),
}


# §1: strict JSON, and its canonical form


def parse(data: bytes) -> Any:
    """The one JSON value that the bytes are; ValueError for all that §1 does not allow."""
    try:
        return DECODER.decode(data.decode())
    except RecursionError:
        raise ValueError("nested too deeply") from None


def parse_canonical(data: bytes, shape: str) -> tuple[Any, str]:
    """The value of canonical bytes, or None; and what is wrong with it, or nothing."""
    try:
        value = parse(data)
        if not data.isascii() or data.count(b"{") + data.count(b"[") > MAX_DEPTH:
            check_keys_and_depth(value)  # elsewhere these cannot be wrong
    except ValueError as problem:
        return None, str(problem)
    if ENCODER.encode(value).encode(errors="replace") != data:  # "replace" spoils lone surrogates
        return None, "not in canonical form"
    return value, why_not(value, shape)


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


def tree_root(leaves: list[bytes]) -> bytes:
    """RFC 6962's tree hash, by its definition; of at least one leaf."""
    if len(leaves) == 1:
        return leaves[0]
    k = 1 << (len(leaves) - 1).bit_length() - 1  # the largest power of two below
    return sha256(b"\1", tree_root(leaves[:k]), tree_root(leaves[k:]))


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


def read_bundle(case: Case, data: bytes) -> None:
    try:
        if len(data) > MAX_FILE:
            return case.find("too-large", None)
        bundle = parse(data)
        name = bundle.get("format") if type(bundle) is dict else None
        if type(name) is str and name.startswith("colibri-bundle/") and name != FORMAT:
            return case.find("unknown-version", None, name)
        if wrong := why_not(bundle, "bundle"):
            raise ValueError(wrong)
        if bundle["scope"] is None and bundle["proofs"]:
            raise ValueError("proofs without a scope")
        bundle["headers"] = [decode(header) for header in bundle["headers"]]
        bundle["payloads"] = dict(map(read_secret, bundle["payloads"].items()))
    except ValueError as problem:
        return case.find("malformed-bundle", None, problem)
    if not bundle["headers"]:
        case.find("empty-bundle", None)
    scope = bundle["scope"] or {}
    case.bundle, case.session, case.task = bundle, scope.get("session"), scope.get("task")
    case.kind = next(iter(scope), "log")
    if case.kind == "session" and bundle["proofs"]:
        case.kind = "thoughts"


def read_secret(item: tuple[str, Any]) -> tuple[int, tuple[bytes, bytes]]:
    """The seq, nonce and body of a payload."""
    seq, secret = item
    if not SEQ.fullmatch(seq) or int(seq) > MAX_INTEGER:
        raise ValueError("a payload of no seq")
    if wrong := why_not(secret, "secret"):
        raise ValueError(f"payload {seq}: {wrong}")
    nonce, body = decode(secret["nonce"]), decode(secret["body"])
    if len(nonce) != hashlib.sha256().digest_size:
        raise ValueError(f"payload {seq}: a nonce has 32 bytes")
    return int(seq), (nonce, body)


def decode(text: str) -> bytes:
    """The bytes of strict base64, at least one."""
    data = base64.b64decode(text, validate=True)
    if not data or base64.b64encode(data).decode() != text:
        raise ValueError("a text that is not base64")
    return data


# 3 headers, 4 order, 5 links


def read_headers(case: Case) -> None:
    for data in case.bundle["headers"]:
        header, wrong = parse_canonical(data, "header")
        if not wrong and header[NAMES.get(header["kind"], "kind")] is None:
            wrong = f"a {header['kind']} record without a {NAMES[header['kind']]}"
        if wrong:
            seq = header.get("seq") if type(header) is dict else None
            case.find("bad-header", seq if TESTS["seq"](seq) else None, wrong)
        elif header["log"] != case.bundle["log"]:
            case.find("foreign-record", header["seq"], header["log"])
        else:
            case.records.append(Record(**header, leaf=sha256(b"\0", data).hex()))


def check_order(case: Case) -> None:
    last = 0
    for record in case.records:
        if record.seq <= last:
            case.find("wrong-order", record.seq)
        last = record.seq
        case.by_seq[record.seq] = record


def check_links(case: Case) -> None:
    records, head, last = case.records, case.bundle["head"], case.records[-1]
    genesis = sha256(b"colibri/ledger/v1\n", case.bundle["log"].encode()).hex()
    known = {genesis, *(record.leaf for record in records)}
    doubt = False  # whether the later of two neighbours is itself in doubt
    if head["seq"] > last.seq:
        case.find("truncated", last.seq + 1, f"the bundle's head is {head['seq']}")
    elif (head["seq"], head["leaf"]) != (last.seq, last.leaf):
        case.find("wrong-head", last.seq)
        doubt = True
    for later, earlier in pairwise(reversed(records)):
        linked = later.seq != earlier.seq + 1 or later.prev == earlier.leaf
        if not linked and not doubt:
            if later.prev in known:
                case.find("broken-link", later.seq)
            else:
                case.find("altered-header", earlier.seq)
        doubt = not linked
    if records[0].seq == 1 and records[0].prev != genesis and not doubt:
        case.find("broken-link", 1, "not the genesis")


# 6 gaps


def check_gaps(case: Case) -> None:
    opening = case.first("session.open", "session", case.session)
    seal = case.first("session.seal", "session", case.session)
    sealing = seal and case.first("call.exit", "call", seal.call, after=seal.seq)
    case.end, must_be_there = case.records[-1].seq, True
    if case.kind == "log":
        case.start = 0
    elif case.kind == "session":
        must_be_there = opening is not None
        case.start = opening.seq if opening else case.end
        case.end = sealing.seq if sealing else case.end
    elif case.kind == "thoughts":
        must_be_there = seal is not None
        case.end = seal.seq if seal else case.end
    else:
        must_be_there = case.first("task", "task", case.task) is not None
    if not must_be_there:
        return case.find("missing-record", None, "the one that the scope begins or ends with")
    before = 0
    for record in case.records:
        if record.seq > before + 1:
            case.gaps.append((before + 1, record.seq - 1))
            if case.start <= before and record.seq <= case.end:
                case.find("missing-record", before + 1, f"{before + 1} to {record.seq - 1}")
        before = record.seq


# 7 payloads, 8 erasures


def read_payloads(case: Case) -> None:
    for seq, (nonce, body) in sorted(case.bundle["payloads"].items()):
        record = case.by_seq.get(seq)
        if record is None:
            case.find("stray-payload", seq)
        elif sha256(b"colibri/payload/v1\n", nonce, body).hex() != record.payload:
            case.find("altered-payload", seq)
        else:
            record.body, wrong = parse_canonical(body, record.kind)
            if not wrong and record.kind in AGREE and not AGREE[record.kind](record, record.body):
                wrong = "its members contradict each other or the header"
            if wrong:
                case.find("bad-payload", seq, wrong)


def check_erasures(case: Case) -> None:
    erasable = ("call.enter", "session.open", "thought", "task.text")
    for erasure in case.records:
        for seq in erasure.body["seqs"] if erasure.kind == "erasure" and erasure.body else ():
            record = case.by_seq.get(seq)
            if seq >= erasure.seq or (record and record.kind not in erasable):
                case.find("bad-erasure", erasure.seq, seq)
            elif record and record.body is not None:
                case.find("erased-payload", seq)
            elif record:
                case.erased.add(seq)


# 9 contents


def check_contents(case: Case) -> None:
    shown = {record.seq for record in to_disclose(case)}
    last = max(shown, default=0)
    # A header may stand alone within the stretch, and in a tail of it without a gap.
    reach = case.end if case.has_gap(case.start, last) else max(case.end, last)
    for record in case.records:
        record.disclosed = record.seq in shown
        if record.disclosed and record.body is None and record.seq not in case.erased:
            case.find("missing-payload", record.seq)
        elif not record.disclosed and not case.start <= record.seq <= reach:
            case.find("stray-record", record.seq)
        elif not record.disclosed and record.body is not None:
            case.find("stray-payload", record.seq)
    if differing := {seal.seq for seal in seals_of(case)} ^ {*case.bundle["seals"]}:
        case.find("wrong-seals", min(differing))


def to_disclose(case: Case) -> list[Record]:
    """The records whose payloads belong into the bundle, by §8."""
    records = case.records
    if case.kind == "log":
        return records
    if case.kind == "task":
        own = [r for r in records if r.kind == "thought" and r.task == case.task]
        sessions, tasks = {r.session for r in own}, {case.task}
        own += [r for r in records if r.kind in TRAIL[::2] and r.session in sessions]
    else:
        inside = [r for r in records if r.kind in TRAIL or case.start <= r.seq <= case.end]
        own = [r for r in inside if r.session == case.session]
        tasks = {r.task for r in own if r.kind in ("session.open", "thought")}
    if case.kind == "thoughts":
        own = [r for r in own if r.kind == "thought" or r.seq == case.end]
    else:
        own += changes_of(case, tasks)
        own += calls_about(case, tasks)
        calls = {r.call for r in own}
        own += [r for r in records if r.kind in CALLS and r.call in calls]
    erasures = [r for r in records if r.kind == "erasure" and r.body]
    return own + [r for r in erasures if any(seq in case.by_seq for seq in r.body["seqs"])]


def calls_about(case: Case, tasks: set[str | None]) -> list[Record]:
    """What else may be disclosed: how calls about these tasks ended that changed nothing."""
    return [
        r
        for r in case.records
        if (r.kind, r.session, r.task in tasks, r.body is None) == ("call.exit", None, True, False)
        and (case.kind == "task" or case.start <= r.seq <= case.end)
    ]


def changes_of(case: Case, tasks: set[str | None]) -> list[Record]:
    """The changes of these tasks, and of all that they have ever depended on."""
    changes: dict[str | None, list[Record]] = {}
    for record in case.records:
        if record.kind in CHANGES and record.seq <= case.end:
            changes.setdefault(record.task, []).append(record)
    chosen, queue = [], list(tasks)
    for task in queue:
        for record in changes.get(task, ()):
            chosen.append(record)
            for ids in record.body["set"].get("depends_on", ()) if record.body else ():
                queue.extend({*(ids or ())} - tasks)
                tasks.update(ids or ())
    return chosen


def seals_of(case: Case) -> list[Record]:
    return [r for r in case.records if r.kind == "session.seal" and r.disclosed]


# 10 sessions and seals, 11 proofs


@dataclass
class Session:
    opened: int = 0  # its session.open
    sealed: bool = False
    thoughts: list[Record] = field(default_factory=list)
    index: int = 0  # of the next thought; after a gap it may be greater
    placed: int = 0  # the last record whose place in the session is known


def check_sessions(case: Case) -> None:
    sessions: dict[str | None, Session] = {}
    openings = {record.session for record in case.records if record.kind == "session.open"}
    for record in case.records:
        kind, seq, id = record.kind, record.seq, record.session
        if kind not in TRAIL or (case.kind == "session" and id != case.session):
            continue
        session = sessions.setdefault(id, Session())
        if kind == "session.open" and session.opened:
            case.find("second-open", seq, id)
        elif kind == "session.open":
            session.opened = session.placed = seq
        elif not session.opened:
            lost = id not in openings and case.has_gap(0, seq)
            case.find("missing-record" if lost else "outside-session", seq, id)
        elif session.sealed:
            case.find("thought-after-seal" if kind == "thought" else "second-seal", seq, id)
        elif kind == "thought":
            check_thought(case, record, session)
        else:
            check_seal(case, record, session)
    case.open_sessions = sum(not session.sealed for session in sessions.values())


def check_thought(case: Case, thought: Record, session: Session) -> None:
    gap = case.has_gap(session.placed, thought.seq)  # others may lie there
    if thought.body and gap and thought.body["index"] > session.index:
        session.index = thought.body["index"]
    elif thought.body:  # otherwise it is erased; its header still holds its place
        if thought.body["index"] != session.index:
            case.find("wrong-index", thought.seq, thought.body["index"])
        if thought.body["prev"] != (session.thoughts[-1].leaf if session.thoughts else ZEROS):
            case.find("broken-thought-chain", thought.seq)
    if thought.body or not gap:
        session.placed = thought.seq
    session.index += 1
    session.thoughts.append(thought)


def check_seal(case: Case, seal: Record, session: Session) -> None:
    stated, thoughts, session.sealed = seal.body, session.thoughts, True
    gap = case.has_gap(session.opened, seal.seq)  # what lies there is for the proofs to show
    if stated["count"] < session.index or (stated["count"] > session.index and not gap):
        case.find("wrong-count", seal.seq, f"{stated['count']}, not {session.index}")
    if thoughts:
        early, late = thoughts[0].seq - stated["first_seq"], stated["last_seq"] - thoughts[-1].seq
        if early < 0 or late < 0 or ((early or late) and not gap):
            case.find("wrong-range", seal.seq)
        if not gap and stated["root"] != tree_root([bytes.fromhex(t.leaf) for t in thoughts]).hex():
            case.find("wrong-root", seal.seq)


def check_proofs(case: Case) -> None:
    seals = {seal.session: seal.body for seal in reversed(seals_of(case))}  # the first of each
    thoughts = {r.seq: r for r in case.records if r.kind == "thought" and r.session in seals}
    for proof in case.bundle["proofs"]:
        thought = thoughts.pop(proof["seq"], None)
        if thought is None:
            case.find("bad-proof", proof["seq"], "of no thought here that a seal covers")
            continue
        root, size = seals[thought.session]["root"], seals[thought.session]["count"]
        index = thought.body["index"] if thought.body else proof["index"]
        path = [bytes.fromhex(step) for step in proof["path"]]
        found = root_of_proof(bytes.fromhex(thought.leaf), index, size, path)
        if (proof["index"], proof["size"], found) != (index, size, bytes.fromhex(root)):
            case.find("bad-proof", thought.seq, f"the thought is {index} of {size}")
    for seq in thoughts:
        case.find("missing-proof", seq)


# 12 calls

# §5: the changes that a tool can have made when its call ended ok; any other tool, none
NONE: tuple[tuple[str, ...], ...] = ((),)
MADE_BY: dict[str, tuple[tuple[str, ...], ...]] = {
    "audit_session_start": (("session.open",),),
    "thought_record": (("thought",),),
    "merkle_finalize": (("session.seal",),),
    "task_create": (("task", "task.text"),),
    "task_update": ((), ("task",), ("task.text",), ("task", "task.text")),
}


def check_calls(case: Case) -> None:
    calls: dict[str, list[Record]] = {}
    for record in case.records:
        if record.disclosed and record.kind != "erasure":
            calls.setdefault(record.call, []).append(record)
    for records in calls.values():
        check_call(case, records)


def check_call(case: Case, records: list[Record]) -> None:
    """All records of one call, which must be its enter, its changes and its exit."""
    enter = exit = None
    changes = []
    for record in records:
        is_exit = record.kind == "call.exit"
        misplaced = "bad-pair" if record.kind in CALLS else "stray-change"
        if record.kind == "call.enter" and not enter:
            enter = record
        elif not enter:
            at = record.body["enter"] if is_exit else record.seq
            lost = case.has_gap(at - 1 if is_exit else 0, at + 1)
            case.find("missing-record" if lost else misplaced, at if lost else record.seq)
        elif exit or record.kind == "call.enter":
            case.find(misplaced, record.seq)
        elif is_exit:
            exit = record
        else:
            changes.append(record)
    if enter:
        check_changes(case, enter, changes, exit)


def check_changes(case: Case, enter: Record, changes: list[Record], exit: Record | None) -> None:
    tool = enter.body["tool"] if enter.body else None  # None: erased
    for record in [*changes, exit] if exit else changes:
        same = record.agent == enter.agent and enter.session in (record.session, None)
        if not same or enter.task not in (record.task, None):
            case.find("bad-pair", record.seq, "another session, task or agent")
    if exit is None:
        case.open_calls.append({"seq": enter.seq, "call": enter.call, "tool": tool and show(tool)})
    elif exit.body["enter"] != enter.seq or tool not in (exit.body["tool"], None):
        return case.find("bad-pair", exit.seq, "another enter or tool")
    ended_ok = exit is not None and exit.body["outcome"] == "ok"
    allowed = MADE_BY.get(exit.body["tool"], NONE) if exit and ended_ok else NONE
    if tuple(change.kind for change in changes) not in allowed:
        most = allowed[-1]
        stray = [change for change in changes if change.kind not in most] or changes[len(most) :]
        for change in stray:
            case.find("stray-change", change.seq)
        if exit and not stray:
            case.find("missing-change", exit.seq)


# 13 tasks

ENDED = ("DONE", "CANCELLED")
NEEDS_DEPENDENCIES = ("APPLY", "VERIFY", "DONE")
RETRY = ("VERIFY", "GATHER")
UNKNOWN = object()  # a value that an erased or missing record may have set
NOTHING = dict.fromkeys((*members("fields"), *members("texts")), UNKNOWN)


@dataclass
class Task:
    """A task as its records leave it; before the first of them nothing is known."""

    values: dict[str, Any] = field(default_factory=lambda: NOTHING)
    version: int = 0
    attempt: int = 1
    began: int = 0  # the record that began the attempt
    last: int = 0  # its last record, and the call that wrote it
    call: str = ""
    texted: bool = False  # whether its version has its task.text already
    is_new: bool = False  # whether its last record created it


class Replay:
    """All tasks, while their records are taken one by one."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.tasks: dict[str | None, Task] = {}
        self.thoughts: dict[str | None, int] = {}  # the last about each task
        self.steps = 0

    def take(self, record: Record) -> None:
        """A task or task.text record; without a body it is a text that was erased."""
        task, is_text = self.tasks.setdefault(record.task, Task()), record.kind == "task.text"
        first, old = task.version == 0, task.values["status"]
        shares = is_text and record.call == task.call and not task.texted
        expected = task.version if shares else task.version + 1
        body = record.body or {"version": expected, "set": {}}
        lost = body["version"] > expected and self.case.has_gap(task.last, record.seq)
        if lost:  # go on with what this record says, and nothing else
            self.case.find("missing-record", record.seq, record.task)
            task.values = NOTHING
        else:
            rules = self.creation(record, body) if first else self.change(record, body, expected)
            for code in rules:
                self.case.find(code, record.seq, record.task)
        said = {name: new for name, (_, new) in body["set"].items()}
        unsaid = {} if record.body else dict.fromkeys(members("texts"), UNKNOWN)
        task.values = {**task.values, **unsaid, **said}
        if first or (not lost and (old, said.get("status")) == RETRY):
            task.began = record.seq
        task.version, task.attempt = body["version"], body.get("attempt", task.attempt)
        task.last, task.call = record.seq, record.call
        task.texted, task.is_new = is_text, first and not lost

    def creation(self, record: Record, body: Any) -> Iterator[str]:
        """Which rules of §6 a task's first record breaks, by their numbers."""
        if not is_creation(body["set"], "fields") or (body["version"], body["attempt"]) != (1, 1):
            yield "bad-creation"  # 1
        elif body["set"]["status"][1] != "INIT":
            yield "illegal-move"  # 1
        yield from self.dependencies(record, body, first=True)  # 7

    def change(self, record: Record, body: Any, expected: int) -> Iterator[str]:
        """The same for a later record, which should have the version that is expected."""
        task, made = self.tasks[record.task], body["set"]
        shares = expected == task.version
        after = {**task.values, **{name: new for name, (_, new) in made.items()}}
        old, new = task.values["status"], after["status"]
        if task.is_new and shares:
            if record.body and not is_creation(made, "texts"):
                yield "bad-creation"  # 1
        elif any(is_wrong(task.values[name], *pair) for name, pair in made.items()):
            yield "wrong-change"  # 3
        if body["version"] != expected:
            yield "wrong-version"  # 2
        yield from self.dependencies(record, body)  # 7
        if old is not UNKNOWN:
            if body.get("attempt", task.attempt) != task.attempt + ((old, new) == RETRY):
                yield "wrong-attempt"  # 6
            moves = {
                "change-after-end": old in ENDED and not shares,  # 4
                "illegal-move": old != new and new not in MOVES[old],  # 5
                "blocked-move": self.is_blocked(after, made),  # 8
                "missing-evidence": old != new == "DONE" and self.lacks_evidence(record),  # 9
            }
            yield from [code for code, broken in moves.items() if broken][:1]

    def dependencies(self, record: Record, body: Any, *, first: bool = False) -> Iterator[str]:
        _, ids = body["set"].get("depends_on", (None, []))
        if not all(id in self.tasks for id in ids):
            yield "unknown-task"
        seen, queue = {*ids}, [] if first else list(ids)  # on a new task nothing depends yet
        for id in queue:
            if id in self.tasks and id != record.task and self.steps <= MAX_STEPS:
                further = self.needs(self.tasks[id].values)
                self.steps += 1 + len(further)
                queue.extend({*further} - seen)
                seen.update(further)
        if record.task in seen:
            yield "dependency-cycle"

    def needs(self, values: dict[str, Any]) -> list[str]:
        """What a task with these values depends on, as far as that is here."""
        ids = values["depends_on"]
        return [] if ids is UNKNOWN else [id for id in ids if id in self.tasks]

    def is_blocked(self, values: dict[str, Any], made: dict[str, Any]) -> bool:
        moved = "status" in made or "depends_on" in made
        return (
            moved
            and values["status"] in NEEDS_DEPENDENCIES
            and any(self.tasks[id].values["status"] not in ENDED for id in self.needs(values))
        )

    def lacks_evidence(self, record: Record) -> bool:
        """Whether no thought is about the attempt; where one may lie in a gap, that is noted."""
        began = self.tasks[record.task].began
        if self.thoughts.get(record.task, 0) > began:
            return False
        excused = self.case.has_gap(began, record.seq) and record.task != self.case.task
        if excused:
            self.case.note("evidence", f"record {record.seq}, {record.task}")
        return not excused


def is_creation(made: dict[str, Any], shape: str) -> bool:
    return made.keys() == members(shape).keys() and all(old is None for old, _ in made.values())


def is_wrong(now: Any, old: Any, new: Any) -> bool:
    return now is not UNKNOWN and (old != now or old == new)


def check_tasks(case: Case) -> None:
    replay = Replay(case)
    for record in case.records:
        if record.kind in ("session.open", "thought") and record.task is not None:
            judged = record.disclosed and case.task in (record.task, None)
            if judged and record.task not in replay.tasks:  # 10
                case.find("unknown-task", record.seq, record.task)
            if record.kind == "thought":
                replay.thoughts[record.task] = record.seq
        elif record.kind in CHANGES and record.disclosed:
            replay.take(record)
    if replay.steps > MAX_STEPS:
        case.find("too-complex", None)


# 14 outside


def check_outside(case: Case) -> None:
    seals, last = seals_of(case), case.records[-1].seq
    if case.root is not None and case.root not in [seal.body["root"] for seal in seals]:
        case.find("root-differs", seals[0].seq if len(seals) == 1 else None)
    if case.head is None:
        return
    seq, leaf = case.head
    if seq in case.by_seq:
        if case.by_seq[seq].leaf != leaf:
            case.find("head-differs", seq)
    elif seq > last and (case.kind == "log" or (case.kind == "session" and not seals)):
        case.find("truncated", last + 1, f"record {seq} was seen")
    else:
        case.find("head-not-covered", seq)


# 15 verdict

# §10: the findings, the line of the verdict that each turns to "no", and what it means
CODES = {
    "unreadable": ("unknown", "the file cannot be read"),
    "too-large": ("unknown", "the file is larger than 256 MiB"),
    "malformed-bundle": ("unknown", "the file is not made like a bundle"),
    "unknown-version": ("unknown", "the file is of another version"),
    "empty-bundle": ("unknown", "the bundle holds no records: there is nothing to check"),
    "head-not-covered": ("unknown", "the head that was given is not in this bundle"),
    "too-complex": ("unknown", "the dependencies are too many to follow"),
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
    "truncated": ("complete", "the records from here on are missing"),
    "missing-record": ("complete", "a record is missing"),
    "missing-payload": ("complete", "the payload is missing, and no erasure names it"),
    "stray-record": ("complete", "this kind of bundle has no place for the record"),
    "wrong-seals": ("complete", "seals does not list the seals of the bundle"),
    "second-seal": ("sealed", "the session was sealed already"),
    "thought-after-seal": ("sealed", "the session was sealed already"),
    "wrong-index": ("sealed", "the index is not the thought's place in its session"),
    "broken-thought-chain": ("sealed", "the thought does not name the one before it"),
    "wrong-count": ("sealed", "the count is not that of the session's thoughts"),
    "wrong-range": ("sealed", "the session's thoughts do not begin and end there"),
    "wrong-root": ("sealed", "the root is not that of the session's thoughts"),
    "bad-proof": ("sealed", "the proof does not lead from a thought to the root of its seal"),
    "missing-proof": ("sealed", "nothing shows that the seal covers the thought"),
    "root-differs": ("sealed", "no seal of the bundle has the root that was given"),
    "second-open": ("rules", "the session was opened already"),
    "outside-session": ("rules", "the session was not open yet"),
    "bad-pair": ("rules", "the record does not fit the call that it names"),
    "stray-change": ("rules", "no call that ended well has made this change"),
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
    "missing-evidence": ("rules", "it became DONE without a thought about the attempt"),
    "bad-erasure": ("rules", "the erasure names what cannot be erased, or comes later"),
    "erased-payload": ("rules", "an erasure says that the payload is gone"),
}
LINES = {"intact": "intact", "complete": "complete", "sealed": "sealed", "rules": "rules kept"}

# §11: what can be left open.
NOTES = {
    "truth": "whether what was recorded is true, or something was never recorded",
    "clock": "the times, which are the server's own; the order is the number",
    "skipped": "sessions, seals, proofs, calls and tasks, for what was found",
    "arguments": "whether a call's arguments and answer fit what it recorded",
    "rules": "calls, tasks and the session's other thoughts, which are not in the bundle",
    "outside-head": "a tail cut off, or a log written anew: that takes a head from outside",
    "outside-root": "whether a seal's root is the one that was published",
    "gaps": "what the missing records are, and that those around them are of one chain",
    "undisclosed": "records of which only the header is here",
    "erased": "payloads that can no longer be read",
    "evidence": "whether there was a thought about a task that became DONE",
}


def conclude(case: Case, *, skipped: bool) -> Verdict:
    seals = [] if skipped else seals_of(case)
    lines = dict.fromkeys(LINES, "not checked" if skipped else "yes")
    for code in ("truth", "clock", "skipped") if skipped else ("truth", "clock"):
        case.note(code)
    if not skipped:
        lines["sealed"] = "open" if case.open_sessions else "yes" if seals else "none"
        lines["rules"] = "not checked" if case.kind == "thoughts" else "yes"
        note_what_is_open(case, seals)
    lines |= dict.fromkeys(case.bad_lines & LINES.keys(), "no")
    unclear = "cannot tell" if case.bad_lines else "good"
    return Verdict(
        verdict="bad" if "no" in lines.values() else unclear,
        bundle=described(case) if case.records else None,
        lines=lines,
        seals=[
            {"seq": seal.seq, "session": show(seal.session)}
            | {name: seal.body[name] for name in ("count", "root")}
            for seal in seals
        ],
        erased=None if skipped else sorted(case.erased),
        open_calls=None if skipped or case.kind == "thoughts" else case.open_calls,
        findings=case.findings,
        finding_count=case.finding_count,
        not_checked=case.notes,
    )


def described(case: Case) -> dict[str, Any]:
    last = case.records[-1]
    return {
        "log": last.log,
        "kind": case.kind,
        "session": case.session,
        "task": case.task,
        "records": len(case.records),
        "first_seq": case.records[0].seq,
        "head": {"seq": last.seq, "leaf": last.leaf},
    }


def note_what_is_open(case: Case, seals: list[Record]) -> None:
    known = case.head[0] if case.head else 0
    hidden = sum(not record.disclosed for record in case.records)
    spans = ", ".join(f"{first} to {last}" for first, last in case.gaps[:4])
    for code, applies, fact in (
        ("arguments", case.kind != "thoughts", ""),
        ("rules", case.kind == "thoughts", ""),
        ("outside-head", known < case.end or case.has_gap(case.end, known), ""),
        ("outside-root", seals and case.root is None, ""),
        ("gaps", case.gaps, f"{len(case.gaps)} in all, {spans}"),
        ("undisclosed", hidden, f"{hidden} in all"),
        ("erased", case.erased, f"{len(case.erased)} in all"),
    ):
        if applies:
            case.note(code, fact)


def show(text: object) -> str:
    """A text of the bundle, short, and harmless to a terminal."""
    text = str(text)
    cut = text if len(text) <= MAX_LISTED else text[:MAX_LISTED] + "…"
    return "".join(c if c.isprintable() else f"\\u{{{ord(c):x}}}" for c in cut)


def as_text(verdict: Verdict) -> str:
    """The verdict for a person, a fact a line."""
    rows = []
    if verdict.bundle:
        log, kind, session, task, records, first, head = verdict.bundle.values()
        what = " ".join(filter(None, (kind, session, task)))
        many = counted(records, "record")
        rows += [("log", log), ("bundle", f"{what}: {many}, {first} to {head['seq']}")]
        rows += [("head", f"{head['seq']}:{head['leaf']}")]
    rows += [(LINES[line], state) for line, state in verdict.lines.items()]
    for seal in verdict.seals[:MAX_SHOWN]:
        many = counted(seal["count"], "thought")
        rows += [("seal", "record {seq}: {session}, {many}, root {root}".format(**seal, many=many))]
    calls = verdict.open_calls
    opened = calls and [f"{call['seq']} ({call['tool'] or 'erased'})" for call in calls]
    rows += [("erased", listed(verdict.erased)), ("open calls", listed(opened))]
    rows += [("not checked", "{code}: {detail}".format(**note)) for note in verdict.not_checked]
    for found in verdict.findings[:MAX_SHOWN]:
        where = "" if found["seq"] is None else f" at record {found['seq']}"
        rows += [("found", f"{found['code']}{where}: {found['detail']}")]
    rows += [("verdict", f"{verdict.verdict.upper()}, findings: {verdict.finding_count}")]
    return "".join(f"{title:<12} {fact}\n" for title, fact in rows)


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def listed(items: list[Any] | None) -> str:
    if items is None:
        return "not checked"
    more = ["…"] if len(items) > MAX_SHOWN else []
    return ", ".join([*map(str, items[:MAX_SHOWN]), *more]) or "none"


# The command


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="colibri_verify.py",
        description="Check a Colibri evidence bundle. Exit 0 good, 1 bad, 2 cannot tell.",
    )
    parser.add_argument("bundle", help="the file, *.colibri.json")
    parser.add_argument("--root", type=root_of, metavar="HEX", help="a seal's root from elsewhere")
    parser.add_argument("--head", type=head_of, metavar="SEQ:HEX", help="a head from elsewhere")
    parser.add_argument("--json", action="store_true", help="the verdict as JSON")
    options = parser.parse_args(arguments)
    try:
        verdict = verify_file(options.bundle, options.root, options.head)
        text, code = as_text(verdict), verdict.exit_code
        if options.json:
            text = json.dumps(verdict.as_json(), indent=2).replace("\x7f", "\\u007f") + "\n"
    except (MemoryError, KeyboardInterrupt) as problem:
        text, code = f"verdict      CANNOT TELL: {type(problem).__name__}\n", 2
    write(text)
    return code


def verify_file(path: str, root: str | None, head: tuple[int, str] | None) -> Verdict:
    """Judge the bundle in a file."""
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_FILE + 1)
    except (OSError, ValueError) as problem:
        case = Case()
        case.find("unreadable", None, getattr(problem, "strerror", None) or problem)
        return conclude(case, skipped=True)
    return verify(data, root=root, head=head)


def root_of(text: str) -> str:
    root = text.lower()  # as mails and forms may have it
    if not test("hash")(root):
        raise argparse.ArgumentTypeError("not 64 hex digits")
    return root


def head_of(text: str) -> tuple[int, str]:
    seq, _, leaf = text.lower().partition(":")
    if not (SEQ.fullmatch(seq) and test("hash")(leaf)):
        raise argparse.ArgumentTypeError("not SEQ:HEX, a number and 64 hex digits")
    return int(seq), leaf


def write(text: str) -> None:
    """To stdout, whatever its encoding; a reader that went away does not change the verdict."""
    try:
        sys.stdout.buffer.write(text.encode(sys.stdout.encoding or "ascii", "backslashreplace"))
        sys.stdout.buffer.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the interpreter flushes once more at exit


if __name__ == "__main__":
    sys.exit(main())
