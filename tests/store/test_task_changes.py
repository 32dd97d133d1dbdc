"""store/task_changes.py: every change is a record and a row; every refusal is neither."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from colibri.core.errors import Refused
from colibri.store.faults import errors
from tests.store.conftest import Writer
from tests.support.ledger_writer import JSON, TO_VERIFY
from tests.support.query_plans import plans
from tests.support.task_store import TaskStore, records

Act = Callable[[TaskStore], object]


@pytest.fixture
def store(writer: Writer) -> Iterator[TaskStore]:
    with writer() as opened:
        yield TaskStore(opened.db)


def refusal(store: TaskStore, act: Act) -> Refused:
    """The refusal of an act, after which everything is as it was before."""
    before = store.kept()
    with pytest.raises(Refused) as caught:
        act(store)
    assert store.kept() == before
    return caught.value


def test_a_new_task_begins_in_init_at_version_and_attempt_1(store: TaskStore) -> None:
    """Specification 6.3: a task is created in INIT, only there; version and attempt begin at 1."""
    task = store.create("mend it", project="p", priority="high", assignee="ada", description="so")
    assert (task.task_id, task.status, task.version, task.attempt) == ("T-0001", "INIT", 1, 1)
    assert (task.title, task.description, task.project) == ("mend it", "so", "p")
    assert (task.priority, task.assignee, task.depends_on) == ("high", "ada", ())
    assert task.created_at == task.updated_at == "2026-01-01T00:00:00.000001Z"
    assert store.create().task_id == "T-0002"


def test_a_creation_is_two_records_with_every_field_and_no_old_value(store: TaskStore) -> None:
    """Specification 6.3, 6.12: every field, old null; the text apart, in the same version."""
    store.create()
    store.create("mend it", project="p", depends_on=["T-0001"])
    fields: JSON = {"status": "INIT", "priority": "medium", "assignee": None, "project": "p"}
    fields |= {"depends_on": ["T-0001"]}
    text = {"title": "mend it", "description": None}
    assert records(store.db, "T-0002") == [
        (
            "task",
            {
                "task_id": "T-0002",
                "version": 1,
                "attempt": 1,
                "set": {name: [None, value] for name, value in fields.items()},
            },
        ),
        (
            "task.text",
            {
                "task_id": "T-0002",
                "version": 1,
                "set": {name: [None, value] for name, value in text.items()},
            },
        ),
    ]


def test_dependencies_are_kept_in_the_order_given_without_duplicates(store: TaskStore) -> None:
    """Specification 6.9."""
    for _ in range(3):
        store.create()
    named = ["T-0003", "T-0001", "T-0003", "T-0002", "T-0001"]
    assert store.create(depends_on=named).depends_on == ("T-0003", "T-0001", "T-0002")
    assert store.update("T-0004", depends_on=named[1:]).depends_on == ("T-0001", "T-0003", "T-0002")


@pytest.mark.parametrize(
    ("changes", "kinds"),
    [
        ({"priority": "low"}, ["task"]),
        ({"title": "new"}, ["task.text"]),
        ({"description": "new", "assignee": "ada", "status": "GATHER"}, ["task", "task.text"]),
        ({"priority": "medium", "title": "new"}, ["task.text"]),
        ({"priority": "medium", "title": "a task", "depends_on": []}, []),
    ],
)
def test_a_record_is_written_only_of_fields_that_change(
    store: TaskStore, changes: JSON, kinds: list[str]
) -> None:
    """Specification 6.12: both in one call share the version; without a change there is none."""
    store.create()
    before = store.kept()
    task = store.update("T-0001", **changes)
    written = records(store.db, "T-0001")[2:]
    assert [kind for kind, _ in written] == kinds
    assert {payload["version"] for _, payload in written} == ({2} if kinds else set())
    assert task.version == (2 if kinds else 1)
    assert (store.kept() == before) == (not kinds)
    changed = {name for _, payload in written for name in payload["set"]}
    assert changed == {
        name for name, value in changes.items() if value not in ("medium", "a task", [])
    }
    for name, value in changes.items():
        assert getattr(task, name) == (tuple(value) if name == "depends_on" else value)


def test_null_clears_and_an_unnamed_field_stays(store: TaskStore) -> None:
    """Specification 6.11: null clears project, assignee, description."""
    store.create("one", project="p", assignee="ada", description="so", priority="low")
    task = store.update("T-0001", project=None, assignee=None, description=None)
    assert (task.project, task.assignee, task.description) == (None, None, None)
    assert (task.title, task.priority, task.version) == ("one", "low", 2)
    assert store.find("so") == ([], 0)


def test_a_retry_begins_a_new_attempt_which_needs_new_evidence(store: TaskStore) -> None:
    """Specification 6.4: thoughts count since the attempt began."""
    store.create()
    store.give_evidence("T-0001")
    store.move("T-0001", *TO_VERIFY)
    assert store.update("T-0001", status="GATHER").attempt == 2
    store.move("T-0001", *TO_VERIFY[1:])
    assert refusal(store, done).code == "ERR_WRITEBACK_REQUIRED"
    store.give_evidence("T-0001")
    task = store.update("T-0001", status="DONE")
    assert (task.status, task.attempt) == ("DONE", 2)


def done(store: TaskStore) -> object:
    return store.update("T-0001", status="DONE")


def test_the_end_of_a_task_unblocks_those_that_wait_for_it(store: TaskStore) -> None:
    """Specification 6.5: DONE or CANCELLED."""
    store.create()
    store.create()
    store.create(depends_on=["T-0001", "T-0002"])
    assert store.ready() == (["T-0001", "T-0002"], 2)
    store.finish("T-0001")
    assert store.ready() == (["T-0002"], 1)
    store.cancel("T-0002")
    assert store.ready() == (["T-0003"], 1)
    assert store.move("T-0003", *TO_VERIFY).open_dependencies == 0


def act(id: str = "T-0001", **changes: Any) -> Act:
    return lambda store: store.update(id, **changes)


def create(*depends_on: str) -> Act:
    return lambda store: store.create(depends_on=list(depends_on))


REFUSALS: dict[str, tuple[Act, str, JSON]] = {
    "unknown task": (act("T-0099", title="x"), "ERR_NOT_FOUND", {"task_id": "T-0099"}),
    "unknown dependency": (create("T-0001", "T-0099"), "ERR_NOT_FOUND", {"task_id": "T-0099"}),
    "itself before it is made": (create("T-0005"), "ERR_NOT_FOUND", {"task_id": "T-0005"}),
    "unknown new dependency": (
        act(depends_on=["T-0099"], title="x"),
        "ERR_NOT_FOUND",
        {"task_id": "T-0099"},
    ),
    "stale version": (
        act(expected_version=7, title="x"),
        "ERR_VERSION_CONFLICT",
        {"task_id": "T-0001", "current_version": 1, "expected_version": 7},
    ),
    "itself": (
        act(depends_on=["T-0001"], title="x"),
        "ERR_CYCLE",
        {"cycle": ["T-0001", "T-0001"]},
    ),
    "a circle": (
        act(depends_on=["T-0004", "T-0003"], title="x"),
        "ERR_CYCLE",
        {"cycle": ["T-0001", "T-0003", "T-0002", "T-0001"]},
    ),
    "a skipped state": (
        act(status="PLAN", title="x"),
        "ERR_INVALID_TRANSITION",
        {
            "task_id": "T-0001",
            "from": "INIT",
            "to": "PLAN",
            "next_states": ["GATHER", "CANCELLED"],
        },
    ),
    "the state it has": (
        act(status="INIT", title="x"),
        "ERR_INVALID_TRANSITION",
        {
            "task_id": "T-0001",
            "from": "INIT",
            "to": "INIT",
            "next_states": ["GATHER", "CANCELLED"],
        },
    ),
    "an ended task": (
        act("T-0004", title="x"),
        "ERR_INVALID_TRANSITION",
        {"task_id": "T-0004", "from": "CANCELLED", "to": None, "next_states": []},
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_a_refusal_carries_its_facts_and_leaves_rows_version_and_ledger_untouched(
    store: TaskStore, name: str
) -> None:
    """Specification 6.8, 6.10: all or nothing."""
    store.create()
    store.create(depends_on=["T-0001"])
    store.create(depends_on=["T-0002"])
    store.create()
    store.cancel("T-0004")
    what, code, fields = REFUSALS[name]
    refused = refusal(store, what)
    assert (refused.code, refused.fields) == (code, fields)


def test_a_blocked_move_names_the_open_ones_and_leaves_everything_untouched(
    store: TaskStore,
) -> None:
    """Specification 5.15, 6.5: it names the open ones; CANCELLED and the retry need none."""
    store.create()
    store.create()
    store.create(depends_on=["T-0002", "T-0001"])
    store.move("T-0003", "GATHER", "ANALYZE", "PLAN")
    store.update("T-0001", status="GATHER")
    refused = refusal(store, act("T-0003", status="APPLY", title="x"))
    assert refused.code == "ERR_BLOCKED"
    assert refused.fields == {"task_id": "T-0003", "blockers": ["T-0002", "T-0001"]}
    assert "T-0002 (INIT), T-0001 (GATHER)" in refused.message
    assert store.cancel("T-0003").status == "CANCELLED"


def test_every_blocker_is_a_fact_even_where_the_sentence_names_only_twenty(
    store: TaskStore,
) -> None:
    """Specification 5.15: names the open ones; a list that is cut says so."""
    ids = [store.create().task_id for _ in range(25)]
    id = store.create(depends_on=ids).task_id
    store.move(id, "GATHER", "ANALYZE", "PLAN")
    refused = refusal(store, act(id, status="APPLY"))
    assert refused.fields["blockers"] == ids
    assert "T-0020 (INIT) and 5 more;" in refused.message


@pytest.mark.parametrize("state", ["APPLY", "VERIFY"])
def test_a_task_past_plan_takes_no_open_dependency(store: TaskStore, state: str) -> None:
    """Specification 6.5: a depends_on that leaves a task in APPLY or later with an open one."""
    store.create()
    store.create()
    store.create()
    store.cancel("T-0003")
    store.move("T-0001", *TO_VERIFY[: TO_VERIFY.index(state) + 1])
    refused = refusal(store, act(depends_on=["T-0003", "T-0002"], title="x"))
    assert (refused.code, refused.fields["blockers"]) == ("ERR_BLOCKED", ["T-0002"])
    assert store.update("T-0001", depends_on=["T-0003"]).depends_on == ("T-0003",)


def test_a_move_is_checked_against_the_new_dependencies(store: TaskStore) -> None:
    """Specification 6.5: the move … against the new dependencies."""
    store.create()
    store.create(depends_on=["T-0001"])
    store.move("T-0002", "GATHER", "ANALYZE", "PLAN")
    assert store.update("T-0002", status="APPLY", depends_on=[]).status == "APPLY"
    store.move("T-0002", "VERIFY")
    task = store.update("T-0002", status="GATHER", depends_on=["T-0001"])
    assert (task.status, task.open_dependencies) == ("GATHER", 1)


def test_done_without_evidence_is_refused_and_names_what_is_missing(store: TaskStore) -> None:
    """Specification 6.6."""
    store.create()
    store.create()
    store.give_evidence("T-0002")
    store.move("T-0001", *TO_VERIFY)
    refused = refusal(store, act(status="DONE", title="x"))
    assert refused.code == "ERR_WRITEBACK_REQUIRED"
    assert refused.fields == {"task_id": "T-0001", "attempt": 1}
    assert "thought_record and task_id T-0001" in refused.message


ORDER: list[tuple[str, JSON]] = [
    ("ERR_VERSION_CONFLICT", {"expected_version": 9}),
    ("ERR_NOT_FOUND", {"depends_on": ["T-0099"]}),
    ("ERR_CYCLE", {"depends_on": ["T-0001"]}),
    ("ERR_INVALID_TRANSITION", {"status": "INIT", "depends_on": ["T-0002"]}),
    ("ERR_BLOCKED", {"status": "DONE", "depends_on": ["T-0002"]}),
    ("ERR_WRITEBACK_REQUIRED", {"status": "DONE"}),
]


@pytest.mark.parametrize("first", range(len(ORDER)))
def test_the_first_mistake_in_the_order_of_the_checks_is_reported(
    store: TaskStore, first: int
) -> None:
    """Specification 6.7: task_update checks in this order."""
    store.create()
    store.create()
    store.move("T-0001", *TO_VERIFY)
    code, mistake = ORDER[first]
    changes = {"status": "INIT"} if first < 3 else {}
    assert refusal(store, act(**{**changes, **mistake})).code == code


def test_an_ended_task_refuses_before_its_new_dependencies_are_looked_at(store: TaskStore) -> None:
    """Specification 6.7: right after ERR_VERSION_CONFLICT."""
    store.create()
    store.cancel("T-0001")
    stale = act(expected_version=1, depends_on=["T-0099"])
    assert refusal(store, stale).code == "ERR_VERSION_CONFLICT"
    current = act(expected_version=2, depends_on=["T-0099"])
    assert refusal(store, current).code == "ERR_INVALID_TRANSITION"


def test_the_cycle_that_is_named_is_a_shortest_one(store: TaskStore) -> None:
    """Specification 5.15: ERR_CYCLE names it."""
    store.create()
    store.create(depends_on=["T-0001"])
    store.create(depends_on=["T-0002"])
    store.create(depends_on=["T-0003", "T-0001"])
    refused = refusal(store, act(depends_on=["T-0004"]))
    assert refused.fields["cycle"] == ["T-0001", "T-0004", "T-0001"]
    assert "T-0001 → T-0004 → T-0001" in refused.message


def test_a_way_back_is_found_past_tasks_that_many_wait_for(store: TaskStore) -> None:
    store.create()
    store.create(depends_on=["T-0001"])
    for _ in range(3):
        store.create(depends_on=["T-0002", "T-0001"])
    store.create(depends_on=["T-0003", "T-0004", "T-0005"])
    with pytest.raises(Refused) as caught:
        store.update("T-0001", depends_on=["T-0006"])
    assert caught.value.fields["cycle"] == ["T-0001", "T-0006", "T-0003", "T-0001"]


@pytest.mark.parametrize("end", ["nobody waits for it", "it waits for nobody who waits"])
def test_dependencies_far_from_a_change_are_not_read(store: TaskStore, end: str) -> None:
    """2,130 tasks with 100 dependencies each were read for every change of one."""
    for number in range(1, 120):
        store.create(depends_on=[f"T-{n:04d}" for n in range(max(1, number - 9), number)])
    alone, last = store.create().task_id, "T-0119"
    change = (alone, [last]) if end == "nobody waits for it" else ("T-0060", [alone])
    asked: list[str] = []

    def note(cursor: object, sql: str, bindings: object) -> bool:
        asked.append(sql)
        return True

    store.db.exec_trace = note
    store.update(change[0], depends_on=change[1])
    store.db.exec_trace = None
    assert sum("task_dependencies" in sql for sql in asked) < 10


def test_a_long_cycle_is_a_fact_whole_and_a_short_sentence(store: TaskStore) -> None:
    """store/tasks.py: a sentence names twenty."""
    ids = [store.create().task_id]
    for _ in range(30):
        ids.append(store.create(depends_on=ids[-1:]).task_id)
    refused = refusal(store, act(depends_on=ids[-1:]))
    assert refused.fields["cycle"] == ["T-0001", *ids[::-1]]
    assert refused.message.count("T-") == 22
    assert "→ … → T-0001;" in refused.message


def test_dependencies_may_meet_again_without_being_a_cycle(store: TaskStore) -> None:
    """Specification 6.10: only a way back to the task itself is a cycle."""
    store.create()
    store.create(depends_on=["T-0001"])
    store.create(depends_on=["T-0001"])
    store.create()
    assert store.update("T-0004", depends_on=["T-0002", "T-0003"]).version == 2


def test_ids_get_a_fifth_digit_after_9999(store: TaskStore) -> None:
    """Specification 5.9: `T-0001` (five digits after 9999)."""
    store.tamper(
        "INSERT INTO tasks (number, title, priority, status, attempt, version, created_at,"
        " updated_at, attempt_seq, open_dependencies)"
        " VALUES (9999, 'x', 'low', 'INIT', 1, 1, '-', '-', 1, 0)"
    )
    assert store.create(depends_on=["T-9999"]).task_id == "T-10000"


def test_a_task_depends_on_another_once_and_who_waits_for_it_is_found_by_an_index(
    store: TaskStore,
) -> None:
    """One index does both."""
    store.create()
    store.create(depends_on=["T-0001"])
    with pytest.raises(errors()):
        store.db.execute("INSERT INTO task_dependencies VALUES (2, 1, 1)")
    store.give_evidence("T-0001")
    plan = plans(store.db, lambda: store.update("T-0001", status="CANCELLED"))
    assert "task_dependencies USING COVERING INDEX task_dependents (depends_on=?)" in plan
    assert store.ready() == (["T-0002"], 1)
