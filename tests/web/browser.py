"""Reports in a real browser: headless Chromium, each page watched for what it must never do."""

import shutil
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Browser, ConsoleMessage, Page, sync_playwright

from colibri.cli.show import report_page
from colibri.store import bundle
from tests.support.ledger_writer import Lab
from tests.vectors.builder import bundle_from, text_of

JSON = dict[str, Any]
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PROGRAM = next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Started once for many pages."""
    with sync_playwright() as playwright:
        # Without its sandbox it also runs as root, as in a container.
        browser = playwright.chromium.launch(executable_path=PROGRAM, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


class Reader:
    """Somebody who opens a report, and what the page did behind their back."""

    def __init__(self, browser: Browser, **context: Any) -> None:
        self.page: Page = browser.new_context(**context).new_page()
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", self._hear)
        self.page.on("pageerror", lambda problem: self.complaints.append(str(problem)))
        self.page.on("dialog", lambda dialog: self.complaints.append(f"dialog {dialog.message}"))
        self.page.on("request", lambda request: self.requests.append(request.url))

    def _hear(self, message: ConsoleMessage) -> None:
        self.complaints.append(f"{message.type}: {message.text}")

    def open(self, path: Path, *, checked: bool = True) -> Page:
        """From the disk, as a reader would; and wait for the verdict."""
        self.page.goto(path.as_uri())
        if checked:
            self.page.wait_for_selector("body[data-checked]")
        return self.page

    @property
    def verdict(self) -> str | None:
        return self.page.get_attribute("body", "data-verdict")

    def text(self, selector: str) -> str:
        """All of it, also what is folded or hidden."""
        return self.page.text_content(selector) or ""

    def open_verdict(self) -> None:
        """What is behind the one line."""
        if self.page.get_attribute("#verdict", "open") is None:
            self.page.click("#verdict > summary")

    def compare(self, value: str) -> str:
        """Paste a root or head; the answer, when it is there."""
        self.open_verdict()
        self.page.fill("#outside-value", value)
        self.page.press("#outside-value", "Enter")
        self.page.wait_for_selector("#outside-answer:not(:empty)")
        return self.text("#outside-answer")

    @property
    def reached(self) -> list[str]:
        """What was requested apart from the file itself and what the page made."""
        return [url for url in self.requests if not url.startswith(("file:", "blob:"))]

    def close(self) -> None:
        self.page.context.close()


# In which ways people look at a page, and what the browser has to know for that. The policy of our
# pages refuses the script of axe.
LOOKS: dict[str, JSON] = {
    "light": {"bypass_csp": True, "color_scheme": "light"},
    "dark": {"bypass_csp": True, "color_scheme": "dark"},
    "phone": {"bypass_csp": True, "viewport": {"width": 390, "height": 740}},
    "paper": {"bypass_csp": True},
}


def faults(page: Page, look: str) -> list[str]:
    """What axe-core finds, which checks WCAG; and whether something is wider than the window."""
    if look == "paper":
        page.emulate_media(media="print")
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
    found = Axe().run(page).response["violations"]
    faults = [f"{one['id']}: {node['html']}" for one in found for node in one["nodes"]]
    if look == "paper":
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        page.emulate_media(media="screen")
    is_wide = page.evaluate("document.documentElement.scrollWidth > innerWidth")
    return [*faults, *(["too wide"] if is_wide else [])]


def write_page(path: Path, evidence: bytes, changes: Mapping[str, object] | None = None) -> Path:
    """A report around a bundle."""
    path.write_bytes(b"".join(report_page.write([evidence], changes=changes)))
    return path


def session_bundle(lab: Lab, session: str = "S-1") -> bytes:
    return b"".join(bundle.write(lab.db, bundle.of_session(lab.db, session)))


def task_bundle(lab: Lab, task: str) -> bytes:
    return b"".join(bundle.write(lab.db, bundle.of_task(lab.db, task)))


def log_bundle(lab: Lab) -> bytes:
    return b"".join(bundle.write(lab.db, bundle.whole_log(lab.db)))


def evidence_in(path: Path) -> JSON:
    """The bundle that a report holds."""
    _, _, rest = path.read_text("utf-8").partition('<script type="application/json" id="evidence">')
    return bundle_from(rest.partition("</script>")[0].strip().encode())


def record_with(path: Path, words: bytes) -> int:
    """The seq of the first record of a report whose payload has some words."""
    entries = [(int(seq), item["body"]) for seq, item in evidence_in(path)["payloads"].items()]
    return next(seq for seq, body in entries if words in b64decode(body))


def with_evidence(path: Path, evidence: JSON) -> Path:
    """The same page around other evidence, as a forger would make it."""
    page = path.read_text("utf-8")
    before, mark, rest = page.partition('<script type="application/json" id="evidence">')
    _, end, after = rest.partition("</script>")
    made = path.with_name(f"forged-{path.name}")
    made.write_text(before + mark + text_of(evidence).decode() + end + after, "utf-8")
    return made


def with_byte_changed(path: Path, seq: int, old: bytes, new: bytes) -> Path:
    """One byte of a payload is another; the JSON around it stays valid."""
    evidence = evidence_in(path)
    item = evidence["payloads"][str(seq)]
    body = b64decode(item["body"])
    assert (body.count(old), len(old)) == (1, len(new))
    item["body"] = b64encode(body.replace(old, new)).decode()
    return with_evidence(path, evidence)
