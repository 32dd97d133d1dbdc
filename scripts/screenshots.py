"""Pictures of a report: a real session is played, reported and photographed in Chromium.

Called by scripts/screenshots. Light, dark, on a phone, on paper, with a record's hashes and a
thought's proof, after somebody changed a byte; and a session of what readers seldom meet: texts
from the right, words without end, erased and refused, not sealed.
"""

import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page

from colibri.core.errors import Refused
from tests.support.client import COLIBRI, Server, environment
from tests.support.ledger_writer import in_memory
from tests.web import story
from tests.web.browser import (
    PROGRAM,
    Reader,
    chromium,
    evidence_in,
    session_bundle,
    with_byte_changed,
    write_page,
)

DESK: Any = {"width": 1100, "height": 1400}
PHONE: Any = {"width": 390, "height": 740}
HEBREW = "\u05d0\u05d1\u05d2 \u05d3\u05d4\u05d5"
UNDRAWN = ".entry { content-visibility: visible !important }"  # or it stays blank in a long picture


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print("usage: scripts/screenshots DIRECTORY", file=sys.stderr)
        return 2
    if PROGRAM is None:
        print("screenshots: Chromium is not installed", file=sys.stderr)
        return 1
    folder = Path(arguments[0])
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as project, chromium() as browser:
        take(browser, report(Path(project)), unusual(Path(project)), folder)
    for picture in sorted(folder.iterdir()):
        print(picture)
    return 0


def report(project: Path) -> Path:
    """A real session's report."""
    with Server(project, COLIBRI) as server:
        told = story.play(server)
        server.close()
    command = [sys.executable, "-m", "colibri", "report", told.session, "-o", "report.html"]
    subprocess.run(command, cwd=project, env=environment(), check=True, stdout=sys.stderr)
    return project / "report.html"


def unusual(project: Path) -> Path:
    """A report of what readers seldom meet."""
    lab = in_memory()
    first = lab.create(HEBREW, description=f"{HEBREW} " * 40, assignee=HEBREW).task_id
    second = lab.create("unpronounceable" * 12, first).task_id
    last = lab.create("needs both", second, lab.create("beside it", first).task_id).task_id
    lab.start("S-1", intent=f"{HEBREW} " * 12, task=last)
    lab.think("S-1", "x" * 3_000, task=first, agent="agent-" + "long" * 30)
    secret = lab.think("S-1", "a secret", task=first)
    lab.move(last, "GATHER", "ANALYZE", "PLAN")
    with suppress(Refused):
        lab.move(last, "APPLY")
    lab.update(first, title=HEBREW[::-1])
    lab.read()  # of other work
    with lab.calling("thought_record_list", session="S-1", ends=False):
        pass
    lab.erase(secret.seq)
    return write_page(project / "unusual.html", session_bundle(lab))


def take(browser: Browser, page: Path, odd: Path, folder: Path) -> None:
    thought = evidence_in(page)["seals"][0] - 3  # before its exit and the enter of the seal's call
    forged = with_byte_changed(page, thought, b"approval", b"Approval")
    for name, path, context in (
        ("light", page, {"viewport": DESK}),
        ("dark", page, {"viewport": DESK, "color_scheme": "dark"}),
        ("phone", page, {"viewport": PHONE, "device_scale_factor": 2}),
        ("unusual", odd, {"viewport": DESK}),
        ("unusual-phone", odd, {"viewport": PHONE}),
        ("bad", forged, {"viewport": DESK}),
        ("bad-dark", forged, {"viewport": DESK, "color_scheme": "dark"}),
    ):
        reader = Reader(browser, bypass_csp=True, **context)
        photograph(reader.open(path), folder / f"{name}.png")
        reader.close()
    reader = Reader(browser, viewport={"width": 1000, "height": 760})
    reader.open(page).screenshot(path=folder / "readme.png")  # docs/report.png
    reader.close()
    reader = Reader(browser, viewport=DESK)
    opened = reader.open(page)
    opened.locator("#tree button").nth(2).click()
    opened.locator("#seal").screenshot(path=folder / "proof.png")
    opened.locator(".entry[data-type=thought] summary").first.click()
    opened.locator(".entry:has(.record)").screenshot(path=folder / "record.png")
    opened.pdf(path=folder / "paper.pdf", format="A4", prefer_css_page_size=True)
    reader.close()


def photograph(page: Page, path: Path) -> None:
    page.add_style_tag(content=UNDRAWN)
    page.screenshot(path=path, full_page=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
