"""core/trail.py: the replay of sessions on records that no database would hold."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

import pytest

from colibri.core import merkle
from colibri.core.trail import NO_LEAF, PART, Peaks, Trail

JSON = dict[str, Any]
AT = "2026-01-01T00:00:00.000000Z"


@dataclass
class Record:
    """As far as a replay looks at it; each has a leaf of its own."""

    seq: int
    kind: str
    session: str | None
    payload: JSON | None
    task: str | None = None
    call: str = "c"
    at: str = AT

    @property
    def leaf(self) -> bytes:
        return sha256(b"%d" % self.seq).digest()


def opening(seq: int, session: str = "S", task: str | None = None) -> Record:
    payload = {"session_id": session, "intent": "try", "task_id": task}
    return Record(seq, "session.open", session, payload, task)


def thought(seq: int, index: int, before: int | None, session: str = "S") -> Record:
    prev = NO_LEAF if before is None else Record(before, "", "", None).leaf
    payload = {"thought_id": f"R-{seq}", "index": index, "type": "plan", "content": "-"}
    return Record(seq, "thought", session, payload | {"prev": prev.hex()})


def seal(seq: int, *thoughts: Record, session: str = "S") -> Record:
    root = merkle.root([one.leaf for one in thoughts])
    payload = {"root": root.hex(), "count": len(thoughts)}
    payload |= {"first_seq": thoughts[0].seq, "last_seq": thoughts[-1].seq}
    return Record(seq, "session.seal", session, payload)


def honest() -> list[Record]:
    """Opened at 1, thoughts at 2, 4 and 7, sealed at 9."""
    thoughts = [thought(2, 0, None), thought(4, 1, 2), thought(7, 2, 4)]
    return [opening(1), *thoughts, seal(9, *thoughts)]


def found(records: list[Record], trail: Trail | None = None) -> list[tuple[int, str]]:
    trail = trail or Trail()
    return [
        (record.seq, what) for record in records for what, _ in trail.feed(record, record.payload)
    ]


def changed(record: Record, **members: Any) -> Record:
    return replace(record, payload={**(record.payload or {}), **members})


def row(**columns: Any) -> JSON:
    """The row of the honest session."""
    records = honest()
    root = merkle.root([one.leaf for one in records[1:4]])
    return {
        **{"session_id": "S", "intent": "try", "task_id": None, "started_at": AT, "open_seq": 1},
        **{"record_count": 3, "last_leaf": records[3].leaf},
        **{"finalized_at": AT, "seal_seq": 9, "root": root},
        **columns,
    }


def test_an_honest_session_breaks_no_rule_and_fits_its_row() -> None:
    trail = Trail()
    assert found(honest(), trail) == []
    assert trail.compare(row()) is None


def spoil(at: int, **members: Any) -> Callable[[list[Record]], None]:
    def change(records: list[Record]) -> None:
        records[at] = changed(records[at], **members)

    return change


def put(at: int, **columns: Any) -> Callable[[list[Record]], None]:
    def change(records: list[Record]) -> None:
        records[at] = replace(records[at], **columns)

    return change


def add(record: Record) -> Callable[[list[Record]], None]:
    return lambda records: records.append(record)


Lie = Callable[[list[Record]], object]

LIES: dict[str, tuple[Lie, list[tuple[int, str]]]] = {
    "an opening of another session": (spoil(0, session_id="T"), [(1, "bad session record")]),
    "an opening about another task": (spoil(0, task_id="T-0001"), [(1, "bad session record")]),
    "an opening without an intent": (spoil(0, intent=None), [(1, "bad session record")]),
    "a second opening": (add(opening(10)), [(10, "bad session record")]),
    "an opening of no session": (
        lambda records: records.insert(0, replace(opening(0), session=None)),
        [(0, "bad session record")],
    ),
    "a thought's index": (spoil(2, index=2), [(4, "bad thought")]),
    "an index that is only as good as one": (spoil(2, index=True), [(4, "bad thought")]),
    "a thought's prev": (spoil(2, prev="0" * 64), [(4, "bad thought")]),
    "a first thought with a prev": (spoil(1, prev="1" * 64), [(2, "bad thought")]),
    "a thought's id": (spoil(2, thought_id="R-5"), [(4, "bad thought")]),
    "a thought's type": (spoil(2, type="doubt"), [(4, "bad thought")]),
    "a type that is no text": (spoil(2, type=["plan"]), [(4, "bad thought")]),
    "a content that is no text": (spoil(2, content=None), [(4, "bad thought")]),
    "a thought in no session": (add(thought(10, 0, None, "T")), [(10, "bad thought")]),
    "a thought without a session": (
        add(replace(thought(10, 0, None), session=None)),
        [(10, "bad thought")],
    ),
    "a thought before the opening": (
        lambda records: records.insert(0, thought(0, 0, None)),
        [(0, "bad thought")],
    ),
    "a thought after the seal": (add(thought(10, 3, 7)), [(10, "thought after seal")]),
    "a seal's root": (spoil(4, root="0" * 64), [(9, "bad seal")]),
    "a seal's count": (spoil(4, count=2), [(9, "bad seal")]),
    "a seal's first seq": (spoil(4, first_seq=1), [(9, "bad seal")]),
    "a seal's last seq": (spoil(4, last_seq=4), [(9, "bad seal")]),
    "a seal over one thought less": (
        lambda records: records.pop(3),
        [(9, "bad seal")],
    ),
    "a second seal": (
        lambda records: records.append(replace(records[4], seq=10)),
        [(10, "bad seal")],
    ),
    "a seal of nothing": (
        lambda records: records.extend(
            [opening(10, "T"), replace(records[4], seq=11, session="T")]
        ),
        [(11, "bad seal")],
    ),
    "a seal of no session": (put(4, session="T"), [(9, "bad seal")]),
    "a seal without a session": (put(4, session=None), [(9, "bad seal")]),
}


@pytest.mark.parametrize(("lie", "damage"), LIES.values(), ids=LIES.keys())
def test_each_lie_is_found_once_and_by_its_name(lie: Lie, damage: list[tuple[int, str]]) -> None:
    """The verdict names the lie; what follows it is judged by what is stored."""
    records = honest()
    lie(records)
    assert found(records) == damage


@pytest.mark.parametrize("kind", [0, 1, 4], ids=["open", "thought", "seal"])
@pytest.mark.parametrize("payload", [{}, [], "text", 7])
def test_a_record_that_cannot_be_read_is_told_and_its_session_is_left_alone(
    kind: int, payload: Any
) -> None:
    """Only an unchecked record can look so: the chain holds members against kinds first."""
    trail, records = Trail(), honest()
    records[kind] = replace(records[kind], payload=payload)
    assert found(records, trail) == [(records[kind].seq, "bad session record")]
    assert trail.lost == (set() if kind == 1 else {"S"})
    assert trail.unreadable == ({2} if kind == 1 else set())
    assert trail.compare(row()) is None


@pytest.mark.parametrize("name", row())
def test_a_row_that_differs_in_any_column_is_an_altered_session(name: str) -> None:
    """Design §9: projections are compared with the records."""
    trail = Trail()
    found(honest(), trail)
    problem = trail.compare(row(**{name: "other"}))
    assert problem is not None
    if name == "session_id":
        assert problem == "other: no record opened it"
    else:
        assert problem == f"S: its records say otherwise: {name}"


def test_erased_payloads_keep_the_place_of_their_records() -> None:
    """Design §9, Erasure: proofs stay valid."""
    trail, records = Trail(), honest()
    for at in (0, 2):
        records[at] = replace(records[at], payload=None)
    assert found(records, trail) == []
    assert trail.compare(row()) == "S: its records say otherwise: intent"
    assert trail.compare(row(intent="[erased]")) is None


def test_a_seal_without_its_payload_seals_nothing() -> None:
    """Design §9: only thought, task.text, session.open and call.enter can be erased."""
    assert found([*honest()[:4], replace(honest()[4], payload=None)]) == [(9, "bad seal")]


def test_a_thought_whose_payload_is_lost_still_counts() -> None:
    """Its leaf is the header's, and that is intact: the seal can be checked."""
    trail, records = Trail(), honest()
    found(records[:2], trail)
    trail.lose(records[2])
    assert found(records[3:], trail) == []
    assert (trail.compare(row()), trail.unreadable, trail.lost) == (None, {4}, set())
    trail = Trail()
    found([records[0], records[1]], trail)
    trail.lose(records[2])
    wrong = changed(records[4], count=2)
    assert found([records[3], wrong], trail) == [(9, "bad seal")]


@pytest.mark.parametrize("at", [0, 4], ids=["open", "seal"])
def test_a_session_of_which_another_record_is_lost_is_not_judged_any_further(at: int) -> None:
    trail, records = Trail(), honest()
    found(records[:at], trail)
    trail.lose(records[at])
    assert found([thought(20, 99, None), *records[at + 1 :]], trail) == []
    assert trail.compare(row(intent="other")) is None
    assert trail.lost == {"S"}
    assert found([opening(30, "T"), thought(31, 5, None, "T")], trail) == [(31, "bad thought")]


def test_the_loss_of_other_records_concerns_no_session() -> None:
    trail = Trail()
    found(honest(), trail)
    trail.lose(Record(20, "task", "S", None, "T-0001"))
    assert trail.compare(row(intent="other")) is not None


def test_a_blind_trail_judges_nothing() -> None:
    """Where it is not known whose records are lost."""
    trail = Trail(blind=True)
    assert found([thought(1, 7, None), *honest()], trail) == []
    assert trail.compare(row(intent="other")) is None
    assert trail.sessions == {}


def test_a_trail_of_one_session_looks_at_no_other() -> None:
    trail = Trail(only="S")
    records = [opening(20, "T"), thought(21, 9, None, "T"), *honest()]
    assert found(records, trail) == []
    assert list(trail.sessions) == ["S"]


def test_the_peaks_of_a_growing_tree_give_its_root_and_take_little() -> None:
    """RFC 6962: for all sizes up to 300 and around parts, against the tree built at once."""
    peaks, leaves = Peaks(), []
    for count in range(1, 5 * PART + 3):
        leaves.append(sha256(b"%d" % count).digest())
        peaks.push(leaves[-1])
        assert peaks.count == count
        assert len(peaks.hashes) == (count // PART).bit_count()
        assert len(peaks.leaves) == count % PART
        if count < 300 or count % PART in (PART - 1, 0, 1):
            assert peaks.root() == merkle.root(leaves)
