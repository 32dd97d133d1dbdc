"""Decides whether a match is a secret, beyond its pattern, and where a private key ends.

A judge gets a match and returns where the secret ends, which is its start if it is not a secret.
What it reads is bounded: a value of 160 bytes, or a key up to where another one begins.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

from colibri.core.escapes import compiled

LONGEST_KEY = 32 * 1024
_STEP = 2048  # bytes of a private key read at a time


class Found(NamedTuple):
    """A match in data, and the part of it that may be a secret."""

    data: bytes
    match: re.Match[bytes]
    start: int
    end: int
    literal: int  # length of the beginning that all such tokens share

    @property
    def value(self) -> bytes:
        return self.data[self.start : self.end]


def _as_found(found: Found) -> int:
    return found.end


# Tokens.

_SHORT = 3  # this few characters may be base64 by chance
_FAR = 64
_BASE64_BEFORE = rb"[\w-]{%d}" % _FAR


def _token(found: Found) -> int:
    """Not a placeholder such as ghp_xxxx, nor a piece of base64 that begins like a token."""
    body = found.data[found.start + found.literal : found.end]
    is_one_letter = len(set(body) - set(b"-_.")) == 1
    before = max(0, found.start - _FAR)
    if is_one_letter or (
        found.literal <= _SHORT and compiled(_BASE64_BEFORE).match(found.data, before, found.start)
    ):
        return found.start
    return found.end


# Values in frames.

_TEMPLATE = (
    rb"[{<\[(*]|\xe2\x80\xa6|\$[{(\[]|%[({]|%[sdvr]\Z|%[A-Z][A-Z0-9_]{2,}+%|\$\$?[A-Z_][A-Z0-9_]*+\Z"
    rb"|\$(?=\w{0,40}(?:pass|pw|secret|token|key|cred))[a-z_]\w*+\Z|\.\.\."
)
_PLACEHOLDERS = (  # the longer ones first
    b"placeholder undefined changeme database optional password redacted required username"
    b" default example private replace testing access change client hidden insert masked passwd"
    b" sample secret string bytes dummy empty enter false fixme token unset value auth bool"
    b" fake goes here none null pass some test text this todo true user with your abc add any"
    b" api app bar baz bot foo int key new nil off old put str the xyz yes an db it me my no on"
).split()
_PLACEHOLDER = rb"(?:(?:%b)[^a-z0-9]{0,4}+){1,12}+\Z" % b"|".join(_PLACEHOLDERS)
# Words as people and programs write them: access-token, getAccessToken, oauth2.
_WORDY = (
    rb"(?:(?:(?:[A-Z]?[a-z]{2,20}+(?![a-z])){1,8}+|[A-Z]{2,20}+|[A-Za-z])?[0-9]{0,4}+"
    rb"(?:[-_./~+=:]{1,12}+|\Z)){1,64}+\Z"
)
_MIXED = rb"(?=[^0-9]{0,160}[0-9])(?=[^A-Za-z]{0,160}[A-Za-z])"
# A hash or UUID, an expression such as `settings.TOKEN_1`, a constant, a path.
_NO_SECRET = (
    rb"[0-9a-fA-F-]++\Z|[A-Za-z_]\w{0,64}[.(\[]|[A-Z][A-Z0-9]{0,40}+(?:_[A-Z0-9]{1,40}+)++\Z"
    rb"|[.~]{0,2}/[\w./-]*+\Z|[a-z][\w+.-]{0,20}:/"
)
_OPTION = rb"--[a-z-]{0,40}\Z"


def _value(found: Found) -> int:
    """Not a template such as ${TOKEN}, nor a placeholder such as changeme."""
    value = found.value
    if compiled(_TEMPLATE).match(value) or compiled(_PLACEHOLDER).match(value.lower()):
        return found.start
    return found.start if len(set(value)) == 1 < len(value) else found.end


def _no_words(found: Found) -> int:
    return found.start if compiled(_WORDY).match(found.value) else _value(found)


def _named(found: Found) -> int:
    """Only the name suggests a secret, so `token = ` needs stronger evidence than `TOKEN=`."""
    value, match = found.value, found.match
    if _value(found) == found.start or compiled(_NO_SECRET).match(value):
        return found.start
    name = found.data[match.start() : match.start() + 3]
    is_password, is_capital = name.lower() in (b"pas", b"pwd"), name.isupper()
    is_mixed = bool(compiled(_MIXED).match(value))
    is_wordy = bool(compiled(_WORDY).match(value))
    is_option = match["is"] == b" "
    if is_option and not compiled(_OPTION).search(
        found.data, max(0, match.start() - 44), match.start()
    ):
        return found.start
    if is_capital and not match["close"] and match["is"] == b"=":
        least = 4 if is_password else 8
        is_secret = is_password or not value.isdigit()
    elif match["quoted"] or is_option or is_capital:
        least = 6 if is_password else 8
        is_secret = is_mixed or not is_wordy
    else:
        least = 6 if is_password else 12
        is_secret = not is_wordy if not (is_mixed and is_password) else True
    return found.end if is_secret and len(value) >= least else found.start


# Private keys.

_RUN = rb"[A-Za-z0-9+/]{16,1024}+={0,2}"
_LINE = rb"""(?:[\s>|#*"'`,;+-]|<br>){0,200}+(?P<run>%b)""" % _RUN
_LOGGED_LINE = (
    rb"[^\n]{0,4}\n(?:[^\n]{0,80}\n){0,4}[^\n]{0,80}?(?P<run>[A-Za-z0-9+/]{40,1024}+={0,2})"
)
_HEADER_LINE = (
    rb"[^\n]{0,80}\n(?:[^\n]{0,8}\n){0,3}[^\n]{0,80}?[A-Za-z-]{2,20}: [^\n]{0,200}(?P<run>)"
)
_BLANKS = b" \t\r\n"
_IN_RUNS = 8  # at least one character in so many; the rest may be the dates of a log


def _private_key(found: Found, stop: bytes) -> int:
    """Up to its end line, or as far as its lines go: a truncated key is still secret."""
    data, at = found.data, found.end
    last = compiled(stop).search(data, at, at + LONGEST_KEY)
    if last and last["end"]:
        body = data[at : last.start()]
        runs = (run for run in compiled(_RUN).findall(body) if not compiled(_WORDY).match(run))
        is_key = _IN_RUNS * sum(map(len, runs)) >= len(body.translate(None, _BLANKS)) > 0
        return last.end() if is_key else found.start
    return _cut_off(data, at, last.start() if last else len(data)) or found.start


def _cut_off(data: bytes, at: int, limit: int) -> int:
    """The end of the last line of a key without an end line before the limit; 0 without lines."""
    end, headers = 0, 4
    while True:
        lines = (_LINE, _LOGGED_LINE, _HEADER_LINE)[: 2 if end or not headers else 3]
        tried = (compiled(line).match(data, at, min(at + _STEP, limit)) for line in lines)
        line = next(filter(None, tried), None)
        if line is None or (line["run"] and compiled(_WORDY).match(line["run"])):
            return end
        at = line.end()
        if line["run"]:
            end = at
        else:
            headers -= 1


_PEM_STOP = rb"-{4,5} ?(?:BEGIN|(?P<end>END[A-Z0-9 +%]{1,60}-{4,5}))"
_PUTTY_STOP = rb"Private-(?:Lines|(?P<end>MAC: [0-9a-f]{40,64}+))"

JUDGES: dict[str, Callable[[Found], int]] = {
    "": _as_found,
    "token": _token,
    "value": _value,
    "no words": _no_words,
    "named": _named,
    "PEM": lambda found: _private_key(found, _PEM_STOP),
    "PuTTY": lambda found: _private_key(found, _PUTTY_STOP),
}
