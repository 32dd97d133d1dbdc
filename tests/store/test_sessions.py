"""store/sessions.py: opened once, sealed once, and nothing after that."""

import json

import pytest

from colibri.core.errors import Refused
from colibri.store import sessions
from colibri.store.sessions import Session
from tests.support.engines import require_sqlite
from tests.support.ledger_writer import SERVER, Lab, in_memory


@pytest.fixture
def lab() -> Lab:
    return in_memory()


def test_a_session_is_a_record_and_a_row(lab: Lab) -> None:
    """Specification 7.1."""
    task = lab.create().task_id
    opened = lab.start("S-1", intent="mend it", task=task)
    assert opened == Session(
        session_id="S-1",
        intent="mend it",
        task_id=task,
        agent=None,
        server=SERVER,
        client=None,
        host_session=None,
        resume_seq=None,
        started_at="2026-01-01T00:00:00.000002Z",
        open_seq=6,
        record_count=0,
        last_leaf=bytes(32),
        finalized_at=None,
        seal_seq=None,
        root=None,
    )
    assert sessions.find(lab.db, "S-1") == sessions.get_open(lab.db, "S-1") == opened
    (body,) = next(lab.db.execute("SELECT body FROM ledger WHERE seq = 6"))
    assert json.loads(str(body, "utf-8")) == {
        "session_id": "S-1",
        "intent": "mend it",
        "task_id": task,
    }
    assert lab.verify().valid


def test_a_session_is_opened_once(lab: Lab) -> None:
    """Specification 7.1: ERR_SESSION_EXISTS."""
    first = lab.start("S-1", intent="one")
    with pytest.raises(Refused) as caught:
        lab.start("S-1", intent="two")
    assert (caught.value.code, caught.value.fields) == ("ERR_SESSION_EXISTS", {"session_id": "S-1"})
    assert "another session_id" in caught.value.message
    assert sessions.get(lab.db, "S-1") == first
    assert lab.seqs("session.open") == [first.open_seq]


def test_an_unknown_session_is_refused_with_the_way_to_one(lab: Lab) -> None:
    """Specification 5.16: ERR_SESSION_NOT_FOUND."""
    assert sessions.find(lab.db, "S-9") is None
    for ask in (sessions.get, sessions.get_open):
        with pytest.raises(Refused) as caught:
            ask(lab.db, "S-9")
        assert caught.value.code == "ERR_SESSION_NOT_FOUND"
        assert caught.value.fields == {"session_id": "S-9"}
        assert "audit_session_start" in caught.value.message


def test_a_sealed_session_is_no_open_one_and_the_refusal_has_the_root(lab: Lab) -> None:
    """Specification 7.2: ERR_ALREADY_FINALIZED (has the root)."""
    lab.start()
    lab.think()
    sealed = lab.seal()
    assert sealed.root is not None
    with pytest.raises(Refused) as caught:
        sessions.get_open(lab.db, "S-1")
    assert caught.value.code == "ERR_ALREADY_FINALIZED"
    assert caught.value.fields == {
        "session_id": "S-1",
        "root": sealed.sized_root,
        "record_count": 1,
    }
    assert sessions.get(lab.db, "S-1") == sealed


def test_sessions_are_listed_in_the_order_of_their_opening(lab: Lab) -> None:
    for id in ("b", "a", "c"):
        lab.start(id)
    assert [session.session_id for session in sessions.every(lab.db)] == ["b", "a", "c"]


def test_a_column_that_is_not_text_reads_as_a_value_equal_to_nothing(lab: Lab) -> None:
    """A check must tell of it, not stop at it; not even U+FFFD in its place would do."""
    require_sqlite("a text that is none")
    lab.start(intent="\N{REPLACEMENT CHARACTER}")
    lab.db.execute("UPDATE sessions SET intent = CAST(x'ff' AS TEXT)")
    assert sessions.get(lab.db, "S-1").intent == "\udcff"
    (broken,) = lab.verify().breaks
    assert broken.detail == "S-1: its records say otherwise: intent"
