"""`colibri demo`: a newcomer's first minute, with a real server and a forgery that is caught."""

import json
import os
import re
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from colibri import cli
from colibri.cli.commands import demo
from colibri.cli.demo.story import INTENT, LIE, STORY, TRUTH
from colibri.core.ledger import Head
from colibri.store.verify import verify
from tests.support.client import PATIENCE, TESTS, environment, execute, execute_raw
from tests.support.ledger_reader import calls, eventually, reading, verified
from tests.support.ledger_writer import no_pause
from tests.support.program import colibri, database_of
from tests.support.terminal import COLIBRI, TYPED, run_in_terminal

JSON = dict[str, Any]
Capture = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch
VERIFIER = TESTS.parent / "src" / "colibri_verify.py"
LIMIT = 5.0  # seconds


Played = tuple[Path, str, float]


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """A run in a pipe: its directory, what it printed, and the seconds that it worked."""
    directory = tmp_path_factory.mktemp("demo") / "here"
    began = worked()
    code, out, err = colibri(TESTS, "demo", "--dir", str(directory))
    assert (code, err) == (0, "")
    return directory, out, worked() - began


def worked() -> float:
    """The processor time of all children: on a busy machine the clock says nothing."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.mark.alone
def test_with_its_pauses_it_takes_less_than_five_seconds(played: Played) -> None:
    _, out, seconds = played
    assert seconds + demo.PAUSE * out.count("\n") < LIMIT


def test_every_call_was_made_to_a_real_server_and_recorded(played: Played) -> None:
    """The ledger tells the same story: nothing was only printed."""
    directory, _, _ = played
    report = verified(database_of(directory))
    steps = [step for chapter in STORY for step in chapter.steps]
    for tool in {step.tool for step in steps}:
        recorded = calls(database_of(directory), tool)
        expected = [step.refusal or None for step in steps if step.tool == tool]
        assert [pair.code for pair in recorded] == expected
    assert report.open_calls == ()
    log = (directory / "server.log").read_text(encoding="utf-8")
    assert "[Startup] Complete" in log


def test_the_story_shows_what_colibri_is_for(played: Played) -> None:
    _, out, _ = played
    for sign in (
        "T-0002 Read dates in the order of the invoice's country, after T-0001",
        "refused   task_update          ERR_BLOCKED: T-0002 cannot be in APPLY",
        "\nThe test: a task in three calls\n"
        "  ok        task_next_actions    T-0001 Write a test that fails on day-first dates\n"
        "  ok        task_update          T-0001 GATHER -> ANALYZE -> PLAN -> APPLY, plan: ",
        "refused   task_update          ERR_WRITEBACK_REQUIRED: T-0002 needs a reason",
        "T-0002 GATHER -> ANALYZE -> PLAN -> APPLY, attempt 2\n",
        "7 thoughts under one root: ",
        f"$         {TYPED} export --session S-",
        "$         python3 colibri_verify.py session.colibri.json --root ",
        "verdict   GOOD: intact yes, complete yes, sealed yes, rules yes",
        "found     altered-payload at record ",
        "verdict   BAD: intact no",
        f"\n\nThe session as a page for people, which checks its own evidence\n"
        f"  $         {TYPED} report S-",
        f"{TYPED} setup CLIENT",
        f"{TYPED} trail --project ",
    ):
        assert sign in out
    assert "\x1b" not in out


def test_the_evidence_it_leaves_is_good_and_the_forgery_is_not(played: Played) -> None:
    directory, out, _ = played
    for name, wanted in ((demo.BUNDLE, 0), (demo.FORGED, 1)):
        done = subprocess.run(
            [sys.executable, "-I", "-S", str(VERIFIER), str(directory / name)],
            capture_output=True,
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == wanted
    assert f"was       {TRUTH}\n" in out
    assert f"is        {LIE}\n" in out


def test_it_leaves_a_report_to_open(played: Played) -> None:
    directory, out, _ = played
    assert f"open      {directory / demo.REPORT}\n" in out
    assert (directory / demo.REPORT).stat().st_size > 0


def test_json_is_one_value_and_the_directory_is_of_its_own(tmp_path: Path) -> None:
    """What the environment says of a real project is not for the demo."""
    (tmp_path / "project").mkdir()
    code, out, err = colibri(
        tmp_path,
        "demo",
        "--json",
        TMPDIR=str(tmp_path),
        COLIBRI_DB_PATH=str(tmp_path / "project" / "real.db"),
        COLIBRI_MODE="READONLY",
        CLAUDE_PROJECT_DIR=str(tmp_path / "project"),
    )
    assert (code, err) == (0, "")
    found = json.loads(out)
    directory = Path(found["directory"])
    assert (directory.parent, directory.name[:13]) == (tmp_path, "colibri-demo-")
    assert list((tmp_path / "project").iterdir()) == []
    assert found["refused"] == ["ERR_BLOCKED", "ERR_WRITEBACK_REQUIRED"]
    assert (found["verified"]["verdict"], found["verified"]["exit_code"]) == ("good", 0)
    assert (found["forged"]["verdict"], found["forged"]["exit_code"]) == ("bad", 1)
    assert [one["code"] for one in found["forged"]["findings"]] == ["altered-payload"]
    assert Path(found["report"]).exists()
    head = Head(found["head"]["seq"], bytes.fromhex(found["head"]["leaf"]))
    with reading(database_of(directory)) as db:
        assert verify(db, head=head, pause=no_pause).valid


def test_on_a_terminal_it_is_in_colour(tmp_path: Path) -> None:
    code, shown = run_in_terminal(
        [*COLIBRI, "demo", "--dir", "here", "--no-pause"],
        cwd=tmp_path,
        env=environment(NO_COLOR=""),
        columns=200,
    )
    assert code == 0
    assert "\x1b[38;5;196m  refused   task_update          ERR_BLOCKED: " in shown
    assert "\x1b[1;38;5;28m  verdict   GOOD" in shown
    assert "\x1b[1;38;5;196m  verdict   BAD" in shown


@pytest.mark.parametrize("columns", [40, 60])
def test_a_narrow_terminal_breaks_no_word(tmp_path: Path, columns: int) -> None:
    """But for what is to be copied: paths, and commands."""
    command = [*COLIBRI, "demo", "--dir", "here", "--no-pause"]
    code, shown = run_in_terminal(command, cwd=tmp_path, env=environment(), columns=columns)
    assert code == 0
    text = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    wide = [line.split()[0] for line in text.splitlines() if len(line) > columns]
    assert set(wide) <= {"in", "open", "evidence", "forged", "trail", "check"}
    assert re.search(r"\n  found     altered-payload.*\n {12}\S", text), "under its own column"
    flat = " ".join(text.split())
    assert f"An agent's session: {INTENT} in " in flat
    assert "found altered-payload at record 47: the payload is not the one that the header" in flat


def test_what_it_says_to_type_next_works(played: Played) -> None:
    """Copied line by line, from another directory."""
    _, out, _ = played
    lines = dict(line.split(maxsplit=1) for line in out.partition("\nNext\n")[2].splitlines())
    for what, wanted in {"evidence": 0, "forged": 1, "trail": 0, "check": 0}.items():
        done = execute_raw(["sh", "-c", lines[what]], cwd="/")
        assert (what, done.returncode, done.stderr) == (what, wanted, b"")


def test_a_directory_that_is_in_use_is_not_touched(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "mine").write_text("mine")
    assert cli.main(["demo", "--dir", str(tmp_path)]) == 1
    assert capsys.readouterr().err == (
        f"colibri: error: {tmp_path} is not empty\n"
        "colibri: hint: name an empty directory, or a new one\n"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
    assert cli.main(["demo", "--dir", str(tmp_path / "mine")]) == 1
    assert "mine is not a directory" in capsys.readouterr().err


# A real signal in the middle of the story. Whoever runs tests in the background has it ignored.
INTERRUPTED = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from colibri.cli.demo import client
real = client._requests
def requests(process, hint):
    request = real(process, hint)
    def interrupted(method, params):
        if params.get("name") == "thought_record":
            print(process.pid, flush=True)
            os.kill(os.getpid(), signal.SIGINT)
        return request(method, params)
    return interrupted
client._requests = requests
from colibri.__main__ import main; main()
"""


@pytest.mark.parametrize("exists", [True, False])
def test_ctrl_c_ends_the_server_and_leaves_nothing_behind(tmp_path: Path, exists: bool) -> None:
    """A directory that was there before stays, with what was begun in it."""
    if exists:
        (tmp_path / "here").mkdir()
    done = execute([sys.executable, "-c", INTERRUPTED, "demo", "--dir", "here"], cwd=tmp_path)
    assert (done.returncode, done.stderr) == (130, "colibri: error: interrupted\n")
    server = int(done.stdout.splitlines()[-1])
    eventually(lambda: not is_running(server), "the end of the server")
    assert (tmp_path / "here").exists() is exists


def is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


# What does not go as planned is reported.


def answer_otherwise(monkeypatch: Patch) -> None:
    monkeypatch.setattr(demo, "STORY", (STORY[1],))
    monkeypatch.setattr(demo, "fill", lambda value, names: {"task_id": "T-9999"})


def fail_to_export(monkeypatch: Patch) -> None:
    monkeypatch.setattr(demo, "BUNDLE", "nowhere/session.colibri.json")


def lie_badly(monkeypatch: Patch) -> None:
    monkeypatch.setattr(demo, "LIE", TRUTH)


def lose_the_verifier(monkeypatch: Patch) -> None:
    monkeypatch.setitem(sys.modules, "colibri_verify", ModuleType("colibri_verify"))
    monkeypatch.setattr(sys.modules["colibri_verify"], "__file__", "nowhere.py", raising=False)


def find_damage(monkeypatch: Patch) -> None:
    real = demo._data
    monkeypatch.setattr(demo, "_data", lambda result: real(result) | {"valid": False})


def be_slow(monkeypatch: Patch) -> None:
    monkeypatch.setattr(demo, "TIMEOUT", 0.001)


WRONG: dict[str, tuple[Callable[[Patch], None], str]] = {
    "another answer": (answer_otherwise, "task_update answered "),
    "a failed export": (fail_to_export, "colibri export failed: colibri: error: "),
    "a forgery that is none": (lie_badly, "the verdict on forged.colibri.json is good"),
    "no verifier": (lose_the_verifier, "the verifier failed: "),
    "a log that is not valid": (find_damage, "audit_session_start answered "),
    "a slow machine": (be_slow, "timed out after 0.001 seconds"),
}


@pytest.mark.parametrize(("spoil", "why"), WRONG.values(), ids=WRONG.keys())
def test_a_run_that_deviates_from_the_story_is_reported(
    tmp_path: Path,
    capsys: Capture,
    monkeypatch: Patch,
    spoil: Callable[[Patch], None],
    why: str,
) -> None:
    """The demo claims nothing that it has not seen."""
    spoil(monkeypatch)
    assert cli.main(["demo", "--dir", str(tmp_path / "here"), "--no-pause"]) == 75
    captured = capsys.readouterr()
    assert why in captured.err
    assert "Next" not in captured.out


@pytest.mark.parametrize("exists", [True, False])
def test_a_reader_that_goes_away_leaves_no_server_and_no_directory(
    tmp_path: Path, exists: bool
) -> None:
    """`colibri demo | head`; a directory that was there before stays."""
    if exists:
        (tmp_path / "here").mkdir()
    process = subprocess.Popen(
        [*COLIBRI, "demo", *(["--dir", "here"] if exists else [])],
        cwd=tmp_path,
        env=environment(TMPDIR=str(tmp_path)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    while b"task_create" not in process.stdout.readline():
        pass
    process.stdout.close()
    errors = process.stderr.read()
    process.stderr.close()
    assert (process.wait(PATIENCE), errors) == (141, b"")
    if exists:
        log = (tmp_path / "here" / "server.log").read_text(encoding="utf-8")
        assert "6/6" in log, "the server came to its end"
    else:
        assert list(tmp_path.iterdir()) == []
