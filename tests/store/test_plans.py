"""Every question about sessions, claims and keys is answered through an index, without sorting."""

from collections.abc import Callable

import pytest

from colibri.store import claims, keys, sessions, tasks, thought_search
from colibri.store.keys import Key
from colibri.store.sessions import Caller
from tests.support.ledger_writer import SERVER, Lab, in_memory
from tests.support.query_plans import plans

AT = "2026-01-01T00:00:00.000000Z"
CALLER = Caller(SERVER)
# What is asked, and the indexes that answer it, in their order.
PLANS: dict[str, tuple[Callable[[Lab], object], list[str]]] = {
    "the session of a caller": (
        lambda lab: sessions.current(lab.db, CALLER, now=AT, minutes=60),
        ["sessions_of_server (server=?)", "ledger_by_session (session=?)"],
    ),
    "its last sign of life": (
        lambda lab: sessions.last_sign(lab.db, "S-1"),
        ["ledger_by_session (session=?)"],
    ),
    "the newest that are open": (
        lambda lab: sessions.newest(lab.db, 0, only_open=True),
        ["sessions_open"],
    ),
    "the newest": (
        lambda lab: sessions.newest(lab.db, 0),
        ["sqlite_autoindex_sessions_3"],
    ),
    "what a key has made": (
        lambda lab: keys.find(lab.db, Key("task_create", "", "k"), {}, compare=True),
        ["PRIMARY KEY (tool=? AND session=? AND key=?)", "INTEGER PRIMARY KEY (rowid=?)"],
    ),
    "who holds nothing any more": (
        lambda lab: claims.end(lab.db, "S-9"),
        ["tasks_held (holder=?)"],
    ),
    "who has lost a task": (
        lambda lab: claims.keep(lab.db, 1, claims.Claim("S-1", may_have_lost=True)),
        ["PRIMARY KEY (task=? AND session=?)"],
    ),
    "how many thoughts wait for the index": (
        lambda lab: thought_search.count(lab.db),
        ["SCAN thought_counts"],
    ),
    "what is waited for": (
        lambda lab: tasks.get(lab.db, "T-0001"),
        ["INTEGER PRIMARY KEY (rowid=?)", "PRIMARY KEY (task=?)"],
    ),
}


@pytest.mark.parametrize("what", PLANS)
def test_a_question_is_answered_through_an_index(what: str) -> None:
    lab = in_memory()
    lab.start("S-1")
    lab.create()
    lab.think("S-1")
    ask, used = PLANS[what]
    plan = plans(lab.db, lambda: ask(lab))
    assert "TEMP B-TREE" not in plan
    lines = [line for line in plan.splitlines() if line.startswith(("SEARCH", "SCAN"))]
    assert len(lines) == len(used)
    assert [name for name, line in zip(used, lines, strict=True) if name not in line] == [], plan
