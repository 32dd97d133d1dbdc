"""core/canonical.py against RFC 8785 and the rfc8785 package."""

import hashlib
from collections.abc import Callable
from enum import IntEnum, StrEnum

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from colibri.core import canonical
from colibri.core.canonical import MAX_DEPTH, MAX_INTEGER, encode, sha256
from colibri.tools import schema

INTEGERS = st.integers(-MAX_INTEGER, MAX_INTEGER)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
KEYS = st.text(st.characters(max_codepoint=127))
VALUES = st.recursive(
    st.none() | st.booleans() | INTEGERS | TEXTS,
    lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner),
)


Dump = Callable[[object], bytes]
DUMPS = {"json": canonical.dump, "msgspec": schema.dump}


# Once with the standard library's encoder, once with the one that a server uses.
each_dump = pytest.mark.parametrize("dump", DUMPS.values(), ids=list(DUMPS))


@given(VALUES)
def test_the_bytes_are_those_of_rfc_8785(value: object) -> None:
    """Specification 9.2: within the allowed values both encoders give the RFC's bytes."""
    expected = rfc8785.dumps(value)  # type: ignore[arg-type]
    assert encode(value) == expected
    assert [dump(value) for dump in DUMPS.values()] == [expected, expected]


def test_both_encoders_write_every_character_alike() -> None:
    text = "".join(chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000)
    slow, fast = (dump(text) for dump in DUMPS.values())
    assert slow == fast


@each_dump
def test_control_characters_are_escaped_as_in_the_rfc(dump: Dump) -> None:
    """RFC 8785 §3.2.2.2: the short escapes, else lower-case \\u00xx, and nothing more."""
    assert (
        encode('\b\t\n\f\r"\\\0\x1f\x7f€', dump)
        == b'"\\b\\t\\n\\f\\r\\"\\\\\\u0000\\u001f\x7f\xe2\x82\xac"'
    )


@each_dump
def test_tuples_and_enumerations_are_encoded_as_what_they_stand_for(dump: Dump) -> None:
    colour = StrEnum("colour", {"RED": "red"})
    number = IntEnum("number", {"ONE": 1})
    assert encode({"b": (colour.RED, number.ONE), "a": True}, dump) == b'{"a":true,"b":["red",1]}'


@each_dump
@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (1.5, "$: a float has no place in a record"),
        ({"a": [0, float("nan")]}, "$.a[1]: a float has no place in a record"),
        ([b"bytes"], "$[0]: a bytes has no place in a record"),
        ({"a": {"b": {1, 2}}}, "$.a.b: a set has no place in a record"),
        ({"n": 2**53}, "$.n: an integer beyond ±(2^53-1)"),
        ([2**53], "$[0]: an integer beyond ±(2^53-1)"),
        ({"n": -(2**53)}, "$.n: an integer beyond ±(2^53-1)"),
        (["ab\ud800"], "$[0]: a lone surrogate at character 2"),
        ({"a": "\udfff"}, "$.a: a lone surrogate at character 0"),
        ({"a": {"é": 1}}, "$.a: a key that is not an ASCII string: 'é'"),
        ({1: 1}, "$: a key that is not an ASCII string: 1"),
    ],
)
def test_what_a_record_may_not_hold_is_refused_with_its_place(
    value: object, problem: str, dump: Dump
) -> None:
    """Specification 9.2: anything else is refused."""
    with pytest.raises(ValueError) as caught:
        encode(value, dump)
    assert str(caught.value) == problem


def nested(levels: int) -> list[object]:
    value: list[object] = []
    for _ in range(levels - 1):
        value = [value]
    return value


@each_dump
def test_a_value_may_be_as_deep_as_the_limit_and_no_deeper(dump: Dump) -> None:
    """Specification 2.10: depth at most 64."""
    assert encode(nested(MAX_DEPTH), dump) == b"[" * MAX_DEPTH + b"]" * MAX_DEPTH
    with pytest.raises(ValueError, match="more than 64 levels deep"):
        encode(nested(MAX_DEPTH + 1), dump)


@each_dump
def test_a_value_that_contains_itself_is_refused(dump: Dump) -> None:
    value: list[object] = []
    value.append(value)
    with pytest.raises(ValueError, match="levels deep"):
        encode(value, dump)


@given(VALUES)
def test_the_bytes_of_a_value_are_quoted_as_any_text_is(value: object) -> None:
    """An answer's text is the JSON of its envelope, as a string."""
    data = encode(value)
    assert canonical.quote(data) == encode(data.decode())


@given(VALUES)
def test_what_is_allowed_passes_the_check(value: object) -> None:
    canonical.check(value)
    with pytest.raises(ValueError, match="a float has no place"):
        canonical.check([value, 0.5])


def test_sha256_is_sha256() -> None:
    assert sha256(b"abc") == hashlib.sha256(b"abc").digest()
