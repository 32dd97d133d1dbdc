"""The report of a whole project: the board, the sessions, the agents and what nobody verified."""

import json
import sys
from pathlib import Path

import pytest

from colibri.store import agents
from tests.support.client import execute_raw
from tests.support.ledger_writer import TO_VERIFY, in_memory
from tests.support.program import colibri
from tests.web import readers
from tests.web.browser import LOOKS, faults, log_bundle, write_page
from tests.web.conftest import NewReader


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The readers' session and those next to it, and the report that the command writes of all."""
    path = tmp_path_factory.mktemp("project")
    readers.play(path)
    execute_raw([sys.executable, "-m", "colibri", "report"], cwd=path, check=True)
    return path


def test_it_tells_where_the_project_stands(project: Path, reader: NewReader) -> None:
    """Specification 23.3."""
    ada = reader(project / "colibri-report.html")
    assert ada.verdict == "good"
    assert ada.text("h1") == "Project shop"
    assert ada.text("#outcome") == (
        "Of 4 tasks 3 are done and 1 is in progress; 1 of 3 sessions is still open."
    )
    assert ada.page.locator(".group h3").all_inner_texts() == ["In progress 1", "Done 3"]
    order = ada.page.locator("main > section:visible").evaluate_all("(all) => all.map((s) => s.id)")
    assert order[:3] == ["story", "tasks", "unverified"]
    sessions = ada.page.locator("#session-list li").all_inner_texts()
    assert [text.split("\n")[0] for text in sessions] == [
        "support-notes by bea open",
        "fix-receipt-tax by ada sealed",
        "collect-rates by bea sealed",
    ]
    decided = ada.page.locator(".decision .quote").all_inner_texts()
    assert decided[0] == "One page in the handbook is enough."  # the newest first
    assert len(decided) == 4


def test_its_agents_are_those_that_the_command_counts(project: Path, reader: NewReader) -> None:
    """Agents are counted twice, by store/agents.py and by the page, from the same records."""
    counted = json.loads(colibri(project, "agents", "--json")[1])
    ada = reader(project / "colibri-report.html")
    shown = ada.page.locator("#agents li").all_text_contents()
    assert len(shown) == len(counted) == 3
    for one in counted:
        (text,) = [line for line in shown if line.startswith(f"{one['name']} with the program ")]
        for what, number in {
            "thought": one["thoughts"],
            "task finished": one["finished"],
            "task tried again": one["retried"],
            "refused call": one["refused"],
        }.items():
            first, _, rest = what.partition(" ")
            many = f"{number} {what}" if number == 1 else f"{number} {first}s {rest}".strip()
            assert (what in text or f"{first}s {rest}".strip() in text) == bool(number), text
            assert not number or many in text or f"{number} {what}s" in text


def test_what_nobody_verified_or_sealed_is_listed(reader: NewReader, tmp_path: Path) -> None:
    lab = in_memory()
    ready = lab.create("can be started").task_id
    lab.create("has to wait", ready)
    taken = lab.create("taken").task_id
    lab.start("S-1", intent="work", agent="ada")
    lab.read("audit_verify_chain", session="S-1")
    checked = lab.head().seq
    lab.think("S-1", task=taken)
    lab.move(taken, *TO_VERIFY, "DONE", session="S-1")
    held = lab.create("held").task_id
    lab.move(held, "GATHER", session="S-1")
    with lab.calling("task_list", session="S-1", ends=False):
        pass
    ada = reader(write_page(tmp_path / "report.html", log_bundle(lab)))
    lines = ada.page.locator("#unverified-list li").all_inner_texts()
    assert lines[0].startswith(f"{lab.head().seq - checked} records since the last check by an")
    assert lines[1:] == [
        "1 session is open (S-1), with 1 thought that no seal covers.",
        f"1 task was finished in work that is not sealed: {taken}.",
        "No host reported edits or commands for 1 session.",
        "1 call has not ended.",
    ]
    groups = {name: ada.page.inner_text(f"#group-{name}") for name in ("in-progress", "blocked")}
    assert "held by ada in S-1" in groups["in-progress"]
    assert f"waits for {ready}" in groups["blocked"]
    assert ada.page.is_visible("#group-can-be-started")
    every = agents.every(lab.db, now="2026-01-01T00:00:01Z", minutes=60)
    holds = {agent.name: agent.holds for agent in every}
    assert holds["ada"] == 1
    assert "1 task in hand" in ada.text("#agents")


def test_a_log_that_was_checked_to_its_end_is_not_among_what_is_unverified(
    reader: NewReader, tmp_path: Path
) -> None:
    lab = in_memory()
    lab.start("S-1", intent="work", agent="ada")
    lab.think("S-1")
    lab.seal("S-1")
    lab.read("audit_verify_chain")
    ada = reader(write_page(tmp_path / "report.html", log_bundle(lab)))
    assert "An agent had the whole log checked in the last call." in ada.text("#summary")
    lines = ada.page.locator("#unverified-list li").all_inner_texts()
    assert lines == ["No host reported edits or commands for 1 session."]


def test_paper_has_no_words_about_scrolling(reader: NewReader, tmp_path: Path) -> None:
    lab = in_memory()
    chain = [lab.create("the first").task_id]
    for number in range(9):
        chain.append(lab.create(f"step {number}", chain[-1]).task_id)
    ada = reader(write_page(tmp_path / "report.html", log_bundle(lab)))
    sideways = ada.page.get_by_text("Scroll sideways")
    assert sideways.is_visible()
    ada.page.emulate_media(media="print")
    assert not sideways.is_visible()
    assert ada.page.is_visible("#task-drawn")


@pytest.mark.parametrize("look", LOOKS)
def test_axe_finds_nothing_and_all_of_it_fits_the_screen(
    project: Path, reader: NewReader, look: str
) -> None:
    ada = reader(project / "colibri-report.html", **LOOKS[look])
    for summary in ada.page.locator("header summary, section > details > summary").all():
        summary.evaluate("(node) => (node.parentElement.open = true)")
    assert faults(ada.page, look) == []
