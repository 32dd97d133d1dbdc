"""Files of which a verifier cannot tell anything, and must say so."""

import copy
import json
from collections.abc import Iterator

from tests.vectors.builder import Object, log_bundle, session_bundle, text_of, thoughts_bundle
from tests.vectors.honest import S, sized, small, story
from tests.vectors.vector import Vector


def unclear(name: str, says: str, content: Object | str | bytes, code: str = "") -> Vector:
    return Vector(name, says, content, code or "malformed-bundle", None, "cannot tell")


def vectors() -> Iterator[Vector]:
    yield from versions()
    yield from lines()
    yield from encodings()
    yield from proofs()
    yield from heads()


def versions() -> Iterator[Vector]:
    bundle = log_bundle(small())
    for name, says, content in (
        ("version-3", "of a later format", {**bundle, "format": "colibri-bundle/3"}),
        ("version-1", "one JSON text", '{"format":"colibri-bundle/1","headers":[\n'),
        ("version-spaced", "with spaces", '{ "format": "colibri-bundle/x" }'),
    ):
        yield unclear(name, says, content, "unknown-version")
    yield unclear("no-format", "of no format", {**bundle, "format": "zip"})
    nothing = {**bundle, "headers": [], "payloads": {}}
    yield unclear("no-records", "of nothing", nothing, "empty-bundle")


def lines() -> Iterator[Vector]:
    text = text_of(log_bundle(small()))
    first, second, *more = text.splitlines(keepends=True)
    last = more[-1]
    for name, says, content in (
        ("member-unknown", "a member more", text.replace(b'"scope"', b'"more":1,"scope"', 1)),
        ("member-missing", "no head", text.removesuffix(last) + b'{"head":{}}\n'),
        ("member-twice", "two logs", text.replace(b'"scope"', b'"log":"","scope"', 1)),
        ("members-in-another-order", "nonce first", text.replace(second, turned(second))),
        ("header-twice", "in one line", text.replace(b'{"body"', b'{"header":"QQ==","body"', 1)),
        ("body-without-nonce", "of record 1", text.replace(second, second[:-55] + b'"}\n')),
        ("space-in-a-line", "before record 1", text.replace(b'{"body"', b'{ "body"', 1)),
        ("cut-short", "half a file", text[: len(text) // 2]),
        ("last-line-missing", "no head", text.removesuffix(last)),
        ("last-newline-missing", "the head", text[:-1]),
        ("last-line-twice", "two heads", text + last),
        ("empty-line", "after the first", text.replace(b"\n", b"\n\n", 1)),
        ("carriage-returns", "before each newline", text.replace(b"\n", b"\r\n")),
        ("first-line-missing", "no log", text.removeprefix(first)),
        ("first-line-last", "at the end", text.removeprefix(first) + first),
        ("array", "a list", b"[]\n"),
        ("empty", "an empty file", b""),
        ("not-utf-8", "bytes", text.replace(b"colibri/", b"colibri\xff", 1)),
        ("byte-order-mark", "before it all", b"\xef\xbb\xbf" + text),
        ("too-deep", "100,000 brackets", b"[" * 100_000 + b"]" * 100_000),
    ):
        yield unclear(name, says, content)


def turned(line: bytes) -> bytes:
    """The members in another order."""
    return json.dumps(dict(reversed(json.loads(line).items())), separators=(",", ":")).encode()


def encodings() -> Iterator[Vector]:
    bundle = log_bundle(small())
    text = text_of(bundle)
    seq = f'"seq":{bundle["head"]["seq"]}'.encode()
    for name, number in {
        "float": "17.0",
        "exponent": "17e0",
        "nan": "NaN",
        "infinity": "Infinity",
        "big-integer": "9007199254740993",
        "huge-integer": "9" * 5000,
    }.items():
        edited = text.replace(seq, f'"seq":{number}'.encode())
        yield unclear(f"number-{name}", "as head.seq", edited)
    nonce = bundle["payloads"]["1"]["nonce"]
    loose = nonce[:-2] + chr(ord(nonce[-2]) + 1) + "="
    for name, says, old, new in (
        ("hex-in-capitals", "head.leaf", bundle["head"]["leaf"], bundle["head"]["leaf"].upper()),
        ("base64-with-loose-bits", "the same bytes, written otherwise", nonce, loose),
        ("base64-with-a-line-break", "in a header", "A", "A\\n"),
        ("nonce-too-short", "three bytes", nonce, "AAAA"),
        ("lone-surrogate", "in log", "colibri/5", "\\ud800colibri/5"),
    ):
        yield unclear(name, says, text.replace(old.encode(), new.encode(), 1))


def proofs() -> Iterator[Vector]:
    bundle = thoughts_bundle(sized(2), S, [0])
    yield unclear("proofs-without-scope", "of which session?", {**bundle, "scope": None})
    text = text_of(bundle)
    *records, proof, last = text.splitlines(keepends=True)
    turned = b"".join([*records[:-1], proof, records[-1], last])
    yield unclear("proof-before-a-record", "the seal comes after it", turned)
    edited = copy.deepcopy(bundle)
    edited["proofs"][0]["path"][0] = edited["proofs"][0]["path"][0][:-2]
    yield unclear("proof-step-too-short", "31 bytes", edited)
    edited = copy.deepcopy(bundle)
    edited["proofs"][0]["index"] = -1
    yield unclear("proof-index-negative", "-1", edited)
    scope = {"session": "../../etc"}
    yield unclear("scope-path", "a path", {**session_bundle(small(), S), "scope": scope})


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
