"""The tree functions of both verifiers: the published example, a naive definition, and mutants."""

import hashlib
import random
from types import ModuleType
from typing import Any

import pytest

from colibri.core import merkle
from tests.support.example_tree import INCLUSION, INPUTS, ROOTS
from tests.support.naive_tree import NaiveTree
from tests.verify.conftest import Node

MOST = 128

Proof = tuple[str, int, int, list[str]]  # leaf, index, size, path


def leaf(data: bytes) -> bytes:
    return hashlib.sha256(b"\x00" + data).digest()


LEAVES = [leaf(number.to_bytes(2, "big")) for number in range(MOST)]
EXAMPLE = [leaf(data) for data in INPUTS]
TREE = NaiveTree(LEAVES)


@pytest.fixture(scope="module")
def honest() -> list[tuple[Proof, str]]:
    """Every (index, size) up to MOST, with the root that its proof must lead to."""
    cases = []
    for size in range(1, MOST + 1):
        root = TREE.root(0, size).hex()
        for index in range(size):
            path = [step.hex() for step in TREE.inclusion(index, 0, size)]
            cases.append(((LEAVES[index].hex(), index, size, path), root))
    return cases


def python_root(python: ModuleType, proof: Proof) -> str | None:
    text, index, size, path = proof
    steps = [bytes.fromhex(step) for step in path]
    root = python.root_of_proof(bytes.fromhex(text), index, size, steps)
    return None if root is None else root.hex()


def tree_root(python: ModuleType, leaves: list[bytes]) -> str:
    tree = python.Tree()
    for one in leaves:
        tree.add(one)
    root: bytes = tree.root()
    return root.hex()


def test_the_hash_of_the_javascript_is_sha_256(node: Node) -> None:
    chance = random.Random(180)
    texts = [chance.randbytes(size) for size in (*range(200), 1_000, 4_096, 1_000_003)]
    assert node("hashes", [text.hex() for text in texts]) == [
        hashlib.sha256(text).hexdigest() for text in texts
    ]


def test_the_published_roots_come_out(python: ModuleType) -> None:
    assert [python.sha256(b"\0", data) for data in INPUTS] == EXAMPLE
    for size, root in enumerate(ROOTS, 1):
        assert tree_root(python, EXAMPLE[:size]) == root


def test_the_published_roots_come_out_of_the_javascript(node: Node) -> None:
    trees = [[leaf.hex() for leaf in EXAMPLE[:size]] for size in range(1, 9)]
    assert node("roots", trees) == list(ROOTS)


def test_the_published_proofs_hold_in_both(python: ModuleType, node: Node) -> None:
    proofs: list[Proof] = [
        (EXAMPLE[index].hex(), index, size, list(path)) for (index, size), path in INCLUSION.items()
    ]
    roots = [ROOTS[size - 1] for _, size in INCLUSION]
    assert [python_root(python, proof) for proof in proofs] == roots
    assert node("proofs", proofs) == roots


def test_every_root_up_to_128_is_that_of_the_definition(python: ModuleType, node: Node) -> None:
    sizes = range(1, MOST + 1)
    wanted = [TREE.root(0, size).hex() for size in sizes]
    assert [tree_root(python, LEAVES[:size]) for size in sizes] == wanted
    assert node("roots", [[leaf.hex() for leaf in LEAVES[:size]] for size in sizes]) == wanted


def test_every_proof_up_to_128_holds_in_both(
    python: ModuleType, node: Node, honest: list[tuple[Proof, str]]
) -> None:
    wanted = [root for _, root in honest]
    assert len(honest) == MOST * (MOST + 1) // 2
    assert [python_root(python, proof) for proof, _ in honest] == wanted
    assert node("proofs", [proof for proof, _ in honest]) == wanted


def test_no_tree_has_a_proof_of_another_length(
    python: ModuleType, honest: list[tuple[Proof, str]]
) -> None:
    for (text, index, size, path), _ in honest:
        assert python_root(python, (text, index, size, [*path, "00" * 32])) is None
        if path:
            assert python_root(python, (text, index, size, path[:-1])) is None


@pytest.mark.parametrize(("index", "size"), [(0, 0), (1, 1), (8, 8), (-1, 8), (9, 8), (2**53, 1)])
def test_an_index_outside_the_tree_is_refused(
    python: ModuleType, node: Node, index: int, size: int
) -> None:
    proof: Proof = (EXAMPLE[0].hex(), index, size, list(INCLUSION[5, 8]))
    assert python_root(python, proof) is None
    assert node("proofs", [proof, (proof[0], index, size, [])]) == [None, None]


def test_a_tree_beyond_32_bits_is_walked_alike_in_both(python: ModuleType, node: Node) -> None:
    """Bit operations of JavaScript end there."""
    shuffled = random.Random(7)
    proofs: list[Any] = []
    for _ in range(200):
        size = shuffled.randrange(2**31, 2**53)
        index = shuffled.choice([0, size - 1, shuffled.randrange(size)])
        for length in range(45, 54):
            path = [LEAVES[n].hex() for n in range(length)]
            proofs.append((EXAMPLE[0].hex(), index, size, path))
    roots = [python_root(python, proof) for proof in proofs]
    assert any(roots) and not all(roots)
    assert node("proofs", proofs) == roots


def mutate(proof: Proof, chance: random.Random) -> Proof:
    """The proof with one thing wrong: its leaf, index or path."""
    text, index, size, path = proof
    steps = list(path)
    way = chance.choice(["leaf", "index", "flip", "drop", "add", "swap", "double", "replace"])
    at = chance.randrange(len(steps)) if steps else 0
    if way == "leaf" or (not steps and way not in ("index", "add")):
        return flip(text, chance), index, size, steps
    if way == "index":
        return text, chance.choice([n for n in range(-1, size + 2) if n != index]), size, steps
    if way == "flip":
        steps[at] = flip(steps[at], chance)
    elif way == "drop":
        del steps[at]
    elif way == "add":
        steps.insert(chance.randrange(len(steps) + 1), chance.choice(LEAVES).hex())
    elif way == "swap":
        other = (at + 1) % len(steps)
        steps[at], steps[other] = steps[other], steps[at]
        if len(steps) == 1:
            steps[0] = flip(steps[0], chance)
    elif way == "double":
        steps.insert(at, steps[at])
    else:
        steps[at] = text
    return text, index, size, steps


def flip(text: str, chance: random.Random) -> str:
    data = bytearray.fromhex(text)
    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return data.hex()


@pytest.mark.parametrize("count", [2_000, pytest.param(20_000, marks=pytest.mark.long)])
def test_of_mutated_proofs_neither_verifier_nor_the_server_accepts_one_and_all_agree(
    python: ModuleType, node: Node, honest: list[tuple[Proof, str]], count: int
) -> None:
    """And 100,000 in scripts/torture verifiers."""
    chance = random.Random(6962)
    chosen = [chance.choice(honest) for _ in range(count)]
    mutants = [mutate(proof, chance) for proof, _ in chosen]
    assert all(mutant != proof for mutant, (proof, _) in zip(mutants, chosen, strict=True))
    mine = [python_root(python, mutant) for mutant in mutants]
    assert node("proofs", mutants) == mine
    accepted = [
        mutant for mutant, got, (_, root) in zip(mutants, mine, chosen, strict=True) if got == root
    ]
    assert accepted == []
    assert all(server_accepts(*case) for case in chosen)
    assert not any(
        server_accepts(mutant, root) for mutant, (_, root) in zip(mutants, chosen, strict=True)
    )


def server_accepts(proof: Proof, root: str) -> bool:
    leaf, index, size, path = proof
    return merkle.check_inclusion(
        bytes.fromhex(leaf),
        index=index,
        size=size,
        path=[bytes.fromhex(step) for step in path],
        root=bytes.fromhex(root),
    )
