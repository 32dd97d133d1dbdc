"""core/replay.py on honest logs: it never calls one broken, whatever of it is lost or erased."""

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from colibri.core.replay import ERASED, Finding, Replay
from tests.support.task_writer import ENDED, JSON, STEPS, TEXTS, Book, Line

Step = tuple[str, int, int]
STEP = st.tuples(
    st.sampled_from(("create", "move", "move", "move", "cancel", "retry", "think", "edit", "wait")),
    st.integers(0, 11),
    st.integers(0, 11),
)
STEPS_OF_A_DAY = st.lists(STEP, max_size=60)
FATES = st.lists(st.sampled_from((True, False, False)), min_size=37, max_size=37)
SOME = st.sets(st.integers(1, 60), max_size=3)


def honest(steps: Sequence[Step]) -> Book:
    """A log of only such steps as the rules allow; the others are left out."""
    book = Book()
    book.create()
    for step in steps:
        _take(book, *step)
    return book


def _take(book: Book, what: str, first: int, second: int) -> None:
    ids = list(book.rows)
    id, other = ids[first % len(ids)], ids[second % len(ids)]
    row = book.rows[id]
    if what == "create":
        book.create(*{id, other}, description=None if second % 2 else "why")
    elif what == "think":
        book.think(id)
    elif row["status"] not in ENDED:
        if what == "cancel":
            book.change(id, status="CANCELLED", **{"title": f"u{len(book.log)}"} if second else {})
        elif what == "edit":
            _edit(book, id, second)
        elif what == "wait":
            _wait(book, id, other)
        else:
            _move(book, id, "GATHER" if what == "retry" else None)


def _edit(book: Book, id: str, number: int) -> None:
    fresh = f"{len(book.log)}"
    choices: tuple[JSON, ...] = (
        {"title": fresh},
        {"description": fresh},
        {"assignee": fresh},
        {"project": fresh, "title": fresh, "description": fresh},
    )
    book.change(id, **choices[number % len(choices)])


def _wait(book: Book, id: str, other: str) -> None:
    row = book.rows[id]
    late = row["status"] in ("APPLY", "VERIFY") and book.rows[other]["status"] not in ENDED
    if not late and not book.leads_to(other, id) and row["depends_on"] != [other]:
        book.change(id, depends_on=[other])


def _move(book: Book, id: str, to: str | None) -> None:
    row = book.rows[id]
    if to is not None and row["status"] != "VERIFY":
        return
    to = to or STEPS[STEPS.index(row["status"]) + 1]
    if to in ("APPLY", "VERIFY", "DONE") and book.open_dependencies(id):
        return
    if to == "DONE":
        book.think(id)
    book.change(id, status=to)


def _struck(book: Book, fates: Sequence[bool]) -> set[int]:
    return {line.seq for line in book.log if fates[line.seq % len(fates)]}


@settings(deadline=None)
@given(STEPS_OF_A_DAY)
def test_an_honest_log_is_never_called_broken(steps: list[Step]) -> None:
    """Design §8: what the tools allow, the replay allows; and every row is as its records say."""
    book = honest(steps)
    replay = Replay()
    assert [finding for line in book.log for finding in replay.feed(line, line.payload)] == []
    assert [replay.compare(book.shown(id)) for id in book.rows] == [None] * len(book.rows)
    assert replay.tasks.keys() == book.rows.keys()


@settings(deadline=None)
@given(STEPS_OF_A_DAY, SOME)
def test_records_that_are_lost_make_it_blind_and_never_wrong(
    steps: list[Step], lost: set[int]
) -> None:
    """core/replay.py: a task with a lost record is not judged, nor another by what it was."""
    book = honest(steps)
    replay = Replay()
    for line in book.log:
        if line.seq in lost:
            replay.lose(line)
        else:
            assert list(replay.feed(line, line.payload)) == []
    assert [replay.compare(book.shown(id)) for id in book.rows] == [None] * len(book.rows)
    changes = [line for line in book.log if line.kind != "thought"]
    assert replay.lost == {line.task for line in changes if line.seq in lost}


@settings(deadline=None)
@given(STEPS_OF_A_DAY, FATES)
def test_erased_texts_and_thoughts_break_no_rule(steps: list[Step], fates: list[bool]) -> None:
    """Design §9: an erasure takes the text away, not the fact; evidence stays evidence."""
    book = honest(steps)
    erased = _struck(book, fates)
    replay = Replay()
    for line in book.log:
        if line.seq in erased and line.kind != "task":
            assert replay.feed(line, None) == []
        else:
            assert list(replay.feed(line, line.payload)) == []
    for id in book.rows:
        row = book.shown(id) | _texts(book.log, id, erased)
        assert replay.compare(row) is None


def _texts(log: Sequence[Line], id: str, erased: set[int]) -> JSON:
    """What the row shows after the erasure: [erased] until a later record says otherwise."""
    shown: JSON = {}
    for line in log:
        if line.kind == "task.text" and line.task == id:
            if line.seq in erased:
                shown = dict.fromkeys(TEXTS, ERASED)
            else:
                shown |= {name: new for name, (_, new) in line.payload["set"].items()}
    return shown


def test_whether_an_erased_text_had_a_description_is_not_known() -> None:
    """Design §9: a row may show [erased] for it, or still nothing."""
    book = Book()
    book.create()
    replay = Replay()
    list(replay.feed(book.log[0], book.log[0].payload))
    replay.feed(book.log[1], None)
    row = {**book.shown("T-0001"), "title": ERASED}
    assert replay.compare({**row, "description": None}) is None
    assert replay.compare({**row, "description": ERASED}) is None
    assert replay.compare({**row, "description": "more"}) is not None
    assert replay.compare({**row, "title": "t"}) is not None


def test_an_erased_text_cannot_hide_a_change_after_the_end() -> None:
    """Design §8: a terminal task refuses every change; a header says that there was one."""
    book = Book()
    book.create()
    book.move("T-0001", "CANCELLED")
    book.change("T-0001", title="u")
    replay = Replay()
    for line in book.log[:-1]:
        assert list(replay.feed(line, line.payload)) == []
    detail = "T-0001: it was changed after it had ended in CANCELLED"
    assert replay.feed(book.log[-1], None) == [("illegal move", detail)]


def test_an_erased_text_of_an_unknown_or_lost_task_says_nothing() -> None:
    """core/replay.py: a task of which a record is lost is not judged any further."""
    book = Book()
    book.create()
    creation, text = book.log
    replay = Replay()
    assert replay.feed(text, None) == []
    assert replay.tasks == {}
    list(replay.feed(creation, creation.payload))
    replay.lose(creation)
    assert replay.feed(text, None) == []
    assert replay.tasks["T-0001"].values["title"] is None


def test_a_lost_record_of_nobody_knows_which_task_blinds_it_for_all() -> None:
    """core/replay.py: where it is not known whose records are lost, no task is judged."""
    book = Book()
    book.create()
    replay = Replay()
    replay.lose(book.log[0]._replace(task=None))
    assert replay.blind
    book.move("T-0001", "DONE")
    assert [finding for line in book.log for finding in replay.feed(line, line.payload)] == []
    assert replay.compare(book.shown("T-0001")) is None


def test_a_record_of_another_kind_is_not_its_business() -> None:
    """core/replay.py: sessions, seals and erasures break no rule of tasks, lost or not."""
    replay = Replay()
    line = Book().write("session.open", "T-0001", {})
    assert list(replay.feed(line, line.payload)) == []
    assert replay.feed(line, None) == []
    replay.lose(line)
    assert (replay.blind, replay.lost, replay.tasks) == (False, set(), {})


def test_a_dependency_on_a_task_whose_creation_is_lost_is_not_called_unknown() -> None:
    """core/replay.py: no task is judged by what a lost one was."""
    book = Book()
    book.create()
    book.create("T-0001")
    assert found_without(book, 1) == []


def test_a_dependency_whose_end_is_lost_is_not_called_open() -> None:
    """core/replay.py: no task is judged by what a lost one was."""
    book = Book()
    book.create()
    book.create("T-0001")
    book.move("T-0001", "CANCELLED")
    book.finish("T-0002")
    assert found_without(book, 5) == []


def test_a_circle_that_a_lost_record_has_broken_is_not_called_one() -> None:
    """core/replay.py: no task is judged by what a lost one was."""
    book = Book()
    book.create()
    book.create("T-0001")
    book.change("T-0002", depends_on=[])
    book.change("T-0001", depends_on=["T-0002"])
    assert found_without(book, 5) == []


def found_without(book: Book, lost: int) -> list[Finding]:
    """What is found in an honest book of which one record is lost, rows included."""
    replay = Replay()
    told: list[Finding] = []
    for line in book.log:
        if line.seq == lost:
            replay.lose(line)
        else:
            told += replay.feed(line, line.payload)
    rows = [replay.compare(book.shown(id)) for id in book.rows]
    assert rows == [None] * len(rows)
    return told
