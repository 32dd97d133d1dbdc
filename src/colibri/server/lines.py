"""Turns bytes into lines and lines into JSON values, strictly and within limits.

LIMITS
    line       4 MiB; a longer one is skipped in constant memory
    depth      64 levels of arrays and objects
    structure  100,000 commas, brackets and braces outside strings: 4 MiB of "[],[]," would
               otherwise become 100 MB of lists
    integers   within ±(2^53−1)

Also refused: invalid UTF-8, the same key twice in an object, NaN and Infinity, numbers too large
for a double, and lone surrogates. A client waits for an answer with its id, so the refusal of such
a request carries the id if it can be read.
"""

import json
import re
from collections.abc import Iterator

from colibri.core.canonical import MAX_DEPTH, MAX_INTEGER

MAX_LINE = 4 * 1024 * 1024
MAX_STRUCTURE = 100_000
_DIGITS = len(str(-MAX_INTEGER))


class Malformed(Exception):
    """The line is not JSON that we accept; says why, and the request's id if it can be read."""

    id: str | int | None = None


class Lines:
    """Chunks of bytes in, lines out; a line that is too long is not kept."""

    def __init__(self) -> None:
        self._parts = bytearray()
        self._skipping = False

    def feed(self, chunk: bytes) -> Iterator[bytes | Malformed]:
        """Every line that the chunk completes, without its newline."""
        *complete, rest = chunk.split(b"\n")
        for part in complete:
            if part and not self._parts and not self._skipping and len(part) <= MAX_LINE:
                yield part  # most lines
                continue
            yield from self._take(part)
            yield from self.end()
        yield from self._take(rest)

    def end(self) -> Iterator[bytes | Malformed]:
        """The unfinished line, if there is one."""
        line, self._parts = bytes(self._parts), bytearray()
        if not self._skipping and line:
            yield line
        self._skipping = False

    def _take(self, part: bytes) -> Iterator[Malformed]:
        if self._skipping:
            return
        if len(self._parts) + len(part) > MAX_LINE:
            self._parts = bytearray()
            self._skipping = True
            yield Malformed(f"the line is longer than {MAX_LINE} bytes")
        else:
            self._parts += part


def parse(line: bytes) -> object:
    """The one JSON value of a line; raises Malformed."""
    try:
        text = line.decode()
    except UnicodeDecodeError as problem:
        raise Malformed(f"not UTF-8 at byte {problem.start}") from None
    if structure(line) > MAX_STRUCTURE and structure(_STRING.sub(b"", line)) > MAX_STRUCTURE:
        raise Malformed(f"more than {MAX_STRUCTURE} commas, brackets and braces in one line")
    try:
        return _value(text, line)
    except json.JSONDecodeError as problem:
        what = problem.msg.lower().removesuffix(" at")
        raise Malformed(f"{what} at character {problem.pos}") from None
    except RecursionError:
        raise Malformed(_TOO_DEEP) from None
    except Malformed as problem:
        problem.id = _id(text)
        raise


def _value(text: str, line: bytes) -> object:
    value, end = _DECODER.raw_decode(text, len(text) - len(text.lstrip(_SPACE)))
    if rest := text[end:].lstrip(_SPACE):
        raise json.JSONDecodeError("Extra data", text, len(text) - len(rest))
    if line.count(b"[") + line.count(b"{") > MAX_DEPTH:
        _refuse_depth(value)
    if b"\\u" in line:
        _refuse_lone_surrogates(value)
    return value


def _id(text: str) -> str | int | None:
    """The id of a request that we refuse; None if it is unclear."""
    try:
        message = _LENIENT.decode(text)
        id = message.get("id") if isinstance(message, dict) and "method" in message else None
        if isinstance(id, str):
            id.encode()  # a lone surrogate cannot be sent back
        return id if isinstance(id, str | int) and not isinstance(id, bool) else None
    except (ValueError, RecursionError):  # lone surrogate; not JSON; too deep
        return None


# Possessive, and every quote matches, so that nothing backtracks: neither an unterminated string
# from each of its quotes, nor a long one.
_STRING = re.compile(rb'"(?:[^"\\]++|\\.?)*+"?', re.DOTALL)
_TOO_DEEP = f"nested deeper than {MAX_DEPTH} levels"


def structure(line: bytes) -> int:
    """An upper bound on the number of values in a line."""
    return line.count(b",") + line.count(b"[") + line.count(b"{")


def _refuse_depth(value: object) -> None:
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [child for parent in level for child in _children(parent)]
    if any(isinstance(value, dict | list) for value in level):
        raise Malformed(_TOO_DEEP)


def _children(value: object) -> list[object]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _refuse_lone_surrogates(value: object) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise Malformed("a \\u escape is half of a surrogate pair") from None


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise Malformed("an object has the same key twice")
    return members


def _integer(digits: str) -> int:
    if len(digits) <= _DIGITS and abs(number := int(digits)) <= MAX_INTEGER:
        return number
    raise Malformed("an integer is beyond ±(2^53−1)")


def _double(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise Malformed("a number is too large")
    return number


def _constant(name: str) -> float:
    raise Malformed(f"{name} is not JSON")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object,
    parse_int=_integer,
    parse_float=_double,
    parse_constant=_constant,
)
_SPACE = " \t\r\n"


def _members(pairs: list[tuple[str, object]]) -> dict[str, object]:
    ids = [name for name, _ in pairs if name == "id"]
    return {**dict(pairs), "id": None} if len(ids) > 1 else dict(pairs)


def _small_integer(digits: str) -> int | None:
    return int(digits) if len(digits) <= _DIGITS and abs(int(digits)) <= MAX_INTEGER else None


_LENIENT = json.JSONDecoder(object_pairs_hook=_members, parse_int=_small_integer)
