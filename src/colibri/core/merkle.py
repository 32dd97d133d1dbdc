"""Merkle trees as RFC 6962 and RFC 9162 define them: roots, proofs, and their checks.

    leaf   SHA-256(0x00 ‖ data); for a ledger record, of its header, so the ledger has it already
    node   SHA-256(0x01 ‖ left ‖ right)
    tree   of n leaves: the left part has the largest power of two below n, the right part the rest;
           an odd node is promoted, never duplicated, and nothing is sorted

`levels` keeps a tree as rows: (level, idx) is the hash of the leaves from idx·2^level up to the
next multiple of 2^level or the end.

A check takes index and size from its caller, never from the proof, and consumes the whole proof.
"""

from collections.abc import Sequence
from hashlib import sha256

Levels = Sequence[Sequence[bytes]]

EMPTY_ROOT = sha256(b"").digest()
HASH_SIZE = 32


def leaf_hash(data: bytes) -> bytes:
    """The leaf of some data."""
    return sha256(b"\0" + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """The parent node of two nodes."""
    return sha256(b"\1" + left + right).digest()


def levels(leaves: Sequence[bytes]) -> list[list[bytes]]:
    """The whole tree, from the leaves at level 0 to the root, alone on the last level."""
    rows = [list(leaves)]
    while len(rows[-1]) > 1:
        below = rows[-1]
        pairs = zip(below[::2], below[1::2], strict=False)
        promoted = below[-1:] if len(below) % 2 else []
        rows.append([sha256(b"\1" + left + right).digest() for left, right in pairs] + promoted)
    return rows


def root(leaves: Sequence[bytes]) -> bytes:
    """The root of a tree; without leaves, the hash of the empty string."""
    return levels(leaves)[-1][0] if leaves else EMPTY_ROOT


def prove_inclusion(tree: Levels, index: int) -> list[bytes]:
    """The audit path of a leaf, from the bottom up."""
    if not 0 <= index < len(tree[0]):
        raise ValueError(f"no leaf {index} in a tree of {len(tree[0])}")
    path = []
    for row in tree[:-1]:
        sibling = index ^ 1
        if sibling < len(row):
            path.append(row[sibling])
        index >>= 1
    return path


def prove_consistency(tree: Levels, size: int) -> list[bytes]:
    """A proof that the tree begins with the tree of `size` leaves (RFC 9162 §2.1.4.1)."""
    count = len(tree[0])
    if not 0 < size <= count:
        raise ValueError(f"no tree of {size} leaves within one of {count}")
    path: list[bytes] = []
    low, high, whole = 0, count, True
    while size != high - low:
        split = 1 << (high - low - 1).bit_length() - 1
        if size <= split:
            path.append(_subtree(tree, low + split, high))
            high = low + split
        else:
            path.append(_subtree(tree, low, low + split))
            low, size, whole = low + split, size - split, False
    if not whole:
        path.append(_subtree(tree, low, high))
    return path[::-1]


def _subtree(tree: Levels, low: int, high: int) -> bytes:
    level = (high - low - 1).bit_length()
    return tree[level][low >> level]


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
