"""store/ledger.py: appending, and the check against every damage, done to a real file.

What takes `told` or a writer and does no damage runs on both engines.
"""

import itertools
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import apsw
import pytest

from colibri.core import ledger as record
from colibri.core.errors import Damaged
from colibri.core.ledger import Entry, Head
from colibri.core.report import Report
from colibri.core.rows import Row
from colibri.store import ledger, record_check
from colibri.store import verify as check
from colibri.store.connection import Connection as AnyConnection
from colibri.store.ledger import Chain
from colibri.store.savepoint import Savepoint
from colibri.store.sqlite.connection import Connection
from colibri.store.sqlite.opening import open_reader
from colibri.store.sqlite.transaction import Transaction
from tests.store.conftest import LOG, Writer
from tests.support import engines
from tests.support.ledger_writer import disable_triggers

AT = "2026-01-01T00:00:00.000000Z"
ZEROS = "0" * 64
LAST = 11
A, B, C, D, E = (f"0000000{name}-0000-4000-8000-000000000000" for name in "abcde")
SERVER = "00000000-0000-4000-8000-00000000c01b"


def nonce(seq: int) -> bytes:
    return seq.to_bytes(32)


def no_pause() -> None:
    pass


def enter(tool: str, **arguments: object) -> bytes:
    return record.enter_body(server=SERVER, tool=tool, arguments=arguments)


def leave(seq: int, tool: str) -> bytes:
    return record.exit_body(enter=seq, tool=tool, outcome="ok", duration_ms=5)


def write_story(db: AnyConnection) -> None:
    """Eleven records: a session (1–3), a thought (4–6), a task (7–10), and an open call (11)."""
    fields: dict[str, object] = {"status": [None, "INIT"], "depends_on": [None, []]}
    fields |= {"priority": [None, "low"], "assignee": [None, None], "project": [None, None]}
    thought = {"thought_id": "R-5", "index": 0, "type": "plan", "content": "é", "prev": ZEROS}
    with db.engine.transaction(db, durable=True):
        add = Chain(db, LOG, nonce).append
        add("call.enter", enter("audit_session_start", intent="try"), at=AT, call=A)
        opened = {"session_id": "S-1", "intent": "try", "task_id": None}
        add("session.open", opened, at=AT, call=A, session="S-1")
        add("call.exit", leave(1, "audit_session_start"), at=AT, call=A, session="S-1")
        said = {"session": "S-1", "agent": "ada"}
        add("call.enter", enter("thought_record", content="é"), at=AT, call=B, **said)
        add("thought", thought, at=AT, call=B, **said)
        add("call.exit", leave(4, "thought_record"), at=AT, call=B, **said)
        add("call.enter", enter("task_create", title="do"), at=AT, call=C)
        made = {"task_id": "T-0001", "version": 1}
        add("task", {**made, "attempt": 1, "set": fields}, at=AT, call=C, task="T-0001")
        texts = {"title": [None, "do"], "description": [None, None]}
        add("task.text", {**made, "set": texts}, at=AT, call=C, task="T-0001")
        add("call.exit", leave(7, "task_create"), at=AT, call=C, task="T-0001")
        add("call.enter", enter("task_get", task_id="T-0001"), at=AT, call=D, task="T-0001")


@pytest.fixture
def story(path: str, writer: Writer) -> str:
    """The path of a database that holds the story and that nobody has open."""
    with writer() as opened:
        write_story(opened.db)
    return path


@pytest.fixture
def told(writer: Writer) -> Iterator[Any]:
    """A database that holds the story, on the engine of the test."""
    with writer() as opened:
        write_story(opened.db)
        yield opened.db


@pytest.fixture
def intruder(story: str) -> Iterator[Connection]:
    """A second connection with no respect: no triggers, no foreign keys."""
    db = Connection(story)
    disable_triggers(db)
    yield db
    db.close()


def verify(path: str, *, head: Head | None = None, upto: int | None = None) -> Report:
    db = open_reader(path, any_schema=True)
    try:
        return check.verify(db, pause=no_pause, head=head, upto=upto, rows=False, slice_size=4)
    finally:
        db.close()


def damage(path: str, *, head: Head | None = None) -> list[tuple[int | None, str]]:
    return [(found.seq, found.what) for found in verify(path, head=head).breaks]


def without_constraints(db: Connection) -> None:
    """Make the ledger a table that takes anything."""
    db.execute("CREATE TABLE copy AS SELECT * FROM ledger; DROP TABLE ledger")
    db.execute("CREATE TABLE ledger AS SELECT * FROM copy; DROP TABLE copy")


def rewrite(db: Connection, seq: int, **changes: object) -> None:
    """Forge a record that is sound in itself: its leaf is the hash of its row."""
    row = Row._make(next(db.execute("SELECT * FROM ledger WHERE seq = ?", (seq,))))
    row = row._replace(**changes)  # type: ignore[arg-type]
    db.execute(
        "UPDATE ledger SET leaf = ?, at = ?, prev = ? WHERE seq = ?",
        (record.leaf(row.header(LOG)), row.at, row.prev, seq),
    )


def leaf_of(db: Any, seq: int) -> bytes:
    leaf = db.execute("SELECT leaf FROM ledger WHERE seq = ?", (seq,)).get
    assert isinstance(leaf, bytes)
    return leaf


def swap(db: Connection, one: int, other: int) -> None:
    for old, new in ((one, -1), (other, one), (-1, other)):
        db.execute("PRAGMA ignore_check_constraints = ON")
        db.execute("UPDATE ledger SET seq = ? WHERE seq = ?", (new, old))


def execute(sql: str) -> Callable[[Connection], None]:
    def run(db: Connection) -> None:
        db.execute(sql)

    return run


def loosely(sql: str) -> Callable[[Connection], None]:
    def run(db: Connection) -> None:
        without_constraints(db)
        db.execute(sql)

    return run


DAMAGES: dict[str, tuple[Callable[[Connection], None], list[tuple[int, str]]]] = {
    "a leaf": (
        execute("UPDATE ledger SET leaf = zeroblob(32) WHERE seq = 5"),
        [(5, "altered-header")],
    ),
    **{
        f"no {name}": (
            loosely(f"UPDATE ledger SET {name} = NULL WHERE seq = 5"),
            [(5, "altered-header")],
        )
        for name in ("at", "kind", "call", "payload", "leaf", "prev")
    },
    **{
        f"a number as {name}": (
            loosely(f"UPDATE ledger SET {name} = 7 WHERE seq = 5"),
            [(5, "altered-header")],
        )
        for name in ("at", "kind", "call", "session", "task", "agent", "payload", "leaf", "prev")
    },
    "a commitment": (
        execute("UPDATE ledger SET payload = zeroblob(32) WHERE seq = 5"),
        [(5, "altered-header")],
    ),
    "half a payload": (
        loosely("UPDATE ledger SET nonce = NULL WHERE seq = 5"),
        [(5, "altered-payload")],
    ),
    "a payload": (
        execute("UPDATE ledger SET body = x'7b7d' WHERE seq = 5"),
        [(5, "altered-payload")],
    ),
    "a nonce": (
        execute("UPDATE ledger SET nonce = zeroblob(32) WHERE seq = 5"),
        [(5, "altered-payload")],
    ),
    "an enter's payload": (
        execute("UPDATE ledger SET body = x'7b7d' WHERE seq = 4"),
        [(4, "altered-payload")],
    ),
    **{
        f"the column {name}": (
            execute(f"UPDATE ledger SET {name} = 'task' WHERE seq = 5"),
            [(5, "altered-header")],
        )
        for name in ("at", "kind", "call", "session", "task", "agent")
    },
    "the column prev": (
        execute("UPDATE ledger SET prev = zeroblob(32) WHERE seq = 5"),
        [(5, "altered-header")],
    ),
    "a column that is no text": (
        execute("UPDATE ledger SET at = CAST(x'ff' AS TEXT) WHERE seq = 5"),
        [(5, "altered-header")],
    ),
    "columns that are no text": (
        execute("UPDATE ledger SET at = CAST(x'ff' AS TEXT) WHERE seq IN (2, 3, 11)"),
        [(2, "altered-header"), (3, "altered-header"), (LAST, "altered-header")],
    ),
    "a deleted record": (
        execute("DELETE FROM ledger WHERE seq = 5"),
        [(5, "missing-record")],
    ),
    "deleted records": (
        execute("DELETE FROM ledger WHERE seq BETWEEN 4 AND 9"),
        [(4, "missing-record")],
    ),
    "a deleted beginning": (
        execute("DELETE FROM ledger WHERE seq = 1"),
        [(1, "missing-record")],
    ),
    "a deleted payload": (
        execute("UPDATE ledger SET nonce = NULL, body = NULL WHERE seq = 5"),
        [(5, "missing-payload")],
    ),
    "two records in each other's place": (
        lambda db: swap(db, 4, 5),
        [(4, "altered-header"), (5, "altered-header")],
    ),
    "a record that follows an earlier one": (
        lambda db: rewrite(db, LAST, prev=leaf_of(db, 8)),
        [(LAST, "broken-link")],
    ),
    "a record that starts the log over": (
        lambda db: rewrite(db, LAST, prev=record.genesis(LOG)),
        [(LAST, "broken-link")],
    ),
    "a record that follows nobody": (
        lambda db: rewrite(db, LAST, prev=bytes(32)),
        [(LAST - 1, "altered-header")],
    ),
    "a rewritten record": (
        lambda db: rewrite(db, 5, at="2020-01-01T00:00:00.000000Z"),
        [(5, "altered-header")],
    ),
    "another first record": (
        lambda db: rewrite(db, 1, prev=bytes(32)),
        [(1, "altered-header")],
    ),
}


@pytest.mark.parametrize(("inflict", "found"), DAMAGES.values(), ids=DAMAGES.keys())
def test_each_damage_is_named_once(
    story: str,
    intruder: Connection,
    inflict: Callable[[Connection], None],
    found: list[tuple[int, str]],
) -> None:
    """Specification 9.11: one name for each damage, and no alarm for what follows it."""
    inflict(intruder)
    assert damage(story) == found


def test_a_sound_log_is_valid_over_many_slices(told: Any) -> None:
    report = check.verify(told, pause=no_pause, rows=False, slice_size=4)
    assert (report.valid, report.record_count, report.breaks) == (True, LAST, ())
    assert [(call.seq, call.tool, call.server) for call in report.open_calls] == [
        (LAST, "task_get", SERVER)
    ]


def test_a_truncated_log_is_detected_with_a_head(story: str, intruder: Connection) -> None:
    """Specification 9.11: tamper-evident, to someone holding an earlier head."""
    held = Head(LAST, leaf_of(intruder, LAST))
    intruder.execute("DELETE FROM ledger WHERE seq > 10")
    assert damage(story) == []
    assert damage(story, head=held) == [(11, "truncated")]


def test_a_rewritten_log_is_detected_with_a_head(story: str, intruder: Connection) -> None:
    held = Head(LAST, leaf_of(intruder, LAST))
    assert damage(story, head=held) == []
    rewrite(intruder, LAST, at="2020-01-01T00:00:00.000000Z")
    assert damage(story) == []
    assert damage(story, head=held) == [(LAST, "head-differs")]


def test_an_altered_record_is_not_also_reported_as_replaced(
    story: str, intruder: Connection
) -> None:
    held = Head(5, leaf_of(intruder, 5))
    intruder.execute("UPDATE ledger SET leaf = zeroblob(32) WHERE seq = 5")
    assert damage(story, head=held) == [(5, "altered-header")]


def test_a_check_stops_at_its_limit_but_covers_an_outside_head(
    story: str, intruder: Connection
) -> None:
    """Specification 5.17: audit_verify_chain checks up to the record before its own enter."""
    held = Head(8, leaf_of(intruder, 8))
    assert verify(story, upto=6).record_count == 6
    assert verify(story, upto=6, head=held).record_count == 8
    assert verify(story, upto=100).record_count == LAST


def test_a_missing_last_record_is_noticed_if_later_ones_are_there(
    story: str, intruder: Connection
) -> None:
    held = Head(6, leaf_of(intruder, 6))
    intruder.execute("DELETE FROM ledger WHERE seq IN (5, 6)")
    for head in (None, held):
        breaks = verify(story, upto=6, head=head).breaks
        assert [(found.seq, found.what) for found in breaks] == [(5, "missing-record")]


def test_others_get_their_turn_between_two_slices(told: Any) -> None:
    """Specification 3.10: each slice in its own read transaction."""
    pauses: list[bool] = []
    check.verify(told, pause=lambda: pauses.append(told.in_transaction), rows=False, slice_size=5)
    assert pauses == [False, False]


def erase(db: Connection, seqs: list[int]) -> None:
    with Transaction(db, durable=True):
        payload = {"seqs": seqs, "reason": "asked for"}
        Chain(db, LOG, nonce).append("erasure", payload, at=AT, call=E)
        for seq in seqs:
            db.execute("UPDATE ledger SET nonce = NULL, body = NULL WHERE seq = ?", (seq,))


def test_erased_payloads_are_reported_and_the_chain_still_holds(story: str, writer: Writer) -> None:
    """Specification 9.10: proofs stay valid; never as fine."""
    with writer() as opened:
        erase(opened.db, [4, 5])
    report = verify(story)
    assert (report.valid, report.erased, report.record_count) == (True, (4, 5), LAST + 1)
    assert [note.code for note in report.not_checked] == ["outside-head", "erased"]


def test_a_range_is_checked_with_its_link_to_the_record_before(
    story: str, intruder: Connection
) -> None:
    """Specification 11.6, 12.8: the last records at boot, samples in the health loop."""

    def found(first: int, last: int) -> list[tuple[int | None, str]]:
        return [(b.seq, b.what) for b in record_check.check_range(intruder, first, last)]

    assert found(1, 3) == found(5, 8) == found(10, 1_000) == found(500, 600) == []
    rewrite(intruder, 5, at="2020-01-01T00:00:00.000000Z")
    intruder.execute("UPDATE ledger SET at = CAST(x'ff' AS TEXT) WHERE seq = 8")
    intruder.execute("DELETE FROM ledger WHERE seq = 10")
    assert found(1, 5) == []
    assert found(6, 9) == [(5, "altered-header"), (8, "altered-header")]
    assert found(9, 10) == found(11, 11) == [(10, "missing-record")]


def test_a_range_knows_what_was_erased_later(story: str, writer: Writer) -> None:
    with writer() as opened:
        erase(opened.db, [4, 5])
        assert record_check.check_range(opened.db, 4, 6) == []


def test_records_that_a_savepoint_took_back_leave_no_gap(writer: Writer) -> None:
    """Specification 3.7: each handler in its own savepoint."""
    with writer() as opened:
        with opened.db.engine.transaction(opened.db, durable=True):
            chain = Chain(opened.db, LOG, nonce)
            first = chain.append("call.enter", enter("task_get"), at=AT, call=A)
            mark = chain.mark()
            with pytest.raises(ZeroDivisionError), Savepoint(opened.db):
                chain.append("erasure", {"seqs": [], "reason": ""}, at=AT, call=A)
                raise ZeroDivisionError
            chain.reset(mark)
            second = chain.append("call.exit", leave(first.seq, "task_get"), at=AT, call=A)
        assert (first.seq, second.seq) == (1, 2)
        assert ledger.head(opened.db) == second
        assert check.verify(opened.db, pause=no_pause, rows=False).valid


def test_a_record_with_a_payload_of_another_kind_is_not_appended(writer: Writer) -> None:
    with writer() as opened, opened.db.engine.transaction(opened.db, durable=False):
        chain = Chain(opened.db, LOG, nonce)
        with pytest.raises(ValueError, match="a thought record has"):
            chain.append("thought", {"content": "…"}, at=AT, call=A)
        assert (chain.mark().seq, ledger.head(opened.db)) == (0, None)


def test_what_keeps_the_next_record_from_being_written_is_damage(writer: Writer) -> None:
    """Somebody put it there: it is no bug of the server's, and stops its writing with a reason."""
    engines.require_sqlite("a trigger that anybody can make")
    with writer() as opened:
        opened.db.execute(
            "CREATE TRIGGER x BEFORE INSERT ON ledger BEGIN SELECT RAISE(ABORT, 'no'); END"
        )
        with Transaction(opened.db, durable=False):
            chain = Chain(opened.db, LOG, nonce)
            with pytest.raises(Damaged, match=r"refuses record 1: .*; audit_verify_chain"):
                chain.append("call.enter", enter("task_get"), at=AT, call=A)


def test_another_fault_than_damage_is_not_called_damage(writer: Writer) -> None:
    with writer() as opened, Transaction(opened.db, durable=False):
        chain = Chain(opened.db, LOG, nonce)
        opened.db.execute("PRAGMA query_only = ON")
        with pytest.raises(apsw.ReadOnlyError):
            chain.append("call.enter", enter("task_get"), at=AT, call=A)
        opened.db.execute("PRAGMA query_only = OFF")


def test_an_entry_is_the_seq_and_the_leaf_of_its_record(writer: Writer) -> None:
    """Specification 4.8: the receipt is the exit record's seq and leaf."""
    with writer() as opened, opened.db.engine.transaction(opened.db, durable=False):
        entry = Chain(opened.db, LOG, nonce).append("call.enter", enter("task_get"), at=AT, call=A)
        (row,) = ledger.rows(opened.db, [1])
        assert entry == Entry(1, record.leaf(row.header(LOG))) == Entry(1, row.leaf)


def test_records_are_read_part_by_part_however_many_are_asked_for(told: Any) -> None:
    """An export of ten million records must not hold their numbers."""
    endless = itertools.count(1)
    first = next(ledger.rows(told, endless))
    assert first.seq == 1
    assert next(endless) < 1_000


def test_the_leaf_at_a_seq_is_found_if_there_is_one(told: Any) -> None:
    assert ledger.leaf_at(told, LAST) == leaf_of(told, LAST)
    assert ledger.leaf_at(told, LAST + 1) is None


def test_the_database_says_which_log_it_holds_or_is_damaged(writer: Writer) -> None:
    with writer() as opened:
        assert ledger.log_id(opened.db) == LOG
        engines.tamper(opened.db, "DELETE FROM meta WHERE key = 'log'")
        with pytest.raises(Damaged, match="which log"):
            ledger.log_id(opened.db)
        engines.tamper(opened.db, "INSERT INTO meta (key, value) VALUES ('log', ?)", (LOG,))


def test_enters_and_exits_after_a_seq_are_what_changes_the_open_calls(told: Any) -> None:
    assert list(ledger.calls_since(told, 4)) == [
        (6, "call.exit", B),
        (7, "call.enter", C),
        (10, "call.exit", C),
        (11, "call.enter", D),
    ]


GONE = "nonce = NULL, body = NULL"
FORBIDDEN = (
    "UPDATE ledger SET at = 'now' WHERE seq = 1",
    "UPDATE ledger SET body = x'00' WHERE seq = 1",
    "UPDATE ledger SET nonce = zeroblob(32), body = x'7b7d' WHERE seq = 1",
    "UPDATE ledger SET body = NULL WHERE seq = 1",
    "UPDATE ledger SET nonce = NULL WHERE seq = 1",
    f"UPDATE ledger SET {GONE}, agent = 'eve' WHERE seq = 1",
    f"UPDATE ledger SET {GONE}, session = NULL WHERE seq = 4",
    f"UPDATE ledger SET {GONE}, payload = zeroblob(32) WHERE seq = 1",
    f"UPDATE ledger SET {GONE}, leaf = zeroblob(32) WHERE seq = 1",
    f"UPDATE ledger SET {GONE}, prev = zeroblob(32) WHERE seq = 1",
    f"UPDATE ledger SET {GONE}, seq = 12 WHERE seq = 11",
    f"UPDATE ledger SET {GONE}, rowid = 12 WHERE seq = 11",
    f"UPDATE OR REPLACE ledger SET {GONE}, seq = 10 WHERE seq = 11",
    "UPDATE ledger SET nonce = nonce",
    "DELETE FROM ledger WHERE seq = 11",
    "DELETE FROM ledger",
    "REPLACE INTO ledger SELECT * FROM ledger WHERE seq = 11",
    "INSERT INTO ledger SELECT * FROM ledger WHERE seq = 11"
    f" ON CONFLICT (seq) DO UPDATE SET {GONE}, at = 'now'",
)


@pytest.mark.parametrize("sql", FORBIDDEN)
def test_the_database_itself_refuses_to_change_the_ledger(
    story: str, writer: Writer, sql: str
) -> None:
    """Specification 9.6: triggers refuse; recursive_triggers makes REPLACE no way around them."""
    with writer() as opened, pytest.raises(apsw.ConstraintError, match="append-only"):
        opened.db.execute(sql)
    assert verify(story).valid


def test_a_payload_is_erased_once_and_nothing_comes_back(story: str, writer: Writer) -> None:
    """docs/decisions/007: the only UPDATE."""
    with writer() as opened:
        erase(opened.db, [4, 5])
        for change in (GONE, "nonce = zeroblob(32), body = x'7b7d'", "body = x''"):
            with pytest.raises(apsw.ConstraintError, match="append-only"):
                opened.db.execute(f"UPDATE ledger SET {change} WHERE seq = 4")
    assert verify(story).valid


COPY = (
    "at, kind, call, session, task, agent, payload, nonce, body, {leaf}, {prev}"
    " FROM ledger WHERE seq = 8"
)
NEWEST = f"(SELECT leaf FROM ledger WHERE seq = {LAST})"
INTRUDING_RECORDS = {
    "a fork: it follows an earlier record": (LAST + 1, "randomblob(32)", "prev"),
    "a record once more": (LAST + 1, "leaf", "prev"),
    "a fork from the newest's predecessor": (
        LAST + 1,
        "randomblob(32)",
        f"(SELECT prev FROM ledger WHERE seq = {LAST})",
    ),
    "it follows nobody": (LAST + 1, "randomblob(32)", "zeroblob(32)"),
    "a gap": (LAST + 2, "randomblob(32)", NEWEST),
    "a second beginning": (1, "randomblob(32)", NEWEST),
    "a place that is taken": (8, "leaf", "prev"),
    "no place": ("NULL", "randomblob(32)", NEWEST),
    "a place before the first": (0, "randomblob(32)", NEWEST),
}


@pytest.mark.parametrize("way", ["INSERT", "INSERT OR REPLACE", "INSERT OR IGNORE"])
@pytest.mark.parametrize("what", INTRUDING_RECORDS)
def test_the_chain_can_neither_fork_nor_gap(story: str, what: str, way: str) -> None:
    """docs/decisions/005: in the file itself, for any program; recursive_triggers is off here."""
    seq, leaf, prev = INTRUDING_RECORDS[what]
    with closing(Connection(story)) as stranger:
        with pytest.raises(apsw.ConstraintError, match="append-only"):
            stranger.execute(f"{way} INTO ledger SELECT {seq}, {COPY.format(leaf=leaf, prev=prev)}")
        stranger.execute(  # what the others lack: the next place, and the newest record before it
            f"{way} INTO ledger SELECT {LAST + 1},"
            f" {COPY.format(leaf='randomblob(32)', prev=NEWEST)}"
        )


def test_an_empty_ledger_begins_with_record_1(writer: Writer) -> None:
    hash = "zeroblob(32)"
    row = f"'', 'task', '', NULL, NULL, NULL, {hash}, {hash}, x'', {hash}, {hash}"
    with writer() as opened:
        with pytest.raises(apsw.ConstraintError, match="append-only"):
            opened.db.execute(f"INSERT INTO ledger SELECT 2, {row}")
        opened.db.execute(f"INSERT INTO ledger SELECT 1, {row}")


def test_what_a_report_does_not_name_is_not_looked_for(
    story: str, intruder: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lookup reads the log: a log that is broken everywhere must not be read for every record."""
    rewrite(intruder, LAST, prev=leaf_of(intruder, 2))
    assert damage(story) == [(LAST, "broken-link")]
    monkeypatch.setattr(record_check, "MAX_LISTED", 0)
    assert damage(story) == [(LAST - 1, "altered-header")]


@pytest.mark.parametrize("view", ["actions", "audit_events"])
def test_calls_are_shown_in_the_views(told: Any, view: str) -> None:
    """Specification 9.7: sequence_no is the enter's seq on both rows; `running` on enter."""
    engines.tamper(told, "UPDATE ledger SET nonce = NULL, body = NULL WHERE seq = 4")
    names = "sequence_no, phase, tool, correlation_id, outcome, result_hash, duration_ms, at"
    of_two = "WHERE correlation_id IN (?, ?) ORDER BY sequence_no, phase"
    shown = told.execute(f"SELECT {names} FROM {view} {of_two}", (A, B)).fetchall()
    assert told.execute(f"SELECT * FROM {view} {of_two}", (A, B)).fetchall() == shown
    assert shown == [
        (1, "enter", "audit_session_start", A, "running", None, None, AT),
        (1, "exit", "audit_session_start", A, "ok", None, 5, AT),
        (4, "enter", None, B, "running", None, None, AT),
        (4, "exit", "thought_record", B, "ok", None, 5, AT),
    ]


def test_thoughts_are_shown_in_a_view(told: Any) -> None:
    """Specification 9.7, 9.10: erased text is shown as [erased]."""
    leaf = leaf_of(told, 5).hex()
    names = (
        "thought_id, seq, idx, session_id, task_id, agent_id, type, content, created_at, prev_hash,"
        " hash"
    )

    def shown(columns: str) -> list[Any]:
        rows: list[Any] = told.execute(f"SELECT {columns} FROM thought_records").fetchall()
        return rows

    whole = ("R-5", 5, 0, "S-1", None, "ada", "plan", "é", AT, ZEROS, leaf)
    assert shown("*") == shown(names) == [whole]
    engines.tamper(told, "UPDATE ledger SET nonce = NULL, body = NULL WHERE seq = 5")
    gone = ("R-5", 5, None, "S-1", None, "ada", None, "[erased]", AT, None, leaf)
    assert shown("*") == [gone]
