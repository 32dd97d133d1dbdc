"""The page: one file, up to date, that reaches nothing and makes no markup out of texts."""

import base64
import hashlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.verify.conftest import MODULE, ROOT

PAGE = MODULE.with_name("verify.html")
SCRIPT = ROOT / "scripts" / "web"


def page() -> str:
    return PAGE.read_text(encoding="utf-8")


def run(tree: Path, *options: str) -> int:
    command = [sys.executable, str(tree / "scripts" / "web"), *options]
    return subprocess.run(command, capture_output=True, check=False).returncode


def test_the_page_holds_the_module_as_it_is() -> None:
    assert run(ROOT, "--check") == 0
    assert MODULE.read_text(encoding="utf-8") in page()


def test_a_changed_module_makes_the_page_stale_until_it_is_built(tmp_path: Path) -> None:
    web = MODULE.parent
    for path in (SCRIPT, MODULE, PAGE, web / "look.css", web / "report" / "words.mjs"):
        copied = tmp_path / path.relative_to(ROOT)
        copied.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copied)
    module = tmp_path / MODULE.relative_to(ROOT)
    module.write_text(module.read_text(encoding="utf-8") + "// changed\n", encoding="utf-8")
    assert run(tmp_path, "--check") == 1
    assert run(tmp_path) == 0
    assert run(tmp_path, "--check") == 0
    assert "// changed\n" in (tmp_path / PAGE.relative_to(ROOT)).read_text(encoding="utf-8")


def test_the_policy_allows_this_script_and_this_style_and_nothing_else() -> None:
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page())
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    allowed = {
        tag: base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for tag in ("script", "style")
        for text in re.findall(rf"<{tag}[^>]*>(.*?)</{tag}>", page(), re.DOTALL)
    }
    assert rules == {
        "default-src": "'none'",
        "script-src": f"'sha256-{allowed['script']}'",
        "style-src": f"'sha256-{allowed['style']}'",
        "base-uri": "'none'",
        "form-action": "'none'",
    }


def test_the_policy_stands_before_everything_it_governs() -> None:
    assert page().index("Content-Security-Policy") < page().index("<style")


def test_nothing_in_the_page_names_an_address_or_makes_markup_of_a_text() -> None:
    for word in ("http://", "https://", "//cdn", " src=", " href=", "url(", "@import", "import("):
        assert word not in page()
    for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
        assert word not in page()
    for word in ("fetch(", "XMLHttpRequest", "WebSocket", "sendBeacon", "new Function"):
        assert word not in page()


def test_the_module_depends_on_nothing() -> None:
    assert not re.search(r"^\s*import\b|\brequire\s*\(\s*[\"']", MODULE.read_text("utf-8"), re.M)
