"""Payloads: what a record of each kind says, read strictly, and whether it is in canonical form.

Reading JSON and writing it again tells everything, but for a million records it takes longer than
all their hashes. So the payloads that come most often are recognised by how they look: calls by a
pattern; thoughts, seals and steps of a task by what they must say at their place. Such a payload is
canonical and has the members of its kind, and reading it could find nothing more. What is not
recognised is read, and may be just as good.
"""

import re
from collections.abc import Mapping, Sequence
from json import JSONDecoder
from json.encoder import encode_basestring
from typing import Any, NoReturn

from colibri.core.canonical import encode
from colibri.core.ledger import FIELDS, MEMBERS, TEXT_FIELDS, TYPES

# The arguments of Colibri's own tools, in canonical order; a call with others is no plain one.
ARGUMENTS = (
    "agent_id",
    "assignee",
    "capability",
    "content",
    "depends_on",
    "description",
    "expected_version",
    "intent",
    "limit",
    "offset",
    "priority",
    "project",
    "proof_for",
    "search",
    "session_id",
    "status",
    "task_id",
    "title",
    "type",
)

# What else than its members must hold for a payload to be of its kind.
_TYPES: Mapping[str, tuple[tuple[str, type], ...]] = {
    "call.enter": (("tool", str), ("server", str)),
    "call.exit": (("tool", str), ("enter", int)),
}


def parse(kind: str, body: bytes) -> dict[str, Any] | None:
    """What a payload says, or None if it is not that of a record of its kind."""
    try:
        payload: dict[str, Any] = load(body)
        fits = payload.keys() == MEMBERS[kind] and all(
            type(payload[name]) is type_ for name, type_ in _TYPES.get(kind, ())
        )
    except (AttributeError, ValueError):
        return None
    return payload if fits else None


def is_canonical(kind: str, body: bytes, payload: object) -> bool:
    """Whether the payload that some data holds would be written as this data."""
    if kind in _CANONICAL and _CANONICAL[kind](body):
        return True
    try:
        return encode(payload) == body
    except ValueError:
        return False


def plain_thought(body: bytes, index: int, prev: bytes, seq: int) -> str | None:
    """The type of a thought at its place in a session; None if the payload is not that, plainly."""
    rest = f'","index":{index},"prev":"{prev.hex()}","thought_id":"R-{seq}","type":"'
    front, _, end = body.rpartition(rest.encode())
    if not front.startswith(_CONTENT) or not _is_text(front[len(_CONTENT) :]):
        return None
    return _TYPE_ENDS.get(end)


def _is_text(data: bytes) -> bool:
    """Whether data is what stands between the quotes of a text, without the rarest escapes."""
    try:
        if not data.isascii():
            data.decode()
    except UnicodeDecodeError:
        return False
    if b"\\" in data:
        data = _ESCAPES.sub(b"", data)
    return data.translate(None, _ESCAPED) == data


def seal(count: int, first_seq: int | None, last_seq: int | None, root: bytes) -> bytes:
    """The payload of a seal."""
    return (
        f'{{"count":{count},"first_seq":{first_seq},"last_seq":{last_seq},"root":"{root.hex()}"}}'
    ).encode()


def step(task_id: str, version: int, attempt: int, old: str, new: str) -> bytes:
    """The payload of a task record that changes nothing but the status."""
    return (
        f'{{"attempt":{attempt:d},"set":{{"status":["{old}","{new}"]}}'
        f',"task_id":{encode_basestring(task_id)},"version":{version:d}}}'
    ).encode()


def load(data: bytes) -> Any:
    """The one JSON value that some data is; ValueError if it is not one, or holds a float."""
    text = data.decode()
    try:
        value, end = _decode(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if end != len(text):
        raise ValueError("more than one value")
    return value


def _refuse(number: str) -> NoReturn:
    raise ValueError(f"{number} has no place in a record")


_decode = JSONDecoder(parse_float=_refuse, parse_constant=_refuse).raw_decode


# How a plain thought begins and ends, and what its content escapes.
_CONTENT = b'{"content":"'
_TYPE_ENDS = {f'{type_}"}}'.encode(): type_ for type_ in TYPES}
_ESCAPES = re.compile(rb'\\["\\bfnrt]')
_ESCAPED = bytes(range(0x20)) + b'"\\'

# The patterns. A word is printable ASCII without escapes, a number has no sign.


def _some(names: Sequence[str], value: str) -> str:
    """An object with some of these members, in this order."""
    members = "".join(rf'(?:"{name}":{value}(?:,(?=")|(?=\}})))?+' for name in names)
    return rf"\{{{members}\}}"


_WORD = r'"[ !#-\[\]-~]*+"'
_NUMBER = r"(?:0|[1-9][0-9]{0,14}+)"
_WORDS = rf"\[(?:{_WORD}(?:,{_WORD})*+)?+\]"
_DIGEST = rf'\{{"sha256":{_WORD},"size":{_NUMBER}\}}'
_VALUE = rf"(?>{_WORD}|{_NUMBER}|null|{_DIGEST}|{_WORDS}|true|false)"
_CHANGE = rf"\[(?>{_WORD}|null|{_WORDS}),(?>{_WORD}|null|{_WORDS})\]"

# The groups of an enter: the tool, within quotes; of an exit: the seq of its enter, and the tool.
PLAIN = {
    "call.enter": re.compile(
        rf'\{{"arguments":(?>null|{_some(ARGUMENTS, _VALUE)}),"server":{_WORD}'
        rf',"sha256":(?:null|{_WORD}),"size":(?:null|{_NUMBER}),"tool":({_WORD})\}}'.encode()
    ).fullmatch,
    "call.exit": re.compile(
        rf'\{{"code":(?:null|{_WORD}),"duration_ms":{_NUMBER},"enter":({_NUMBER})'
        rf',"outcome":{_WORD},"result_sha256":(?:null|{_WORD}),"tool":({_WORD})\}}'.encode()
    ).fullmatch,
}
_CANONICAL = {
    "session.open": re.compile(
        rf'\{{"intent":{_WORD},"session_id":{_WORD},"task_id":(?:null|{_WORD})\}}'.encode()
    ).fullmatch,
    "task": re.compile(
        rf'\{{"attempt":{_NUMBER},"set":{_some(sorted(FIELDS), _CHANGE)}'
        rf',"task_id":{_WORD},"version":{_NUMBER}\}}'.encode()
    ).fullmatch,
    "task.text": re.compile(
        rf'\{{"set":{_some(sorted(TEXT_FIELDS), _CHANGE)}'
        rf',"task_id":{_WORD},"version":{_NUMBER}\}}'.encode()
    ).fullmatch,
}
