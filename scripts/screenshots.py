"""Pictures of a report: a real session is played, reported and photographed in Chromium.

Called by scripts/screenshots. Light, dark, on a phone, on paper, with a thought's proof, and after
somebody changed a byte.
"""

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page

from tests.support.client import COLIBRI, Server, environment
from tests.web import story
from tests.web.browser import PROGRAM, Reader, chromium, evidence_in, with_byte_changed

DESK: Any = {"width": 1100, "height": 1400}
PHONE: Any = {"width": 360, "height": 740}
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
        take(browser, report(Path(project)), folder)
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


def take(browser: Browser, page: Path, folder: Path) -> None:
    thought = evidence_in(page)["seals"][0] - 3  # before its exit and the enter of the seal's call
    forged = with_byte_changed(page, thought, b"approval", b"Approval")
    for name, path, context in (
        ("light", page, {"viewport": DESK}),
        ("dark", page, {"viewport": DESK, "color_scheme": "dark"}),
        ("phone", page, {"viewport": PHONE, "device_scale_factor": 2}),
        ("bad", forged, {"viewport": DESK}),
        ("bad-dark", forged, {"viewport": DESK, "color_scheme": "dark"}),
    ):
        reader = Reader(browser, bypass_csp=True, **context)
        photograph(reader.open(path), folder / f"{name}.png")
        reader.close()
    reader = Reader(browser, viewport=DESK)
    opened = reader.open(page)
    opened.locator("#tree button").nth(2).click()
    opened.locator("#seal").screenshot(path=folder / "proof.png")
    opened.pdf(path=folder / "paper.pdf", format="A4")
    reader.close()


def photograph(page: Page, path: Path) -> None:
    page.add_style_tag(content=UNDRAWN)
    page.screenshot(path=path, full_page=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
