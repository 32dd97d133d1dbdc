"""verify.html in a browser: a file is chosen, judged and compared, for everybody to see."""

from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import expect

from tests.web.browser import Reader
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
    choose(ada, GOOD, f"✓ Good: {GOOD.name}")
    root = ada.page.inner_text("#report tr:has(th:text-is('seals')) li").split("root ")[1]
    ada.page.fill("#root", root)
    ada.page.press("#root", "Tab")
    expect(ada.page.locator("#verdict")).to_have_class("good")
    ada.page.fill("#root", f"{root[:-1]}{'1' if root[-1] == '0' else '0'}")
    ada.page.press("#root", "Tab")
    expect(ada.page.locator("#verdict")).to_contain_text("✗ Bad")
    assert "root-differs" in ada.text("#report")
    ada.page.fill("#root", "not a root")
    ada.page.press("#root", "Tab")
    expect(ada.page.locator("#verdict")).to_contain_text("This is no root or head.")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1100])
def test_axe_finds_nothing_and_all_of_it_fits_the_screen(
    reader: NewReader, scheme: str, width: int
) -> None:
    size = {"width": width, "height": 800}
    ada = reader(color_scheme=scheme, viewport=size, bypass_csp=True)
    ada.open(PAGE, checked=False)
    for file, words in ((GOOD, "Good"), (BAD, "Bad")):
        choose(ada, file, words)
        assert Axe().run(ada.page).response["violations"] == []
        assert ada.page.evaluate("document.documentElement.scrollWidth") <= width


def test_it_has_the_colours_of_a_report(reader: NewReader) -> None:
    """Both are made with look.css."""
    look = (PAGE.parent / "look.css").read_text("utf-8")
    assert look in PAGE.read_text("utf-8")
    ada = reader()
    ada.open(PAGE, checked=False)
    font = "getComputedStyle(document.querySelector('h1')).fontFamily"
    assert "DejaVu Serif" in ada.page.evaluate(font)
