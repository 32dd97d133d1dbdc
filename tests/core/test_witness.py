"""Whether a log extends what was kept of it: heads, checkpoints, and what a person accepted."""

from colibri.core.ledger import Head
from colibri.core.witness import (
    Acceptance,
    Comparison,
    Judged,
    Place,
    Proof,
    Signature,
    Witness,
    Witnesses,
    held,
    held_to,
    is_held,
    remarks,
)
from tests.support.naive_tree import NaiveTree

LOG, OTHER = "colibri/" + "0" * 32, "colibri/" + "1" * 32
HERE, THERE = Place("/here/colibri.db", "ada"), Place("/there/colibri.db", "ada")


def leaf(seq: int, version: int = 0) -> bytes:
    return bytes([seq, version]) * 16


def head(seq: int, version: int = 0, place: Place = HERE, log: str = LOG) -> Witness:
    return Witness(log, seq, leaf(seq, version), None, "state", "the file", place=place)


def checkpoint(size: int, root: bytes) -> Witness:
    return Witness(LOG, size, None, root, "ref", "commit 1a2b3c4")


def accepted(one: Witness, by: Head, place: Place = HERE) -> Acceptance:
    return Acceptance(one.size, one.hash, one.place, "I know", "2026-01-01", by, place)


def judged(*found: Witness, last: int = 9, by: tuple[Acceptance, ...] = ()) -> list[Judged]:
    """What a log of so many records makes of witnesses, as its verification asks."""
    compared = Comparison(LOG, Witnesses(found, by, HERE))
    compared.leaves = {seq: leaf(seq) for seq in compared.seqs if seq <= last}
    compared.roots = {size: bytes([size]) * 32 for size in compared.sizes if size <= last}
    return [*compared.judge(last)]


def test_every_leaf_or_only_those_that_are_named() -> None:
    """Specification 24.7: whatever the stretches, roots are those of the leaves that were read."""
    leaves = [leaf(seq) for seq in range(1, 41)]
    found = [checkpoint(size, NaiveTree(leaves[:size]).root()) for size in (1, 7, 8, 33, 40)]
    found += [head(1), head(16), head(40)]
    for stretch in (1, 3, 8, 40):
        compared = Comparison(LOG, Witnesses((*found, checkpoint(41, b"x"), head(41))))
        for at in range(0, 40, stretch):
            compared.take(at + 1, leaves[at : at + stretch])
        assert [one.result for one in compared.judge(40)] == ["held"] * 8 + ["diverged"] * 2


def results(*found: Witness, last: int = 9, by: tuple[Acceptance, ...] = ()) -> list[str]:
    return [one.result for one in judged(*found, last=last, by=by)]


def test_each_witness_is_named_for_what_it_is() -> None:
    """Specification 24.5."""
    found = judged(
        head(3),
        head(4, 1),
        head(10),
        head(3, log=OTHER),
        head(5, 1, THERE),
        checkpoint(2, b"\2" * 32),
        checkpoint(2, b"\3" * 32),
        checkpoint(12, b"\3" * 32),
    )
    assert [(one.result, one.detail) for one in found] == [
        ("held", ""),
        ("diverged", "the log has another record there"),
        ("diverged", "the log ends at record 9"),
        ("other-log", f"that is a record of another log, {OTHER}"),
        (
            "diverged",
            "the log has another record there: a copy at /there/colibri.db on ada wrote it",
        ),
        ("held", ""),
        ("diverged", "the log has other records up to there"),
        ("diverged", "the log ends at record 9"),
    ]
    assert (held_to(found), is_held(found)) == (3, "no")


def test_what_a_log_has_nothing_to_say_about_does_not_hold_it() -> None:
    """Specification 24.5: none is neither yes nor no."""
    assert is_held(judged()) == is_held(judged(head(3, log=OTHER))) == "none"
    assert (held_to(judged()), held(judged(), 9)) == (None, "")
    assert is_held(judged(head(3))) == "yes"


def test_an_acceptance_holds_for_the_log_in_which_it_was_given() -> None:
    """Specification 24.9: not for another copy, which lacks the record after which it was."""
    cut = head(10)
    assert results(cut, by=(accepted(cut, Head(9, leaf(9))),)) == ["accepted"]
    assert results(cut, by=(accepted(cut, Head(9, leaf(9, 1))),)) == ["diverged"]
    assert results(cut, by=(accepted(cut, Head(10, leaf(10))),)) == ["diverged"]
    assert results(cut, last=0, by=(accepted(cut, Head(0, bytes(32))),)) == ["accepted"]
    root = checkpoint(10, bytes(32))
    assert results(root, by=(accepted(root, Head(9, leaf(9))),)) == ["accepted"]


def test_a_copy_is_accepted_once_and_the_own_ledger_each_time() -> None:
    """Specification 24.9: what goes on elsewhere needs no second word; what is lost here does."""
    copy, here = head(4, 1, THERE), head(4, 1)
    by = Head(5, leaf(5))
    assert results(head(8, 1, THERE), by=(accepted(copy, by),)) == ["accepted"]
    assert results(head(8, 1), by=(accepted(here, by),)) == ["diverged"]
    assert results(head(8, 1), by=(accepted(copy, by),)) == ["diverged"]
    elsewhere = accepted(here, by, THERE)  # accepted over there: of its heads only that one
    assert results(here, head(8, 1), by=(elsewhere,)) == ["accepted", "diverged"]


def test_what_extends_an_accepted_checkpoint_is_accepted_with_it() -> None:
    """A copy went on after record 4, and its checkpoints keep coming: 6, 8 and 9."""
    copy = NaiveTree([leaf(seq, seq > 4) for seq in range(1, 10)])
    other = NaiveTree([leaf(seq, 2 * (seq > 4)) for seq in range(1, 10)])

    def extending(tree: NaiveTree, size: int, old: int) -> Witness:
        proof = Proof(old, tuple(tree.consistency(old, 0, size)))
        return checkpoint(size, tree.root(0, size))._replace(proof=proof)

    first, second, third = (extending(copy, *sizes) for sizes in ((6, 4), (8, 6), (9, 8)))
    by = accepted(first, Head(5, leaf(5)))._replace(what="root")

    def results(*found: Witness, by: tuple[Acceptance, ...] = (by,)) -> list[str]:
        return [one.result for one in judged(*found, by=by)]

    assert results(third, second, first) == ["accepted"] * 3
    assert judged(third, second, by=(by,))[0].accepted == by
    assert results(third) == ["diverged"], "there is no proof from 6 to 9"
    assert results(second, first, by=()) == ["diverged"] * 2
    elsewhere = by._replace(by=Head(5, leaf(5, 1)))
    assert results(second, by=(elsewhere,)) == ["diverged"], "it was given for another copy"
    assert results(second._replace(root=other.root(0, 8))) == ["diverged"], (
        "the proof is of another"
    )
    assert results(extending(other, 8, 6)) == ["diverged"], "a third copy, which nobody accepted"


def test_the_farthest_witness_is_named_and_of_these_one_that_is_elsewhere() -> None:
    """Specification 24.7."""
    root = checkpoint(3, b"\3" * 32)
    pushed = root._replace(remote="origin", signature=Signature("good", "ada"))
    found = judged(head(2), head(3), root, pushed)
    by = "commit 1a2b3c4, kept at origin, good signature of ada"
    assert held(found, 0) == f"held to record 3 by {by}"
    assert held(found, 1) == f"held to record 3 by {by}; 1 record is newer than any witness"
    assert held(found, 1204).endswith("; 1,204 records are newer than any witness")
    unknown = root._replace(signature=Signature("unknown key"))
    assert held(judged(unknown), 0).endswith("commit 1a2b3c4, unknown key signature")


def test_remarks_repeat_what_was_accepted_and_name_other_logs() -> None:
    """Specification 24.9: each reason once, with the newest of what it is about."""
    lost = [head(seq)._replace(at="2026-01-02") for seq in (10, 11, 12)]
    by = tuple(accepted(one, Head(9, leaf(9))) for one in lost)
    assert remarks(judged(*lost, head(3), head(7, log=OTHER), by=by)) == [
        "accepted at 2026-01-01 (I know): the file has record 12 of 2026-01-02, but the log ends at"
        " record 9, and 2 more",
        f"another log: the file has record 7, but that is a record of another log, {OTHER}",
    ]
    root = checkpoint(10, bytes(32))
    assert remarks(judged(root, by=(accepted(root, Head(9, leaf(9))),))) == [
        "accepted at 2026-01-01 (I know): commit 1a2b3c4 has the records up to 10, but the log ends"
        " at record 9"
    ]
