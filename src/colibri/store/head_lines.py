"""The lines of a file of heads, one JSON object each.

    log, seq, leaf     the head: a record that survives a power cut, and its leaf in hex
    at, path, machine  when it was kept, and where the ledger was
    why, by, of        only in an acceptance: the log does not extend this head, or the checkpoint
                       whose `root` is given in place of a leaf, or nobody can read the witness
                       whose `object` is given, with the seq 0; and a person says why. `by` is
                       {seq, leaf} of the log's newest record at that time, `of` the place
                       {path, machine} of the witness, or null
    more               only there, if it is about several witnesses of one kind and place: of each
                       other one, its seq and its hash

In git, acceptances have the same lines without `path`, `machine` and `of`, which are private.

Whoever can write these lines can forge them, so they are read like any foreign text.
"""

import json
import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any, NamedTuple

from colibri.core.ledger import Head
from colibri.core.witness import Acceptance, Place, What, Witness

MOST_BYTES = 64 * 1024
MOST_WITNESSES = 100  # of one line
WHERE = "the state directory"

_LARGEST = 2**53 - 1
_HEAD = {"log", "seq", "leaf", "at", "path", "machine"}
_IN_GIT = {"log", "seq", "at", "why", "by"}
_ACCEPTANCE = _IN_GIT | {"path", "machine", "of"}
_is_hash = re.compile("[0-9a-f]{64}").fullmatch
is_log = re.compile("colibri/[0-9a-f]{32}").fullmatch


class Line(NamedTuple):
    """A line, with the witness or the acceptance that it holds."""

    text: bytes
    log: str
    said: Witness | tuple[Acceptance, ...]


def of_head(log: str, head: Head, at: str, place: Place) -> str:
    return _text_of({"log": log, **_named(head), "at": at, **place._asdict()})


def of_acceptances(log: str, accepted: Iterable[Acceptance]) -> Iterator[str]:
    """As few lines as hold them: those of one kind, place and reason share one."""
    for _, same in groupby(sorted(accepted, key=_shared), key=_shared):
        group = sorted({(one.size, one.hash): one for one in same}.values(), reverse=True)
        for at in range(0, len(group), MOST_WITNESSES):
            yield _acceptance(log, *group[at : at + MOST_WITNESSES])


def _shared(one: Acceptance) -> str:
    return repr(one._replace(size=0, hash=b""))


def _acceptance(log: str, first: Acceptance, *others: Acceptance) -> str:
    size, hash, of, why, at, by, place, what, *_ = first
    said: dict[str, Any] = {"log": log, "seq": size, what: hash.hex(), "at": at, "why": why}
    said["by"] = _named(by)
    if place is not None:
        said |= {**place._asdict(), "of": of and of._asdict()}
    more = [[one.size, one.hash.hex()] for one in others]
    return _text_of({**said, "more": more} if more else said)


def _named(head: Head) -> dict[str, Any]:
    return {"seq": head.seq, "leaf": head.leaf.hex()}


def _text_of(said: dict[str, Any]) -> str:
    return json.dumps(said, separators=(",", ":")) + "\n"


def parse(text: bytes) -> Line:
    """A line that was read; ValueError."""
    said = _members(text)
    what = _what(said)
    if said.keys() != _HEAD and said.keys() - {"more"} != _ACCEPTANCE | {what}:
        raise ValueError("it has other members than a head or an acceptance")
    place = _place(said)
    if "why" in said:
        of = None if said["of"] is None else _place(_object(said, "of", {"path", "machine"}))
        return Line(text, _log(said), (*_accepted(said, what, of, place),))
    size, hash, at = _number(said, 1), _hash(said, what), _text(said, "at")
    head = Witness(_log(said), size, hash, None, "state", WHERE, at, place=place)
    return Line(text, head.log, head)


def parse_in_git(text: bytes) -> Line:
    """A line of acceptances in git; ValueError."""
    said = _members(text)
    what = _what(said)
    if said.keys() - {"more"} != _IN_GIT | {what}:
        raise ValueError("it has other members than an acceptance in git")
    return Line(text, _log(said), (*_accepted(said, what, None, None),))


def _accepted(
    said: dict[str, Any], what: What, of: Place | None, place: Place | None
) -> Iterator[Acceptance]:
    by = _object(said, "by", {"seq", "leaf"})
    newest = Head(_number(by, 0), _hash(by, "leaf"))
    size, hash, at = _number(said, what != "object"), _hash(said, what), _text(said, "at")
    first = Acceptance(size, hash, of, _text(said, "why"), at, newest, place, what)
    yield first
    yield from (first._replace(size=size, hash=hash) for size, hash in _more(said, what))


def _what(said: dict[str, Any]) -> What:
    return "root" if "root" in said else "object" if "object" in said else "leaf"


def _log(said: dict[str, Any]) -> str:
    if not is_log(log := _text(said, "log")):
        raise ValueError("log is not the id of a log")
    return log


def _place(said: dict[str, Any]) -> Place:
    return Place(_text(said, "path"), _text(said, "machine"))


def _more(said: dict[str, Any], what: What) -> Iterator[tuple[int, bytes]]:
    """The other witnesses that an acceptance names."""
    more = said.get("more", [])
    if not isinstance(more, list) or len(more) >= MOST_WITNESSES:
        raise ValueError("more is not a list of witnesses")
    for one in more:
        match one:
            case [size, hash]:
                named = {"seq": size, what: hash}
                yield _number(named, what != "object"), _hash(named, what)
            case _:
                raise ValueError("more is not a list of witnesses")


def _members(text: bytes) -> dict[str, Any]:
    if len(text) > MOST_BYTES:
        raise ValueError("it is too long")
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError("it is not JSON") from None
    if not isinstance(said, dict):
        raise ValueError("it is not an object")
    return said


def _object(said: dict[str, Any], name: str, members: set[str]) -> dict[str, Any]:
    found = said[name]
    if not isinstance(found, dict) or found.keys() != members:
        raise ValueError(f"{name} is not an object with {' and '.join(sorted(members))}")
    return found


def _text(said: dict[str, Any], name: str) -> str:
    found = said[name]
    try:
        if isinstance(found, str) and found.encode():
            return found
    except UnicodeEncodeError:  # half of a character
        pass
    raise ValueError(f"{name} is not a text")


def _number(said: dict[str, Any], least: int) -> int:
    found = said["seq"]
    if type(found) is not int or not least <= found <= _LARGEST:
        raise ValueError("seq is not the number of a record")
    return found


def _hash(said: dict[str, Any], name: str) -> bytes:
    found = said[name]
    if not isinstance(found, str) or not _is_hash(found):
        raise ValueError(f"{name} is not 64 hex digits")
    return bytes.fromhex(found)
