"""Replaces secrets of known shapes by `[redacted:KIND]` before anything is hashed or stored.

secret_tokens.py and secret_frames.py have the shapes, secret_values.py has further conditions.
A secret without a shape cannot be found: a password in a sentence looks like any other word.
Hashes, commit ids, UUIDs and base64 have no shape either and are left alone.

Every text takes linear time, in short steps:
- A shape is searched only in a piece of PIECE bytes that contains its hint; the pieces overlap.
- A pattern matches at most REACH bytes, so a false start costs little.
- What continues after a match is skipped once and not searched again.
"""

from typing import Any, NamedTuple

from colibri.core import escapes
from colibri.core.escapes import Span, compiled
from colibri.core.secret_frames import FRAMES, HINTS
from colibri.core.secret_tokens import REACH, TOKEN_SHAPES
from colibri.core.secret_values import JUDGES, Found

SHORTEST = 12  # a shorter text cannot hold a secret of a known shape
PIECE = 8 * 1024
_SHORTEST_TOKEN = 20
_HEAD = 2  # characters of a word without parts that select the tokens it may be


class Finding(NamedTuple):
    """What was replaced and where, such as `content` or `depends_on[2]`."""

    path: str
    kind: str


def redact(value: Any) -> tuple[Any, list[Finding]]:
    """A JSON value with the secrets in its strings and keys replaced, and the findings."""
    found: dict[Finding, None] = {}
    return _clean(value, "", found), list(found)


def scrub(text: str) -> str:
    """A text with its secrets replaced."""
    return _replace(text)[0]


def _clean(value: Any, path: str, found: dict[Finding, None]) -> Any:
    if isinstance(value, str):
        text, kinds = _replace(value)
        for kind in kinds:
            found[Finding(path, kind)] = None
        return text
    if isinstance(value, list):
        return [_clean(item, f"{path}[{index}]", found) for index, item in enumerate(value)]
    if isinstance(value, dict):
        return _clean_object(value, path, found)
    return value


def _clean_object(value: dict[str, Any], path: str, found: dict[Finding, None]) -> dict[str, Any]:
    clean: dict[str, Any] = {}
    for key, item in value.items():
        name, kinds = _replace(key)
        while name in clean:  # two secrets as keys: neither may overwrite the other
            name += "+"
        here = f"{path}.{name}" if path else name
        for kind in kinds:
            found[Finding(here, kind)] = None
        clean[name] = _clean(item, here, found)
    return clean


def _replace(text: str) -> tuple[str, list[str]]:
    """A text with its secrets replaced, and their kinds in order of appearance."""
    if len(text) < SHORTEST:
        return text, []
    layers = escapes.layers(text)
    data = layers[0]
    spans = escapes.in_outermost(layers, _spans(layers[-1]))
    if len(layers) > 1 and data.find(b"%") >= 0:
        spans += _spans(data, _ADDRESSES)  # the password in a URL may hold a %2F
    if not spans:
        return text, []
    pieces: list[bytes] = []
    kinds: list[str] = []
    end = 0
    for start, rank, stop in sorted(spans):
        if start >= end:
            kinds.append(SHAPES[rank].kind)
            pieces += (data[end:start], b"[redacted:%b]" % kinds[-1].encode())
        end = max(end, stop)
    clean = b"".join((*pieces, data[end:])).decode("utf-8", "surrogatepass")
    return clean, list(dict.fromkeys(kinds))


def _spans(data: bytes, ranks: list[int] | None = None) -> list[Span]:
    """Start of each secret, the rank of its shape, and its end; they may overlap."""
    spans: list[Span] = []
    lower = data.lower()
    done: dict[int, int] = {}  # how far each shape has been searched
    for at in range(0, len(data), PIECE):
        limit = at + PIECE + REACH
        for rank in ranks or _candidates(data[at:limit], lower[at:limit].decode("latin-1")):
            shape = SHAPES[rank]
            folded = lower if shape.folds else data
            begin = max(at, done.get(rank, 0))
            while match := compiled(shape.pattern).search(folded, begin, limit):
                if match.start() >= at + PIECE:
                    break
                start, end = match.span(match.lastgroup if match.lastgroup in _SECRET else 0)
                end = JUDGES[shape.judge](Found(data, match, start, end, len(shape.hint)))
                begin = max(start, match.start() + 1)
                if end > start:
                    begin = done[rank] = _end_of_run(shape.tail, folded, end)
                    spans.append((start, rank, begin))
    return spans


def _candidates(piece: bytes, lower: str) -> list[int]:
    """The ranks of the shapes whose hint occurs; for a token, in a part of a long word."""
    found: set[int] = set()
    for signs, hints in HINTS:
        for sign in signs:
            if sign in lower:
                for hint in hints:
                    if hint in lower:
                        found.update(_BY_HINT[hint])
                break
    words = [word for word in piece.translate(_WORDS).split() if len(word) >= _SHORTEST_TOKEN]
    if words:
        parts = b" ".join(words).translate(_PARTS).split()
        parts += [part[:_HEAD] for part in parts]
        for start in _STARTS.intersection(parts):
            found.update(_BY_START[start])
    return sorted(found) if found else []


_SECRET = frozenset(("secret", "quoted", "bare"))


def _end_of_run(tail: bytes, data: bytes, at: int) -> int:
    """Where a run of characters of the class `tail` ends."""
    run = compiled(b"(?:%b){1,%d}+" % (tail, PIECE)) if tail else None
    while run and (found := run.match(data, at, at + PIECE)):
        at = found.end()
    return at


SHAPES = (*TOKEN_SHAPES, *FRAMES)
_LETTERS = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
_WORDS = bytes(byte if byte in _LETTERS or byte in b"-_.~+/=" else 32 for byte in range(256))
_PARTS = bytes(byte if byte in _LETTERS else 32 for byte in range(256))
# Tokens by the part before a separator; tokens without one by how they begin.
_BY_START: dict[bytes, list[int]] = {}
for _rank, _shape in enumerate(TOKEN_SHAPES):
    _part = _shape.hint.translate(_PARTS).split()[0]
    _BY_START.setdefault(_part[:_HEAD] if _part == _shape.hint else _part, []).append(_rank)
_STARTS = frozenset(_BY_START)
_BY_HINT: dict[str, list[int]] = {}
for _rank, _shape in enumerate(FRAMES, len(TOKEN_SHAPES)):
    _BY_HINT.setdefault(_shape.hint.decode(), []).append(_rank)
_ADDRESSES = _BY_HINT["://"]
