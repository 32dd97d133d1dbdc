"""A power cut: ext4 on a loop device is shut down without flushing anything.

EXT4_IOC_SHUTDOWN with NOLOGFLUSH discards every page that was not synced, as a power cut does.
Only answers read before the ioctl count: the server survives the "cut" and still answers from
memory.
"""

import fcntl
import os
import shutil
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from colibri.core.errors import ResourceError
from tests.support.client import COLIBRI, JSON, Server
from tests.support.faulty import program
from torture import ControlFailed, Lab, Trial, Violation, check_log

EXT4_IOC_SHUTDOWN = 0x8004587D
NOLOGFLUSH = 2
LAZY = program("never-syncs")
CONTROL_CUTS = 30
DISK_MIB = 256


def needs() -> str:
    """Why it cannot run here, or "": it needs root, mkfs and loop devices."""
    if os.geteuid() != 0:
        return "mounting needs root"
    if missing_programs := [p for p in ("mkfs.ext4", "mount", "umount") if not shutil.which(p)]:
        return f"not installed: {', '.join(missing_programs)}"
    try:
        with Disk.probe():
            return ""
    except subprocess.CalledProcessError as problem:
        return f"no loop device can be mounted here: {problem.stderr.decode().strip()}"
    except OSError as problem:
        return f"the file system cannot be shut down here: {problem}"


class Disk:
    """A file with ext4 in it, mounted, cut off and mounted again."""

    def __init__(self, directory: Path) -> None:
        self.image, self.at = directory / "disk.img", directory / "disk"
        with self.image.open("wb") as file:
            file.truncate(DISK_MIB << 20)
        _run("mkfs.ext4", "-q", "-F", str(self.image))
        self.at.mkdir()

    def mount(self) -> None:
        _run("mount", "-o", "loop", str(self.image), str(self.at))

    def cut(self) -> None:
        descriptor = os.open(self.at, os.O_RDONLY)
        try:
            fcntl.ioctl(descriptor, EXT4_IOC_SHUTDOWN, struct.pack("I", NOLOGFLUSH))
        finally:
            os.close(descriptor)

    def unmount(self) -> None:
        _run("umount", str(self.at))

    @staticmethod
    @contextmanager
    def probe() -> Iterator[None]:
        """Mount a disk and cut it, to see whether that works here."""
        with tempfile.TemporaryDirectory() as scratch:
            disk = Disk(Path(scratch))
            disk.mount()
            try:
                disk.cut()
                yield
            finally:
                disk.unmount()


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


class Cutter:
    """Rounds on one disk: mount, check, burst, cut."""

    def __init__(self, lab: Lab, name: str, program: Sequence[str]) -> None:
        self.disk = Disk(lab.fresh(name))
        self.program = program
        self.random = lab.random
        self.acknowledged = 0
        self._receipts: list[JSON] = []

    def round(self) -> None:
        """One life of a disk; raises Violation."""
        self.disk.mount()
        try:
            project = self.disk.at / "project"
            project.mkdir(exist_ok=True)
            self._look_back(project / "data" / "colibri.db")
            self._write_and_cut(project)
        finally:
            self.disk.unmount()

    def _write_and_cut(self, project: Path) -> None:
        with Server(project, self.program) as server:
            end = time.monotonic() + self.random.uniform(0.05, 0.4)
            while time.monotonic() < end:
                ids = [server.post_call("task_create", title="kept") for _ in range(5)]
                for id in ids:
                    result = server.answer(id)["result"]
                    self._receipts.append(result["_meta"]["colibri/receipt"])
                    self.acknowledged += 1
                self._receipts += self._heads_of_reads(server)
            server.post_call("task_create", title="in flight")
            self.disk.cut()
            server.process.kill()
            server.process.wait()

    def _heads_of_reads(self, server: Server) -> list[JSON]:
        """Every head that reading calls return: their own records need no sync, the heads do."""
        results = [server.call(tool) for tool in ("task_list", "audit_verify_chain")]
        head = results[1]["structuredContent"]["data"]["head"]
        receipts: list[JSON] = [one["_meta"]["colibri/receipt"] for one in results]
        return [*receipts, {"seq": head["seq"], "head": head["leaf"]}]

    def _look_back(self, database: Path) -> None:
        if not self._receipts:
            return
        try:
            check_log(database, self._receipts)
        except ResourceError as problem:
            raise Violation("the database is gone") from problem
        self._receipts = []


def control(lab: Lab) -> str:
    """A server that does not sync its commits must lose some."""
    cutter = Cutter(lab, "lazy", LAZY)
    for number in range(CONTROL_CUTS):
        try:
            cutter.round()
        except Violation as problem:
            return f"without syncs cut {number + 1} is caught ({problem})"
    raise ControlFailed(f"nothing was lost in {CONTROL_CUTS} cuts without syncs")


def run(lab: Lab) -> dict[str, object]:
    """Cuts, on a new disk every 100, so that the check stays short."""
    acknowledged = 0
    for first in range(0, lab.count, 100):
        cutter = Cutter(lab, f"disk-{first}", COLIBRI)
        for number in range(first, min(first + 100, lab.count)):
            cutter.round()
            lab.say(f"{number + 1} of {lab.count} cuts, {acknowledged + cutter.acknowledged} acks")
        cutter.disk.mount()
        try:
            cutter._look_back(cutter.disk.at / "project" / "data" / "colibri.db")
        finally:
            cutter.disk.unmount()
        cutter.disk.image.unlink()
        acknowledged += cutter.acknowledged
    return {"acknowledged calls": acknowledged, "lost": 0, "corrupt": 0}


TRIAL = Trial(
    name="power",
    title="power cut: ext4 shut down without a flush while calls are written",
    claim="no acknowledged call is lost, the chain is good after every cut",
    unit="cuts",
    quick=15,
    full=500,
    minutes=4,
    control=control,
    run=run,
    needs=needs,
)
