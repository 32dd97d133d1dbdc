"""Check a Colibri evidence bundle, offline, with nothing but Python 3.11.

    python colibri_verify.py bundle.colibri.json [--root HEX] [--head SEQ:HEX] [--json]

Exit 0 good, 1 bad, 2 cannot tell. This one file shares no code with the server. It follows
docs/formats.md: § names a section there, and these are the steps of its procedure (§9):

    1 read  2 shape  3 headers  4 order  5 links  6 gaps  7 payloads  8 erasures  9 contents
    10 sessions and seals  11 proofs  12 calls  13 tasks  14 outside root and head  15 verdict

Up to 9, the first step that finds anything is the last to run; then 10 to 14 all run. Nothing is
read but the file named on the command line, and nothing is written but the verdict.
"""

import argparse
import base64
import hashlib
import json
import os
import re
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NoReturn

MAX_FILE = 256 * 1024 * 1024
MAX_DEPTH = 64
MAX_INTEGER = 2**53 - 1
MAX_FINDINGS = 100  # that are listed; also characters of a text that are shown
MAX_SHOWN = 20  # of each list, on a terminal
MAX_STEPS = 20_000_000  # of following dependencies
FORMAT = "colibri-bundle/1"
ZEROS = "0" * 64

# §10: the finding codes, by the line of the verdict that each turns to "no".
CODES = {
    "unknown": "unreadable too-large malformed-bundle unknown-version empty-bundle"
    " head-not-covered too-complex",
    "intact": "bad-header foreign-record wrong-order wrong-head broken-link altered-header"
    " stray-payload altered-payload bad-payload head-differs",
    "complete": "truncated missing-record missing-payload stray-record wrong-seals",
    "sealed": "second-seal thought-after-seal wrong-index broken-thought-chain wrong-count"
    " wrong-range wrong-root bad-proof missing-proof root-differs",
    "rules": "second-open outside-session bad-pair stray-change missing-change bad-creation"
    " wrong-version wrong-change change-after-end illegal-move wrong-attempt unknown-task"
    " dependency-cycle blocked-move missing-evidence bad-erasure erased-payload",
}
LINE_OF = {code: line for line, codes in CODES.items() for code in codes.split()}
LINES = {"intact": "intact", "complete": "complete", "sealed": "sealed", "rules": "rules kept"}


@dataclass
class Verdict:
    """What was found. `verdict` is "good", "bad" or "cannot tell"; §10 explains the rest."""

    bundle: dict[str, Any] | None = None
    lines: dict[str, str] = field(default_factory=dict)
    seals: list[dict[str, Any]] = field(default_factory=list)
    erased: list[int] | None = None  # None: not checked
    open_calls: list[dict[str, Any]] | None = None
    findings: list[dict[str, Any]] = field(default_factory=list)  # the first MAX_FINDINGS
    finding_count: int = 0
    not_checked: list[dict[str, str]] = field(default_factory=list)
    bad_lines: set[str] = field(default_factory=set)

    def find(self, code: str, seq: int | None, detail: str) -> None:
        self.bad_lines.add(LINE_OF[code])
        self.finding_count += 1
        if len(self.findings) < MAX_FINDINGS:
            self.findings.append({"code": code, "seq": seq, "detail": detail})

    def note(self, code: str, detail: str) -> None:
        self.not_checked.append({"code": code, "detail": detail})

    @property
    def verdict(self) -> str:
        if self.bad_lines - {"unknown"}:
            return "bad"
        return "cannot tell" if self.bad_lines else "good"

    @property
    def exit_code(self) -> int:
        return {"good": 0, "bad": 1, "cannot tell": 2}[self.verdict]

    def as_json(self) -> dict[str, Any]:
        members = {"format": "colibri-verdict/1", "verdict": self.verdict, **vars(self)}
        del members["bad_lines"]
        return members


@dataclass(slots=True)
class Record:
    """A header's members and leaf, and in `body` its payload's members where these are there."""

    leaf: str
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
    body: dict[str, Any] | None = None


@dataclass
class Case:
    """A bundle under examination."""

    bundle: dict[str, Any]
    verdict: Verdict
    kind: str  # log, session or thoughts
    session: str | None
    root: str | None  # what the user knows from elsewhere
    head: tuple[int, str] | None
    records: list[Record] = field(default_factory=list)
    by_seq: dict[int, Record] = field(default_factory=dict)
    gaps: list[tuple[int, int]] = field(default_factory=list)  # missing ranges, ascending
    start: int = 1  # of a session bundle's stretch
    end: int = 0
    erased: set[int] = field(default_factory=set)
    disclosed: dict[int, Record] = field(default_factory=dict)
    open_sessions: int = 0

    def __post_init__(self) -> None:
        self.find = self.verdict.find

    def has_gap(self, first: int, last: int) -> bool:
        """Whether a record between these two, neither included, is missing from the bundle."""
        at = bisect_right(self.gaps, (last - 1, MAX_INTEGER)) - 1
        return at >= 0 and self.gaps[at][1] > first


def verify(data: bytes, *, root: str | None = None, head: tuple[int, str] | None = None) -> Verdict:
    """Judge a bundle; root and head are what the caller knows from elsewhere."""
    verdict = Verdict()
    try:
        bundle = read_bundle(data)  # 1, 2
    except Refused as refused:
        verdict.find(refused.code, None, str(refused))
        return conclude(verdict, None, skipped=True)
    session = bundle["scope"] and bundle["scope"]["session"]
    kind = "log" if session is None else "thoughts" if bundle["proofs"] else "session"
    case = Case(bundle, verdict, kind, session, root, head)
    for step in (
        read_headers,  # 3
        check_order,  # 4
        check_links,  # 5
        check_gaps,  # 6
        read_payloads,  # 7
        check_erasures,  # 8
        check_contents,  # 9
    ):
        step(case)
        if verdict.findings:
            return conclude(verdict, case, skipped=True)
    if kind == "thoughts":
        check_proofs(case)  # 11
    else:
        check_sessions(case)  # 10
        check_calls(case)  # 12
        check_tasks(case)  # 13
    check_outside(case)  # 14
    return conclude(verdict, case, skipped=False)  # 15


# §1: strict JSON, and the canonical form


def parse_json(data: bytes) -> Any:
    """The one JSON value that data is; ValueError for all that §1 does not allow."""
    try:
        return _decoder.decode(data.decode())
    except UnicodeDecodeError:
        raise ValueError("not UTF-8") from None
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except json.JSONDecodeError as problem:
        raise ValueError(f"not JSON: {problem.msg} at character {problem.pos}") from None


def parse_canonical(data: bytes) -> Any:
    """The value of canonical bytes, otherwise ValueError."""
    value = parse_json(data)
    if not data.isascii() or data.count(b"{") + data.count(b"[") > MAX_DEPTH:
        check_depth_and_keys(value)  # elsewhere these cannot be wrong
    if _dump(value).encode(errors="replace") != data:  # "replace" spoils a lone surrogate
        raise ValueError("not in canonical form")
    return value


def check_depth_and_keys(value: Any) -> None:
    level = [value]
    for _ in range(MAX_DEPTH):
        inner: list[Any] = []
        for item in level:
            if type(item) is dict:
                if not all(map(str.isascii, item)):
                    raise ValueError("a key that is not ASCII")
                inner.extend(item.values())
            elif type(item) is list:
                inner.extend(item)
        level = inner
    if any(type(item) in (dict, list) for item in level):
        raise ValueError("nested too deeply")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a key comes twice")
    return value


def _integer(text: str) -> int:
    if len(text) > len("-9007199254740991") or abs(int(text)) > MAX_INTEGER:
        raise ValueError("a number beyond ±(2^53-1)")
    return int(text)


def _no_integer(text: str) -> NoReturn:
    raise ValueError("a number that is not an integer")


_decoder = json.JSONDecoder(
    object_pairs_hook=_unique,
    parse_int=_integer,
    parse_float=_no_integer,
    parse_constant=_no_integer,
)
_dump = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode


# §2, §3, §8: the members of each object and their types

Test = Callable[[Any], bool]
HEX = "[0-9a-f]"
DECIMAL = re.compile("[1-9][0-9]{0,15}")

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


def matching(pattern: str) -> Test:
    match = re.compile(pattern).fullmatch
    return lambda value: type(value) is str and match(value) is not None


def one_of(values: Iterable[str]) -> Test:
    allowed = frozenset(values)
    return lambda value: type(value) is str and value in allowed


def list_of(test: Test, most: int = MAX_INTEGER) -> Test:
    return lambda value: type(value) is list and len(value) <= most and all(map(test, value))


def set_of(fields: str) -> Test:
    """field → [old, new], at least one."""
    tests = schema(fields)

    def is_pair(name: str, pair: Any) -> bool:
        fits = tests.get(name)
        if fits is None or type(pair) is not list or len(pair) != len(("old", "new")):
            return False
        return (pair[0] is None or fits(pair[0])) and fits(pair[1])

    def test(value: Any) -> bool:
        return type(value) is dict and value != {} and all(is_pair(*item) for item in value.items())

    return test


def ascends(values: list[int]) -> bool:
    return all(a < b for a, b in pairwise(values))


def schema(text: str) -> dict[str, Test]:
    """From "name=type …"; "?" is: or null."""

    def test(type: str) -> Test:
        plain = TYPES[type.rstrip("?")]
        return (lambda value: value is None or plain(value)) if type.endswith("?") else plain

    return {name: test(type) for name, type in (item.split("=") for item in text.split())}


def why_not(value: Any, tests: dict[str, Test]) -> str | None:
    """What is wrong with an object's members, or None."""
    if type(value) is not dict or value.keys() != tests.keys():
        return f"not an object with exactly the members {' '.join(tests)}"
    wrong = [name for name, test in tests.items() if not test(value[name])]
    return f"not as the format has it: {', '.join(wrong)}" if wrong else None


is_hash = matching(HEX + "{64}")
TYPES: dict[str, Test] = {
    "text": lambda value: type(value) is str,
    "object": lambda value: type(value) is dict,
    "array": lambda value: type(value) is list,
    "int": lambda value: type(value) is int and value >= 0,
    "seq": lambda value: type(value) is int and value >= 1,
    "one": lambda value: type(value) is int and value == 1,
    "hash": is_hash,
    "uuid": matching(f"{HEX}{{8}}-{HEX}{{4}}-4{HEX}{{3}}-[89ab]{HEX}{{3}}-{HEX}{{12}}"),
    "log": matching(f"colibri/{HEX}{{32}}"),
    "time": matching(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}Z"),
    "session": matching("[A-Za-z0-9][A-Za-z0-9._-]{0,63}"),
    "format": one_of([FORMAT]),
    "outcome": one_of(["ok", "refused", "invalid", "error", "cancelled"]),
    "thinking": one_of(["plan", "analysis", "decision", "reflection"]),
    "status": one_of(MOVES),
    "priority": one_of(["low", "medium", "high", "critical"]),
    "kind": lambda value: type(value) is str and value in PAYLOADS,
}
TYPES["texts"] = list_of(TYPES["text"])
TYPES["hashes"] = list_of(is_hash, 64)
TYPES["ids"] = lambda value: list_of(TYPES["text"], 100)(value) and len({*value}) == len(value)
TYPES["seqs"] = lambda value: list_of(TYPES["seq"])(value) and ascends(value)
TYPES["some-seqs"] = lambda value: TYPES["seqs"](value) and len(value) > 0
TYPES["task-set"] = set_of(
    "status=status priority=priority assignee=text? project=text? depends_on=ids"
)
TYPES["text-set"] = set_of("title=text description=text?")

BUNDLE = schema(
    "format=format log=log scope=object? headers=texts payloads=object seals=seqs head=object"
    " proofs=array"
)
PROOF = schema("seq=seq index=int size=int path=hashes")
HEADER = schema(
    "v=one log=log seq=seq at=time kind=kind call=uuid session=text? task=text? agent=text?"
    " payload=hash prev=hash"
)
PAYLOADS: dict[str, dict[str, Test]] = {
    "call.enter": schema("server=uuid tool=text arguments=object? size=int? sha256=hash?"),
    "call.exit": schema(
        "enter=seq tool=text outcome=outcome code=text? result_sha256=hash? duration_ms=int"
    ),
    "session.open": schema("session_id=text intent=text task_id=text?"),
    "thought": schema("thought_id=text index=int type=thinking content=text prev=hash"),
    "session.seal": schema("root=hash count=seq first_seq=seq last_seq=seq"),
    "task": schema("task_id=text version=seq attempt=seq set=task-set"),
    "task.text": schema("task_id=text version=seq set=text-set"),
    "erasure": schema("seqs=some-seqs reason=text?"),
}


# 1, 2: read, and the shape of the bundle


class Refused(Exception):
    """The bundle cannot be judged at all."""

    def __init__(self, code: str, why: str) -> None:
        super().__init__(why)
        self.code = code


def read_bundle(data: bytes) -> dict[str, Any]:
    if len(data) > MAX_FILE:
        raise Refused("too-large", f"more than {MAX_FILE} bytes")
    try:
        bundle = parse_json(data)
        name = bundle.get("format") if type(bundle) is dict else None
        if type(name) is str and name.startswith("colibri-bundle/") and name != FORMAT:
            raise Refused("unknown-version", f"{show(name)} is not {FORMAT}")
        check_shape(bundle)
    except ValueError as problem:
        raise Refused("malformed-bundle", str(problem)) from None
    if not bundle["headers"]:
        raise Refused("empty-bundle", "it holds no records: there is nothing to check")
    return bundle  # type: ignore[no-any-return]  # check_shape has seen that it is an object


def check_shape(bundle: Any) -> None:
    """ValueError unless it is as §8's table says; texts in base64 become bytes."""
    require(bundle, BUNDLE, "the bundle")
    if bundle["scope"] is not None:
        require(bundle["scope"], schema("session=session"), "scope")
    require(bundle["head"], schema("seq=seq leaf=hash"), "head")
    for proof in bundle["proofs"]:
        require(proof, PROOF, "a proof")
    if bundle["scope"] is None and bundle["proofs"]:
        raise ValueError("proofs without a session")
    bundle["headers"] = [decode(text) for text in bundle["headers"]]
    item_members = schema("nonce=text body=text")
    for seq, item in bundle["payloads"].items():
        if not DECIMAL.fullmatch(seq) or int(seq) > MAX_INTEGER:
            raise ValueError("payloads: a key that is no seq")
        require(item, item_members, f"payloads.{seq}")
        nonce, body = decode(item["nonce"]), decode(item["body"])
        if len(nonce) != hashlib.sha256().digest_size:
            raise ValueError(f"payloads.{seq}: a nonce has 32 bytes")
        bundle["payloads"][seq] = (nonce, body)


def require(value: Any, tests: dict[str, Test], where: str) -> None:
    if wrong := why_not(value, tests):
        raise ValueError(f"{where}: {wrong}")


def decode(text: str) -> bytes:
    """The bytes of strict base64."""
    try:
        data = base64.b64decode(text, validate=True)
    except ValueError:
        data = b""
    if not data or base64.b64encode(data).decode() != text:
        raise ValueError("a text that is not base64")
    return data


# §2, §4: the hashes


def leaf_hash(header: bytes) -> bytes:
    return hashlib.sha256(b"\0" + header).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\1" + left + right).digest()


def commitment(nonce: bytes, body: bytes) -> str:
    return hashlib.sha256(b"colibri/payload/v1\n" + nonce + body).hexdigest()


def genesis(log: str) -> str:
    return hashlib.sha256(b"colibri/ledger/v1\n" + log.encode()).hexdigest()


def tree_root(leaves: list[bytes]) -> bytes:
    """RFC 6962's tree hash, by its definition; of at least one leaf."""

    def root(first: int, last: int) -> bytes:
        if last - first == 1:
            return leaves[first]
        middle = first + (1 << (last - first - 1).bit_length() - 1)  # a power of two further on
        return node_hash(root(first, middle), root(middle, last))

    return root(0, len(leaves))


def root_of_proof(leaf: bytes, index: int, size: int, path: list[bytes]) -> bytes | None:
    """The root that a proof leads to; None if a tree of this size has no such proof."""
    if not 0 <= index < size:
        return None
    f, s, r = index, size - 1, leaf
    for p in path:
        if s == 0:
            return None
        if f & 1 or f == s:
            r = node_hash(p, r)
            while f and not f & 1:
                f, s = f >> 1, s >> 1
        else:
            r = node_hash(r, p)
        f, s = f >> 1, s >> 1
    return r if s == 0 else None


# 3 headers, 4 order


def read_headers(case: Case) -> None:
    for data in case.bundle["headers"]:
        header: Any = None
        try:
            header = parse_canonical(data)
            problem = why_not(header, HEADER) or why_not_header(header)
        except ValueError as error:
            problem = str(error)
        if problem:
            seq = header.get("seq") if type(header) is dict else None
            case.find("bad-header", seq if TYPES["seq"](seq) else None, problem)
        elif header["log"] != case.bundle["log"]:
            case.find("foreign-record", header["seq"], f"it is of the log {header['log']}")
        else:
            case.records.append(Record(leaf_hash(data).hex(), **header))


def why_not_header(header: dict[str, Any]) -> str | None:
    kind = header["kind"]
    if kind in ("session.open", "thought", "session.seal") and header["session"] is None:
        return f"a {kind} record without a session"
    if kind in ("task", "task.text") and header["task"] is None:
        return f"a {kind} record without a task"
    return None


def check_order(case: Case) -> None:
    last = 0
    for record in case.records:
        if record.seq <= last:
            case.find("wrong-order", record.seq, f"it stands after record {last}")
        last = record.seq
        case.by_seq[record.seq] = record


# 5 links


def check_links(case: Case) -> None:
    records, head, first = case.records, case.bundle["head"], genesis(case.bundle["log"])
    last = records[-1]
    known = {record.leaf: record.seq for record in records} | {first: 0}
    doubt = False  # whether the later of two neighbours is itself in doubt
    if head["seq"] > last.seq:
        detail = f"the bundle ends before it, but its head is {head['seq']}"
        case.find("truncated", last.seq + 1, detail)
    elif head["seq"] < last.seq or head["leaf"] != last.leaf:
        case.find("wrong-head", last.seq, "the last record is not the one that head names")
        doubt = True
    for b, a in pairwise(reversed(records)):
        linked = b.seq != a.seq + 1 or b.prev == a.leaf
        if not linked and not doubt:
            if b.prev in known:
                case.find("broken-link", b.seq, f"it follows record {known[b.prev]}, not {a.seq}")
            else:
                case.find("altered-header", a.seq, f"record {b.seq} follows another record")
        doubt = not linked
    if records[0].seq == 1 and records[0].prev != first and not doubt:
        case.find("broken-link", 1, "it does not follow the log's genesis")


# 6 gaps


def check_gaps(case: Case) -> None:
    seals = [record.seq for record in case.records if record.kind == "session.seal"]
    case.end = seals[0] if case.kind == "thoughts" and seals else case.records[-1].seq
    if case.kind == "session" and not find_stretch(case):
        case.find("missing-record", None, "the session's session.open is not in the bundle")
        return
    before = 0
    for record in case.records:
        if record.seq > before + 1:
            case.gaps.append((before + 1, record.seq - 1))
            inside = case.kind == "session" and case.start <= before and record.seq <= case.end
            if case.kind == "log" or inside:
                gone = f"records {before + 1} to {record.seq - 1} are not in the bundle"
                case.find("missing-record", before + 1, gone)
        before = record.seq


def find_stretch(case: Case) -> bool:
    """Where a session bundle's stretch begins and ends; False if it has no beginning."""
    own = [record for record in case.records if record.session == case.session]
    opening = next((record for record in own if record.kind == "session.open"), None)
    seal = next((record for record in own if record.kind == "session.seal"), None)
    for record in case.records if seal else ():
        if (
            seal
            and record.seq > seal.seq
            and record.kind == "call.exit"
            and record.call == seal.call
        ):
            case.end = record.seq
            break
    if opening:
        case.start = opening.seq
    return opening is not None


# 7 payloads, 8 erasures


def read_payloads(case: Case) -> None:
    for key in sorted(case.bundle["payloads"], key=int):
        nonce, body = case.bundle["payloads"][key]
        record = case.by_seq.get(int(key))
        if record is None:
            case.find("stray-payload", int(key), "no header of the bundle belongs to it")
        elif commitment(nonce, body) != record.payload:
            case.find("altered-payload", record.seq, "it is not the one the header commits to")
        else:
            try:
                record.body = parse_canonical(body)
                problem = why_not(record.body, PAYLOADS[record.kind]) or why_not_payload(record)
            except ValueError as error:
                problem = str(error)
            if problem:
                case.find("bad-payload", record.seq, f"{record.kind}: {problem}")


def why_not_payload(record: Record) -> str | None:
    """What the table of §3 says beyond the types."""
    body, fits = record.body or {}, True
    if record.kind == "call.enter":
        refused = body["arguments"] is None
        fits = (body["size"] is not None) == (body["sha256"] is not None) == refused
    elif record.kind == "call.exit":
        fits = (body["code"] is None) == (body["outcome"] in ("ok", "cancelled"))
    elif record.kind == "session.open":
        fits = (body["session_id"], body["task_id"]) == (record.session, record.task)
    elif record.kind == "thought":
        fits = body["thought_id"] == f"R-{record.seq}"
    elif record.kind in ("task", "task.text"):
        fits = body["task_id"] == record.task
    return None if fits else "its members, or it and its header, contradict each other"


def check_erasures(case: Case) -> None:
    erasable = ("call.enter", "session.open", "thought", "task.text")
    for erasure in case.records:
        if erasure.kind != "erasure" or erasure.body is None:
            continue
        for seq in erasure.body["seqs"]:
            record = case.by_seq.get(seq)
            if seq >= erasure.seq or (record and record.kind not in erasable):
                case.find("bad-erasure", erasure.seq, f"record {seq} cannot be erased by it")
            elif record and record.body is not None:
                case.find("erased-payload", seq, f"record {erasure.seq} says that it was erased")
            elif record:
                case.erased.add(seq)


# 9 contents


def check_contents(case: Case) -> None:
    chosen = {"log": log_records, "session": session_records, "thoughts": thought_records}
    shown = {record.seq for record in chosen[case.kind](case)}
    for record in case.records:
        if record.seq in shown:
            case.disclosed[record.seq] = record
            if record.body is None and record.seq not in case.erased:
                case.find("missing-payload", record.seq, "and no erasure names it")
        elif case.kind == "thoughts" or not case.start <= record.seq <= case.end:
            case.find("stray-record", record.seq, f"a {case.kind} bundle has no place for it")
        elif record.body is not None:
            case.find("stray-payload", record.seq, "it has nothing to do with the session")
    seals = [record for record in case.disclosed.values() if record.kind == "session.seal"]
    if case.kind == "thoughts" and not seals:
        case.find("missing-record", None, "the session's seal is not in the bundle")
    if differing := {*case.bundle["seals"]} ^ {seal.seq for seal in seals}:
        case.find("wrong-seals", min(differing), "seals does not list the bundle's seals")
    for seal in seals:
        made = seal.body or {}
        facts = {"seq": seal.seq, "session": show(seal.session)}
        case.verdict.seals.append({**facts, "count": made.get("count"), "root": made.get("root")})


def log_records(case: Case) -> list[Record]:
    return case.records


def thought_records(case: Case) -> list[Record]:
    own = [record for record in case.records if record.session == case.session]
    thoughts = [record for record in own if record.kind == "thought"]
    seals = [record for record in own if record.kind == "session.seal"]
    return thoughts + seals[:1] + erasures_of(case, thoughts)


def session_records(case: Case) -> list[Record]:
    """§8: the session's records, its tasks', the calls of all these, and the erasures."""
    chosen = [record for record in case.records if record.session == case.session]
    changes: dict[str | None, list[Record]] = {}
    for record in case.records:
        if record.kind in ("task", "task.text") and record.seq <= case.end:
            changes.setdefault(record.task, []).append(record)
    tasks = {record.task for record in chosen if record.kind in ("session.open", "thought")}
    queue = list(tasks)
    for task in queue:
        for record in changes.get(task, ()):
            chosen.append(record)
            for ids in record.body["set"].get("depends_on", ()) if record.body else ():
                ahead = set(ids or ()) - tasks
                tasks |= ahead
                queue.extend(ahead)
    calls = {record.call for record in chosen}
    pairs = [r for r in case.records if r.kind in ("call.enter", "call.exit") and r.call in calls]
    return chosen + pairs + erasures_of(case, case.records)


def erasures_of(case: Case, records: list[Record]) -> list[Record]:
    named = {record.seq for record in records}
    erasures = [record for record in case.records if record.kind == "erasure" and record.body]
    return [r for r in erasures if r.body and not named.isdisjoint(r.body["seqs"])]


# 10 sessions and seals


@dataclass
class Session:
    opened: bool = False
    sealed: bool = False
    thoughts: list[Record] = field(default_factory=list)


def check_sessions(case: Case) -> None:
    sessions: dict[str | None, Session] = {}
    for record in case.records:
        kind, name = record.kind, record.session
        if kind not in ("session.open", "thought", "session.seal"):
            continue
        if case.kind == "session" and name != case.session:
            continue
        session = sessions.setdefault(name, Session())
        if kind == "session.open":
            if session.opened:
                case.find("second-open", record.seq, f"{show(name)} was open already")
            session.opened = True
        elif not session.opened:
            case.find("outside-session", record.seq, f"{show(name)} was not open yet")
        elif session.sealed:
            code = "thought-after-seal" if kind == "thought" else "second-seal"
            case.find(code, record.seq, f"{show(name)} was sealed already")
        elif kind == "thought":
            check_thought(case, record, session.thoughts)
            session.thoughts.append(record)
        else:
            session.sealed = True
            check_seal(case, record, session.thoughts)
    case.open_sessions = sum(not session.sealed for session in sessions.values())


def check_thought(case: Case, record: Record, before: list[Record]) -> None:
    if record.body is None:  # erased; its header still holds its place
        return
    if record.body["index"] != len(before):
        detail = f"it says {record.body['index']}, but {len(before)} came before it"
        case.find("wrong-index", record.seq, detail)
    if record.body["prev"] != (before[-1].leaf if before else ZEROS):
        case.find("broken-thought-chain", record.seq, "it does not name the thought before it")


def check_seal(case: Case, seal: Record, thoughts: list[Record]) -> None:
    stated = seal.body or {}
    if stated["count"] != len(thoughts):
        detail = f"it says {stated['count']}, but there are {len(thoughts)} thoughts"
        case.find("wrong-count", seal.seq, detail)
    if not thoughts:
        return
    first, last = thoughts[0].seq, thoughts[-1].seq
    if (stated["first_seq"], stated["last_seq"]) != (first, last):
        case.find("wrong-range", seal.seq, f"its thoughts are those from {first} to {last}")
    root = tree_root([bytes.fromhex(thought.leaf) for thought in thoughts]).hex()
    if stated["root"] != root:
        case.find("wrong-root", seal.seq, f"the root of its thoughts is {root}")


# 11 proofs, which in a thoughts bundle take the place of the whole tree


def check_proofs(case: Case) -> None:
    seal = next(record.body for record in case.records if record.kind == "session.seal")
    assert seal is not None  # 9 has seen to it
    thoughts = {record.seq: record for record in case.records if record.kind == "thought"}
    for proof in case.bundle["proofs"]:
        seq, thought = proof["seq"], thoughts.pop(proof["seq"], None)
        if thought is None:
            case.find("bad-proof", seq, "there is no thought for it")
            continue
        index, size = thought.body["index"] if thought.body else proof["index"], seal["count"]
        path = [bytes.fromhex(step) for step in proof["path"]]
        root = root_of_proof(bytes.fromhex(thought.leaf), index, size, path)
        if (proof["index"], proof["size"]) != (index, size):
            case.find("bad-proof", seq, f"the thought is {index} of {size}")
        elif root is None or root.hex() != seal["root"]:
            case.find("bad-proof", seq, "it does not lead to the seal's root")
    for seq in thoughts:
        case.find("missing-proof", seq, "nothing shows that the seal covers it")


# 12 calls

# §5: the changes that a call has made which ended ok; any other tool, none
CHANGES_OF: dict[str, tuple[tuple[str, ...], ...]] = {
    "audit_session_start": (("session.open",),),
    "thought_record": (("thought",),),
    "merkle_finalize": (("session.seal",),),
    "task_create": (("task", "task.text"),),
    "task_update": ((), ("task",), ("task.text",), ("task", "task.text")),
}


@dataclass
class Call:
    enter: Record
    tool: str | None  # None if erased
    changes: list[Record] = field(default_factory=list)
    closed: bool = False


def check_calls(case: Case) -> None:
    calls: dict[str, Call] = {}
    open_calls = case.verdict.open_calls = []
    for record in case.disclosed.values():
        call = calls.get(record.call)
        if record.kind == "call.enter":
            if call:
                case.find("bad-pair", record.seq, f"its call was entered at {call.enter.seq}")
            else:
                calls[record.call] = Call(record, record.body["tool"] if record.body else None)
        elif record.kind == "call.exit":
            close_call(case, record, call)
        elif record.kind != "erasure":
            if call is None or call.closed:
                lost = call is None and case.has_gap(0, record.seq)
                code = "missing-record" if lost else "stray-change"
                case.find(code, record.seq, "it lies in no open call")
            else:
                call.changes.append(record)
                check_names(case, record, call.enter)
    for call in calls.values():
        if not call.closed:
            for change in call.changes:
                case.find("stray-change", change.seq, "its call has no exit")
            facts = {"seq": call.enter.seq, "call": call.enter.call}
            open_calls.append({**facts, "tool": call.tool and show(call.tool)})


def close_call(case: Case, exit: Record, call: Call | None) -> None:
    body = exit.body or {}
    enter, tool, outcome = body["enter"], body["tool"], body["outcome"]
    closed = call is None or call.closed
    if call is not None:
        call.closed = True
    if call is None and case.has_gap(enter - 1, enter + 1):
        case.find("missing-record", enter, f"record {exit.seq} closes it")
    elif call is None or closed or call.enter.seq != enter or call.tool not in (tool, None):
        case.find("bad-pair", exit.seq, f"record {enter} is not its open enter, or of another tool")
    else:
        check_names(case, exit, call.enter)
        allowed = CHANGES_OF.get(tool, ((),)) if outcome == "ok" else ((),)
        made = tuple(change.kind for change in call.changes)
        if made in allowed:
            return
        stray = [change for change in call.changes if change.kind not in allowed[-1]]
        for change in stray or call.changes[len(allowed[-1]) :]:
            case.find("stray-change", change.seq, f"{show(tool)} ({outcome}) made no such change")
        if not stray and len(made) <= len(allowed[-1]):
            case.find(
                "missing-change", exit.seq, f"{show(tool)} writes {' and '.join(allowed[-1])}"
            )


def check_names(case: Case, record: Record, enter: Record) -> None:
    same = record.agent == enter.agent and enter.session in (record.session, None)
    if not same or enter.task not in (record.task, None):
        detail = f"it names another session, task or agent than its enter, {enter.seq}"
        case.find("bad-pair", record.seq, detail)


# 13 tasks

TERMINAL = ("DONE", "CANCELLED")
NEEDS_DEPENDENCIES = ("APPLY", "VERIFY", "DONE")
FIELDS = {"status", "priority", "assignee", "project", "depends_on"}
TEXTS = {"title", "description"}
UNKNOWN = object()  # a value that an erased or missing record may have set


@dataclass
class Task:
    """A task as its records leave it; `began` is the record that began the attempt."""

    values: dict[str, Any]
    version: int
    attempt: int
    began: int
    call: str
    last: int  # its last record
    texted: bool = False  # whether its version has its task.text already
    fresh: bool = True  # nothing but its creation was seen


def stated_values(made: dict[str, Any], otherwise: object) -> dict[str, Any]:
    values: dict[str, Any] = dict.fromkeys(FIELDS | TEXTS, otherwise)
    return values | {name: new for name, (_, new) in made.items()}


class Replay:
    """The rules of §6, by their numbers."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.tasks: dict[str | None, Task] = {}
        self.thoughts: dict[str, int] = {}  # task → its last thought
        self.steps = 0

    def take(self, record: Record) -> None:
        """A task or task.text record; without a body it is a text that was erased."""
        body, task = record.body, self.tasks.get(record.task)
        if task is None:
            self.create(record)
            return
        shares = record.kind == "task.text" and record.call == task.call and not task.texted
        expected = task.version if shares else task.version + 1
        version = body["version"] if body else expected
        lost = version > expected and self.case.has_gap(task.last, record.seq)
        if version != expected:  # 2
            code = "missing-record" if lost else "wrong-version"
            self.case.find(code, record.seq, f"version {version} follows {task.version}")
        ended = task.values["status"] in TERMINAL and not shares and not lost
        created, task.fresh = shares and task.fresh, False
        if ended:  # 4
            self.case.find("change-after-end", record.seq, f"{show(record.task)} was terminal")
        task.version, task.call, task.last = version, record.call, record.seq
        task.texted = record.kind == "task.text"
        if lost and body:  # go on from here with what is known
            task.values = stated_values(body["set"], UNKNOWN)
            task.attempt = body.get("attempt", task.attempt)
        elif body is None:
            task.values.update(dict.fromkeys(TEXTS, UNKNOWN))
        elif record.kind == "task.text":
            if created and body["set"].keys() != TEXTS:  # 1
                self.case.find("bad-creation", record.seq, "it does not set every text")
            self.set(task, record, body["set"], created)
        else:
            self.move(task, record, body, ended)

    def create(self, record: Record) -> None:
        body, find = record.body or {"version": 1, "set": {}}, self.case.find
        version, attempt, made = body["version"], body.get("attempt", 1), body["set"]
        lost = version > 1 and self.case.has_gap(0, record.seq)
        values = stated_values(made, UNKNOWN if lost else None)
        status = values["status"] = values["status"] or "INIT"
        self.tasks[record.task] = Task(
            values, version, attempt, record.seq, record.call, record.seq, record.kind != "task"
        )
        if lost:  # 2
            find("missing-record", record.seq, f"{show(record.task)} was created in a gap")
            return
        if made.keys() != FIELDS or any(old is not None for old, _ in made.values()):  # 1
            find("bad-creation", record.seq, f"{show(record.task)} does not begin with all fields")
        elif (version, attempt) != (1, 1):
            find("bad-creation", record.seq, "version and attempt begin at 1")
        elif status != "INIT":
            find("illegal-move", record.seq, f"created in {status}")
        self.check_dependencies(record, values["depends_on"] or [], created=True)

    def set(self, task: Task, record: Record, made: dict[str, Any], created: bool) -> None:
        for name, (old, new) in made.items():  # 3
            now = task.values[name]
            if now is not UNKNOWN and (old != now or (old == new and not created)):
                self.case.find("wrong-change", record.seq, f"{name} was not what it says")
            task.values[name] = new

    def move(self, task: Task, record: Record, body: dict[str, Any], ended: bool) -> None:
        find, seq, made, old = self.case.find, record.seq, body["set"], task.values["status"]
        self.set(task, record, made, False)
        new, retry = task.values["status"], (old, task.values["status"]) == ("VERIFY", "GATHER")
        if body["attempt"] != task.attempt + retry and old is not UNKNOWN:  # 6
            find("wrong-attempt", seq, f"attempt {body['attempt']} follows {task.attempt}")
        task.attempt = body["attempt"]
        if "depends_on" in made:
            self.check_dependencies(record, task.values["depends_on"], created=False)
        blocked = new in NEEDS_DEPENDENCIES and any(map(self.is_open, self.needed_by(record.task)))
        if ended or old is UNKNOWN:
            return
        if old != new and new not in MOVES[old]:  # 5
            find("illegal-move", seq, f"{old} to {new}")
        elif blocked and ("status" in made or "depends_on" in made):  # 8
            find("blocked-move", seq, f"in {new} while a dependency is open")
        elif old != new == "DONE" and self.thoughts.get(record.task or "", 0) <= task.began:  # 9
            if self.case.has_gap(task.began, seq):
                detail = (
                    f"record {seq} moves {show(record.task)} to DONE: its thoughts are not here"
                )
                self.case.verdict.note("evidence", detail)
            else:
                find("missing-evidence", seq, f"DONE, but no thought since record {task.began}")
        if retry:
            task.began = seq

    def needed_by(self, id: str | None) -> list[str]:
        ids = self.tasks[id].values["depends_on"]
        return ids if type(ids) is list else []

    def is_open(self, id: str) -> bool:
        return id in self.tasks and self.tasks[id].values["status"] not in TERMINAL

    def check_dependencies(self, record: Record, ids: list[str], *, created: bool) -> None:  # 7
        for id in ids:
            if id not in self.tasks:
                self.case.find("unknown-task", record.seq, f"{show(id)} does not exist")
        seen = set(ids)
        queue = [] if created else list(ids)  # on a task that was not there nothing depends
        for id in queue:
            if id in self.tasks and id != record.task and self.steps <= MAX_STEPS:
                further = self.needed_by(id)
                self.steps += 1 + len(further)
                ahead = set(further) - seen
                seen |= ahead
                queue.extend(ahead)
        if record.task in seen:
            self.case.find("dependency-cycle", record.seq, f"{show(record.task)} needs itself")


def check_tasks(case: Case) -> None:
    replay = Replay(case)
    for record in case.records:
        if record.kind in ("session.open", "thought") and record.task is not None:
            if record.seq in case.disclosed and record.task not in replay.tasks:  # 10
                case.find("unknown-task", record.seq, f"{show(record.task)} does not exist")
            if record.kind == "thought":
                replay.thoughts[record.task] = record.seq
        elif record.kind in ("task", "task.text") and record.seq in case.disclosed:
            replay.take(record)
    if replay.steps > MAX_STEPS:
        case.find("too-complex", None, "the dependencies are too many to follow")


# 14 what the user knows from elsewhere


def check_outside(case: Case) -> None:
    seals, last = case.verdict.seals, case.records[-1].seq
    if case.root is not None and case.root not in [seal["root"] for seal in seals]:
        at = seals[0]["seq"] if len(seals) == 1 else None
        case.find("root-differs", at, "no seal of the bundle has the root that was given")
    if case.head is None:
        return
    seq, leaf = case.head
    record = case.by_seq.get(seq)
    if record is not None:
        if record.leaf != leaf:
            case.find("head-differs", seq, "its leaf is not the one that was given")
    elif seq > last and (case.kind == "log" or (case.kind == "session" and not seals)):
        case.find("truncated", last + 1, f"the bundle ends before it, but record {seq} was seen")
    else:
        case.find("head-not-covered", seq, "the head that was given is not in this bundle")


# 15 the verdict


def conclude(verdict: Verdict, case: Case | None, *, skipped: bool) -> Verdict:
    verdict.note("truth", "whether what was recorded is true, or something was never recorded")
    verdict.note("clock", "the times, which are the server's own; the order is the number")
    if skipped:
        verdict.note("skipped", "sessions, seals, proofs, calls and tasks, for what was found")
    for line in LINES:
        found = line in verdict.bad_lines
        verdict.lines[line] = "no" if found else "not checked" if skipped else "yes"
    if case is None or not case.records:
        return verdict
    last = case.records[-1]
    verdict.bundle = {
        "log": last.log,
        "kind": case.kind,
        "session": case.session,
        "records": len(case.records),
        "first_seq": case.records[0].seq,
        "head": {"seq": last.seq, "leaf": last.leaf},
    }
    if skipped:
        verdict.seals = []
    else:
        describe(case)
    return verdict


def describe(case: Case) -> None:
    """What a bundle that was examined to the end leaves open (§10, §11)."""
    verdict, note = case.verdict, case.verdict.note
    verdict.erased = sorted(case.erased)
    if verdict.lines["sealed"] == "yes" and not verdict.seals:
        verdict.lines["sealed"] = "none"
    if verdict.lines["sealed"] != "no" and case.open_sessions:
        verdict.lines["sealed"] = "open"
    if case.kind == "thoughts":
        verdict.lines["rules"] = "not checked"
        note("rules", "calls, tasks and the session's other thoughts, which are not in the bundle")
    else:
        note("arguments", "whether a call's arguments and answer fit what it recorded")
    known = case.head[0] if case.head else 0
    if known < case.end or case.has_gap(case.end, known):
        note(
            "outside-head", "a tail cut off, or a log written anew: that takes a head from outside"
        )
    if verdict.seals and case.root is None:
        note("outside-root", "whether a seal's root is the one that was published")
    if case.gaps:
        spans = [f"{first} to {last}" for first, last in case.gaps]
        more = [f"{len(spans)} gaps in all"] if spans[10:] else []
        note("gaps", f"records {', '.join(spans[:10] + more)}: nothing links what is around them")
    if hidden := len(case.records) - len(case.disclosed):
        note("undisclosed", f"{hidden} records, of which only the header is here")
    if case.erased:
        note("erased", f"{len(case.erased)} payloads, which can no longer be read")


def show(text: str | None) -> str:
    """A text of the bundle, short, and harmless to a terminal."""
    text = str(text)
    cut = text if len(text) <= MAX_FINDINGS else text[:MAX_FINDINGS] + "…"
    return "".join(c if c.isprintable() else f"\\u{{{ord(c):x}}}" for c in cut)


def as_text(verdict: Verdict) -> str:
    rows: list[tuple[str, str]] = []
    if bundle := verdict.bundle:
        head, name = bundle["head"], f" {bundle['session']}" if bundle["session"] else ""
        span = f"{bundle['records']} records, {bundle['first_seq']} to {head['seq']}"
        rows += [("log", bundle["log"]), ("bundle", f"{bundle['kind']}{name}: {span}")]
        rows += [("head", f"{head['seq']}:{head['leaf']}")]
    rows += [(LINES[line], state) for line, state in verdict.lines.items()]
    for seal in verdict.seals[:MAX_SHOWN]:
        text = f"{seal['session']}, {seal['count']} thoughts, root {seal['root']}"
        rows.append(("seal", f"record {seal['seq']}: {text}"))
    calls = verdict.open_calls
    opened = None if calls is None else [f"{c['seq']} ({c['tool'] or 'erased'})" for c in calls]
    rows += [("erased", listed(verdict.erased)), ("open calls", listed(opened))]
    rows += [("not checked", f"{n['code']}: {n['detail']}") for n in verdict.not_checked]
    for finding in verdict.findings[:MAX_SHOWN]:
        where = "" if finding["seq"] is None else f" at record {finding['seq']}"
        rows.append(("found", f"{finding['code']}{where}: {finding['detail']}"))
    rows.append(("verdict", f"{verdict.verdict.upper()}, findings: {verdict.finding_count}"))
    return "".join(f"{title:<12} {text}\n" for title, text in rows)


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
    parser.add_argument("--root", type=_root, metavar="HEX", help="a seal's root from elsewhere")
    parser.add_argument("--head", type=_head, metavar="SEQ:HEX", help="a head from elsewhere")
    parser.add_argument("--json", action="store_true", help="the verdict as JSON")
    options = parser.parse_args(arguments)
    try:
        verdict = verify_file(options.bundle, options.root, options.head)
        text, code = as_text(verdict), verdict.exit_code
        if options.json:
            text = json.dumps(verdict.as_json(), indent=2).replace("\x7f", "\\u007f") + "\n"
    except (MemoryError, KeyboardInterrupt) as problem:
        text, code = f"verdict      CANNOT TELL: {type(problem).__name__}\n", 2
    _write(text)
    return code


def verify_file(path: str, root: str | None, head: tuple[int, str] | None) -> Verdict:
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_FILE + 1)
    except (OSError, ValueError) as problem:
        verdict = Verdict()
        verdict.find("unreadable", None, show(str(problem)))
        return conclude(verdict, None, skipped=True)
    return verify(data, root=root, head=head)


def _root(text: str) -> str:
    if not is_hash(text):
        raise argparse.ArgumentTypeError("not 64 lower-case hex digits")
    return text


def _head(text: str) -> tuple[int, str]:
    seq, _, leaf = text.partition(":")
    if not (DECIMAL.fullmatch(seq) and is_hash(leaf)):
        raise argparse.ArgumentTypeError("not SEQ:HEX, a number and 64 lower-case hex digits")
    return int(seq), leaf


def _write(text: str) -> None:
    """To stdout, whatever its encoding; a reader that went away does not change the verdict."""
    try:
        sys.stdout.buffer.write(text.encode(sys.stdout.encoding or "ascii", "backslashreplace"))
        sys.stdout.buffer.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the interpreter flushes once more at exit


if __name__ == "__main__":
    sys.exit(main())
