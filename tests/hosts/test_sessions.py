"""A session in every real host, set up by `colibri setup --hooks` and played by a scripted model.

Then the ledger holds what the agent said, what its host saw it do, and what ties the two together.
Specification 22.4.
"""

import hashlib
import json
import re
import sys
from base64 import b64decode
from pathlib import Path

import pytest

from tests.hosts.drive import HOSTS, PROGRAMS, Place, run
from tests.hosts.model import Turn, say
from tests.hosts.story import (
    CLASSES,
    COMMIT,
    FAILS,
    FILES,
    PASSES,
    Played,
    play,
    ready,
    session_in,
)
from tests.support.client import TESTS, execute
from tests.web.conftest import NewReader

pytestmark = pytest.mark.slow

# Where a host lists our tools to the model at the start, and where it tells the server who calls.
LISTED = ("gemini", "copilot", "cline", "opencode")
TELLS_SESSION = ("claude-code", "codex", "copilot", "qwen")
TELLS_USE = ("claude-code", "codex")
NO_PAIRS = ("gemini", "copilot", "cline")  # without ids, or without begins
# What hosts say of the two tests: the exit codes of one that fails and one that passes.
EXITS: dict[str, list[int | None]] = {
    "claude-code": [3, 0],
    "codex": [None, None],
    "gemini": [3, None],  # it tells one that is not 0
    "copilot": [3, 0],
    "qwen": [3, 0],
    "cline": [3, None],  # the same
    "opencode": [3, 0],
}


def test_the_server_is_reached_and_the_model_sees_what_it_needs(played: Played) -> None:
    name, place, ran = played
    tools = next(request.tools for request in ran.requests if not request.is_aside)
    ours = [tool for tool in tools if tool.endswith(("task_create", "merkle_root"))]
    assert bool(ours) == (name in LISTED)
    assert ran.sent("T-0001"), "the id of the new task"
    enters = played.records("call.enter")
    assert len(enters) == CLASSES.count("mcp"), "every call arrived, once"
    for enter in enters:
        assert bool(enter["payload"]["host_session"]) == (name in TELLS_SESSION)
        assert bool(enter["payload"]["use"]) == (name in TELLS_USE)
    assert json.loads(place.colibri("sessions", "--json"))["sealed"] == 1


def test_every_tool_call_is_a_deed_in_order_bound_to_session_and_task(played: Played) -> None:
    ends = played.ends()
    assert [one["payload"]["class"] for one in ends] == CLASSES
    assert {one["payload"]["host"] for one in ends} == {played.name}
    assert len({one["payload"]["host_session"] for one in ends}) == 1
    # The end of the seal's own call comes after the seal, and so belongs to no session.
    assert [one["session"] for one in ends] == [*[played.session] * (len(CLASSES) - 1), None]
    assert "no end reported" not in played.place.colibri("trail"), "also not of that call"
    # The task is held from the claim on, until it is done.
    assert [one["task"] for one in ends[3:9]] == ["T-0001"] * 6


def test_exit_codes_are_what_the_host_tells(played: Played) -> None:
    fails, passes, _ = (one for one in played.ends() if one["payload"]["class"] == "run")
    assert [fails["payload"]["exit"], passes["payload"]["exit"]] == EXITS[played.name]


def test_files_have_the_digests_of_what_is_on_disk(played: Played) -> None:
    edits = [one for one in played.ends() if one["payload"]["class"] == "edit"]
    texts = {one["payload"]["of"]: one["payload"] for one in played.records("deed.text")}
    for edit, (name, text) in zip(edits, FILES.items(), strict=True):
        assert (played.place.project / name).read_text() == text
        digest = hashlib.sha256(text.encode()).hexdigest()
        (file,) = edit["payload"]["files"]
        assert (file["sha256"], file["size"]) == (digest, len(text))
        assert texts[edit["seq"]]["paths"] == [name]
    commands = [
        texts[one["seq"]]["command"] for one in played.ends() if one["payload"]["class"] == "run"
    ]
    assert commands == [FAILS, PASSES, COMMIT]


def test_both_verifiers_find_the_bundle_good(played: Played) -> None:
    place = played.place
    assert played.verdict()["verdict"] == "good"
    bundle = place.home / "session.colibri.json"
    place.colibri("export", "--session", played.session, "-o", str(bundle))
    entries = [json.loads(line) for line in bundle.read_text().splitlines()]
    headers = [b64decode(one["header"]) for one in entries if "header" in one]
    assert sum(b'"kind":"deed"' in header for header in headers) >= len(CLASSES) - 1
    verifier = str(TESTS.parent / "src" / "colibri_verify.py")
    done = execute([sys.executable, "-I", verifier, bundle])
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    job = json.dumps({"job": "verify", "items": [{"path": str(bundle)}]})
    module = TESTS.parent / "src" / "colibri" / "web" / "verify.mjs"
    done = execute(["node", TESTS / "verify" / "batch.mjs", module], input=job)
    (verdict,) = json.loads(done.stdout)
    assert (verdict["verdict"], verdict["findings"]) == ("good", [])


def test_the_report_shows_the_edits_the_commands_and_the_one_that_failed(
    played: Played, reader: NewReader
) -> None:
    ada = reader(_report(played))
    assert ada.verdict == "good"
    edits = ada.page.locator("#files > li").all_inner_texts()
    for edit, (name, text) in zip(reversed(edits), FILES.items(), strict=True):
        assert edit.startswith(name)
        assert hashlib.sha256(text.encode()).hexdigest() in edit
        assert f"Edited {name}" in ada.page.inner_text("#entries")
    assert "3 commands ran." in ada.page.inner_text("#deed-list")
    for command in (FAILS, PASSES, COMMIT):
        assert command in ada.page.inner_text("#entries")
    failed = ada.page.locator(".entry[data-failed]").all_inner_texts()
    assert len(failed) == (EXITS[played.name][0] == 3)
    assert all("Failed with exit code 3." in one and FAILS in one for one in failed)


def test_nothing_is_missing_from_an_honest_session(played: Played, reader: NewReader) -> None:
    """Specification 19.6: in the verdict and on the page; but pairs are not known without ids."""
    for scope in ((), ("--session", played.session)):
        coverage = json.loads(played.place.colibri("verify", "--json", *scope))["coverage"]
        assert coverage["deeds"] >= len(CLASSES) - 1  # the seal ends after the session
        for name in ("not_ended", "unseen", "unjudged", "settings_changed", "lost", "unreported"):
            assert not coverage[name], (name, coverage)
        assert bool(coverage["unpaired"]) == (played.name in NO_PAIRS)
    line = reader(_report(played)).page.locator("#deed-list .line", has_text="Not known")
    lines = line.inner_text().splitlines()
    said = "\n".join(one for one in lines if "recorded later" not in one)  # on a busy machine
    assert ("which begin and which end belong together" in said) == (played.name in NO_PAIRS)
    assert played.name in NO_PAIRS or not re.search(r"\d|hooks changed", said)
    assert "No file changed in git that no action explains." in said


@pytest.mark.parametrize(
    ("name", "hooks"),
    [("claude-code", ".claude/settings.local.json"), ("cline", "-r .clinerules/hooks")],
)
def test_hooks_that_are_removed_in_the_middle_of_a_session_show(
    name: str, hooks: str, tmp_path: Path
) -> None:
    """Specification 19.6: these hosts notice it at once; others keep reporting until they end."""
    place = Place.below(tmp_path)
    ready(place, name)
    tools = HOSTS[name].tools

    def think(content: str) -> Turn:
        return [tools.colibri("thought_record", type="plan", content=content)]

    turns: list[Turn] = [
        [tools.colibri("audit_session_start", intent="Look", agent_id="agent")],
        think("before"),
        [tools.run(f"rm -f {hooks}; sleep 3")],
        think("after"),
        [tools.run("echo hidden")],
        think("at the end"),
        lambda request: [tools.colibri("merkle_finalize", session_id=session_in(request))],
        [say("Done.")],
    ]
    ran = run(name, turns, place)
    assert ran.code == 0, ran.err[-2000:]
    played = Played(name, place, ran)
    last = [one["seq"] - 1 for one in played.records("thought")][-1]
    for scope in ((), ("--session", played.session)):
        coverage = json.loads(place.colibri("verify", "--json", *scope))["coverage"]
        assert last in coverage["unseen"], coverage


def _report(played: Played) -> Path:
    path = played.place.home / "report.html"
    if not path.exists():
        played.place.colibri("report", played.session, "-o", str(path))
    return path


def test_copilot_with_the_settings_of_claude_code_too_records_each_tool_call_once(
    tmp_path: Path,
) -> None:
    """Specification 20.2, 22.4: it runs the hooks of both."""
    name, place = "copilot", Place.below(tmp_path)
    ready(place, name)
    place.colibri("setup", "claude-code", "--hooks", "--write")
    assert [one["payload"]["class"] for one in play(name, place).ends()] == CLASSES


def test_the_versions_are_those_of_the_documentation() -> None:
    page = (TESTS.parent / "docs" / "hosts.md").read_text(encoding="utf-8")
    for program in PROGRAMS.values():
        assert program["package"].rpartition("@")[2] in page
