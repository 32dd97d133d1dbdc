"""store/verify.py: what each scope finds, and what it says that it has not looked at."""

from typing import Any

import pytest

from colibri.core import dependencies
from colibri.core.errors import Refused
from colibri.core.ledger import Head
from colibri.core.report import Report
from colibri.store import ledger, tasks
from tests.support.engines import blob, chosen, require_sqlite, tamper
from tests.support.ledger_writer import TO_VERIFY, Lab, found, in_memory, story

HALF_A_BODY = "UPDATE ledger SET body = substr(body, 1, 1) WHERE seq = ?"


def noted(report: Report) -> list[str]:
    """What was not checked, by its codes."""
    return [note.code for note in report.not_checked]


@pytest.fixture
def lab(engine: str) -> Lab:
    return story(in_memory())


def forged(lab: Lab) -> Lab:
    """A thought in the sealed session, with rows that go along with it."""
    head = lab.head()
    payload = {"thought_id": f"R-{head.seq + 1}", "index": 5, "type": "plan", "content": "late"}
    last = lab.db.execute("SELECT last_leaf FROM sessions WHERE session_id = 'S-1'").get
    entry = lab.forge("thought", {**payload, "prev": last.hex()}, session="S-1")
    tamper(lab.db, "INSERT INTO thoughts VALUES (?, 'S-1', 5, NULL, 'plan')", (entry.seq,))
    tamper(
        lab.db,
        "UPDATE sessions SET record_count = 6, last_leaf = ? WHERE session_id = 'S-1'",
        (entry.leaf,),
    )
    return lab


def test_a_sound_log_is_valid_in_every_scope_and_each_says_what_it_leaves_out(lab: Lab) -> None:
    """Says what it did not check."""
    whole = lab.verify()
    assert (whole.valid, whole.record_count, noted(whole)) == (True, 54, ["outside-head"])
    sealed, opened, task = lab.verify_session("S-1"), lab.verify_session("S-2"), lab.verify_task()
    assert (sealed.valid, sealed.record_count) == (True, 38)
    assert noted(sealed) == noted(opened) == ["outside-head", "scope"]
    assert (opened.valid, opened.record_count) == (True, 10)
    assert (task.valid, task.record_count) == (True, 39)
    assert noted(task) == ["outside-head", "scope"]
    assert [report.head.seq for report in (whole, sealed, opened, task) if report.head] == [
        54, 43, 54, 40,
    ]  # fmt: skip


def test_an_unknown_session_is_refused(lab: Lab) -> None:
    """Specification 5.16: ERR_SESSION_NOT_FOUND, ERR_NOT_FOUND."""
    with pytest.raises(Refused, match="there is no session S-9"):
        lab.verify_session("S-9")
    with pytest.raises(Refused, match="there is no task T-0009"):
        lab.verify_task("T-0009")


@pytest.mark.parametrize("column", ["payload", "leaf", "prev", "at", "kind", "call", "session"])
def test_a_session_is_broken_by_what_happened_within_it_and_by_nothing_else(
    lab: Lab, column: str
) -> None:
    """For the whole log, a session or a task."""
    value = blob(bytes(32)) if column in ("payload", "leaf", "prev") else "'task'"
    tamper(lab.db, f"UPDATE ledger SET {column} = {value} WHERE seq = 9")
    for report in (lab.verify(), lab.verify_session("S-1")):
        assert [seq for seq, _ in found(report)] == [9]
    assert lab.verify_session("S-2").valid


def test_a_task_is_broken_by_what_names_it(lab: Lab) -> None:
    other = lab.create("another").task_id
    tamper(lab.db, f"UPDATE ledger SET body = {blob(b'{}')} WHERE seq = 9")
    assert found(lab.verify_task("T-0001")) == [(9, "altered-payload")]
    assert lab.verify_task(other).valid
    tamper(lab.db, "UPDATE tasks SET title = 'other' WHERE task_id = ?", (other,))
    report = lab.verify_task(other)
    assert [(broken.what, broken.detail) for broken in report.breaks] == [
        ("altered-task", f"{other}: its records say otherwise: title")
    ]


def test_a_damaged_task_record_leaves_its_moves_unjudged_and_says_so(lab: Lab) -> None:
    tamper(lab.db, HALF_A_BODY, (2,))
    report = lab.verify_task()
    assert found(report) == [(2, "altered-payload")]
    assert noted(report) == ["outside-head", "scope", "skipped"]


def test_a_gap_leaves_the_rows_unjudged_and_says_so(lab: Lab) -> None:
    tamper(lab.db, "DELETE FROM ledger WHERE seq = 10")
    tamper(lab.db, "UPDATE sessions SET intent = 'other'")
    whole, session = lab.verify(), lab.verify_session("S-1")
    assert found(whole) == found(session) == [(10, "missing-record")]
    assert "skipped" in noted(whole)
    assert "skipped" in noted(session)


@pytest.mark.parametrize("seq", [6, 42], ids=["its opening", "its seal"])
def test_a_session_that_cannot_be_judged_is_reported_as_that(lab: Lab, seq: int) -> None:
    tamper(lab.db, HALF_A_BODY, (seq,))
    tamper(lab.db, "UPDATE sessions SET finalized_at = 'other' WHERE session_id = 'S-1'")
    for report in (lab.verify(), lab.verify_session("S-1")):
        assert found(report) == [(seq, "altered-payload")]
        assert "skipped" in noted(report)
    assert "skipped" not in noted(lab.verify_session("S-2"))


SESSION_EDITS = {
    "session_id": "'S-9'",
    "intent": "'other'",
    "task_id": "NULL",
    "started_at": "'other'",
    "open_seq": "open_seq + 1",
    "record_count": "record_count + 1",
    "last_leaf": "(SELECT leaf FROM ledger WHERE seq = 1)",
    "finalized_at": "'other'",
    "seal_seq": "seal_seq - 1",
    "root": "(SELECT leaf FROM ledger WHERE seq = 1)",
}


HALF_A_SEAL = ("finalized_at", "seal_seq", "root")


@pytest.mark.parametrize("column", SESSION_EDITS)
@pytest.mark.parametrize("session", ["S-1", "S-2"], ids=["sealed", "open"])
def test_every_edit_of_a_sessions_row_is_found(lab: Lab, column: str, session: str) -> None:
    """Edit every column of sessions: detection is complete, also for the session alone."""
    if session == "S-2" and chosen() == "sqlite":
        lab.db.execute("PRAGMA ignore_check_constraints = ON")
    edit = SESSION_EDITS[column]
    if session == "S-2" and column in ("task_id", "seal_seq"):
        edit = {"task_id": "'T-0001'", "seal_seq": "44"}[column]
    change = f"UPDATE sessions SET {column} = {edit} WHERE session_id = '{session}'"
    if session == "S-2" and chosen() == "postgres" and column in HALF_A_SEAL:
        with pytest.raises(Exception, match="sessions_check"):  # for everybody, without a pragma
            tamper(lab.db, change)
        return
    tamper(lab.db, change)
    assert "altered-session" in [what for _, what in found(lab.verify())]
    renamed = column == "session_id"
    assert not lab.verify_session("S-9" if renamed else session).valid


def test_a_session_that_was_unsealed_in_its_row_is_found(lab: Lab) -> None:
    """A seal cannot be taken back, nor by editing what the tools look at."""
    tamper(
        lab.db,
        "UPDATE sessions SET root = NULL, seal_seq = NULL, finalized_at = NULL",
    )
    tamper(lab.db, "DELETE FROM merkle_nodes")
    assert found(lab.verify_session("S-1")) == [(None, "altered-session")]
    assert found(lab.verify()) == [(None, "altered-session")]


def test_a_forged_thought_after_the_seal_is_found_in_every_scope(lab: Lab) -> None:
    """Thought after the seal."""
    forged(lab)
    assert (55, "thought-after-seal") in found(lab.verify())
    assert found(lab.verify_session("S-1")) == [(None, "altered-session")]


def test_a_record_that_only_breaks_the_rules_is_found(lab: Lab) -> None:
    """Sound hashes are not enough."""
    payload = {"root": "0" * 64, "count": 2, "first_seq": 48, "last_seq": 51}
    seal = lab.forge("session.seal", payload, session="S-2")
    assert (seal.seq, "wrong-root") in found(lab.verify())
    assert (seal.seq, "wrong-root") in found(lab.verify_session("S-2"))
    move = {"task_id": "T-0001", "version": 8, "attempt": 1, "set": {"status": ["DONE", "INIT"]}}
    moved = lab.forge("task", move, task="T-0001")
    assert (moved.seq, "change-after-end") in found(lab.verify())
    assert (moved.seq, "change-after-end") in found(lab.verify_task())


def test_a_task_is_judged_by_the_dependencies_it_ever_had(lab: Lab) -> None:
    """Specification 6.5: entering APPLY needs every dependency DONE or CANCELLED."""
    first, second = lab.create("one").task_id, lab.create("two").task_id
    lab.update(second, depends_on=[first])
    lab.cancel(first)
    lab.move(second, *TO_VERIFY)
    assert lab.verify_task(second).valid
    third = lab.create("three", second).task_id
    lab.move(third, "GATHER", "ANALYZE", "PLAN")
    move = {"task_id": third, "version": 5, "attempt": 1, "set": {"status": ["PLAN", "APPLY"]}}
    moved = lab.forge("task", move, task=third)
    assert (moved.seq, "blocked-move") in found(lab.verify_task(third))
    tamper(lab.db, HALF_A_BODY, (lab.seqs("task")[-1],))
    assert (moved.seq, "altered-payload") in found(lab.verify_task(third))


def test_changes_that_come_after_the_call_that_asks_are_no_damage(lab: Lab) -> None:
    """Specification 5.17: up to the record before its own enter; the rows are already further."""
    upto = lab.head().seq
    task = lab.create("later").task_id
    lab.start("S-3")
    lab.think("S-2")
    lab.think("S-3", task=task)
    lab.seal("S-2")
    lab.update(task, title="later still")
    assert (lab.verify(upto=upto).valid, lab.verify(upto=upto).record_count) == (True, 54)
    assert lab.verify_session("S-2", upto=upto).valid
    assert lab.verify_session("S-1", upto=upto).valid
    assert lab.verify_session("S-3", upto=upto).valid
    assert lab.verify_task(task, upto=upto).valid
    moved = lab.head().seq
    lab.update(task, title="and again")
    assert lab.verify_task(task, upto=moved).valid
    assert lab.verify_session("S-1", upto=30).valid
    assert lab.verify_session("S-1", upto=30).record_count == 25


def test_an_erasure_that_comes_after_the_call_that_asks_is_no_damage(lab: Lab) -> None:
    upto = lab.head().seq
    thought = lab.think("S-2")
    lab.think("S-2", "and on")
    lab.erase(thought.seq)
    assert lab.verify(upto=upto).valid
    assert lab.verify_session("S-2", upto=upto).valid


@pytest.mark.parametrize("body", [b"{", b"\xff", b"[" * 5_000, b"7"])
def test_damage_that_comes_after_the_call_that_asks_stops_no_check(lab: Lab, body: bytes) -> None:
    """What is wrong there is for the next verification to tell."""
    upto = lab.head().seq
    lab.start("S-3")
    lab.seal("S-2")
    for seq in (lab.seqs("session.open")[-1], lab.seqs("session.seal")[-1]):
        tamper(lab.db, "UPDATE ledger SET body = ? WHERE seq = ?", (body, seq))
    report = lab.verify(upto=upto)
    assert (report.record_count, report.head and report.head.seq) == (54, 54)
    assert "skipped" in noted(report)
    assert not lab.verify().valid


def test_text_that_is_no_text_stops_no_check(lab: Lab) -> None:
    """Somebody else's bytes in a column are damage to tell of, not a reason to fail."""
    require_sqlite("PostgreSQL takes no text that is none")
    tamper(lab.db, "UPDATE ledger SET call = CAST(x'ff' AS TEXT) WHERE seq = 9")
    assert found(lab.verify()) == found(lab.verify_session("S-1")) == [(9, "altered-header")]
    assert found(lab.verify_task()) == [(9, "altered-header")]
    upto = lab.head().seq
    lab.think("S-2")
    tamper(lab.db, "UPDATE ledger SET at = CAST(x'ff' AS TEXT) WHERE seq > ?", (upto,))
    assert found(lab.verify_session("S-2", upto=upto)) == []


def test_only_the_first_hundred_breaks_are_listed_with_those_of_rows(lab: Lab) -> None:
    """Specification 5.18: breaks (first 100)."""
    for number in range(120):
        lab.start(f"X-{number}")
    tamper(lab.db, "UPDATE sessions SET intent = 'other'")
    report = lab.verify()
    assert (report.broken_count, len(report.breaks)) == (122, 100)
    assert report.first_broken_at is None


def test_an_outside_head_is_compared_with_the_log(lab: Lab) -> None:
    """What only someone with an earlier head can see."""
    head = lab.head()
    assert lab.verify(head=head).not_checked == ()
    tamper(lab.db, "DELETE FROM ledger WHERE seq > 52")
    assert found(lab.verify(head=head)) == [(53, "truncated")]
    assert found(lab.verify()) == []
    wrong = Head(20, bytes(32))
    assert (20, "head-differs") in found(lab.verify(head=wrong))


def test_an_empty_log_is_valid_in_itself_and_says_that_nothing_was_checked() -> None:
    """No plain OK for an empty log."""
    report = in_memory().verify()
    assert (report.valid, report.record_count) == (True, 0)
    assert noted(report) == ["scope", "outside-head"]


def test_a_task_row_that_no_record_explains_is_found() -> None:
    lab = in_memory()
    lab.create()
    tamper(lab.db, "DELETE FROM ledger")
    report = lab.verify_task()
    assert (report.record_count, report.head) == (0, None)
    assert found(report) == [(None, "altered-task")]
    assert ledger.head(lab.db) is None


def test_rows_are_not_compared_with_what_cannot_be_read(lab: Lab) -> None:
    """Neither a session's with its later records, nor a task's with those of its dependencies."""
    first = lab.create("one").task_id
    second = lab.create("two", first).task_id
    thought = lab.think("S-2", "later").seq
    tamper(lab.db, HALF_A_BODY, (thought,))
    session = lab.verify_session("S-2", upto=thought - 1)
    tamper(lab.db, HALF_A_BODY, (lab.seqs("task", task=first)[-1],))
    for report in (session, lab.verify_task(second)):
        assert report.valid
        assert "skipped" in noted(report)


def test_links_that_are_too_many_to_follow_count_as_a_cycle(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """docs/formats.md §6: no server records such a change, and no log may hold it."""
    first = lab.create("one").task_id
    second, third = lab.create("two", first).task_id, lab.create("three").task_id
    lab.create("four", third)
    lab.update(third, depends_on=[second])
    assert lab.verify().valid
    monkeypatch.setattr(dependencies, "MAX_LINKS", 0)
    assert (lab.seqs("task")[-1], "dependency-cycle") in found(lab.verify())
    with pytest.raises(Refused, match="links of dependencies"):
        lab.update(third, depends_on=[second, first])


GATE = {"command": "pytest*", "exit": 0, "after_last_edit": True, "digest": "a" * 64}


@pytest.mark.parametrize("wrong", ["", "an edit since", "a failed one", "erased", "altered"])
def test_a_task_is_judged_by_the_rule_that_it_was_done_under(wrong: str) -> None:
    """Specification 21.4: by the deeds of its session, also those that do not name the task."""
    lab = in_memory()
    lab.client = "h-1"
    lab.start("S-1")
    first, second = lab.create("one").task_id, lab.create("two").task_id
    lab.update(second, claim=True, session="S-1")  # two tasks: deeds name none
    for status in ("GATHER", "ANALYZE", "PLAN", "APPLY", "VERIFY"):
        lab.update(first, status=status, session="S-1")
    about: dict[str, Any] = {
        "host_session": "h-1",
        "use": "u-1",
        "class_": "run",
        "command": "pytest -q",
    }
    lab.deed(**about, event="tool.begin")
    if wrong == "an edit since":
        lab.deed(host_session="h-1", class_="edit", use="u-2", paths=["a"], tree=".")
    ended = lab.deed(**about, exit=1 if wrong == "a failed one" else 0)
    assert ended is not None
    lab.think("S-1", "it works", task=first)
    gate = {**GATE, "evidence": [ended.seq - 1]}
    version = tasks.get(lab.db, first).version + 1
    said = {"task_id": first, "version": version, "attempt": 1, "gate": gate}
    ends = {"status": ["VERIFY", "DONE"], "holder": ["S-1", None]}
    done = lab.forge("task", {**said, "set": ends}, session="S-1", task=first)
    if wrong == "erased":
        lab.erase(ended.seq)
    if wrong == "altered":
        tamper(lab.db, "UPDATE ledger SET agent = 'eve' WHERE seq = ?", (ended.seq - 1,))
    report = lab.verify_task(first)
    told = {(seq, what) for seq, what in found(report) if what != "altered-task"}
    expected = {"altered": {(ended.seq - 1, "altered-header")}, "erased": set(), "": set()}
    assert told == expected.get(wrong, {(done.seq, "wrong-gate")})
    assert ("gate" in noted(report)) == (wrong == "erased")
