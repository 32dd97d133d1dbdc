"""store/verify.py: what the rows say of claims, callers, keys and words, against the records."""

from collections.abc import Iterator

import pytest

from colibri.store import keys, thought_search
from colibri.store.sqlite.connection import Connection
from tests.store.conftest import Writer
from tests.support.ledger_writer import SERVER, Lab, disable_triggers

OTHER = "00000000-0000-4000-8000-0000000000ff"
CALLED = "is not as its call says"
SAID = "its records say otherwise"


@pytest.fixture
def lab(writer: Writer) -> Iterator[Lab]:
    """S-1 has lost a task to S-2, which goes on in another process; a task and a thought have
    keys."""
    with writer() as opened:
        yield told(Lab(opened.db))


def told(lab: Lab) -> Lab:
    task = lab.create("mend it", key="k").task_id
    lab.create("mend it", key="k")
    lab.start("S-1", agent="ada")
    lab.start("S-2", agent="bob")
    lab.update(task, session="S-1", status="GATHER")
    lab.update(task, session="S-2", claim=True, minutes=0)
    lab.resume("S-2", server=OTHER)
    for number in range(thought_search.BATCH):
        lab.think("S-1", f"thought {number}", task=task)
    lab.think("S-1", "once", key="k")
    return lab


def details(lab: Lab) -> list[str]:
    return [f"{one.what} {one.detail}" for one in lab.verify().breaks]


def test_what_the_store_wrote_is_valid(lab: Lab) -> None:
    assert details(lab) == []


TAMPERINGS = {
    "tasks.holder": ("UPDATE tasks SET holder = 'S-1'", f"T-0001: {SAID}: holder"),
    "tasks.holder gone": ("UPDATE tasks SET holder = NULL", f"T-0001: {SAID}: holder"),
    **{
        f"sessions.{column}": (
            f"UPDATE sessions SET {column} = {value} WHERE session_id = 'S-2'",
            f"S-2: {SAID}: {column}",
        )
        for column, value in (
            *(("agent", "'eve'"), ("agent", "NULL"), ("server", f"'{SERVER}'")),
            *(("client", "'x'"), ("host_session", "'x'"), ("resume_seq", "NULL")),
            ("resume_seq", "1"),
        )
    },
    **{
        f"lost_claims: {sql}": (
            sql,
            "lost_claims does not say from which sessions tasks were taken",
        )
        for sql in (
            "DELETE FROM lost_claims",
            "UPDATE lost_claims SET session = 'S-2'",
            "UPDATE lost_claims SET task = 2",
            "INSERT INTO lost_claims VALUES (1, 'S-3')",
        )
    },
    **{
        f"call_keys.{change}": (f"UPDATE call_keys SET {change} WHERE tool = 'task_create'", CALLED)
        for change in (
            *("tool = 'thought_record'", "session = 'S-1'", "key = 'k'", "enter = 5", "made = 2"),
            "made = 1000",
        )
    },
    **{
        f"call_keys.{change} of a thought": (
            f"UPDATE call_keys SET {change} WHERE tool = 'thought_record'",
            CALLED,
        )
        for change in (
            "session = 'S-2'",
            "session = ''",
            "made = made - 3",
            "made = made + 1",
            "key = 'x'",
        )
    },
    "call_keys without a row": (
        "DELETE FROM call_keys WHERE tool = 'task_create'",
        "call_keys has no row for the key in record 1",
    ),
    "call_keys with a row more": (
        "INSERT INTO call_keys VALUES ('task_create', '', 'x', 5, 1)",
        f"the row in call_keys for record 5 {CALLED}",
    ),
    "thought_search without a row": (
        "DELETE FROM thought_search WHERE rowid = (SELECT min(seq) FROM thoughts)",
        "only one of the ledger and the search index has it",
    ),
    "thought_search with a row more": (
        "INSERT INTO thought_search (rowid, text) VALUES (1, 'x')",
        "R-1: only one of the ledger and the search index has it",
    ),
}


@pytest.mark.parametrize("name", TAMPERINGS)
def test_a_row_that_its_records_do_not_explain_is_named(lab: Lab, name: str) -> None:
    sql, detail = TAMPERINGS[name]
    disable_triggers(lab.db)
    lab.db.execute("PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON")
    lab.db.execute(sql)
    assert any(detail in one for one in details(lab)), details(lab)


def test_a_key_is_known_by_its_hash_alone(lab: Lab) -> None:
    stored = lab.db.execute("SELECT DISTINCT key FROM call_keys").fetchall()
    assert stored == [(keys.hash_of("k"),)]


def test_a_key_still_counts_when_its_call_is_erased(lab: Lab) -> None:
    """The first answer stands; of the row only the key can no longer be compared."""
    lab.erase_everywhere(1)
    assert details(lab) == []
    assert lab.create("something else", key="k").task_id == "T-0001"
    assert details(lab) == []
    lab.tamper("UPDATE call_keys SET made = 2 WHERE tool = 'task_create'")
    assert any(CALLED in one for one in details(lab))


def test_keys_of_calls_that_end_during_the_verification_are_compared(lab: Lab) -> None:
    last = lab.head().seq
    lab.create("another", key="late")
    assert lab.verify(upto=last).valid
    lab.tamper("DELETE FROM call_keys WHERE made = 2")
    wanted = f"call_keys has no row for the key in record {last + 1}"
    assert [one.detail for one in lab.verify(upto=last).breaks] == [wanted]


def opened_by(db: Connection, id: str) -> tuple[object, ...]:
    row = db.execute("SELECT client, host_session FROM sessions WHERE session_id = ?", (id,)).get
    return row  # type: ignore[no-any-return]


@pytest.mark.parametrize("resumed", [False, True])
def test_what_a_client_said_of_itself_goes_with_the_call(lab: Lab, resumed: bool) -> None:
    """The row of its session has it from there; a process is told by a number of our own."""
    lab.client = "editor 1"
    lab.start("S-3")
    if resumed:
        lab.resume("S-3")
    assert opened_by(lab.db, "S-3") == ("editor 1", "editor 1")
    assert details(lab) == []
    enter = lab.head().seq - 2
    lab.erase_everywhere(enter)
    assert opened_by(lab.db, "S-3") == (None, None)
    assert details(lab) == []
    lab.db.execute("UPDATE sessions SET client = 'x' WHERE session_id = 'S-3'")
    assert any(f"S-3: {SAID}: client" in one for one in details(lab))


def test_what_is_erased_during_the_verification_is_not_missed(lab: Lab) -> None:
    lab.client = "editor 1"
    lab.start("S-3")
    last = lab.head().seq
    lab.erase_everywhere(last - 2)
    assert lab.verify(upto=last).valid


def test_a_dependency_that_was_given_up_leads_nowhere(lab: Lab) -> None:
    first, second = lab.create("first").task_id, lab.create("second").task_id
    third = lab.create("third", first).task_id
    lab.update(third, depends_on=[second])
    lab.update(first, depends_on=[third])
    assert details(lab) == []
