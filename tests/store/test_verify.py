"""store/verify.py: the log, the rules and the rows, compared with each other in a real file."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from colibri.core.rows import Row
from colibri.store.sqlite import task_search as search
from colibri.store.sqlite.connection import Connection
from tests.store.conftest import Writer
from tests.support.ledger_writer import JSON, disable_triggers
from tests.support.task_store import TaskStore, last_of, records, story

Tamper = Callable[[Connection], None]


@pytest.fixture
def store(writer: Writer, monkeypatch: pytest.MonkeyPatch) -> Iterator[TaskStore]:
    """Three tasks: one DONE, one that depends on it and on the third, which is open."""
    monkeypatch.setattr(search, "BATCH", 1)  # so that the index knows each of them
    with writer() as opened:
        yield story(opened.db)


@pytest.fixture
def intruder(store: TaskStore) -> Any:
    """The store's connection without any respect: no triggers, no foreign keys, no checks."""
    disable_triggers(store.db)
    store.db.execute("PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON")
    return store.db


def test_what_the_store_wrote_is_valid(store: TaskStore) -> None:
    """Specification 9.12: the records are replayed and compared with the tables."""
    report = store.verify()
    assert (report.valid, report.breaks, report.broken_count) == (True, (), 0)
    assert report.record_count == store.db.execute("SELECT count(*) FROM ledger").get
    assert [note.code for note in report.not_checked] == ["outside-head"]


def test_an_empty_database_is_valid(writer: Writer) -> None:
    """Nothing was promised yet."""
    with writer() as opened:
        report = TaskStore(opened.db).verify()
    assert (report.valid, report.head) == (True, None)


ROW = "its records say otherwise"
SEARCH = "the search index has another text"
TOTALS = "the totals in task_counts are not those of the rows"

TAMPERINGS: dict[str, tuple[str, list[str]]] = {
    **{
        f"tasks.{column}": (
            f"UPDATE tasks SET {column} = {value} WHERE number = {number}",
            [f"T-000{number}: {ROW}: {column}"],
        )
        for column, value, number in (
            ("title", "'uno'", 1),
            ("title", "CAST(x'ff41' AS TEXT)", 1),
            ("description", "NULL", 1),
            ("priority", "'critical'", 2),
            ("attempt", "2", 1),
            ("version", "version + 1", 3),
            ("created_at", "'2020'", 1),
            ("updated_at", "'2030'", 2),
            ("attempt_seq", "1", 2),
        )
    },
    **{
        f"tasks.{column}, which is counted": (
            f"UPDATE tasks SET {column} = {value} WHERE number = {number}",
            [f"T-000{number}: {ROW}: {column}", *totals],
        )
        for column, value, number, totals in (
            ("status", "'GATHER'", 1, (TOTALS,)),
            ("project", "NULL", 1, (TOTALS,)),
            ("assignee", "'eve'", 2, (TOTALS,)),
            ("open_dependencies", "0", 3, (TOTALS,)),
        )
    },
    "tasks, a row less": (
        "DELETE FROM tasks WHERE number = 2",
        [
            "T-0002: its row is missing",
            "T-0002: the search index has it, but it has no row",
            TOTALS,
        ],
    ),
    "tasks, a row more": (
        "INSERT INTO tasks (number, title, priority, status, attempt, version,"
        " created_at, updated_at, attempt_seq, open_dependencies)"
        " VALUES (4, 'x', 'low', 'INIT', 1, 1, '-', '-', 1, 0)",
        ["T-0004: no record created it", TOTALS],
    ),
    "task_dependencies, a row less": (
        "DELETE FROM task_dependencies WHERE depends_on = 1",
        [f"T-0003: {ROW}: depends_on"],
    ),
    "task_dependencies, a gap": (
        "UPDATE task_dependencies SET position = 7 WHERE position = 1",
        [f"T-0003: {ROW}: depends_on"],
    ),
    "task_dependencies, a row more": (
        "INSERT INTO task_dependencies VALUES (2, 0, 1)",
        [f"T-0002: {ROW}: depends_on"],
    ),
    "task_dependencies, another order": (
        "UPDATE task_dependencies SET position = 7 WHERE depends_on = 1",
        [f"T-0003: {ROW}: depends_on"],
    ),
    "task_dependencies, on no task": (
        "UPDATE task_dependencies SET depends_on = 8 WHERE depends_on = 1",
        [f"T-0003: {ROW}: depends_on"],
    ),
    "task_dependencies, of no task": (
        "INSERT INTO task_dependencies VALUES (8, 0, 1)",
        ["T-0008: it has dependencies, but no row"],
    ),
    "task_counts, a total": (
        "UPDATE task_counts SET n = n + 1 WHERE field = '' AND status = 'DONE'",
        [TOTALS],
    ),
    "task_counts, a row less": (
        "DELETE FROM task_counts WHERE field = '' AND status = 'DONE'",
        [TOTALS],
    ),
    "task_counts, a row more": (
        "INSERT INTO task_counts VALUES ('', 'p', '', 'INIT', 1, 0, 5)",
        [TOTALS],
    ),
    "task_counts, no text": (
        "UPDATE task_counts SET project = CAST(x'ff' AS TEXT) WHERE status = 'DONE'",
        [TOTALS],
    ),
    "task_counts, a block": (
        "UPDATE task_counts SET n = n + 1 WHERE field = 'status' AND status = 'DONE'",
        [TOTALS],
    ),
    "task_counts, a block less": (
        "DELETE FROM task_counts WHERE field = 'status' AND status = 'DONE'",
        [TOTALS],
    ),
    "task_counts, another block": (
        "UPDATE task_counts SET block = 1 WHERE field = 'status' AND status = 'DONE'",
        [TOTALS],
    ),
    "task_counts, a block more": (
        "INSERT INTO task_counts VALUES ('status', '', '', 'X', 0, 0, 5)",
        [TOTALS],
    ),
    "task_search, another text": (
        "UPDATE task_search SET text = 'ONE' WHERE rowid = 1",
        [f"T-0001: {SEARCH}"],
    ),
    "task_search, no text": (
        "UPDATE task_search SET text = CAST(x'ff' AS TEXT) WHERE rowid = 1",
        [f"T-0001: {SEARCH}"],
    ),
    "task_search, a row less": (
        "DELETE FROM task_search WHERE rowid = 3",
        [f"T-0003: {SEARCH}"],
    ),
    "task_search, a row more": (
        "INSERT INTO task_search (rowid, text) VALUES (8, 'ghost')",
        ["T-0008: the search index has it, but it has no row"],
    ),
}


@pytest.mark.parametrize("what", TAMPERINGS)
def test_a_row_that_was_tampered_with_is_an_altered_task_by_its_name(
    store: TaskStore, intruder: Connection, what: str
) -> None:
    """Specification 9.12: the tables are a projection of the records."""
    sql, expected = TAMPERINGS[what]
    intruder.execute(sql)
    assert store.breaks() == [(None, "altered-task", detail) for detail in expected]
    report = store.verify()
    assert (report.valid, report.broken_count) == (False, len(expected))


def test_a_row_is_compared_with_the_records_written_after_the_part_that_is_checked(
    store: TaskStore,
) -> None:
    """Specification 5.17: newer rows that are honest pass, false ones do not."""
    exits = store.db.execute("SELECT seq FROM ledger WHERE kind = 'call.exit'").fetchall()
    for upto in (0, *(seq for (seq,) in exits)):
        assert store.breaks(upto=upto) == []
    store.db.execute("UPDATE tasks SET title = 'uno' WHERE number = 1")
    assert store.breaks(upto=4) == [(None, "altered-task", f"T-0001: {ROW}: title")]


def test_a_broken_rule_after_the_part_that_is_checked_is_left_to_the_next_check(
    store: TaskStore,
) -> None:
    """store/verify.py: what breaks the rules there is for the next verification to tell."""
    before = store.verify().record_count
    payload = {"task_id": "T-0002", "version": 2, "attempt": 1, "set": {"status": ["INIT", "PLAN"]}}
    store.forge_in_a_call("task", payload, task="T-0002")
    columns = "status = 'PLAN', version = 2, updated_at = (SELECT max(at) FROM ledger)"
    store.db.execute(f"UPDATE tasks SET {columns} WHERE number = 2")
    assert store.breaks(upto=before) == []
    assert store.breaks() == [(before + 2, "illegal-move", "task T-0002")]


SPOILT: dict[str, tuple[str, str, str]] = {
    "a record gone": ("task", "DELETE FROM ledger", "missing-record"),
    "a move gone": ("task", "UPDATE ledger SET nonce = NULL, body = NULL", "missing-payload"),
    "a move altered": ("task", "UPDATE ledger SET body = x'7b7d'", "altered-payload"),
    "a text gone": ("task.text", "UPDATE ledger SET nonce = NULL, body = NULL", "missing-payload"),
    "a text altered": ("task.text", "UPDATE ledger SET body = x'ff'", "altered-payload"),
    "a thought altered": ("thought", "UPDATE ledger SET body = x'7b7d'", "altered-payload"),
    "a header altered": ("task", "UPDATE ledger SET agent = 'eve'", "altered-header"),
}


@pytest.mark.parametrize("what", SPOILT)
def test_checks_that_need_unsound_records_are_skipped_and_reported(
    store: TaskStore, intruder: Connection, what: str
) -> None:
    """docs/formats.md §9: the first step that finds anything is the last to run."""
    kind, sql, code = SPOILT[what]
    seq = last_of(store, "T-0001", kind)
    intruder.execute(f"{sql} WHERE seq = ?", (seq,))
    intruder.execute("UPDATE tasks SET title = 'uno'")
    report = store.verify()
    assert [(found.seq, found.what) for found in report.breaks] == [(seq, code)]
    assert "skipped" in [note.code for note in report.not_checked]


def test_rows_are_not_compared_with_later_records_that_cannot_be_read(
    store: TaskStore, intruder: Connection
) -> None:
    """store/verify.py: shown without being checked, and so perhaps not to be read at all."""
    intruder.execute(
        "UPDATE ledger SET body = x'ff' WHERE seq = ?", (last_of(store, "T-0003", "task"),)
    )
    report = store.verify(upto=4)
    assert (report.valid, [note.code for note in report.not_checked][-1]) == (True, "skipped")


@pytest.mark.parametrize("seq", [0, -7, -(2**63)])
def test_a_record_before_the_first_is_reported(
    store: TaskStore, intruder: Connection, seq: int
) -> None:
    """docs/formats.md §2: seq is 1 for the log's first record."""
    names = ", ".join(Row._fields[1:])
    intruder.execute(f"INSERT INTO ledger SELECT ?, {names} FROM ledger WHERE seq = 2", (seq,))
    assert [(found.seq, found.what) for found in store.verify().breaks] == [(None, "bad-header")]


def test_no_more_than_a_hundred_breaks_are_listed_and_all_are_counted(store: TaskStore) -> None:
    """Specification 5.18: breaks (first 100)."""
    for _ in range(120):
        store.create()
    store.db.execute("UPDATE tasks SET title = 'x'")
    report = store.verify()
    assert (len(report.breaks), report.broken_count) == (100, 123)


def test_the_records_that_a_check_reads_are_those_the_store_wrote(store: TaskStore) -> None:
    """The negative control: this log breaks a rule as soon as one record says another thing."""
    assert [payload["version"] for _, payload in records(store.db, "T-0001")][-1] == 7
    store.move("T-0003", "ANALYZE")
    forged: JSON = {"task_id": "T-0003", "version": 4, "attempt": 1}
    store.forge_in_a_call(
        "task", {**forged, "set": {"status": ["ANALYZE", "VERIFY"]}}, task="T-0003"
    )
    found = {what for _, what, _ in store.breaks()}
    assert found == {"illegal-move", "altered-task"}
