"""store/deeds.py: what hosts report, each event once, bound to the session that it belongs to."""

import json
from typing import Any

import pytest

from colibri.core.errors import Refused
from colibri.core.report import Coverage
from colibri.store import ledger, sessions
from tests.support.engines import require_sqlite
from tests.support.ledger_writer import Lab, in_memory

HOST = "h-1"
NOTHING = Coverage(
    deeds=0,
    not_ended=(),
    not_ended_count=0,
    unpaired=0,
    unseen=(),
    unseen_count=0,
    unjudged=0,
    settings_changed=0,
    lost=0,
    sessions=0,
    unreported=0,
)


@pytest.fixture
def lab() -> Lab:
    return in_memory()


def deeds(lab: Lab) -> list[tuple[Any, ...]]:
    """The event of each, and what it is bound to."""
    rows = lab.db.execute(
        "SELECT body, session, task, agent FROM ledger WHERE kind = 'deed' ORDER BY seq"
    )
    return [(json.loads(body)["event"], *named) for body, *named in rows]


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
    lab.tamper("UPDATE ledger SET at = '2025-12-31T22:00:00.000000Z' WHERE session = 'S-1'")
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
    lab.client = None
    lab.start("S-2")
    lab.deed(host_session="another")
    assert lab.verify().valid
    for upto in (None, 3):
        assert lab.verify_session("S-1", upto=upto).breaks == ()
    lab.tamper(damage)
    for upto in (None, 3):
        for found in (lab.verify(upto=upto).breaks, lab.verify_session("S-1", upto=upto).breaks):
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
    one = NOTHING._replace(not_ended=(10,), not_ended_count=1, lost=2)
    whole = one._replace(deeds=4, unpaired=1, settings_changed=1, sessions=2, unreported=1)
    assert lab.verify().coverage == whole
    assert lab.verify_session("S-1").coverage == one._replace(deeds=3, sessions=1)
    assert lab.verify_session("S-3").coverage == NOTHING._replace(sessions=1, unreported=1)


def test_the_call_that_seals_a_session_counts_as_ended(lab: Lab) -> None:
    """Specification 19.6: its end comes after the seal; an edit that has not ended still shows."""
    lab.client = HOST
    for session, kind in (("S-1", "mcp"), ("S-2", "edit")):
        lab.start(session)
        lab.think(session)
        lab.deed(host_session=HOST, event="tool.begin", class_=kind, use=session)
        lab.seal(session)
    begun = lab.seqs("deed")[1]
    one = NOTHING._replace(not_ended=(begun,), not_ended_count=1)
    assert lab.verify().coverage == one._replace(deeds=2, sessions=2)


def report(lab: Lab, event: str, use: str | None, class_: str = "mcp") -> None:
    lab.deed(host_session=HOST, event=event, use=use, class_=class_)


def call(lab: Lab, use: str | None, *events: str) -> int:
    """A thought, with what the host reports of it before and after; where it was entered."""
    if "tool.begin" in events:
        report(lab, "tool.begin", use)
    lab.use = use
    enter = lab.think("S-1").seq - 1
    for event in events:
        if event != "tool.begin":
            report(lab, event, use)
    return enter


def unseen(lab: Lab) -> tuple[int, ...]:
    """The calls that were not reported: of the log and of the session alike."""
    whole, one = lab.verify().coverage, lab.verify_session("S-1").coverage
    assert whole is not None and one is not None
    assert (whole.unseen, whole.unseen_count) == (one.unseen, one.unseen_count)
    return whole.unseen


BOTH = ("tool.begin", "tool.end")


def test_calls_that_a_host_no_longer_reports_are_counted(lab: Lab) -> None:
    """Specification 19.6: its hooks were taken out in the middle of the session, and put back."""
    lab.client = HOST
    lab.start("S-1")
    before = call(lab, "u-0")  # no report yet: an unreported session is another line
    call(lab, "u-1", *BOTH)
    gone = [call(lab, "u-2"), call(lab, "u-3")]
    call(lab, "u-4", *BOTH)
    assert unseen(lab) == tuple(gone) and before not in gone
    lab.deed(host_session=HOST, use="u-3", class_="mcp", late="2026-01-01T00:00:00.000000Z")
    assert unseen(lab) == tuple(gone[:1])
    lab.use = "u-5"
    lab.seal("S-1")  # its begin would have been reported
    assert unseen(lab) == (gone[0], lab.seqs("call.enter")[-1])


def test_a_session_that_is_continued_without_hooks_shows(lab: Lab) -> None:
    """Specification 19.6: in another session of a host, which reports nothing."""
    lab.client = HOST
    lab.start("S-1")
    call(lab, "u-1", *BOTH)
    lab.client = "h-2"
    lab.use = "u-2"
    lab.resume("S-1")
    later = call(lab, "u-3")
    assert unseen(lab) == (lab.seqs("call.enter")[-2], later)


@pytest.mark.parametrize(
    ("use", "events"),
    [
        ("u", BOTH),
        ("u", ("tool.end",)),
        ("u", ("tool.begin",)),  # it failed, which some hosts do not report
        (None, BOTH),
        (None, ("tool.end",)),
    ],
)
def test_an_honest_session_has_no_call_that_was_not_reported(
    lab: Lab, use: str | None, events: tuple[str, ...]
) -> None:
    """Specification 19.6: with and without ids and begins, up to the seal, whose end is later."""
    lab.client = HOST
    lab.start("S-1")
    for number in range(3):
        call(lab, use and f"{use}-{number}", *events)
    lab.use = use and f"{use}-seal"
    if "tool.begin" in events:
        report(lab, "tool.begin", lab.use)
    lab.seal("S-1")
    assert unseen(lab) == ()
    if "tool.end" in events:
        report(lab, "tool.end", lab.use)
    assert unseen(lab) == ()


def test_of_a_host_whose_calls_have_no_ids_the_calls_after_its_last_report_count(
    lab: Lab,
) -> None:
    """Specification 19.6: two calls at once are no gap, and what a person does is none."""
    lab.client = HOST
    lab.start("S-1")
    call(lab, None, "tool.end")
    for _ in range(2):
        call(lab, None)
    report(lab, "tool.end", None, "edit")
    assert unseen(lab) == ()
    gone = [call(lab, None), call(lab, None)]
    assert unseen(lab) == tuple(gone)
    lab.think("S-1", agent="human:eve")
    assert unseen(lab) == tuple(gone)
    lab.seal("S-1")
    assert unseen(lab) == tuple(gone)


def test_where_reports_of_calls_have_no_ids_those_of_the_calls_tell_nothing(lab: Lab) -> None:
    """Specification 19.6: though other tools of the same host have them."""
    lab.client = HOST
    lab.start("S-1")
    for number in range(3):
        report(lab, "tool.end", None)
        report(lab, "tool.end", f"e-{number}", "edit")
        lab.use = f"u-{number}"
        lab.think("S-1")
    assert unseen(lab) == ()


@pytest.mark.parametrize(
    ("reports", "unpaired"),
    [
        ([("tool.begin", None), ("tool.end", None)] * 3, 3),
        ([("tool.end", None)] * 3, 3),
        ([("tool.end", "a"), ("tool.failed", "b")], 2),
        # It began before the session did; a later one did not.
        ([("tool.end", "a"), ("tool.begin", "b"), ("tool.end", "b")], 0),
        ([("tool.begin", "b"), ("tool.end", "b"), ("tool.end", "c")], 1),
        ([("tool.begin", "b"), ("tool.denied", "b"), ("tool.denied", None)], 0),
    ],
)
def test_tool_calls_of_which_only_a_half_is_known_are_counted(
    lab: Lab, reports: list[tuple[str, str | None]], unpaired: int
) -> None:
    """Specification 19.6: without an id, or without a begin."""
    lab.client = HOST
    lab.start("S-1")
    for event, use in reports:
        report(lab, event, use, "run")
    for coverage in (lab.verify().coverage, lab.verify_session("S-1").coverage):
        assert coverage is not None and coverage.unpaired == unpaired


def test_edits_that_no_rule_could_judge_are_counted(lab: Lab) -> None:
    """Specification 19.6, 21.8."""
    lab.deed(event="tool.begin", class_="edit", use="u-1", unjudged="rules")
    lab.deed(event="tool.begin", class_="edit", use="u-2")
    coverage = lab.verify().coverage
    assert coverage is not None and coverage.unjudged == 1


def test_the_text_of_a_deed_is_erased_and_the_deed_stays(lab: Lab) -> None:
    """Specification 19.1, 9.10."""
    lab.deed(command="curl example.org", paths=["secret.txt"])
    with pytest.raises(Refused, match="holds neither command nor path"):
        lab.erase_everywhere(1)
    lab.erase_everywhere(2)
    report = lab.verify()
    assert (report.valid, report.erased) == (True, (2,))
    require_sqlite("the bytes of a file")
    assert b"curl" not in lab.db.serialize("main") and b"secret.txt" not in lab.db.serialize("main")
