"""Merkle trees as RFC 6962 and RFC 9162 define them: roots, proofs, and their checks.

    leaf   SHA-256(0x00 ‖ data); for a ledger record, of its header, so the ledger has it already
    node   SHA-256(0x01 ‖ left ‖ right)
    tree   of n leaves: the left part has the largest power of two below n, the right part the rest;
           an odd node is promoted, never duplicated, and nothing is sorted

Node (level, idx) is the hash of the leaves from idx·2^level up to the next multiple of 2^level or
the end. `levels` keeps all of them, `GrowingTree` only what later nodes need; a proof is made of
the few that it asks for, wherever these are kept.

A check takes index and size from its caller, never from the proof, and consumes the whole proof.
"""

from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256

Node = Callable[[int, int], bytes]  # the hash of the node at (level, idx)

EMPTY_ROOT = sha256(b"").digest()
HASH_SIZE = 32
PART = 256  # the leaves that a growing tree hashes together; a power of two


def node_hash(left: bytes, right: bytes) -> bytes:
    """The parent node of two nodes."""
    return sha256(b"\1" + left + right).digest()


def levels(leaves: Sequence[bytes]) -> list[list[bytes]]:
    """The whole tree, from the leaves at level 0 to the root, alone on the last level."""
    rows = [list(leaves)]
    while len(rows[-1]) > 1:
        below = rows[-1]
        promoted = below[-1:] if len(below) % 2 else []
        rows.append(_parents(below) + promoted)
    return rows


def _parents(row: Sequence[bytes]) -> list[bytes]:
    """The nodes over the pairs of a row."""
    pairs = zip(row[::2], row[1::2], strict=False)
    return [sha256(b"\1" + left + right).digest() for left, right in pairs]


def root(leaves: Sequence[bytes]) -> bytes:
    """The root of a tree; without leaves, the hash of the empty string."""
    return levels(leaves)[-1][0] if leaves else EMPTY_ROOT


class GrowingTree:
    """The tree of a list of leaves that grows: its root at any time, in memory of O(log n).

    It keeps the roots of its complete parts, of which those of equal size become one, and the
    leaves of the part that is not complete. Hashing many at once takes half the time of hashing
    leaf by leaf.
    """

    __slots__ = ("_leaves", "_parts", "_peaks")

    def __init__(self) -> None:
        self._parts = 0
        self._peaks: list[bytes] = []
        self._leaves: list[bytes] = []

    @property
    def size(self) -> int:
        """How many leaves it has."""
        return self._parts * PART + len(self._leaves)

    def push(self, leaf: bytes) -> None:
        """One more leaf."""
        self._leaves.append(leaf)
        if len(self._leaves) == PART:
            self.extend(())

    def extend(self, leaves: Sequence[bytes]) -> list[bytes]:
        """More leaves; the roots of the parts that they complete."""
        self._leaves += leaves
        end = len(self._leaves) // PART * PART
        roots, self._leaves = self._leaves[:end], self._leaves[end:]
        for _ in range(PART.bit_length() - 1):
            roots = _parents(roots)
        self.extend_by_parts(roots)
        return roots

    def extend_by_parts(self, roots: Iterable[bytes]) -> None:
        """The leaves of whole parts, of which only the roots are known; before any that are
        not."""
        for root in roots:
            self._add(root)

    def root(self) -> bytes:
        """The root of the tree so far."""
        if not self._leaves and not self._peaks:
            return EMPTY_ROOT
        peaks = [*self._peaks, *([root(self._leaves)] if self._leaves else [])]
        found = peaks.pop()
        while peaks:
            found = node_hash(peaks.pop(), found)
        return found

    def _add(self, part: bytes) -> None:
        parts = self._parts
        while parts & 1:
            part = node_hash(self._peaks.pop(), part)
            parts >>= 1
        self._peaks.append(part)
        self._parts += 1


def node_in(tree: Sequence[Sequence[bytes]]) -> Node:
    """The nodes of a tree that `levels` made."""
    return lambda level, idx: tree[level][idx]


def prove_inclusion(node: Node, index: int, size: int) -> list[bytes]:
    """The audit path of a leaf in the tree of `size` leaves, from the bottom up."""
    return [node(level, index) for level, index in inclusion_path(index, size)]


def inclusion_path(index: int, size: int) -> list[tuple[int, int]]:
    """Level and index of each node of that path."""
    if not 0 <= index < size:
        raise ValueError(f"no leaf {index} in a tree of {size}")
    path, level, last = [], 0, size - 1
    while last:
        if index ^ 1 <= last:
            path.append((level, index ^ 1))
        index, last, level = index >> 1, last >> 1, level + 1
    return path


def prove_consistency(node: Node, old_size: int, size: int) -> list[bytes]:
    """A proof that the tree of `size` begins with that of `old_size` (RFC 9162 §2.1.4.1)."""
    if not 0 < old_size <= size:
        raise ValueError(f"no tree of {old_size} leaves within one of {size}")
    path: list[bytes] = []
    low, high, whole = 0, size, True
    while old_size != high:
        split = low + (1 << (high - low - 1).bit_length() - 1)
        if old_size <= split:
            path.append(_subtree(node, split, high))
            high = split
        else:
            path.append(_subtree(node, low, split))
            low, whole = split, False
    if not whole:
        path.append(_subtree(node, low, high))
    return path[::-1]


def _subtree(node: Node, low: int, high: int) -> bytes:
    level = (high - low - 1).bit_length()
    return node(level, low >> level)


def check_inclusion(
    leaf: bytes, *, index: int, size: int, path: Sequence[bytes], root: bytes
) -> bool:
    """Whether the path leads from the leaf, at this index in a tree of this size, to the root."""
    if not 0 <= index < size or not _are_hashes([leaf, root, *path]):
        return False
    at, last, found = index, size - 1, leaf
    for sibling in path:
        if last == 0:
            return False  # the path is longer than the tree is high
        if at & 1 or at == last:
            found = node_hash(sibling, found)
            while not at & 1 and at:
                at, last = at >> 1, last >> 1
        else:
            found = node_hash(found, sibling)
        at, last = at >> 1, last >> 1
    return last == 0 and found == root


def check_consistency(
    *, old_size: int, old_root: bytes, size: int, root: bytes, path: Sequence[bytes]
) -> bool:
    """Whether the tree of `size` begins with the leaves of the one of `old_size`.

    An old size of 0 is refused: every tree begins with the empty one.
    """
    if not 0 < old_size <= size or not _are_hashes([old_root, root, *path]):
        return False
    if old_size == size:
        return not path and old_root == root
    hashes = list(path)
    if old_size & old_size - 1 == 0:
        hashes.insert(0, old_root)
    if not hashes:
        return False
    at, last = old_size - 1, size - 1
    while at & 1:
        at, last = at >> 1, last >> 1
    found_old = found = hashes[0]
    for sibling in hashes[1:]:
        if last == 0:
            return False
        if at & 1 or at == last:
            found_old, found = node_hash(sibling, found_old), node_hash(sibling, found)
            while not at & 1 and at:
                at, last = at >> 1, last >> 1
        else:
            found = node_hash(found, sibling)
        at, last = at >> 1, last >> 1
    return last == 0 and found_old == old_root and found == root


def _are_hashes(values: Sequence[object]) -> bool:
    return all(isinstance(value, bytes) and len(value) == HASH_SIZE for value in values)
