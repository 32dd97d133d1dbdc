"""One JSON value, one byte string: RFC 8785, for the values a record may hold.

Allowed: strings without lone surrogates, integers within ±(2^53−1), booleans, null, arrays, and
objects with ASCII keys, at most 64 levels deep. Within that set the standard library's C encoder
gives the RFC 8785 bytes: its escapes are those of the RFC, and ASCII keys sort alike by code point
and by UTF-16 unit. Outside it (floats above all) it would not, so everything else is refused.
"""

import json

MAX_INTEGER = 2**53 - 1
MAX_DEPTH = 64

_dump = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, allow_nan=False, sort_keys=True, separators=(",", ":")
).encode


def encode(value: object) -> bytes:
    """The RFC 8785 bytes of value; ValueError says what is not allowed, and where."""
    _check(value, ())
    return _dump(value).encode()


def sha256(data: bytes) -> bytes:
    import hashlib  # noqa: PLC0415 - OpenSSL costs 3 ms, which the first answers need not pay

    return hashlib.sha256(data).digest()


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
