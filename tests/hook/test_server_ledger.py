"""The hook where the ledger is on PostgreSQL: in time, whatever the network does; else spooled."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.hook.conftest import HOOK, PATIENT, Project
from tests.hook.test_hook import HEAVY, LIST_MODULES, _paths
from tests.support import engines, postgres
from tests.support.far import LONG_TRIP_MS, Far, socket_of

MOST_TRIPS = 7  # two to connect, one each for the version, the log, the head, the reads, the commit

WITHOUT = (
    "import sys; sys.modules['psycopg'] = None; sys.argv = ['colibri', 'hook'];"
    " from colibri.__main__ import main; main()"
)


@pytest.fixture(autouse=True)
def on_server() -> Iterator[None]:
    with engines.use("postgres"):
        postgres.server()
        yield


@pytest.fixture
def silent() -> Iterator[str]:
    """The URL of a server that takes connections and never says a word."""
    with closing(socket.socket()) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield f"postgresql://a@127.0.0.1:{listener.getsockname()[1]}/x"


def test_what_a_silent_server_does_not_take_is_spooled_in_time(
    project: Project, silent: str
) -> None:
    """Specification 20.8: within 2 s, 0.7 at the end of a session; and no process is left."""
    said = project.send(
        project.payload("claude-code", "PostToolUse.Bash"), program=HOOK, COLIBRI_DB_URL=silent
    )
    assert (said.code, said.out, said.err) == (0, "", "")
    assert said.seconds < 3.5, "with the start of Python on a busy machine"
    assert len(project.spooled()) + project.lost() == 1
    end = project.payload("claude-code", "SessionEnd.other")
    said = project.send(end, program=HOOK, COLIBRI_DB_URL=silent)
    assert (said.code, said.out) == (0, "")
    assert said.seconds < 2.5
    assert len(project.spooled()) + project.lost() == 2
    assert _hooks_at_work(silent) == []


def _hooks_at_work(url: str) -> list[str]:
    """The processes that have a URL in their environment."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            if f"COLIBRI_DB_URL={url}".encode() in (process / "environ").read_bytes():
                found.append(process.name)
        except OSError:
            continue
    return found


def test_what_waits_is_recorded_by_the_next_hook_and_only_once(
    project: Project, silent: str
) -> None:
    for number in range(3):
        data = project.payload("claude-code", "PostToolUse.Bash", tool_use_id=f"use-{number}")
        project.send(data, COLIBRI_DB_URL="postgresql://a@127.0.0.1:1/x")
    assert len(project.spooled()) == 3
    assert project.records() == []
    project.hook("claude-code", "PostToolUse.Bash")
    assert project.spooled() == []
    deeds = project.records()
    assert [deed["late"] is None for deed in deeds] == [False, False, False, True]
    assert len({deed["use"] for deed in deeds}) == 4
    project.verify()


def test_what_waits_is_recorded_when_a_server_starts(project: Project) -> None:
    data = project.payload("claude-code", "PostToolUse.Bash")
    project.send(data, COLIBRI_DB_URL="postgresql://a@127.0.0.1:1/x")
    with project.server() as server:
        server.data("server_health")
        server.data("task_list")
    assert [deed["event"] for deed in project.records()] == ["tool.end"]
    assert project.spooled() == []


def test_a_report_that_was_recorded_after_all_is_not_recorded_again(project: Project) -> None:
    """The hook was killed between the commit and the end: the spool has it as well."""
    data = project.payload("claude-code", "PostToolUse.Bash")
    project.send(data, COLIBRI_DB_URL="postgresql://a@127.0.0.1:1/x")
    line = project.beside("-spool").read_bytes()
    project.hook("claude-code", "PreToolUse.Bash")
    project.beside("-spool").write_bytes(line)
    project.hook("claude-code", "SessionStart.startup")
    assert [deed["event"] for deed in project.records()] == [
        "tool.end",
        "tool.begin",
        "session.start",
    ]


@pytest.mark.parametrize("role", ["reader", "nobody"])
def test_a_role_that_may_not_record_spools(project: Project, role: str) -> None:
    url = postgres.server().url(
        "nobody_such" if role == "nobody" else f"{engines.schema_of(project.root)}_reader"
    )
    said = project.send(project.payload("claude-code", "PostToolUse.Bash"), COLIBRI_DB_URL=url)
    assert (said.code, said.out, said.err) == (0, "", "")
    assert len(project.spooled()) == 1


def test_without_psycopg_it_spools(project: Project) -> None:
    program = (sys.executable, "-c", WITHOUT)
    said = project.send(project.payload("claude-code", "PostToolUse.Bash"), program=program)
    assert (said.code, said.out, said.err) == (0, "", "")
    assert len(project.spooled()) + project.lost() == 1


def test_the_directory_of_the_spool_is_made_only_when_it_is_needed(project: Project) -> None:
    project.hook("claude-code", "PostToolUse.Bash")
    assert [*project.root.iterdir()] == []
    data = project.payload("claude-code", "PreToolUse.Bash")
    project.send(data, COLIBRI_DB_URL="postgresql://a@127.0.0.1:1/x")
    assert (project.root / "data").stat().st_mode & 0o777 == 0o700


def test_only_the_process_that_records_loads_psycopg(project: Project) -> None:
    """Specification 20.12: what the hook itself needs stays as small as with a file."""
    ended = subprocess.run(
        (sys.executable, "-S", "-c", LIST_MODULES),
        cwd=project.root,
        env=project.environment("claude-code", PYTHONPATH=_paths()),
        input=project.payload("claude-code", "PostToolUse.Edit"),
        capture_output=True,
        check=True,
    )
    loaded = set(ended.stderr.decode().split())
    assert "colibri.hook.aside" in loaded
    assert {"psycopg", "apsw", *HEAVY} & loaded == set()
    assert len(project.records()) == 1


def test_a_report_takes_few_trips(project: Project) -> None:
    """Two of them while it holds the lock of the head: others wait meanwhile."""
    project.hook("claude-code", "PreToolUse.Bash")
    here = postgres.server()
    with Far(socket_of(here.directory, here.port), LONG_TRIP_MS) as far:
        data = project.payload("claude-code", "PostToolUse.Bash")
        url = far.url(f"{engines.schema_of(project.root)}_writer")
        project.send(data, COLIBRI_DB_URL=url)
        assert 0 < far.trips <= MOST_TRIPS
    assert [deed["event"] for deed in project.records()] == ["tool.begin", "tool.end"]


def test_the_order_of_records_is_that_of_the_servers_clock(project: Project) -> None:
    """The clocks of machines differ; a claim must not die of that."""
    slow = "import time; real = time.time_ns; time.time_ns = lambda: real() - 3600 * 10**9; "
    wrong = (PATIENT[0], "-c", slow + PATIENT[2])
    project.send(project.payload("claude-code", "PostToolUse.Bash"), program=wrong)
    with closing(engines.of_project(project.root)) as db:
        ((at,),) = db.execute("SELECT at FROM ledger WHERE kind = 'deed'").fetchall()
    written = time.mktime(time.strptime(at[:19], "%Y-%m-%dT%H:%M:%S")) - time.timezone
    assert abs(written - time.time()) < 600


def test_it_ends_in_time_while_another_holds_the_head(project: Project) -> None:
    """A server that was stopped: the hook does not wait for it, and its report is kept."""
    schema = engines.schema_of(project.root)
    with postgres.server().connect() as admin:
        admin.execute(f"SET search_path = {schema}".encode())
        admin.execute("BEGIN")
        admin.execute("SELECT lock_head(5)")
        data = project.payload("claude-code", "PostToolUse.Bash")
        said = project.send(data, program=HOOK)
        admin.execute("ROLLBACK")
    assert (said.code, said.out, said.err) == (0, "", "")
    assert said.seconds < 3.5
    assert len(project.spooled()) + project.lost() == 1
    project.hook("claude-code", "PostToolUse.Bash")
    project.verify()
    kept = {json.dumps(deed["use"]) for deed in project.records()}
    assert len(kept) == 1, "one use of a tool is one deed"


def test_a_hook_leaves_no_session_behind(project: Project) -> None:
    project.hook("claude-code", "PostToolUse.Bash")
    name = f"{engines.schema_of(project.root)}_writer"
    with postgres.server().connect() as admin:
        query = "SELECT count(*) FROM pg_stat_activity WHERE usename = %s"
        for _ in range(200):
            if admin.execute(query, (name,)).fetchone() == (0,):
                return
            time.sleep(0.01)
    pytest.fail(f"a session of {name} is left, seen by {os.getpid()}")
