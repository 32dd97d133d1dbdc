"""The tree that the check grows leaf by leaf is the one that a seal commits to."""

from hashlib import sha256

import pytest

from colibri.core import merkle
from colibri.core.check.sessions import PART, Peaks

LEAVES = [sha256(str(number).encode()).digest() for number in range(9 * PART + 3)]
SIZES = [
    1,
    2,
    PART - 1,
    *(size for part in range(1, 10) for size in (part * PART, part * PART + 1, part * PART + 3)),
]


@pytest.mark.parametrize("size", SIZES)
def test_a_tree_that_grows_has_the_root_of_all_its_leaves(size: int) -> None:
    peaks = Peaks()
    for leaf in LEAVES[:size]:
        peaks.push(leaf)
    assert peaks.root() == merkle.root(LEAVES[:size])
    assert len(peaks.leaves) < PART


def test_it_keeps_few_hashes() -> None:
    peaks = Peaks()
    for leaf in LEAVES[: 8 * PART]:
        peaks.push(leaf)
    assert (len(peaks.hashes), len(peaks.leaves), peaks.count) == (1, 0, 8 * PART)
