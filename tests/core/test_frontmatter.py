"""core/frontmatter.py: YAML in, plain values out, and nothing else happens."""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from colibri.core import canonical, frontmatter
from colibri.core.errors import Malformed
from colibri.core.visible import visible


@pytest.fixture(params=["libyaml", "python"])
def either_loader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """PyYAML may come without libyaml: both must say the same."""
    if request.param == "python":
        monkeypatch.delattr(yaml, "CSafeLoader")
    yield request.param


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: 1\nb: [x, 'y', null]", {"a": 1, "b": ["x", "y", None]}),
        ("a: '1'\nb: \"true\"\nc: 'null'", {"a": "1", "b": "true", "c": "null"}),
        ("a: TRUE\nb: False\nc: Null\nd: ~", {"a": True, "b": False, "c": None, "d": None}),
        ("a: -12\nb: 012\nc: 1e3\nd: +1", {"a": -12, "b": "012", "c": "1e3", "d": "+1"}),
        ("a: &anchor x", {"a": "x"}),
        ("<<: {a: 1}", {"<<": {"a": 1}}),
        ("a: {}\nb: []", {"a": {}, "b": []}),
        ("? a\n: b", {"a": "b"}),
        ("~: 1", {"~": 1}),
        ('a: "\\e[31m\\x9b\\u202e"', {"a": "\\x1b[31m\\x9b\\u202e"}),
        ("名: x", {"\\u540d": "x"}),
    ],
)
@pytest.mark.usefixtures("either_loader")
def test_values_are_what_was_written(text: str, value: object) -> None:
    assert frontmatter.parse(text.encode()) == value


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "its frontmatter is empty: it needs a name and a description"),
        ("just words", "its frontmatter is not a mapping: write lines such as `name: …`"),
        ("a: &x 1\nb: *x", "line 3 has an alias (*): write the value out"),
        ("a: &x 1\n*x : 2", "line 3 has a key that is not text"),
        ("? [a]\n: 1", "line 2 has a key that is not text"),
        ("a: 1\nb:\n  c: 1\n  c: 2", "line 5 has the key c a second time"),
        ("\\u540d: 1\n名: 2", "line 3 has the key \\u540d a second time"),
        ("a: 1\n--- # more\nb: 2", "its frontmatter is more than one YAML document"),
        ("a: \x1b[2J", "line 2 holds the control character U+001B"),
        ("ä: ö\nb: \x9b", "line 3 holds the control character U+009B"),
        ("a: !!python/object:os.system x", "line 2 has a tag (tag:yaml.org,2002:python/object:os"),
        ("a: !!python/object/apply:os.system [x]", "line 2 has a tag (tag:yaml.org,2002:python/"),
        ("a: !!binary aGk=", "line 2 has a tag (tag:yaml.org,2002:binary): leave it out"),
        ("a: ! 1", "line 2 has a tag (!): leave it out"),
        ("a: !secret {b: 1}", "line 2 has a tag (!secret): leave it out"),
        ("a: b: c", "line 2 is not YAML: mapping values are not allowed"),
        ("a:\n\tb: c", "line 3 is not YAML: found character"),
        ("%YAML 3.0\n---\na: b", "line 2 is not YAML: found incompatible YAML document"),
        ("a: " + "[" * 16, "line 2 is nested more than 16 levels deep"),
    ],
)
@pytest.mark.usefixtures("either_loader")
def test_what_is_refused_is_named_with_its_line(text: str, problem: str) -> None:
    """The lines are those of the file, which begins with ---."""
    with pytest.raises(Malformed) as refused:
        frontmatter.parse(text.encode())
    assert refused.value.message.startswith(problem)


@pytest.mark.usefixtures("either_loader")
def test_sixteen_levels_are_taken() -> None:
    deep = "a: " + "[" * 15 + "x" + "]" * 15
    assert json.dumps(frontmatter.parse(deep.encode())).count("[") == 15


def test_text_that_is_not_utf_8_is_refused_with_its_line() -> None:
    with pytest.raises(Malformed, match="line 4 is not UTF-8"):
        frontmatter.parse(b"a: 1\nb: 2\nc: \xff\n")


BOMBS: dict[str, bytes] = {
    "laughs": b"a: &a [x,x,x,x,x,x,x,x,x]\n"
    + b"".join(
        b"%c: &%c [%s]\n" % (letter, letter, b",".join([b"*%c" % (letter - 1)] * 9))
        for letter in range(ord("b"), ord("z"))
    ),
    "brackets": b"a: " + b"[" * 60_000,
    "braces": b"a: " + b"{a: " * 15_000,
    "dashes": b"- " * 30_000,
    "questions": b"? " * 30_000,
    "directives": b"".join(b"%%TAG !a%d! b\n" % n for n in range(4_000)),
    "one long key": b"x" * 60_000 + b": 1",
    "line breaks": b'a: "' + b"\n" * 60_000,
    "digits": b"a: " + b"9" * 60_000,
}


@pytest.mark.parametrize("text", BOMBS.values(), ids=BOMBS.keys())
def test_nothing_takes_long_or_much(text: bytes) -> None:
    """PyYAML alone takes 8 s for the brackets, and all memory for the laughs."""
    start = time.perf_counter()
    try:
        value: Any = frontmatter.parse(text)
    except Malformed:
        value = None
    assert time.perf_counter() - start < 3
    assert value is None or value == {"a": "9" * 60_000}


PIECES = [
    "a", "b: ", "\n", "  ", "- ", "? ", ": ", "[", "]", "{", "}", ",", "&x ", "*x", "!!str ",
    ">-\n", "'", '"', "#", "---", "\\e", "\x1b", "\u202e", "ü", "1", ".nan", "~",
]  # fmt: skip
YAMLISH = st.lists(st.sampled_from(PIECES), max_size=30).map(
    lambda pieces: "".join(pieces).encode()
)


@given(st.binary(max_size=60) | YAMLISH)
@settings(max_examples=300, deadline=None)
def test_any_bytes_become_recordable_values_or_a_reason(text: bytes) -> None:
    """An answer with it must stay valid: no floats, no strange keys, nothing unseen."""
    try:
        value = frontmatter.parse(text)
    except Malformed as problem:
        assert problem.message == visible(problem.message)
    else:
        shown = canonical.encode(value).decode()
        assert json.loads(shown) == value
        assert visible(shown) == shown
