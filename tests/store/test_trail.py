"""store/trail.py: thoughts, each naming the one before it in its session."""

import pytest

from colibri.core.errors import Refused
from colibri.store import ledger, thought_rows, trail
from colibri.store.trail import Filter, Thought
from tests.support.ledger_writer import ZEROS, Lab, found, in_memory, story
from tests.support.query_plans import plans


@pytest.fixture
def lab() -> Lab:
    return in_memory()


def page(lab: Lab, limit: int = 50, offset: int = 0, **wanted: str) -> tuple[list[str], int]:
    """The ids on a page, and the total."""
    thoughts, total = trail.find(lab.db, Filter(**wanted), limit=limit, offset=offset)
    return [thought.thought_id for thought in thoughts], total


def test_a_thought_is_shown_as_it_was_recorded(lab: Lab) -> None:
    """Specification 7.9."""
    task = lab.create().task_id
    lab.start()
    thought = lab.think("S-1", "weil\n", type="decision", task=task, agent="ada")
    leaf = ledger.leaf_at(lab.db, 9)
    assert leaf is not None
    assert thought == Thought(
        thought_id="R-9",
        seq=9,
        index=0,
        session_id="S-1",
        task_id=task,
        agent_id="ada",
        type="decision",
        content="weil\n",
        created_at="2026-01-01T00:00:00.000003Z",
        prev_hash=ZEROS,
        hash=leaf.hex(),
    )


def test_each_thought_names_the_one_before_it_in_its_session(lab: Lab) -> None:
    """Specification 7.9: prev is the leaf of the session's thought before; indexes have no gap."""
    for session in ("A", "B"):
        lab.start(session)
    thoughts = [lab.think(session) for session in ("A", "B", "A", "B", "A")]
    for session in ("A", "B"):
        own = [thought for thought in thoughts if thought.session_id == session]
        assert [thought.index for thought in own] == list(range(len(own)))
        assert [thought.prev_hash for thought in own] == [
            ZEROS,
            *[thought.hash for thought in own[:-1]],
        ]
    assert lab.verify().valid


def test_a_sealed_session_takes_no_thought_and_nothing_is_kept_of_it(lab: Lab) -> None:
    """A finalized session takes nothing more."""
    lab.start()
    lab.think()
    lab.seal()
    before = list(lab.db.execute("SELECT * FROM thoughts"))
    with pytest.raises(Refused) as caught:
        lab.think()
    assert caught.value.code == "ERR_ALREADY_FINALIZED"
    with pytest.raises(Refused) as caught:
        lab.think("S-9")
    assert caught.value.code == "ERR_SESSION_NOT_FOUND"
    assert list(lab.db.execute("SELECT * FROM thoughts")) == before
    assert len(lab.seqs("thought")) == 1
    assert lab.verify().valid


def test_thoughts_are_listed_in_ledger_order_page_by_page(lab: Lab) -> None:
    """Specification 7.10: in ledger order; total_count of all matches."""
    lab.start("A")
    lab.start("B")
    task = lab.create().task_id
    ids = []
    for number in range(12):
        session = "AB"[number % 2]
        kind = ("plan", "analysis", "decision")[number % 3]
        about = task if number % 4 == 0 else None
        ids.append(lab.think(session, str(number), type=kind, task=about).thought_id)
    assert page(lab) == (ids, 12)
    assert page(lab, 5, 10) == (ids[10:], 12)
    assert page(lab, 5, 99) == ([], 12)
    assert page(lab, session="A") == (ids[::2], 6)
    assert page(lab, type="plan") == (ids[::3], 4)
    assert page(lab, task=task) == (ids[::4], 3)
    assert page(lab, session="A", type="plan", limit=1) == ([ids[0]], 2)
    assert page(lab, session="B", task=task) == ([], 0)
    assert page(lab, task=task, type="plan") == ([ids[0]], 1)
    assert page(lab, session="nobody's") == page(lab, type="reflection") == ([], 0)


def test_an_erased_thought_still_shows_its_place(lab: Lab) -> None:
    """Specification 9.10: the text becomes [erased]; proofs stay valid."""
    lab.start()
    thoughts = [lab.think("S-1", f"thought {number}") for number in range(3)]
    lab.erase(thoughts[0].seq, thoughts[1].seq)
    shown, _ = trail.find(lab.db, Filter(), limit=9, offset=0)
    assert [thought.content for thought in shown] == ["[erased]", "[erased]", "thought 2"]
    for name in ("index", "prev_hash", "hash", "type"):
        assert [getattr(t, name) for t in shown] == [getattr(t, name) for t in thoughts]


def test_leaves_come_in_the_order_of_the_session(lab: Lab) -> None:
    lab.start()
    thoughts = [lab.think() for _ in range(4)]
    assert [(seq, leaf.hex()) for seq, leaf in trail.leaves(lab.db, "S-1")] == [
        (thought.seq, thought.hash) for thought in thoughts
    ]


def test_rows_that_follow_from_the_records_are_no_damage(lab: Lab) -> None:
    story(lab)
    assert list(thought_rows.altered(lab.db)) == []
    assert list(thought_rows.altered_rows(lab.db, session="S-1")) == []


ROW = "its row in thoughts is missing or not as its record says"
COUNTS = "the totals in thought_counts are not those of the rows"
EDITS: dict[str, tuple[str, list[str]]] = {
    "session": ("UPDATE thoughts SET session = 'S-9' WHERE seq = 9", [f"R-9: {ROW}"]),
    "idx": ("UPDATE thoughts SET idx = 70 WHERE seq = 9", [f"R-9: {ROW}"]),
    "task": ("UPDATE thoughts SET task = NULL WHERE seq = 9", [f"R-9: {ROW}"]),
    "type": ("UPDATE thoughts SET type = 'plan' WHERE seq = 9", [f"R-9: {ROW}", COUNTS]),
    "seq": ("UPDATE thoughts SET seq = 10 WHERE seq = 9", [f"R-10: {ROW}", f"R-9: {ROW}"]),
    "one less": ("DELETE FROM thoughts WHERE seq = 9", [f"R-9: {ROW}", COUNTS]),
    "one more": (
        "INSERT INTO thoughts VALUES (10, 'S-1', 70, NULL, 'plan')",
        [f"R-10: {ROW}"],
    ),
    "one before the log": (
        "INSERT INTO thoughts VALUES (0, 'S-1', 70, NULL, 'plan')",
        [f"R-0: {ROW}"],
    ),
    "one after the log": (
        "INSERT INTO thoughts VALUES (99, 'S-1', 70, NULL, 'plan')",
        [f"R-99: {ROW}"],
    ),
    "a type that is no text": (
        "UPDATE thoughts SET type = CAST(x'ff' AS TEXT) WHERE seq = 9",
        [f"R-9: {ROW}", COUNTS],
    ),
    "n": ("UPDATE thought_counts SET n = n + 1 WHERE type = 'plan'", [COUNTS]),
    "n of nothing": ("UPDATE thought_counts SET n = 0 WHERE type = 'plan'", [COUNTS]),
    "a count less": ("DELETE FROM thought_counts WHERE type = 'plan'", [COUNTS]),
    "a count more": ("INSERT INTO thought_counts VALUES ('doubt', 1)", [COUNTS]),
    "the type of a count": (
        "UPDATE thought_counts SET type = 'doubt' WHERE type = 'plan'",
        [COUNTS],
    ),
    "a count that is no text": (
        "UPDATE thought_counts SET type = CAST(x'ff' AS TEXT) WHERE type = 'plan'",
        [COUNTS],
    ),
}


@pytest.mark.parametrize(("edit", "problems"), EDITS.values(), ids=EDITS.keys())
def test_every_edit_of_the_rows_is_reported(lab: Lab, edit: str, problems: list[str]) -> None:
    """Specification 9.12: rows exist for queries; verification compares them."""
    story(lab).drop_triggers()
    lab.db.execute("PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON")
    lab.db.execute(edit)
    report = lab.verify()
    assert [(broken.what, broken.detail) for broken in report.breaks] == [
        ("altered-session", problem) for problem in problems
    ]
    assert (report.valid, report.first_broken_at) == (False, None)


def test_the_rows_of_thoughts_after_the_part_that_is_checked_are_compared_too(lab: Lab) -> None:
    """Specification 5.17: up to the record before its own enter; the rows are already further."""
    upto = story(lab).head().seq
    late = [lab.think("S-2", "later").seq for _ in range(3)]
    lab.drop_triggers()
    assert lab.verify(upto=upto).valid
    for seq in late:
        lab.db.execute("UPDATE thoughts SET idx = idx + 70 WHERE seq = ?", (seq,))
        assert [broken.detail for broken in lab.verify(upto=upto).breaks] == [f"R-{seq}: {ROW}"]
        lab.db.execute("UPDATE thoughts SET idx = idx - 70 WHERE seq = ?", (seq,))
    lab.db.execute("PRAGMA foreign_keys = OFF; DELETE FROM thoughts WHERE seq = ?", (late[0],))
    assert f"R-{late[0]}: {ROW}" in [broken.detail for broken in lab.verify(upto=upto).breaks]


def test_a_count_of_zero_is_treated_as_none(lab: Lab) -> None:
    story(lab).tamper("INSERT INTO thought_counts VALUES ('doubt', 0)")
    assert lab.verify().valid


def test_the_place_of_an_erased_thought_is_still_checked(lab: Lab) -> None:
    """Its index is gone with its payload, but not its place among the others."""
    lab.start()
    thoughts = [lab.think() for _ in range(3)]
    lab.erase(thoughts[1].seq)
    assert lab.verify().valid
    lab.tamper("UPDATE thoughts SET idx = 9 WHERE seq = ?", (thoughts[1].seq,))
    assert found(lab.verify()) == found(lab.verify_session()) == [(None, "altered-session")]


def test_a_thought_whose_payload_is_damaged_is_not_blamed_on_its_row(lab: Lab) -> None:
    """One damage, one name."""
    story(lab).drop_triggers()
    for body in (b"{", b"\xff", b"{}", b'{"index":7,"type":"doubt"}'):
        lab.db.execute("UPDATE ledger SET body = ? WHERE seq = 9", (body,))
        assert found(lab.verify()) == [(9, "altered-payload")]
        assert found(lab.verify_session()) == [(9, "altered-payload")]


def test_a_number_that_json_cannot_say_is_no_answer(lab: Lab) -> None:
    """A forger may have put it there."""
    lab.start()
    lab.think()
    lab.tamper("UPDATE thoughts SET idx = ?", (2**53,))
    with pytest.raises(ValueError, match=r"R-\d+ has a number beyond 2\^53-1"):
        trail.find(lab.db, Filter(), limit=1, offset=0)


PLANS: dict[str, tuple[dict[str, str], str]] = {
    "a session": ({"session": "S-1"}, "COVERING INDEX sqlite_autoindex_thoughts_1"),
    "a task": ({"task": "T-0001"}, "COVERING INDEX thoughts_of_task"),
    "a type": ({"type": "plan"}, "COVERING INDEX thoughts_of_type"),
    "a type in a session": (
        {"session": "S-1", "type": "plan"},
        "INDEX sqlite_autoindex_thoughts_1",
    ),
    "a type about a task": ({"task": "T-0001", "type": "plan"}, "COVERING INDEX thoughts_of_task"),
}


@pytest.mark.parametrize("what", PLANS)
def test_a_page_is_found_in_the_index_that_is_made_for_it(lab: Lab, what: str) -> None:
    """Nothing is sorted; what is skipped costs a look at its row only by type in a session."""
    wanted, used = PLANS[what]
    plan = plans(lab.db, lambda: trail.find(lab.db, Filter(**wanted), limit=1, offset=1))
    assert used in plan
    assert "TEMP B-TREE" not in plan
