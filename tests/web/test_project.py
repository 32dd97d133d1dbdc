"""The report of a whole project: the board, the sessions, the agents and what nobody verified."""

import json
import sys
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]

from colibri.store import agents
from tests.support.client import execute_raw
from tests.support.ledger_writer import TO_VERIFY, in_memory
from tests.support.program import colibri
from tests.web import readers
from tests.web.browser import log_bundle, write_page
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
        (text,) = [line for line in shown if line.startswith(f"{one['name']} in ")]
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
        "Of 1 session no host reported edits or commands.",
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


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1100])
def test_axe_finds_nothing_and_all_of_it_fits_the_screen(
    project: Path, reader: NewReader, scheme: str, width: int
) -> None:
    size = {"width": width, "height": 800}
    ada = reader(color_scheme=scheme, viewport=size, bypass_csp=True)
    ada.open(project / "colibri-report.html")
    ada.page.add_style_tag(content=".entry { content-visibility: visible !important }")
    for summary in ada.page.locator("header summary, section > details > summary").all():
        summary.evaluate("(node) => (node.parentElement.open = true)")
    found = Axe().run(ada.page).response["violations"]
    assert [f"{one['id']}: {node['html']}" for one in found for node in one["nodes"]] == []
    assert ada.page.evaluate("document.documentElement.scrollWidth") <= width
