"""Hostile bundles: whatever the bytes, a verdict of 1 or 2, no traceback, and soon."""

import base64
import copy
import json
import time
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.vectors.builder import Log, Object, b64, canonical, log_bundle, session_bundle
from tests.vectors.honest import S, finished, small
from tests.verify.conftest import VECTORS, Node, load_verifier

verifier = load_verifier()
quick = settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))

GAPS = "session-call-ends-after-it"  # a session bundle that cannot pass for a whole log
GOOD = {
    name: json.loads((VECTORS / "good" / f"{name}.colibri.json").read_bytes())
    for name in ("log", "session", "thoughts-of-3", GAPS)
}
OTHERS: tuple[Any, ...] = (None, True, 0, -1, 1.5, 2**53, "", "x", [], {}, [[]], {"a": 1})


def exit_code(data: bytes) -> int:
    code = verifier.verify(data).exit_code
    assert isinstance(code, int)
    return code


# Wrong types at every place


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every value inside a value, itself included."""
    yield path
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in items:
            yield from places(item, (*path, key))


def with_other(value: Any, path: tuple[Any, ...], other: Any) -> Any:
    if not path:
        return other
    changed = copy.copy(value)
    changed[path[0]] = with_other(value[path[0]], path[1:], other)
    return changed


def at(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


def is_same(a: Any, b: Any) -> bool:
    return type(a) is type(b) and a == b


def swaps(value: Any) -> Iterator[Any]:
    for path in places(value):
        for other in OTHERS:
            if not is_same(at(value, path), other):
                yield with_other(value, path, other)


@pytest.mark.parametrize("name", ["log", "thoughts-of-3", GAPS])
def test_another_type_at_any_place_of_a_bundle_is_never_good(name: str) -> None:
    count = 0
    for changed in swaps(GOOD[name]):
        count += 1
        assert exit_code(json.dumps(changed).encode()) in (1, 2)
    assert count > 400


def test_both_verifiers_say_the_same_of_every_wrong_type(node: Node) -> None:
    bundle = GOOD["thoughts-of-3"]
    texts = [json.dumps(changed).encode() for changed in swaps(bundle)]
    answers = node("verify", [{"base64": b64(text)} for text in texts])
    for text, answer in zip(texts, answers, strict=True):
        mine = verifier.verify(text).as_json()
        assert codes(answer) == codes(mine), text
        assert answer["verdict"] == mine["verdict"]


def codes(verdict: Object) -> list[tuple[str, int | None]]:
    return [(finding["code"], finding["seq"]) for finding in verdict["findings"]]


def one_of_each() -> Log:
    log = finished()
    log.seal(S)
    log.erase(log.drafts[23])
    return log


def bodies_with_other_types() -> Iterator[bytes]:
    """A log in one payload of which something has another type, hashed anew."""
    seen = set()
    for number, draft in enumerate(one_of_each().drafts):
        if draft.kind in seen:
            continue
        seen.add(draft.kind)
        plain = {name: None if callable(value) else value for name, value in draft.body.items()}
        for path in places(plain):
            for other in OTHERS if path else ():
                if not is_same(at(plain, path), other):
                    log = one_of_each()
                    body = log.drafts[number].body
                    body[path[0]] = with_other(body[path[0]], path[1:], other)
                    yield json.dumps(log_bundle(log)).encode()


def test_another_type_inside_any_payload_never_raises() -> None:
    """Some of these are legal (another reason, say); none may end in a traceback."""
    found = [exit_code(data) for data in bodies_with_other_types()]
    assert len(found) > 300
    assert found.count(1) > 0.8 * len(found)


# Any bytes at all


@quick
@given(st.binary(max_size=300))
def test_random_bytes_cannot_be_judged(data: bytes) -> None:
    assert exit_code(data) == 2


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=12,
)


@quick
@given(json_values)
def test_random_json_cannot_be_judged(value: object) -> None:
    assert exit_code(json.dumps(value).encode()) == 2


@quick
@given(
    value=json_values,
    seq=st.integers(0, 16),
    name=st.sampled_from(sorted(verifier.members("header"))),
)
def test_a_random_value_in_a_header_is_never_good(value: object, seq: int, name: str) -> None:
    bundle = copy.deepcopy(GOOD["log"])
    header = json.loads(base64.b64decode(bundle["headers"][seq]))
    if is_same(header[name], value):
        return
    try:
        bundle["headers"][seq] = b64(canonical({**header, name: value}))
    except UnicodeEncodeError:
        return
    assert exit_code(json.dumps(bundle).encode()) == 1


@quick
@given(data=st.data())
def test_a_flipped_byte_of_a_bundle_is_never_good_with_its_head_known(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(["log", "session", "thoughts-of-3"]))
    text = bytearray(json.dumps(GOOD[name], separators=(",", ":")).encode())
    head = GOOD[name]["head"]
    where = data.draw(st.integers(0, len(text) - 1))
    text[where] ^= 1 << data.draw(st.integers(0, 7))
    verdict = verifier.verify(bytes(text), head=(head["seq"], head["leaf"]))
    assert verdict.exit_code in (1, 2), text[max(0, where - 20) : where + 20]


# Large, deep, twice


@pytest.mark.parametrize(
    "data",
    [
        b"[" * 1_000_000,
        b'{"a":' * 1_000_000,
        b"[" * 500 + b"]" * 500,
        b'{"format":"colibri-bundle/1","headers":' + b"[" * 200_000,
        b" " * 10_000_000,
        b'"' + b"\\n" * 5_000_000 + b'"',
        b"9" * 5_000_000,
        b"-" * 1000,
        b"\xff\xfe" + "{}".encode("utf-16-le"),
        b'{"a":1,"a":1}',
        b'{"__proto__":{"format":"colibri-bundle/1"}}',
    ],
    ids=range(11),
)
def test_deep_long_and_odd_texts_are_refused_alike_in_both(data: bytes, node: Node) -> None:
    started = time.monotonic()
    assert exit_code(data) == 2
    assert time.monotonic() - started < 20
    (answer,) = node("verify", [{"base64": b64(data)}])
    assert codes(answer) == codes(verifier.verify(data).as_json())


def test_a_file_of_100_mb_is_read_and_refused(tmp_path: Path) -> None:
    bundle = copy.deepcopy(GOOD["log"])
    bundle["headers"] = ["QUFB" * 1000] * 25_000
    path = tmp_path / "large.colibri.json"
    path.write_text(json.dumps(bundle), encoding="utf-8")
    assert path.stat().st_size > 100_000_000
    started = time.monotonic()
    verdict = verifier.verify_file(str(path), None, None)
    assert (verdict.exit_code, verdict.finding_count) == (1, 25_000)
    assert len(verdict.findings) == 100
    assert time.monotonic() - started < 60


def test_a_file_above_the_limit_is_refused_without_being_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "sparse.colibri.json"
    with path.open("wb") as file:
        file.truncate(verifier.MAX_FILE * 40)  # 10 GiB that take no room
    verdict = verifier.verify_file(str(path), None, None)
    assert [finding["code"] for finding in verdict.findings] == ["too-large"]
    monkeypatch.setattr(verifier, "MAX_FILE", 1000)
    assert codes(verifier.verify(b" " * 1001).as_json()) == [("too-large", None)]


def test_an_endless_file_is_read_no_further_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verifier, "MAX_FILE", 100_000)
    verdict = verifier.verify_file("/dev/zero", None, None)
    assert (verdict.exit_code, codes(verdict.as_json())) == (2, [("too-large", None)])


def test_dependencies_too_many_to_follow_end_in_cannot_tell(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = Log()
    for number in range(30):
        log.create(f"T-{number:04}", [f"T-{number - 1:04}"] if number else [])
    for _ in range(3):
        log.update("T-0029", depends_on=["T-0028", "T-0027"])
        log.update("T-0029", depends_on=["T-0028"])
    data = json.dumps(log_bundle(log)).encode()
    assert exit_code(data) == 0
    monkeypatch.setattr(verifier, "MAX_STEPS", 50)
    verdict = verifier.verify(data)
    assert (verdict.exit_code, codes(verdict.as_json())) == (2, [("too-complex", None)])


def test_many_gaps_and_many_moves_take_no_quadratic_time() -> None:
    """A session bundle of which every second header is missing before the stretch."""
    log = Log()
    for number in range(400):
        log.create(f"T-{number:04}")
        log.ping()
    log.start(S)
    for number in range(400):
        log.think(S, "plan", f"T-{number:04}")
    tasks = [f"T-{number:04}" for number in range(400)]
    data = json.dumps(session_bundle(log, S, tasks)).encode()
    started = time.monotonic()
    assert exit_code(data) == 0
    assert time.monotonic() - started < 20


# Texts that are shown

EVIL = "ping\x1b[31m\x07\x7f\x9b\u202eabc\u200b\u2066\ufeff\u2028\nend"


def with_an_open_call(tool: str) -> bytes:
    log = small()
    log.enter(tool)
    return json.dumps(log_bundle(log)).encode()


def test_control_and_bidi_characters_never_reach_the_terminal(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes], python: ModuleType
) -> None:
    path = tmp_path / "evil.colibri.json"
    path.write_bytes(with_an_open_call(EVIL))
    for options in ([], ["--json"]):
        assert python.main([str(path), *options]) == 0
        text = capsysbinary.readouterr().out.decode()
        assert "ping" in text and "end" in text
        kinds = {unicodedata.category(character) for character in text.replace("\n", "")}
        assert not kinds & {"Cc", "Cf", "Zl", "Zp", "Cs"}


def test_both_verifiers_show_such_a_text_alike(node: Node) -> None:
    texts = [EVIL, "é ü", "x" * 500, "🐦" * 101, ""]
    assert node("show", texts) == [verifier.show(text) for text in texts]


def test_a_path_or_address_in_a_bundle_is_only_text(node: Node) -> None:
    """Nothing in a bundle names a file to open; a tool's name least of all."""
    data = with_an_open_call("../../../../etc/passwd")
    (answer,) = node("verify", [{"base64": b64(data)}])
    assert answer == verifier.verify(data).as_json()
    assert answer["open_calls"][0]["tool"] == "../../../../etc/passwd"
