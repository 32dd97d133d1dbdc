"""`colibri verify`: its verdicts on logs, parts of them, copies and bundles; its exit codes."""

import importlib
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

import colibri_verify
from colibri import cli
from colibri.cli.show import verdict
from colibri.core import checkpoint
from colibri.core.checkpoint import Checkpoint
from colibri.core.report import LINE_OF
from colibri.store import log_tree
from colibri.store import verify as check
from colibri.store.sqlite.opening import open_reader
from tests.support.client import COLIBRI as SERVE
from tests.support.client import PATIENCE, TESTS, Server, environment, execute, execute_raw
from tests.support.ledger_reader import create
from tests.support.ledger_writer import Lab, opened
from tests.support.program import colibri, database_of, head_of, inside, tamper
from tests.support.terminal import COLIBRI, TYPED, run_in_terminal

JSON = dict[str, Any]
VERIFIER = TESTS.parent / "src" / "colibri_verify.py"
VECTORS = TESTS / "vectors"
NO_HEX = "ab" * 32
Capture = pytest.CaptureFixture[str]


def judged(project: Path, capsys: Capture, *arguments: str) -> tuple[int, JSON]:
    """The verdict, asked for in this process."""
    code = cli.main(["verify", "--json", "--project", str(project), *arguments])
    found: JSON = json.loads(capsys.readouterr().out)
    return code, found


def seal_and_head(project: Path) -> tuple[str, str]:
    with opened(project) as db:
        root: bytes = db.execute("SELECT root FROM sessions WHERE session_id = 'S-1'").get
    return f"5:{root.hex()}", head_of(database_of(project))


def checkpoint_of(project: Path, size: int) -> Checkpoint:
    with opened(project) as db:
        return log_tree.checkpoint(db, size)


# Good.


def test_a_good_log_is_reported_line_by_line(project: Path) -> None:
    """Each thing for itself, and what was not checked; exit 0."""
    _, head = seal_and_head(project)
    code, out, err = colibri(project, "verify")
    assert (code, err) == (0, "")
    assert [line.split(maxsplit=1) for line in out.splitlines() if "not checked" not in line] == [
        ["database", str(database_of(project))],
        ["log", "colibri/" + "0123456789abcdef" * 2],
        ["checked", "the whole log: 54 records"],
        ["head", head],
        ["intact", "yes"],
        ["complete", "yes, up to record 54; truncation would not show"],
        ["sealed", "1 of 2 sessions"],
        ["rules", "kept   yes"],
        ["rows", "yes"],
        ["witnessed", "none"],
        ["erased", "none"],
        ["open", "calls   none"],
        ["deeds", "none: no host reported what was done"],
        ["verdict", "GOOD, findings: 0"],
    ]
    unseen = [line for line in out.splitlines() if line.startswith("not checked")]
    named = ("truth:", "clock:", "arguments:", "pages:", "outside-head:", "outside-root:")
    assert tuple(line.split()[2] for line in unseen) == named


def test_an_outside_root_and_head_leave_no_note_about_them(project: Path, capsys: Capture) -> None:
    root, head = seal_and_head(project)
    for brought in ((root, head), (root.upper(), head.upper())):  # as mails and forms make them
        code, out, err = inside(capsys, "verify", "--root", brought[0], "--head", brought[1])
        assert (code, err) == (0, "")
        assert "outside-" not in out
        assert "\ncomplete     yes\n" in out
    assert "GOOD" in out


SHAPE = {
    *("format", "verdict", "reason", "database", "log", "session", "task", "records", "head"),
    *("lines", "sessions", "erased", "erased_count", "open_calls", "open_call_count"),
    *("coverage", "unrecorded"),
    *("witnesses", "held_to", "newer", "held", "remarks"),
    *("findings", "finding_count", "not_checked"),
}


def test_a_checkpoint_that_was_given_holds_the_log(
    project: Path, capsys: Capture, tmp_path: Path
) -> None:
    """Specification 9.15: in one line, as mails may have it, or as the file with its text."""
    kept = checkpoint_of(project, 50)
    note = tmp_path / "checkpoint"
    note.write_text(checkpoint.text(kept) + "\n— somebody c2lnbmF0dXJl\n", encoding="utf-8")
    for given in (checkpoint.trailer(kept), checkpoint.trailer(kept).upper(), str(note)):
        code, found = judged(project, capsys, "--checkpoint", given)
        assert (code, found["verdict"], found["lines"]["witnessed"]) == (0, "good", "yes")
        assert (found["held_to"], found["newer"]) == (50, 4)
        assert found["held"].startswith("held to record 50 by the checkpoint that you gave")


def test_a_checkpoint_that_the_log_does_not_have_is_named(project: Path, capsys: Capture) -> None:
    kept = checkpoint_of(project, 50)
    for given, says in (
        (kept._replace(root=bytes(32)), "the log has other records up to there"),
        (kept._replace(size=55), "the log ends at record 54"),
        (kept._replace(log="colibri/" + "0bad" * 8), "another log, colibri/0bad"),
    ):
        code, found = judged(project, capsys, "--checkpoint", checkpoint.trailer(given))
        (one,) = found["findings"]
        assert (code, one["code"]) == (1, "diverged")
        assert "the checkpoint that you gave" in one["detail"] and says in one["detail"]
        assert found["lines"]["witnessed"] == "no"


def test_what_is_no_checkpoint_is_explained(project: Path, tmp_path: Path) -> None:
    note = tmp_path / "checkpoint"
    note.write_bytes(b"\xff\xfe")
    for given, says in (
        ("54:" + NO_HEX, "LOG@SIZE:ROOT, the root in hex"),
        (str(tmp_path), "LOG@SIZE:ROOT, the root in hex"),
        (str(note), "no checkpoint: "),
    ):
        code, _, err = colibri(project, "verify", "--checkpoint", given)
        assert code == 2 and says in err and "Traceback" not in err
    line = checkpoint.trailer(checkpoint_of(project, 50))
    for part in (("--session", "S-1"), ("--task", "T-0001")):
        code, _, err = colibri(project, "verify", "--checkpoint", line, *part)
        assert code == 2 and "--checkpoint needs the whole log" in err


def test_the_json_has_one_shape_whatever_is_found(project: Path, capsys: Capture) -> None:
    no_records(project)
    for arguments, wanted in {
        (): "good",
        ("--session", "S-1"): "good",
        ("--task", "T-0001"): "good",
        ("--head", f"99:{NO_HEX}"): "bad",
        ("--project", "empty"): "cannot tell",
    }.items():
        code, found = judged(project, capsys, *arguments)
        assert set(found) == SHAPE
        assert set(found["lines"]) == set(verdict.LINES)
        assert (found["format"], found["verdict"]) == ("colibri-log-verdict/1", wanted)
        assert code == {"good": 0, "bad": 1, "cannot tell": 2}[wanted]
        for one in found["findings"]:
            assert set(one) == {"code", "seq", "detail", "meaning"}
        for one in found["not_checked"]:
            assert set(one) == {"code", "detail"}


def test_a_session_or_a_task_is_checked_alone(project: Path, capsys: Capture) -> None:
    code, found = judged(project, capsys, "--session", "S-1", "--root", seal_and_head(project)[0])
    assert (code, found["session"], found["records"]) == (0, "S-1", 38)
    assert found["sessions"] == {"sealed": 1, "open": 0}
    assert found["lines"]["sealed"] == "yes"
    assert [one["code"] for one in found["not_checked"]] == [
        *("truth", "clock", "arguments", "pages", "outside-head", "scope")
    ]
    code, found = judged(project, capsys, "--session", "S-2")
    assert (code, found["lines"]["sealed"], found["sessions"]["open"]) == (0, "open", 1)
    code, found = judged(project, capsys, "--task", "T-0001")
    assert (code, found["task"], found["records"]) == (0, "T-0001", 39)
    assert (found["lines"]["sealed"], found["erased"], found["open_calls"]) == (
        "not checked",
        None,
        None,
    )
    assert cli.main(["verify", "--project", str(project), "--task", "T-0001"]) == 0
    assert "checked      task T-0001: 39 records" in capsys.readouterr().out


def test_what_deeds_do_not_show_is_kept_apart_from_findings(project: Path, capsys: Capture) -> None:
    """Specification 19.6."""
    with opened(project) as db:
        lab = Lab(db)
        lab.deed(event="tool.begin", use="u-1", settings="a" * 64)
        begun = lab.head().seq
        lab.deed(event="tool.begin", lost=1, settings="b" * 64)
        lab.client = "h-1"
        lab.start("S-9")
        lab.deed(event="tool.begin", use="u-2", class_="edit", host_session="h-1", unjudged="host")
        lab.deed(use="u-2", class_="edit", host_session="h-1")
        lab.use = "u-3"
        unseen = lab.think("S-9").seq - 1
    code, out, _ = inside(capsys, "verify")
    assert code == 0
    assert [line.split(maxsplit=1)[1] for line in out.splitlines() if line.startswith("deeds")] == [
        "4 recorded",
        f"1 tool call began and did not end: {begun}",
        "1 tool call whose begin and end cannot be paired: no id, or no begin, was reported",
        f"1 call to Colibri not reported, though the host had reported before: {unseen}",
        "1 edit not judged by the rule for edits",
        "the settings of the hooks changed 1 time",
        "1 deed could not be kept",
        "no deed in 2 of 3 sessions",
    ]


def test_erased_payloads_and_open_calls_are_reported_as_facts(
    project: Path, capsys: Capture
) -> None:
    """Specification 9.8, 9.10: neither is a break, and neither is left out."""
    with opened(project) as db:
        lab = Lab(db)
        lab.erase(9)
        for _ in range(22):
            with lab.calling("task_get", ends=False):
                pass
        first = lab.seqs("call.enter")[-22]
    code, out, _ = inside(capsys, "verify")
    assert code == 0
    assert "erased       9\n" in out
    assert f"open calls   {first} (task_get, since 2026-01-01T00:00:00.000001Z), " in out
    assert ", 2 more\n" in out
    assert "not checked  erased: payloads that can no longer be read: 1 in all\n" in out


def test_servers_may_keep_writing(tmp_path: Path) -> None:
    with Server(tmp_path, SERVE) as server:
        server.data("audit_session_start", intent="try", session_id="mine")
        receipt = server.call("thought_record", session_id="mine", type="plan", content="so")[
            "_meta"
        ]["colibri/receipt"]
        code, out, err = colibri(
            tmp_path, "verify", "--json", "--head", f"{receipt['seq']}:{receipt['head']}"
        )
        assert (code, err) == (0, "")
        assert json.loads(out)["log"] == receipt["log"]
        assert server.close() == 0


def test_a_copy_of_the_database_is_verified_by_its_name(project: Path, capsys: Capture) -> None:
    """What colibri backup wrote can be checked where it lies."""
    assert inside(capsys, "backup", "copy.db")[0] == 0
    _, head = seal_and_head(project)
    code, out, _ = inside(capsys, "verify", "copy.db", "--head", head)
    assert code == 0
    assert "database     copy.db\n" in out


# Bad.


def test_every_damage_has_a_meaning_and_a_line() -> None:
    assert verdict.MEANINGS.keys() == LINE_OF.keys()
    assert {*LINE_OF.values()} == verdict.LINES.keys()


def test_the_verdicts_on_a_log_and_on_a_bundle_say_the_same_thing_in_the_same_words() -> None:
    """Lines, codes and what is not checked: who has read one of them can read the other."""
    assert [*verdict.LINES.items()][:-2] == [*colibri_verify.LINES.items()]
    shared = LINE_OF.keys() & colibri_verify.CODES.keys()
    assert {code: LINE_OF[code] for code in shared} == {
        code: colibri_verify.CODES[code][0] for code in shared
    }
    assert shared >= {"altered-header", "altered-payload", "wrong-order", "head-differs"}
    only_of_logs = {"pages", "everything"}
    assert verdict.NOTES.keys() - only_of_logs <= colibri_verify.NOTES.keys()


# What is done, and what is found: a code, its record, and the line that says no.
TAMPERINGS = (
    (
        "UPDATE ledger SET body = CAST(replace(body, 'it holds', 'it broke') AS BLOB)",
        "altered-payload 27 intact",
    ),
    ("UPDATE ledger SET agent = 'bob' WHERE agent = 'ada'", "altered-header 8 intact"),
    ("DELETE FROM ledger WHERE seq = 20", "missing-record 20 complete"),
    ("UPDATE ledger SET nonce = NULL, body = NULL WHERE seq = 9", "missing-payload 9 complete"),
    ("UPDATE tasks SET title = 'something nobler'", "altered-task - rows"),
    ("UPDATE sessions SET intent = 'x' WHERE session_id = 'S-1'", "altered-session - rows"),
    ("DROP TABLE merkle_nodes", "foreign-schema - rows"),
    ("DELETE FROM meta", "damaged-file - intact"),
    ("DELETE FROM ledger", "altered-task - rows"),
)


@pytest.mark.parametrize(("statement", "told"), TAMPERINGS)
def test_tampering_is_named_and_explained(
    project: Path, capsys: Capture, statement: str, told: str
) -> None:
    """Exit 1; the first break with its place, and what it means in plain words."""
    what, at, line = told.split()
    seq = None if at == "-" else int(at)
    tamper(database_of(project), statement)
    code, found = judged(project, capsys)
    first = found["findings"][0]
    assert (code, found["verdict"]) == (1, "bad")
    assert (first["code"], first["seq"], found["lines"][line]) == (what, seq, "no")
    assert cli.main(["verify", "--project", str(project)]) == 1
    out = capsys.readouterr().out
    place = "" if seq is None else f" at record {seq}"
    assert f"found        {what}{place}: " in out
    assert f"             = {verdict.MEANINGS[what]}\n" in out
    assert out.splitlines()[-1].startswith("verdict      BAD, findings: ")


RULES: dict[str, tuple[Callable[[Lab], object], str, str]] = {
    "a task moved on while another is open": (
        lambda lab: lab.forge(
            "task",
            {
                "task_id": "T-0001",
                "version": 8,
                "attempt": 1,
                "set": {"status": ["DONE", "GATHER"]},
            },
            task="T-0001",
        ),
        "change-after-end",
        "rules",
    ),
    "a thought after the seal": (
        lambda lab: lab.forge(
            "thought",
            {"thought_id": "R-55", "index": 5, "type": "plan", "content": "-", "prev": "0" * 64},
            session="S-1",
        ),
        "thought-after-seal",
        "sealed",
    ),
}


@pytest.mark.parametrize(("forge", "what", "line"), RULES.values(), ids=RULES.keys())
def test_records_that_break_the_rules_are_named(
    project: Path, capsys: Capture, forge: Callable[[Lab], object], what: str, line: str
) -> None:
    """The chain is intact: who wrote them had the means to."""
    with opened(project) as db:
        forge(Lab(db))
    code, found = judged(project, capsys)
    assert (code, found["lines"]["intact"], found["lines"][line]) == (1, "yes", "no")
    assert what in [one["code"] for one in found["findings"]]


def test_what_rests_on_damaged_records_is_not_checked(project: Path, capsys: Capture) -> None:
    tamper(database_of(project), "DELETE FROM ledger WHERE seq = 20")
    _, found = judged(project, capsys)
    assert found["lines"] == dict.fromkeys(verdict.LINES, "not checked") | {"complete": "no"}


def test_of_many_breaks_the_first_are_shown_and_the_rest_counted(
    project: Path, capsys: Capture
) -> None:
    tamper(database_of(project), "UPDATE ledger SET at = 'then'")
    assert cli.main(["verify", "--project", str(project)]) == 1
    out = capsys.readouterr().out
    assert out.count("found   ") == 20
    assert out.count(verdict.MEANINGS["altered-header"]) == 1
    assert "             and 3" in out


def test_a_truncated_tail_is_detected_with_a_head(project: Path, capsys: Capture) -> None:
    """Without one it cannot be detected, and the verdict says so."""
    _, head = seal_and_head(project)
    tamper(database_of(project), "DELETE FROM ledger WHERE seq > 52")
    code, found = judged(project, capsys)
    assert (code, "outside-head" in [note["code"] for note in found["not_checked"]]) == (0, True)
    code, out, _ = inside(capsys, "verify", "--head", head)
    assert code == 1
    assert "found        truncated at record 53: record 54 was seen" in out
    assert "= the log was truncated, or rolled back to an older copy" in out


def test_a_rewritten_log_is_detected_with_a_head_or_a_root(project: Path, capsys: Capture) -> None:
    root, head = seal_and_head(project)
    code, found = judged(project, capsys, "--head", f"54:{NO_HEX}")
    assert (code, found["findings"][0]["code"], found["findings"][0]["seq"]) == (
        1,
        "head-differs",
        54,
    )
    code, found = judged(project, capsys, "--root", NO_HEX)
    assert (code, found["findings"][0]["code"]) == (1, "root-differs")
    assert [line for line, state in found["lines"].items() if state == "no"] == ["sealed"]
    code, found = judged(project, capsys, "--root", root, "--session", "S-2")
    assert (code, found["findings"][0]["code"]) == (1, "root-differs")
    code, found = judged(project, capsys, "--head", head, "--root", root)
    assert (code, found["findings"]) == (0, [])


def test_a_truncated_file_is_bad(project: Path, capsys: Capture) -> None:
    db = open_reader(str(database_of(project)))
    page: int = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'ledger'").get
    db.close()
    with database_of(project).open("r+b") as file:
        file.seek((page - 1) * 4_096)
        file.write(b"\xff" * 64)
    code, found = judged(project, capsys)
    assert (code, found["lines"]["intact"]) == (1, "no")
    assert [one["code"] for one in found["findings"]] == ["damaged-file"]


def test_stored_text_cannot_reach_the_terminal_raw(project: Path) -> None:
    tamper(
        database_of(project), "UPDATE sessions SET session_id = 'S\x1b[2J' WHERE session_id = 'S-2'"
    )
    code, shown = run_in_terminal([*COLIBRI, "verify"], cwd=project, env=environment())
    assert code == 1
    assert "S\\x1b[2J" in shown
    assert "\x1b[2J" not in shown


def test_on_a_terminal_the_verdict_is_in_colour(project: Path) -> None:
    command, env = [*COLIBRI, "verify"], environment(NO_COLOR="")
    code, shown = run_in_terminal(command, cwd=project, env=env, columns=200)
    assert code == 0
    assert "\x1b[1;38;5;28mverdict      GOOD" in shown
    tamper(database_of(project), "DELETE FROM ledger WHERE seq = 20")
    code, shown = run_in_terminal(command, cwd=project, env=env, columns=200)
    assert code == 1
    assert "\x1b[38;5;196mfound        missing-record at record 20: 20" in shown
    assert "\x1b[1;38;5;196mverdict      BAD" in shown


WHOLE = ("database ", "log ", "head ")  # to be copied, so that the terminal breaks them


@pytest.mark.parametrize("columns", [40, 60])
def test_a_narrow_terminal_breaks_no_word(project: Path, columns: int) -> None:
    """The log's verdict and a bundle's."""
    good = VECTORS / "good" / "session-with-tasks.colibri.json"
    for arguments, said in (
        ([], "not checked outside-head: a truncated or rewritten log, which only a head reveals"),
        (
            [str(good)],
            "whether a call's answer, and arguments other than texts, fit what it recorded",
        ),
    ):
        code, shown = run_in_terminal(
            [*COLIBRI, "verify", *arguments], cwd=project, env=environment(), columns=columns
        )
        assert code == 0
        text = re.sub(r"\x1b\[[0-9;]*m", "", shown)
        wide = [line for line in text.splitlines() if len(line) > columns]
        assert [line for line in wide if not line.startswith(WHOLE)] == []
        assert said in " ".join(text.split())
        assert re.search(r"\nnot checked  truth: .*\n {13}\S", text), "under its own column"


# Cannot tell.


def no_records(project: Path) -> list[str]:
    with opened(project / "empty"):
        pass
    return ["--project", "empty"]


def test_nothing_to_check_is_never_good(project: Path, capsys: Capture) -> None:
    """Exit 2: it cannot be told."""
    code, out, err = inside(capsys, "verify", *no_records(project))
    assert code == 2
    assert out.endswith(
        "not checked  everything: nothing was checked\nverdict      CANNOT TELL, findings: 0\n"
    )
    assert "intact       not checked\n" in out
    assert err == "colibri: error: the log holds no records: there is nothing to check\n"


NOTHING: dict[str, tuple[list[str], str, int]] = {
    "no database": (["--project", "empty"], "there is no database at ", 75),
    "an unknown session": (["--session", "S-9"], "there is no session S-9\n", 1),
    "an unknown task": (["--task", "T-9999"], "there is no task T-9999\n", 1),
}


@pytest.mark.parametrize(("arguments", "why", "wanted"), NOTHING.values(), ids=NOTHING)
def test_what_is_missing_is_reported_as_by_every_other_command(
    project: Path, arguments: list[str], why: str, wanted: int
) -> None:
    (project / "empty").mkdir()
    other = ["trail", arguments[1]] if wanted == 1 else ["trail", *arguments]
    code, out, err = colibri(project, "verify", *arguments, "--json")
    assert (code, out) == (wanted, "")
    assert err.startswith(f"colibri: error: {why}")
    code, _, others = colibri(project, *other)
    assert (code, others.replace("session or task", why.split()[3])[:40]) == (wanted, err[:40])
    assert "audit_session_start" not in err
    assert ("colibri sessions" in err) == ("--session" in arguments)


def test_a_database_of_a_newer_colibri_is_a_missing_resource(project: Path) -> None:
    tamper(database_of(project), "PRAGMA user_version = 99")
    code, out, err = colibri(project, "verify")
    assert (code, out) == (75, "")
    assert "has schema version 99" in err


def test_an_empty_log_fails_against_a_known_head(project: Path, capsys: Capture) -> None:
    no_records(project)
    code, found = judged(project / "empty", capsys, "--head", f"3:{NO_HEX}")
    assert (code, found["findings"][0]["code"]) == (1, "truncated")


def test_a_database_that_cannot_be_read_now_is_neither_good_nor_bad(
    project: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise apsw.IOError("disk I/O error")

    monkeypatch.setattr(check, "verify", fail)
    code, found = judged(project, capsys)
    assert (code, found["verdict"], found["findings"]) == (2, "cannot tell", [])
    assert "disk I/O error" in found["reason"]


def test_a_wrong_configuration_is_exit_73(project: Path) -> None:
    assert colibri(project, "verify", COLIBRI_MODE="LOUD")[0] == 73


# Bundles.


def by_itself(*arguments: object) -> tuple[int, str]:
    """The verifier alone."""
    command = [sys.executable, "-I", "-S", str(VERIFIER), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    return done.returncode, done.stdout


BUNDLES = {
    "good": (VECTORS / "good" / "session-with-tasks.colibri.json", 0),
    "bad": (VECTORS / "bad" / "task-done-without-thought.colibri.json", 1),
    "unclear": (VECTORS / "unclear" / "version-3.colibri.json", 2),
}


@pytest.mark.parametrize(("path", "wanted"), BUNDLES.values(), ids=BUNDLES.keys())
def test_a_bundle_is_judged_by_the_independent_verifier(
    tmp_path: Path, capsys: Capture, path: Path, wanted: int
) -> None:
    """Its verdict as it is, its exit code too; no project is needed."""
    code, out = by_itself(path)
    assert code == wanted
    assert cli.main(["verify", str(path)]) == code
    assert capsys.readouterr() == (out, "")
    assert cli.main(["verify", str(path), "--json"]) == code
    assert json.loads(capsys.readouterr().out) == json.loads(by_itself(path, "--json")[1])


def a_report(project: Path) -> str:
    assert colibri(project, "report", "S-1", "-o", "report.html")[0] == 0
    return "report.html"


def a_database_of_others(project: Path) -> str:
    tamper(project / "foreign.db", "CREATE TABLE t (x)")
    return "foreign.db"


def some_json(project: Path) -> str:
    (project / "package.json").write_text('{"name": "x"}')
    return "package.json"


NO_BUNDLES: dict[str, tuple[Callable[[Path], str], str]] = {
    "missing": (lambda _: "gone.json", "there is no file gone.json"),
    "a directory": (lambda _: "data", "data is a directory"),
    "a report": (a_report, "report.html is a web page, not a bundle: a report checks"),
    "other JSON": (some_json, "package.json is not an evidence bundle"),
    "another program's database": (a_database_of_others, "foreign.db is the database of another"),
    "unreadable": (lambda _: "/proc/self/mem", "cannot read /proc/self/mem: "),
}


@pytest.mark.parametrize(("make", "why"), NO_BUNDLES.values(), ids=NO_BUNDLES)
def test_a_file_that_is_not_a_bundle_is_explained_in_plain_words(
    project: Path, make: Callable[[Path], str], why: str
) -> None:
    """Exit 2, one error and what to do: no table of what was not checked, no errno."""
    if "/proc/" in why and not Path("/proc/self/mem").exists():
        pytest.skip("a file that even root cannot read: Linux")
    code, out, err = colibri(project, "verify", make(project))
    assert (code, out) == (2, "")
    error, hint = err.splitlines()
    assert error.startswith(f"colibri: error: {why}")
    assert hint.startswith("colibri: hint: ")
    assert "Errno" not in err
    if "report" in why:
        assert "colibri export --session ID -o FILE writes a bundle" in hint


def test_a_bundle_through_the_front_door_with_root_and_head(project: Path, capsys: Capture) -> None:
    root, head = seal_and_head(project)
    assert inside(capsys, "export", "--all", "-o", "log.colibri.json")[0] == 0
    outside = ["--root", root, "--head", head]
    code, out, err = colibri(project, "verify", "log.colibri.json", *outside)
    assert (code, err) == (0, "")
    assert out == by_itself(project / "log.colibri.json", *outside)[1]
    code, out, _ = inside(capsys, "verify", "log.colibri.json", "--root", NO_HEX)
    assert (code, "root-differs" in out) == (1, True)
    code, out, _ = inside(capsys, "verify", "log.colibri.json", "--head", f"99:{NO_HEX}")
    assert (code, "truncated" in out) == (1, True)


def test_a_bundle_is_compared_with_a_checkpoint(capsys: Capture, project: Path) -> None:
    """One that the log of the bundle got after the session had ended."""
    index = json.loads((VECTORS / "index.json").read_bytes())
    name = "good/checkpoint-session-given.colibri.json"
    (published,) = (one["checkpoint"] for one in index if one["file"] == name)
    line = "{log}@{size}:{root}".format(**published)
    for given, code in ((line, 0), (line[:-64] + NO_HEX, 1)):
        found = judged(project, capsys, str(VECTORS / name), "--checkpoint", given)
        assert (found[0], len(found[1]["findings"])) == (code, code)


def test_a_bundle_may_come_through_a_pipe(project: Path) -> None:
    """colibri export … -o - | colibri verify /dev/stdin"""
    script = f"{TYPED} export --all -o - 2>/dev/null | {TYPED} verify /dev/stdin"
    done = execute(["sh", "-c", script], cwd=project)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("verdict      GOOD, findings: 0\n")


def test_a_bundle_too_large_for_the_memory_is_not_judged(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def exhaust(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr(importlib.import_module("colibri_verify"), "verify", exhaust)
    (tmp_path / "x").write_text("{}")
    assert cli.main(["verify", str(tmp_path / "x")]) == 2
    assert "there is not enough memory to check" in capsys.readouterr().err


# Progress, and being interrupted.


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three slices."""
    project = tmp_path_factory.mktemp("large")
    create(project / "data" / "colibri.db", 20_002)
    return project


IMPATIENT = "from colibri.cli.show import progress; progress.EVERY = 0\n"
MAIN = "from colibri.__main__ import main; main()"
PROGRAM = [sys.executable, "-c", IMPATIENT + MAIN, "verify"]


def test_a_terminal_sees_how_far_it_is_and_then_only_the_verdict(large: Path) -> None:
    """Records a second, and what is left; the line is wiped when it is done."""
    code, shown = run_in_terminal(PROGRAM, cwd=large, env=environment())
    assert code == 0
    assert "verifying [###########.............] 10,000 of 20,002 records, " in shown
    assert "/s, 0 s left" in shown
    *_, before, after = shown.partition("database  ")[0].split("\r")
    assert (before.strip(), after) == ("", "")


def test_a_narrow_terminal_gets_a_shorter_line(large: Path) -> None:
    _, shown = run_in_terminal(PROGRAM, cwd=large, env=environment(), columns=40)
    progress = shown.partition("database  ")[0].split("\r")
    assert max(map(len, progress)) == 39


def test_a_pipe_sees_no_progress(large: Path) -> None:
    done = execute_raw(PROGRAM, cwd=large)
    assert (done.returncode, done.stderr) == (0, b"")


# A real signal after the first slice. Whoever runs tests in the background has it ignored.
INTERRUPTED = """
import os, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from colibri.cli.show.progress import Bar
real = Bar.slice
def slice(self):
    real(self)
    os.kill(os.getpid(), signal.SIGINT)
Bar.slice = slice
"""


def test_an_interrupt_says_how_far_it_came_and_claims_nothing(large: Path) -> None:
    done = execute_raw([sys.executable, "-c", INTERRUPTED + MAIN, "verify"], cwd=large)
    assert (done.returncode, done.stdout) == (130, b"")
    assert done.stderr == (
        b"colibri: error: interrupted after about 10,000 of 20,002 records: there is no verdict\n"
    )


def test_ctrl_c_on_a_terminal_leaves_a_clean_line(large: Path) -> None:
    program = [sys.executable, "-c", IMPATIENT + INTERRUPTED + MAIN, "verify"]
    code, shown = run_in_terminal(program, cwd=large, env=environment())
    assert code == 130
    assert "GOOD" not in shown
    assert shown.rpartition("\r")[2].startswith("colibri: error: interrupted after about 10,000")
