"""store/log_tree.py: the tree over the whole log, what of it is kept, and how that is verified."""

from collections.abc import Iterator
from typing import Any

import pytest

from colibri.core import merkle
from colibri.core.errors import Damaged
from colibri.core.merkle import PART
from colibri.store import ledger, log_tree
from tests.support.ledger_writer import LOG, Lab, found, in_memory
from tests.support.naive_tree import NaiveTree

COUNT = 4 * PART + 70
EDGES = (1, 2, 3, 100, 255, 256, 257, 300, 511, 512, 513, 767, 768, 769, 1000, 1024, 1025, COUNT)


@pytest.fixture(scope="module")
def log(engine: str) -> Lab:
    """A log of a little over four parts."""
    lab = in_memory()
    lab.start("S-1")
    while ledger.last_seq(lab.db) < COUNT:
        lab.think("S-1")
    return lab


@pytest.fixture(scope="module")
def tree(log: Lab) -> NaiveTree:
    rows: list[Any] = log.db.execute(
        "SELECT leaf FROM ledger ORDER BY seq LIMIT ?", (COUNT,)
    ).fetchall()
    return NaiveTree([leaf for (leaf,) in rows])


@pytest.fixture
def lab(log: Lab) -> Iterator[Lab]:
    """The same log for each test; what a test does to it is rolled back."""
    log.db.execute("BEGIN")
    yield log
    log.db.execute("ROLLBACK")


def keep_all(lab: Lab) -> None:
    while log_tree.keep(lab.db):
        pass


def kept(lab: Lab) -> list[Any]:
    return [*lab.db.execute("SELECT idx, hash FROM log_tree ORDER BY idx")]


@pytest.mark.parametrize("parts", range(5))
def test_checkpoints_and_proofs_are_those_of_the_definition(
    lab: Lab, tree: NaiveTree, parts: int
) -> None:
    """Specification 9.14: however many parts are kept."""
    keep_all(lab)
    lab.drop_triggers()
    lab.db.execute("DELETE FROM log_tree WHERE idx >= ?", (parts,))
    for size in EDGES:
        assert log_tree.checkpoint(lab.db, size) == (LOG, size, tree.root(0, size))
        for other in filter(size.__ge__, EDGES):
            assert log_tree.inclusion(lab.db, other, size) == tree.inclusion(other - 1, 0, size)
            assert log_tree.consistency(lab.db, other, size) == tree.consistency(other, 0, size)


def test_a_checkpoint_is_of_all_records_unless_a_size_is_given(lab: Lab) -> None:
    newest = ledger.last_seq(lab.db)
    assert log_tree.checkpoint(lab.db) == log_tree.checkpoint(lab.db, newest)
    assert log_tree.checkpoint(lab.db, 0).root == merkle.EMPTY_ROOT
    assert log_tree.checkpoint(in_memory().db) == (LOG, 0, merkle.EMPTY_ROOT)
    for size in (-1, newest + 1):
        with pytest.raises(ValueError, match="no tree of"):
            log_tree.checkpoint(lab.db, size)


def test_kept_are_the_roots_of_complete_parts(
    lab: Lab, tree: NaiveTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Specification 9.14: a few at a time, each once, and only what is complete."""
    monkeypatch.setattr(log_tree, "BATCH", 3)
    wanted = [(part, tree.root(part * PART, (part + 1) * PART)) for part in range(4)]
    assert log_tree.keep(lab.db) is True
    assert kept(lab) == wanted[:3]
    assert log_tree.keep(lab.db) is False
    assert kept(lab) == wanted
    assert log_tree.keep(lab.db) is False
    assert kept(lab) == wanted
    assert log_tree.checkpoint(lab.db, COUNT).root == tree.root(0, COUNT)


def test_what_is_kept_is_not_computed_again(lab: Lab, tree: NaiveTree) -> None:
    """The kept root is taken as it is, so it must not be what a verification relies on."""
    keep_all(lab)
    lab.drop_triggers()
    lab.db.execute("UPDATE log_tree SET hash = zeroblob(32) WHERE idx = 1")
    assert log_tree.checkpoint(lab.db, PART).root == tree.root(0, PART)
    assert log_tree.checkpoint(lab.db, 2 * PART).root != tree.root(0, 2 * PART)


def test_where_a_kept_root_is_missing_the_leaves_tell_the_rest(lab: Lab, tree: NaiveTree) -> None:
    keep_all(lab)
    lab.drop_triggers()
    lab.db.execute("DELETE FROM log_tree WHERE idx = 1")
    assert log_tree.checkpoint(lab.db, COUNT).root == tree.root(0, COUNT)
    assert log_tree.inclusion(lab.db, 1, COUNT) == tree.inclusion(0, 0, COUNT)


def test_a_record_that_is_missing_is_no_leaf(lab: Lab) -> None:
    lab.drop_triggers()
    lab.db.execute("PRAGMA defer_foreign_keys = ON; DELETE FROM ledger WHERE seq = 300")
    assert log_tree.checkpoint(lab.db, 299).size == 299
    with pytest.raises(Damaged, match="a record from 1 to 300 is missing: colibri verify names it"):
        log_tree.checkpoint(lab.db, 300)
    with pytest.raises(Damaged, match="is missing"):
        keep_all(lab)


@pytest.mark.parametrize("sql", ["UPDATE log_tree SET hash = hash", "DELETE FROM log_tree"])
def test_the_database_itself_refuses_to_change_what_is_kept(
    lab: Lab, engine: str, sql: str
) -> None:
    """Specification 9.6: by triggers; on PostgreSQL nobody who writes has the right, either."""
    keep_all(lab)
    why = {"sqlite": "and so is its tree", "postgres": "permission denied"}[engine]
    with pytest.raises(Exception, match=why):
        lab.db.execute(sql)


EDITS = {
    "UPDATE log_tree SET hash = zeroblob(32) WHERE idx = 2": (
        "the kept hash of records 513 to 768 is not theirs"
    ),
    "UPDATE log_tree SET hash = (SELECT hash FROM log_tree WHERE idx = 0) WHERE idx = 3": (
        "the kept hash of records 769 to 1024 is not theirs"
    ),
    "DELETE FROM log_tree WHERE idx = 0": "the kept hash of records 1 to 256 is missing",
    "UPDATE log_tree SET idx = 4 WHERE idx = 3": (
        "the kept hash of records 769 to 1024 is missing",
        "a hash of records 1025 to 1280 is kept, and the log ends at",
    ),
    "INSERT INTO log_tree VALUES (9, zeroblob(32))": (
        "a hash of records 2305 to 2560 is kept, and the log ends at"
    ),
    "INSERT INTO log_tree VALUES (-1, zeroblob(32))": "a hash of records -255 to 0 is kept",
}


@pytest.mark.parametrize(("edit", "details"), EDITS.items(), ids=EDITS)
def test_every_kept_hash_is_verified(lab: Lab, edit: str, details: str | tuple[str, ...]) -> None:
    """Specification 9.14: found by what the records say, as `altered-tree`, on the line of rows."""
    keep_all(lab)
    assert lab.verify().valid
    lab.drop_triggers()
    lab.db.execute("PRAGMA ignore_check_constraints = ON")
    lab.db.execute(edit)
    lab.db.execute("PRAGMA ignore_check_constraints = OFF")
    report = lab.verify()
    assert {one.what for one in report.breaks} == {"altered-tree"}
    details = (details,) if isinstance(details, str) else details
    for broken, detail in zip(report.breaks, details, strict=True):
        assert broken.seq is None and broken.detail.startswith(detail)
    assert found(lab.verify(rows=False)) == []
    for slice_size in (100, 256, 300):  # however the leaves arrive
        assert lab.verify(slice_size=slice_size).breaks == report.breaks


def test_parts_beyond_a_bound_are_left_to_a_verification_that_reads_them(lab: Lab) -> None:
    keep_all(lab)
    lab.drop_triggers()
    lab.db.execute("UPDATE log_tree SET hash = zeroblob(32) WHERE idx = 2")
    assert lab.verify(upto=765).valid
    assert not lab.verify(upto=768).valid


def test_a_tail_that_is_cut_off_leaves_a_kept_hash_without_records(lab: Lab) -> None:
    """Whoever cuts off the tail must also remember this table."""
    keep_all(lab)
    lab.drop_triggers()
    lab.db.execute(
        "DELETE FROM thoughts WHERE seq > 1000; DELETE FROM ledger WHERE seq > 1000;"
        "UPDATE sessions SET record_count = (SELECT count(*) FROM thoughts), last_leaf ="
        " (SELECT leaf FROM ledger WHERE kind = 'thought' ORDER BY seq DESC LIMIT 1)"
    )
    assert ("altered-tree", "a hash of records 769 to 1024 is kept, and the log ends at 1000") in [
        (one.what, one.detail) for one in lab.verify().breaks
    ]
