"""store/tasks.py: reading tasks, compared with a few lines of plain Python."""

from collections.abc import Callable, Iterator
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from colibri.core.errors import Refused
from colibri.core.gates import NONE, Done
from colibri.store import claims, task_needs, tasks
from colibri.store.sqlite import task_search as index
from colibri.store.tasks import Filter
from tests.store.conftest import Writer
from tests.support.engines import require_sqlite
from tests.support.ledger_writer import JSON, TO_VERIFY
from tests.support.query_plans import plans
from tests.support.task_store import TaskStore, in_memory

STATES = ("INIT", *TO_VERIFY, "DONE", "CANCELLED")


@pytest.fixture
def store(writer: Writer) -> Iterator[TaskStore]:
    with writer() as opened:
        yield TaskStore(opened.db)


@pytest.mark.parametrize(
    ("number", "id"), [(1, "T-0001"), (42, "T-0042"), (9999, "T-9999"), (10000, "T-10000")]
)
def test_an_id_has_four_digits_and_a_fifth_after_9999(number: int, id: str) -> None:
    """Specification 5.9."""
    assert tasks.task_id(number) == id


def test_an_unknown_id_is_refused_with_the_way_to_find_the_known_ones(store: TaskStore) -> None:
    """Specification 5.16: ERR_NOT_FOUND."""
    store.create()
    with pytest.raises(Refused, match="task_list") as caught:
        tasks.get(store.db, "T-0002")
    assert (caught.value.code, caught.value.fields) == ("ERR_NOT_FOUND", {"task_id": "T-0002"})


@pytest.mark.parametrize(
    "id", ["T-1", "T-00001", "X-0001", "T-0001x", "t-0001", "", "T-" + "9" * 30]
)
def test_only_the_id_as_it_was_given_finds_a_task(store: TaskStore, id: str) -> None:
    """An id says where its row is, but other words may say the same number."""
    store.create()
    with pytest.raises(Refused, match="there is no task"):
        tasks.get(store.db, id)


def test_needs_names_what_each_legal_move_still_lacks_and_nothing_else(store: TaskStore) -> None:
    """Specification 5.14, 21.9."""
    store.create()
    store.create(depends_on=["T-0001"])
    reason = {"CANCELLED": ["a thought about this attempt"]}
    assert task_needs.needs(store.db, tasks.get(store.db, "T-0002"), None) == reason
    plan = store.move("T-0002", "GATHER", "ANALYZE", "PLAN")
    blocked = {"APPLY": ["dependencies that are DONE or CANCELLED: T-0001 (INIT)"]}
    assert task_needs.needs(store.db, plan, None) == {**blocked, **reason}
    assert task_needs.blockers(store.db, plan.number) == [("T-0001", "INIT")]
    store.cancel("T-0001")
    assert task_needs.needs(store.db, tasks.get(store.db, "T-0002"), None) == reason
    assert task_needs.blockers(store.db, plan.number) == []
    verify = store.move("T-0002", "APPLY", "VERIFY")
    assert task_needs.needs(store.db, verify, None) == {"DONE": reason["CANCELLED"], **reason}
    store.give_evidence("T-0002")
    assert task_needs.needs(store.db, verify, None) == {}
    assert task_needs.needs(store.db, verify, NONE) == {}
    rule = Done(command="pytest*", exit=0, after_last_edit=False)
    seen = "`pytest*` with exit code 0, seen by the host of the session that holds the task"
    assert task_needs.needs(store.db, verify, NONE.but(done=rule)) == {"DONE": [seen]}
    broken = task_needs.needs(store.db, verify, NONE.but(problem="no TOML"))
    assert broken == {"DONE": ["a rule that can be used: no TOML"]}
    assert tasks.next_states(verify) == ("DONE", "GATHER", "CANCELLED")


def test_a_sentence_that_leaves_blockers_out_says_how_many(store: TaskStore) -> None:
    """store/tasks.py: only the beginning is named."""
    ids = [store.create().task_id for _ in range(21)]
    store.create(depends_on=ids)
    plan = store.move("T-0022", "GATHER", "ANALYZE", "PLAN")
    (need,) = task_needs.needs(store.db, plan, None)["APPLY"]
    assert need.endswith("T-0020 (INIT) and 1 more")
    assert len(task_needs.blockers(store.db, plan.number)) == 21


# The queue.


def test_the_queue_is_sorted_by_priority_then_progress_then_age(store: TaskStore) -> None:
    """Specification 5.13: by priority, then furthest along, then oldest."""
    wanted = list(product(("low", "medium", "high", "critical"), ("INIT", *TO_VERIFY)))
    rows: list[tuple[int, int, str]] = []
    for priority, state in wanted * 2:
        id = store.create(priority=priority).task_id
        for status in ("INIT", *TO_VERIFY)[1 : ("INIT", *TO_VERIFY).index(state) + 1]:
            store.update(id, status=status)
        urgency = ("critical", "high", "medium", "low").index(priority)
        rows.append((urgency, -STATES.index(state), id))
    expected = [id for *_, id in sorted(rows)]
    assert store.ready(limit=100) == (expected, 48)
    assert store.ready(limit=5) == (expected[:5], 48)


def test_the_queue_leaves_out_what_has_ended_or_waits(store: TaskStore) -> None:
    """Specification 5.13: non-terminal, not blocked."""
    store.create(project="p", assignee="ada")
    store.create(project="p", depends_on=["T-0001"])
    store.create(project="q", assignee="ada")
    store.create()
    store.cancel("T-0004")
    assert store.ready() == (["T-0001", "T-0003"], 2)
    assert store.ready(project="p") == (["T-0001"], 1)
    assert store.ready(assignee="ada") == (["T-0001", "T-0003"], 2)
    assert store.ready(project="q", assignee="ada") == (["T-0003"], 1)
    assert store.ready(project="nobody's") == ([], 0)


# Lists.


def test_pages_are_the_slices_of_the_whole_list(store: TaskStore) -> None:
    """Specification 5.11: limit and offset; total_count is of all matches."""
    for number in range(23):
        store.create(f"task {number}", project="p" if number % 3 else "q")
    lists: list[tuple[JSON, str | None]] = [({}, None), ({"project": "p"}, None)]
    for wanted, search in [*lists, ({"project": "p"}, "ask 1")]:
        everything, total = store.find(search, **wanted)
        assert total == len(everything) > 0
        for limit, offset in product((1, 4, 23), (0, 1, 5, 22, 23, 2**53 - 1)):
            page = everything[offset : offset + limit]
            assert store.find(search, limit=limit, offset=offset, **wanted) == (page, total)


def many(store: TaskStore, count: int) -> list[JSON]:
    """So many rows, made by SQL alone; the fields of each, by which it can be found."""
    made = [
        {
            "status": STATES[number % 3 and number % 8],
            "project": (None, "p", "q")[number % 3],
            "assignee": ("a", "b")[number > 2000],
        }
        for number in range(1, count + 1)
    ]
    store.create()
    store.db.execute("DELETE FROM task_counts; DELETE FROM tasks")
    store.db.executemany(
        "INSERT INTO tasks SELECT ?1, '-', NULL, ?3, 'low', ?4, ?2, 1, 1, '-', '-', 2, 0, NULL",
        ((number, *fields.values()) for number, fields in enumerate(made, start=1)),
    )
    return made


def test_pages_far_into_a_list_are_the_slices_of_it_too(store: TaskStore) -> None:
    """store/tasks.py: blocks are skipped unseen; 1024 numbers are one."""
    require_sqlite("rows made by its own SQL")
    made = many(store, 4_000)
    store.db.execute("UPDATE tasks SET status = 'CANCELLED', project = NULL WHERE number % 7 = 0")
    for fields in made[6::7]:
        fields |= {"status": "CANCELLED", "project": None}
    filters: list[JSON] = [
        {"status": "INIT"},
        {"status": "CANCELLED"},
        {"project": "p"},
        {"assignee": "b"},
        {"assignee": "nobody"},
        {"assignee": "b", "status": "INIT"},
    ]
    for wanted in filters:
        ids = [
            tasks.task_id(number)
            for number, fields in enumerate(made, start=1)
            if all(fields[name] == value for name, value in wanted.items())
        ]
        for offset in (0, 1023, 1024, 1025, len(ids) * 9 // 10, len(ids) - 1, len(ids), 2**53 - 1):
            page = ids[max(0, offset) : max(0, offset) + 3]
            assert store.find(limit=3, offset=max(0, offset), **wanted) == (page, len(ids))


@pytest.mark.parametrize("column", ["attempt", "version"])
def test_a_number_that_json_cannot_say_is_no_answer(store: TaskStore, column: str) -> None:
    """Decision 006: a forger may have put it there."""
    store.create("mend the door")
    reads: list[Callable[[], object]] = [
        lambda: tasks.get(store.db, "T-0001"),
        store.find,
        lambda: store.find("the"),
        store.ready,
    ]
    for number in (2**53 - 1, 2**53, 2**63 - 1):
        store.db.execute(f"UPDATE tasks SET {column} = ?", (number,))
        for read in reads:
            if number < 2**53:
                read()
            else:
                with pytest.raises(ValueError, match=r"a task has a number beyond 2\^53-1"):
                    read()


AT = "2026-01-01T00:00:00.000000Z"
PLANS: dict[str, tuple[Callable[[TaskStore], object], str]] = {
    "any": (lambda store: store.find(), "INTEGER PRIMARY KEY (rowid>?)"),
    "status": (lambda store: store.find(status="INIT"), "COVERING INDEX tasks_status"),
    "project": (lambda store: store.find(project="p"), "COVERING INDEX tasks_project"),
    "assignee": (lambda store: store.find(assignee="a"), "COVERING INDEX tasks_assignee"),
    "project and status": (
        lambda store: store.find(project="p", status="INIT"),
        "COVERING INDEX tasks_project",
    ),
    "assignee and status": (
        lambda store: store.find(assignee="a", status="INIT"),
        "COVERING INDEX tasks_assignee",
    ),
    "project, assignee and status": (
        lambda store: store.find(project="p", assignee="a", status="INIT"),
        "COVERING INDEX tasks_project",
    ),
    "a far page": (
        lambda store: store.find(status="INIT", offset=tasks.BLOCK),
        "task_counts USING PRIMARY KEY (field=? AND project=? AND assignee=? AND status=?",
    ),
    "holder": (lambda store: store.find(holder="S-1"), "INDEX tasks_held (holder=?)"),
    "what others hold": (
        lambda store: claims.held(store.db, Filter(), "S-1"),
        "SEARCH tasks USING INDEX tasks_held (holder>?)",
    ),
    "what nobody holds": (
        lambda store: claims.free(store.db, Filter(), limit=3),
        "SCAN tasks USING INDEX tasks_ready",
    ),
    "what nobody holds of a project": (
        lambda store: claims.free(store.db, Filter(project="p"), limit=3),
        "INDEX tasks_ready_project (project=?)",
    ),
    "the queue": (lambda store: store.ready(), "SCAN tasks USING INDEX tasks_ready"),
    "the queue of a project": (lambda store: store.ready(project="p"), "INDEX tasks_ready_project"),
    "the queue of an assignee": (
        lambda store: store.ready(assignee="a"),
        "INDEX tasks_ready_assignee",
    ),
    "evidence": (
        lambda store: task_needs.has_evidence(store.db, tasks.get(store.db, "T-0001")),
        "COVERING INDEX thoughts_of_task (task=? AND seq>?)",
    ),
}


@pytest.mark.parametrize("what", PLANS)
def test_a_question_is_answered_from_the_index_that_is_made_for_it(
    store: TaskStore, what: str
) -> None:
    """Neither by a walk over all tasks nor by sorting; what no question needs is no index."""
    store.create()
    ask, used = PLANS[what]
    plan = plans(store.db, lambda: ask(store))
    assert used in plan
    assert "TEMP B-TREE" not in plan
    assert "SCAN tasks\n" not in plan


def test_only_what_one_session_holds_is_sorted(store: TaskStore) -> None:
    store.create()
    wanted = Filter(project="p")
    held = plans(store.db, lambda: tasks.queue(store.db, wanted._replace(holder="S-1"), 9))
    rest = plans(store.db, lambda: tasks.queue(store.db, wanted, 9, besides=["S-1"]))
    assert held == (
        "SEARCH tasks USING INDEX tasks_held (holder=?)\nUSE TEMP B-TREE FOR ORDER BY\n"
    )
    assert rest == "SEARCH tasks USING INDEX tasks_ready_project (project=?)\n"


def test_every_index_of_tasks_is_in_one_of_these_plans(store: TaskStore) -> None:
    require_sqlite("query plans")
    rows = store.db.execute(
        "SELECT name FROM sqlite_schema WHERE type = 'index' AND tbl_name = 'tasks'"
    )
    named = " ".join(used for _, used in PLANS.values()).split()
    assert {name for (name,) in rows} <= set(named)


# Search.


def test_tasks_enter_the_index_a_batch_at_a_time(store: TaskStore) -> None:
    """store/sqlite/task_search.py: those after the last whole batch are read one by one."""
    require_sqlite("batches of tasks")
    for number in range(1, 2 * index.BATCH + 2):
        store.create(f"task <{number}>")
        known = [rowid for (rowid,) in store.db.execute("SELECT rowid FROM task_search")]
        assert known == list(range(1, number - number % index.BATCH + 1))
        assert store.find(f"<{number}>") == ([tasks.task_id(number)], 1)
    assert store.find("task <1") == (
        [tasks.task_id(number) for number in range(1, number + 1) if str(number)[0] == "1"],
        11,
    )
    assert store.breaks() == []


def test_what_is_undone_is_not_in_the_index(store: TaskStore) -> None:
    """A refused call is rolled back to its savepoint, its batch with it."""
    for _ in range(index.BATCH - 1):
        store.create("kept")
    with pytest.raises(Refused):
        store.create("undone", depends_on=["T-9999"])
    assert store.find("undone") == ([], 0)
    store.create("last of the batch")
    assert store.find("last") == ([tasks.task_id(index.BATCH)], 1)
    assert store.breaks() == []


@pytest.mark.parametrize("search", [None, "", "  \t"])
def test_no_word_finds_everything(store: TaskStore, search: str | None) -> None:
    """Specification 5.12: every word occurs; of none, every one does."""
    store.create()
    store.create()
    assert store.find(search) == (["T-0001", "T-0002"], 2)


@pytest.mark.parametrize(
    ("title", "description", "search", "is_found"),
    [
        ("Straße kehren", None, "STRASSE", True),
        ("STRASSE KEHREN", None, "straße", True),
        ("ΣΊΣΥΦΟΣ", None, "σίσυφος", True),
        ("İstanbul", None, "İSTANBUL", True),
        ("Ünïcode", None, "üNÏC", True),
        ("Unicode", None, "üNÏC", False),
        ("mend the door", None, "end oor", True),
        ("mend", "the door", "door mend", True),
        ("mend", "the door", "dthe", False),
        ("mend the door", None, "window mend", False),
        ("a b", None, "a b", True),
        ("ab", None, "a b", True),
        ("go", None, "g", True),
        ("go", None, "x", False),
        ('say "no" now', None, '"no"', True),
        ("say no now", None, '"no"', False),
        ("it's", None, "it's", True),
        ("100 %", None, "%", True),
        ("100", None, "%", False),
        ("a*b", None, "a*b", True),
        ("axxb", None, "a*b", False),
        ("x NOT y", None, "not y", True),
        ("one two", None, "one AND two", False),
        ("title: x", None, "title:", True),
        ("🦜yz", None, "🦜yz", True),
        ("abc", None, "ab\0c", False),
        ("abc", None, "b\0", False),
        ("ab\ufffd", None, "ab\uffff", False),
        ("ab\uffff", None, "ab\uffff", True),
        ("one\u00a0two", None, "one\u3000two", True),
    ],
)
@pytest.mark.parametrize("batch", [1, 16])
def test_a_task_is_found_when_every_word_occurs_in_its_text(
    monkeypatch: pytest.MonkeyPatch,
    title: str,
    description: str | None,
    search: str,
    is_found: bool,
    batch: int,
) -> None:
    """Specification 5.12: every word, ignoring case, as a substring."""
    monkeypatch.setattr(index, "BATCH", batch)  # by the index; by reading
    store = in_memory()
    store.create(title, description=description)
    assert store.find(search) == ((["T-0001"], 1) if is_found else ([], 0))


@pytest.mark.parametrize("batch", [1, 16])
def test_search_follows_a_changed_text(
    store: TaskStore, monkeypatch: pytest.MonkeyPatch, batch: int
) -> None:
    """Specification 5.12: it looks at what title and description are now."""
    monkeypatch.setattr(index, "BATCH", batch)
    store.create("door", description="front")
    store.update("T-0001", title="window")
    assert store.find("door") == ([], 0)
    assert store.find("window front") == (["T-0001"], 1)


LETTERS = st.sampled_from(
    "aAbBsSßẞiIİıσςΣſKéÉﬁ𝒳🦜"  # noqa: RUF001 - letters that fold in odd ways
    "\"'*%_-:()^+ \n\t\u00a0\ufffd\ufffe\uffff"
)
TEXT = st.text(LETTERS, max_size=12)
SOME_FIELD = st.sampled_from((None, "p", "q", "P"))


@st.composite
def searches(draw: st.DrawFn) -> tuple[list[JSON], str, JSON]:
    """Tasks, a search made mostly of pieces of their texts, and a filter."""
    made = draw(
        st.lists(
            st.fixed_dictionaries(
                {
                    "title": TEXT,
                    "description": st.none() | TEXT,
                    "project": SOME_FIELD,
                    "assignee": SOME_FIELD,
                    "status": st.sampled_from(("INIT", "GATHER", "CANCELLED")),
                }
            ),
            min_size=1,
            max_size=5,
        )
    )
    words = [draw(_word(made)) for _ in range(draw(st.integers(1, 3)))]
    names = draw(st.sets(st.sampled_from(("project", "assignee", "status"))))
    wanted = {name: value for name in sorted(names) if (value := made[0][name]) is not None}
    return made, draw(st.sampled_from((" ", "\n", "\u3000"))).join(words), wanted


@st.composite
def _word(draw: st.DrawFn, made: list[JSON]) -> str:
    task = draw(st.sampled_from(made))
    text: str = draw(st.sampled_from((task["title"], task["description"] or "", draw(TEXT))))
    start = draw(st.integers(0, len(text)))
    piece = text[start : start + draw(st.integers(1, 6))]
    return draw(st.sampled_from((piece, piece.upper(), piece.lower(), piece.swapcase())))


def is_match(task: JSON, search: str, wanted: JSON) -> bool:
    """The definition."""
    texts = (task["title"].casefold(), (task["description"] or "").casefold())
    words = search.casefold().split()
    return all(any(word in text for text in texts) for word in words) and all(
        task[name] == value for name, value in wanted.items()
    )


@settings(deadline=None)
@given(searches(), st.sampled_from((1, 2, 16)), st.sampled_from((0, 1, 64)))
def test_search_and_filters_together_find_what_their_definition_finds(
    case: tuple[list[JSON], str, JSON], batch: int, few: int
) -> None:
    """Specification 5.12: search, status, project and assignee at once; with and without index."""
    made, search, wanted = case
    store = in_memory()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index, "BATCH", batch)
        patch.setattr(index, "FEW", few)
        _compare(store, made, search, wanted)


def _compare(store: TaskStore, made: list[JSON], search: str, wanted: JSON) -> None:
    for number, fields in enumerate(made, start=1):
        store.create(**{name: value for name, value in fields.items() if name != "status"})
        if fields["status"] == "CANCELLED":
            store.cancel(f"T-{number:04d}")
        elif fields["status"] != "INIT":
            store.update(f"T-{number:04d}", status=fields["status"])
    expected = [
        f"T-{number:04d}"
        for number, fields in enumerate(made, start=1)
        if is_match(fields, search, wanted)
    ]
    assert store.find(search, **wanted) == (expected, len(expected))
    assert store.find(search, limit=1, offset=1, **wanted) == (expected[1:2], len(expected))


CHANGES = st.lists(
    st.tuples(
        st.integers(0, 5),
        st.one_of(
            st.fixed_dictionaries({"project": SOME_FIELD, "assignee": SOME_FIELD}),
            st.fixed_dictionaries({"status": st.sampled_from(STATES)}),
            st.fixed_dictionaries(
                {"depends_on": st.lists(st.sampled_from(["T-0001", "T-0003"]), max_size=2)}
            ),
        ),
    ),
    max_size=25,
)


@settings(deadline=None)
@given(CHANGES)
def test_every_total_is_the_number_of_rows_that_match_after_any_changes(
    changes: list[tuple[int, JSON]],
) -> None:
    """Specification 5.11: total_count is of all matches."""
    store = in_memory()
    for number in range(6):
        store.create(project=("p", None)[number % 2], assignee=("q", "p", None)[number % 3])
    for number, fields in changes:
        try:
            store.update(f"T-{number + 1:04d}", **fields)
        except Refused:
            continue
    for project, assignee, status in product((None, "p", "P"), (None, "q", "p"), (None, *STATES)):
        given = {"project": project, "assignee": assignee, "status": status}
        wanted: JSON = {name: value for name, value in given.items() if value is not None}
        found, total = store.find(limit=1, **wanted)
        assert total == count(store, wanted)
        assert len(found) == min(1, total)
        if status is None:
            assert store.ready(**wanted)[1] == count(store, wanted, "is_ready = 1")


def count(store: TaskStore, wanted: JSON, also: str = "true") -> int:
    """Row by row, without a total."""
    clause = "".join(f" AND {name} IS ?" for name in wanted)
    rows = store.db.execute(f"SELECT 1 FROM tasks WHERE {also}{clause}", tuple(wanted.values()))
    return len(list(rows))
