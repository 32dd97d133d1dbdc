"""store/verify.py on erased texts: the payload gone, an erasure record, [erased] in the row."""

from collections.abc import Iterator

import pytest

from tests.store.conftest import Writer
from tests.support.engines import require_sqlite
from tests.support.task_store import TaskStore, last_of, story


@pytest.fixture
def store(writer: Writer) -> Iterator[TaskStore]:
    with writer() as opened:
        yield story(opened.db)


def blank(store: TaskStore, number: int) -> None:
    columns = "title = '[erased]', description = '[erased]'"
    store.db.execute(f"UPDATE tasks SET {columns} WHERE number = ?", (number,))
    store.db.engine.task_search.change(store.db, number, "[erased]", "[erased]")


def test_an_erased_thought_is_still_evidence(store: TaskStore) -> None:
    """Specification 9.10: an erasure takes the text away; the record stays."""
    store.erase(last_of(store, "T-0001", "thought"))
    assert store.breaks() == []


@pytest.mark.parametrize(("id", "number"), [("T-0001", 1), ("T-0003", 3)])
@pytest.mark.parametrize("upto", [None, 4])
def test_an_erased_text_leaves_its_task_as_sound_as_before(
    store: TaskStore, id: str, number: int, upto: int | None
) -> None:
    """Specification 9.10: replaces the text in the projections by `[erased]`."""
    store.erase(last_of(store, id, "task.text"))
    assert store.breaks(upto=upto) == [(None, "altered-task", store.breaks(upto=upto)[0][2])]
    blank(store, number)
    assert store.breaks(upto=upto) == []
    store.update("T-0003", title="tres", assignee="ada")
    assert store.breaks(upto=upto) == []


def test_an_erasure_cannot_take_a_move_away(store: TaskStore) -> None:
    """Specification 9.10: payloads of thought, task.text, session.open and call.enter only."""
    require_sqlite("PostgreSQL refuses this erasure")
    seq = last_of(store, "T-0001", "task")
    store.erase(seq)
    erasure = store.verify().record_count
    assert [(at, what) for at, what, _ in store.breaks()] == [(erasure, "bad-erasure")]


def test_a_change_after_the_end_stays_visible_when_its_text_is_erased(store: TaskStore) -> None:
    """Specification 6.2: a terminal task refuses every change."""
    text = {"task_id": "T-0001", "version": 8, "set": {"title": ["one", "uno"]}}
    seq = store.forge_in_a_call("task.text", text, task="T-0001").seq
    store.erase(seq)
    assert store.breaks()[0][:2] == (seq, "change-after-end")
