"""Databases that cannot be opened, impossible settings, and modes that must change nothing."""

import fcntl
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from hashlib import sha256
from pathlib import Path

import pytest

from tests.support.client import Server
from tests.support.ledger_reader import (
    calls,
    condition,
    create,
    error,
    flip_in_a_record,
    holding,
    overwrite_a_page,
)
from tests.support.mounts import immutable, read_only

CANNOT_OPEN = 75


@contextmanager
def a_directory(path: Path) -> Iterator[str]:
    path.mkdir(parents=True)
    yield "is a directory"


@contextmanager
def in_a_read_only_file_system(path: Path) -> Iterator[str]:
    path.parent.mkdir()
    with read_only(path.parent):
        yield "Read-only file system"


@contextmanager
def in_an_unwritable_directory(path: Path) -> Iterator[str]:
    path.parent.mkdir()
    with immutable(path.parent):
        yield "Operation not permitted"


@contextmanager
def being_created_by_another(path: Path) -> Iterator[str]:
    """Another process holds the lock file for longer than COLIBRI_STARTUP_TIMEOUT_MS."""
    path.parent.mkdir()
    with (path.parent / "colibri.db.lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield "another Colibri is using"


Surrounding = Callable[[Path], AbstractContextManager[str]]


@pytest.mark.parametrize(
    "surrounding",
    [
        a_directory,
        in_a_read_only_file_system,
        in_an_unwritable_directory,
        being_created_by_another,
    ],
)
def test_with_a_database_that_cannot_be_opened_probes_answer_and_calls_say_why(
    tmp_path: Path, surrounding: Surrounding
) -> None:
    """Specification 4.15, 11.5: it stays up in phase1, and exits with 75."""
    path = tmp_path / "data" / "colibri.db"
    with surrounding(path) as why:
        before = contents(path.parent)
        with Server(tmp_path, COLIBRI_STARTUP_TIMEOUT_MS="300") as server:
            for tool in ("note", "verify"):
                refused = error(server.call(tool, **({"n": 1} if tool == "note" else {})))
                assert refused["code"] == "UNAVAILABLE"
                assert why in refused["message"]
            assert server.data("server_ping")["mode"] == "FULL"
            health = server.data("server_health")
            assert (health["status"], health["phase"]) == ("ok", "phase1")
            assert health["db"]["status"].startswith("not open: ")
            assert why in health["db"]["status"]
            assert server.close() == CANNOT_OPEN
        assert why in server.stderr
        after = contents(path.parent)
        after.pop("colibri.db.lock", None)
        before.pop("colibri.db.lock", None)
        assert after == before


@pytest.mark.parametrize("damage", [flip_in_a_record, overwrite_a_page])
def test_a_damaged_database_is_noticed_at_the_start_and_nothing_is_written_to_it(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    """Specification 11.6: the last 1,000 records and a quick_check."""
    path = tmp_path / "data" / "colibri.db"
    create(path, 500)
    damage(path)
    before = contents(path.parent)
    with Server(tmp_path) as server:
        assert error(server.call("note", n=1))["code"] == "UNAVAILABLE"
        assert server.data("server_ping")["mode"] == "FULL"
        assert condition(server) == ("SAFE_MODE", "integrity")
        if damage is flip_in_a_record:
            assert server.data("verify")["valid"] is False
        assert server.close() == 0
    assert "[colibri] SAFE_MODE integrity: " in server.stderr
    after = contents(path.parent)
    for files in (before, after):
        del files["colibri.db.lock"]  # names the open file, so every opening rewrites it
    assert after == before


@pytest.mark.slow
def test_a_database_that_another_process_holds_for_10_s_is_unavailable_until_released(
    tmp_path: Path,
) -> None:
    """Specification 4.15, 15.5: after 10 s; nothing is wrong with the server."""
    with Server(tmp_path) as server:
        server.data("note", n=1)
        with holding(server.database):
            began = time.monotonic()
            refused = error(server.call("note", n=2))
            assert 9 <= time.monotonic() - began <= 15
            assert refused["code"] == "UNAVAILABLE"
            assert "the database for 10 s: nothing was changed" in refused["message"]
        assert condition(server) == ("NORMAL", None)
        assert server.data("note", n=3) == {"n": 3}
    assert [pair.arguments["n"] for pair in calls(server.database, "note")] == [1, 3]


@pytest.mark.parametrize("mode", ["READONLY", "MINIMAL"])
@pytest.mark.parametrize("ended", ["cleanly", "by a kill"])
def test_readonly_and_minimal_change_no_byte(tmp_path: Path, mode: str, ended: str) -> None:
    """Specification 10.4, 10.5: file and -wal never change; no lock file, no migration."""
    with Server(tmp_path) as server:
        for n in range(20):
            server.data("note", n=n)
        if ended == "by a kill":
            server.process.kill()
        assert server.close() == (0 if ended == "cleanly" else -signal.SIGKILL)
    data = server.database.parent
    assert (data / "colibri.db-wal").exists() == (ended == "by a kill")
    (data / "colibri.db.lock").unlink()
    before = contents(data)

    with Server(tmp_path, COLIBRI_MODE=mode) as server:
        if mode == "READONLY":
            assert server.data("verify") == {"valid": True, "records": 40}
        assert server.data("server_ping")["mode"] == mode
        assert server.close() == 0
    after = contents(data)
    if ended == "cleanly":  # then SQLite may add an empty -wal
        assert after.pop("colibri.db-wal", digest(b"")) == digest(b"")
    for shared in (before, after):
        shared.pop("colibri.db-shm", None)
    assert after == before


def test_readonly_serves_a_database_on_a_read_only_file_system(tmp_path: Path) -> None:
    """Specification 10.4: if -shm cannot be created and no -wal exists, immutable=1."""
    create(tmp_path / "data" / "colibri.db", 100)
    with read_only(tmp_path / "data"), Server(tmp_path, COLIBRI_MODE="READONLY") as server:
        assert server.data("verify") == {"valid": True, "records": 100}
        assert server.close() == 0


def contents(directory: Path) -> dict[str, str]:
    """The contents of a directory, by name; only while no server has it open."""
    if not directory.is_dir():
        return {}
    files = {path.name: path for path in directory.iterdir()}
    return {name: digest(p.read_bytes()) if p.is_file() else "" for name, p in files.items()}


def digest(data: bytes) -> str:
    return sha256(data).hexdigest()
