"""Removes the escapes that JSON, URLs, HTML and terminals use, layer by layer.

`layers` returns a text before each round of escaping, one byte for each escape; `in_outermost`
maps a position in it back to the escaped text. Both take linear time, a piece at a time.
"""

import re
from collections.abc import Iterator
from functools import cache, lru_cache

Span = tuple[int, int, int]  # start, what it is, end

_DEEPEST = 4  # including the text itself: JSON in JSON in a URL
_PIECE = 16 * 1024
_LONGEST = 32  # no escape is longer
_SIGN = rb"[%\\&\x1b]"
_ESCAPE = (
    rb"(%[2-7][0-9A-Fa-f]|%0[9AaDd]|\x1b\[[0-9;]{0,12}m"
    rb"|\\\\{0,7}+(?:[nrt\"'`/]|(?:x1[bB]|u001[bB]|033|e)\[[0-9;]{0,12}m|(?:u00|x)[0-7][0-9A-Fa-f])"
    rb"|&(?:quot|apos|lt|gt|amp|#[0-9]{1,3}|#x[0-9A-Fa-f]{1,2});)"
)
_LETTERS = {b"n": b"\n", b"r": b"\r", b"t": b"\t"}
_NAMES = {b"quot": b'"', b"apos": b"'", b"lt": b"<", b"gt": b">", b"amp": b"&"}


@cache
def compiled(pattern: bytes) -> re.Pattern[bytes]:
    """Compiled on first use: most are never used."""
    return re.compile(pattern)


def layers(text: str) -> list[bytes]:
    """The text, the text unescaped once, twice and so on, as long as it has escapes."""
    found = [text.encode("utf-8", "surrogatepass")]
    if "%" not in text and "\\" not in text and "&" not in text and "\x1b" not in text:
        return found  # most texts
    while len(found) < _DEEPEST and _has_escape(found[-1]):
        found.append(b"".join(map(_joined, _parts(found[-1]))))
    return found


def _has_escape(data: bytes) -> bool:
    search = compiled(_ESCAPE).search
    for at in range(0, len(data), _PIECE):  # noqa: SIM110 - any() takes longer
        if search(data, at, at + _PIECE + _LONGEST):
            return True
    return False


def in_outermost(layers: list[bytes], spans: list[Span]) -> list[Span]:
    """Where spans of the innermost layer are in the text."""
    for layer in reversed(layers[:-1]) if spans else ():
        at = _places(layer, sorted({place for span in spans for place in (span[0], span[2])}))
        spans = [(at[start], rank, at[end]) for start, rank, end in spans]
    return spans


def _places(data: bytes, wanted: list[int]) -> dict[int, int]:
    """Maps positions after one round of unescaping to positions before it."""
    found: dict[int, int] = {}
    rest = iter(wanted)
    target = next(rest, None)
    at = seen = 0
    for parts in _parts(data):
        for index, part in enumerate(parts):
            size = 1 if index % 2 else len(part)
            while target is not None and target < seen + size:
                found[target] = at if index % 2 else at + target - seen
                target = next(rest, None)
            at += len(part)
            seen += size
    if target is not None:
        found[target] = at  # the end
    return found


def _parts(data: bytes) -> Iterator[list[bytes]]:
    """Text and escapes alternating, piece by piece; no piece ends within an escape."""
    at = 0
    while at < len(data):
        end = at + _PIECE
        if end < len(data) and (sign := compiled(_SIGN).search(data, end - _LONGEST, end)):
            end = sign.start()
        yield compiled(_ESCAPE).split(data[at:end])
        at = end


def _joined(parts: list[bytes]) -> bytes:
    return b"".join([_character(part) if at % 2 else part for at, part in enumerate(parts)])


@lru_cache(1024)
def _character(escape: bytes) -> bytes:
    body = escape.lstrip(b"\\")
    if body.endswith(b"m"):
        return b" "  # a colour
    if body[:1] == b"&":
        return _NAMES.get(body[1:-1]) or _numbered(body[2:-1])
    if len(body) == 1:
        return _LETTERS.get(body, body)
    return bytes([int(body[-2:], 16)])


def _numbered(text: bytes) -> bytes:
    number = int(text[1:], 16) if text[:1] == b"x" else int(text)
    return bytes([number]) if number < 128 else b"?"  # noqa: PLR2004 - ASCII
