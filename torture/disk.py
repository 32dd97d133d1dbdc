"""A full disk: a separate file system of 8 MiB, filled to the last page and emptied again."""

import errno
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.support.client import COLIBRI, JSON, Server
from tests.support.faulty import program
from torture import ControlFailed, Lab, Trial, Violation, check_log, check_normal

HASTY = program("answers-early")


def needs() -> str:
    """Why it cannot run here, or "": it has to mount."""
    if os.geteuid() != 0:
        return "mounting needs root"
    probe = ["unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    try:
        subprocess.run(probe, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as problem:
        return f"nothing can be mounted here: {problem}"
    return ""


class Small:
    """The mounted file system."""

    def __init__(self, at: Path, size: str = "8m") -> None:
        self.at = at
        self._size = size

    def __enter__(self) -> "Small":
        command = [
            "mount",
            "-t",
            "tmpfs",
            "-o",
            f"size={self._size},mode=700",
            "tmpfs",
            str(self.at),
        ]
        subprocess.run(command, check=True, capture_output=True)
        return self

    def __exit__(self, *_: object) -> None:
        subprocess.run(["umount", "--lazy", str(self.at)], check=True, capture_output=True)

    def fill(self) -> Path:
        """Use up the remaining space; returns the file that does."""
        ballast = self.at / "ballast"
        descriptor = os.open(ballast, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            while True:
                os.write(descriptor, b"x" * 4096)
        except OSError as problem:
            if problem.errno != errno.ENOSPC:
                raise
        finally:
            os.close(descriptor)
        return ballast


def _write_until_full(server: Server, receipts: list[JSON]) -> None:
    """Write until a call is refused because the disk is full; Violation for any other refusal."""
    for number in range(1_000):
        result = server.call("task_create", title=f"task {number}")
        if not result["isError"]:
            receipts.append(result["_meta"]["colibri/receipt"])
            continue
        refusal = result["structuredContent"]["error"]
        if refusal["code"] != "UNAVAILABLE" or "the disk is full" not in refusal["message"]:
            raise Violation(f"on a full disk: {refusal}")
        return
    raise Violation("a full disk refused nothing")


def _refused_now(server: Server) -> None:
    if not server.call("task_create", title="one more")["isError"]:
        raise Violation("a call on a full disk was not refused")


def _rounds(lab: Lab, disk: Small, program: Sequence[str], rounds: int) -> dict[str, object]:
    """Fill, be refused, read, verify, free space, continue; every fifth time stop while full."""
    receipts: list[JSON] = []
    server = _start(disk, program)
    for number in range(rounds):
        result = server.call("task_create", title="with room")
        if result["isError"]:
            raise Violation(f"with room again: {result['structuredContent']}")
        receipts.append(result["_meta"]["colibri/receipt"])
        ballast = disk.fill()
        _write_until_full(server, receipts)
        _refused_now(server)
        _still_reads(server)
        if number % 5 == 4:
            if number % 10 == 4:
                server.process.kill()
            server.__exit__(None, None, None)
        ballast.unlink()
        if number % 5 == 4:
            server = _start(disk, program)
        lab.say(f"{number + 1} of {rounds} times full")
    server.__exit__(None, None, None)
    return {
        "acknowledged calls": len(receipts),
        "lost": 0,
        "records": check_log(disk.at / "colibri.db", receipts).record_count,
    }


def _start(disk: Small, program: Sequence[str]) -> Server:
    return Server(disk.at, program, COLIBRI_DB_PATH="colibri.db")


def _still_reads(server: Server) -> None:
    if not server.data("audit_verify_chain")["valid"] or not server.data("task_list"):
        raise Violation("reading or verifying failed on a full disk")
    check_normal(server, "on a full disk the server")


def control(lab: Lab) -> str:
    """A server that answers before it commits acknowledges calls on a full disk."""
    with Small(lab.fresh("hasty")) as disk:
        try:
            _rounds(lab, disk, HASTY, 10)
        except Violation as problem:
            return f"a server that answers before it commits is caught ({problem})"
    raise ControlFailed("a server that answers before it commits was not caught")


def run(lab: Lab) -> dict[str, object]:
    """On one small disk."""
    with Small(lab.fresh("disk")) as disk:
        return _rounds(lab, disk, COLIBRI, lab.count)


TRIAL = Trial(
    name="disk",
    title="the disk is filled to the last page, emptied, filled again; kills on a full disk",
    claim="a clear refusal, reading and verifying go on, writing resumes, nothing is lost",
    unit="times full",
    quick=10,
    full=50,
    control=control,
    run=run,
    needs=needs,
)
