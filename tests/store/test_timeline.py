"""store/records.py and store/timeline.py: what people look at, page by page."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from colibri.core.errors import Refused
from colibri.store import records as store
from colibri.store import sessions
from colibri.store.records import Filter, Record
from colibri.store.sqlite.opening import open_reader
from colibri.store.timeline import Step, Timeline
from tests.support.engines import require_sqlite
from tests.support.ledger_writer import Lab, disable_triggers, in_memory, opened, story
from tests.support.query_plans import plans


@pytest.fixture
def lab() -> Lab:
    return story(in_memory())


def records(lab: Lab, wanted: Filter, *, newest_first: bool = False) -> list[Record]:
    last = lab.head().seq
    return list(store.records(lab.db, wanted, last=last, newest_first=newest_first))


def seqs(lab: Lab, wanted: Filter) -> list[int]:
    return [record.seq for record in records(lab, wanted)]


def steps(found: Timeline, last: int) -> list[Step]:
    return list(found.advance(last))


def of_session(lab: Lab, id: str) -> Timeline:
    return Timeline(lab.db, session=id)


def scopes(lab: Lab) -> list[Callable[[], Timeline]]:
    """A session, a task, everything."""
    return [
        lambda: of_session(lab, "S-1"),
        lambda: Timeline(lab.db, task="T-0001"),
        lambda: Timeline(lab.db),
    ]


def said(found: list[Step]) -> list[str]:
    """What each step wrote, or how its call ended."""
    return [" ".join(map(_said, step.records)) or _outcome(step) for step in found]


def _said(record: Record) -> str:
    payload = record.payload or {}
    status = payload.get("set", {}).get("status", [None, None])[1]
    return str(payload.get("content") or status or record.kind)


def _outcome(step: Step) -> str:
    if step.exit is None or step.exit.payload is None:
        return "open"
    return str(step.exit.payload["code"] or step.exit.payload["outcome"])


# Records.


def test_a_record_is_what_was_appended(lab: Lab) -> None:
    (seq, *_) = lab.seqs("thought")
    record = store.get(lab.db, seq)
    assert record is not None
    header = json.loads(record.header)
    assert (record.seq, record.kind, record.session) == (seq, "thought", "S-1")
    for name in ("seq", "at", "kind", "call", "session", "task", "agent"):
        assert getattr(record, name) == header[name]
    assert record.prev.hex() == header["prev"]
    assert record.payload is not None
    assert (record.payload["content"], record.state) == ("first look", "kept")
    assert record.nonce == seq.to_bytes(32, "big")


def test_a_place_without_a_record_has_none(lab: Lab) -> None:
    assert store.get(lab.db, lab.head().seq + 1) is None


def test_all_records_come_in_order_and_in_reverse(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "PAGE", 7)
    every = list(range(1, lab.head().seq + 1))
    assert seqs(lab, Filter()) == every
    backwards = [record.seq for record in records(lab, Filter(), newest_first=True)]
    assert backwards == every[::-1]
    assert seqs(lab, Filter(first=5, last=20)) == every[4:20]


def test_each_filter_narrows(lab: Lab) -> None:
    every = records(lab, Filter())
    calls = [one for one in every if one.kind in ("call.enter", "call.exit")]
    filters = {
        Filter(kinds=("thought", "session.open")): [
            one for one in every if one.kind in ("thought", "session.open")
        ],
        Filter(session="S-2"): [one for one in every if one.session == "S-2"],
        Filter(task="T-0001"): [one for one in every if one.task == "T-0001"],
        Filter(agent="ada"): [one for one in every if one.agent == "ada"],
        Filter(tool="task_update"): [
            one for one in calls if (one.payload or {})["tool"] == "task_update"
        ],
        Filter(since=every[10].at, until=every[20].at): [
            one for one in every if every[10].at <= one.at <= every[20].at
        ],
        Filter(session="S-1", kinds=("session.seal",)): [
            one for one in every if one.kind == "session.seal"
        ],
    }
    for wanted, expected in filters.items():
        assert expected, wanted
        assert records(lab, wanted) == expected, wanted


def test_the_newest_begin_after_what_is_left_out(lab: Lab) -> None:
    thoughts, last = lab.seqs("thought"), lab.head().seq
    wanted = Filter(kinds=("thought",))
    before = store.before_newest(lab.db, wanted, 2, last=last)
    assert before == thoughts[-3]
    assert seqs(lab, replace(wanted, first=before + 1)) == thoughts[-2:]
    assert store.before_newest(lab.db, wanted, len(thoughts), last=last) is None
    bounded = replace(wanted, last=thoughts[2])
    assert store.before_newest(lab.db, bounded, 1, last=last) == thoughts[1]
    by_tool = Filter(tool="thought_record", kinds=("call.exit",))
    exits = seqs(lab, by_tool)
    assert store.before_newest(lab.db, by_tool, 2, last=last) == exits[-3]
    assert store.before_newest(lab.db, by_tool, len(exits), last=last) is None


DAMAGES = {
    "not JSON": b"{",
    "not UTF-8": b"\xff",
    "too deep": b"[" * 100_000,
    "not an object": b"[]",
    "a member missing": b'{"content":"","index":0,"prev":"","type":""}',
    "a text that is a number": (
        b'{"content":7,"index":0,"prev":"","thought_id":"R-9","type":"plan"}'
    ),
}


@pytest.mark.parametrize("body", DAMAGES.values(), ids=DAMAGES)
def test_a_payload_that_is_not_of_its_kind_is_unreadable(lab: Lab, body: bytes) -> None:
    """Whoever has a shell can write anything there; nobody who looks at it may stumble."""
    disable_triggers(lab.db)
    seq = lab.seqs("thought")[0]
    lab.db.execute("UPDATE ledger SET body = ? WHERE seq = ?", (body, seq))
    record = store.get(lab.db, seq)
    assert record is not None
    assert (record.payload, record.state) == (None, "unreadable")
    assert len(records(lab, Filter(tool="thought_record"))) == 14


@pytest.mark.parametrize("change", [["INIT"], "INIT", None])
def test_a_change_without_its_two_sides_is_unreadable(lab: Lab, change: object) -> None:
    disable_triggers(lab.db)
    seq = lab.seqs("task")[0]
    payload = {"task_id": "T-0001", "version": 1, "attempt": 1, "set": {"status": change}}
    body = json.dumps(payload).encode()
    lab.db.execute("UPDATE ledger SET body = ? WHERE seq = ?", (body, seq))
    record = store.get(lab.db, seq)
    assert record is not None
    assert record.state == "unreadable"


def test_an_erased_payload_is_distinguished_from_a_missing_one(lab: Lab) -> None:
    erased, missing = lab.seqs("thought")[:2]
    lab.erase(erased)
    lab.tamper("UPDATE ledger SET nonce = NULL, body = NULL WHERE seq = ?", (missing,))
    states = [store.get(lab.db, seq) for seq in (erased, missing)]
    assert [one and (one.payload, one.state) for one in states] == [
        (None, "erased"),
        (None, "missing"),
    ]


def test_each_record_of_a_call_leads_to_its_enter_and_exit(lab: Lab) -> None:
    seq = lab.seqs("thought")[0]
    for place in (seq - 1, seq, seq + 1):
        record = store.get(lab.db, place)
        assert record is not None
        enter, left = store.call_of(lab.db, record)
        assert enter is not None
        assert left is not None
        assert (enter.seq, left.seq) == (seq - 1, seq + 1)


def test_what_no_call_wrote_and_what_is_open_has_no_exit(lab: Lab) -> None:
    erasure = store.get(lab.db, lab.erase(lab.seqs("thought")[0]).seq)
    assert erasure is not None
    assert store.call_of(lab.db, erasure) == (None, None)
    with lab.calling("task_list", ends=False):
        pass
    enter = store.get(lab.db, lab.head().seq)
    assert enter is not None
    assert store.call_of(lab.db, enter) == (enter, None)


@pytest.mark.parametrize("enter", [0, -1, 10**6, 10**30])
def test_an_exit_that_names_no_earlier_record_has_no_enter(lab: Lab, enter: int) -> None:
    disable_triggers(lab.db)
    seq = lab.head().seq
    left = store.get(lab.db, seq)
    assert left is not None
    body = json.dumps({**(left.payload or {}), "enter": enter}).encode()
    lab.db.execute("UPDATE ledger SET body = ? WHERE seq = ?", (body, seq))
    left = store.get(lab.db, seq)
    assert left is not None
    assert store.call_of(lab.db, left) == (None, left)
    body = body.replace(b'"enter"', b'"other"')
    lab.db.execute("UPDATE ledger SET body = ? WHERE seq = ?", (body, seq))
    left = store.get(lab.db, seq)
    assert left is not None
    assert store.call_of(lab.db, left) == (None, left)


def test_open_calls_are_the_enters_without_an_exit_after_a_seq(lab: Lab) -> None:
    before = lab.head().seq
    with lab.calling("audit_verify_chain", ends=False):
        pass
    lab.read()
    assert [one.seq for one in store.open_calls(lab.db, after=0)] == [before + 1]
    assert store.open_calls(lab.db, after=before + 2) == []


# Steps.


def test_a_session_shows_its_records_and_the_moves_of_its_tasks(lab: Lab) -> None:
    """One step for a call: what it wrote, else how it ended; S-2 and its thoughts are not in it."""
    assert said(steps(of_session(lab, "S-1"), lab.head().seq)) == [
        "session.open",
        "first look",
        "GATHER",
        "ANALYZE",
        "PLAN",
        "APPLY",
        "VERIFY",
        "it holds",
        'and "so" on\n',
        "für später",
        "done, because",
        "DONE",
        "session.seal",
    ]


def test_a_task_shows_every_record_that_names_it(lab: Lab) -> None:
    with pytest.raises(Refused):
        lab.update("T-0001", status="INIT")
    lab.think("S-2", "afterthought", task="T-0001")
    found = said(steps(Timeline(lab.db, task="T-0001"), lab.head().seq))
    assert found[0] == "INIT task.text", "created before the session, fields and texts in one step"
    assert found[1:3] == ["session.open", "first look"]
    assert found[-3:] == ["DONE", "ERR_INVALID_TRANSITION", "afterthought"]


def test_every_record_is_in_exactly_one_step(lab: Lab) -> None:
    found = steps(Timeline(lab.db), lab.head().seq)
    seen = [
        record.seq for step in found for record in (*step.records, step.exit, step.enter) if record
    ]
    assert sorted(seen) == list(range(1, lab.head().seq + 1))
    assert [step.first.seq for step in found] == sorted(step.first.seq for step in found)


def test_steps_are_the_same_however_small_the_pages(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page may end between the records of one call, and between those of two sources."""
    task = lab.create("in turns").task_id
    lab.start("S-3", task=task)
    for status in ("GATHER", "ANALYZE", "PLAN", "APPLY"):
        lab.think("S-3", f"now {status}")
        lab.move(task, status)
    last = lab.head().seq
    whole = {id: steps(of_session(lab, id), last) for id in ("S-1", "S-2", "S-3")}
    for page in (1, 2, 3, 5):
        monkeypatch.setattr(store, "PAGE", page)
        assert {id: steps(of_session(lab, id), last) for id in whole} == whole


def test_a_session_says_nothing_of_other_sessions_about_its_task(lab: Lab) -> None:
    task = lab.create("shared").task_id
    lab.start("S-3", task=task)
    lab.start("S-4", task=task)
    lab.think("S-4", "theirs", task=task)
    lab.think("S-3", "ours", task=task)
    lab.move(task, "GATHER", session="S-3")
    lab.update(task, claim=False, session="S-3")
    lab.move(task, "ANALYZE", session="S-4")
    lab.seal("S-3")
    found = said(steps(of_session(lab, "S-3"), lab.head().seq))
    assert found == ["session.open", "ours", "GATHER", "task", "session.seal"]


def test_refused_and_reading_calls_are_steps_with_their_enter(lab: Lab) -> None:
    with pytest.raises(Refused):
        lab.think("S-1", "too late")
    lab.read("merkle_root", session="S-1")
    refused, read = steps(of_session(lab, "S-1"), lab.head().seq)[-2:]
    assert said([refused, read]) == ["ERR_ALREADY_FINALIZED", "ok"]
    assert refused.enter is not None
    assert refused.enter.payload is not None
    assert refused.enter.payload["arguments"] == {"session_id": "S-1"}


def test_the_next_advance_reports_what_came_since(lab: Lab) -> None:
    found = of_session(lab, "S-2")
    before = lab.head().seq
    assert len(steps(found, before)) == 3
    assert steps(found, before) == []
    lab.think("S-2", "more")
    lab.read()
    assert said(steps(found, lab.head().seq)) == ["more"]


def test_a_task_that_a_session_turns_to_brings_no_steps_of_others(lab: Lab) -> None:
    """Specification 7.8: the records that name it, whatever was done to the task before."""
    found = of_session(lab, "S-2")
    steps(found, lab.head().seq)
    task = lab.create("found on the way").task_id
    assert steps(found, lab.head().seq) == []
    lab.think("S-2", "about it", task=task)
    lab.move(task, "GATHER")
    assert said(steps(found, lab.head().seq)) == ["about it"]
    lab.move(task, "ANALYZE", session="S-2")
    assert said(steps(found, lab.head().seq)) == ["ANALYZE"]


def test_a_call_is_open_until_its_exit_is_seen(lab: Lab) -> None:
    with lab.calling("thought_record", session="S-2", ends=False) as call:
        pass
    found = of_session(lab, "S-2")
    assert len(steps(found, lab.head().seq)) == 3
    (running,) = found.open_calls()
    assert said([running]) == ["open"]
    assert running.first.call == call.id
    assert running.records == ()


@pytest.mark.parametrize("count", [1, 2, 5])
def test_only_the_newest_steps_are_told_after_skipping(lab: Lab, count: int) -> None:
    last = lab.head().seq
    for make in scopes(lab):
        whole, found = steps(make(), last), make()
        found.skip_to_newest(count, last=last)
        assert steps(found, last) == whole[-count:]


def test_skipping_more_than_there_is_leaves_everything(lab: Lab) -> None:
    last, found = lab.head().seq, of_session(lab, "S-1")
    found.skip_to_newest(1000, last=last)
    assert len(steps(found, last)) == 13


def test_an_erasure_is_a_step_of_its_own(lab: Lab) -> None:
    lab.erase(lab.seqs("thought")[0])
    found = Timeline(lab.db)
    found.skip_to_newest(1, last=lab.head().seq)
    (step,) = steps(found, lab.head().seq)
    assert (step.first.kind, step.enter, step.exit) == ("erasure", None, None)


def test_skipping_by_type_counts_the_thoughts_of_that_type(lab: Lab) -> None:
    """What is erased has no type any more."""
    lab.think("S-2", "erased", type="decision", task="T-0001")
    lab.erase(lab.seqs("thought")[-1])
    last = lab.head().seq
    for make in scopes(lab):
        found = make()
        found.skip_to_newest(2, last=last, types=["decision"])
        told = [
            record.payload["content"]
            for step in steps(found, last)
            for record in step.records
            if record.payload and record.payload.get("type") == "decision"
        ]
        assert told == ['and "so" on\n', "für später"]


# Sessions.


def test_sessions_are_counted_and_found_by_age(lab: Lab) -> None:
    lab.start("S-3")
    lab.think("S-3")
    lab.seal("S-3")
    lab.start("S-0")
    assert sessions.count(lab.db) == (2, 2)
    newest = sessions.newest(lab.db, 3)
    assert [one.session_id for one in newest] == ["S-0", "S-3", "S-2"]
    still_open = sessions.newest(lab.db, 9, only_open=True)
    assert [one.session_id for one in still_open] == ["S-0", "S-2"]
    sealed = sessions.last_sealed(lab.db)
    assert sealed is not None
    assert sealed.session_id == "S-3"


def test_an_empty_log_has_nothing_to_show() -> None:
    lab = in_memory()
    assert sessions.count(lab.db) == (0, 0)
    assert sessions.last_sealed(lab.db) is None
    assert steps(Timeline(lab.db), 0) == []
    assert list(store.records(lab.db, Filter(), last=0)) == []


# How.


def test_no_look_at_a_session_a_task_or_the_tail_reads_the_whole_ledger(lab: Lab) -> None:
    """Only the few sessions and erasures may be scanned; nothing is sorted beside DISTINCT."""
    last = lab.erase(lab.seqs("thought")[0]).seq

    def look() -> None:
        for found in (of_session(lab, "S-1"), Timeline(lab.db, task="T-0001"), Timeline(lab.db)):
            found.skip_to_newest(3, last=last)
            steps(found, last)
        filters = Filter(session="S-1"), Filter(task="T-0001"), Filter(kinds=("erasure",))
        for wanted in (*filters, Filter()):
            store.before_newest(lab.db, wanted, 3, last=last)
            list(store.records(lab.db, wanted, last=last))
        sessions.newest(lab.db, 3)
        sessions.last_sealed(lab.db)

    asked = plans(lab.db, look).splitlines()
    assert asked
    scans = {plan for plan in asked if plan.startswith("SCAN")}
    allowed = ("SCAN sessions USING INDEX", "SCAN ledger USING INDEX ledger_erasures")
    assert [plan for plan in scans if not plan.startswith(allowed)] == []
    assert {plan for plan in asked if "TEMP B-TREE" in plan} <= {"USE TEMP B-TREE FOR DISTINCT"}
    for index in ("ledger_by_session", "ledger_by_task", "ledger_erasures"):
        assert any(index in plan for plan in asked), index


def test_no_transaction_outlives_a_page(tmp_path: Path) -> None:
    """A slow reader does not keep the write-ahead log from being emptied."""
    require_sqlite("the write-ahead log")
    with opened(tmp_path) as db:
        lab = story(Lab(db))
        reader = open_reader(str(tmp_path / "data" / "colibri.db"))
        found = of_session(Lab(reader), "S-1").advance(lab.head().seq)
        listed = store.records(reader, Filter(), last=lab.head().seq)
        next(found)
        next(listed)
        lab.read()
        assert next(db.execute("PRAGMA wal_checkpoint(TRUNCATE)")) == (0, 0, 0)
        reader.close()
