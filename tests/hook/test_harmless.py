"""Specification 20.1: whatever happens, the host does not notice, and what is lost is counted."""

import json
import os
import pty
import random
import re
import shutil
import signal
import stat
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from colibri import config
from colibri.hook import lost, spool
from colibri.store.sqlite import opening
from colibri.store.sqlite.checkpoint import CHECKPOINT_PAGES
from tests.hook.conftest import HOOK, HURRIED, PATIENT, Project, Said
from tests.hook.fixtures import KEPT
from tests.support import mounts
from tests.support.program import UNMEASURED, colibri
from tests.support.strace import failing_copies, lengthen_log, requires_strace

Others = Callable[..., "subprocess.Popen[bytes]"]
# For root, rights on files count only without these capabilities.
DROPPED = "--bounding-set=-dac_override,-dac_read_search"
WITHOUT_PRIVILEGES = ("setpriv", DROPPED) if os.geteuid() == 0 else ()
STARTING = 2.0  # seconds that starting Python may take on a busy machine

HOLD = """
import sys, apsw
db = apsw.Connection(sys.argv[1])
db.execute("BEGIN IMMEDIATE")
print("ready", flush=True)
sys.stdin.read()
"""
HOLD_LOCK = """
import sys, fcntl
file = open(sys.argv[1], "r+b")
fcntl.flock(file, fcntl.LOCK_EX)
print("ready", flush=True)
sys.stdin.read()
"""


def run(project: Project, number: int = 0) -> None:
    """One hook, of which the host must not notice anything."""
    data = project.payload("claude-code", "PostToolUse.Bash", tool_use_id=f"use-{number}")
    said = project.send(data)
    assert (said.code, said.out, said.err) == (0, "", "")


def run_in_vain(project: Project, number: int = 0) -> None:
    """The same for one that finds the database held."""
    data = project.payload("claude-code", "PostToolUse.Bash", tool_use_id=f"use-{number}")
    said = project.send(data, program=HURRIED)
    assert (said.code, said.out, said.err) == (0, "", "")


def uses(project: Project) -> list[str]:
    return [deed["use"] for deed in project.records()]


def change(project: Project, statement: str) -> None:
    """Have another program change the database."""
    db = apsw.Connection(str(project.database))
    db.execute(statement)
    db.close()


# The ledger cannot be written.


def test_while_another_program_holds_the_database_deeds_wait(
    project: Project, others: Others
) -> None:
    """Specification 20.8: the next hook records them first, marked late, and empties the spool."""
    holder = others(HOLD, str(project.database))
    run_in_vain(project, 1)
    run_in_vain(project, 2)
    assert [one["deed"]["use"] for one in project.spooled()] == ["use-1", "use-2"]
    assert project.beside("-spool").stat().st_mode & 0o777 == 0o600
    holder.kill()
    holder.wait()
    run(project, 3)
    assert uses(project) == ["use-1", "use-2", "use-3"]
    late = [deed["late"] for deed in project.records()]
    assert late[0] is not None and late[0] < late[1]
    assert late[2] is None
    assert project.spooled() == []
    project.verify()


@pytest.mark.parametrize(("name", "limit"), [("PostToolUse.Bash", 2.0), ("SessionEnd.other", 0.7)])
def test_a_hook_waits_no_longer_than_it_may(
    project: Project, others: Others, name: str, limit: float
) -> None:
    """The end of a session waits less. Where time was too short even to spool, it is counted."""
    others(HOLD, str(project.database))
    said = project.send(project.payload("claude-code", name), program=HOOK)
    assert (said.code, said.out, said.err) == (0, "", "")
    assert len(project.spooled()) + project.lost() == 1
    assert said.seconds < limit + STARTING


def test_while_a_server_migrates_deeds_wait(project: Project, others: Others) -> None:
    """Specification 20.7: whoever holds the lock file alone keeps hooks out as it does servers."""
    others(HOLD_LOCK, str(project.beside(".lock")))
    run_in_vain(project)
    assert len(project.spooled()) == 1
    assert project.records() == []


@pytest.mark.parametrize(
    "statement",
    [
        "PRAGMA user_version = 99",
        "PRAGMA user_version = 2",
        "PRAGMA application_id = 7",
        "CREATE TABLE mine (x)",
        "CREATE TRIGGER t AFTER INSERT ON ledger BEGIN SELECT 1; END",
    ],
)
def test_a_database_that_is_not_as_this_version_made_it_is_not_written(
    project: Project, statement: str
) -> None:
    """Specification 20.7: a newer or older schema, another program's, one that was changed."""
    change(project, statement)
    before = project.database.read_bytes()
    run(project)
    assert project.database.read_bytes() == before
    assert len(project.spooled()) == 1


def test_a_database_that_is_gone_is_not_made_again(project: Project) -> None:
    """There was one, so the deeds wait for it."""
    project.database.unlink()
    run(project)
    assert not project.database.exists()
    assert len(project.spooled()) == 1
    project.make_ledger()
    run(project, 2)
    assert uses(project) == ["use-0", "use-2"]


def test_a_database_under_two_names_is_not_written(project: Project) -> None:
    """Specification 20.7."""
    os.link(project.database, project.beside(".second"))
    run(project)
    assert len(project.spooled()) == 1


def test_what_is_no_database_is_not_written(project: Project) -> None:
    project.database.write_bytes(b"not a database" * 1000)
    run(project)
    assert len(project.spooled()) == 1


def test_a_directory_in_place_of_the_database_is_left_as_it_is(project: Project) -> None:
    """Specification 20.7: what is reported waits for a database."""
    project.database.unlink()
    project.database.mkdir()
    (project.database / "kept").write_text("mine")
    run(project)
    assert [one.name for one in project.database.iterdir()] == ["kept"]
    assert len(project.spooled()) == 1


@pytest.mark.skipif(
    os.geteuid() == 0 and shutil.which("setpriv") is None, reason="root has rights to everything"
)
@pytest.mark.parametrize(("what", "waiting"), [("the database", 1), ("its directory", 0)])
def test_without_rights_to_the_ledger_the_host_notices_nothing(
    project: Project, what: str, waiting: int
) -> None:
    """Specification 20.7: what is reported waits where it can; rights are left as they are."""
    locked = project.database if what == "the database" else project.database.parent
    mode = stat.S_IMODE(locked.stat().st_mode)
    data = project.payload("claude-code", "PostToolUse.Bash")
    locked.chmod(0)
    try:
        said = project.send(data, program=(*WITHOUT_PRIVILEGES, *PATIENT))
        assert stat.S_IMODE(locked.stat().st_mode) == 0
    finally:
        locked.chmod(mode)
    assert (said.code, said.out, said.err) == (0, "", "")
    assert (len(project.spooled()), project.lost()) == (waiting, 1 - waiting)
    assert project.records() == []


def test_what_is_lost_in_a_read_only_directory_is_counted_in_the_state_directory(
    project: Project,
) -> None:
    """Specification 20.9: people learn of it at once, and the next deed tells of it."""
    with mounts.read_only(project.root):
        run(project)
        assert project.hook("claude-code", "SessionStart.startup") == ""
        assert (project.lost(), project.beside("-lost").exists()) == (2, False)
        for command in ("status", "verify", "doctor"):
            _, out, _ = colibri(project.root, command)
            assert "2 deeds could not be kept" in " ".join(out.split())
    assert (project.records(), project.spooled()) == ([], [])
    run(project, 3)
    assert [deed["lost"] for deed in project.records()] == [2]
    assert project.lost() == 0
    assert "could not be kept; the next" not in colibri(project.root, "verify")[1]


def test_on_a_full_disk_what_is_lost_is_counted_and_the_next_deed_tells(
    bare_project: Project,
) -> None:
    """Specification 20.9."""
    with mounts.small_disk(bare_project.root / "data", "2m"):
        bare_project.make_ledger()
        run(bare_project, 1)
        filler = bare_project.root / "data" / "filler"
        with filler.open("wb", buffering=0) as file:
            try:
                while file.write(b"x" * 4096):
                    pass
            except OSError:
                pass
        for number in range(2, 12):
            run(bare_project, number)
        lost = bare_project.lost()
        waiting = len(bare_project.spooled())
        kept = len(bare_project.records())
        assert kept + waiting + lost == 11
        assert lost > 0
        filler.unlink()
        run(bare_project, 20)
        found = bare_project.records()
        assert sum(deed["lost"] for deed in found) == lost
        assert len(found) == kept + waiting + 1
        assert bare_project.lost() == 0
        bare_project.verify()


# The server takes in what waits.


def test_a_server_takes_in_the_spool_when_it_starts(project: Project, others: Others) -> None:
    """Specification 20.8: once, even if the spool comes back as after a crash; and what is lost."""
    holder = others(HOLD, str(project.database))
    run_in_vain(project, 1)
    holder.kill()
    holder.wait()
    spooled = project.beside("-spool").read_bytes()
    project.beside("-spool").write_bytes(spooled + b"{no JSON}\n" + b'{"deed": {}}\n')
    lost.add(config.load(str(project.root)), 3)
    with project.server() as server:
        server.data("task_list")
    assert "waited in" in server.stderr
    (deed,) = project.records()
    assert (deed["use"], deed["lost"]) == ("use-1", 3)
    assert deed["late"] is not None
    assert (project.spooled(), project.lost()) == ([], 2)
    project.beside("-spool").write_bytes(spooled)
    with project.server() as server:
        server.data("task_list")
    assert uses(project) == ["use-1"]
    run(project, 2)
    assert [deed["lost"] for deed in project.records()] == [3, 2]
    project.verify()


def test_a_hook_leaves_a_large_spool_to_the_server(project: Project, others: Others) -> None:
    """Specification 20.8."""
    holder = others(HOLD, str(project.database))
    run_in_vain(project, 1)
    holder.kill()
    holder.wait()
    line = project.spooled()[0]
    many = [
        {**line, "call": f"{number:08x}-0000-4000-8000-000000000000"}
        | {"deed": {**line["deed"], "use": f"many-{number}"}}
        for number in range(400)
    ]
    text = "".join(json.dumps(one) + "\n" for one in many)
    assert len(text) > spool.SMALL
    project.beside("-spool").write_text(text)
    run(project, 2)
    assert uses(project) == ["use-2"]
    with project.server() as server:
        server.data("task_list")
    assert uses(project)[1:] == [f"many-{number}" for number in range(400)]
    project.verify()


@pytest.mark.parametrize("what", ["a link", "a folder", "a pipe", "two names"])
def test_a_spool_that_is_not_our_file_is_not_touched(
    project: Project, tmp_path: Path, others: Others, what: str
) -> None:
    other = tmp_path / "other"
    other.write_text("mine\n")
    path = project.beside("-spool")
    if what == "a link":
        path.symlink_to(other)
    elif what == "a folder":
        path.mkdir()
    elif what == "a pipe":
        os.mkfifo(path)
    else:
        os.link(other, path)
    holder = others(HOLD, str(project.database))
    run_in_vain(project, 1)
    assert other.read_text() == "mine\n"
    assert project.lost() == 1
    holder.kill()
    holder.wait()
    run(project, 2)
    assert [deed["lost"] for deed in project.records()] == [1]


def test_a_line_that_was_cut_off_does_not_take_the_next_with_it(
    project: Project, others: Others
) -> None:
    project.beside("-spool").write_bytes(b'{"call": "cut')
    holder = others(HOLD, str(project.database))
    run_in_vain(project, 1)
    holder.kill()
    holder.wait()
    run(project, 2)
    assert uses(project) == ["use-1", "use-2"]
    assert [deed["lost"] for deed in project.records()] == [1, 0]


def test_the_spool_has_a_limit(project: Project, others: Others) -> None:
    path = project.beside("-spool")
    with path.open("wb") as file:
        file.truncate(spool.LARGEST)
    others(HOLD, str(project.database))
    run_in_vain(project)
    assert path.stat().st_size == spool.LARGEST
    assert project.lost() == 1


def test_a_deed_that_is_told_twice_does_not_hide_what_was_lost(project: Project) -> None:
    run(project, 1)
    lost.add(config.load(str(project.root)), 3)
    run(project, 1)
    assert project.lost() == 3
    run(project, 2)
    assert [deed["lost"] for deed in project.records()] == [0, 3]


def test_a_counter_that_is_damaged_counts_from_nothing(project: Project) -> None:
    project.beside("-lost").write_text("many")
    project.send(b"{")
    assert project.lost() == 1


# Any moment, any number.


def test_a_hook_that_is_killed_leaves_a_good_ledger(project: Project) -> None:
    """At any moment; what it had not recorded is missing, and nothing is there twice."""
    chance = random.Random(7)
    for number in range(24):
        process = project.start(
            project.payload("claude-code", "PostToolUse.Bash", tool_use_id=f"use-{number}")
        )
        time.sleep(chance.uniform(0, 0.4))
        process.send_signal(signal.SIGKILL)
        process.communicate()
    run(project, 99)
    found = uses(project)
    assert found[-1] == "use-99"
    assert len(set(found)) == len(found)
    project.verify()


@pytest.mark.parametrize("starts", ["SessionStart.startup", "UserPromptSubmit"])
def test_the_end_of_a_tool_call_tells_that_the_hook_of_its_begin_was_killed(
    project: Project, starts: str
) -> None:
    """Specification 20.9: once, and not of a call whose begin was recorded."""
    project.hook("claude-code", starts)
    for number, is_killed in enumerate((True, False, True)):
        begin = project.payload("claude-code", "PreToolUse.Bash", tool_use_id=f"use-{number}")
        if is_killed:
            process = _half_given(project, begin)
            process.kill()
            process.communicate()
        else:
            project.send(begin)
        run(project, number)
        run(project, number)
    ends = [deed for deed in project.records() if deed["event"] == "tool.end"]
    assert [(deed["use"], deed["lost"]) for deed in ends] == [
        ("use-0", 1),
        ("use-1", 0),
        ("use-2", 1),
    ]
    assert project.lost() == 0


def test_a_begin_that_waits_in_the_spool_is_not_lost(project: Project, others: Others) -> None:
    project.hook("claude-code", "SessionStart.startup")
    holder = others(HOLD, str(project.database))
    begin = project.payload("claude-code", "PreToolUse.Bash", tool_use_id="use-1")
    project.send(begin, program=HURRIED)
    run_in_vain(project, 1)
    holder.kill()
    holder.wait()
    run(project, 2)
    found = [(deed["event"], deed["use"], deed["lost"]) for deed in project.records()[1:]]
    assert found == [("tool.begin", "use-1", 0), ("tool.end", "use-1", 0), ("tool.end", "use-2", 1)]


def test_a_host_that_reports_ends_alone_has_lost_nothing(project: Project) -> None:
    """As where somebody has registered the hook for these alone, or began to in between."""
    for number in range(3):
        run(project, number)
    for number in range(2):
        project.hook("cline", "PostToolUse.run_commands", taskId=f"t-{number}")
    assert {deed["lost"] for deed in project.records()} == {0}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_hook_finishes_what_it_has_begun(project: Project, number: int) -> None:
    """A terminal sends its signals to all programs of a host."""
    data = project.payload("claude-code", "PostToolUse.Bash")
    running = _half_given(project, data)
    running.send_signal(number)
    out, _ = running.communicate(data[10:])
    assert (running.returncode, out) == (0, b"")
    assert len(project.records()) == 1


def _half_given(project: Project, data: bytes) -> "subprocess.Popen[bytes]":
    """A hook that waits for the rest of its event."""
    process = subprocess.Popen(
        HOOK,
        cwd=project.root,
        env=project.environment("claude-code", **UNMEASURED),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin is not None
    process.stdin.write(data[:10])
    process.stdin.flush()
    ignored = Path(f"/proc/{process.pid}/status")
    for _ in range(500):
        masks = [line for line in ignored.read_text().splitlines() if line.startswith("SigIgn")]
        if int(masks[0].split()[1], 16) >> (signal.SIGTERM - 1) & 1:
            break
        time.sleep(0.01)
    return process


def test_a_host_that_never_closes_its_pipe_is_not_waited_for(project: Project) -> None:
    process = _half_given(project, project.payload("claude-code", "PostToolUse.Bash"))
    began = time.monotonic()
    assert process.wait(10) == 0
    assert time.monotonic() - began < 2.0 + STARTING
    assert process.communicate() == (b"", b"")


@pytest.mark.parametrize("program", [HOOK, PATIENT], ids=["in time", "patient"])
def test_twenty_hooks_at_once_are_twenty_deeds(project: Project, program: tuple[str, ...]) -> None:
    """Those for which the time was too short wait, or are counted."""
    data = [
        project.payload("claude-code", "PostToolUse.Bash", tool_use_id=f"use-{number}")
        for number in range(20)
    ]
    running = [project.start(one, program) for one in data]
    for process in running:
        assert process.communicate() == (b"", b"")
        assert process.returncode == 0
    run(project, 99)
    found = set(uses(project)) | {one["deed"]["use"] for one in project.spooled()}
    missing = {*(f"use-{number}" for number in range(20)), "use-99"} - found
    assert len(missing) <= told(project)
    if program is PATIENT:
        assert (missing, told(project)) == (set(), 0)
    project.verify()


def told(project: Project) -> int:
    """How many deeds are known to be lost."""
    return project.lost() + sum(int(deed["lost"]) for deed in project.records())


def test_hooks_and_servers_write_to_one_ledger(project: Project) -> None:
    with project.server() as server:
        for number in range(5):
            run(project, number)
            server.data("task_create", title=f"Task {number}")
    assert len(uses(project)) == 5
    project.verify()


def test_the_log_that_a_hook_leaves_is_no_unclean_end(project: Project) -> None:
    """Specification 20.7: but the one that a crash has left still is, after a hook too."""
    run(project, 1)
    assert project.beside("-wal").stat().st_size > 0
    assert not _unclean(project)
    run(project, 2)
    run(project, 3)
    assert not _unclean(project)
    with project.server() as server:
        server.data("task_create", title="One")
        server.process.kill()
        server.process.wait()
    run(project, 4)
    assert _unclean(project)
    run(project, 5)
    assert not _unclean(project)


def _unclean(project: Project) -> bool:
    """Whether a server that starts now takes the log for one that a crash has left."""
    opened = opening.open_writer(
        str(project.database),
        lock_timeout=5,
        monotonic=time.monotonic,
        sleep=time.sleep,
        stamp="now",
        new_log=str,
    )
    opened.close()
    return opened.unclean


# Any payload.


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"\xff\xfe\x00",
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"hook_event_name": 1' + b"0" * 5000 + b"}",
        b"null null",
    ],
)
def test_what_is_no_json_is_counted(project: Project, data: bytes) -> None:
    """Specification 20.9."""
    said = project.send(data)
    assert (said.code, said.out, said.err) == (0, "", "")
    assert project.lost() == 1
    run(project)
    assert project.records()[0]["lost"] == 1
    assert project.lost() == 0


@pytest.mark.parametrize(
    "data", [b"null", b"[]", b'"x"', b"1", b"{}", b'{"hook_event_name": "Nothing"}', b'{"host": 1}']
)
def test_what_is_no_event_is_left_out(project: Project, data: bytes) -> None:
    said = project.send(data)
    assert (said.code, said.out, said.err) == (0, "", "")
    assert (project.lost(), project.records()) == (0, [])


@pytest.mark.parametrize("program", [HOOK, PATIENT], ids=["in time", "patient"])
def test_ten_megabytes_are_read_and_kept_as_a_digest(
    project: Project, program: tuple[str, ...]
) -> None:
    text = "x" * 10_000_000
    data = project.payload("claude-code", "PostToolUse.Bash", tool_response=text)
    said = project.send(data, program=program)
    assert (said.code, said.out, said.err) == (0, "", "")
    assert said.seconds < 2.0 + STARTING or program is PATIENT
    kept = [*project.records(), *(one["deed"] for one in project.spooled())]
    assert len(kept) + project.lost() == 1
    assert len(kept) == 1 or program is HOOK, "only the time can be too short"
    assert all(deed["output"]["size"] == len(text) for deed in kept)
    files = [path for path in project.database.parent.iterdir() if path != project.database]
    assert all(path.stat().st_size < 200_000 for path in files)


def test_what_was_not_read_in_time_is_counted(project: Project) -> None:
    process = _half_given(project, project.payload("claude-code", "PostToolUse.Bash"))
    assert process.wait(10) == 0
    process.communicate()
    assert project.lost() == 1


def test_more_than_can_be_read_is_taken_from_the_host_and_counted(project: Project) -> None:
    data = project.payload("claude-code", "PostToolUse.Bash", x="y" * (65 * 1024 * 1024))
    assert project.send(data).code == 0
    assert (project.lost(), project.records()) == (1, [])


@pytest.mark.parametrize(
    "changes",
    [
        {"tool_input": {"command": "a\ud800b", "x": 1.5, "\u00e9": float("nan")}},
        {"session_id": "\ud800", "tool_use_id": "\x1b[31m\n", "tool_name": "B\u202eash"},
        {"tool_input": {"file_path": "\ud800/x"}, "tool_name": "Read"},
        {"tool_input": {"file_path": "x" * 100_000}, "tool_name": "Read"},
        {"tool_input": json.loads('{"a":' * 300 + "1" + "}" * 300)},
        {"duration_ms": 1e300, "cwd": "/proc/self/fd"},
        {"cwd": "x\0y"},
    ],
)
def test_hostile_values_are_recorded_in_a_form_that_verifies(
    project: Project, changes: dict[str, Any]
) -> None:
    said = project.send(project.payload("claude-code", "PostToolUse.Bash", **changes))
    assert (said.code, said.out, said.err) == (0, "", "")
    assert len(project.records()) == 1
    project.verify()


@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.sampled_from(KEPT), st.data())
def test_the_program_takes_any_change_of_a_real_payload(
    project: Project, which: tuple[str, str], data: st.DataObject
) -> None:
    """Members dropped, of another type, or nested; see test_hosts for many more of them."""
    changed = json.loads(project.payload(*which))
    for _ in range(data.draw(st.integers(1, 3))):
        key = data.draw(st.sampled_from(sorted(changed)))
        new = data.draw(st.sampled_from(["drop", None, 3, [], {}, "x", [changed[key]]]))
        if new == "drop" and len(changed) > 1:
            del changed[key]
        else:
            changed[key] = new
    said = project.send(json.dumps(changed).encode(), which[0])
    assert (said.code, said.err) == (0, "")
    if said.out and not said.out.startswith("Colibri keeps"):
        json.loads(said.out)


# How it is called.


def test_it_runs_whatever_arguments_a_host_adds(project: Project) -> None:
    ended = subprocess.run(
        (*HOOK, "--unknown", "{}"),
        cwd=project.root,
        env=project.environment("claude-code", **UNMEASURED),
        input=project.payload("claude-code", "PostToolUse.Bash"),
        capture_output=True,
        check=False,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")
    assert len(project.records()) == 1


def test_a_person_who_runs_it_learns_that_hosts_do(project: Project) -> None:
    ours, theirs = pty.openpty()
    ended = subprocess.run(
        HOOK,
        cwd=project.root,
        env=project.environment(""),
        stdin=theirs,
        capture_output=True,
        check=False,
    )
    os.close(ours)
    os.close(theirs)
    assert ended.returncode == 0
    assert b"--help" in ended.stderr
    assert project.lost() == 0


# A log that cannot be copied back.


@requires_strace
def test_a_hook_stops_writing_where_the_log_cannot_be_copied_back(
    project: Project, tmp_path: Path
) -> None:
    """The commit that finds it out is safe in the log; those after it wait, and people are told."""
    broken = (*failing_copies(project.database, tmp_path / "trace"), *PATIENT)

    def hook(name: str, number: int) -> Said:
        data = project.payload("claude-code", name, tool_use_id=f"use-{number}")
        said = project.send(data, program=broken)
        assert (said.code, said.err) == (0, "")
        return said

    lengthen_log(project.database, CHECKPOINT_PAGES - 2)
    for number in range(3):
        assert hook("PostToolUse.Bash", number).out == ""
    waiting, log = project.spooled(), project.beside("-wal").stat().st_size
    assert [one["deed"]["use"] for one in waiting] == ["use-1", "use-2"]
    assert uses(project) == ["use-0"]
    told = json.loads(hook("SessionStart.startup", 3).out)["hookSpecificOutput"]
    assert "committed pages cannot be copied into" in told["additionalContext"]
    assert "nothing more is written" in told["additionalContext"]
    assert project.beside("-wal").stat().st_size == log
    run(project, 4)
    assert uses(project)[:3] == ["use-0", "use-1", "use-2"]
    assert len(project.records()) == 5
    assert project.spooled() == []
    project.verify()


# What it touches.

ITS_FILES = ("", "-wal", "-shm", ".lock", "-spool", "-lost")
WRITES = re.compile(r'openat\(AT_FDCWD, "([^"]+)", [A-Z_|]*(?:O_WRONLY|O_RDWR|O_CREAT)')
READS = re.compile(r'openat\(AT_FDCWD, "([^"]+)", O_RDONLY[A-Z_|]* ?[^)]*\) = \d')
TRACED = "openat,creat,rename,renameat2,unlink,mkdir,symlink,link,execve,fork,vfork,socket,connect"


@requires_strace
@pytest.mark.parametrize("name", ["SessionStart.startup", "PostToolUse.Write", "Stop"])
@pytest.mark.parametrize("ledger", ["there", "held", "damaged"])
def test_it_writes_to_its_own_files_runs_nothing_and_reads_what_is_documented(
    project: Project, others: Others, tmp_path: Path, name: str, ledger: str
) -> None:
    """SECURITY.md, what hooks report: seen from outside, in every system call about a file."""
    (project.root / ".git").mkdir()
    (project.root / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (project.root / "colibri.toml").write_text('[gate.edit]\nstate = "APPLY"\n')
    (project.root / "other").write_text("nobody named it")
    (tmp_path / "secret").write_text("outside")
    (project.root / "a.txt").symlink_to(tmp_path / "secret")
    if ledger == "held":
        others(HOLD, str(project.database))
    elif ledger == "damaged":
        project.database.write_bytes(b"not a database" * 1000)
    trace = tmp_path / "trace"
    told = ("strace", "-f", "-qq", "-s", "4096", "-o", str(trace), "-e", f"trace={TRACED}")
    plain = {**UNMEASURED, "PYTHONDONTWRITEBYTECODE": "1"}
    data = project.payload("claude-code", name, tool_input={"file_path": str(tmp_path / "secret")})
    for payload in (data, project.payload("claude-code", name)):
        said = project.send(payload, program=(*told, *HOOK), **plain)
        assert (said.code, said.err) == (0, "")
        seen = [line.partition(" ")[2] for line in trace.read_text().splitlines()]
        calls = [line.lstrip().partition("(")[0] for line in seen if "(" in line]
        assert calls.count("execve") == 1, "the hook itself"
        assert set(calls) <= {"execve", "openat"}
        written = {found[1] for line in seen if (found := WRITES.search(line))}
        assert written <= {*(str(project.beside(end)) for end in ITS_FILES), "/dev/null"}
        read = {found[1] for line in seen if (found := READS.search(line))}
        ours = {
            path.removeprefix(f"{tmp_path}/") for path in read if path.startswith(f"{tmp_path}/")
        }
        assert {path for path in ours if not path.startswith("project/data")} <= {
            *("project", "project/colibri.toml", "project/.git/HEAD"),
            *("home/.claude/settings.json", "home/.claude"),
        }


@pytest.mark.parametrize("ledger", ["there", "held", "gone"])
def test_whatever_the_umask_nobody_else_can_open_its_files(
    project: Project, others: Others, ledger: str
) -> None:
    if ledger == "held":
        others(HOLD, str(project.database))
    elif ledger == "gone":
        project.database.unlink()
    before = os.umask(0)
    try:
        run_in_vain(project)
        project.send(b"no json")
    finally:
        os.umask(before)
    made = sorted(project.database.parent.iterdir())
    assert project.beside("-lost") in made
    assert (project.beside("-spool") in made) == (ledger != "there")
    assert {stat.S_IMODE(path.stat().st_mode) for path in made} == {0o600}
