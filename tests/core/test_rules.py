"""core/rules.py: which replay is shown which record."""

from typing import Any, NamedTuple

from colibri.core.rules import Rules

AT = "2026-01-01T00:00:00.000000Z"


class Record(NamedTuple):
    seq: int
    kind: str
    session: str | None
    task: str | None
    payload: dict[str, Any] | None
    leaf: bytes = bytes(32)
    at: str = AT
    call: str = "c"


FIELDS = {
    "status": [None, "INIT"],
    "priority": [None, "low"],
    "assignee": [None, None],
    "project": [None, None],
    "depends_on": [None, []],
}
CREATED = Record(
    1, "task", None, "T-0001", {"task_id": "T-0001", "version": 1, "attempt": 1, "set": FIELDS}
)
TEXT = Record(
    2,
    "task.text",
    None,
    "T-0001",
    {"task_id": "T-0001", "version": 1, "set": {"title": [None, "t"], "description": [None, "d"]}},
)
OPENED = Record(3, "session.open", "S", None, {"session_id": "S", "intent": "try", "task_id": None})
THOUGHT = Record(
    4,
    "thought",
    "S",
    "T-0001",
    {"thought_id": "R-4", "index": 0, "type": "plan", "content": "-", "prev": "0" * 64},
)
BAD_THOUGHT = THOUGHT._replace(payload={**(THOUGHT.payload or {}), "index": 7})
BAD_TASK = CREATED._replace(payload={**(CREATED.payload or {}), "version": 7})


def fed(rules: Rules, *records: Record) -> list[str]:
    return [what for record in records for what, _ in rules.feed(record, record.payload)]


def test_a_thought_concerns_its_session_and_its_task() -> None:
    """Design §8: it is the evidence that DONE needs."""
    rules = Rules()
    assert fed(rules, CREATED, TEXT, OPENED, THOUGHT) == []
    assert rules.tasks.tasks["T-0001"].evidence
    assert rules.sessions.sessions["S"].values["record_count"] == 1
    assert fed(rules, THOUGHT._replace(seq=5, task=None)) == ["bad thought"]


def test_an_erased_thought_is_still_evidence_and_still_has_its_place() -> None:
    """Design §9, Erasure."""
    rules = Rules()
    assert fed(rules, CREATED, TEXT, OPENED, THOUGHT._replace(payload=None)) == []
    assert rules.tasks.tasks["T-0001"].evidence
    assert rules.sessions.sessions["S"].values["record_count"] == 1


def test_an_erased_text_leaves_its_task_without_one() -> None:
    """Design §9: the text in the projections becomes [erased]."""
    rules = Rules()
    assert fed(rules, CREATED, TEXT, TEXT._replace(payload=None)) == []
    assert rules.tasks.tasks["T-0001"].values["title"] == "[erased]"


def test_other_erased_records_concern_nobody() -> None:
    rules = Rules()
    assert fed(rules, Record(1, "call.enter", "S", "T-0001", None)) == []
    assert fed(rules, Record(2, "erasure", None, None, {"seqs": [1], "reason": ""})) == []
    assert (rules.tasks.tasks, rules.sessions.sessions) == ({}, {})


def test_a_task_record_without_a_task_in_its_header_is_judged() -> None:
    assert fed(Rules(), CREATED._replace(task=None)) == ["bad task record"]


def test_a_check_of_one_session_looks_at_no_task_and_at_no_other_session() -> None:
    """audit_verify_chain for a session."""
    rules = Rules(session="S")
    other = OPENED._replace(session="T")
    assert fed(rules, BAD_TASK, OPENED, other, BAD_THOUGHT) == ["bad thought"]
    assert (rules.tasks.tasks, list(rules.sessions.sessions)) == ({}, ["S"])


def test_a_check_of_tasks_looks_at_no_session() -> None:
    """audit_verify_chain for a task."""
    rules = Rules(only_tasks=True)
    assert fed(rules, BAD_TASK, OPENED, BAD_THOUGHT) == ["bad task record"]
    assert rules.tasks.tasks["T-0001"].evidence
    assert rules.sessions.sessions == {}


def test_what_is_lost_concerns_the_task_and_the_session_that_it_names() -> None:
    rules = Rules()
    fed(rules, CREATED, OPENED)
    rules.lose(OPENED._replace(seq=9))
    rules.lose(TEXT)
    assert fed(rules, BAD_THOUGHT, BAD_TASK) == []
    assert rules.sessions.lost == {"S"}
    assert not rules.blind


def test_blind_rules_judge_nothing_any_more() -> None:
    """Records are gone of which nobody knows what they were about."""
    rules = Rules()
    fed(rules, CREATED, OPENED)
    rules.go_blind()
    assert rules.blind
    assert fed(rules, BAD_THOUGHT, BAD_TASK) == []


def test_a_task_record_that_names_no_task_and_cannot_be_read_blinds_all_rules() -> None:
    rules = Rules()
    rules.lose(CREATED._replace(task=None))
    assert rules.blind
    assert rules.tasks.blind
    assert rules.sessions.blind
