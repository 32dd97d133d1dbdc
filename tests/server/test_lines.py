"""server/lines.py: from chunks of bytes to lines, and from a line to a JSON value."""

import json
import time
import tracemalloc
from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from colibri.core.canonical import MAX_DEPTH, MAX_INTEGER
from colibri.server.lines import MAX_LINE, MAX_STRUCTURE, Lines, Malformed, parse

MIB = 1024 * 1024
TOO_LONG = f"the line is longer than {MAX_LINE} bytes"
INPUTS = st.lists(st.sampled_from([b"\n", b"a", b"\r", b"{}", b"\xff", b" ", b"long" * 9])).map(
    b"".join
)


def split(chunks: Iterable[bytes]) -> list[bytes | str]:
    """The lines of some chunks and of the end of input; a refusal is shown as its text."""
    lines = Lines()
    got = [line for chunk in chunks for line in lines.feed(chunk)]
    got += lines.end()
    return [str(line) if isinstance(line, Malformed) else line for line in got]


def refusal(line: bytes) -> str:
    with pytest.raises(Malformed) as caught:
        parse(line)
    return str(caught.value)


@given(INPUTS, st.lists(st.integers(0, 200)))
def test_however_the_input_is_cut_into_chunks_the_lines_are_the_same(
    data: bytes, cuts: list[int]
) -> None:
    """Specification 2.1: newline-delimited; a chunk's boundary means nothing."""
    places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    chunks = [data[a:b] for a, b in pairwise(places)]
    assert split(chunks) == [line for line in data.split(b"\n") if line]


def test_a_line_is_given_out_as_soon_as_its_newline_has_come() -> None:
    """Specification 2.1: a request is answered while the input stays open."""
    lines = Lines()
    assert list(lines.feed(b'{"a"')) == []
    assert list(lines.feed(b":1}\nrest")) == [b'{"a":1}']


@pytest.mark.parametrize(
    ("chunks", "lines"),
    [
        ([b"one\ntwo"], [b"one", b"two"]),
        ([b"one\n"], [b"one"]),
        ([b"\n\n", b"a\n\n", b"\n"], [b"a"]),
        ([b"x" * MAX_LINE + b"\ny\n"], [b"x" * MAX_LINE, b"y"]),
        ([b"x" * MAX_LINE, b"yy", b"z" * MAX_LINE], [TOO_LONG]),
        ([b"a\n" + b"x" * (MAX_LINE + 1) + b"\nb\n"], [b"a", TOO_LONG, b"b"]),
    ],
    ids=[
        "no newline at the end",
        "one",
        "empty lines",
        "the limit",
        "endless",
        "long among others",
    ],
)
def test_lines_end_at_newlines(chunks: list[bytes], lines: list[bytes | str]) -> None:
    """Specification 2.1, 2.22: every line that was read is answered."""
    assert split(chunks) == lines


@pytest.mark.parametrize("size", [64 * 1024, MIB - 1, MAX_LINE, 6 * MIB])
def test_a_line_that_is_too_long_is_refused_once_and_the_next_one_is_fine(size: int) -> None:
    """Specification 2.9: longer, and the rest is skipped."""
    data = b"x" * (3 * MAX_LINE) + b"\nnext\n"
    assert split(data[i : i + size] for i in range(0, len(data), size)) == [TOO_LONG, b"next"]


def test_the_rest_of_a_line_that_is_too_long_takes_no_memory() -> None:
    """Specification 2.9: skipped in constant memory."""
    lines, chunk = Lines(), b"x" * 65536
    refusals = sum(1 for _ in range(80) for _ in lines.feed(chunk))
    tracemalloc.start()
    try:
        refusals += sum(1 for _ in range(1024) for _ in lines.feed(chunk))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert refusals == 1
    assert peak < MIB


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{",
        b'{"a"',
        b'{"a":',
        b'{"a":1',
        b'{"a":1,',
        b"[1,",
        b'"abc',
        b'"abc\\',
        b"tru",
        b"-",
        b"1e",
        b'{"method":"ping"',
        b"{}}",
        b"{} {}",
        b"1 2",
        b'{"a":1,}',
        b"[1,]",
        b"{a:1}",
        b"{'a':1}",
        b"// no\n{}",
        b"01",
        b"+1",
        b".5",
        b"1.",
        b'"a\tb"',
        b'"\\x41"',
        b'"\\u12"',
        b"\x00",
        b"{}\x00",
        b"\xef\xbb\xbf{}",
    ],
)
def test_text_that_is_not_one_json_value_is_refused_with_its_place(line: bytes) -> None:
    """Specification 2.11: RFC 8259, which has no BOM, comments or trailing commas."""
    assert " at character " in refusal(line)
    assert " at at " not in refusal(line)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b'{"k":"\xff"}', "not UTF-8 at byte 6"),
        (b'"\xc3"', "not UTF-8 at byte 1"),
        (b'"\xc0\xaf"', "not UTF-8 at byte 1"),
        (b'"\xed\xa0\x80"', "not UTF-8 at byte 1"),
        ('{"a":1}'.encode("utf-16"), "not UTF-8 at byte 0"),
        (b'{"n":NaN}', "NaN is not JSON"),
        (b"[Infinity]", "Infinity is not JSON"),
        (b"-Infinity", "-Infinity is not JSON"),
        (b"1e999", "a number is too large"),
        (b'{"n":[-1e999]}', "a number is too large"),
        (b"9007199254740992", "an integer is beyond ±(2^53−1)"),
        (b"-9007199254740992", "an integer is beyond ±(2^53−1)"),
        (b"7" * 5000, "an integer is beyond ±(2^53−1)"),
        (b"-" + b"7" * 5000, "an integer is beyond ±(2^53−1)"),
        (b'{"a":1,"a":1}', "an object has the same key twice"),
        (b'{"a":1,"\\u0061":2}', "an object has the same key twice"),
        (b'[{"x":{"b":1,"c":2,"b":3}}]', "an object has the same key twice"),
        (b'"\\ud800"', "a \\u escape is half of a surrogate pair"),
        (b'{"a":["\\udc00x"]}', "a \\u escape is half of a surrogate pair"),
        (b'{"\\ud83d":1}', "a \\u escape is half of a surrogate pair"),
        (b'"\\ude00\\ud83d"', "a \\u escape is half of a surrogate pair"),
    ],
)
def test_what_json_or_a_record_cannot_hold_is_refused_by_name(line: bytes, problem: str) -> None:
    """Specification 2.11: valid text that no record could hold, or that is ambiguous."""
    assert refusal(line) == problem


@pytest.mark.parametrize(
    ("line", "value"),
    [
        (b"9007199254740991", MAX_INTEGER),
        (b"-9007199254740991", -MAX_INTEGER),
        (b"-0", 0),
        (b"1e300", 1e300),
        (b"0.5", 0.5),
        (b'"\\ud83d\\ude00"', "\U0001f600"),
        ('"\U0001f600 é"'.encode(), "\U0001f600 é"),
        (b'"\\u0000\\\\ud800"', "\0\\ud800"),
        (b'[{"a":1},{"a":1}]', [{"a": 1}, {"a": 1}]),
        (b' \t{"a":null}\r', {"a": None}),
        (b'"NaN"', "NaN"),
    ],
)
def test_harmless_values_that_look_dangerous_are_accepted(line: bytes, value: object) -> None:
    """Specification 2.11: the limits are ±(2^53−1), whole surrogate pairs are characters."""
    assert parse(line) == value


@pytest.mark.parametrize(("before", "after"), [(b"[", b"]"), (b'{"k":', b"}")])
def test_sixty_four_levels_are_accepted_and_one_more_is_refused(
    before: bytes, after: bytes
) -> None:
    """Specification 2.10: depth at most 64."""
    parse(before * MAX_DEPTH + b"1" * (before != b"[") + after * MAX_DEPTH)
    too_deep = before * (MAX_DEPTH + 1) + b"1" * (before != b"[") + after * (MAX_DEPTH + 1)
    assert refusal(too_deep) == "nested deeper than 64 levels"


DEEP = b"[" * MAX_DEPTH + b"]" * MAX_DEPTH
BOMBS = [b"[" * 100_000, b'{"a":' * 100_000, b"[" * 1000 + b"]" * 1000]


@pytest.mark.parametrize("bomb", [*BOMBS, b'{"a":[],"b":' + DEEP + b',"c":{}}'])
def test_a_bomb_of_brackets_is_refused_as_too_deep(bomb: bytes) -> None:
    """Specification 2.10: too deep, without a crash; also next to shallow values."""
    assert refusal(bomb) == "nested deeper than 64 levels"


def test_many_shallow_arrays_are_not_deep() -> None:
    assert parse(b"[" + b",".join([b"[]"] * 1000) + b"]") == [[]] * 1000


def test_as_many_commas_and_brackets_as_allowed_are_accepted() -> None:
    """Specification 2.10: 100,000."""
    parse(b"[" + b"1," * (MAX_STRUCTURE - 1) + b"1]")


@pytest.mark.parametrize(
    "line",
    [
        b"[" + b"1," * MAX_STRUCTURE + b"1]",
        b"[" + b"[]," * 60_000 + b"1]",
        b"[" + b'"",' * (MAX_STRUCTURE + 1) + b"1]",
        b'["\\"",' + b"{}," * 60_000 + b"1]",
    ],
    ids=["numbers", "arrays", "strings", "after an escaped quote"],
)
def test_more_commas_and_brackets_than_allowed_are_refused(line: bytes) -> None:
    """Specification 2.10: else 4 MiB of them would become 100 MB of lists."""
    assert refusal(line) == "more than 100000 commas, brackets and braces in one line"


@pytest.mark.parametrize("inner", [b",", b"[{,", b'\\",', b"\\\\,", b',\\\\\\"'])
def test_commas_and_brackets_inside_a_string_do_not_count(inner: bytes) -> None:
    """lines.py LIMITS: outside strings."""
    line = b'{"text":"' + inner * 200_000 + b'"}'
    assert parse(line) == json.loads(line)


@pytest.mark.parametrize(
    "line",
    [
        b'"' + b'\\",' * 1_000_000,
        b'"' + b'\\",' * 1_000_000 + b"\\",
        b'"' + b"," * 3_000_000,
        b'"",' * 1_000_000 + b'"',
        b'\\"' * 1_000_000 + b"," * 200_000,
    ],
    ids=["escaped quotes", "ending in a backslash", "commas", "empty strings", "no string"],
)
def test_a_hostile_line_takes_about_as_long_as_an_ordinary_one_of_its_size(line: bytes) -> None:
    """Specification 3.4: a ping answers in milliseconds; one line must not hold the main thread."""
    begin = time.monotonic()
    refusal(line)
    assert time.monotonic() - begin < 10  # one pass takes 0.2 s, a pass per quote takes hours


def test_a_long_string_with_commas_is_scanned_in_little_memory() -> None:
    """lines.py: 4 MiB of text must not cost a hundred times as much."""
    line = b'"' + b",x" * (2 * MIB - 1) + b'"'
    tracemalloc.start()
    try:
        parse(line)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 32 * MIB


@pytest.mark.parametrize(
    "line",
    [
        b'{"password":"hunter2"',
        b'{"password":"hunter2","password":"hunter2"}',
        b'{"password":"hunter2","n":9007199254740992}',
        b'{"password":"hunter2","n":NaN}',
        b'{"password":"hunter2\\ud800"}',
        b'{"password":"hunter2\xff"}',
        b'{"password":"hunter2"}hunter2',
        b'{"password":hunter2}',
        b'{"password":"\\hunter2"}',
        b"[" * 100 + b'"hunter2"' + b"]" * 100,
    ],
)
def test_a_refusal_repeats_nothing_of_the_line(line: bytes) -> None:
    """Specification 4.12: what was wrong, never the value itself."""
    text = refusal(line)
    assert "hunter" not in text
    assert "password" not in text


@given(st.binary(max_size=200))
def test_any_bytes_are_a_value_or_refused(line: bytes) -> None:
    """Specification 2.14: nothing else may come out of a bad line."""
    try:
        value = parse(line)
    except Malformed as problem:
        assert str(problem)
    else:
        assert value == json.loads(line)
