"""Parses frontmatter, the YAML between two lines --- at the top of a file, into plain values.

Values stay as written. Text stays text, and so does what JSON could not express exactly: dates,
fractions, infinities, numbers beyond ±(2^53−1), yes and no. Only null, true, false and plain
integers are converted.

It uses PyYAML's events, not its constructed objects, so that a file cannot make it do anything:
aliases and tags are refused, nothing nests deeper than MAX_DEPTH, no key occurs twice.
"""

import re
from collections.abc import Iterator
from typing import Any

import yaml
from yaml.events import (
    AliasEvent,
    CollectionStartEvent,
    Event,
    MappingEndEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)

from colibri.core.canonical import MAX_INTEGER
from colibri.core.errors import Malformed
from colibri.core.visible import ascii_only, visible

MAX_DEPTH = 16
MAX_SHOWN = 100  # characters of the offending text

_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,15}")
_CONSTANTS = {
    spelling: value
    for word, value in (("null", None), ("true", True), ("false", False))
    for spelling in (word, word.title(), word.upper())
} | {"": None, "~": None}
_QUOTE_IT = "mapping values are not allowed"


def parse(text: bytes) -> dict[str, Any]:
    """The one mapping; raises Malformed."""
    try:
        events = _events(text.decode())
    except UnicodeDecodeError as problem:
        line = text.count(b"\n", 0, problem.start) + 1
        raise Malformed(f"{_at(line)} is not UTF-8") from None
    next(events)  # the stream
    if isinstance(next(events), StreamEndEvent):
        raise Malformed("its frontmatter is empty: it needs a name and a description")
    value = _node(next(events), events, 1)
    if not isinstance(value, dict):
        raise Malformed("its frontmatter is not a mapping: write lines such as `name: …`")
    next(events)  # the end of the document
    if not isinstance(next(events), StreamEndEvent):
        raise Malformed("its frontmatter is more than one YAML document")
    return value


def _events(text: str) -> Iterator[Event]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # in C if PyYAML was built with libyaml
    try:
        yield from yaml.parse(text, Loader=loader)
    except yaml.reader.ReaderError as problem:
        where = text.index(chr(problem.character))  # its own position may count bytes or characters
        line = text.count("\n", 0, where) + 1
        character = f"U+{problem.character:04X}"
        raise Malformed(f"{_at(line)} holds the control character {character}") from None
    except yaml.MarkedYAMLError as problem:
        raise Malformed(_complaint(problem)) from None


def _complaint(problem: yaml.MarkedYAMLError) -> str:
    assert problem.problem_mark is not None  # PyYAML always sets it
    what = visible(problem.problem or "it cannot be read")[:MAX_SHOWN]
    hint = "; put a value that holds a colon into quotes" if _QUOTE_IT in what else ""
    return f"{_at(problem.problem_mark.line + 1)} is not YAML: {what}{hint}"


def _node(event: Event, events: Iterator[Event], depth: int) -> Any:
    where = _where(event)
    if isinstance(event, AliasEvent):
        raise Malformed(f"{where} has an alias (*): write the value out")
    assert isinstance(event, ScalarEvent | CollectionStartEvent)  # only these begin a value
    if event.tag is not None:
        raise Malformed(f"{where} has a tag ({visible(event.tag[:MAX_SHOWN])}): leave it out")
    if isinstance(event, ScalarEvent):
        return _scalar(event)
    if depth > MAX_DEPTH:
        raise Malformed(f"{where} is nested more than {MAX_DEPTH} levels deep")
    if isinstance(event, SequenceStartEvent):
        return [_node(item, events, depth + 1) for item in _until(SequenceEndEvent, events)]
    return _mapping(events, depth)


def _mapping(events: Iterator[Event], depth: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for event in _until(MappingEndEvent, events):
        where = _where(event)
        if not isinstance(event, ScalarEvent):
            raise Malformed(f"{where} has a key that is not text")
        key = ascii_only(event.value)
        if key in found:
            raise Malformed(f"{where} has the key {key[:MAX_SHOWN]} a second time")
        found[key] = _node(next(events), events, depth + 1)
    return found


def _scalar(event: ScalarEvent) -> str | int | bool | None:
    plain = event.implicit[0]
    if plain and event.value in _CONSTANTS:
        return _CONSTANTS[event.value]
    if plain and _INTEGER.fullmatch(event.value) and abs(int(event.value)) <= MAX_INTEGER:
        return int(event.value)
    return visible(event.value, lines=True)


def _until(end: type[Event], events: Iterator[Event]) -> Iterator[Event]:
    for event in events:
        if isinstance(event, end):
            return
        yield event


def _where(event: Event) -> str:
    assert event.start_mark is not None  # the parser marks every event
    return _at(event.start_mark.line + 1)


def _at(line: int) -> str:
    """The line in the file, which has one line --- before the parsed text."""
    return f"line {line + 1}"
