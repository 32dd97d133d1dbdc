"""What hosts reported, on the page: edits, commands and failures between thoughts and moves, the
files with their hashes, and what is not known."""

from collections.abc import Callable
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.support.ledger_writer import Lab, in_memory
from tests.vectors.builder import edit_header, text_of
from tests.vectors.builder import session_bundle as vector_bundle
from tests.vectors.deeds import A, Watched
from tests.web.browser import LOOKS, Reader, faults, session_bundle, write_page
from tests.web.conftest import NewReader

HOST = "h-1"
FILES = [sha256(text).hexdigest() for text in (b"first", b"second")]

CHANGES = {
    "files": [{"path": "</script>{evidence}", "commit": "12" * 20}, {"path": "b", "commit": None}],
    "total": 3,
    "more": True,
    "problem": None,
}


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
    lab.think("S-1", "the sum is off by one", type="decision", task=task, agent="ada")
    seqs["second"] = edit(lab, "u-3", "src/sum.py", FILES[1])
    seqs["passed"] = act(lab, "u-4", command="pytest -q --last-failed", exit=0)
    seqs["secret"] = act(lab, "u-5", command="curl https://example.org/secret", exit=0)
    seqs["denied"] = act(lab, "u-6", event="tool.denied", command="rm -rf build")
    lab.deed(host_session=HOST, use="u-7", tool="Bash", event="tool.begin", command="sleep 1000")
    lab.deed(host_session=HOST, event="stop", class_=None, lost=2)
    lab.erase(seqs["secret"] + 1)
    lab.think("S-1", "a later decision", type="decision", task=task, agent="ada")
    page = tmp_path_factory.mktemp("deeds") / "report.html"
    return write_page(page, session_bundle(lab), CHANGES), seqs


@pytest.fixture
def page(told: tuple[Path, dict[str, int]], reader: NewReader) -> Reader:
    return reader(told[0])


def test_an_action_is_one_entry_from_its_begin_to_its_end(
    page: Reader, told: tuple[Path, dict[str, int]]
) -> None:
    assert page.verdict == "good"
    entry = page.page.locator(f"#entry-{told[1]['second']}")
    assert "Edited src/sum.py" in entry.inner_text()
    assert f"{FILES[1][:8]}…{FILES[1][-4:]} 12 bytes" in entry.inner_text()
    assert "seen by claude-code" in entry.inner_text()
    entry.locator("summary").click()
    entry.locator(".record").nth(2).wait_for()
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
    (file,) = page.page.locator("#files > li").all_inner_texts()
    assert file.startswith("src/sum.py 2 edits record ")
    assert FILES[1] in file
    assert FILES[0] not in file
    assert "3 commands ran." in page.page.inner_text("#deed-list")


def test_a_file_leads_to_its_edits_and_the_decisions_before_them(
    page: Reader, told: tuple[Path, dict[str, int]]
) -> None:
    """Specification 23.8: a decision after the last edit is not among its reasons."""
    page.page.click("#files .why summary")
    page.page.locator("#files .why .quote").wait_for()
    why = page.page.inner_text("#files .why")
    second, first = (told[1][name] for name in ("second", "first"))
    assert why.index(f"record {second} by ada for T-0001") < why.index(f"record {first} by ada for")
    assert "the sum is off by one" in why
    assert "a later decision" not in why
    page.page.click(f"#files .why li >> text=record {first}")
    assert page.page.locator(f"#entry-{first}").is_visible()


def test_changed_files_that_no_action_explains_are_named(
    page: Reader, reader: NewReader, told: tuple[Path, dict[str, int]], tmp_path: Path
) -> None:
    """Specification 23.9."""
    known = page.page.inner_text("#deed-list")
    assert "3 changed files have contents that no action explains" in known
    assert "Not all commits and files were looked at." in known
    page.page.click("#unexplained summary")
    assert page.page.locator("#unexplained li").all_inner_texts() == [
        "</script>{evidence} commit 121212121212",
        "b not committed",
        "And 1 more.",
    ]
    nothing: dict[str, Any] = {"files": [], "total": 0, "more": False, "problem": None}
    none = in_memory()
    none.start("S-1", intent="nothing")
    for changes, words in (
        (nothing, "No file changed in git that no action explains."),
        (nothing | {"problem": "no git"}, "no action explains is not known: no git."),
    ):
        other = reader(write_page(tmp_path / "report.html", session_bundle(none), changes))
        text = other.page.inner_text("#deed-list")
        assert words in text and "reported no edits" in text


def test_what_is_not_known_is_listed(page: Reader, told: tuple[Path, dict[str, int]]) -> None:
    known = page.page.inner_text("#deed-list")
    assert "1 action began and its end was not reported." in known
    assert "2 actions were lost before they could be recorded." in known
    assert "Reported by claude-code." in known
    secret = page.page.locator(f"#entry-{told[1]['secret']}").inner_text()
    assert "Erased, as record" in secret
    assert "curl" not in page.text("main")


# How hosts report calls: with ids in the calls, in the reports, and also when a call begins.
HOSTS: dict[str, Callable[[], Watched]] = {
    "claude-code codex": Watched,
    "qwen opencode": partial(Watched, in_calls=False),
    "gemini": partial(Watched, in_calls=False, in_deeds=False),
    "copilot": partial(Watched, in_calls=False, in_deeds=False, begins=False),
    "cline": partial(Watched, in_calls=False, begins=False),
}
PAIRS = "it is not known which begin and which end belong together"


@pytest.mark.parametrize("hosts", HOSTS)
@pytest.mark.parametrize("removed_before", ["", "look"])
def test_the_gaps_of_a_sealed_session_are_those_of_the_verdict(
    reader: NewReader, tmp_path: Path, hosts: str, removed_before: str
) -> None:
    """Specification 19.6, 23.10: an honest session shows none; without its hooks it does."""
    log = HOSTS[hosts]().play(removed_before=removed_before).log
    bundle = text_of(vector_bundle(log, A, []))
    ada = reader(write_page(tmp_path / "report.html", bundle))
    assert ada.verdict == "good"
    *gaps, rest = ada.page.locator("#coverage p").all_inner_texts()
    assert rest.startswith("What an agent does outside the tools of its host")
    has_pairs = hosts in ("claude-code codex", "qwen opencode")
    missing = [] if has_pairs else [PAIRS]
    missing += ["not reported, although the host had reported before"] if removed_before else []
    assert [part in gap for part, gap in zip(missing, gaps, strict=True)] == [True] * len(missing)
    shown = ada.text("#entries")
    assert "Its end was not reported." not in shown
    assert ("It has no id: which report" in shown) == (hosts == "gemini")


def test_where_the_records_are_not_sound_the_gaps_are_not_known(
    reader: NewReader, tmp_path: Path
) -> None:
    """Specification 23.10."""
    log = Watched().play().log
    bundle = edit_header(vector_bundle(log, A, []), 8, agent="eve")
    ada = reader(write_page(tmp_path / "report.html", text_of(bundle)))
    assert ada.verdict == "bad"
    assert "What is missing from the reports was not checked." in ada.text("#coverage")


def test_an_edit_that_no_rule_could_judge_is_shown(reader: NewReader, tmp_path: Path) -> None:
    """Specification 21.8."""
    bundle = (VECTORS / "deeds-unjudged.colibri.json").read_bytes()
    ada = reader(write_page(tmp_path / "report.html", bundle))
    words = "Not judged by the project’s rule for edits: its session was not known."
    assert words in ada.text("#entries")
    assert "1 edit was not judged by the project’s rule for edits." in ada.text("#coverage")


@pytest.mark.parametrize("look", LOOKS)
def test_axe_finds_nothing_to_complain_about(
    told: tuple[Path, dict[str, int]], reader: NewReader, look: str
) -> None:
    assert faults(reader(told[0], **LOOKS[look]).page, look) == []


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
    assert "Reported by claude-code." in ada.text("#deed-list")
