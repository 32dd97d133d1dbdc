"""Copies of the database: made while servers write, checked, compared, restored.

A copy is one file: mode 0600, no write-ahead log, readable from read-only storage. During a restore
the path always leads to the old database or to the new one, and the new one never has the old one's
log next to it: SQLite would replay that log into the file.
"""

import os
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Literal

import apsw

from colibri.core.errors import Damaged, ResourceError
from colibri.core.ledger import Head
from colibri.core.report import Break
from colibri.store import ledger
from colibri.store.connection import Connection
from colibri.store.faults import fault
from colibri.store.sqlite.connection import connect
from colibri.store.sqlite.expected import foreign
from colibri.store.sqlite.files import sync_directory
from colibri.store.sqlite.opening import open_reader
from colibri.store.sqlite.pragma import version
from colibri.store.sqlite.schema import integrity_check, load_migrations
from colibri.store.verify import verify

STEP = 4_096  # pages: 16 MiB; between steps, progress is shown and the copy can be interrupted
FOLD_MS = 1_000  # how long to wait for readers to finish
COMPANIONS = ("-wal", "-shm", "-journal")  # what SQLite keeps next to a database

Relation = Literal["identical", "newer", "older", "diverged", "another log"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """A copy compared with the current database: `lost` counts the records that only the current
    database has, `gained` those that only the copy has. kinds, since and until describe the lost.
    """

    relation: Relation
    common: int  # the last record that both have
    lost: int
    gained: int
    kinds: dict[str, int]
    since: str | None
    until: str | None


def is_database(path: str) -> bool:
    """Whether a file is an SQLite database, whoever wrote it."""
    if not os.path.isfile(path):
        return False
    try:
        with closing(connect(path, "read")) as db:
            return db.pragma("schema_version") is not None
    except apsw.Error:
        return False


def open_copy(path: str) -> Connection:
    """Open a copy read-only; its schema may be older. ResourceError if it is not a ledger."""
    try:
        db = open_reader(path, least=0, any_schema=True)  # `check` compares the schema
    except ResourceError as problem:
        raise ResourceError(problem.message, "name a file that colibri backup wrote") from problem
    if version(db) == 0:
        db.close()
        raise ResourceError(f"{path} is empty", "name a file that colibri backup wrote")
    return db


def copy(source: Connection, path: str, *, progress: Callable[[int, int], None]) -> None:
    """Copy a snapshot of all pages into a new file; progress(pages done, total pages).

    The source is in a transaction, which all steps share: writers neither wait for it nor make it
    start over, however busy they are.
    """
    assert isinstance(source, apsw.Connection) and source.in_transaction
    version(source)  # the snapshot is taken at the first read
    # No process can have this file open yet, so closing the descriptor drops no lock.
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    target = connect(path, "write")
    try:
        with target.backup("main", source, "main") as steps:
            while not steps.done:
                steps.step(STEP)
                progress(steps.page_count - steps.remaining, steps.page_count)
        target.execute("PRAGMA journal_mode = DELETE")  # one file
    except apsw.Error as problem:
        full = fault(problem) == "full"
        reason = "the disk is full" if full else str(problem)
        raise ResourceError(f"cannot copy to {path}: {reason}", "try another place") from problem
    finally:
        target.close()


def check(db: Connection, *, head: Head | None, pause: Callable[[], None]) -> list[str]:
    """What is wrong with a copy: its schema, pages, indexes, chain and rows, and its head if the
    expected one is known.
    """
    try:
        if strange := foreign(db):
            return [f"foreign-schema: {what}" for what in strange]
        if damage := integrity_check(db):
            return [f"SQLite: {' '.join(text.split())}" for text in damage]
        # Only a migration can read an older schema's tables; the ledger's format has not changed.
        report = verify(db, head=head, rows=not is_older(db), pause=pause)
    except (apsw.Error, UnicodeDecodeError, Damaged) as problem:
        return [str(problem)]
    if report.valid and head is not None and report.head != head:
        return ["its newest record is not the newest that was copied"]
    return [describe(broken) for broken in report.breaks]


def is_older(db: Connection) -> bool:
    """Whether an older Colibri wrote it; the next start of a server migrates it."""
    return version(db) < load_migrations()[-1].version


def describe(broken: Break) -> str:
    """A finding in one line; findings about rows have no record number."""
    place = f"record {broken.seq}: " if broken.seq else ""
    return f"{place}{broken.what}: {broken.detail}"


def compare(current: Connection, copied: Connection) -> Comparison:
    """What would change if the copy replaced the current database."""
    ours, theirs = (newest.seq if (newest := ledger.head(db)) else 0 for db in (current, copied))
    if ledger.log_id(current) != ledger.log_id(copied):
        return _comparison(current, "another log", 0, ours, theirs)
    common = _last_common(current, copied, min(ours, theirs))
    relations: dict[tuple[bool, bool], Relation] = {
        (False, False): "identical",
        (False, True): "newer",
        (True, False): "older",
        (True, True): "diverged",
    }
    lost, gained = ours - common, theirs - common
    return _comparison(current, relations[lost > 0, gained > 0], common, lost, gained)


def _last_common(one: Connection, other: Connection, upto: int) -> int:
    """The last record that both logs have: sharing one means sharing all before it."""
    low, high = 0, upto
    while low < high:
        middle = (low + high + 1) // 2
        leaf = ledger.leaf_at(one, middle)
        if leaf is not None and leaf == ledger.leaf_at(other, middle):
            low = middle
        else:
            high = middle - 1
    return low


def _comparison(
    current: Connection, relation: Relation, common: int, lost: int, gained: int
) -> Comparison:
    kinds: dict[str, int] = {}
    for kind, count in current.execute(
        "SELECT kind, count(*) FROM ledger WHERE seq > ? GROUP BY kind ORDER BY kind", (common,)
    ):
        kinds[str(kind)] = int(str(count))
    span: Any = current.execute(
        "SELECT min(at), max(at) FROM ledger WHERE seq > ?", (common,)
    ).fetchone()
    return Comparison(relation, common, lost, gained, kinds, *span)


def put(new: str, path: str, aside: str) -> list[str]:
    """Replace a database by a copy and keep the old one as `aside`; returns the files kept.

    Call it within `alone`. The steps: 1 merge the old database into one file, 2 give it a second
    name, 3 move the files that could not be merged to that name, 4 rename the new file into place.
    Until step 4 the old database stays in place; only a damaged one may lose its log before.
    """
    if there := os.path.exists(path):
        _fold(path)  # 1
        os.link(path, aside)  # 2
    moved: list[str] = []
    try:
        for end in COMPANIONS:  # 3
            if os.path.exists(path + end):
                os.rename(path + end, aside + end)
                moved.append(end)
        sync_directory(os.path.dirname(os.path.abspath(path)))
        publish(new, path)  # 4
    except OSError:
        if os.path.exists(new):  # step 4 was not reached
            for end in moved:
                os.rename(aside + end, path + end)
            if there:
                os.unlink(aside)
        raise
    return [aside + end for end in ([""] if there else []) + moved]


def _fold(path: str) -> None:
    """Let SQLite merge the write-ahead log into the file, unless the file is too damaged."""
    db = connect(path, "write")
    try:
        db.set_busy_timeout(FOLD_MS)
        db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)  # leave damaged files as they are
        db.execute("PRAGMA journal_mode = DELETE")
    except apsw.Error as problem:
        what = fault(problem)
        if what == "busy":
            raise ResourceError(
                f"another program has {path} open",
                "close that program, perhaps a READONLY server or a command; then try again",
            ) from problem
        if what != "damaged":
            raise ResourceError(
                f"cannot write {path}: {problem}", "nothing was changed"
            ) from problem
    finally:
        db.close()


def publish(new: str, path: str) -> None:
    """Rename a finished file into place and sync the directory."""
    os.replace(new, path)
    sync_directory(os.path.dirname(os.path.abspath(path)))


def companions(path: str) -> list[str]:
    """The files next to a database that SQLite would take for its log."""
    return [path + end for end in COMPANIONS if os.path.exists(path + end)]


def discard(path: str) -> None:
    """Remove an unfinished copy, if there is one."""
    for name in (path, *companions(path)):
        if os.path.exists(name):
            os.unlink(name)
