"""A bundle with one random change and its hashes left as they were."""

import json
from random import Random
from typing import Any

from tests.vectors.builder import canonical, text_of

OTHERS: tuple[Any, ...] = (None, True, 0, -1, 1.5, 2**53, "", "x", [], {})
LETTERS = "ABab01+/="


def mutant(bundle: Any, chance: Random) -> bytes:
    """The file with a byte, value, item, member or line changed."""
    text = text_of(bundle)
    if chance.random() < 0.1:
        return _with_another_byte(text, chance)
    changed = [json.loads(line) for line in text.splitlines()]
    container, key = _place(changed, chance)
    value = container[key]
    if isinstance(container, list) and chance.random() < 0.5:
        _rearrange(container, key, chance)
    elif isinstance(container, dict) and chance.random() < 0.2:
        _rename(container, key, chance)
    else:
        container[key] = _other(value, chance)
    return b"".join(canonical(line) + b"\n" for line in changed)


def _with_another_byte(text: bytes, chance: Random) -> bytes:
    data = bytearray(text)
    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return bytes(data)


def _place(value: Any, chance: Random) -> tuple[Any, Any]:
    """A random position: first a member, then usually deeper."""
    while True:
        key = chance.choice(list(value) if isinstance(value, dict) else range(len(value)))
        inner = value[key]
        if not isinstance(inner, dict | list) or not inner or chance.random() < 0.1:
            return value, key
        value = inner


def _rearrange(items: list[Any], at: int, chance: Random) -> None:
    way = chance.choice(("drop", "double", "swap", "move"))
    if way == "drop":
        del items[at]
    elif way == "double":
        items.insert(chance.randrange(len(items) + 1), items[at])
    elif way == "swap":
        other = chance.randrange(len(items))
        items[at], items[other] = items[other], items[at]
    else:
        items.insert(chance.randrange(len(items)), items.pop(at))


def _rename(members: dict[str, Any], key: str, chance: Random) -> None:
    value = members[key]
    way = chance.choice(("drop", "rename", "double"))
    if way != "double":
        del members[key]
    if way != "drop":
        members[_other_text(key, chance)] = value


def _other(value: Any, chance: Random) -> Any:
    """Another value, usually of the same type."""
    if chance.random() < 0.2:
        return chance.choice(OTHERS)
    if isinstance(value, str):
        return _other_text(value, chance)
    if type(value) is int:
        return value + chance.choice((-1, 1))
    return chance.choice(OTHERS)


def _other_text(text: str, chance: Random) -> str:
    at = chance.randrange(len(text)) if text else 0
    return text[:at] + chance.choice(LETTERS) + text[at + chance.randrange(2) :]
