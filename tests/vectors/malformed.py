"""Files of which a verifier cannot tell anything, and must say so."""

import copy
import json
from collections.abc import Iterator

from tests.vectors.builder import Object, log_bundle, session_bundle, thoughts_bundle
from tests.vectors.honest import S, sized, small, story
from tests.vectors.vector import Vector


def unclear(name: str, says: str, content: Object | str | bytes, code: str = "") -> Vector:
    return Vector(name, says, content, code or "malformed-bundle", None, "cannot tell")


def vectors() -> Iterator[Vector]:
    yield from shapes()
    yield from encodings()
    yield from proofs()
    yield from heads()


def shapes() -> Iterator[Vector]:
    bundle = log_bundle(small())
    text = json.dumps(bundle)

    yield unclear(
        "version-2",
        "of a later format",
        {**bundle, "format": "colibri-bundle/2"},
        "unknown-version",
    )
    yield unclear("no-format", "of no format", {**bundle, "format": "zip"})
    yield unclear(
        "no-records",
        "of nothing",
        {**bundle, "headers": [], "payloads": {}, "seals": []},
        "empty-bundle",
    )
    yield unclear("member-unknown", "a member more", {**bundle, "verified": True})
    yield unclear("member-missing", "no head", {k: v for k, v in bundle.items() if k != "head"})
    yield unclear(
        "member-twice", "two heads", text[:-1] + ', "head": ' + json.dumps(bundle["head"]) + "}"
    )
    twice = text.replace(
        '"payloads": {', '"payloads": {"1": ' + json.dumps(bundle["payloads"]["1"]) + ", "
    )
    yield unclear("payload-twice", "two payloads for record 1", twice)
    yield unclear("cut-short", "half a file", text[: len(text) // 2])
    yield unclear("two-values", "something follows", text + "{}")
    yield unclear("array", "a list", "[]")
    yield unclear("empty", "an empty file", "")
    yield unclear("not-utf-8", "bytes", text.encode().replace(b"colibri/", b"colibri\xff", 1))
    yield unclear("byte-order-mark", "before it all", b"\xef\xbb\xbf" + text.encode())
    yield unclear("too-deep", "100,000 brackets", "[" * 100_000 + "]" * 100_000)


def encodings() -> Iterator[Vector]:
    bundle = log_bundle(small())
    text = json.dumps(bundle)
    seq = f'"seq": {bundle["head"]["seq"]}'
    for name, number in {
        "float": "17.0",
        "exponent": "17e0",
        "nan": "NaN",
        "infinity": "Infinity",
        "big-integer": "9007199254740993",
        "huge-integer": "9" * 5000,
    }.items():
        yield unclear(f"number-{name}", "as head.seq", text.replace(seq, f'"seq": {number}'))
    edited = copy.deepcopy(bundle)
    edited["head"]["leaf"] = edited["head"]["leaf"].upper()
    yield unclear("hex-in-capitals", "head.leaf", edited)
    padded = copy.deepcopy(bundle)
    nonce = padded["payloads"]["1"]["nonce"]
    padded["payloads"]["1"]["nonce"] = nonce[:-2] + chr(ord(nonce[-2]) + 1) + "="
    yield unclear("base64-with-loose-bits", "the same bytes, written otherwise", padded)
    edited = copy.deepcopy(bundle)
    edited["headers"][0] = edited["headers"][0].replace("A", "A\n", 1)
    yield unclear("base64-with-a-line-break", "in a header", edited)
    edited = copy.deepcopy(bundle)
    edited["payloads"]["01"] = edited["payloads"].pop("1")
    yield unclear("payload-key-01", "not 1", edited)
    edited = copy.deepcopy(bundle)
    edited["payloads"]["1"]["nonce"] = "AAAA"
    yield unclear("nonce-too-short", "three bytes", edited)
    surrogate = text.replace('"log": "colibri/', '"log": "\\ud800colibri/', 1)
    yield unclear("lone-surrogate", "in log", surrogate)


def proofs() -> Iterator[Vector]:
    bundle = thoughts_bundle(sized(2), S, [0])
    yield unclear("proofs-without-scope", "of which session?", {**bundle, "scope": None})
    edited = copy.deepcopy(bundle)
    edited["proofs"][0]["path"][0] = edited["proofs"][0]["path"][0][:-2]
    yield unclear("proof-step-too-short", "31 bytes", edited)
    edited = copy.deepcopy(bundle)
    edited["proofs"][0]["index"] = -1
    yield unclear("proof-index-negative", "-1", edited)
    yield unclear(
        "scope-path", "a path", {**session_bundle(small(), S), "scope": {"session": "../../etc"}}
    )


def heads() -> Iterator[Vector]:
    made = story().make()
    gap = session_bundle(story(), S, ("T-0001", "T-0002"))
    vector = unclear(
        "head-in-a-gap", "the head given is not in the bundle", gap, "head-not-covered"
    )
    vector.head, vector.seq = (1, made.leaves[0].hex()), 1
    yield vector
    gap = session_bundle(small(), S)
    vector = unclear("head-after-the-stretch", "the same, after it", gap, "head-not-covered")
    vector.head, vector.seq = (17, small().make().leaves[16].hex()), 17
    yield vector
