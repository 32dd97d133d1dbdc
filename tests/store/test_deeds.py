"""store/deeds.py: what hosts report, each event once, bound to the session that it belongs to."""

import json
from typing import Any

import pytest

from colibri.core.errors import Refused
from colibri.core.report import Coverage
from colibri.store import ledger, sessions
from tests.support.ledger_writer import Lab, in_memory

HOST = "h-1"


@pytest.fixture
def lab() -> Lab:
    return in_memory()


def deeds(lab: Lab) -> list[tuple[Any, ...]]:
    """The event of each, and what it is bound to."""
    rows = lab.db.execute(
        "SELECT body ->> '$.event', session, task, agent FROM"
        " (SELECT seq, kind, CAST(body AS TEXT) AS body, session, task, agent FROM ledger)"
        " WHERE kind = 'deed' ORDER BY seq"
    )
    return rows.fetchall()


def said(lab: Lab, seq: int) -> dict[str, Any]:
    (row,) = ledger.rows(lab.db, [seq])
    found: dict[str, Any] = json.loads(row.body or b"")
    return found


def test_a_deed_is_a_record_and_its_texts_are_another(lab: Lab) -> None:
    """Specification 19.1."""
    entry = lab.deed(
        host_session=HOST,
        use="u-1",
        tool="Bash",
        exit=1,
        command="pytest -q",
        paths=["a.py", None],
        tree=".",
        files=[{"n": 0, "sha256": "0" * 64, "size": 3}],
    )
    assert entry is not None and entry.seq == 2
    assert said(lab, 1) == {
        **dict.fromkeys(("host_version", "host_agent", "duration_ms", "input", "output")),
        **dict.fromkeys(("git", "settings", "late")),
        **{"host": "claude-code", "host_session": HOST, "event": "tool.end", "use": "u-1"},
        **{"tool": "Bash", "class": "run", "exit": 1, "lost": 0},
        "files": [{"n": 0, "sha256": "0" * 64, "size": 3}],
    }
    texts = {"of": 1, "command": "pytest -q", "paths": ["a.py", None], "tree": ".", "text": None}
    assert said(lab, 2) == texts
    one, other = ledger.rows(lab.db, [1, 2])
    assert (one.kind, other.kind, one.call == other.call) == ("deed", "deed.text", True)
    assert lab.verify().valid


def test_a_deed_without_texts_is_one_record(lab: Lab) -> None:
    """Specification 19.1."""
    entry = lab.deed(event="stop", class_=None)
    assert entry == lab.head() and entry.seq == 1


def test_an_event_of_a_tool_call_is_recorded_once(lab: Lab) -> None:
    """Specification 19.2: the same id, or the same event of the same use."""
    assert lab.deed(host_session=HOST, use="u-1") is not None
    assert lab.deed(host_session=HOST, use="u-1") is None
    assert lab.deed(host_session=HOST, use="u-1", event="tool.begin") is not None
    assert lab.deed(host_session=HOST, use="u-1", host_agent="sub") is not None
    assert lab.deed(host_session="h-2", use="u-1") is not None
    assert lab.deed(use="u-1") is not None
    assert lab.deed(use="u-1") is None
    assert lab.deed() is not None
    assert lab.deed() is not None
    assert lab.deed(call=99) is not None
    assert lab.deed(call=99, event="tool.begin") is None
    assert len(deeds(lab)) == 8


def test_a_deed_is_bound_to_the_session_that_its_host_has_begun(lab: Lab) -> None:
    """Specification 19.3."""
    task = lab.create().task_id
    lab.client = HOST
    lab.start("S-1", agent="ada")
    lab.deed(host_session=HOST)
    lab.update(task, status="GATHER", session="S-1", agent="ada")
    lab.deed(host_session=HOST, host_agent="a subagent")
    lab.deed(host_session="h-2")
    lab.deed()
    assert [bound for _, *bound in deeds(lab)] == [
        ["S-1", None, "ada"],
        ["S-1", task, "ada"],
        [None, None, None],
        [None, None, None],
    ]
    assert lab.verify().valid


def test_a_deed_names_no_task_where_its_session_holds_several(lab: Lab) -> None:
    """Specification 19.3."""
    lab.client = HOST
    lab.start("S-1")
    for task in (lab.create().task_id, lab.create().task_id):
        lab.update(task, claim=True, session="S-1")
    lab.deed(host_session=HOST)
    assert deeds(lab) == [("tool.end", "S-1", None, None)]


def test_a_deed_after_the_seal_is_bound_to_nothing(lab: Lab) -> None:
    """Specification 19.3."""
    lab.client = HOST
    lab.start("S-1")
    lab.think("S-1")
    lab.deed(host_session=HOST, event="tool.begin", tool="merkle_finalize", use="u-1")
    lab.seal("S-1")
    lab.deed(host_session=HOST, tool="merkle_finalize", use="u-1")
    assert [session for _, session, *_ in deeds(lab)] == ["S-1", None]


def test_of_several_sessions_the_one_that_lives_is_meant(lab: Lab) -> None:
    """Specification 19.3: with two of them nobody can tell."""
    lab.client = HOST
    lab.start("S-1")
    lab.start("S-2")
    lab.deed(host_session=HOST)
    lab.db.execute("DROP TRIGGER ledger_refuses_update")
    lab.db.execute("UPDATE ledger SET at = '2025-12-31T22:00:00.000000Z' WHERE session = 'S-1'")
    lab.deed(host_session=HOST)
    assert [session for _, session, *_ in deeds(lab)] == [None, "S-2"]


def test_a_host_that_names_no_session_is_bound_by_the_answer_that_it_saw(lab: Lab) -> None:
    """Specification 19.4: and what it reports later by the bind that comes first."""
    lab.result_sha256 = "a" * 64
    lab.start("S-1", agent="ada")
    lab.result_sha256 = "b" * 64
    lab.start("S-2")
    began: dict[str, Any] = {
        "host_session": HOST,
        "tool": "colibri__audit_session_start",
        "class_": "mcp",
    }
    lab.deed(**began, answer="c" * 64)
    lab.deed(**began, answer="a" * 64)
    lab.deed(host_session=HOST)
    lab.deed(host_session=HOST, host_agent="another")
    assert [(event, session) for event, session, *_ in deeds(lab)] == [
        ("tool.end", None),
        ("bind", "S-1"),
        ("tool.end", "S-1"),
        ("tool.end", "S-1"),
        ("tool.end", None),
    ]
    assert lab.verify().valid


def test_the_agents_of_a_host_are_told_apart_by_the_calls_that_they_began(lab: Lab) -> None:
    """Specification 19.4."""
    lab.client, lab.use = HOST, "u-1"
    lab.start("S-1")
    began: dict[str, Any] = {
        "host_session": HOST,
        "tool": "mcp__colibri__audit_session_start",
        "class_": "mcp",
    }
    lab.deed(**began, use="u-1")
    lab.use = "u-2"
    lab.start("S-2")
    lab.deed(**began, use="u-2", host_agent="sub")
    lab.deed(host_session=HOST)
    lab.deed(host_session=HOST, host_agent="sub")
    assert [(event, session) for event, session, *_ in deeds(lab)] == [
        ("tool.end", "S-1"),
        ("bind", "S-2"),
        ("tool.end", "S-2"),
        ("tool.end", "S-1"),
        ("tool.end", "S-2"),
    ]


def test_a_bind_ends_with_its_session(lab: Lab) -> None:
    """Specification 19.4."""
    lab.use = "u-1"
    lab.start("S-1")
    lab.deed(host_session=HOST, tool="audit_session_start", class_="mcp", use="u-1")
    lab.think("S-1")
    lab.seal("S-1")
    lab.deed(host_session=HOST)
    assert [session for _, session, *_ in deeds(lab)] == ["S-1", "S-1", None]


def test_a_deed_is_a_sign_of_life_unless_it_came_late(lab: Lab) -> None:
    """Specification 19.5: claims, the current session and verification go by it."""
    lab.client = HOST
    lab.start("S-1")
    deed = lab.deed(host_session=HOST, event="prompt", class_=None)
    assert deed is not None
    lab.deed(host_session=HOST, event="stop", class_=None, late="2026-01-01T00:00:00.000000Z")
    assert sessions.last_sign(lab.db, "S-1").seq == deed.seq
    task = lab.create().task_id
    lab.update(task, claim=True, session="S-1")
    late = lab.deed(host_session=HOST, command="sleep 3600")
    lab.client = None
    lab.start("S-2")
    lab.update(task, claim=True, session="S-2", minutes=0)
    taken = lab.seqs("task")[-1]
    assert late is not None and said(lab, taken)["taken"]["last"] == late.seq - 1
    assert lab.verify().breaks == lab.verify_task(task).breaks == ()


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE deeds SET session = 'S-2' WHERE seq = 4",
        "UPDATE deeds SET exit = 0 WHERE seq = 4",
        "UPDATE deeds SET host = CAST(x'ff' AS TEXT) WHERE seq = 4",
        "DELETE FROM deeds WHERE seq = 4",
        "UPDATE deeds SET seq = 3 WHERE seq = 4",
    ],
)
def test_a_row_that_is_not_as_its_record_says_is_found(lab: Lab, damage: str) -> None:
    """Specification 19.7: also where the record came after the verification began."""
    lab.client = HOST
    lab.start("S-1")
    lab.deed(host_session=HOST, exit=1)
    lab.deed(host_session=HOST)
    assert lab.verify().valid
    lab.db.execute(damage)
    for upto in (None, 3):
        found = lab.verify(upto=upto).breaks
        assert {(one.seq, one.what) for one in found} == {(None, "altered-deed")}
        assert found[-1].detail.startswith("record 4: its row in deeds is missing or not as")


def test_what_is_not_known_of_a_session_is_measured(lab: Lab) -> None:
    """Specification 19.6: of the whole log, and of a session alone."""
    lab.client = HOST
    lab.start("S-1")
    lab.client = None
    lab.start("S-2", agent="human:eve")
    lab.start("S-3")
    lab.deed(host_session=HOST, event="tool.begin", use="u-1", settings="a" * 64)
    lab.deed(host_session=HOST, event="tool.begin", use="u-2")
    lab.deed(host_session=HOST, event="tool.denied", use="u-2", lost=2)
    lab.deed(host_session="elsewhere", event="tool.begin", settings="b" * 64)
    whole = Coverage(4, (10,), 1, 1, 1, 2, 2, 1)
    assert lab.verify().coverage == whole
    assert lab.verify_session("S-1").coverage == Coverage(3, (10,), 1, 0, 0, 2, 1, 0)
    assert lab.verify_session("S-3").coverage == Coverage(0, (), 0, 0, 0, 0, 1, 1)


def test_the_call_that_seals_a_session_counts_as_ended(lab: Lab) -> None:
    """Specification 19.6: its end comes after the seal; an edit that has not ended still shows."""
    lab.client = HOST
    for session, kind in (("S-1", "mcp"), ("S-2", "edit")):
        lab.start(session)
        lab.think(session)
        lab.deed(host_session=HOST, event="tool.begin", class_=kind, use=session)
        lab.seal(session)
    begun = lab.seqs("deed")[1]
    assert lab.verify().coverage == Coverage(2, (begun,), 1, 0, 0, 0, 2, 0)


def test_the_text_of_a_deed_is_erased_and_the_deed_stays(lab: Lab) -> None:
    """Specification 19.1, 9.10."""
    lab.deed(command="curl example.org", paths=["secret.txt"])
    with pytest.raises(Refused, match="holds neither command nor path"):
        lab.erase_everywhere(1)
    lab.erase_everywhere(2)
    report = lab.verify()
    assert (report.valid, report.erased) == (True, (2,))
    assert b"curl" not in lab.db.serialize("main") and b"secret.txt" not in lab.db.serialize("main")
