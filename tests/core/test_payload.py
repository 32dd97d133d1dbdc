"""core/payload.py: what the patterns recognise is what reading and writing again would find."""

import json
from collections.abc import Callable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from colibri.core import payload
from colibri.core.canonical import encode
from colibri.core.ledger import FIELDS, MEMBERS, TEXT_FIELDS, TYPES
from colibri.tools.catalogue import CATALOGUE

LEAF = bytes(range(32))
WORDS = st.text(st.sampled_from('aü"\\\n\t\x00\x7f\U0001f41d {}[]:,'), max_size=6)
VALUES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.sampled_from((0, 1, 7, 80, 300_001))
    | WORDS
    | st.sampled_from(("T-0001", "S-1", "plan", "analysis", "R-7", LEAF.hex(), "0" * 64))
)
LISTS = st.lists(VALUES, max_size=3)
DIGESTS = st.fixed_dictionaries({"sha256": VALUES, "size": VALUES})
ARGUMENTS = st.dictionaries(
    st.sampled_from((*payload.ARGUMENTS, "zz", "a b", "ü")), VALUES | LISTS | DIGESTS, max_size=5
)
SETS = st.dictionaries(
    st.sampled_from((*FIELDS, *TEXT_FIELDS, "colour")),
    st.tuples(VALUES | LISTS, VALUES | LISTS).map(list) | LISTS,
    max_size=4,
)
MEMBER_VALUES = {"arguments": ARGUMENTS | st.none(), "set": SETS, "seqs": LISTS}

# Written well, as a careless writer would, and by someone who hides something.
WRITERS: tuple[Callable[[object], str], ...] = (
    lambda value: json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")),
    lambda value: json.dumps(value, ensure_ascii=True, sort_keys=True, separators=(",", ":")),
    lambda value: json.dumps(value, ensure_ascii=False, separators=(",", ":")),
    lambda value: json.dumps(value, ensure_ascii=False, sort_keys=True),
)


def objects(kind: str) -> st.SearchStrategy[dict[str, object]]:
    return st.fixed_dictionaries(
        {name: MEMBER_VALUES.get(name, VALUES) for name in sorted(MEMBERS[kind])}
    )


@st.composite
def bodies(draw: st.DrawFn, kinds: tuple[str, ...]) -> tuple[str, bytes]:
    """A kind, and something like its payload: good, or with up to two bytes wrong."""
    kind = draw(st.sampled_from(kinds))
    text = draw(st.sampled_from(WRITERS))(draw(objects(kind)))
    body = bytearray(text.encode())
    for _ in range(draw(st.sampled_from((0, 0, 1, 2)))):
        at = draw(st.integers(0, len(body) - 1))
        body[at : at + draw(st.integers(0, 2))] = draw(st.binary(max_size=2))
    return kind, bytes(body)


def canonical(kind: str, body: bytes) -> dict[str, object] | None:
    """What a payload says, if reading it and writing it again gives the same bytes."""
    found = payload.parse(kind, body)
    try:
        return found if found is not None and encode(found) == body else None
    except ValueError:
        return None


@settings(max_examples=400, deadline=None)
@given(bodies(("call.enter", "call.exit")))
@example(("call.enter", encode(dict.fromkeys(MEMBERS["call.enter"]) | {"server": "", "tool": ""})))
def test_a_plain_call_is_one_that_reading_would_find(case: tuple[str, bytes]) -> None:
    """Design §9: exactly the members of its kind, in canonical form."""
    kind, body = case
    plain = payload.PLAIN[kind](body)
    if plain is not None:
        found = canonical(kind, body)
        assert found is not None, body
        assert plain[plain.lastindex or 0] == encode(found["tool"])
        assert kind == "call.enter" or int(plain[1]) == found["enter"]


@settings(max_examples=300, deadline=None)
@given(bodies(tuple(MEMBERS)))
def test_canonical_is_what_reading_and_writing_again_gives(case: tuple[str, bytes]) -> None:
    """RFC 8785; for every kind, whatever pattern there is for it."""
    kind, body = case
    found = payload.parse(kind, body)
    if found is not None:
        right = canonical(kind, body) is not None
        assert payload.is_canonical(kind, body, found) is right, body


CONTENTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | WORDS


@settings(max_examples=300, deadline=None)
@given(
    CONTENTS,
    st.sampled_from((0, 1, 12)),
    st.sampled_from((*TYPES, "doubt", "", "plan\n")),
    st.sampled_from(WRITERS),
    st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.binary(max_size=2)), max_size=2),
)
def test_a_plain_thought_is_one_that_reading_would_find(
    content: str,
    index: int,
    type_: str,
    write: Callable[[object], str],
    errors: list[tuple[float, bytes]],
) -> None:
    """Design §9: its place in the session, and a content in canonical form."""
    thought = {"content": content, "index": index, "prev": LEAF.hex(), "type": type_}
    body = bytearray(write({**thought, "thought_id": "R-7"}).encode())
    for place, wrong in errors:
        at = int(place * len(body))
        body[at : at + 1] = wrong
    plain = payload.plain_thought(bytes(body), 1, LEAF, 7)
    if plain is not None:
        found = canonical("thought", bytes(body))
        assert found is not None
        assert found.pop("content") is not None
        right = {"index": 1, "prev": LEAF.hex(), "thought_id": "R-7", "type": plain}
        assert found == right
        assert plain in TYPES


GOOD = {
    "an enter": (
        "call.enter",
        {
            "arguments": {
                "content": {"sha256": "0" * 64, "size": 7},
                "depends_on": ["T-0001", "T-0002"],
                "limit": 5,
                "search": None,
                "task_id": "T-0001",
            },
            "server": "s",
            "sha256": None,
            "size": None,
            "tool": "task_list",
        },
    ),
    "a refused enter": (
        "call.enter",
        {"arguments": None, "server": "s", "sha256": "0" * 64, "size": 80, "tool": "task_list"},
    ),
    "an exit": (
        "call.exit",
        {
            "code": None,
            "duration_ms": 0,
            "enter": 7,
            "outcome": "ok",
            "result_sha256": "0" * 64,
            "tool": "task_list",
        },
    ),
}


@pytest.mark.parametrize("name", GOOD)
def test_the_calls_that_come_most_often_are_plain(name: str) -> None:
    """The patterns are of no use if they recognise nothing."""
    kind, value = GOOD[name]
    body = encode(value)
    assert payload.parse(kind, body) == value
    assert payload.PLAIN[kind](body) is not None


@pytest.mark.parametrize("content", ["because", 'a "b" \\ c\n\td', "für später", "\U0001f41d", ""])
def test_a_thought_is_plain_in_any_language(content: str) -> None:
    thought = {"content": content, "index": 3, "prev": LEAF.hex(), "thought_id": "R-7"}
    body = encode({**thought, "type": "decision"})
    assert payload.plain_thought(body, 3, LEAF, 7) == "decision"
    assert payload.plain_thought(body, 4, LEAF, 7) is None
    assert payload.plain_thought(body, 3, bytes(32), 7) is None
    assert payload.plain_thought(body, 3, LEAF, 8) is None


def test_seals_and_steps_are_written_as_the_canonical_form_has_them() -> None:
    """Against the encoder that writes records."""
    sealed = {"count": 3, "first_seq": 7, "last_seq": 12, "root": LEAF.hex()}
    assert payload.seal(3, 7, 12, LEAF) == encode(sealed)
    for id in ("T-0001", 'T"ü'):
        moved = {"task_id": id, "version": 4, "attempt": 2, "set": {"status": ["INIT", "GATHER"]}}
        assert payload.step(id, 4, 2, "INIT", "GATHER") == encode(moved)


def test_the_arguments_of_every_tool_are_among_those_of_a_plain_call() -> None:
    """Otherwise its calls would be read by the long way, which is right, but slow."""
    taken = {name for tool in CATALOGUE for name in tool.input.__struct_fields__}
    assert taken <= set(payload.ARGUMENTS)
    assert list(payload.ARGUMENTS) == sorted(payload.ARGUMENTS)


@pytest.mark.parametrize("name", GOOD)
def test_a_plain_call_with_one_wrong_byte_is_one_that_reading_would_find(name: str) -> None:
    """Every place, and the bytes that JSON and UTF-8 make most of."""
    kind, value = GOOD[name]
    good = encode(value)
    for at in range(len(good)):
        for wrong in b'"\\,:{}[]0a-/\x00\x1f\x7f\x80\xc3\xff':
            changed = good[:at] + bytes([wrong]) + good[at + 1 :]
            assert payload.PLAIN[kind](changed) is None or canonical(kind, changed), changed
