"""core/merkle.py: compared with the published example, the RFC's definition, and mutants."""

import random
from collections.abc import Sequence
from hashlib import sha256

import pytest

from colibri.core import ledger, merkle
from colibri.core.merkle import PART, GrowingTree
from tests.support.example_tree import CONSISTENCY, EMPTY, INCLUSION, INPUTS, ROOTS
from tests.support.naive_tree import NaiveTree

SIZE = 300
MUTANTS = 20_000

EXAMPLE = [ledger.leaf(data) for data in INPUTS]
LEAVES = [sha256(b"\0leaf %d" % number).digest() for number in range(9 * PART + 3)]
TREE = NaiveTree(LEAVES)


def node(size: int) -> merkle.Node:
    return merkle.node_in(merkle.levels(LEAVES[:size]))


def accepts_inclusion(index: int, size: int, path: Sequence[bytes]) -> bool:
    return merkle.check_inclusion(
        LEAVES[index], index=index, size=size, path=path, root=TREE.root(0, size)
    )


def accepts_consistency(old: int, size: int, path: Sequence[bytes]) -> bool:
    return merkle.check_consistency(
        old_size=old,
        old_root=TREE.root(0, old),
        size=size,
        root=TREE.root(0, size),
        path=path,
    )


def test_leaves_and_nodes_are_hashed_with_their_tags() -> None:
    """Leaf("L123456"), node("N123", "N456"); an empty tree is no empty leaf."""
    leaf = "395aa064aa4c29f7010acfe3f25db9485bbd4b91897b6ad7ad547639252b4d56"
    node = "aa217fe888e47007fa15edab33c2b492a722cb106c64667fc2b044444de66bbb"
    assert ledger.leaf(b"L123456").hex() == leaf
    assert merkle.node_hash(b"N123", b"N456").hex() == node
    assert merkle.root([]) == merkle.EMPTY_ROOT != ledger.leaf(b"")


def test_the_published_example_has_its_roots() -> None:
    """The roots of the first 0 to 8 leaves of the published example."""
    roots = [merkle.root(EXAMPLE[:size]).hex() for size in range(9)]
    assert roots == [EMPTY, *ROOTS]


def test_the_published_example_has_its_proofs() -> None:
    """Those that a public implementation is tested with."""
    for (index, size), proof in INCLUSION.items():
        node = merkle.node_in(merkle.levels(EXAMPLE[:size]))
        path = merkle.prove_inclusion(node, index, size)
        assert tuple(hash.hex() for hash in path) == proof
        leaf, root = EXAMPLE[index], bytes.fromhex(ROOTS[size - 1])
        assert merkle.check_inclusion(leaf, index=index, size=size, path=path, root=root)
    for (old, size), proof in CONSISTENCY.items():
        node = merkle.node_in(merkle.levels(EXAMPLE[:size]))
        path = merkle.prove_consistency(node, old, size)
        assert tuple(hash.hex() for hash in path) == proof
        old_root, root = (bytes.fromhex(ROOTS[n - 1]) for n in (old, size))
        assert merkle.check_consistency(
            old_size=old, old_root=old_root, size=size, root=root, path=path
        )


def test_roots_are_those_of_the_recursive_definition() -> None:
    """RFC 6962 §2.1: all sizes, not those that happen to agree."""
    for size in range(1, SIZE + 1):
        assert merkle.root(LEAVES[:size]) == TREE.root(0, size)


def test_a_growing_tree_has_the_root_of_its_leaves_at_every_size() -> None:
    """Leaf by leaf, across the ends of its parts."""
    tree = GrowingTree()
    assert (tree.size, tree.root()) == (0, merkle.EMPTY_ROOT)
    for size, leaf in enumerate(LEAVES, 1):
        tree.push(leaf)
        if size <= SIZE or size % PART in (0, 1, 3):
            assert (tree.size, tree.root()) == (size, TREE.root(0, size))


@pytest.mark.parametrize("step", [1, 100, PART, PART + 1, 5 * PART, len(LEAVES)])
def test_a_growing_tree_tells_the_roots_of_the_parts_that_are_complete(step: int) -> None:
    """However many leaves come at once; and whole parts are as good as their leaves."""
    tree, parts, known = GrowingTree(), list[bytes](), GrowingTree()
    for at in range(0, len(LEAVES), step):
        parts += tree.extend(LEAVES[at : at + step])
    assert parts == [TREE.root(at * PART, (at + 1) * PART) for at in range(9)]
    known.extend_by_parts(parts)
    assert (known.size, known.root()) == (9 * PART, TREE.root(0, 9 * PART))
    known.extend(LEAVES[9 * PART :])
    assert (known.size, known.root()) == (tree.size, tree.root())


def test_every_inclusion_proof_is_the_naive_one_and_holds() -> None:
    """RFC 6962 §2.1.1: every index of every size."""
    for size in range(1, SIZE + 1):
        node_of_tree = node(size)
        for index in range(size):
            path = merkle.prove_inclusion(node_of_tree, index, size)
            assert path == TREE.inclusion(index, 0, size)
            assert accepts_inclusion(index, size, path)


def test_every_consistency_proof_is_the_naive_one_and_holds() -> None:
    """RFC 6962 §2.1.2: every (m, n)."""
    for size in range(1, SIZE + 1):
        node_of_tree = node(size)
        for old in range(1, size + 1):
            path = merkle.prove_consistency(node_of_tree, old, size)
            assert path == TREE.consistency(old, 0, size)
            assert accepts_consistency(old, size, path)


def test_a_doubled_last_leaf_gives_another_root() -> None:
    """[a, b, c] and [a, b, c, c]; CVE-2012-2459."""
    assert merkle.root(LEAVES[:3]) != merkle.root([*LEAVES[:3], LEAVES[2]])


@pytest.mark.parametrize(("size", "index"), [(1, 1), (1, -1), (8, 8), (8, -1), (0, 0)])
def test_no_inclusion_of_a_leaf_that_is_not_there_is_proved_or_accepted(
    size: int, index: int
) -> None:
    """Refuse size 0 and an index out of range."""
    with pytest.raises(ValueError, match="no leaf"):
        merkle.prove_inclusion(node(size), index, size)
    root = merkle.root(LEAVES[:size])
    for path in ([], [LEAVES[0]], TREE.inclusion(0, 0, 8)):
        assert not merkle.check_inclusion(LEAVES[0], index=index, size=size, path=path, root=root)


@pytest.mark.parametrize(("old", "size"), [(0, 0), (0, 8), (9, 8), (-1, 8)])
def test_no_consistency_with_nothing_or_with_more_is_proved_or_accepted(
    old: int, size: int
) -> None:
    """From size 0 anything would follow."""
    with pytest.raises(ValueError, match="no tree of"):
        merkle.prove_consistency(node(size), old, size)
    for path in ([], [LEAVES[0]], TREE.consistency(6, 0, 8)):
        for old_root in (merkle.EMPTY_ROOT, TREE.root(0, 8)):
            assert not merkle.check_consistency(
                old_size=old, old_root=old_root, size=size, root=TREE.root(0, 8), path=path
            )


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 9, 64, 100])
def test_a_proof_is_used_up_exactly(size: int) -> None:
    """Neither a hash too many nor one too few, at either end."""
    for index in range(size):
        path = TREE.inclusion(index, 0, size)
        for wrong in ([*path, LEAVES[0]], [LEAVES[0], *path], path[1:], path[:-1]):
            assert wrong == path or not accepts_inclusion(index, size, wrong)
    for old in range(1, size + 1):
        path = TREE.consistency(old, 0, size)
        for wrong in ([*path, LEAVES[0]], [LEAVES[0], *path], path[1:], path[:-1]):
            assert wrong == path or not accepts_consistency(old, size, wrong)


@pytest.mark.parametrize("wrong", [LEAVES[0][:31], LEAVES[0] + b"\0", b"", "00" * 32, None, 7])
def test_what_is_no_hash_is_refused_wherever_it_stands(wrong: object) -> None:
    """Wrong lengths; a check never raises, it says no."""
    path: list[object] = list(TREE.inclusion(2, 0, 5))
    good = {"leaf": LEAVES[2], "root": TREE.root(0, 5)}
    for at in range(len(path)):
        mixed = [*path[:at], wrong, *path[at + 1 :]]
        assert not merkle.check_inclusion(**good, index=2, size=5, path=mixed)  # type: ignore[arg-type]
    for name in good:
        spoilt = {**good, name: wrong}
        assert not merkle.check_inclusion(**spoilt, index=2, size=5, path=path)  # type: ignore[arg-type]
    roots = {"old_root": TREE.root(0, 3), "root": TREE.root(0, 5)}
    longer = [*TREE.consistency(3, 0, 5)[:-1], wrong]
    assert not merkle.check_consistency(old_size=3, size=5, path=longer, **roots)  # type: ignore[arg-type]
    path = list(TREE.consistency(3, 0, 5))
    for name in roots:
        spoilt = {**roots, name: wrong}
        assert not merkle.check_consistency(old_size=3, size=5, path=path, **spoilt)  # type: ignore[arg-type]


def test_a_tree_is_consistent_with_itself_and_only_without_a_path() -> None:
    assert accepts_consistency(5, 5, [])
    assert not accepts_consistency(3, 5, [])
    assert not accepts_consistency(5, 5, [LEAVES[0]])
    assert not merkle.check_consistency(
        old_size=5, old_root=TREE.root(0, 4), size=5, root=TREE.root(0, 5), path=[]
    )


def mutate(chance: random.Random, path: list[bytes]) -> list[bytes]:
    """One lie: a bit, a hash more or less, two in each other's place, one twice."""
    at = chance.randrange(len(path))
    flipped = bytearray(path[at])
    flipped[chance.randrange(32)] ^= 1 << chance.randrange(8)
    other = chance.randrange(len(path))
    swapped = list(path)
    swapped[at], swapped[other] = swapped[other], swapped[at]
    return chance.choice(
        [
            [*path[:at], bytes(flipped), *path[at + 1 :]],
            [*path[:at], *path[at + 1 :]],
            [*path[:at], path[other], *path[at:]],
            [*path[:at], chance.choice(LEAVES), *path[at:]],
            swapped,
            path[::-1],
        ]
    )


def test_no_mutated_proof_is_accepted() -> None:
    """20,000 mutants; index, size and roots are the caller's and stay."""
    chance, tried = random.Random(4), 0
    while tried < MUTANTS:
        size = chance.randrange(2, SIZE + 1)
        index, old = chance.randrange(size), chance.randrange(1, size)
        mutant = mutate(chance, TREE.inclusion(index, 0, size))
        if mutant != TREE.inclusion(index, 0, size):
            assert not accepts_inclusion(index, size, mutant), (size, index)
            tried += 1
        mutant = mutate(chance, TREE.consistency(old, 0, size))
        if mutant != TREE.consistency(old, 0, size):
            assert not accepts_consistency(old, size, mutant), (size, old)
            tried += 1


def test_no_proof_is_accepted_for_another_leaf_place_or_root() -> None:
    """What the caller knows decides."""
    for size in range(2, 40):
        for index in range(size):
            path, root = TREE.inclusion(index, 0, size), TREE.root(0, size)
            for other in set(range(size)) - {index}:
                assert not merkle.check_inclusion(
                    LEAVES[index], index=other, size=size, path=path, root=root
                )
                assert not merkle.check_inclusion(
                    LEAVES[other], index=index, size=size, path=path, root=root
                )
            assert not merkle.check_inclusion(
                LEAVES[index], index=index, size=size, path=path, root=TREE.root(0, size - 1)
            )
