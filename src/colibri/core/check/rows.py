"""Many rows of the ledger at once: their hashes, and whether they say what a header may say."""

import re
from collections.abc import Sequence
from hashlib import sha256
from itertools import chain, compress
from json.encoder import encode_basestring
from typing import Any, NamedTuple

from colibri.core.canonical import MAX_INTEGER
from colibri.core.ledger import COMMITMENT, KINDS
from colibri.core.rows import Row

HASH_SIZE = 32
NOT_A_ROW = (AttributeError, TypeError, ValueError)  # a column holds what it never should


Rows = Sequence[tuple[Any, ...]]  # each of them with the members of a Row


class Columns(NamedTuple):
    """What many rows hold, column by column: so a rule is checked for all of them at once."""

    seqs: tuple[int, ...]
    ats: tuple[str, ...]
    kinds: tuple[str, ...]
    calls: tuple[str, ...]
    sessions: tuple[str | None, ...]
    tasks: tuple[str | None, ...]
    agents: tuple[str | None, ...]
    payloads: tuple[bytes, ...]
    nonces: tuple[bytes, ...]
    bodies: tuple[bytes, ...]
    leaves: tuple[bytes, ...]
    prevs: tuple[bytes, ...]

    @classmethod
    def of(cls, row: Row) -> "Columns":
        """Those of one record."""
        return cls._make(zip(row, strict=True))


def are_committed(c: Columns) -> bool:
    """Whether all payloads are there, and are those that their headers commit to."""
    try:
        made = [
            sha256(COMMITMENT + nonce + body).digest()
            for nonce, body in zip(c.nonces, c.bodies, strict=True)
        ]
    except TypeError:
        return False
    return made == [*c.payloads] and {*map(len, c.nonces)} == {HASH_SIZE}


def leaves(c: Columns, log: str) -> list[bytes]:
    """The leaves of records with these columns; may raise NOT_A_ROW.

    The headers are those of `ledger.header`, spelled out: a call for each takes as long as a hash.
    Where `are_headers` holds, times and ids need no escapes.
    """
    name, names = f'","log":{encode_basestring(log)},"payload":"', (c.agents, c.sessions, c.tasks)
    quoted = {one: "null" if one is None else encode_basestring(one) for one in {*chain(*names)}}
    agents, sessions, tasks = (map(quoted.__getitem__, column) for column in names)
    hashes = map(bytes.hex, c.payloads), map(bytes.hex, c.prevs)
    columns = (agents, c.ats, c.calls, c.kinds, *hashes, c.seqs, sessions, tasks)
    return [
        sha256(
            f'\0{{"agent":{agent},"at":"{at}","call":"{call}","kind":"{kind}{name}{payload}"'
            f',"prev":"{prev}","seq":{seq},"session":{session},"task":{task},"v":1}}'.encode()
        ).digest()
        for agent, at, call, kind, payload, prev, seq, session, task in zip(*columns, strict=True)
    ]


def are_headers(c: Columns, log: str) -> bool:
    """Whether each row says what a header of docs/formats.md §2 may say; may raise NOT_A_ROW."""
    return (
        _KINDS.issuperset(c.kinds)
        and None not in compress(c.sessions, map(_OF_SESSIONS.__contains__, c.kinds))
        and None not in compress(c.tasks, map(_OF_TASKS.__contains__, c.kinds))
        and are_times(c.ats)
        and are_uuids(c.calls)
        and {*map(len, c.payloads), *map(len, c.prevs)} == {HASH_SIZE}
        and 1 <= min(c.seqs) <= max(c.seqs) <= MAX_INTEGER
        and _IS_LOG(log) is not None
    )


def are_times(texts: Sequence[str]) -> bool:
    """Whether all are times; many at once cost a tenth of a pattern for each."""
    return _joined(texts).translate(_DIGITS) == _TIME * len(texts)


def are_uuids(texts: Sequence[str]) -> bool:
    """Whether all are uuids of version 4."""
    joined = _joined(texts)
    return (
        joined.translate(_HEX_DIGITS) == _UUID * len(texts)
        and {*joined[_VERSION :: len(_UUID)]} <= {*b"4"}
        and {*joined[_VARIANT :: len(_UUID)]} <= {*b"89ab"}
    )


def are_hashes(texts: Sequence[str]) -> bool:
    """Whether all are hashes as JSON has them."""
    return _joined(texts).translate(_HEX_DIGITS) == _HASH * len(texts)


def _joined(texts: Sequence[str]) -> bytes:
    return "\n".join((*texts, "")).encode()


# Each digit becomes 0, and every place is compared with the form.
_TIME, _UUID = b"0000-00-00T00:00:00.000000Z\n", b"00000000-0000-0000-0000-000000000000\n"
_HASH = b"0" * (2 * HASH_SIZE) + b"\n"
_DIGITS = bytes.maketrans(b"123456789", b"0" * 9)
_HEX_DIGITS = bytes.maketrans(b"123456789abcdef", b"0" * 15)
_VERSION, _VARIANT = 14, 19  # the places of a uuid that tell what it is
_IS_LOG = re.compile("colibri/[0-9a-f]{32}").fullmatch

# The kinds, and those whose session or task is never null.
_KINDS = frozenset(KINDS)
_OF_SESSIONS = frozenset({"session.open", "session.resume", "thought", "session.seal"})
_OF_TASKS = frozenset({"task", "task.text"})
