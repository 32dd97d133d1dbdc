"""What hosts reported, on the page: edits, commands and failures between thoughts and moves, the
files with their hashes, and what is not known."""

from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]

from tests.support.ledger_writer import Lab, in_memory
from tests.web.browser import Reader, session_bundle, write_page
from tests.web.conftest import NewReader

HOST = "h-1"
FILES = [sha256(text).hexdigest() for text in (b"first", b"second")]


def act(lab: Lab, use: str, **said: Any) -> int:
    """A use of a tool: its begin and its end; the seq of the end."""
    tool = {"host_session": HOST, "use": use, "tool": said.pop("tool", "Bash")}
    last = said | {"event": said.get("event", "tool.end")}
    lab.deed(**tool, event="tool.begin", class_=said.get("class_", "run"))
    entry = lab.deed(**tool, **last)
    assert entry is not None
    return entry.seq - 1  # its text follows it


def edit(lab: Lab, use: str, path: str, hash: str) -> int:
    files = ({"n": 0, "sha256": hash, "size": 12},)
    return act(lab, use, class_="edit", tool="Edit", paths=(path,), tree=".", files=files)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, int]]:
    lab = in_memory()
    lab.client = HOST
    task = lab.create("make the tests pass").task_id
    lab.start("S-1", intent="make the tests pass", task=task, agent="ada")
    lab.move(task, "GATHER", session="S-1")
    seqs = {"first": edit(lab, "u-1", "src/sum.py", FILES[0])}
    seqs["failed"] = act(lab, "u-2", command="pytest -q", exit=1, duration_ms=1_200)
    lab.think("S-1", "the sum is off by one", task=task, agent="ada")
    seqs["second"] = edit(lab, "u-3", "src/sum.py", FILES[1])
    seqs["passed"] = act(lab, "u-4", command="pytest -q --last-failed", exit=0)
    seqs["secret"] = act(lab, "u-5", command="curl https://example.org/secret", exit=0)
    seqs["denied"] = act(lab, "u-6", event="tool.denied", command="rm -rf build")
    lab.deed(host_session=HOST, use="u-7", tool="Bash", event="tool.begin", command="sleep 1000")
    lab.deed(host_session=HOST, event="stop", class_=None, lost=2)
    lab.erase(seqs["secret"] + 1)
    page = tmp_path_factory.mktemp("deeds") / "report.html"
    return write_page(page, session_bundle(lab)), seqs


@pytest.fixture
def page(told: tuple[Path, dict[str, int]], reader: NewReader) -> Reader:
    opened = reader(told[0], bypass_csp=True)
    # Entries outside the window are not drawn, and so have no text yet.
    opened.page.add_style_tag(content=".entry { content-visibility: visible !important }")
    return opened


def test_an_action_is_one_entry_from_its_begin_to_its_end(
    page: Reader, told: tuple[Path, dict[str, int]]
) -> None:
    assert page.verdict == "good"
    entry = page.page.locator(f"#entry-{told[1]['second']}")
    assert "Edited src/sum.py" in entry.inner_text()
    assert f"{FILES[1][:8]}…{FILES[1][-4:]} 12 bytes" in entry.inner_text()
    assert "seen by claude-code" in entry.inner_text()
    entry.locator("summary").click()
    assert entry.locator(".record").count() == 3  # the begin, the end, its paths
    ran = page.page.locator(f"#entry-{told[1]['passed']}").inner_text()
    assert "Ran a command" in ran
    assert "pytest -q --last-failed" in ran
    assert page.page.locator(".entry[data-type=deed]").count() == 8


def test_what_failed_is_seen_at_a_glance(page: Reader, told: tuple[Path, dict[str, int]]) -> None:
    failed = page.page.locator(".entry[data-failed]")
    assert [int((one.get_attribute("id") or "")[6:]) for one in failed.all()] == [
        told[1]["failed"],
        told[1]["denied"],
    ]
    assert "Failed with exit code 1." in failed.first.inner_text()
    assert "Tried to run a command" in failed.nth(1).inner_text()
    assert "Denied: it did not run." in failed.nth(1).inner_text()
    marks = "(node) => getComputedStyle(node.querySelector('.what'), '::before').content"
    assert failed.first.evaluate(marks) == '"×"'
    summary = page.page.inner_text("#deed-list")
    assert "exit code 1 pytest -q" in summary
    assert "denied rm -rf build" in summary
    for kind in ("thought", "move", "edit", "run", "deed", "other"):
        page.page.uncheck(f"#filters input[value={kind}]")
    assert page.page.locator(".entry").count() == 2


def test_the_files_are_listed_with_what_was_last_on_the_disk(page: Reader) -> None:
    (file,) = page.page.locator("#files li").all_inner_texts()
    assert file.startswith("src/sum.py 2 edits record ")
    assert FILES[1] in file
    assert FILES[0] not in file
    assert "3 commands ran." in page.page.inner_text("#deed-list")


def test_what_is_not_known_is_said(page: Reader, told: tuple[Path, dict[str, int]]) -> None:
    known = page.page.inner_text("#deed-list")
    assert "1 action began and its end was not reported." in known
    assert "2 actions were lost before they could be recorded." in known
    assert "Reported by claude-code." in known
    secret = page.page.locator(f"#entry-{told[1]['secret']}").inner_text()
    assert "Erased, as record" in secret
    assert "curl" not in page.text("main")


def test_axe_finds_nothing_to_complain_about(page: Reader) -> None:
    assert Axe().run(page.page).response["violations"] == []
    page.page.emulate_media(color_scheme="dark")
    assert Axe().run(page.page).response["violations"] == []


VECTORS = Path(__file__).resolve().parents[1] / "vectors" / "good"


def test_the_rule_that_a_task_was_done_under_is_shown(reader: NewReader, tmp_path: Path) -> None:
    """Specification 21.4, 21.5: it was met by a command, or a person set it aside."""
    ada = reader()
    for name, words in (
        ("gate", "The project’s rule was met: "),
        ("gate-waived", "A person set aside the rule that asks for "),
    ):
        bundle = (VECTORS / f"{name}.colibri.json").read_bytes()
        ada.open(write_page(tmp_path / f"{name}.html", bundle))
        assert ada.verdict == "good"
        assert words in ada.text("#entries")
    assert "with exit code 0, record" not in ada.text("#entries")


@pytest.mark.parametrize("name", sorted(path.stem for path in VECTORS.glob("deeds*.json")))
def test_every_log_with_deeds_can_be_shown(reader: NewReader, tmp_path: Path, name: str) -> None:
    bundle = (VECTORS / f"{name}.json").read_bytes()
    ada = reader(write_page(tmp_path / "report.html", bundle))
    assert ada.verdict == "good"
    assert ada.page.is_visible("#timeline")
    assert ada.page.locator(".entry[data-type=deed]").count() > 0
