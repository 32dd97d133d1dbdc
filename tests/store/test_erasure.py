"""src/colibri/store/erasure.py: what goes with a record, what stays, what is left of the bytes."""

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from colibri.core.errors import Refused
from colibri.store import erasure, repeats, sessions, tasks
from colibri.store.sqlite import task_search as search
from colibri.store.sqlite.checkpoint import rewrite
from colibri.store.sqlite.opening import open_reader
from tests.support import engines
from tests.support.ledger_writer import Lab, opened, story

ERASED = "[erased]"


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    monkeypatch.setattr(search, "BATCH", 1)  # so that the index has every text at once
    with opened(tmp_path) as db:
        yield Lab(db)
    engines.release(tmp_path)


def erase(lab: Lab, *seqs: int) -> list[int]:
    """Plan, delete and record, as the command does."""
    with lab.db.engine.transaction(lab.db, durable=True):
        (payload,) = erasure.erase(lab.db, erasure.plan(lab.db, seqs), reason="asked for")
        lab._outside().append("erasure", payload)
    gone = payload["seqs"]
    assert isinstance(gone, list)
    return gone


def kept(lab: Lab) -> bytes:
    """All that the database holds: of a file its pages, of a schema its rows."""
    if engines.chosen() == "sqlite":
        pages: bytes = lab.db.serialize("main")
        return pages
    known = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
    tables = lab.db.execute(known).fetchall()
    rows = [row for (table,) in tables for row in lab.db.execute(f"SELECT * FROM {table}")]
    values = [value for row in rows for value in row]
    return b"\n".join(one if isinstance(one, bytes) else str(one).encode() for one in values)


def refusal(lab: Lab, *seqs: int) -> tuple[str, str]:
    with pytest.raises(Refused) as caught:
        erasure.plan(lab.db, seqs)
    return caught.value.code, caught.value.message


@pytest.mark.parametrize("kind", ["thought", "session.open", "task.text"])
def test_a_record_goes_with_the_arguments_of_its_call(lab: Lab, kind: str) -> None:
    """Specification 9.10: payload and nonce of a record and of its call.enter; the headers stay."""
    story(lab)
    seq = lab.seqs(kind)[0]
    before = lab.head()
    enter = max(at for at in lab.seqs("call.enter") if at < seq)
    assert erase(lab, seq) == [enter, seq]
    report = lab.verify(head=before)
    assert (report.valid, report.erased) == (True, (enter, seq))
    assert (
        lab.db.execute("SELECT count(body) FROM ledger WHERE seq IN (?, ?)", (enter, seq)).get == 0
    )
    assert "erased" in [note.code for note in report.not_checked]


def test_the_plan_says_why_and_changes_nothing(lab: Lab) -> None:
    story(lab)
    first, second = lab.seqs("thought")[:2]
    plan = erasure.plan(lab.db, [second, first, first])
    assert plan == [
        (first - 1, "call.enter", f"the call that wrote {first}"),
        (first, "thought", "named"),
        (second - 1, "call.enter", f"the call that wrote {second}"),
        (second, "thought", "named"),
    ]
    assert lab.verify().erased == ()


def test_the_arguments_of_a_call_can_go_alone(lab: Lab) -> None:
    """What somebody searched for is kept in a call.enter and nowhere else."""
    story(lab)
    enter = lab.seqs("call.enter")[-1]
    assert erase(lab, enter) == [enter]
    assert lab.verify().valid


SECRET = "curl -u me:hunter2 example.org"
CALL: dict[str, Any] = {"host_session": "h-1", "use": "u-1"}


@pytest.mark.parametrize("which", [0, 1])
def test_all_reports_of_one_tool_call_go_together(lab: Lab, which: int) -> None:
    """Specification 9.10, 19.1: begin and end have the same command, and only one is named."""
    for event in ("tool.begin", "tool.end"):
        lab.deed(**CALL, event=event, command=SECRET)
    for other in ({"use": "u-2"}, {"host_session": "h-2"}, {"use": None}):
        lab.deed(**{**CALL, **other}, command="another")
    assert b"hunter2" in kept(lab)
    texts = lab.seqs("deed.text")
    plan = erasure.plan(lab.db, [texts[which]])
    assert [(one.seq, one.kind) for one in plan] == [(seq, "deed.text") for seq in texts[:2]]
    assert plan[1 - which].why == f"reported of the same call as {texts[which]}"
    assert erase(lab, texts[which]) == texts[:2]
    assert b"hunter2" not in kept(lab)
    assert lab.verify().valid


@pytest.mark.parametrize("named", ["thought", "call.enter"])
def test_what_a_hook_captured_of_a_call_goes_with_its_text(lab: Lab, named: str) -> None:
    """Specification 9.10, 20.5: with COLIBRI_CAPTURE=text the input of thought_record is kept."""
    lab.start("S-1")
    lab.client, lab.use = "h-1", "u-1"
    lab.deed(**CALL, event="tool.begin", class_="mcp", text='{"content":"hunter2 is mine"}')
    lab.think("S-1", "hunter2 is mine")
    lab.deed(**CALL, class_="mcp", text="recorded")
    thought, texts = lab.seqs("thought")[0], lab.seqs("deed.text")
    assert erase(lab, lab.seqs(named)[-1]) == sorted([thought - 1, thought, *texts])
    assert b"hunter2" not in kept(lab)
    assert lab.verify().valid


def found_elsewhere(lab: Lab, seq: int) -> list[int]:
    plan = [one.seq for one in erasure.plan(lab.db, [seq])]
    texts = repeats.texts(erasure.payloads(lab.db, [seq]))
    return [one.seq for one in repeats.elsewhere(lab.db, texts, plan)]


def test_records_that_repeat_a_text_are_found(lab: Lab) -> None:
    """Specification 9.10: an erasure is not called complete while another record has the text."""
    lab.start("S-1", intent=f"find out why {SECRET} fails")
    lab.deed(host_session="h-1", event="tool.begin", command=SECRET)  # without an id
    lab.deed(host_session="h-1", command=SECRET)
    lab.deed(host_session="h-1", command=f"{SECRET} | head")
    lab.deed(host_session="h-1", command="ls", paths=["a.py"])
    lab.deed(host_session="h-1", command="ls -l", paths=["src/a.py"])
    lab.deed(host_session="h-1", command="ls")
    thought = lab.think("S-1", 'it said "no route"\nto host').seq
    lab.deed(host_session="h-1", text='{"content": "it said \\"no route\\"\\nto host"}')
    begin, end, piped, short, _, again, captured = lab.seqs("deed.text")
    assert found_elsewhere(lab, end) == [lab.seqs("session.open")[0], begin, piped]
    assert found_elsewhere(lab, piped) == []
    assert found_elsewhere(lab, short) == [again]
    assert found_elsewhere(lab, thought) == [captured]
    assert found_elsewhere(lab, captured) == [thought]
    assert found_elsewhere(lab, lab.seqs("call.enter")[-1]) == [captured]
    assert found_elsewhere(lab, lab.seqs("session.open")[0]) == []


TEXTS: dict[str, Callable[[Lab], object]] = {
    "thought": lambda lab: lab.think(content="a secret"),
    "session.open": lambda lab: lab.start("S-9", intent="a secret"),
    "task.text": lambda lab: lab.create("a secret"),
}


@pytest.mark.parametrize("kind", TEXTS)
def test_naming_a_call_means_the_text_that_it_sent(lab: Lab, kind: str) -> None:
    """Else the text would stay readable one record further on, and nobody would say so."""
    lab.start("S-1", intent="work")
    TEXTS[kind](lab)
    text = lab.seqs(kind)[-1]
    enter = max(at for at in lab.seqs("call.enter") if at < text)
    assert erasure.plan(lab.db, [enter]) == [
        (enter, "call.enter", "named"),
        (text, kind, f"written by the call {enter}"),
    ]
    assert erasure.plan(lab.db, [enter, text]) == [
        (enter, "call.enter", "named"),
        (text, kind, "named"),
    ]
    erase(lab, enter)
    assert not lab.db.execute(
        "SELECT 1 FROM ledger WHERE seq = ? AND body IS NOT NULL", (text,)
    ).get
    assert lab.verify().valid


def test_what_is_shown_of_it_is_erased(lab: Lab) -> None:
    """Specification 9.10: replaces the text in the projections by [erased]."""
    story(lab)
    erase(lab, lab.seqs("session.open")[0], lab.seqs("task.text")[0])
    assert sessions.get(lab.db, "S-1").intent == ERASED
    assert sessions.get(lab.db, "S-2").intent == "look around"
    assert tasks.get(lab.db, "T-0001").title == ERASED
    assert tasks.get(lab.db, "T-0001").description is None
    assert lab.verify().valid
    assert lab.verify_session("S-1").valid
    assert lab.verify_task("T-0001").valid


UNERASABLE = {
    "call.exit": "how a call ended",
    "session.seal": "the proof of its session",
    "task": "how the task moved",
    "erasure": "what was erased",
}


@pytest.mark.parametrize(("kind", "why"), UNERASABLE.items())
def test_what_a_check_needs_stays(lab: Lab, kind: str, why: str) -> None:
    """docs/formats.md §7: only call.enter, session.open, thought and task.text."""
    story(lab)
    erase(lab, lab.seqs("thought")[0])
    seq = lab.seqs(kind)[0]
    code, message = refusal(lab, lab.seqs("thought")[1], seq)
    assert code == "ERR_NOT_ERASABLE"
    assert message.startswith(f"record {seq} is a {kind}, which stays: ")
    assert why in message


def test_a_missing_or_erased_text_is_refused(lab: Lab) -> None:
    story(lab)
    thought = lab.seqs("thought")[0]
    erase(lab, thought)
    assert refusal(lab, 999) == ("ERR_NOT_FOUND", "there is no record 999")
    code, message = refusal(lab, thought)
    assert (code, message) == ("ERR_ALREADY_ERASED", f"record {thought} is already erased")


DAMAGE = {
    "altered-payload": "UPDATE ledger SET body = payload WHERE seq = ?",
    "missing-payload": "UPDATE ledger SET nonce = NULL, body = NULL WHERE seq = ?",
    "altered-header": "UPDATE ledger SET agent = 'eve' WHERE seq = ?",
}


@pytest.mark.parametrize(("what", "sql"), DAMAGE.items())
def test_a_record_that_was_tampered_with_is_not_erased(lab: Lab, what: str, sql: str) -> None:
    """Erased it would be as good as sound: the erasure would hide what was done to it."""
    story(lab)
    seq = lab.seqs("thought")[0]
    engines.tamper(lab.db, sql, (seq,))
    code, message = refusal(lab, seq)
    assert code == "ERR_DAMAGED"
    assert message.startswith(f"record {seq} was tampered with ({what})")


def test_a_tampered_call_of_a_thought_keeps_it_from_being_erased(lab: Lab) -> None:
    story(lab)
    seq = lab.seqs("thought")[0]
    engines.tamper(lab.db, DAMAGE["altered-header"], (seq - 1,))
    assert refusal(lab, seq)[1].startswith(f"record {seq - 1} was tampered with")


# Texts of tasks: a change repeats what it replaces.


def test_a_text_goes_from_each_record_of_its_task_that_holds_it(lab: Lab) -> None:
    """docs/formats.md §7: the record that set it and the one that replaced it."""
    lab.create("alpha", description="one")
    lab.create("alpha")
    lab.update("T-0001", title="beta")
    lab.update("T-0001", title="gamma", description="two")
    lab.update("T-0001", title="alpha")
    first, other, second, third, fourth = lab.seqs("task.text")
    why = {target.seq: target.why for target in erasure.plan(lab.db, [first])}
    repeats = f"repeats the text of {first}"
    assert {seq: why[seq] for seq in (first, second, third, fourth)} == {
        first: "named",
        second: repeats,  # alpha was its title
        third: repeats,  # one was its description
        fourth: repeats,  # and here alpha is its title again
    }
    assert other not in why
    erase(lab, first)
    bodies = b"".join(
        body
        for (body,) in lab.db.execute("SELECT body FROM ledger WHERE seq > 4 AND body IS NOT NULL")
    )
    assert b'"one"' not in bodies
    assert bodies.count(b'"alpha"') == 1  # of the other task
    assert lab.verify().valid


def test_a_text_that_nobody_asked_to_erase_stays_where_another_record_has_it(lab: Lab) -> None:
    lab.create("alpha")
    lab.update("T-0001", title="beta")
    lab.update("T-0001", title="gamma")
    first, second, third = lab.seqs("task.text")
    assert erase(lab, first)[1::2] == [first, second]
    assert tasks.get(lab.db, "T-0001").title == "gamma"
    assert lab.db.execute("SELECT body FROM ledger WHERE seq = ?", (third,)).get is not None
    assert lab.verify().valid


def test_records_that_repeat_each_other_can_be_named_together(lab: Lab) -> None:
    lab.create("alpha")
    lab.update("T-0001", title="beta")
    first, second = lab.seqs("task.text")
    plan = erasure.plan(lab.db, [first, second])
    assert [target.why for target in plan if target.kind == "task.text"] == ["named", "named"]


def test_a_title_that_was_set_later_stays(lab: Lab) -> None:
    lab.create("alpha", description="one")
    lab.update("T-0001", description="two")
    lab.update("T-0001", title="beta")
    _, second, _ = lab.seqs("task.text")
    erase(lab, second)
    task = tasks.get(lab.db, "T-0001")
    assert (task.title, task.description) == ("beta", ERASED)
    assert lab.verify().valid
    lab.update("T-0001", description="three")
    task = tasks.get(lab.db, "T-0001")
    assert (task.title, task.description) == ("beta", "three")
    assert lab.verify().valid


def found(lab: Lab, words: str) -> int:
    _, total = tasks.find(lab.db, tasks.Filter(), search=words, limit=9, offset=0)
    return total


def test_search_no_longer_finds_it(lab: Lab) -> None:
    lab.create("alpha beta", description="gamma delta")
    lab.create("alpha too")
    erase(lab, lab.seqs("task.text")[0])
    assert (found(lab, "gamma"), found(lab, "alpha"), found(lab, ERASED)) == (0, 1, 1)


# Bytes.


def raw(lab: Lab) -> bytes:
    return Path(lab.db.filename).read_bytes() + Path(f"{lab.db.filename}-wal").read_bytes()


def test_nothing_is_left_of_the_bytes(lab: Lab) -> None:
    """Of short texts, of long ones on pages of their own, of old ones, and of the search index.

    The letters are those of scripts that nothing else here is written in: the index keeps every
    three of them in a row, and where they stood.
    """
    texts = {"title": "ሀለሐ" * 9, "description": "ᚠᚢᚦ" * 900, "intent": "ⰀⰁⰂ" * 9, "content": "𐌰𐌱𐌲"}
    lab.create(texts["title"], description=texts["description"])
    lab.start(intent=texts["intent"])
    lab.think(content=texts["content"] * 20_000)
    lab.update("T-0001", title="new", description="new too")
    lab.create("another one")
    letters = {letter: letter.encode() for text in texts.values() for letter in set(text)}
    assert all(data in raw(lab) for data in letters.values())
    erase(lab, *(lab.seqs(kind)[0] for kind in ("task.text", "session.open", "thought")))
    assert any(data in raw(lab) for data in letters.values())  # the log has the pages of before
    assert rewrite(lab.db, 0) is True
    assert [letter for letter, data in letters.items() if data in raw(lab)] == []
    assert Path(f"{lab.db.filename}-wal").stat().st_size == 0
    assert lab.verify().valid


def test_copies_in_unused_parts_of_pages_go_too(lab: Lab) -> None:
    """SQLite leaves some when it moves rows about: overwriting what is deleted is not enough."""
    chance, marks, made = random.Random(12), list[str](), dict[int, list[str]]()

    def text(size: int) -> str:
        marks.append(f"<{len(marks):05}>")
        return (marks[-1] * size)[:size]

    for number in range(80):
        size, before = chance.choice([7, 42, 210, 1400, 2800]), len(marks)
        if number % 4 == 0:
            lab.create(text(min(size, 252)), description=text(size))
        else:
            id = f"T-{chance.randrange(number // 4 + 1) + 1:04}"
            lab.update(id, title=text(min(size, 252)), description=text(size))
        made[lab.seqs("task.text")[-1]] = marks[before:]
    gone = set[str]()
    for seq in chance.sample(sorted(made), 40):
        if lab.db.execute("SELECT 1 FROM ledger WHERE seq = ? AND body IS NOT NULL", (seq,)).get:
            erase(lab, seq)
            gone.update(made[seq])
    lab.db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    assert [mark for mark in gone if mark.encode() in raw(lab)] != []  # else this proves nothing
    assert rewrite(lab.db, 0) is True
    assert [mark for mark in gone if mark.encode() in raw(lab)] == []
    assert lab.verify().valid


def test_a_reader_that_keeps_old_pages_alive_is_reported(lab: Lab) -> None:
    story(lab)
    with open_reader(lab.db.filename) as reader:
        reader.execute("SELECT count(*) FROM ledger").fetchall()
        erase(lab, lab.seqs("thought")[0])
        assert rewrite(lab.db, 0) is False
    reader.close()
    assert rewrite(lab.db, 0) is True
