"""Lies told in a finished bundle, by someone who did not rewrite the chain."""

import base64
import copy
from collections.abc import Iterator

from tests.vectors.builder import (
    OTHER_LOG,
    Log,
    Object,
    b64,
    bundle_of,
    canonical,
    edit_header,
    edit_payload,
    header_at,
    log_bundle,
    rehead,
    session_bundle,
    sha,
    thoughts_bundle,
    uuid,
    without,
)
from tests.vectors.honest import S, erased, other_evidence, seal_root, sized, small, story
from tests.vectors.vector import Vector


def vectors() -> Iterator[Vector]:
    yield from headers()
    yield from places()
    yield from payloads()
    yield from sessions()
    yield from proofs()
    yield from outside()


def headers() -> Iterator[Vector]:
    """Each member of a header, and its form."""
    bundle = log_bundle(small())
    altered = {
        "at": "2025-01-01T00:00:00.000000Z",
        "kind": "session.seal",
        "call": uuid("another"),
        "session": "another",
        "task": "T-0009",
        "agent": "somebody else",
        "payload": sha(b"another").hex(),
        "prev": sha(b"another").hex(),
    }
    for name, value in altered.items():
        edited = edit_header(bundle, 8, **{name: value})
        yield Vector(f"header-{name}", f"record 8 has another {name}", edited, "altered-header", 8)
    edited = edit_header(bundle, 8, v=2)
    yield Vector("header-v", "record 8 is of version 2", edited, "bad-header", 8)
    edited = edit_header(bundle, 8, log=OTHER_LOG)
    yield Vector("header-log", "record 8 names another log", edited, "foreign-record", 8)
    edited = edit_header(bundle, 8, seq=80)
    yield Vector("header-seq", "record 8 calls itself 80", edited, "wrong-order", 9)
    edited = edit_header(bundle, 8, kind="thought.deleted")
    yield Vector("header-kind-unknown", "record 8 is of no kind", edited, "bad-header", 8)
    edited = edit_header(bundle, 8, note="fine")
    yield Vector("header-member-added", "record 8 has a member more", edited, "bad-header", 8)
    edited = copy.deepcopy(bundle)
    short = {k: v for k, v in header_at(bundle, 8).items() if k != "agent"}
    edited["headers"][7] = b64(canonical(short))
    yield Vector("header-member-removed", "record 8 has no agent", edited, "bad-header", 8)
    edited = copy.deepcopy(bundle)
    spaced = base64.b64decode(bundle["headers"][7]).replace(b'","', b'", "')
    edited["headers"][7] = b64(spaced)
    yield Vector("header-not-canonical", "spaces in record 8", edited, "bad-header")
    edited = edit_header(bundle, 8, session=None)
    yield Vector(
        "header-thought-without-session", "record 8 of no session", edited, "bad-header", 8
    )
    edited = edit_header(bundle, 17, at="2025-01-01T00:00:00.000000Z")
    yield Vector("header-of-the-last-record", "record 17 has another at", edited, "wrong-head", 17)


def places() -> Iterator[Vector]:
    """Which records there are, and where."""
    bundle = log_bundle(small())
    yield Vector("record-removed", "record 10 is gone", without(bundle, 10), "missing-record", 10)
    yield Vector(
        "first-record-removed", "record 1 is gone", without(bundle, 1), "missing-record", 1
    )
    edited = copy.deepcopy(bundle)
    edited["headers"][6:8] = reversed(edited["headers"][6:8])
    yield Vector("records-swapped", "records 7 and 8 changed places", edited, "wrong-order", 7)
    edited = copy.deepcopy(bundle)
    edited["headers"].insert(7, edited["headers"][7])
    yield Vector("record-twice", "record 8 comes twice", edited, "wrong-order", 8)
    cut = without(bundle, 16, 17)
    yield Vector("tail-cut-off", "records 16 and 17 are gone", cut, "truncated", 16)
    other = Log(OTHER_LOG)
    other.drafts = small().drafts
    edited = copy.deepcopy(bundle)
    edited["headers"][7] = log_bundle(other)["headers"][7]
    yield Vector("record-of-another-log", "record 8 of another log", edited, "foreign-record", 8)
    edited = {**copy.deepcopy(bundle), "log": OTHER_LOG}
    yield Vector("log-renamed", "the bundle names another log", edited, "foreign-record", 1)
    edited = copy.deepcopy(bundle)
    edited["head"]["leaf"] = sha(b"another").hex()
    yield Vector("head-leaf", "head has another leaf", edited, "wrong-head", 17)
    edited = copy.deepcopy(bundle)
    edited["head"] = {"seq": 16, "leaf": small().make().leaves[15].hex()}
    yield Vector("head-seq", "head is the record before the last", edited, "wrong-head", 17)


def payloads() -> Iterator[Vector]:
    bundle = log_bundle(small())
    edited = edit_payload(bundle, 8, content="I advised against it")
    yield Vector("payload-content", "thought 8 says something else", edited, "altered-payload", 8)
    edited = edit_payload(bundle, 9, outcome="refused", code="ERR_NOT_FOUND")
    yield Vector("payload-outcome", "call 9 was refused", edited, "altered-payload", 9)
    edited = copy.deepcopy(bundle)
    edited["payloads"]["8"]["nonce"] = b64(sha(b"another"))
    yield Vector("payload-nonce", "another nonce for record 8", edited, "altered-payload", 8)
    edited = copy.deepcopy(bundle)
    edited["payloads"]["8"] = bundle["payloads"]["11"]
    yield Vector("payload-of-another-record", "record 11's for 8", edited, "altered-payload", 8)
    edited = copy.deepcopy(bundle)
    del edited["payloads"]["8"]
    yield Vector("payload-removed", "that of record 8 is gone", edited, "missing-payload", 8)
    gone = log_bundle(erased())
    gone["payloads"]["8"] = bundle["payloads"]["8"]
    yield Vector("payload-erased-yet-there", "8 was erased, and is here", gone, "erased-payload", 8)


def sessions() -> Iterator[Vector]:
    """Session bundles."""
    whole = story()
    made = whole.make()
    bundle = session_bundle(whole, S, ("T-0001", "T-0002"))
    kinds = {h["seq"]: h for h in (header_at(bundle, n) for n in seqs(bundle))}
    start = next(n for n, h in kinds.items() if (h["kind"], h["session"]) == ("session.open", S))
    inside = next(n for n, h in kinds.items() if h["session"] == "other" and n > start)
    thought = next(n for n, h in kinds.items() if (h["kind"], h["session"]) == ("thought", S))
    seal = next(n for n, h in kinds.items() if h["kind"] == "session.seal")

    edited = without(bundle, inside)
    yield Vector(
        "session-foreign-record-removed",
        "another session's record",
        edited,
        "missing-record",
        inside,
    )
    edited = without(bundle, thought)
    yield Vector("session-thought-removed", "its first thought", edited, "missing-record", thought)
    edited = without(bundle, start)
    yield Vector("session-open-removed", "its beginning", edited, "missing-record", None)
    edited = copy.deepcopy(bundle)
    del edited["payloads"][str(thought)]
    yield Vector("session-payload-removed", "of a thought", edited, "missing-payload", thought)
    texts = [n for n, h in kinds.items() if h["kind"] == "task.text" and n < start]
    edited = copy.deepcopy(bundle)
    del edited["payloads"][str(texts[0])]
    yield Vector("session-task-text-removed", "of a task", edited, "missing-payload", texts[0])
    shown = {int(n) for n in bundle["payloads"]} | {inside}
    edited = bundle_of(made, S, seqs(bundle), shown)
    yield Vector(
        "session-foreign-payload", "another session's payload", edited, "stray-payload", inside
    )
    edited = bundle_of(made, S, [1, *seqs(bundle)], [int(n) for n in bundle["payloads"]])
    yield Vector("session-foreign-record", "a ping before it all", edited, "stray-record", 1)
    edited = without(bundle, start - 1)
    yield Vector("session-enter-removed", "of its beginning", edited, "missing-record", start)
    edited = rehead(without(bundle, *(n for n in seqs(bundle) if n >= seal - 1)))
    yield Vector(
        "session-seal-cut-off",
        "the seal is cut off, and its root is known",
        edited,
        "root-differs",
        None,
        root=seal_root(whole),
    )
    older = other_evidence()
    edited = session_bundle(older, S, ["T-0001"])
    yield Vector(
        "session-task-creation-removed",
        "the call that created the task is gone",
        without(edited, 1, 2, 3, 4),
        "missing-record",
        9,
    )
    yield Vector(
        "session-task-move-removed",
        "a move before the session is gone",
        without(edited, 11, 12, 13),
        "missing-record",
        15,
    )


def seqs(bundle: Object) -> list[int]:
    from tests.vectors.builder import headers as all_headers

    return [header["seq"] for header in all_headers(bundle)]


def proofs() -> Iterator[Vector]:
    """Thoughts bundles: thought 5 of 8 is record 20."""
    bundle = thoughts_bundle(sized(8), S, [5])
    thought = bundle["proofs"][0]["seq"]
    path = bundle["proofs"][0]["path"]

    def proof(name: str, says: str, **members: object) -> Vector:
        edited = copy.deepcopy(bundle)
        edited["proofs"][0].update(members)
        seq = edited["proofs"][0]["seq"]
        return Vector(f"proof-{name}", says, edited, "bad-proof", seq)

    for at in range(3):
        other = [*path[:at], sha(b"another").hex(), *path[at + 1 :]]
        yield proof(f"step-{at}", f"step {at} is another", path=other)
    yield proof("step-missing", "the last step is gone", path=path[:-1])
    yield proof("step-added", "a step too many", path=[*path, sha(b"another").hex()])
    yield proof("steps-swapped", "two steps changed places", path=[path[1], path[0], path[2]])
    yield proof("empty", "no steps at all", path=[])
    yield proof("index", "another index", index=4)
    yield proof("index-out-of-range", "index 8 of 8", index=8)
    yield proof("size", "another size", size=7)
    yield proof("size-0", "of an empty tree", size=0)
    yield proof("size-1", "of a tree of one, without steps", size=1, index=0, path=[])
    edited = copy.deepcopy(bundle)
    edited["proofs"].append(edited["proofs"][0])
    yield Vector("proof-twice", "the same proof twice", edited, "bad-proof", thought)
    edited = copy.deepcopy(bundle)
    edited["proofs"].append({**edited["proofs"][0], "seq": thought + 1})
    yield Vector("proof-of-no-thought", "of a record not here", edited, "bad-proof", thought + 1)
    edited = thoughts_bundle(sized(8), S, [5, 6])
    edited["proofs"].pop()
    yield Vector(
        "proof-missing", "one of two thoughts has none", edited, "missing-proof", thought + 3
    )
    edited = rehead(without(bundle, bundle["head"]["seq"]))
    yield Vector("proof-without-seal", "the seal is not here", edited, "missing-record", None)
    larger = thoughts_bundle(sized(5), S, [4])
    larger["proofs"][0]["path"] = []
    larger["proofs"][0] |= {"index": 4, "size": 5}
    yield Vector("proof-of-a-promoted-leaf-empty", "the last of five", larger, "bad-proof", 17)


def outside() -> Iterator[Vector]:
    """Lies that only show against what the user knows from elsewhere."""
    bundle = log_bundle(small())
    leaves = small().make().leaves
    cut = rehead(without(bundle, 16, 17))
    yield Vector(
        "outside-tail-cut-off",
        "records 16 and 17 are gone, and the head with them",
        cut,
        "truncated",
        16,
        head=(17, leaves[16].hex()),
    )
    anew = small()
    anew.drafts[7].body["content"] = "I advised against it"
    yield Vector(
        "outside-log-written-anew",
        "a thought is another, and all that follows is hashed anew; an old head is known",
        log_bundle(anew),
        "head-differs",
        9,
        head=(9, leaves[8].hex()),
    )
    yield Vector(
        "outside-session-written-anew",
        "the same, and the root is known",
        session_bundle(anew, S),
        "root-differs",
        14,
        root=seal_root(small()),
    )
