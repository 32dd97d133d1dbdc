"""The canary: two writers and three checkpointers on one write-ahead log, with the shipped SQLite.

Before 3.51.3, a writer that restarted the log while a checkpoint read its header could lose commits
or corrupt the file. The version check refuses such libraries; this shows that the shipped one is
safe. If the interpreter itself has an old library, the control must see it fail.

The window is less than a microsecond. It is hit often if the log is emptied often: files in memory,
nothing synced, checkpointers that never pause, writers that do.
"""

import random
import sqlite3  # the control: never in the server
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw

from colibri.core.errors import ResourceError
from colibri.store.sqlite.connection import MINIMUM_SQLITE, connect, require_sqlite
from tests.support.client import environment
from torture import ControlFailed, Lab, Trial, Violation, in_memory

WRITERS = 2
CHECKPOINTERS = 3
ROUND_SECONDS = 4.0
CONTROL_SECONDS = 2.0
CONTROL_ROUNDS = 30  # of the old library, which fails in about one of three
REST_SECONDS = 0.0005
SCHEMA = "CREATE TABLE t (writer INTEGER, number INTEGER, text TEXT, PRIMARY KEY (writer, number))"
INSERT = "INSERT INTO t VALUES (?, ?, ?)"


def _shipped(path: str) -> Any:
    return connect(path, "write")


def _interpreters(path: str) -> Any:
    return sqlite3.connect(path, timeout=10, isolation_level=None)


LIBRARIES: dict[str, Callable[[str], Any]] = {"shipped": _shipped, "interpreter": _interpreters}
BUSY = (apsw.BusyError, sqlite3.OperationalError)


def _write(db: Any, writer: int, until: float) -> int:
    chance, number = random.Random(writer), 0
    while time.monotonic() < until:
        try:
            db.execute("BEGIN IMMEDIATE")
        except BUSY:
            continue
        db.execute(INSERT, (writer, number, "x" * 300))
        db.execute("COMMIT")
        number += 1
        time.sleep(chance.random() * REST_SECONDS)  # lets the log be emptied
    return number


def _checkpoint(db: Any, _: int, until: float) -> int:
    number = 0
    while time.monotonic() < until:
        try:
            db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
            number += 1
        except BUSY:
            continue
    return number


def _work(role: str, path: str, library: str, number: int, seconds: float) -> int:
    """Run one of the five processes; returns how many operations it did."""
    db = LIBRARIES[library](path)
    db.execute("PRAGMA synchronous = OFF")
    work = _write if role == "commits" else _checkpoint
    return work(db, number, time.monotonic() + seconds)


def _round(path: Path, library: str, seed: int, seconds: float = ROUND_SECONDS) -> Counter[str]:
    """Commits and checkpoints of a round on a new database; raises Violation."""
    path.touch(mode=0o600)
    db = LIBRARIES[library](str(path))
    db.execute("PRAGMA journal_mode = WAL")
    db.execute(SCHEMA)
    roles = ["commits"] * WRITERS + ["checkpoints"] * CHECKPOINTERS
    command = [sys.executable, "-m", "torture.canary"]
    processes = [
        subprocess.Popen(
            [*command, role, str(path), library, str(seed + number), str(seconds)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(),
        )
        for number, role in enumerate(roles)
    ]
    counts: Counter[str] = Counter()
    problems = []
    for role, process in zip(roles, processes, strict=True):
        out, errors = process.communicate(timeout=seconds + 60)
        counts[role] += int(out or 0)
        problems += errors.decode().splitlines()[-1:]
    db.close()
    if problems:
        raise Violation(f"a process failed: {problems[0]}")
    _check(path, counts["commits"])
    return counts


def _check(path: Path, commits: int) -> None:
    """All pages are intact, and every commit is present."""
    db = connect(str(path), "read")
    try:
        found = [text for (text,) in db.execute("PRAGMA integrity_check(3)")]
        if found != ["ok"]:
            raise Violation(f"the file is corrupt: {found[0]}")
        rows = db.execute("SELECT count(*) FROM t").get
        if rows != commits:
            raise Violation(f"{rows} of {commits} commits are there")
    except apsw.Error as problem:
        raise Violation(f"the file is corrupt: {problem}") from problem
    finally:
        db.close()


def control(lab: Lab) -> str:
    """Damage done by hand, a version number that is too old and, if available, an old library."""
    with in_memory() as directory:
        caught = [_damage_is_seen(directory, lab.seed), _old_versions_are_refused()]
        if sqlite3.sqlite_version_info < MINIMUM_SQLITE:
            caught.append(_old_library_fails(directory, lab))
    return "; ".join(caught)


def _damage_is_seen(directory: Path, seed: int) -> str:
    for name, hurt in (("page", _overwrite_a_page), ("commit", _take_a_commit_away)):
        path = directory / name
        counts = _round(path, "shipped", seed, seconds=0.3)
        hurt(path)
        try:
            _check(path, counts["commits"])
        except Violation:
            continue
        raise ControlFailed(f"a {name} was taken away and nobody noticed")
    return "an overwritten page and a commit taken away are seen"


def _overwrite_a_page(path: Path) -> None:
    with path.open("r+b") as file:  # no other process has it open
        file.seek(4096 * 3)
        file.write(b"\xff" * 4096)


def _take_a_commit_away(path: Path) -> None:
    db = apsw.Connection(str(path))
    db.execute("DELETE FROM t WHERE rowid = (SELECT max(rowid) FROM t)")
    db.close()


def _old_versions_are_refused() -> str:
    try:
        require_sqlite("3.51.2")
    except ResourceError:
        return "3.51.2 is refused"
    raise ControlFailed("SQLite 3.51.2 was let in")


def _old_library_fails(directory: Path, lab: Lab) -> str:
    version = sqlite3.sqlite_version
    for number in range(CONTROL_ROUNDS):
        path = directory / f"old-{number}"
        try:
            _round(path, "interpreter", lab.random.randrange(2**31), CONTROL_SECONDS)
        except Violation as problem:
            return f"SQLite {version} fails in round {number + 1} ({problem})"
        lab.say(f"control: {number + 1} rounds of SQLite {version}")
    raise ControlFailed(f"SQLite {version} did not fail in {CONTROL_ROUNDS} rounds")


def run(lab: Lab) -> dict[str, object]:
    """Rounds, each on a new database."""
    counts: Counter[str] = Counter()
    for number in range(lab.count):
        with in_memory() as directory:
            counts += _round(directory / "canary.db", "shipped", lab.random.randrange(2**31))
        lab.say(f"{number + 1} of {lab.count} rounds, {counts['commits']:,} commits")
    return {"SQLite": apsw.sqlite_lib_version(), **counts, "bad": 0}


TRIAL = Trial(
    name="canary",
    title="2 writers and 3 checkpointers on one write-ahead log, in rounds of 4 s",
    claim="the shipped SQLite keeps every commit and every page",
    unit="rounds",
    quick=2,
    full=60,
    minutes=5,
    control=control,
    run=run,
)

if __name__ == "__main__":
    role, path, library, number, seconds = sys.argv[1:]
    print(_work(role, path, library, int(number), float(seconds)))
