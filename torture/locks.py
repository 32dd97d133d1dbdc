"""Locks: only SQLite opens the database, and its locks stay in place.

POSIX drops all locks of a process on a file when the process closes any descriptor of that file.
strace shows who opened it, by the innermost frame above the C library; /proc/locks shows after each
call whether SQLite's locks are still held.
"""

import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from colibri.tools.catalogue import CATALOGUE
from tests.support.client import COLIBRI, JSON, Server, execute_raw
from tests.support.faulty import program
from tests.support.ledger_reader import booted
from torture import ControlFailed, Lab, Trial, Violation

MEDDLER = program("drops-locks")
PROGRAM = (sys.executable, "-m", "colibri")
FILES = ("", "-shm")  # SQLite locks nothing in the `-wal`, and commands sync it
SQLITE = "/apsw/"  # the library that contains SQLite
# The locks that a connection holds while it is open: (file, first byte); see SQLite's file format.
HELD = (("", 1073741826), ("-shm", 128))
OPENED = re.compile(r'^\d+ +(?:open|openat|creat)\((?:AT_FDCWD, )?"([^"]+)", ([A-Z_|]+)')
RESUMED = re.compile(r"^(\d+) +<\.\.\. (?:open|openat|creat) resumed>")

# Every tool, in an order in which all succeed.
CALLS: tuple[tuple[str, JSON], ...] = (
    ("server_ping", {}),
    ("server_health", {}),
    ("skill_list", {}),
    ("audit_session_start", {"session_id": "S-1", "intent": "keep the locks"}),
    ("task_create", {"title": "a task"}),
    ("task_get", {"task_id": "T-0001"}),
    ("task_list", {"search": "task"}),
    ("task_next_actions", {}),
    ("thought_record", {"session_id": "S-1", "type": "plan", "content": "x"}),
    ("thought_record_list", {}),
    ("task_update", {"task_id": "T-0001", "status": "GATHER"}),
    ("audit_verify_chain", {}),
    ("merkle_finalize", {"session_id": "S-1"}),
    ("merkle_root", {"session_id": "S-1"}),
)
BESIDE = (
    ("verify",),
    ("verify", "--session", "S-1"),
    ("export", "--all", "-o", "all.json"),
    ("export", "--session", "S-1", "-o", "session.json"),
    ("backup", "copy.db"),
    ("verify", "copy.db"),
    ("doctor",),
)
assert {tool for tool, _ in CALLS} == {tool.name for tool in CATALOGUE}
AFTER = (("restore", "copy.db"), ("verify",))


def needs() -> str:
    """Why it cannot run here, or ""."""
    if not shutil.which("strace"):
        return "strace is not installed"
    if not Path("/proc/locks").exists():
        return "the system does not tell who holds locks"
    probe = ["strace", "-k", "-o", "/dev/null", "true"]
    done = subprocess.run(probe, capture_output=True, check=False)
    return "strace cannot tell who called here" if done.returncode else ""


class Watch:
    """A project whose database is watched."""

    def __init__(self, project: Path) -> None:
        self.project = project
        self.database = project / "data" / "colibri.db"
        self.log = project / "strace.txt"
        self.seen: Counter[str] = Counter()

    def watched(self, *program: str) -> list[str]:
        names = (str(self.database), "data/colibri.db", "colibri.db")  # every way to spell the path
        paths = [part for name in names for end in FILES for part in ("-P", f"{name}{end}")]
        calls = "trace=open,openat,creat"
        return ["strace", "-f", "-k", "-o", str(self.log), "-e", calls, *paths, *program]

    def server(self, program: Sequence[str]) -> None:
        """Every tool, with a check of the locks after each; then the commands, in parallel."""
        with Server(self.project, self.watched(*program)) as server:
            server.call("task_list")
            booted(server)
            for tool, arguments in CALLS:
                if server.call(tool, **arguments)["isError"]:
                    raise Violation(f"{tool} failed")
                self._still_locked(tool)
            log, self.log = self.log, self.project / "beside.txt"
            for command in BESIDE:
                self.command(*command)
                self._still_locked(f"colibri {' '.join(command)} beside it")
            self.log = log
            if code := server.close():
                raise Violation(f"the server ended with {code}")
        self._only_sqlite("the server")

    def command(self, *arguments: str) -> None:
        """Run a command, watched in the same way."""
        done = execute_raw(self.watched(*PROGRAM, *arguments), cwd=self.project)
        if done.returncode:
            raise Violation(f"colibri {' '.join(arguments)}: {done.stderr.decode()[-300:]}")
        self._only_sqlite(f"colibri {arguments[0]}")

    def _still_locked(self, after: str) -> None:
        locks = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
        for end, byte in HELD:
            inode = str(Path(f"{self.database}{end}").stat().st_ino)
            if not any(
                line[1] == "POSIX" and line[5].endswith(f":{inode}") and line[6] == str(byte)
                for line in locks
            ):
                raise Violation(f"after {after} the lock on colibri.db{end} is gone")
            self.seen["locks found in place"] += 1

    def _only_sqlite(self, who: str) -> None:
        for flags, caller in _openings(self.log):
            if SQLITE in caller:
                self.seen["openings by SQLite"] += 1
            elif "O_EXCL" in flags:
                self.seen["new files made"] += 1  # no process can have a lock on a new file
            else:
                raise Violation(f"{who} opened the database past SQLite: {caller}")


def _openings(log: Path) -> Iterator[tuple[str, str]]:
    """The flags of each open call, and the innermost frame outside the C library."""
    flags, waiting = "", {}
    for line in log.read_text(encoding="utf-8").splitlines():
        if found := OPENED.match(line):
            flags = found[2]
            if "<unfinished" in line:
                waiting[line.split()[0]] = flags
        elif found := RESUMED.match(line):
            flags = waiting.pop(found[1])
        elif flags and line.startswith(" > ") and "/libc.so" not in line:
            yield flags, line[3:]
            flags = ""


def control(lab: Lab) -> str:
    """A server that opens its own database file."""
    caught = []
    watch = Watch(lab.fresh("meddler"))
    try:
        watch.server(MEDDLER)
    except Violation as problem:
        caught.append(str(problem))
    try:
        watch._only_sqlite("a server that looks into its file")
    except Violation as problem:
        caught.append(str(problem).partition(":")[0])
    if len(caught) == 2 and "is gone" in caught[0]:
        return "; ".join(caught)
    raise ControlFailed(f"a server that opens its own database file was not caught: {caught}")


def run(lab: Lab) -> dict[str, object]:
    """All tools and commands, on new projects."""
    seen: Counter[str] = Counter()
    for number in range(lab.count):
        watch = Watch(lab.fresh(f"project-{number}"))
        watch.server(COLIBRI)
        watch.log = watch.project / "after.txt"
        for command in AFTER:
            watch.command(*command)
        seen += watch.seen
        lab.say(f"{number + 1} of {lab.count} rounds")
    return {**seen, "openings by anybody else": 0, "locks lost": 0}


TRIAL = Trial(
    name="locks",
    title="all 14 tools and the commands, watched by strace and /proc/locks",
    claim="only SQLite opens the database, and its locks are in place after every call",
    unit="rounds of everything",
    quick=1,
    full=10,
    control=control,
    run=run,
    needs=needs,
)
