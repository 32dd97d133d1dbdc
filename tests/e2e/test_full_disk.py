"""A full disk, on a separate small file system: nothing is lost, and writing resumes."""

import errno
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.client import JSON, Server
from tests.support.ledger_reader import (
    condition,
    error,
    eventually,
    has_audited,
    missing,
    verified,
)
from tests.support.mounts import small_disk


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk") as path:
        yield path


def fill(disk: Path) -> Path:
    """Use up the remaining space, to the last page; returns the file that does."""
    ballast = disk / "ballast"
    descriptor = os.open(ballast, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        while True:
            os.write(descriptor, b"x" * 4096)
    except OSError as problem:
        assert problem.errno == errno.ENOSPC
    finally:
        os.close(descriptor)
    return ballast


def write_until_full(server: Server) -> list[JSON]:
    """The receipts of the calls that succeeded before one was refused."""
    receipts: list[JSON] = []
    while True:
        result = server.call("note", n=len(receipts))
        if result["isError"]:
            assert error(result)["code"] == "UNAVAILABLE"
            assert error(result)["message"].startswith("the disk is full: nothing was changed")
            return receipts
        receipts.append(result["_meta"]["colibri/receipt"])
        assert len(receipts) < 1000


def test_on_a_full_disk_writing_is_refused_and_reading_continues(
    tmp_path: Path, disk: Path
) -> None:
    """Specification 12.13: writing tools get UNAVAILABLE, reads run with stderr audit."""
    with Server(tmp_path, COLIBRI_DB_PATH="disk/colibri.db") as server:
        server.data("note", n=0)
        fill(disk)
        write_until_full(server)

        assert server.data("verify")["valid"] is True
        assert server.data("server_ping")["mode"] == "FULL"
        assert condition(server) == ("NORMAL", None)  # a full disk is neither SAFE_MODE nor io
        assert server.data("server_health")["condition"]["checks"]["disk"] == "full"
        for tool in ("verify", "server_ping"):
            eventually(has_audited(server, tool), "its audit lines")
        assert error(server.call("note", n=1))["code"] == "UNAVAILABLE"


def test_when_there_is_space_again_writing_resumes_and_nothing_acknowledged_is_lost(
    tmp_path: Path, disk: Path
) -> None:
    """Specification 12.13: the next successful commit ends it; ten times over."""
    receipts: list[JSON] = []
    with Server(tmp_path, COLIBRI_DB_PATH="disk/colibri.db") as server:
        for _ in range(10):
            receipts.append(server.call("note", n=0)["_meta"]["colibri/receipt"])
            ballast = fill(disk)
            receipts += write_until_full(server)
            ballast.unlink()
        receipts.append(server.call("note", n=0)["_meta"]["colibri/receipt"])
        assert server.data("server_health")["condition"]["checks"]["disk"] == "ok"
        assert condition(server) == ("NORMAL", None)
        assert server.close() == 0
    assert missing(disk / "colibri.db", receipts) == []
    verified(disk / "colibri.db")


def test_a_server_that_ends_or_is_killed_on_a_full_disk_loses_nothing(
    tmp_path: Path, disk: Path
) -> None:
    """Specification 12.13: even without space to empty the -wal."""
    receipts: list[JSON] = []
    for ending in ("close", "kill", "close"):
        with Server(tmp_path, COLIBRI_DB_PATH="disk/colibri.db") as server:
            receipts.append(server.call("note", n=0)["_meta"]["colibri/receipt"])
            ballast = fill(disk)
            receipts += write_until_full(server)
            if ending == "kill":
                server.process.kill()
            assert server.close() == (0 if ending == "close" else -signal.SIGKILL)
        ballast.unlink()
    with Server(tmp_path, COLIBRI_DB_PATH="disk/colibri.db") as server:
        assert server.data("note", n=0) == {"n": 0}
        assert condition(server) == ("NORMAL", None)
        assert server.close() == 0
    assert missing(disk / "colibri.db", receipts) == []
    verified(disk / "colibri.db")


def test_a_start_on_a_full_disk_fails_with_the_reason_and_the_next_one_works(
    tmp_path: Path, disk: Path
) -> None:
    """Specification 11.5: probes answer and say why, other calls get UNAVAILABLE, exit 75."""
    ballast = fill(disk)
    with Server(tmp_path, COLIBRI_DB_PATH="disk/colibri.db") as server:
        refused = error(server.call("note", n=1))
        assert refused["code"] == "UNAVAILABLE"
        assert "the disk is full" in refused["message"]
        assert "the disk is full" in server.data("server_health")["db"]["status"]
        assert server.close() == 75
    ballast.unlink()
    with Server(tmp_path, COLIBRI_DB_PATH="disk/colibri.db") as server:
        assert server.data("note", n=1) == {"n": 1}
        assert server.close() == 0
    verified(disk / "colibri.db")
