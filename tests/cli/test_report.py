"""`colibri report`: what it writes, what it says, and its exit codes."""

import base64
import hashlib
import json
import os
import re
import stat
from pathlib import Path
from typing import Any

import pytest

from colibri import cli
from colibri.cli.commands import report
from colibri.cli.show import report_page
from tests.support import engines
from tests.support.ledger_writer import Lab, opened
from tests.support.program import colibri
from tests.vectors.builder import bundle_from
from tests.verify.conftest import load_verifier


def run(project: Path, *arguments: str, **env: str) -> tuple[int, str, str]:
    return colibri(project, "report", *arguments, **env)


def evidence(page: str) -> bytes:
    """The bundle in a page."""
    _, _, rest = page.partition('<script type="application/json" id="evidence">')
    return rest.partition("</script>")[0].encode()


def files(project: Path) -> list[str]:
    return sorted(path.name for path in project.iterdir() if path.name != "data")


SCOPES = {"S-1": ("session", 43), "S-2": ("session", 11), "T-0001": ("task", 43)}


@pytest.mark.parametrize("id", SCOPES)
def test_a_session_or_a_task_becomes_one_page_with_its_evidence(project: Path, id: str) -> None:
    kind, records = SCOPES[id]
    code, out, err = run(project, id, "-o", "report.html")
    assert (code, err) == (0, "")
    page = (project / "report.html").read_text("utf-8")
    bundle = bundle_from(evidence(page))
    assert bundle["scope"] == {kind: id}
    assert len(bundle["headers"]) == records
    verdict = load_verifier().verify(evidence(page))
    assert verdict.verdict == "good"
    head = f"{bundle['head']['seq']}:{bundle['head']['leaf']}"
    assert out.splitlines() == [
        f"wrote report.html: {records} records, {len(page.encode()):,} bytes",
        *(
            line
            for seal in verdict.seals
            for line in (f"sealed {seal['session']}", f"root   {seal['count']}:{seal['root']}")
        ),
        f"head   {head}",
    ]
    assert [seal["session"] for seal in verdict.seals] == ([] if id == "S-2" else ["S-1"])
    assert files(project) == ["report.html"]


def test_only_its_owner_can_read_it(project: Path) -> None:
    """Evidence may hold private text."""
    before = os.umask(0)
    try:
        assert run(project, "S-1", "-o", "report.html")[0] == 0
    finally:
        os.umask(before)
    assert stat.S_IMODE((project / "report.html").stat().st_mode) == 0o600


def test_with_json_it_says_the_same_for_programs(project: Path) -> None:
    code, out, err = run(project, "S-1", "-o", "report.html", "--json")
    assert (code, err) == (0, "")
    said = json.loads(out)
    bundle = bundle_from(evidence((project / "report.html").read_text("utf-8")))
    assert said["head"] == bundle["head"]
    assert (said["file"], said["session"], said["task"], said["records"]) == (
        "report.html",
        "S-1",
        None,
        43,
    )
    assert said["bytes"] == (project / "report.html").stat().st_size
    assert [re.sub("[0-9a-f]{64}$", "…", one["root"]) for one in said["roots"]] == ["5:…"]


def test_what_is_too_much_for_a_page_is_refused_before_anything_is_written(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "MAX_EVIDENCE", 1 << 14)
    assert cli.main(["report", "S-1", "-o", str(project / "out"), "--project", str(project)]) == 1
    out, err = capsys.readouterr()
    assert (out, files(project)) == ("", [])
    assert "the evidence of S-1 is larger than 0 MiB" in err
    assert "export --session S-1" in err


def test_on_stdout_there_is_the_page_and_nothing_else(project: Path) -> None:
    code, out, err = run(project, "T-0001", "-o", "-", "--json")
    assert code == 0
    assert out.startswith("<!doctype html>")
    assert out.endswith("</html>\n")
    assert json.loads(err)["task"] == "T-0001"
    assert files(project) == []


def test_a_file_that_exists_is_replaced_only_by_force(project: Path) -> None:
    (project / "report.html").write_text("mine")
    code, out, err = run(project, "S-1", "-o", "report.html")
    assert (code, out) == (1, "")
    assert "report.html already exists" in err
    assert "--force" in err
    assert (project / "report.html").read_text() == "mine"
    assert run(project, "S-1", "-o", "report.html", "--force")[0] == 0
    assert (project / "report.html").read_text("utf-8").startswith("<!doctype html>")


def test_the_last_report_under_the_default_name_is_replaced_but_no_other_file(
    project: Path, tmp_path: Path
) -> None:
    assert run(project, "S-1")[0] == 0
    page = project / report.FILE
    first = page.read_text("utf-8")
    assert run(project)[0] == 0
    assert page.read_text("utf-8") != first
    copy = project / "copy.html"
    copy.write_text(first)
    assert run(project, "-o", "copy.html")[0] == 1, "a name that was chosen"
    for other in ("mine", re.sub('content="colibri/[0-9a-f]+"', 'content="colibri/0"', first)):
        page.write_text(other)
        code, _, err = run(project)
        assert (code, "already exists" in err) == (1, True)
        assert page.read_text("utf-8") == other


def test_a_task_may_be_named_by_its_short_id(project: Path) -> None:
    assert json.loads(run(project, "t-1", "-o", "-", "--json")[2])["task"] == "T-0001"


@pytest.mark.parametrize("id", ["S-9", "T-9999", "../S-1", "\x1b[31m", ""])
def test_what_does_not_exist_is_refused(
    project: Path, capsys: pytest.CaptureFixture[str], id: str
) -> None:
    target = str(project / "out")
    assert cli.main(["report", id, "-o", target, "--project", str(project)]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("colibri: error: there is no session or task ")
    assert "\x1b" not in err
    assert files(project) == []


def test_an_id_of_both_is_the_sessions(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with opened(project) as db:
        Lab(db).start("T-0001")
    arguments = ["report", "T-0001", "-o", str(project / "out"), "--project", str(project)]
    assert cli.main([*arguments, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["session"] == "T-0001"


def test_a_place_that_cannot_be_written_is_a_missing_resource(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = str(project / "nowhere" / "out")
    assert cli.main(["report", "S-1", "-o", target, "--project", str(project)]) == 75
    assert "No such file or directory" in capsys.readouterr().err


def test_it_can_be_opened_in_the_browser_of_its_user(project: Path) -> None:
    browser = project / "browser"
    browser.write_text('#!/bin/sh\necho "$1" > "$(dirname "$0")/opened"\n')
    browser.chmod(0o700)
    code, _, err = run(project, "S-1", "-o", "report.html", "--open", BROWSER=f"{browser} %s")
    assert (code, err) == (0, "")
    assert (project / "opened").read_text().strip() == (project / "report.html").as_uri()


def test_without_a_browser_it_says_what_to_do(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("webbrowser.open", lambda url: False)
    arguments = ["report", "S-1", "-o", str(project / "out"), "--project", str(project), "--open"]
    assert cli.main(arguments) == 0
    assert "colibri: hint: no browser was found" in capsys.readouterr().err


def test_without_an_id_it_is_about_the_whole_project(project: Path) -> None:
    """One file with a name of its own, which holds every record."""
    code, out, err = run(project)
    assert (code, err) == (0, "")
    bundle = bundle_from(evidence((project / report.FILE).read_text("utf-8")))
    assert bundle["scope"] is None
    assert len(bundle["headers"]) == 54
    assert out.startswith(f"wrote {report.FILE}: 54 records, ")
    assert load_verifier().verify(evidence((project / report.FILE).read_text())).verdict == "good"
    said = json.loads(run(project, "--json", "--force")[1])
    assert (said["session"], said["task"], said["records"]) == (None, None, 54)


def test_a_project_without_records_has_no_report(tmp_path: Path) -> None:
    with opened(tmp_path):
        pass
    code, out, err = run(tmp_path)
    assert (code, out) == (1, "")
    assert "holds no records yet" in err
    assert files(tmp_path) == []


def test_a_project_too_large_for_a_report_gets_alternatives(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "MAX_EVIDENCE", 1 << 14)
    assert cli.main(["report", "-o", str(project / "out"), "--project", str(project)]) == 1
    _, err = capsys.readouterr()
    assert "the evidence of this project is larger than 0 MiB" in err
    assert "colibri report SESSION is about one session; colibri export --all" in err


# Watching: also tests/web/test_watch.py, with the page.


def watch(project: Path, *arguments: str) -> int:
    target = str(project / "page.html")
    return cli.main(["report", *arguments, "-o", target, "--watch", "--project", str(project)])


def is_watched(project: Path) -> bool:
    return 'name="colibri-watched" content=""' not in (project / "page.html").read_text("utf-8")


def test_a_watched_page_is_written_again_when_there_is_more(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What happens while it pauses: a record more, some time, and at last Ctrl-C."""
    heads: list[int] = []

    def pause(seconds: float) -> None:
        text = (project / "page.html").read_text("utf-8")
        assert is_watched(project)
        heads.append(bundle_from(evidence(text))["head"]["seq"])
        if len(heads) == 1:
            with opened(project) as db:
                Lab(db).think("S-2", "more")
        if len(heads) == 4:
            raise KeyboardInterrupt

    monkeypatch.setattr("time.sleep", pause)
    monkeypatch.setattr(report, "BEAT", 0.0)
    assert watch(project) == 130
    assert heads == [54, 57, 57, 57]
    assert not is_watched(project)
    out, err = capsys.readouterr()
    assert out.count("wrote ") == 1
    assert err == "colibri: watching for new records; Ctrl-C stops\n"


def test_watching_ends_with_the_seal(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engines.require_sqlite("a look again and again")

    def pause(seconds: float) -> None:
        with opened(project) as db:
            Lab(db).seal("S-2")

    monkeypatch.setattr("time.sleep", pause)
    assert watch(project, "S-2") == 0
    assert not is_watched(project)
    page = (project / "page.html").read_text("utf-8")
    assert [seal["session"] for seal in load_verifier().verify(evidence(page)).seals] == ["S-2"]


# The page.


def page(bundle: bytes = b"{}") -> str:
    return b"".join(report_page.write([bundle])).decode()


def test_its_policy_allows_its_program_and_its_style_and_nothing_else() -> None:
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page())
    (style,) = re.findall(r"<style>(.*?)</style>", page(), re.DOTALL)
    (script,) = re.findall(r'<script type="module" id="program">(.*?)</script>', page(), re.DOTALL)
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules == {
        "default-src": "'none'",
        "script-src": _source(script),
        "style-src": _source(style),
        "worker-src": "blob:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    assert page().index("Content-Security-Policy") < page().index("<style")


def _source(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def test_nothing_in_it_names_an_address_or_makes_markup_of_a_text() -> None:
    text = page().replace('"http://www.w3.org/2000/svg"', "")  # the name of a namespace
    words = ["http:", "https:", " src=", "url(", "@import", "import(", "innerHTML", "outerHTML"]
    words += ["insertAdjacentHTML", "document.write", "eval(", "new Function", "fetch("]
    words += ["XMLHttpRequest", "WebSocket", "sendBeacon", "localStorage", "DOMParser"]
    assert [word for word in words if word in text] == []
    assert set(re.findall(r'href="([^#"][^"]*)"', text)) == set()


def test_the_program_holds_the_verifier_as_it_is() -> None:
    """But for the word export: what judges here is what judges in verify.html."""
    folder = Path(cli.__file__).parent.parent / "web"
    verifier = (folder / "verify.mjs").read_text("utf-8")
    assert re.sub(r"^export ", "", verifier, flags=re.M) in report_page.program()
    assert not re.search(r"^\s*(import|export)\b", report_page.program(), re.M)
    modules = {"verify.mjs", *(f"report/{path.name}" for path in (folder / "report").glob("*.mjs"))}
    assert set(report_page.MODULES) == modules


HOSTILE = ("</script>", "<!--", "<script", "]]>")


@pytest.mark.parametrize("text", HOSTILE)
def test_evidence_cannot_leave_its_element(text: str) -> None:
    """Whatever stands in a bundle, as a JSON string."""
    made: dict[str, Any] = {"log": text}
    shown = evidence(page(json.dumps(made).encode()))
    assert b"<" not in shown
    assert json.loads(shown) == made
