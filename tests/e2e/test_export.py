"""`colibri export`: what it writes, what it prints, and its exit codes."""

import json
import os
import re
import signal
import stat
import subprocess
import sys
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest

from colibri.store.sqlite.connection import connect
from tests.support.client import COLIBRI, PATIENCE, TESTS, Server, environment, execute_raw
from tests.support.ledger_writer import Lab, disable_triggers, opened, without_constraints
from tests.support.program import INTERRUPTIBLE, UNMEASURED, colibri, tell_story
from tests.support.terminal import COLIBRI as PROGRAM
from tests.vectors.builder import bundle_from, seals

JSON = dict[str, Any]
# The system's Python, as a receiver has it: without Colibri's environment.
PYTHON = "python3" if sys.prefix != sys.base_prefix else sys.executable
VERIFIER = TESTS.parent / "src" / "colibri_verify.py"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return tell_story(tmp_path)


def export(project: Path, *arguments: str, **env: str) -> tuple[int, str, str]:
    return colibri(project, "export", *arguments, **env)


def bundle(path: Path) -> JSON:
    return bundle_from(path.read_bytes())


def root_of(project: Path) -> str:
    with opened(project) as db:
        root: bytes = db.execute("SELECT root FROM sessions WHERE session_id = 'S-1'").get
    return f"5:{root.hex()}"


def files(project: Path) -> list[str]:
    return sorted(path.name for path in project.iterdir())


SCOPES = {
    "session": (["--session", "S-1"], {"session": "S-1"}, 43, 0),
    "task": (["--task", "T-0001"], {"task": "T-0001"}, 43, 5),
    "all": (["--all"], None, 54, 0),
    "thoughts": (["--thought", "R-30", "R-9"], {"thoughts": "S-1"}, 3, 2),
}


@pytest.mark.parametrize(("what", "scope", "records", "proofs"), SCOPES.values(), ids=SCOPES)
def test_each_scope_is_written_to_a_file_and_reported(
    project: Path, what: list[str], scope: JSON | None, records: int, proofs: int
) -> None:
    """colibri export (--session ID | --all | --thought ID…) -o FILE."""
    code, out, err = export(project, *what, "-o", "out.colibri.json")
    made = bundle(project / "out.colibri.json")
    assert (code, err) == (0, "")
    assert (made["scope"], len(made["headers"]), len(made["proofs"])) == (scope, records, proofs)
    size = (project / "out.colibri.json").stat().st_size
    seq, leaf = made["head"]["seq"], made["head"]["leaf"]
    outside = f"--root {root_of(project)}" if scope else f"--head {seq}:{leaf}"
    assert out.splitlines() == [
        f"wrote out.colibri.json: {records} records, {size:,} bytes",
        "sealed S-1",
        f"root   {root_of(project)}",
        f"head   {seq}:{leaf}",
        "judged GOOD by the independent verifier",
        f"check  {PYTHON} {VERIFIER} {project / 'out.colibri.json'} {outside}",
    ]
    check = out.splitlines()[-1].removeprefix("check  ")
    done = subprocess.run(["sh", "-c", check], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"outside-{'root' if scope else 'head'}" not in done.stdout
    assert files(project) == ["data", "out.colibri.json"]


@pytest.mark.parametrize(("what", "scope", "records", "_"), SCOPES.values(), ids=SCOPES)
def test_with_json_it_says_the_same_for_programs(
    project: Path, what: list[str], scope: JSON | None, records: int, _: int
) -> None:
    """Style S12: stdout is data."""
    code, out, err = export(project, *what, "-o", "out", "--json")
    made = bundle(project / "out")
    assert (code, err) == (0, "")
    assert json.loads(out) == {
        "file": "out",
        "bytes": (project / "out").stat().st_size,
        "records": records,
        "session": (scope or {}).get("session", (scope or {}).get("thoughts")),
        "task": (scope or {}).get("task"),
        "roots": [{"session": "S-1", "root": root_of(project)}],
        "head": made["head"],
        "checkpoint": None,
        "verdict": "good",
    }


@pytest.mark.parametrize("extra", [[], ["--json"]])
def test_on_stdout_there_is_the_bundle_and_nothing_else(project: Path, extra: list[str]) -> None:
    """Style S12: words go to stderr."""
    code, out, err = export(project, "--session", "S-1", "-o", "-", *extra)
    assert code == 0
    assert bundle_from(out.encode())["scope"] == {"session": "S-1"}
    if extra:
        assert json.loads(err)["file"] == "-"
    else:
        assert err.startswith("wrote -: 43 records")
    assert files(project) == ["data"]


def test_only_its_owner_can_read_it_and_what_it_says_to_type_checks_it(project: Path) -> None:
    """Evidence may hold private text."""
    code, out, _ = export(project, "--all", "-o", "real")
    assert (code, stat.S_IMODE((project / "real").stat().st_mode)) == (0, 0o600)
    command = out.splitlines()[-1].removeprefix("check  ")
    done = execute_raw(["sh", "-c", command], cwd="/")
    assert (done.returncode, done.stderr) == (0, b"")


def test_what_no_seal_covers_is_checked_by_the_head_and_of_many_roots_a_few_are_shown(
    tmp_path: Path,
) -> None:
    """An open session has no root yet; --json lists all of them."""
    with Server(tmp_path, COLIBRI) as server:
        for number in range(7):
            server.data("audit_session_start", intent="try", session_id=f"s{number}")
            server.data("thought_record", session_id=f"s{number}", type="plan", content="so")
            if number:
                server.data("merkle_finalize", session_id=f"s{number}")
    code, out, _ = export(tmp_path, "--session", "s0", "-o", "open")
    assert (code, "root  " in out, " --head " in out) == (0, False, True)
    code, out, _ = export(tmp_path, "--all", "-o", "all")
    assert (code, out.count("\nroot   ")) == (0, 5)
    assert "\n       and 1 more; --json names them\nhead   " in out
    code, out, _ = export(tmp_path, "--all", "-o", "all", "--force", "--json")
    assert [one["session"] for one in json.loads(out)["roots"]] == [f"s{n}" for n in range(1, 7)]


def test_a_file_that_exists_is_replaced_only_by_force(project: Path) -> None:
    (project / "out").write_text("mine")
    code, out, err = export(project, "--all", "-o", "out")
    assert (code, out) == (1, "")
    assert err == (
        "colibri: error: out already exists\ncolibri: hint: name another file, or add --force\n"
    )
    assert (project / "out").read_text() == "mine"
    assert export(project, "--all", "-o", "out", "--force")[0] == 0
    assert bundle(project / "out")["format"] == "colibri-bundle/2"


REFUSALS = {
    "an unknown session": (["--session", "S-9"], "there is no session S-9"),
    "a session with path characters": (["--session", "../S-1"], "there is no session ../S-1"),
    "an unknown task": (["--task", "T-0002"], "there is no task T-0002"),
    "an unknown thought": (["--thought", "R-999"], "there is no thought R-999, and no record 999"),
    "another record": (
        ["--thought", "R-9", "R-10"],
        "R-10 is not a thought: record 10 is a call.exit",
    ),
    "thoughts of two sessions": (
        ["--thought", "R-9", "R-48"],
        "these thoughts belong to several sessions: R-9 to S-1, R-48 to S-2",
    ),
    "a thought of an open session": (["--thought", "R-48"], "session S-2 is open"),
}


@pytest.mark.parametrize(("what", "why"), REFUSALS.values(), ids=REFUSALS.keys())
def test_an_unknown_session_or_thought_is_not_exported(
    project: Path, what: list[str], why: str
) -> None:
    """Exit 1: the session or thought does not exist; nothing is written."""
    code, out, err = export(project, *what, "-o", "out")
    assert (code, out) == (1, "")
    assert err.startswith("colibri: error: ")
    assert why in err
    assert "colibri: hint: " in err
    assert not re.search("audit_|merkle_|thought_record", err), "people do not call tools"
    assert files(project) == ["data"]


def test_an_empty_log_is_not_exported(tmp_path: Path) -> None:
    """A bundle without records would prove nothing."""
    with opened(tmp_path):
        pass
    code, _, err = export(tmp_path, "--all", "-o", "out")
    assert (code, files(tmp_path)) == (1, ["data"])
    assert "nothing to export" in err


def test_a_place_that_cannot_be_written_is_a_missing_resource(project: Path) -> None:
    """Exit 75: resource."""
    code, _, err = export(project, "--all", "-o", "nowhere/out")
    assert code == 75
    assert err.startswith("colibri: error: cannot write nowhere/out: No such file or directory\n")


def test_only_a_file_is_ever_replaced(project: Path) -> None:
    """Not a directory or a device: root with --force would turn /dev/null into a file."""
    (project / "folder").mkdir()
    os.mkfifo(project / "pipe")
    for name, what in (("folder", "a directory"), ("pipe", "not a regular file")):
        code, _, err = export(project, "--all", "-o", name, "--force")
        assert (code, err.splitlines()[0]) == (1, f"colibri: error: {name} is {what}")
    (project / "pipe").unlink()
    assert files(project) == ["data", "folder"]


def test_without_a_database_nothing_is_made(tmp_path: Path) -> None:
    code, _, err = export(tmp_path, "--all", "-o", "out")
    assert code == 75
    assert "there is no database at" in err
    assert "colibri: hint: " in err
    assert files(tmp_path) == []


def test_a_wrong_configuration_is_exit_73(project: Path) -> None:
    code, _, err = export(project, "--all", "-o", "out", COLIBRI_MODE="LOUD")
    assert code == 73
    assert "COLIBRI_MODE" in err


def test_another_project_can_be_named(
    project: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    code, _, _ = export(elsewhere, "--all", "-o", "out", "--project", str(project))
    assert (code, files(elsewhere)) == (0, ["out"])


UNFIT = {
    "a column that is none": "UPDATE ledger SET at = NULL WHERE seq = 3",
    "a column that is no text": "UPDATE ledger SET agent = CAST(x'ff' AS TEXT) WHERE seq = 3",
    "a payload beyond all bounds": "UPDATE ledger SET body = zeroblob(13000000) WHERE seq = 3",
}


@pytest.mark.parametrize("damage", UNFIT.values(), ids=UNFIT)
@pytest.mark.parametrize("command", [["export", "--all"], ["export", "--session", "S-1"]])
def test_a_bundle_that_no_verifier_accepts_is_not_written(
    project: Path, damage: str, command: list[str]
) -> None:
    """Exit 75, and no file is left."""
    without_constraints(project / "data" / "colibri.db", damage)
    code, out, err = colibri(project, *command, "-o", "out")
    assert (code, out, files(project)) == (75, "", ["data"])
    assert err.startswith("colibri: error: no server writes records like 3\n")


def test_a_reader_that_goes_away_causes_no_traceback(project: Path) -> None:
    process = subprocess.Popen(
        [*PROGRAM, "export", "--all", "-o", "-"],
        cwd=project,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    errors = process.stderr.read()
    process.stderr.close()
    assert (process.wait(PATIENCE), errors) == (141, b"")


def test_an_interrupted_export_leaves_no_file(tmp_path: Path) -> None:
    """Ctrl-C: a file gets its name when it is complete; an incomplete one is removed."""
    with opened(tmp_path) as db:
        lab = Lab(db)
        lab.start()
        with lab.calling("filler", ends=False) as call:
            payload: JSON = {"seqs": [], "reason": "x" * 2_000}
            for _ in range(15_000):
                call.append("erasure", payload)
    for _ in range(10):  # on a busy machine it may finish before the signal comes
        process = subprocess.Popen(
            [*INTERRUPTIBLE, "export", "--all", "-o", "out"],
            cwd=tmp_path,
            env=environment(**UNMEASURED),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        while files(tmp_path) == ["data"]:
            assert process.poll() is None, process.communicate()
        os.kill(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE)
        if process.returncode:
            break
        (tmp_path / "out").unlink()
    assert (process.returncode, out) == (130, b"")
    assert err == b"colibri: error: interrupted\n"
    assert files(tmp_path) == ["data"]


def test_a_running_server_is_exported_as_well(tmp_path: Path) -> None:
    """The database is only read; servers may keep writing meanwhile."""
    with Server(tmp_path, COLIBRI) as server:
        server.data("audit_session_start", intent="try", session_id="mine")
        thought = server.data("thought_record", session_id="mine", type="plan", content="so")
        sealed = server.data("merkle_finalize", session_id="mine")
        code, out, _ = export(tmp_path, "--thought", thought["thought_id"], "-o", "out", "--json")
        assert code == 0
        made = bundle(tmp_path / "out")
        (seq,) = seals(made)
        seal = json.loads(b64decode(made["payloads"][str(seq)]["body"]))
        assert f"1:{seal['root']}" == sealed["root"] == f"1:{thought['hash']}"
        assert json.loads(out)["head"]["seq"] == seq
        assert server.data("audit_verify_chain")["valid"]
        assert server.close() == 0


@pytest.mark.parametrize("output", ["out", "-"])
def test_what_no_verifier_could_check_is_not_exported(project: Path, output: str) -> None:
    """The export is checked with the receiver's code before it gets its name or goes to stdout."""
    change(project, "UPDATE meta SET value = 'mine' WHERE key = 'log'")
    code, out, err = export(project, "--all", "-o", output)
    assert (code, out) == (1, "")
    assert err.startswith("colibri: error: no verifier can check this bundle: malformed-bundle: ")
    assert files(project) == ["data"]


def test_a_damaged_log_is_exported_and_reported_as_damaged(project: Path) -> None:
    """That is evidence too: its receiver sees what is wrong."""
    change(project, "UPDATE ledger SET at = '2026-01-01T00:00:00.000009Z' WHERE seq = 9")
    code, out, err = export(project, "--all", "-o", "out", "--json")
    assert (code, json.loads(out)["verdict"]) == (0, "bad")
    assert err.startswith("colibri: hint: the log itself is damaged; ")


def change(project: Path, statement: str) -> None:
    db = connect(str(project / "data" / "colibri.db"), "write")
    disable_triggers(db)
    db.execute(statement)
    db.close()
