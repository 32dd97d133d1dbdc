"""The log tree: the Merkle tree over the leaves of records 1 to n. Owns `log_tree`.

`log_tree` keeps the roots of complete parts, PART leaves each, so that the next checkpoint or proof
costs only what is new. Whatever is not kept is computed from the ledger, so all of this works for
someone who can only read. No tool call computes any of it. Verification never relies on a kept
root: `Comparison` computes all of them again.
"""

from collections.abc import Iterator, Sequence
from functools import partial

from colibri.core import merkle
from colibri.core.checkpoint import Checkpoint
from colibri.core.errors import Damaged
from colibri.core.merkle import PART, GrowingTree
from colibri.core.report import MAX_LISTED
from colibri.store import ledger
from colibri.store.connection import Connection

BATCH = 40  # parts that are read, or kept, at once: 10,240 records take some 15 ms


def checkpoint(db: Connection, size: int | None = None) -> Checkpoint:
    """The root over the first `size` records, or over all; ValueError, Damaged."""
    newest = ledger.last_seq(db)
    if size is None:
        size = newest
    elif not 0 <= size <= newest:
        raise ValueError(f"no tree of {size} records in a log of {newest}")
    return Checkpoint(ledger.log_id(db), size, _tree(db, 0, size).root())


def inclusion(db: Connection, seq: int, size: int) -> list[bytes]:
    """The proof that a record is in the tree of `size` records; ValueError, Damaged."""
    return merkle.prove_inclusion(partial(_node, db, size), seq - 1, size)


def consistency(db: Connection, old: int, size: int) -> list[bytes]:
    """The proof that the tree of `size` records begins with that of `old`; ValueError, Damaged."""
    return merkle.prove_consistency(partial(_node, db, size), old, size)


def is_behind(db: Connection) -> bool:
    """Whether the roots of some complete parts are not kept."""
    return kept_count(db) < ledger.last_seq(db) // PART


def keep(db: Connection) -> bool:
    """Keep the roots of the next complete parts, inside a write transaction that the caller holds.

    Whether more are left: so that no call waits long for the lock, each transaction keeps BATCH.
    """
    first = kept_count(db)
    complete = ledger.last_seq(db) // PART
    end = min(first + BATCH, complete)
    made = GrowingTree().extend(_leaves(db, first * PART, end * PART))
    db.executemany("INSERT INTO log_tree (idx, hash) VALUES (?, ?)", enumerate(made, first))
    return end < complete


def _node(db: Connection, size: int, level: int, idx: int) -> bytes:
    return _tree(db, idx << level, min(idx + 1 << level, size)).root()


def _tree(db: Connection, low: int, high: int) -> GrowingTree:
    """The tree over the leaves from low up to high, which begins a part or lies within one."""
    tree = GrowingTree()
    if low % PART == 0:
        tree.extend_by_parts(_kept(db, low // PART, high // PART))
    for start in range(low + tree.size, high, BATCH * PART):
        tree.extend(_leaves(db, start, min(start + BATCH * PART, high)))
    return tree


def kept_count(db: Connection) -> int:
    """How many parts have a kept root, or would if none were missing."""
    newest: int = db.execute("SELECT coalesce(max(idx), -1) FROM log_tree").get
    return newest + 1  # no database can add that to its largest number


def _kept(db: Connection, first: int, end: int) -> Iterator[bytes]:
    """The kept roots of parts from one up to another, as far as none is missing."""
    rows = db.execute(
        "SELECT idx, hash FROM log_tree WHERE idx >= ? AND idx < ? ORDER BY idx", (first, end)
    )
    for expected, (idx, hash) in enumerate(rows.fetchall(), first):
        if idx != expected:
            return
        yield hash


def _leaves(db: Connection, low: int, high: int) -> list[bytes]:
    """The leaves of records low + 1 to high; Damaged if one is missing."""
    query = "SELECT leaf FROM ledger WHERE seq > ? AND seq <= ? ORDER BY seq"
    leaves = [leaf for (leaf,) in db.execute(query, (low, high))]
    if len(leaves) != max(high - low, 0):
        raise Damaged(f"a record from {low + 1} to {high} is missing: colibri verify names it")
    return leaves


class Comparison:
    """How kept roots differ from those of the leaves that a verification reads."""

    def __init__(self, db: Connection, *, rows: bool) -> None:
        """Without rows, nothing that is kept is looked at."""
        self._db = db
        self._tree = GrowingTree()
        self._kept = kept_count(db) if rows else 0
        self._read: dict[int, bytes] = {}  # kept roots, up to BATCH
        self._altered: list[str] = []

    def take(self, leaves: Sequence[bytes]) -> None:
        """The next leaves of the log, in the transaction that read them."""
        first = self._tree.size // PART
        made = self._tree.extend(leaves) if first < self._kept else []
        if not made:
            return
        for idx, root in enumerate(made[: self._kept - first], first):
            if idx % BATCH == 0:
                self._read = self._roots(idx)
            if self._read.get(idx) != root:
                what = "is not theirs" if idx in self._read else "is missing"
                self._altered.append(f"the kept hash of records {_span(idx)} {what}")

    def _roots(self, first: int) -> dict[int, bytes]:
        query = "SELECT idx, hash FROM log_tree WHERE idx >= ? AND idx < ?"
        return dict(self._db.execute(query, (first, first + BATCH)).fetchall())

    def ask(self) -> None:
        """Look ahead to what is read of a small log."""
        roots = (partial(self._roots, 0),) if self._kept else ()
        self._db.look_ahead((*roots, lambda: [*self.altered()]))

    def altered(self) -> Iterator[str]:
        """What is kept and wrong, as far as the log was read."""
        yield from self._altered
        newest = ledger.last_seq(self._db)
        beyond = self._db.execute(
            "SELECT idx FROM log_tree WHERE idx < 0 OR idx >= ? ORDER BY idx LIMIT ?",
            (newest // PART, MAX_LISTED),
        )
        for (idx,) in beyond.fetchall():
            yield f"a hash of records {_span(idx)} is kept, and the log ends at {newest}"


def _span(idx: int) -> str:
    return f"{idx * PART + 1} to {(idx + 1) * PART}"
