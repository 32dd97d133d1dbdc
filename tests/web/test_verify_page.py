"""verify.html in a browser: a file is chosen, judged and compared, for everybody to see."""

from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.web.browser import LOOKS, Reader, faults, write_page
from tests.web.conftest import NewReader

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "src" / "colibri" / "web" / "verify.html"
VECTORS = ROOT / "tests" / "vectors"
GOOD = VECTORS / "good" / "session-with-tasks.colibri.json"
BAD = VECTORS / "bad" / "session-thought-removed.colibri.json"


def choose(page: Reader, file: Path, words: str) -> None:
    page.page.set_input_files("#file", file)
    expect(page.page.locator("#verdict")).to_contain_text(words)


def test_a_file_is_judged_and_compared(reader: NewReader) -> None:
    ada = reader()
    ada.open(PAGE, checked=False)
    choose(ada, GOOD, "✓ Intact. All")
    assert GOOD.name in ada.text("#verdict")
    root = ada.page.inner_text("#report tr:has(th:text-is('Sealed')) li code")
    ada.page.fill("#root", root)
    ada.page.press("#root", "Tab")
    expect(ada.page.locator("#verdict")).to_contain_text("it matches the root you received")
    expect(ada.page.locator("#verdict")).to_have_class("good")
    ada.page.fill("#root", f"{root[:-1]}{'1' if root[-1] == '0' else '0'}")
    ada.page.press("#root", "Tab")
    other = "✗ This is another session than the one you were told about."
    expect(ada.page.locator("#verdict")).to_contain_text(other)
    assert "root-differs" in ada.text("#report li small")
    ada.page.fill("#root", "not a root")
    ada.page.press("#root", "Tab")
    expect(ada.page.locator("#verdict")).to_contain_text("This is no root, head or checkpoint.")


def test_a_checkpoint_is_compared(reader: NewReader) -> None:
    ada = reader()
    ada.open(PAGE, checked=False)
    file = VECTORS / "good" / "checkpoint-session.colibri.json"
    choose(ada, file, "✓ Intact.")
    published = ada.page.inner_text("#report tr:has(th:text-is('Checkpoint')) td")
    for value, words in (
        (published, "✓ Intact."),
        (published[:-64] + "0" * 64, "✗ This is another"),
    ):
        ada.page.fill("#checkpoint", value)
        ada.page.press("#checkpoint", "Tab")
        expect(ada.page.locator("#verdict")).to_contain_text(words)
    assert "Record 15 belongs to a log that does not have the checkpoint" in ada.text("#report")


@pytest.mark.parametrize("file", [GOOD, BAD], ids=["good", "bad"])
def test_it_says_what_a_report_says(reader: NewReader, tmp_path: Path, file: Path) -> None:
    """The same sentences for the same checks; the codes of the format are in small print."""
    report, page = reader(), reader()
    report.open(write_page(tmp_path / "report.html", file.read_bytes()))
    page.open(PAGE, checked=False)
    page.page.set_input_files("#file", file)
    page.page.wait_for_selector("#report tr")
    told = page.page.inner_text("#report")
    lines = report.page.locator("#lines .line").all()
    assert len(lines) >= 6
    for line in lines:
        name, state = (line.locator(part).first.text_content() for part in ("dt", ".state"))
        means = line.locator("dd p").first.text_content() or ""
        cell = page.page.inner_text(f"#report tr:has(th:text-is('{name}')) td")
        assert cell.startswith(f"{state} "), (name, cell)
        assert means.split(" record ")[0].strip() in cell
    for found in report.page.locator("#findings strong").all_text_contents():
        assert found in told
    codes = page.page.locator("#report small").all_text_contents()
    rest = page.page.evaluate(
        "[...document.querySelectorAll('#report small')].map((node) => node.remove())"
        " && document.querySelector('#report').innerText"
    )
    assert codes
    assert not [
        code for code in codes if code.partition(":")[0] in rest and "-" in code.partition(":")[0]
    ]


@pytest.mark.parametrize("look", LOOKS)
def test_axe_finds_nothing_and_all_of_it_fits_the_screen(
    reader: NewReader, look: str, tmp_path: Path
) -> None:
    ada = reader(PAGE, checked=False, **LOOKS[look])
    assert faults(ada.page, look) == []
    unreadable = tmp_path / "unreadable.colibri.json"
    unreadable.write_text("This is not a bundle.\n")
    for file, words in ((GOOD, "Intact"), (BAD, "Do not trust"), (unreadable, "Could not be")):
        choose(ada, file, words)
        assert faults(ada.page, look) == []


def test_it_has_the_colours_of_a_report(reader: NewReader) -> None:
    """Both are made with look.css."""
    look = (PAGE.parent / "look.css").read_text("utf-8")
    assert look in PAGE.read_text("utf-8")
    ada = reader()
    ada.open(PAGE, checked=False)
    font = "getComputedStyle(document.querySelector('h1')).fontFamily"
    assert "DejaVu Serif" in ada.page.evaluate(font)
