"""Ids and nonces: random, or in TEST mode derived from a seed so that a run can be repeated.

TEST takes them from SHA-256(seed ‖ purpose ‖ seq). The ledger never uses a sequence number twice,
so a restart does not repeat an id.
"""

import os
import struct
from collections import deque

from colibri.core.uuids import uuid4

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


POOL = 128  # nonces that are drawn at once
_cut = struct.Struct("32s" * POOL).unpack


class Ids:
    """The source of every id and nonce of a server."""

    def __init__(self, seed: int | None = None) -> None:
        self._seed = seed
        self.seeded = seed is not None
        self._pool: deque[bytes] = deque()
        self.nonce: Callable[[int], bytes] = self._random_nonce if seed is None else self._nonce

    def draw(self, purpose: str, seq: int) -> bytes:
        """32 bytes for this purpose at this position in the ledger."""
        if self._seed is None:
            return self._random_nonce(seq)
        import hashlib  # costs 4 ms of start-up, and only TEST needs it

        return hashlib.sha256(f"{self._seed}\n{purpose}\n{seq}".encode()).digest()

    def uuid(self, purpose: str, seq: int) -> str:
        return uuid4(self.draw(purpose, seq))

    def log(self) -> str:
        """The identity of a new ledger."""
        return "colibri/" + self.draw("log", 0)[:16].hex()

    def _nonce(self, seq: int) -> bytes:
        return self.draw("nonce", seq)

    def _random_nonce(self, seq: int) -> bytes:  # same signature as the derived one
        """From a pool, to save system calls; a deque never gives two threads the same nonce."""
        try:
            return self._pool.pop()
        except IndexError:
            made: tuple[bytes, ...] = _cut(os.urandom(32 * POOL))
            self._pool.extend(made[1:])
            return made[0]
