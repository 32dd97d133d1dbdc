"""Lies about a bundle: a kit that writes a chain anew, and the lies that need no kit."""

import json
import uuid
from base64 import b64decode
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tests.vectors.builder import ZEROS, b64, canonical, merkle, sha

JSON = dict[str, Any]
SESSION, ASIDE = "S-roof", "S-aside"


@dataclass
class Exports:
    """What the product exported, parsed; `other` is the same session told in another log."""

    session: JSON
    log: JSON
    thoughts: JSON
    task: JSON
    other: JSON


class Told(NamedTuple):
    """A changed bundle, the record that the lie is about, and what its reader knows."""

    bundle: JSON
    at: int | None
    root: str | None = None
    head: JSON | None = None


Lie = Callable[[Exports], Told]
LIES: dict[str, tuple[Lie, set[str]]] = {}


def lie(*codes: str) -> Callable[[Lie], Lie]:
    """A lie by its function's name, and the codes by which it must be found."""

    def known(tell: Lie) -> Lie:
        name = tell.__name__.replace("_", " ")
        assert name not in LIES
        LIES[name] = (tell, set(codes))
        return tell

    return known


def leaf_of(header: bytes) -> str:
    return sha(b"\0", header).hex()


def flipped(hash: str) -> str:
    return f"{int(hash, 16) ^ 1:064x}"


# A chain written anew: all that follows from the lie is right


@dataclass
class Entry:
    """A record; `claims` and `names` are the lies, in its payload and its header."""

    header: JSON
    step: int  # from the seq of the record before it
    nonce: bytes = bytes(32)
    body: JSON | None = None
    claims: JSON = field(default_factory=dict)
    names: JSON = field(default_factory=dict)


@dataclass
class Trail:
    """A session while it is written anew."""

    is_open: bool = False
    leaves: list[str] = field(default_factory=list)
    seqs: list[int] = field(default_factory=list)


class Forgery:
    """A bundle as entries to change, and `made`, the bundle that they make."""

    def __init__(self, bundle: JSON) -> None:
        self.bundle = bundle
        self.entries: list[Entry] = []
        before = 0
        for data in bundle["headers"]:
            header = json.loads(b64decode(data))
            entry = Entry(header, header["seq"] - before)
            if item := bundle["payloads"].get(str(header["seq"])):
                entry.nonce, entry.body = (
                    b64decode(item["nonce"]),
                    json.loads(b64decode(item["body"])),
                )
            self.entries.append(entry)
            before = header["seq"]

    def find(self, kind: str, number: int = 0, **members: Any) -> Entry:
        """The record of this kind with this number; members are of its header."""
        wanted = {"kind": kind, **members}
        return [entry for entry in self.entries if wanted.items() <= entry.header.items()][number]

    def move(self, task: str, status: str, number: int = 0) -> Entry:
        moves = [
            entry
            for entry in self.entries
            if entry.header["kind"] == "task"
            and entry.header["task"] == task
            and entry.body
            and entry.body["set"].get("status", [None, None])[1] == status
        ]
        return moves[number]

    def call(self, entry: Entry) -> list[Entry]:
        """All records of the call that wrote it."""
        return [other for other in self.entries if other.header["call"] == entry.header["call"]]

    def drop(self, *dropped: Entry) -> None:
        self.entries = [entry for entry in self.entries if not any(entry is one for one in dropped)]

    def repeat(self, entry: Entry, before: Entry | None = None) -> Entry:
        """The whole call once more, as another call, before a record or at the end; the copy."""
        call = self.call(entry)
        copies = [deepcopy(one) for one in call]
        for copy in copies:
            copy.header["call"] = str(uuid.UUID(int=7, version=4))
            copy.step = 1
        place = len(self.entries) if before is None else self.entries.index(before)
        self.entries[place:place] = copies
        return copies[call.index(entry)]

    def made(self) -> JSON:
        headers, payloads, writer = [], {}, Writer(fills=not self.bundle["proofs"])
        for entry in self.entries:
            headers.append(b64(writer.write(entry)))
            if entry.body is not None:
                item = {"nonce": b64(entry.nonce), "body": b64(canonical(entry.body))}
                payloads[str(entry.header["seq"])] = item
        head = {"seq": writer.seq, "leaf": writer.leaf}
        return {**self.bundle, "headers": headers, "payloads": payloads, "head": head}

    def told(self, at: Entry) -> Told:
        return Told(self.made(), at.header["seq"])


class Writer:
    """Writes records one after another; what depends on others is set right, but for the lies."""

    def __init__(self, *, fills: bool) -> None:
        self.seq, self.leaf, self.fills = 0, ZEROS, fills
        self.enters: dict[str, int] = {}
        self.trails: dict[str | None, Trail] = {}
        self.tasks: dict[str, JSON] = {}

    def write(self, entry: Entry) -> bytes:
        header, body = entry.header, entry.body
        self.seq += entry.step
        header["seq"] = self.seq
        if self.seq == 1:
            header["prev"] = sha(b"colibri/ledger/v1\n", header["log"].encode()).hex()
        elif entry.step == 1:
            header["prev"] = self.leaf
        if body is not None:
            if self.fills:
                self.fill(header, body)
            body.update(entry.claims)
            committed = sha(b"colibri/payload/v1\n", entry.nonce, canonical(body))
            header["payload"] = committed.hex()
        header.update(entry.names)
        self.leaf = leaf_of(canonical(header))
        self.learn(header, body)
        return canonical(header)

    def fill(self, header: JSON, body: JSON) -> None:
        kind, trail = header["kind"], self.trails.get(header["session"], Trail())
        if kind == "call.exit":
            body["enter"] = self.enters.get(header["call"], body["enter"])
        elif kind == "thought":
            body["thought_id"] = f"R-{self.seq}"
            if trail.is_open:
                body["index"], body["prev"] = len(trail.leaves), [ZEROS, *trail.leaves][-1]
        elif kind == "session.seal" and trail.is_open:
            body["root"] = merkle([bytes.fromhex(leaf) for leaf in trail.leaves]).hex()
            body["count"] = len(trail.leaves)
            body["first_seq"], body["last_seq"] = trail.seqs[0], trail.seqs[-1]
        elif kind in ("task", "task.text") and header["task"] in self.tasks:
            known = self.tasks[header["task"]]
            shares = kind == "task.text" and known["call"] == header["call"]
            body["version"] = known["version"] + (not shares)
            for name, pair in body["set"].items():
                pair[0] = known["values"].get(name)
            if kind == "task":
                retry = body["set"].get("status") == ["VERIFY", "GATHER"]
                body["attempt"] = known["attempt"] + retry

    def learn(self, header: JSON, body: JSON | None) -> None:
        kind, trail = header["kind"], self.trails.setdefault(header["session"], Trail())
        if kind == "call.enter":
            self.enters[header["call"]] = self.seq
        elif kind in ("session.open", "session.seal"):
            trail.is_open = kind == "session.open"
        elif kind == "thought" and trail.is_open:
            trail.leaves.append(self.leaf)
            trail.seqs.append(self.seq)
        elif kind in ("task", "task.text") and body is not None:
            known = self.tasks.setdefault(header["task"], {"values": {}})
            known |= {"version": body["version"], "call": header["call"]}
            known["attempt"] = body.get("attempt", known.get("attempt"))
            known["values"] |= {name: new for name, (_, new) in body["set"].items()}


# Lies that leave everything else as it was


def header_at(bundle: JSON, place: int) -> JSON:
    header: JSON = json.loads(b64decode(bundle["headers"][place]))
    return header


def place_of(bundle: JSON, kind: str, number: int = 0, **members: Any) -> int:
    wanted = {"kind": kind, **members}.items()
    places = range(len(bundle["headers"]))
    return [place for place in places if wanted <= header_at(bundle, place).items()][number]


def of_session(bundle: JSON, kind: str, number: int = 0) -> tuple[int, int]:
    """Place and seq of a record of the session."""
    place = place_of(bundle, kind, number, session=SESSION)
    return place, header_at(bundle, place)["seq"]


def leave_out(bundle: JSON, *places: int) -> None:
    """The whole calls that wrote these records, and the proofs of their thoughts."""
    calls = {header_at(bundle, place)["call"] for place in places}
    every = [header_at(bundle, place) for place in range(len(bundle["headers"]))]
    gone = {header["seq"] for header in every if header["call"] in calls}
    kept = zip(bundle["headers"], every, strict=True)
    bundle["headers"] = [text for text, header in kept if header["seq"] not in gone]
    bundle["payloads"] = {k: it for k, it in bundle["payloads"].items() if int(k) not in gone}
    bundle["proofs"] = [proof for proof in bundle["proofs"] if proof["seq"] not in gone]


def tell_each(
    bundle: str, what: str, lies: JSON, change: Callable[[JSON, Any], int | None]
) -> None:
    """A family of lies: name → (what is changed, code), and how that is done."""

    def telling(how: Any) -> Lie:
        def tell(of: Exports) -> Told:
            changed: JSON = getattr(of, bundle)
            at = change(changed, how)
            return Told(changed, at)

        return tell

    for name, (how, *codes) in lies.items():
        LIES[f"{what}: {name}"] = (telling(how), set(codes))


def change_header(bundle: JSON, change: JSON) -> int:
    place, seq = of_session(bundle, "thought", 2)
    header = {**header_at(bundle, place), **change}
    bundle["headers"][place] = b64(canonical(header))
    return int(header["seq"]) if "seq" in change else seq


CALL = str(uuid.UUID(int=1, version=4))
tell_each(
    "session",
    "a header",
    {
        "v": ({"v": 2}, "bad-header"),
        "log": ({"log": "colibri/" + "0" * 32}, "foreign-record"),
        "seq": ({"seq": 1}, "wrong-order"),
        "at": ({"at": "2020-02-02T02:02:02.000000Z"}, "altered-header"),
        "kind": ({"kind": "call.enter"}, "altered-header"),
        "call": ({"call": CALL}, "altered-header"),
        "session": ({"session": ASIDE}, "altered-header"),
        "task": ({"task": "T-0001"}, "altered-header"),
        "agent": ({"agent": "eve"}, "altered-header"),
        "payload": ({"payload": ZEROS}, "altered-header"),
        "prev": ({"prev": ZEROS}, "altered-header"),
        "unknown member": ({"note": "true"}, "bad-header"),
        "no session": ({"session": None}, "bad-header"),
    },
    change_header,
)


def change_payload(bundle: JSON, how: tuple[str, Callable[[JSON, JSON], JSON]]) -> int:
    kind, change = how
    _, seq = of_session(bundle, kind)
    item = bundle["payloads"][str(seq)]
    item |= change(item, json.loads(b64decode(item["body"])))
    return seq


def bodied(**members: Any) -> Callable[[JSON, JSON], JSON]:
    return lambda _, body: {"body": b64(canonical({**body, **members}))}


tell_each(
    "session",
    "a payload",
    {
        "a byte": (("thought", bodied(content="now, GATHER")), "altered-payload"),
        "its nonce": (("thought", lambda *_: {"nonce": b64(bytes(32))}), "altered-payload"),
        "not canonical": (
            ("thought", lambda _, body: {"body": b64(json.dumps(body).encode())}),
            "altered-payload",
        ),
        "the intent": (("session.open", bodied(intent="another")), "altered-payload"),
        "the outcome": (("call.exit", bodied(outcome="cancelled")), "altered-payload"),
        "the seal's root": (("session.seal", bodied(root=ZEROS)), "altered-payload"),
        "the seal's count": (("session.seal", bodied(count=2)), "altered-payload"),
        "the seal's first": (("session.seal", bodied(first_seq=1)), "altered-payload"),
        "the seal's last": (("session.seal", bodied(last_seq=99)), "altered-payload"),
    },
    change_payload,
)


def change_proof(bundle: JSON, change: Callable[[JSON], JSON]) -> int:
    proof = bundle["proofs"][0]
    proof |= change(proof)
    return int(proof["seq"])


PROOFS: JSON = {
    "a step": (lambda p: {"path": [flipped(p["path"][0]), *p["path"][1:]]}, "bad-proof"),
    "a step less": (lambda p: {"path": p["path"][:-1]}, "bad-proof"),
    "no step": (lambda _: {"path": []}, "bad-proof"),
    "a step more": (lambda p: {"path": [*p["path"], ZEROS]}, "bad-proof"),
    "steps swapped": (lambda p: {"path": p["path"][::-1]}, "bad-proof"),
    "index": (lambda p: {"index": p["index"] + 1}, "bad-proof"),
    "size": (lambda p: {"size": p["size"] + 1}, "bad-proof"),
}
tell_each("thoughts", "a proof", PROOFS, change_proof)
tell_each("task", "a proof for a task", PROOFS, change_proof)


def change_bundle(bundle: JSON, how: tuple[JSON, int | None]) -> int | None:
    """`at` counts from the bundle's last record; None is: about no record."""
    changed, at = how
    last: int = header_at(bundle, -1)["seq"]
    bundle |= changed
    return None if at is None else last + at


tell_each(
    "session",
    "the bundle",
    {
        "version": (({"format": "colibri-bundle/3"}, None), "unknown-version"),
        "format": (({"format": "zip"}, None), "malformed-bundle"),
        "unknown member": (({"note": "true"}, None), "malformed-bundle"),
        "no headers": (({"headers": []}, None), "empty-bundle"),
        "a header that is not base64": (({"headers": ["?"]}, None), "malformed-bundle"),
        "head of no hash": (({"head": {"seq": 1, "leaf": ""}}, None), "malformed-bundle"),
        "head before the end": (({"head": {"seq": 1, "leaf": ZEROS}}, 0), "wrong-head"),
        "head beyond the end": (({"head": {"seq": 999, "leaf": ZEROS}}, 1), "truncated"),
        "scope of no session": (({"scope": {"session": "S-9"}}, None), "missing-record"),
    },
    change_bundle,
)
