"""Whose work a report, a trail and a list of sessions count: what names the session, and no more.

Through the real server, the commands, and the page in a browser.
"""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.e2e.test_story import PLAN, live
from tests.support.client import COLIBRI, Server
from tests.support.program import colibri
from tests.web.browser import Reader
from tests.web.conftest import NewReader

JSON = dict[str, Any]
TO_APPLY = ["GATHER", "ANALYZE", "PLAN", "APPLY"]
MANY = 34


def start(server: Server, session: str, agent: str) -> None:
    server.data("audit_session_start", session_id=session, intent=f"{session} it", agent_id=agent)


def work(server: Server, task: str, why: str) -> None:
    """A task, claimed and done in three calls."""
    (taken,) = server.data("task_next_actions", claim=True)["tasks"]
    assert taken["task_id"] == task
    plan = {"type": "decision", "content": f"{why}: this way"}
    server.data("task_update", task_id=task, status=TO_APPLY, thought=plan)
    done = {"type": "reflection", "content": f"{why}: it holds"}
    server.data("task_update", task_id=task, status=["VERIFY", "DONE"], thought=done)


def page_of(project: Path, session: str, reader: NewReader) -> Reader:
    """Its report, by the command, in a browser."""
    file = project / f"{session}.html"
    assert colibri(project, "report", session, "-o", str(file))[0] == 0
    page = reader(file)
    assert page.verdict == "good"
    return page


def done_by(project: Path, session: str) -> JSON:
    """What the list of sessions counts of one, which is what its trail says at the top."""
    listed = json.loads(colibri(project, "sessions", "--json")[1])["sessions"]
    (found,) = [one for one in listed if one["session_id"] == session]
    (*_, state) = json.loads(colibri(project, "status", "--json")[1])["sessions"]["newest_open"]
    assert state["tasks"].keys() == found["tasks"].keys()
    title = colibri(project, "trail", session)[1].splitlines()[0]
    for what, number in found["tasks"].items():
        noun = "task" if number == 1 else "tasks"
        assert (f" {number} {noun} {what} " in title) == bool(number), title
    counted: JSON = found["tasks"]
    return counted


def calls_of(project: Path, session: str) -> list[JSON]:
    _, out, _ = colibri(project, "trail", session, "--json")
    return [json.loads(line) for line in out.splitlines()]


def boxes(page: Reader) -> dict[str, int]:
    """Of the timeline's filters: how many entries each has."""
    labels = page.page.locator("#filters fieldset label:not([hidden])").all_inner_texts()
    parted = (label.split() for label in labels)
    return {" ".join(name): int(number) for *name, number in parted}


def test_a_session_that_only_planned_is_credited_with_creating_its_tasks(
    tmp_path: Path, reader: NewReader
) -> None:
    """Nobody thought about them, and another session finished one before the page was made."""
    with Server(tmp_path, COLIBRI) as planner, Server(tmp_path, COLIBRI) as worker:
        start(planner, "plan", "ada")
        for number in range(MANY):
            planner.data("task_create", title=f"step {number}")
        start(worker, "work", "bea")
        work(worker, "T-0001", "first")
    assert done_by(tmp_path, "plan") == {"created": MANY, "done": 0, "cancelled": 0}
    assert len(calls_of(tmp_path, "plan")) == 1 + MANY
    page = page_of(tmp_path, "plan", reader)
    summary = page.text("#summary")
    assert page.text("#outcome").startswith(f"ada created {MANY} tasks; the session")
    assert "No call was refused." in summary
    assert "Only createdT-0001 step 0: DONE by bea in session work." in summary
    assert "T-0002 step 1: not begun." in summary
    assert f"{MANY} tasks created." in page.text("#agents")
    assert "1 task finished" not in page.text("#agents")
    assert "Meanwhile: bea, in session work, finished T-0001." in page.text("#other-work")
    assert "this way" not in summary
    assert boxes(page)["New and edited tasks"] == MANY
    assert "Thoughts" not in boxes(page)


def test_a_session_is_not_credited_with_what_its_task_depended_on(
    tmp_path: Path, reader: NewReader
) -> None:
    with Server(tmp_path, COLIBRI) as first:
        start(first, "dig", "ada")
        first.data("task_create", title="dig the hole")
        first.data("task_create", title="plant the tree", depends_on=["T-0001"])
        work(first, "T-0001", "dig")
    with Server(tmp_path, COLIBRI) as second:
        start(second, "plant", "bea")
        work(second, "T-0002", "plant")
    assert done_by(tmp_path, "dig") == {"created": 2, "done": 1, "cancelled": 0}
    assert done_by(tmp_path, "plant") == {"created": 0, "done": 1, "cancelled": 0}
    page = page_of(tmp_path, "plant", reader)
    summary = page.text("#summary")
    assert "T-0002 plant the tree: DONE by bea." in summary
    assert "dig: it holds" not in summary
    assert page.text("#outcome") == "bea finished T-0002; the session is still open."
    assert page.page.locator("#agents li").all_text_contents() == [
        "bea with the program test 12 thoughts and 1 task finished."
    ]
    did = "created T-0001 and T-0002, finished T-0001."
    assert f"Before it: ada, in session dig, {did}" in page.text("#other-work")
    (others,) = page.page.locator("#group-worked-on-by-others li").all()
    assert "T-0001" in others.inner_text()
    assert "its thoughts belong to another session and are not in this file" in others.inner_text()
    assert "0 thoughts" not in page.text("#task-groups")


def test_the_work_of_a_second_agent_is_not_in_the_report_of_the_first(
    tmp_path: Path, reader: NewReader
) -> None:
    """Specification 23.2: both at once, on one board, where each sees the task of the other."""
    with Server(tmp_path, COLIBRI) as first, Server(tmp_path, COLIBRI) as second:
        start(first, "left", "ada")
        start(second, "right", "bea")
        for title in ("one", "two"):
            first.data("task_create", title=title)
        (mine,) = first.data("task_next_actions", claim=True)["tasks"]
        work(second, "T-0002", "right")
        second.data("thought_record", type="decision", content="leave T-1 alone", task_id="T-0001")
        refused = second.call("task_update", task_id=mine["task_id"], status="GATHER")
        assert refused["structuredContent"]["data"]["error"]["code"] == "ERR_CLAIMED"
        work(first, "T-0001", "left")
        for server, session in ((first, "left"), (second, "right")):
            server.data("merkle_finalize", session_id=session)
        start(first, "later", "ada")
    assert done_by(tmp_path, "left") == {"created": 2, "done": 1, "cancelled": 0}
    assert done_by(tmp_path, "right") == {"created": 0, "done": 1, "cancelled": 0}
    assert {call["agent"] for call in calls_of(tmp_path, "left")} == {"ada"}
    page = page_of(tmp_path, "left", reader)
    summary = page.text("#summary")
    ended = "ada created 2 tasks, finished T-0001 and sealed the session."
    assert page.text("#outcome") == ended
    did = "2 thoughts, 2 tasks created and 1 task finished."
    assert page.text("#agents") == f"ada with the program test 1{did}"
    assert "No call was refused." in summary
    told = summary + page.text("#decisions")
    assert "left: this way" in told
    assert not [text for text in ("right:", "leave T-1 alone") if text in told]
    assert boxes(page)["Thoughts"] == 2
    page.page.click("#show-others")
    others = page.page.locator(".entry[data-others]").all_text_contents()
    assert len(others) == boxes(page)["Earlier, or by others"] > 0
    assert all("By session right" in text for text in others)


def test_each_agent_of_a_session_is_credited_with_what_it_did(
    tmp_path: Path, reader: NewReader
) -> None:
    with Server(tmp_path, COLIBRI) as server:
        start(server, "both", "ada")
        for title in ("one", "two", "three"):
            server.data("task_create", title=title)
        work(server, "T-0001", "first")
        careful = {"type": "analysis", "content": "careful", "agent_id": "carl"}
        server.data("thought_record", **careful, task_id="T-0003")
        server.data("task_update", task_id="T-0002", status="GATHER", agent_id="bea")
    page = page_of(tmp_path, "both", reader)
    assert page.text("#outcome") == (
        "ada created 3 tasks and finished T-0001; carl recorded 1 thought; bea left T-0002"
        " unfinished; T-0003 is unfinished; the session is still open."
    )


def test_the_report_of_a_resumed_session_tells_its_whole_story(
    tmp_path: Path, reader: NewReader
) -> None:
    """tests/e2e/test_story.py: five tasks, a crash, a resumed session, another agent at work."""
    with ThreadPoolExecutor() as beside_the_browser:  # which has this thread's event loop
        session = beside_the_browser.submit(live, tmp_path).result()
    done = {"created": len(PLAN), "done": len(PLAN), "cancelled": 0}
    assert done_by(tmp_path, session) == done
    calls = calls_of(tmp_path, session)
    assert {(call["session"], call["agent"]) for call in calls} == {(session, "ada")}
    assert len({call["server"] for call in calls}) == 2
    page = page_of(tmp_path, session, reader)
    summary = page.text("#summary")
    assert page.text("h1") == "make it faster"
    finished = "T-0001, T-0002, T-0003, T-0004 and T-0005"
    ended = f"ada created 5 tasks, finished {finished} and sealed the session."
    assert page.text("#outcome") == ended
    (client,) = {call["client"] for call in calls}
    did = "6 thoughts, 5 tasks created and 5 tasks finished."
    assert page.text("#agents") == f"ada with the program {client}{did}"
    assert "No call was refused." in summary
    assert not [text for text in ("thistles", "weed", "bea", "eve") if text in summary]
    resumed = page.page.locator(".entry:has-text('resumed in another process')")
    assert resumed.count() == 1
    steps = "T-0001 INIT → GATHER → ANALYZE → PLAN → APPLY"
    assert steps in page.text("#entries")
