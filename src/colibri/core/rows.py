"""Rows: records as the database holds them, the proof that they are intact, and what they say."""

from collections.abc import Sequence
from hashlib import sha256
from json.encoder import encode_basestring
from typing import Any, NamedTuple

from colibri.core.ledger import COMMITMENT, MEMBERS, Entry, header
from colibri.core.payload import load


class Row(NamedTuple):
    """A record as the database holds it; the columns from `prev` on are copies of the header's."""

    seq: int
    header: bytes
    leaf: bytes
    prev: bytes
    at: str
    kind: str
    call: str
    session: str | None
    task: str | None
    agent: str | None
    nonce: bytes | None
    body: bytes | None


def are_intact(rows: Sequence[tuple[Any, ...]], log: str, after: Entry) -> bool:
    """Whether rows are, all of them, intact records of a log that follow one of its records.

    They are if their headers, made again from their columns, their payloads and their predecessors,
    are byte for byte the stored ones, and the stored leaves are the hashes of those.
    """
    try:
        headers = _headers(rows, log)
    except (AttributeError, TypeError):  # no payload, or a column of another type
        return False
    leaves = [sha256(b"\0" + made).digest() for made in headers]
    seqs, prevs = range(after.seq + 1, after.seq + 1 + len(rows)), [after.leaf, *leaves[:-1]]
    right = list(zip(seqs, headers, leaves, prevs, strict=True))
    return right == [row[:4] for row in rows] and MEMBERS.keys() >= {row[5] for row in rows}


def _headers(rows: Sequence[tuple[Any, ...]], log: str) -> list[bytes]:
    """As `ledger.header` makes them, spelled out: a call for each would take as long as a hash."""
    digest, quote = sha256, encode_basestring
    front = f'","log":{quote(log)},"payload":"'
    return [
        (
            f'{{"agent":{"null" if agent is None else quote(agent)}'
            f',"at":{quote(at)},"call":{quote(call)},"kind":"{kind}{front}'
            f'{digest(COMMITMENT + nonce + body).hexdigest()}","prev":"{prev.hex()}"'
            f',"seq":{seq},"session":{"null" if session is None else quote(session)}'
            f',"task":{"null" if task is None else quote(task)},"v":1}}'
        ).encode()
        for seq, _, _, prev, at, kind, call, session, task, agent, nonce, body in rows
    ]


class Stated(NamedTuple):
    """What a header says."""

    seq: int
    at: str
    kind: str
    call: str
    session: str | None
    task: str | None
    agent: str | None
    payload: bytes
    prev: bytes

    def copies(self) -> dict[str, Any]:
        """What the columns beside the header should hold."""
        return {name: getattr(self, name) for name in ("at", "kind", "call", "session", "task")}


def parse_header(data: bytes, log: str) -> Stated:
    """ValueError unless data is, byte for byte, a version 1 header of this log."""
    try:
        members = load(data)
        stated = Stated(
            members["seq"],
            members["at"],
            members["kind"],
            members["call"],
            members["session"],
            members["task"],
            members["agent"],
            bytes.fromhex(members["payload"]),
            bytes.fromhex(members["prev"]),
        )
        again = header(log=members["log"], **stated._asdict())
    except (KeyError, TypeError, ValueError):
        raise ValueError("the header is not a record header") from None
    if again != data or type(stated.seq) is not int or stated.kind not in MEMBERS:
        raise ValueError("the header is not in version 1 of the format")
    if members["log"] != log:
        raise ValueError(f"the header belongs to the log {members['log']}")
    return stated
