"""Row: a record as the database holds it."""

from typing import NamedTuple

from colibri.core.ledger import header


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
