"""Pictures of what people see in a browser: real work is played, reported and photographed.

Called by scripts/screenshots. The report of a session, of a project, of what readers seldom meet
(texts from the right, words without end, erased, refused, not sealed) and of a session in which
somebody changed a byte, and verify.html, each in light, dark, on a phone and on paper; the verdict,
a proof and a record, opened. report.png is the picture of README, and session.txt what the page
of the session says: with tests/web/readers.json it can be put to readers.
"""

import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser

import colibri
from colibri.core.errors import Refused
from tests.support.client import environment
from tests.support.ledger_writer import in_memory
from tests.vectors.builder import text_of
from tests.web import readers
from tests.web.browser import (
    PROGRAM,
    Reader,
    chromium,
    evidence_in,
    record_with,
    session_bundle,
    with_byte_changed,
    write_page,
)

DESK: Any = {"width": 1100, "height": 1400}
PHONE: Any = {"width": 390, "height": 740}
README: Any = {"width": 1000, "height": 900}
LOOKS: dict[str, Any] = {
    "light": {"viewport": DESK},
    "dark": {"viewport": DESK, "color_scheme": "dark"},
    "phone": {"viewport": PHONE, "device_scale_factor": 2},
}
VERIFIER = Path(colibri.__file__).parent / "web" / "verify.html"
HEBREW = "\u05d0\u05d1\u05d2 \u05d3\u05d4\u05d5"


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print("usage: scripts/screenshots DIRECTORY", file=sys.stderr)
        return 2
    if PROGRAM is None:
        print("screenshots: Chromium is not installed", file=sys.stderr)
        return 1
    folder = Path(arguments[0])
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as directory, chromium() as browser:
        project = Path(directory)
        session, root = readers.play(project)
        command = [sys.executable, "-m", "colibri", "report", "-o", "project.html"]
        subprocess.run(command, cwd=project, env=environment(), check=True, stdout=sys.stderr)
        pages = {
            "session": session,
            "project": project / "project.html",
            "unusual": unusual(project),
            "bad": forged(session),
        }
        for name, page in pages.items():
            take(browser, page, folder / name)
        take_details(browser, session, root, folder)
        take_verifier(browser, session, folder)
    for picture in sorted(folder.iterdir()):
        print(picture)
    return 0


def forged(page: Path) -> Path:
    """A letter of the last thought is another."""
    return with_byte_changed(page, record_with(page, b"out of paper"), b"paper", b"Paper")


def unusual(project: Path) -> Path:
    """A report of what readers seldom meet, and of what hosts report."""
    lab = in_memory()
    lab.client = "h-1"
    first = lab.create(HEBREW, description=f"{HEBREW} " * 40, assignee=HEBREW).task_id
    second = lab.create("unpronounceable" * 12, first).task_id
    last = lab.create("needs both", second, lab.create("next to it", first).task_id).task_id
    lab.start("S-1", intent=f"{HEBREW} " * 12, task=last, agent="ada")
    lab.think("S-1", "x" * 3_000, task=first, agent="agent-" + "long" * 30)
    secret = lab.think("S-1", "a secret", task=first)
    act: Any = {"host_session": "h-1", "tool": "Bash", "event": "tool.end"}
    lab.deed(**act, use="u-1", command="make all", exit=2, duration_ms=5_300)
    files = ({"n": 0, "sha256": "0" * 64, "size": 4_096},)
    lab.deed(**act, use="u-2", class_="edit", paths=("src/a/very/long/path.py",), files=files)
    lab.move(last, "GATHER", "ANALYZE", "PLAN")
    with suppress(Refused):
        lab.move(last, "APPLY")
    lab.update(first, title=HEBREW[::-1])
    lab.read()  # of other work
    with lab.calling("thought_record_list", session="S-1", ends=False):
        pass
    lab.erase(secret.seq)
    return write_page(project / "unusual.html", session_bundle(lab))


def take(browser: Browser, page: Path, picture: Path) -> None:
    """A page in light, dark, on a phone and on paper."""
    for name, context in LOOKS.items():
        reader = Reader(browser, **context)
        path = picture.with_name(f"{picture.name}-{name}.png")
        reader.open(page).screenshot(path=path, full_page=True)
        reader.close()
    reader = Reader(browser)
    paper = picture.with_name(f"{picture.name}-paper.pdf")
    reader.open(page).pdf(path=paper, format="A4", prefer_css_page_size=True)
    reader.close()


def take_details(browser: Browser, page: Path, root: str, folder: Path) -> None:
    """What a reader sees first and opens: the verdict with a root that fits, a proof, a record."""
    reader = Reader(browser, viewport=README)
    reader.open(page).screenshot(path=folder / "report.png")
    reader.close()
    reader = Reader(browser, viewport=DESK)
    opened = reader.open(page)
    (folder / "session.txt").write_text(opened.inner_text("body"), "utf-8")
    reader.compare(root)
    opened.wait_for_selector("#outside-answer.good")
    opened.locator("#verdict").screenshot(path=folder / "verdict.png")
    opened.locator("#tree button").nth(2).click()
    opened.locator("#seal").screenshot(path=folder / "proof.png")
    opened.locator(".entry[data-type=thought] summary").first.click()
    opened.locator(".entry:has(.record)").screenshot(path=folder / "record.png")
    reader.close()


def take_verifier(browser: Browser, page: Path, folder: Path) -> None:
    """verify.html with the evidence of a report in it."""
    file = page.with_name("evidence.colibri.json")
    file.write_bytes(text_of(evidence_in(page)))
    for name, context in (*LOOKS.items(), ("paper", {})):
        reader = Reader(browser, **context)
        opened = reader.open(VERIFIER, checked=False)
        opened.set_input_files("#file", file)
        opened.wait_for_selector("#verdict.good")
        if name == "paper":
            opened.pdf(path=folder / "verify-paper.pdf", format="A4", prefer_css_page_size=True)
        else:
            opened.screenshot(path=folder / f"verify-{name}.png", full_page=True)
        reader.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
