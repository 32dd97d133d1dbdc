"""src/colibri/core/plain.py: what a pattern takes, parsing would take as well."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from colibri.core.canonical import encode
from colibri.core.chain import load
from colibri.core.ledger import MEMBERS
from colibri.core.plain import ENTER, EXIT
from colibri.core.record import Record
from colibri.core.trail import NO_LEAF, Trail

SEQ, LEAF = 7, bytes(range(32))
CONTENTS = {
    "plain": "Because the tests say so.",
    "empty": "",
    "escapes": 'a "quoted"\nline\tand a back\\slash \x01\x1f',
    "other scripts": "naïve 日本語 🐦 \u2028",
}


def body(content: str, **other: Any) -> bytes:
    thought = {"content": content, "index": 0, "prev": NO_LEAF.hex(), "thought_id": f"R-{SEQ}"}
    return encode(thought | {"type": "plan"} | other)


def open_session() -> Trail:
    trail = Trail()
    opening = SimpleNamespace(seq=1, leaf=LEAF, at="", kind="session.open", session="S", task=None)
    payload = {"session_id": "S", "task_id": None, "intent": "be checked"}
    assert trail.feed(cast(Record, opening), payload) == []
    return trail


def taken_by_pattern(data: bytes) -> bool:
    return open_session().take_plain_thought(SEQ, LEAF, "S", data)


def taken_by_parsing(data: bytes) -> bool:
    try:
        payload = load(data)
    except ValueError:
        return False
    record = SimpleNamespace(seq=SEQ, leaf=LEAF, at="", kind="thought", session="S", task=None)
    fits = isinstance(payload, dict) and payload.keys() == MEMBERS["thought"]
    return fits and open_session().feed(cast(Record, record), payload) == []


@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS)
def test_the_next_thought_of_a_session_is_taken_without_parsing(content: str) -> None:
    assert taken_by_pattern(body(content))
    assert taken_by_parsing(body(content))


@pytest.mark.parametrize(
    "data",
    [
        body("x", index=1),
        body("x", prev="1" * 64),
        body("x", thought_id="R-8"),
        body("x", type="musing"),
        body("x", index="0"),
        body("x", extra=1),
        body("x").replace(b'"x"', b'"\xff"'),
        body("x").replace(b'"x"', b'"\\ud800"'),
        body("x").replace(b'"x"', b"1"),
        b"{}",
        b"",
    ],
    ids=lambda data: data[:24].decode(errors="replace") + "…" + data[-24:].decode(),
)
def test_what_cannot_be_the_next_thought_is_left_to_parsing(data: bytes) -> None:
    assert not taken_by_pattern(data)


def test_a_thought_of_a_session_that_is_unknown_or_lost_is_left_to_the_long_way() -> None:
    trail = open_session()
    assert not trail.take_plain_thought(SEQ, LEAF, "other", body("x"))
    assert not trail.take_plain_thought(SEQ, LEAF, None, body("x"))
    trail.lost.add("S")
    assert not trail.take_plain_thought(SEQ, LEAF, "S", body("x"))


@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS)
def test_no_change_of_a_byte_is_taken_that_parsing_would_refuse(content: str) -> None:
    good = body(content)
    for at in range(len(good)):
        for new in b'"\\,:{}[]0a-/\x00\x1f\x7f\x80\xc3\xff':
            changed = good[:at] + bytes([new]) + good[at + 1 :]
            if taken_by_pattern(changed):
                assert taken_by_parsing(changed), changed


ENTERS = (
    b'{"arguments":{"id":"T-1","n":5,"text":{"sha256":"' + b"0" * 64 + b'","size":3}}'
    b',"server":"s","sha256":null,"size":null,"tool":"task_get"}'
)
EXITS = (
    b'{"code":null,"duration_ms":1,"enter":12,"outcome":"ok","result_sha256":"'
    + b"a" * 64
    + b'","tool":"task_get"}'
)


@pytest.mark.parametrize(
    ("pattern", "kind", "good"), [(ENTER, "call.enter", ENTERS), (EXIT, "call.exit", EXITS)]
)
def test_what_a_pattern_of_a_call_matches_is_json_with_the_members_of_its_kind(
    pattern: Any, kind: str, good: bytes
) -> None:
    assert pattern.match(good)
    for at in range(len(good)):
        for new in b'"\\,:{}[]0a-/\x00\x1f\x7f\x80\xc3\xff':
            changed = good[:at] + bytes([new]) + good[at + 1 :]
            if found := pattern.match(changed):
                assert load(changed).keys() == MEMBERS[kind], changed
                assert load(found[pattern.groups]) == load(changed)["tool"]
