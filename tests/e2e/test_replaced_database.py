"""The database is replaced, removed or migrated under a running server, which notices and stops."""

import re
import shutil
import signal
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import apsw
import pytest

from colibri.store.sqlite.schema import quick_check
from tests.support.client import Server
from tests.support.ledger_reader import (
    audited_on_stderr,
    calls,
    condition,
    error,
    eventually,
    has_audited,
    missing,
    reading,
    verified,
)

Act = Callable[[Path, Path], None]


def delete(database: Path, older: Path) -> None:
    database.unlink()


def rename_over(database: Path, older: Path) -> None:
    shutil.copyfile(older, older.with_suffix(".copy"))
    older.with_suffix(".copy").rename(database)


def restore_with_sqlite(database: Path, older: Path) -> None:
    """The inode stays the same; the contents do not."""
    target, source = apsw.Connection(str(database)), apsw.Connection(str(older))
    with target.backup("main", source, "main") as backup:
        backup.step()
    target.close()
    source.close()


def copy_over_checkpointed(database: Path, older: Path) -> None:
    db = apsw.Connection(str(database))
    assert db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone() == (0, 0, 0)
    db.close()
    copy_over(database, older)


def copy_over(database: Path, older: Path) -> None:
    """As `cp` does: the same inode, other bytes."""
    with database.open("r+b") as file:
        file.write(older.read_bytes())
        file.truncate()


def migrate_further(database: Path, older: Path) -> None:
    db = apsw.Connection(str(database))
    db.execute("PRAGMA user_version = 999")
    db.close()


def delete_wal(database: Path, older: Path) -> None:
    database.with_name("colibri.db-wal").unlink()


def give_second_name(database: Path, older: Path) -> None:
    database.with_name("twin.db").hardlink_to(database)


def delete_shm(database: Path, older: Path) -> None:
    database.with_name("colibri.db-shm").unlink()


CASES = [
    pytest.param(delete, "the database file was deleted", id="deleted"),
    pytest.param(rename_over, "the database file was replaced", id="renamed-over"),
    pytest.param(restore_with_sqlite, "was an older copy restored?", id="restored-by-sqlite"),
    pytest.param(copy_over_checkpointed, "was an older copy restored?", id="copied-over"),
    pytest.param(migrate_further, "a newer Colibri migrated it: restart", id="migrated"),
    pytest.param(delete_wal, "the write-ahead log was deleted", id="wal-deleted"),
]


SEEN_FROM_OUTSIDE = [
    *(case for case in CASES if "older copy" not in str(case.values[1])),
    pytest.param(delete_shm, "the shared memory of the write-ahead log was", id="shm-deleted"),
    pytest.param(give_second_name, "(hard links)", id="second-name"),
]


@pytest.fixture
def older(tmp_path: Path) -> Path:
    """A copy of the project's database with two notes; the database later gets ten more."""
    with Server(tmp_path) as server:
        for n in range(2):
            server.data("note", n=n)
        assert server.close() == 0
    return Path(shutil.copyfile(server.database, tmp_path / "older.db"))


def ten_more(server: Server) -> None:
    for n in range(2, 12):
        server.data("note", n=n)


@pytest.mark.parametrize(("act", "words"), CASES)
def test_the_next_writing_call_and_all_later_ones_are_refused_and_the_rest_still_works(
    tmp_path: Path, older: Path, act: Act, words: str
) -> None:
    """Specification 12.12, 15.9: nothing is written; admitted calls are audited on stderr."""
    with Server(tmp_path) as server:
        ten_more(server)
        act(server.database, older)
        for n in (100, 101, 102):
            refused = error(server.call("note", n=n))
            assert refused["code"] == "UNAVAILABLE"
            assert words in refused["message"]

        assert condition(server) == ("SAFE_MODE", "integrity")
        assert words in server.data("server_health")["condition"]["checks"]["condition"]
        assert server.data("server_health")["dropped"]["unavailable"] == 3
        answer = server.call("verify")
        if act is migrate_further:  # this version cannot judge what a newer one wrote
            assert words in error(answer)["message"]
            return
        assert answer["structuredContent"]["data"]["valid"] is True
        assert server.data("server_ping")["mode"] == "FULL"
        for tool in ("verify", "server_ping"):
            eventually(has_audited(server, tool), "its audit lines")
            enter, left = audited_on_stderr(server, tool)
            assert (enter["audit"], left["audit"]) == ("enter", "exit")
            assert enter["call"] == left["call"]
            assert left["outcome"] == "ok"
        assert server.close() == 0


@pytest.mark.parametrize(("act", "words"), SEEN_FROM_OUTSIDE)
def test_a_server_that_nobody_calls_notices_it_too(
    tmp_path: Path, older: Path, act: Act, words: str
) -> None:
    """Decision 008: each health check begins with a check of the files and the schema."""
    with Server(tmp_path, COLIBRI_HEALTH_INTERVAL_MS="50") as server:
        ten_more(server)
        act(server.database, older)
        said = re.compile(r"SAFE_MODE integrity: .*" + re.escape(words))
        eventually(lambda: said.search(server.stderr), "SAFE_MODE")
        assert server.close() == 0


@pytest.mark.parametrize(("act", "words"), SEEN_FROM_OUTSIDE)
def test_a_read_only_server_refuses_the_next_read_with_the_reason(
    tmp_path: Path, older: Path, act: Act, words: str
) -> None:
    """Decision 008: it never commits, so each read begins with that check."""
    with Server(tmp_path, COLIBRI_MODE="READONLY") as server:
        assert server.data("task_list")["total_count"] == 0
        act(server.database, older)
        refused = error(server.call("task_list"))
        assert refused["code"] == "UNAVAILABLE"
        assert words in refused["message"]
        assert condition(server) == ("SAFE_MODE", "integrity")
        assert server.close() == 0


def test_nothing_is_written_to_the_file_that_took_the_database_s_place(
    tmp_path: Path, older: Path
) -> None:
    """Specification 15.9: neither by a call, nor by copying the log back at the end."""
    with Server(tmp_path) as server:
        ten_more(server)
        rename_over(server.database, older)
        assert error(server.call("note", n=100))["code"] == "UNAVAILABLE"
        assert server.close() == 0
    assert digest(server.database) == digest(older)

    log = server.database.with_name("colibri.db-wal")
    with Server(tmp_path) as server:
        refused = error(server.call("note", n=200))
        assert f"was replaced, but the write-ahead log next to it, {log}" in refused["message"]
        assert server.close() == 75
    assert digest(server.database) == digest(older)

    log.unlink()
    with Server(tmp_path) as server:
        assert condition(server) == ("NORMAL", None)
        assert server.data("note", n=200) == {"n": 200}
        recorded = [pair.arguments["n"] for pair in calls(server.database, "note")]
        assert recorded == [0, 1, 200]
        verified(server.database)


def test_a_server_whose_database_was_replaced_does_not_harm_one_that_serves_the_new_file(
    tmp_path: Path, older: Path
) -> None:
    """Specification 15.9: an acknowledged commit is never lost, here at the end of the other."""
    with Server(tmp_path) as first:
        ten_more(first)
        for name in ("colibri.db", "colibri.db-wal", "colibri.db-shm"):
            (tmp_path / "data" / name).rename(tmp_path / name)  # as a careful person would
        shutil.copyfile(older, first.database)
        with Server(tmp_path) as second:
            receipts = [second.call("note", n=n)["_meta"]["colibri/receipt"] for n in range(5)]
            assert error(first.call("note", n=100))["code"] == "UNAVAILABLE"
            assert first.close() == 0
            assert missing(second.database, receipts) == []
            assert second.data("note", n=6) == {"n": 6}
            second.process.kill()
            assert second.wait() == -signal.SIGKILL
    assert missing(first.database, receipts) == []
    verified(first.database)


def test_an_older_copy_under_a_complete_write_ahead_log_loses_nothing(
    tmp_path: Path, older: Path
) -> None:
    """Specification 15.9: the -wal still has what `cp` overwrites here."""
    with Server(tmp_path) as server:
        ten_more(server)
        copy_over(server.database, older)
        assert server.data("note", n=12) == {"n": 12}
        assert server.data("verify")["valid"] is True
        assert server.close() == 0
    assert [pair.arguments["n"] for pair in calls(server.database, "note")] == list(range(13))
    verified(server.database)


def digest(file: Path) -> str:
    return sha256(file.read_bytes()).hexdigest()


def test_a_server_that_lost_its_write_ahead_log_keeps_others_out_and_loses_nothing(
    tmp_path: Path,
) -> None:
    """A second log would fork the ledger; and only the deleted one has what it acknowledged."""
    with Server(tmp_path) as first:
        for n in range(50):
            first.data("note", n=n)
        assert first.close() == 0
    with Server(tmp_path) as first:
        for n in range(80):
            first.data("note", n=n, content="a" * 90)
        for suffix in ("-wal", "-shm"):
            Path(f"{first.database}{suffix}").unlink()
        with Server(tmp_path, COLIBRI_STARTUP_TIMEOUT_MS="1000") as second:
            refused = error(second.call("task_create", title="never"))
            assert refused["code"] == "UNAVAILABLE"
            assert "but not the files that are on the disk now" in refused["message"]
            assert second.close() == 75
        assert error(first.call("note", n=200))["code"] == "UNAVAILABLE"
        assert first.close() == 0
    assert len(calls(first.database, "note")) == 130
    verified(first.database)
    with reading(first.database) as db:
        assert quick_check(db) == []
