"""Rows: records as the database holds them, their headers, and the proof that they are intact."""

from collections.abc import Sequence
from hashlib import sha256
from json.encoder import encode_basestring
from typing import Any, NamedTuple

from colibri.core.ledger import COMMITMENT, MEMBERS, Entry, header


class Row(NamedTuple):
    """A record as the database holds it; nonce and body are None when they are erased."""

    seq: int
    at: str
    kind: str
    call: str
    session: str | None
    task: str | None
    agent: str | None
    payload: bytes  # the commitment to nonce and body
    nonce: bytes | None
    body: bytes | None
    leaf: bytes
    prev: bytes

    def header(self, log: str) -> bytes:
        """The bytes that were hashed; TypeError for a column of another type."""
        return header(log, *self[:8], self.prev)


def are_intact(rows: Sequence[tuple[Any, ...]], log: str, after: Entry) -> bool:
    """Whether rows are, all of them, intact records of a log that follow one of its records.

    They are if their headers hash to the stored leaves, their payloads to the stored commitments,
    and each names the leaf before it.
    """
    try:
        leaves = [sha256(header).digest() for header in _headers(rows, log)]
        payloads = [sha256(COMMITMENT + row[8] + row[9]).digest() for row in rows]
    except (AttributeError, TypeError):  # no payload, or a column of another type
        return False
    seqs, prevs = range(after.seq + 1, after.seq + 1 + len(rows)), [after.leaf, *leaves[:-1]]
    right = list(zip(seqs, payloads, leaves, prevs, strict=True))
    stored = [(row[0], row[7], row[10], row[11]) for row in rows]
    return right == stored and MEMBERS.keys() >= {row[2] for row in rows}


def _headers(rows: Sequence[tuple[Any, ...]], log: str) -> list[bytes]:
    """What is hashed of each, spelled out: a call of `ledger.header` would take as long as that."""
    quote = encode_basestring
    front = f'","log":{quote(log)},"payload":"'
    return [
        (
            f'\0{{"agent":{"null" if agent is None else quote(agent)}'
            f',"at":{quote(at)},"call":{quote(call)},"kind":"{kind}{front}'
            f'{payload.hex()}","prev":"{prev.hex()}"'
            f',"seq":{seq},"session":{"null" if session is None else quote(session)}'
            f',"task":{"null" if task is None else quote(task)},"v":1}}'
        ).encode()
        for seq, at, kind, call, session, task, agent, payload, _, _, _, prev in rows
    ]
