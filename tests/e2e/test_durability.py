"""A change and its record are written together or not at all, even when the disk fails."""

from pathlib import Path

import pytest

from tests.support.client import Server
from tests.support.ledger_reader import (
    audited_on_stderr,
    calls,
    condition,
    error,
    missing,
    reading,
    verified,
)
from tests.support.strace import attached, requires_strace


def rows(database: Path) -> list[str]:
    """The keys that `keep` has left in the database."""
    with reading(database) as db:
        query = "SELECT key FROM meta WHERE value = 'kept' ORDER BY key"
        return [key for (key,) in db.execute(query)]


@pytest.mark.parametrize(
    ("tool", "then", "outcome", "code"),
    [
        ("keep", "refuse", "refused", "ERR_TEST"),
        ("keep_a", "refuse", "refused", "ERR_TEST"),
        ("keep", "fail", "error", "HANDLER_ERROR"),
        ("keep", "exit", "error", "HANDLER_ERROR"),
    ],
)
def test_a_call_that_ends_badly_leaves_no_change_and_one_pair_of_records(
    tmp_path: Path, tool: str, then: str, outcome: str, code: str
) -> None:
    """Specification 3.7, 4.3: rolled back on refusal or fault, SystemExit included."""
    with Server(tmp_path) as server:
        before = server.post_call("keep", key="before")
        bad = server.post_call(tool, key="bad", then=then)
        after = server.post_call("keep", key="after")  # in the same round, or nearly
        results = [server.answer(id)["result"] for id in (before, bad, after)]

        assert [result["isError"] for result in results] == [False, True, False]
        assert rows(server.database) == ["after", "before"]
        (pair,) = [p for p in calls(server.database, tool) if p.arguments["key"] == "bad"]
        assert (pair.outcome, pair.code) == (outcome, code)
        assert results[1]["_meta"]["colibri/receipt"]["seq"] == pair.exit
        assert condition(server) == ("NORMAL", None)
        verified(server.database)


def test_a_refusal_in_the_middle_of_a_full_round_undoes_nothing_else(tmp_path: Path) -> None:
    """Specification 3.7: each handler in its own savepoint."""
    with Server(tmp_path) as server:
        server.data("note", n=0)
        server.post_call("nap_write", ms=200)  # calls that come meanwhile form one round
        ids = [
            server.post_call("keep", key=f"{n:02}", then="refuse" if n % 3 else "ok")
            for n in range(60)
        ]
        failed = [server.answer(id)["result"]["isError"] for id in ids]

        assert failed == [bool(n % 3) for n in range(60)]
        assert rows(server.database) == [f"{n:02}" for n in range(60) if n % 3 == 0]
        outcomes = [pair.outcome for pair in calls(server.database, "keep")]
        assert outcomes == ["refused" if n % 3 else "ok" for n in range(60)]
        verified(server.database)


def assert_stopped_writing(server: Server) -> None:
    """SAFE_MODE io: nothing more is written, and admitted calls are audited on stderr."""
    assert condition(server) == ("SAFE_MODE", "io")
    for key in ("later", "later still"):
        refused = error(server.call("keep", key=key))
        assert refused["code"] == "UNAVAILABLE"
        assert "held back in SAFE_MODE (io)" in refused["message"]
    assert server.data("verify")["valid"] is True
    assert len(audited_on_stderr(server, "verify")) == 2


def assert_clean_start(project: Path, receipts: list[dict[str, object]]) -> list[str]:
    """After a restart the server is healthy and nothing acknowledged is lost; returns the rows."""
    with Server(project) as server:
        assert server.data("note", n=1) == {"n": 1}
        assert condition(server) == ("NORMAL", None)
        assert server.close() == 0
    assert missing(server.database, receipts) == []
    verified(server.database)
    left = rows(server.database)
    recorded = [p.arguments["key"] for p in calls(server.database, "keep") if p.outcome == "ok"]
    assert left == sorted(recorded)
    return left


@requires_strace
@pytest.mark.parametrize("traced", [True, False], ids=["disk still failing", "disk well again"])
def test_a_commit_that_cannot_be_synced_is_answered_outcome_unknown_and_stops_writing(
    tmp_path: Path, traced: bool
) -> None:
    """Specification 3.8, 12.12: SAFE_MODE io; the next start is clean."""
    with Server(tmp_path) as server:
        receipts = [server.call("keep", key="before")["_meta"]["colibri/receipt"]]
        with attached(server, "fdatasync,fsync", "fdatasync,fsync:error=EIO") as trace:
            ids = [server.post_call("keep", key=f"unknown {n}") for n in range(3)]
            failed = error(server.answer(ids[0])["result"])
            assert trace.injected() > 0
            assert failed["code"] == "HANDLER_ERROR"
            assert failed["message"].startswith("OUTCOME_UNKNOWN: ")
            for id in ids[1:]:  # of the same round, or refused because of it
                failed = error(server.answer(id)["result"])
                assert failed["code"] in ("HANDLER_ERROR", "UNAVAILABLE")
            assert_stopped_writing(server)
            if traced:
                assert server.close() == 0
        if not traced:
            assert server.close() == 0
    left = assert_clean_start(tmp_path, receipts)
    assert "before" in left
    assert not {"later", "later still"} & set(left)


@requires_strace
def test_after_a_failed_sync_nothing_is_written_not_even_at_the_end(tmp_path: Path) -> None:
    """Specification 12.12: from then on the -wal can only be trusted by its checksums."""
    with Server(tmp_path) as server:
        server.data("keep", key="before")
        with attached(server, "fdatasync,fsync", "fdatasync,fsync:error=EIO"):
            assert error(server.call("keep", key="unknown"))["code"] == "HANDLER_ERROR"
        files = [server.database, server.database.with_name("colibri.db-wal")]
        before = [file.read_bytes() for file in files]
        assert server.close() == 0
        assert [file.read_bytes() for file in files] == before
    assert_clean_start(tmp_path, [])


@requires_strace
def test_an_enter_record_that_cannot_be_committed_keeps_the_handler_from_running(
    tmp_path: Path,
) -> None:
    """Specification 4.2, 12.12: what is not recorded does not run. SAFE_MODE io."""
    with Server(tmp_path) as server:
        receipts = [server.call("keep", key="before")["_meta"]["colibri/receipt"]]
        with attached(server, "pwrite64", "pwrite64:error=EIO") as trace:
            failed = error(server.call("keep", key="never"))
            assert trace.injected() > 0
            assert failed["code"] == "AUDIT_ENTER_FAILED"
            assert_stopped_writing(server)
        assert rows(server.database) == ["before"]
        assert server.close() == 0
    assert assert_clean_start(tmp_path, receipts) == ["before"]


@requires_strace
def test_a_failed_enter_of_a_read_does_not_keep_it_from_being_served(tmp_path: Path) -> None:
    """Specification 12.12: in SAFE_MODE io reads work, the one that found it included."""
    with Server(tmp_path) as server:
        server.data("keep", key="before")
        with attached(server, "pwrite64", "pwrite64:error=EIO") as trace:
            assert server.data("verify")["valid"] is True
            assert trace.injected() > 0
        assert condition(server) == ("SAFE_MODE", "io")
        assert len(audited_on_stderr(server, "verify")) == 2
        assert server.close() == 0
    assert_clean_start(tmp_path, [])
