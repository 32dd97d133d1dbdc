"""core/replay.py: what it finds in records that break a rule, each by its name."""

from collections.abc import Callable, Iterable
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from colibri.core.canonical import encode
from colibri.core.replay import Replay
from tests.support.task_writer import JSON, STEPS, Book, Line

Finding = tuple[int, str, str]


def replayed(log: Iterable[Line]) -> tuple[Replay, list[Finding]]:
    """A replay that has seen a whole log, and (seq, what, detail) of what it found."""
    replay = Replay()
    found: list[Finding] = [
        (line.seq, what, detail) for line in log for what, detail in replay.feed(line, line.payload)
    ]
    return replay, found


def found(book: Book) -> list[tuple[int, str]]:
    return [(seq, what) for seq, what, _ in replayed(book.log)[1]]


def altered(book: Book, **fields: object) -> Book:
    """The book with its last record's payload made another."""
    last = book.log[-1]
    book.log[-1] = last._replace(payload={**last.payload, **fields})
    return book


def with_move(*states: str, think: bool = True) -> Book:
    """One task, moved; whether that was allowed is for the replay to say."""
    book = Book()
    id = book.create()
    if think:
        book.think(id)
    book.move(id, *states)
    return book


TO_VERIFY = ("GATHER", "ANALYZE", "PLAN", "APPLY", "VERIFY")


@pytest.mark.parametrize(
    "states",
    [
        ("ANALYZE",),
        ("DONE",),
        ("GATHER", "INIT"),
        (*TO_VERIFY, "APPLY"),
        ("CANCELLED", "INIT"),
        (*TO_VERIFY, "DONE", "GATHER"),
    ],
)
def test_a_move_that_is_no_edge_is_an_illegal_move(states: tuple[str, ...]) -> None:
    """Design §8: one step at a time; terminal is terminal."""
    book = with_move(*states)
    names = {what for seq, what in found(book) if seq == len(book.log)}
    assert "illegal move" in names
    assert not [seq for seq, _ in found(book) if seq < len(book.log)]


def test_a_task_that_was_not_created_in_init_is_an_illegal_move() -> None:
    """Design §8: a task is created in INIT, only there."""
    book = Book()
    book.create(status="PLAN")
    assert found(book) == [(1, "illegal move")]


@pytest.mark.parametrize(
    "fields", [{"priority": "low"}, {"title": "u"}, {"depends_on": ["T-0002"]}]
)
def test_a_change_to_an_ended_task_is_an_illegal_move(fields: JSON) -> None:
    """Design §8: a terminal task refuses every change."""
    book = with_move("CANCELLED")
    book.create()
    book.change("T-0001", **fields)
    assert found(book) == [(len(book.log), "illegal move")]


def test_the_call_that_ended_a_task_cannot_change_it_once_more() -> None:
    """Design §8: only the text of the same version belongs to the move that ended it."""
    book = with_move("CANCELLED")
    head = {"task_id": "T-0001", "version": 3, "attempt": 1}
    book.write("task", "T-0001", {**head, "set": {"priority": ["medium", "low"]}}, call="call-3")
    assert found(book) == [(len(book.log), "illegal move")]


def test_a_text_that_another_call_adds_to_the_version_that_ended_a_task_is_told() -> None:
    """Design §8: both records of one call share the version, and only those."""
    book = with_move("CANCELLED")
    book.write(
        "task.text", "T-0001", {"task_id": "T-0001", "version": 2, "set": {"title": ["t", "u"]}}
    )
    assert found(book) == [(5, "illegal move"), (5, "bad task record")]


def test_a_text_that_comes_with_the_move_that_ends_its_task_is_honest() -> None:
    """Design §8: both in one call share the version."""
    book = Book()
    book.create()
    book.change("T-0001", status="CANCELLED", title="u")
    assert found(book) == []


def test_entering_apply_before_a_dependency_has_ended_is_a_blocked_move() -> None:
    """Design §8: entering APPLY, VERIFY or DONE needs every dependency DONE or CANCELLED."""
    book = Book()
    book.create()
    book.create("T-0001")
    book.move("T-0002", "GATHER", "ANALYZE", "PLAN")
    assert found(book) == []
    book.move("T-0002", "APPLY")
    _, told = replayed(book.log)
    assert told == [(8, "blocked move", "T-0002: in APPLY while T-0001 had not ended")]


def test_an_open_dependency_given_to_a_task_in_apply_is_a_blocked_move() -> None:
    """Design §8: a depends_on that would leave a task in APPLY or later with one open."""
    book = with_move(*TO_VERIFY)
    book.create()
    book.change("T-0001", depends_on=["T-0002"])
    assert found(book) == [(len(book.log), "blocked move")]


def test_done_without_a_thought_is_missing_evidence() -> None:
    """Design §8, the writeback rule."""
    book = with_move(*TO_VERIFY, "DONE", think=False)
    _, told = replayed(book.log)
    assert told == [(8, "missing evidence", "T-0001: DONE without a thought in attempt 1")]


def test_a_thought_of_the_attempt_before_is_no_evidence() -> None:
    """Design §8: recorded since the current attempt began."""
    book = with_move(*TO_VERIFY, *TO_VERIFY, "DONE")
    assert found(book) == [(len(book.log), "missing evidence")]


def test_a_thought_about_another_task_is_no_evidence() -> None:
    """Design §8: at least one thought with this task_id."""
    book = with_move(*TO_VERIFY, think=False)
    book.create()
    book.think("T-0002")
    book.think("T-0099")
    book.move("T-0001", "DONE")
    assert found(book) == [(len(book.log), "missing evidence")]


def update(**fields: object) -> Callable[[Book], object]:
    """Give the last record of an honest update other members."""
    return lambda book: altered(book, **fields)


def text_first(book: Book) -> None:
    head = {"task_id": "T-0003", "version": 1}
    book.write("task.text", "T-0003", {**head, "set": {"title": [None, "t"]}})


def second_text(book: Book) -> None:
    book.change("T-0001", title="u")
    book.log.append(book.log[-1]._replace(seq=len(book.log) + 1))


def depends_on(*ids: str) -> Callable[[Book], object]:
    return lambda book: book.change("T-0001", depends_on=list(ids))


def cycle(book: Book) -> None:
    book.create("T-0002")
    book.create("T-0003")
    book.change("T-0002", depends_on=["T-0004"])


BAD = {
    "version jump": (update(version=4), "T-0001: version 4 follows 1"),
    "version stands still": (update(version=1), "T-0001: version 1 follows 1"),
    "wrong old value": (update(set={"priority": ["high", "low"]}), "T-0001: priority was not"),
    "no new value": (update(set={"priority": ["medium"] * 2}), "T-0001: priority was not"),
    "nothing set": (update(set={}), "T-0001: it changes nothing"),
    "attempt without a retry": (update(attempt=2), "T-0001: attempt 2 follows 1"),
    "another task's header": (update(task_id="T-0002"), "its header names T-0001"),
    "unknown dependency": (depends_on("T-0009"), "T-0001: it depends on T-0009, which"),
    "itself": (depends_on("T-0001"), "T-0001: its dependencies lead back to itself"),
    "cycle": (cycle, "T-0002: its dependencies lead back to itself"),
    "two texts in a version": (second_text, "T-0001: version 3 follows 3"),
    "text before the task": (text_first, "T-0003: its first record does not create it"),
    "an old value at creation": (
        lambda book: altered_creation(book, priority=["low", "high"]),
        "T-0003: priority was not what it says",
    ),
    "a field too few at creation": (
        lambda book: altered_creation(book, priority=None),
        "T-0003: its first record does not create it",
    ),
    "set is no object": (update(set=[1]), "it cannot be read: AttributeError"),
    "set is null": (update(set=None), "it cannot be read: AttributeError"),
    "a field without a pair": (update(set={"priority": 1}), "it cannot be read: TypeError"),
    "a field with three values": (
        update(set={"priority": [1, 2, 3]}),
        "it cannot be read: ValueError",
    ),
    "an unknown field": (update(set={"colour": [1, 2]}), "it cannot be read: KeyError"),
    "a text among the fields": (update(set={"title": ["t", "u"]}), "it cannot be read: KeyError"),
    "an unknown state": (update(set={"status": ["INIT", "REST"]}), "it cannot be read: ValueError"),
    "an id that is none": (update(task_id=[]), "it cannot be read: TypeError"),
}


def altered_creation(book: Book, **fields: object) -> None:
    book.create()
    del book.log[-1]
    made = {**book.log[-1].payload["set"], **fields}
    altered(book, set={name: pair for name, pair in made.items() if pair is not None})


@pytest.mark.parametrize("lie", BAD)
def test_a_record_that_does_not_follow_from_those_before_it_is_a_bad_task_record(lie: str) -> None:
    """Design §8: verification replays the records through these rules."""
    make, detail = BAD[lie]
    book = Book()
    book.create()
    book.create()
    book.change("T-0001", priority="low")
    make(book)
    told = [text for _, what, text in replayed(book.log)[1] if what == "bad task record"]
    assert [text for text in told if text.startswith(detail)], told


@pytest.mark.parametrize("lie", [lie for lie, (_, detail) in BAD.items() if "read" in detail])
def test_after_an_unreadable_record_its_task_is_not_judged_any_further(lie: str) -> None:
    """core/replay.py: a task of which a record is lost is not judged any further."""
    make, _ = BAD[lie]
    book = Book()
    book.create()
    book.create()
    book.change("T-0001", priority="low")
    make(book)
    told = found(book)
    book.move("T-0001", "GATHER")
    assert found(book) == told
    assert replayed(book.log)[0].compare(book.shown("T-0001")) is None


ACTS = st.tuples(
    st.sampled_from(("create", "wait", "think", "move", "move", "next", "next", "next", "both")),
    st.integers(0, 2),
    st.sampled_from((*STEPS, "CANCELLED")),
)


@settings(max_examples=200, deadline=None)
@given(st.lists(ACTS, max_size=30))
def test_a_step_is_taken_as_a_record_that_is_read(acts: list[tuple[str, int, str]]) -> None:
    """Honest or not: evidence, dependencies, the end, and the text that comes with a step."""
    book = Book()
    book.create()
    for act, number, status in acts:
        id = f"T-{number % len(book.rows) + 1:04d}"
        now = book.rows[id]["status"]
        forward = dict(pairwise(STEPS)).get(now, status)
        if act == "create":
            book.create(id)
        elif act == "wait":
            book.change(id, depends_on=["T-0001"])
        elif act == "think":
            book.think(id)
        elif act == "both":
            book.change(id, status=forward, title=f"{len(book.log)}")
        else:
            book.move(id, forward if act == "next" else status)
    slow, fast = Replay(), Replay()
    for line in book.log:
        told = slow.feed(line, line.payload)
        if line.kind == "task" and fast.step(line.at, line.call, line.task, encode(line.payload)):
            assert told == []
        else:
            assert fast.feed(line, line.payload) == told
        assert [(t.values, t.call, t.evidence) for t in slow.tasks.values()] == [
            (t.values, t.call, t.evidence) for t in fast.tasks.values()
        ]


def test_a_plain_step_is_not_read_any_further() -> None:
    """The short way is of no use if nothing takes it."""
    book = with_move(*TO_VERIFY, "DONE")
    replay = Replay()
    taken = 0
    for line in book.log:
        if line.kind == "task" and replay.step(line.at, line.call, line.task, encode(line.payload)):
            taken += 1
        else:
            replay.feed(line, line.payload)
    assert taken == 6
    assert replay.compare(book.shown("T-0001")) is None


def test_a_row_that_is_what_its_records_say_is_not_altered() -> None:
    """Design §8: the `tasks` table is a projection."""
    book = with_move(*TO_VERIFY, "GATHER")
    book.create("T-0001", description="why", project="p", assignee="ada")
    replay, told = replayed(book.log)
    assert told == []
    assert [replay.compare(book.shown(id)) for id in book.rows] == [None, None]


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("status", "DONE"),
        ("priority", "critical"),
        ("assignee", "eve"),
        ("project", "p"),
        ("depends_on", []),
        ("title", "u"),
        ("description", "more"),
        ("version", 9),
        ("attempt", 2),
        ("attempt_seq", 2),
        ("created_at", "2026"),
        ("updated_at", "2026"),
        ("open_dependencies", 0),
    ],
)
def test_a_row_with_another_value_is_named_with_its_column(column: str, value: object) -> None:
    """core/replay.py: a row is not what its records say."""
    book = Book()
    book.create()
    book.create("T-0001")
    replay, _ = replayed(book.log)
    row = {**book.shown("T-0002"), column: value}
    assert replay.compare(row) == f"T-0002: its records say otherwise: {column}"


def test_a_row_that_no_record_created_is_named() -> None:
    """Design §8: each change is also a record."""
    book = Book()
    book.create()
    assert Replay().compare(book.shown("T-0001")) == "T-0001: no record created it"
