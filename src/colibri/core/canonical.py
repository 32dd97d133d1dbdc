"""Canonical JSON (RFC 8785), for the values that a record may hold: one value, one byte string.

Allowed: strings without lone surrogates, integers within ±(2^53−1), booleans, null, arrays, and
objects with ASCII keys, at most 64 levels deep. Within that set the standard library's C encoder
gives the RFC 8785 bytes, and so does msgspec's: their escapes are those of the RFC, and ASCII keys
sort the same by code point and by UTF-16 unit. Other values, above all floats, could differ and
are refused.
"""

import json
from collections.abc import Callable

MAX_INTEGER = 2**53 - 1
MAX_DEPTH = 64

_to_text = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, allow_nan=False, sort_keys=True, separators=(",", ":")
).encode


def dump(value: object) -> bytes:
    """The bytes of a value that is known to be allowed."""
    return _to_text(value).encode()


def check(value: object) -> None:
    """ValueError if a value is not allowed, saying what and where."""
    if not _fits(value, MAX_DEPTH):
        _check(value, ())


def quote(text: bytes) -> bytes:
    """The JSON string whose text is such bytes: they hold nothing else to escape."""
    return b'"' + text.replace(b"\\", b"\\\\").replace(b'"', b'\\"') + b'"'


def encode(value: object, dump: Callable[[object], bytes] = dump) -> bytes:
    """The RFC 8785 bytes of value; ValueError says what is not allowed, and where.

    msgspec's encoder, if it is loaded, can be passed as `dump`: same bytes, but faster.
    """
    if _fits(value, MAX_DEPTH):
        try:
            return dump(value)
        except UnicodeEncodeError:
            pass  # a lone surrogate; the check says where
    _check(value, ())
    return dump(value)


def sha256(data: bytes) -> bytes:
    import hashlib  # noqa: PLC0415 - OpenSSL costs 3 ms, which the first answers need not pay

    return hashlib.sha256(data).digest()


def _fits(value: object, levels: int) -> bool:
    """A quick check that it is allowed. Strings need none: no dump accepts a lone surrogate."""
    if isinstance(value, dict) and levels:
        for key, item in value.items():
            kind = type(item)
            if type(key) is not str or not key.isascii():
                return False
            if kind in _LEAVES or (kind is int and -MAX_INTEGER <= item <= MAX_INTEGER):
                continue
            if kind is list and levels > 1 and _LEAVES.issuperset(map(type, item)):
                continue  # most lists are flat, and a call costs more than looking
            if not _fits(item, levels - 1):
                return False
        return True
    if isinstance(value, list) and levels:
        for item in value:
            if type(item) not in _LEAVES and not _fits(item, levels - 1):
                return False
        return True
    return isinstance(value, str)


_LEAVES = frozenset({str, bool, type(None)})


def _check(value: object, path: tuple[str | int, ...]) -> None:
    if isinstance(value, str):
        if not value.isascii():
            _check_unicode(value, path)
    elif isinstance(value, int):
        if not -MAX_INTEGER <= value <= MAX_INTEGER:
            raise ValueError(f"{_where(path)}: an integer beyond ±(2^53-1)")
    elif value is not None:
        _check_container(value, path)


def _check_container(value: object, path: tuple[str | int, ...]) -> None:
    if len(path) >= MAX_DEPTH:
        raise ValueError(f"{_where(path)}: more than {MAX_DEPTH} levels deep")
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str) or not key.isascii():
                raise ValueError(f"{_where(path)}: a key that is not an ASCII string: {key!r}")
            _check(item, (*path, key))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            _check(item, (*path, index))
    else:
        raise ValueError(f"{_where(path)}: a {type(value).__name__} has no place in a record")


def _check_unicode(text: str, path: tuple[str | int, ...]) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{_where(path)}: a lone surrogate at character {error.start}") from None


def _where(path: tuple[str | int, ...]) -> str:
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
