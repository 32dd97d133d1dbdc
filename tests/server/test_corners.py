"""Rare paths through the server, each reached with the real parts."""

import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest

from colibri.core.errors import Damaged, ResourceError, Unavailable
from colibri.core.modes import Capability
from colibri.server import checks, create_server
from colibri.server.call import Registered
from colibri.server.context import add_tool, start
from colibri.server.faults import CommitFailed, Guard
from colibri.server.health import Health
from colibri.server.ids import Ids
from colibri.server.journal import Job
from colibri.server.log import Log
from colibri.server.work import Work
from colibri.store.sqlite import engine, opening
from colibri.store.sqlite.connection import connect
from colibri.store.sqlite.opening import open_writer
from colibri.store.sqlite.schema import load_migrations, small_tables
from tests.contract import Linked
from tests.support.client import COLIBRI, Server, environment, execute_raw
from tests.support.in_process import project, tool
from tests.support.ledger_reader import calls, eventually, holding
from tests.support.linked import linked


def test_a_tool_of_the_catalogue_cannot_run_before_it_is_loaded() -> None:
    """Boot step 2 registers names; handlers come with step 6."""
    registered = Registered({"name": "x"}, lane="write", capability=Capability.CHANGE)
    with pytest.raises(RuntimeError, match="before it was loaded"):
        registered.run(Work.__new__(Work), {})


def test_a_handler_that_needs_a_missing_database_fails_alone() -> None:
    """A server without a configuration opens no database."""
    server = Linked()
    add_tool(server.ctx, tool("wants", lambda work, args: work.db))
    with server:
        error = server.call("wants")["structuredContent"]["error"]
        assert error == {"code": "HANDLER_ERROR", "message": "this server has no database"}


def test_the_context_stops_the_server_that_another_thread_runs() -> None:
    """Specification 16.4, 16.9: start and stop are also methods of the context."""
    server = Linked()
    with server:
        server.call("server_ping")
        server.ctx.stop()
        assert not server.ctx.is_connected()


def test_a_second_shutdown_waits_for_the_first_and_reports_its_exit_code(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The six stages run once, whichever thread asks."""
    transport, peer = linked()
    ctx = create_server(transport=transport, mode="FULL", install_handlers=False)
    start(ctx)
    ctx.parts.life.stop_reason = "test"
    ctx.parts.life.exit_code = 5
    codes: list[int] = []
    drained = threading.Event()
    monkeypatch.setattr(ctx.parts.end._loop, "drain", lambda left: drained.wait(30))
    threads = [
        threading.Thread(target=lambda: codes.append(ctx.parts.end.shut_down())) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    threads[-1].join(0.3)
    waiting = [thread.is_alive() for thread in threads]
    drained.set()
    for thread in threads:
        thread.join(30)
    assert all(waiting)
    assert codes == [5, 5, 5, 5]
    peer.close()


def test_the_time_is_utc_to_the_microsecond(monkeypatch: pytest.MonkeyPatch) -> None:
    """Specification 9.5: most calls reuse the seconds that an earlier one formatted."""
    ctx = create_server(install_handlers=False)
    moments = {
        1_700_000_000_000_000_999: "2023-11-14T22:13:20.000000Z",
        1_700_000_000_123_456_789: "2023-11-14T22:13:20.123456Z",
        1_700_000_001_000_001_000: "2023-11-14T22:13:21.000001Z",
    }
    for nanoseconds, expected in moments.items():
        monkeypatch.setattr(time, "time_ns", lambda now=nanoseconds: now)
        assert ctx.parts.clock.utc() == expected


def test_messages_below_the_log_level_are_not_logged(tmp_path: Path) -> None:
    """COLIBRI_LOG_LEVEL=error silences the rest."""
    with Server(tmp_path, COLIBRI, COLIBRI_LOG_LEVEL="error") as server:
        server.data("server_ping")
        assert server.close() == 0
        assert server.stderr == ""


def test_a_host_that_never_reads_stderr_blocks_nothing(tmp_path: Path) -> None:
    """docs/decisions/002: lines that cannot be written are dropped and counted."""
    pipe = subprocess.PIPE
    with subprocess.Popen(
        COLIBRI,
        cwd=tmp_path,
        env=environment(COLIBRI_MODE="MINIMAL"),
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        ping = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"server_health"}}\n'
        for _ in range(400):  # far more audit lines than a pipe holds
            process.stdin.write(ping)
            process.stdin.flush()
            answer = msgspec.json.decode(process.stdout.readline())
        dropped = answer["result"]["structuredContent"]["data"]["dropped"]["log_lines"]
        assert dropped > 0
        process.stdin.close()
        assert process.wait(30) == 0


def test_a_closed_stderr_stops_nothing(tmp_path: Path) -> None:
    """A host that closed its end of stderr."""
    with subprocess.Popen(
        COLIBRI,
        cwd=tmp_path,
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stderr is not None
        process.stderr.close()
        out, _ = process.communicate(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n', 30)
        assert msgspec.json.decode(out)["result"] == {}
        assert process.returncode == 0


def test_an_io_error_before_the_commit_changed_nothing_and_one_in_it_is_unknown() -> None:
    """faults.py: the table of what an error means."""
    said: list[str] = []
    state = Health(Log("error", said.append))
    guard = Guard(state)
    with pytest.raises(Unavailable, match="nothing was changed"), guard:
        raise apsw.IOError("before")
    assert (state.condition.state, state.condition.cause) == ("SAFE_MODE", "io")
    assert said == ["[colibri] SAFE_MODE io: before"]
    with pytest.raises(CommitFailed), guard:
        guard.committing = True
        raise apsw.IOError("in the commit")
    with pytest.raises(CommitFailed, match="it was committed, but it was replaced"), guard:
        guard.committed = True
        raise Damaged("it was replaced")
    with pytest.raises(KeyError), guard:
        raise KeyError("not the store's")


def test_a_fault_of_the_store_within_a_handler_fails_the_whole_round(tmp_path: Path) -> None:
    """A busy database is not the handler's fault: UNAVAILABLE, rolled back, not recorded."""

    def busy(work: Work, args: object) -> object:
        raise apsw.BusyError("held")

    server = Linked(config=project(tmp_path))
    add_tool(server.ctx, tool("busy", busy))
    with server:
        assert server.call("busy")["structuredContent"]["error"]["code"] == "UNAVAILABLE"
    assert [pair.exit for pair in calls(tmp_path / "data" / "colibri.db", "busy")] == [None]


def test_a_job_that_a_bug_keeps_from_being_recorded_fails_and_the_lane_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing may wait for a thread that has died."""
    monkeypatch.setattr(threading, "excepthook", lambda args: None)
    server = Linked(config=project(tmp_path))

    def bug(*_: object) -> Any:
        raise ZeroDivisionError("a bug")

    with server:
        server.wait_for_store()
        jobs = [Job(bug), Job(bug)]
        for job in jobs:
            server.ctx.parts.write.put(job)
            job.wait()
        assert all(isinstance(job.failure, Unavailable) for job in jobs)


def test_a_bug_in_the_record_of_a_read_ends_the_server_and_every_call_is_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also for a read that runs between the slices of another, which must not swallow the error."""
    server = Linked(config=project(tmp_path))
    add_tool(server.ctx, tool("inner", lambda work, args: {}, lane="read"))

    def pause(work: Work, args: object) -> object:
        def bug(*_: object) -> Any:
            monkeypatch.undo()
            raise ZeroDivisionError("a bug")

        monkeypatch.setattr(server.ctx.parts.journal.recorder, "enter", bug)
        server.post("inner")
        server.post("inner")
        eventually(lambda: len(server.ctx.parts.load) == 3, "both of them accepted")
        work.pause()
        return {}

    add_tool(server.ctx, tool("outer", pause, lane="read"))
    with server:
        server.wait_for_store()
        server.post("outer")
        answers = [server.receive()["result"] for _ in range(3)]
        assert [answer["isError"] for answer in answers] == [False] * 3
        assert server.ctx.parts.life.stop_reason == "uncaughtException"
        assert server.ctx.parts.life.exit_code == 1


def test_a_read_writes_nothing_itself_once_writing_has_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SAFE_MODE may begin while it waits for the lock, so it checks after taking the lock."""
    server = Linked(config=project(tmp_path))
    add_tool(server.ctx, tool("look", lambda work, args: {}, lane="read"))
    with server:
        server.data("look")
        lock = server.ctx.parts.journal.writing

        class Late:
            """Writing stops at the moment the lock is taken."""

            release = staticmethod(lock.release)

            @staticmethod
            def acquire(*, blocking: bool) -> bool:
                monkeypatch.undo()
                server.ctx.parts.health.degrade("io", "the disk is gone")
                return lock.acquire(blocking=blocking)

        monkeypatch.setattr(server.ctx.parts.journal, "writing", Late)
        assert server.call("look")["isError"] is False
    assert len(calls(tmp_path / "data" / "colibri.db", "look")) == 1


def test_more_probes_than_can_wait_are_counted_and_answered(tmp_path: Path) -> None:
    """Specification 3.3: the rest is dropped, and server_health says so."""
    with Server(tmp_path) as server:
        server.data("note", n=0)
        with holding(server.database):
            ids = [server.post_call("server_ping") for _ in range(400)]
            for id in ids:
                assert server.answer(id)["result"]["isError"] is False
            dropped = server.data("server_health")["dropped"]["probe_records"]
        assert dropped > 100


def test_the_answers_of_a_round_leave_in_order_and_together_but_never_as_a_heap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pipeline.py: each write wakes the client, and a pipe takes 64 KiB at once."""
    server = Linked(config=project(tmp_path))
    transport = server.ctx.parts.transport
    send, lines = transport.send, []

    def counted(data: bytes) -> None:
        lines.append(data.count(b"\n"))
        send(data)

    monkeypatch.setattr(transport, "send", counted)
    begun, go = threading.Event(), threading.Event()

    def hold(work: Work, args: object) -> dict[str, object]:
        begun.set()
        return {"went": go.wait(30)}

    add_tool(server.ctx, tool("hold", hold))
    add_tool(server.ctx, tool("small", lambda work, args: {}))
    add_tool(server.ctx, tool("big", lambda work, args: {"text": "x" * 40_000}))
    with server:
        server.wait_for_store()
        ids = [server.post("hold")]
        assert begun.wait(30)
        ids += [server.post(name) for name in ("small", "no_such_tool", "small", "big", "big")]
        eventually(lambda: len(server.ctx.parts.load) == len(ids), "all calls wait")
        go.set()
        assert [server.receive()["id"] for _ in ids] == ids
    assert lines == [1, 4, 1]


def test_a_tool_that_must_run_alone_gets_its_own_round(tmp_path: Path) -> None:
    """merkle_finalize is such a tool: its enter follows the exits of the previous round."""
    with Server(tmp_path) as server:
        server.data("note", n=0)
        hold = server.post_call("nap_write", ms=300)
        ids = [
            server.post_call("note", n=1),
            server.post_call("nap_alone", ms=0),
            server.post_call("note", n=2),
        ]
        for id in (hold, *ids):
            assert server.answer(id)["result"]["isError"] is False
        assert server.close() == 0
        _, first, last = calls(server.database, "note")
        (alone,) = calls(server.database, "nap_alone")
        assert first.exit is not None
        assert alone.exit is not None
        assert first.exit < alone.seq < alone.exit < last.seq


def test_a_cancelled_call_of_a_tool_that_does_not_exist_is_recorded_and_not_answered(
    tmp_path: Path,
) -> None:
    """It waits in the write lane like any other."""
    with Server(tmp_path) as server:
        server.data("note", n=0)
        server.post_call("nap_write", ms=1_000)
        eventually(
            lambda: len(calls(server.database, "nap_write")) == 1, "a round without the next"
        )
        unknown = server.post_call("no_such_tool")
        server.notify("notifications/cancelled", {"requestId": unknown})
        last = server.post_call("note", n=1)
        answered = [message["id"] for message in (server.receive(), server.receive()) if message]
        assert answered == [last - 2, last]
        assert [pair.outcome for pair in calls(server.database, "no_such_tool")] == ["cancelled"]


@pytest.mark.parametrize("row", ["sessions SET record_count", "tasks SET version"])
def test_a_number_of_an_altered_row_is_never_recorded(tmp_path: Path, row: str) -> None:
    """Specification 9.1: a record with it could not be verified, even with the row put right."""
    with Server(tmp_path, COLIBRI) as server:
        session = server.data("audit_session_start", intent="look")["session_id"]
        task = server.data("task_create", title="mend it")["task_id"]
        number = 2**53 if "sessions" in row else 2**53 - 1  # the next version is one more
        apsw.Connection(str(server.database)).execute(f"UPDATE {row} = {number}")
        of = {"session_id": session, "task_id": task}
        thought = {"type": "plan", "content": "first this, then that"}
        answers = [
            server.call("thought_record", **of, **thought),
            server.call("task_update", **of, status="GATHER", thought=thought),
        ]
        said = [answer["structuredContent"] for answer in answers if answer["isError"]]
        assert all("beyond 2^53-1" in one["error"]["message"] for one in said)
        assert len(said) == (2 if "sessions" in row else 1)
        before = 0 if "sessions" in row else 1
        apsw.Connection(str(server.database)).execute(f"UPDATE {row} = {before}")
        assert server.data("audit_verify_chain")["valid"]


def test_what_waits_in_a_round_that_finds_the_file_gone_is_refused(tmp_path: Path) -> None:
    """SAFE_MODE integrity: that call and all later ones get UNAVAILABLE, and nothing runs."""
    with Server(tmp_path) as server:
        server.data("note", n=0)
        server.post_call("nap_write", ms=300)  # meanwhile the others gather for one round
        ids = [server.post_call("nap_write", ms=1_000) for _ in range(4)]
        eventually(lambda: len(calls(server.database, "nap_write")) == 5, "the enter records")
        server.database.rename(tmp_path / "moved.db")
        codes = [server.answer(id)["result"]["structuredContent"]["error"]["code"] for id in ids]
        assert codes == ["UNAVAILABLE"] * 4


def test_a_probe_that_came_before_the_database_failed_is_audited_on_stderr(tmp_path: Path) -> None:
    """Every answered call leaves a trace."""
    (tmp_path / "data" / "colibri.db").mkdir(parents=True)
    with Server(tmp_path, COLIBRI, handshake=False) as server:
        server.data("server_ping")
        assert server.close() == 75
        assert '"audit":"exit"' in server.stderr


def test_a_ledger_without_its_name_is_not_opened(tmp_path: Path) -> None:
    """A failure after the file was opened closes it again."""
    with Server(tmp_path) as server:
        server.data("note", n=0)
        assert server.close() == 0
    raw = apsw.Connection(str(tmp_path / "data" / "colibri.db"))
    raw.execute("DELETE FROM meta")
    raw.close()
    with Server(tmp_path) as server:
        error = server.call("note", n=1)["structuredContent"]["error"]
        assert error["code"] == "UNAVAILABLE"
        assert server.close() == 75


def test_a_reader_that_cannot_be_opened_is_safe_mode_and_no_crash(tmp_path: Path) -> None:
    """The file existed a moment ago."""
    ctx = create_server(config=project(tmp_path), logger=lambda *_: None)
    assert ctx.parts.open_reader() is None
    assert ctx.parts.health.condition.cause == "io"


def test_a_server_that_can_write_but_not_read_is_in_safe_mode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its reads are refused and its health is not checked; no call waits for a connection."""

    def fail(*_: object, **__: object) -> None:
        raise ResourceError("too many open files")

    monkeypatch.setattr(opening, "open_reader", fail)
    server = Linked(config=project(tmp_path))
    with server:
        server.wait_for_store()
        error = server.call("task_list")["structuredContent"]["error"]
        assert error["code"] == "UNAVAILABLE"
        assert "too many open files" in error["message"]
        assert server.ctx.parts.health.condition.cause == "io"


def test_a_database_that_cannot_be_checked_is_not_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only a damaged one is opened, for reading."""

    def fail(*_: object) -> list[str]:
        raise apsw.IOError("a bad sector")

    monkeypatch.setattr(engine, "quick_check", fail)
    server = Linked(config=project(tmp_path))
    with server:
        error = server.call("task_list")["structuredContent"]["error"]
        assert error["message"] == "the database is not open: a bad sector"
    assert server.exit_code == 75


def test_a_thread_that_does_not_end_is_left_behind_at_the_deadline(tmp_path: Path) -> None:
    """Shutdown: at the deadline the process ends with 1, whatever hangs."""
    program = (
        "import time, colibri.server.shutdown as s; s.DRAIN_SECONDS = 1.0\n"
        "from colibri.server.lanes import ReadLane\n"
        "ReadLane.run = lambda lane: time.sleep(60)\n"
        "from tests.support.extra_tools import main; main()"
    )
    done = execute_raw([sys.executable, "-c", program], cwd=tmp_path)
    assert done.returncode == 1
    assert b"did not finish in 1 s" in done.stderr


def test_memory_is_not_guessed_if_the_system_does_not_report_it() -> None:
    """A peak would keep the server in SAFE_MODE overload until it restarts."""
    assert checks.rss_mb("/nowhere") is None
    assert (checks.rss_mb() or 0) > 0


def test_only_a_writing_call_can_append_records(tmp_path: Path) -> None:
    """A read has a read-only connection; the write thread writes its records."""
    server = Linked(config=project(tmp_path))
    add_tool(server.ctx, tool("sly", lambda work, args: work.record("thought", {}), lane="read"))
    with server:
        error = server.call("sly")["structuredContent"]["error"]
        assert error["message"] == "only a writing call can append records"


def test_a_small_table_that_sqlite_finds_broken_is_safe_mode_integrity(tmp_path: Path) -> None:
    """The health loop: quick_check on one small table in turn.

    A read-only connection skips the CHECK constraints, so this one may write.
    """
    with Server(tmp_path, COLIBRI) as server:
        server.data("task_create", title="a task")
        assert server.close() == 0
    connection = connect(str(server.database), "write")
    connection.execute("PRAGMA ignore_check_constraints = ON; UPDATE task_counts SET n = -1")
    connection.execute("PRAGMA ignore_check_constraints = OFF")
    ctx = create_server(config=project(tmp_path), logger=lambda *_: None)
    look = ctx.parts.checks
    look._stopping.set()
    look._db, look._exposure = connection, str
    for _ in small_tables(connection):
        look.check()
    connection.close()
    assert ctx.parts.health.condition.cause == "integrity"
    assert "task_counts" in ctx.parts.health.condition.why


def test_a_migration_and_its_backup_are_logged(tmp_path: Path) -> None:
    """No file should appear without an explanation."""
    (tmp_path / "data").mkdir()
    path = tmp_path / "data" / "colibri.db"
    open_writer(
        str(path),
        lock_timeout=5,
        monotonic=time.monotonic,
        sleep=time.sleep,
        stamp="then",
        new_log=Ids().log,
        migrations=load_migrations()[:1],
    ).close()
    with Server(tmp_path, COLIBRI) as server:
        server.data("task_create", title="after it")
        (backup,) = path.parent.glob("colibri.db.backup-v1-*")
        assert f"from version 1; the file as it was is {backup}" in server.stderr
