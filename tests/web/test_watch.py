"""A watched report: the file follows the log, the page follows the file and keeps its place."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import expect

from tests.support.client import PATIENCE, environment
from tests.support.ledger_writer import Lab, opened
from tests.support.program import INTERRUPTIBLE, UNMEASURED, colibri
from tests.web.conftest import NewReader

LOADS = "performance.getEntriesByType('navigation')[0].type"


def prepare(project: Path) -> None:
    """An open session with enough to scroll through."""
    with opened(project) as db:
        lab = Lab(db)
        lab.start("S-1", intent="watch me")
        for number in range(60):
            lab.think("S-1", f"thought {number} of the beginning", type="decision")


def think(project: Path, text: str) -> None:
    with opened(project) as db:
        Lab(db).think("S-1", text)


@contextmanager
def watching(project: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    command = [*INTERRUPTIBLE, "report", *arguments, "-o", "page.html", "--watch"]
    environ = environment(**UNMEASURED)
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=project, env=environ, **pipes) as process:
        try:
            until((project / "page.html").exists)
            yield process
        finally:
            process.kill()


def until(holds: Any) -> None:
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


def interrupt(process: subprocess.Popen[str]) -> tuple[int, str]:
    os.kill(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE)
    return process.returncode, err


def test_the_page_follows_the_log_and_keeps_its_place(tmp_path: Path, reader: NewReader) -> None:
    """Specification 23.5."""
    prepare(tmp_path)
    with watching(tmp_path) as process:
        ada = reader(tmp_path / "page.html", viewport={"width": 900, "height": 700})
        assert "kept current" in ada.page.inner_text("#watching")
        ada.page.click("#people .meaning summary")
        ada.page.fill("#search", "beginning")
        ada.page.locator("#entries .entry").nth(30).scroll_into_view_if_needed()
        ada.page.locator("#entries .entry summary").nth(30).click()
        ada.page.wait_for_selector(".record")
        seen = ada.page.locator("#entries .entry").nth(30)
        name = seen.get_attribute("id")
        top = seen.bounding_box()
        think(tmp_path, "a new one since the beginning")
        expect(ada.page.locator("#shown")).to_contain_text("61 of", timeout=PATIENCE * 1_000)
        ada.page.wait_for_selector("body[data-checked]")
        assert ada.page.evaluate(LOADS) == "reload"
        assert ada.verdict == "good"
        assert ada.page.input_value("#search") == "beginning"
        assert ada.page.get_attribute("#people .meaning", "open") is not None
        assert ada.page.locator(f"#{name} details[open]").count() == 1
        now = ada.page.locator(f"#{name}").bounding_box()
        assert top is not None
        assert now is not None
        assert abs(now["y"] - top["y"]) < 100
        code, err = interrupt(process)
        assert (code, err) == (130, "colibri: watching for new records; Ctrl-C stops\n")
        watching_line = ada.page.locator("#watching")
        expect(watching_line).to_be_hidden(timeout=PATIENCE * 1_000)  # loaded once more, it is over
        ada.page.evaluate("window.kept = true")
        ada.page.wait_for_timeout(4_000)
        assert ada.page.evaluate("window.kept")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "page.html"]


def test_the_seal_of_its_session_ends_it_by_itself(tmp_path: Path, reader: NewReader) -> None:
    prepare(tmp_path)
    with watching(tmp_path, "S-1") as process:
        with opened(tmp_path) as db:
            Lab(db).seal("S-1")
        out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, err) == (0, "colibri: watching for new records; Ctrl-C stops\n")
    assert out.startswith("wrote page.html")
    ada = reader(tmp_path / "page.html")
    assert not ada.page.is_visible("#watching")
    assert "sealed the session" in ada.text("#outcome")


def test_a_page_whose_command_was_killed_stops_by_itself(tmp_path: Path, reader: NewReader) -> None:
    prepare(tmp_path)
    with watching(tmp_path):
        pass
    page = tmp_path / "page.html"
    text = page.read_text("utf-8")
    before, mark, after = text.partition('name="colibri-watched" content="')
    page.write_text(f"{before}{mark}2020{after[4:]}", "utf-8")
    ada = reader(page)
    assert "Nothing keeps this page current any more" in ada.page.inner_text("#watching")
    ada.page.evaluate("window.kept = true")
    ada.page.wait_for_timeout(4_000)
    assert ada.page.evaluate("window.kept")


def test_a_sealed_session_is_not_watched(tmp_path: Path) -> None:
    prepare(tmp_path)
    with opened(tmp_path) as db:
        Lab(db).seal("S-1")
    code, out, err = colibri(tmp_path, "report", "S-1", "--watch")
    assert (code, err) == (0, "")
    assert out.startswith("wrote colibri-report.html")
    assert 'name="colibri-watched" content=""' in (tmp_path / "colibri-report.html").read_text()
