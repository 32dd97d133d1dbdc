"""Where else a text is that an erasure takes out: records that were not named, and hold it too."""

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, NamedTuple

from colibri.core.canonical import encode
from colibri.core.ledger import load
from colibri.store.connection import Connection

MAX_TEXTS = 100  # that are looked for
_SHORT = 8  # characters; a shorter text is looked for as a whole value alone: it is part of many
_ENOUGH = 200  # characters that are looked for: where a text was cut, its beginning is kept
_MEMBERS = ("content", "intent", "command", "text")


class Place(NamedTuple):
    """A record that holds a text."""

    seq: int
    kind: str


def texts(payloads: Iterable[dict[str, Any]]) -> set[str]:
    """Their contents, intents, titles, descriptions, commands, paths and captured texts."""
    return {text for payload in payloads for text in _texts(payload) if text}


def _texts(payload: dict[str, Any]) -> Iterator[str]:
    for name in _MEMBERS:
        if isinstance(value := payload.get(name), str):
            yield value
            yield from _inner(value)
    yield from (path for path in payload.get("paths", ()) if path is not None)
    yield from (new for _, new in payload.get("set", {}).values() if new is not None)


def _inner(text: str) -> Iterator[str]:
    """The texts in a tool's input or output that was captured as JSON."""
    try:
        found = load(text.encode()) if text[:1] in ("{", "[") else None
    except (ValueError, RecursionError):
        return
    waiting = [found]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str) and len(one) >= _SHORT:
            yield one
        elif isinstance(one, list | dict):
            waiting += one.values() if isinstance(one, dict) else one


def elsewhere(db: Connection, wanted: Collection[str], but: Collection[int]) -> list[Place]:
    """The other records that hold one of some texts, at most MAX_TEXTS of them."""
    tests = [_test(text) for text in wanted]
    rows = db.execute(
        "SELECT seq, kind, body FROM ledger WHERE body IS NOT NULL AND kind IN"
        " ('call.enter', 'session.open', 'thought', 'task.text', 'deed.text', 'erasure')"
        " ORDER BY seq"
    )
    return [
        Place(seq, kind)
        for seq, kind, body in rows
        if tests and seq not in but and any(test(body) for test in tests)
    ]


def _test(text: str) -> Callable[[bytes], bool]:
    """Whether a payload holds a text, as it is or within captured JSON."""
    if len(text) < _SHORT:
        whole = encode(text)
        return lambda body: body.count(whole) > body.count(whole + b":")  # a value, and no name
    once = encode(text[:_ENOUGH])[1:-1]
    twice = encode(once.decode())[1:-1]
    if once == twice:
        return lambda body: once in body
    return lambda body: once in body or twice in body
