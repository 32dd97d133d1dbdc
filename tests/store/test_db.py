"""store/sqlite on real files, with real locks and real processes."""

import fcntl
import os
import resource
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest

from colibri.core.errors import Damaged, ResourceError
from colibri.store import ledger
from colibri.store import verify as check
from colibri.store.faults import Fault, fault
from colibri.store.savepoint import Savepoint
from colibri.store.sqlite.checkpoint import CHECKPOINT_PAGES, set_patience
from colibri.store.sqlite.connection import Access, Connection, connect, require_sqlite
from colibri.store.sqlite.identity import changed, look
from colibri.store.sqlite.opened import Opened
from colibri.store.sqlite.opening import open_reader, open_writer
from colibri.store.sqlite.schema import (
    Migration,
    load_migrations,
    quick_check,
    small_tables,
    table_count,
)
from colibri.store.sqlite.transaction import Transaction
from colibri.store.sqlite.watch import Change
from tests.store.conftest import LOG, Writer

NOBODY = 65534
NEXT = Migration(load_migrations()[-1].version + 1, "CREATE TABLE added (id INTEGER) STRICT")
NEWER = (*load_migrations(), NEXT)

# Opens the database at argv[1] as soon as a line comes in, and does what argv[2] says.
PROCESS = f"""
import os, sys, time
from uuid import uuid4
from colibri.core.ledger import enter_body
from colibri.store import ledger
from colibri.store.sqlite import opening
from colibri.store.sqlite.opening import open_writer
from colibri.store.sqlite.transaction import Transaction
print("ready", flush=True)
sys.stdin.readline()
opened = open_writer(
    sys.argv[1], lock_timeout=30, monotonic=time.monotonic, sleep=time.sleep,
    stamp="now", new_log=lambda: {LOG!r},
)
with Transaction(opened.db, durable=True):
    chain = ledger.Chain(opened.db, {LOG!r}, lambda seq: os.urandom(32))
    payload = enter_body(server=str(uuid4()), tool="t", arguments={{}})
    at = "2026-01-01T00:00:00.000000Z"
    chain.append("call.enter", payload, at=at, call=str(uuid4()))
if sys.argv[2] == "die":
    os._exit(0)
opened.close()
"""


def start(path: str, end: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PROCESS, path, end],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )


def finish(process: subprocess.Popen[str]) -> None:
    _, errors = process.communicate("go\n", timeout=60)
    assert process.returncode == 0, errors


def mode(path: str | Path) -> int:
    return stat.S_IMODE(Path(path).stat().st_mode)


def beside(path: str) -> list[str]:
    """What is in the directory of the database."""
    return sorted(file.name for file in Path(path).parent.iterdir())


def pragma(db: apsw.Connection, name: str) -> object:
    (value,) = next(db.execute(f"PRAGMA {name}"))
    return value


def raw(path: str, sql: str) -> None:
    db = apsw.Connection(path)
    db.execute(sql)
    db.close()


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """What a full disk is to a process: no file can grow beyond size."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def held(path: str, kind: int) -> Iterator[None]:
    """The lock file as another process would hold it."""
    Path(path).parent.mkdir(exist_ok=True)
    descriptor = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(descriptor, kind)
    try:
        yield
    finally:
        os.close(descriptor)


def test_an_engine_has_what_the_store_asks_for_and_nothing_else(writer: Writer) -> None:
    with writer() as opened:
        engine = opened.db.engine
        assert all(hasattr(engine, name) for name in engine.__all__)
        assert not hasattr(engine, "nothing")


@pytest.mark.parametrize("version", ["3.51.2", "3.40.1", "3.9.99", "2.99.99"])
def test_an_sqlite_that_can_corrupt_the_log_is_refused(version: str) -> None:
    """Specification 15.1: refuse anything older than 3.51.3."""
    with pytest.raises(ResourceError, match=version) as caught:
        require_sqlite(version)
    assert "apsw" in caught.value.hint


@pytest.mark.parametrize("version", ["3.51.3", "3.52.0", "3.100.0", "4.0.0"])
def test_a_sound_sqlite_is_accepted(version: str) -> None:
    require_sqlite(version)


SETTINGS = {
    "foreign_keys": 1,
    "recursive_triggers": 1,
    "trusted_schema": 0,
    "secure_delete": 1,
    "synchronous": 2,
    "busy_timeout": 10_000,
    "journal_mode": "wal",
}


@pytest.mark.parametrize("access", ["write", "read", "immutable"])
def test_every_connection_has_every_setting(path: str, writer: Writer, access: Access) -> None:
    """Specification 15.3: most of them are per connection and not stored."""
    with writer():
        pass
    db = connect(path, access)
    found = {name: pragma(db, name) for name in SETTINGS}
    # An immutable file has no journal to speak of.
    assert found == SETTINGS | ({"journal_mode": "delete"} if access == "immutable" else {})
    assert db.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, -1) == 1
    assert pragma(db, "query_only") == (access != "write")
    db.close()


@pytest.mark.parametrize("access", ["write", "read"])
def test_a_statement_is_not_planned_again_for_another_value(
    path: str, writer: Writer, access: Access
) -> None:
    """Planning takes longer than most statements; a partial index is what tempts SQLite to it."""
    with writer() as opened:
        opened.db.execute("CREATE TABLE t (a INTEGER, b INTEGER) STRICT")
        opened.db.execute("CREATE INDEX t_b ON t (b) WHERE a = 1")
    planned: list[object] = []

    def plan(*what: object) -> int:
        planned.append(what)
        return apsw.SQLITE_OK

    with closing(connect(path, access)) as db:
        db.authorizer = plan
        db.execute("SELECT b FROM t WHERE a = ?", (1,)).fetchall()
        first = len(planned)
        db.execute("SELECT b FROM t WHERE a = ?", (2,)).fetchall()
    assert first == len(planned) > 0


@pytest.mark.skipif(sys.platform != "linux", reason="/proc tells which files are open")
def test_what_a_savepoint_could_restore_is_in_no_file(writer: Writer) -> None:
    """Pages of the database have no business in a folder for temporary files."""
    with writer() as opened, Transaction(opened.db, durable=False):
        opened.db.execute("CREATE TABLE t (text TEXT) STRICT")
        opened.db.executemany("INSERT INTO t VALUES (?)", [("x" * 2000,)] * 200)
        before = set(Path("/proc/self/fd").iterdir())
        with Savepoint(opened.db):
            opened.db.execute("UPDATE t SET text = 'y' || text")
            assert set(Path("/proc/self/fd").iterdir()) == before


def test_the_writers_connection_has_every_setting(writer: Writer) -> None:
    with writer() as opened:
        assert {name: pragma(opened.db, name) for name in SETTINGS} == SETTINGS


def test_the_memory_of_a_connection_is_bounded(path: str, writer: Writer) -> None:
    """A server has three of them."""
    with writer() as opened, closing(open_reader(path)) as reader:
        assert (pragma(opened.db, "cache_size"), pragma(reader, "cache_size")) == (-512, -512)


def test_a_transaction_is_synced_when_it_has_to_be(writer: Writer) -> None:
    """Specification 15.4: FULL on commits that are acknowledged as changes."""
    with writer() as opened:
        with Transaction(opened.db, durable=False):
            assert pragma(opened.db, "synchronous") == 1
        with Transaction(opened.db, durable=True):
            assert pragma(opened.db, "synchronous") == 2


def fill(db: Connection, pages: int) -> None:
    """A commit that adds so many pages to the write-ahead log, and a few more."""
    with Transaction(db, durable=False):
        db.execute(
            "INSERT INTO meta VALUES (hex(randomblob(8)), hex(zeroblob(?)))", (pages * 2048,)
        )


def log_pages(path: str) -> int:
    return Path(f"{path}-wal").stat().st_size // 4096


def unexpected(problem: apsw.Error) -> None:
    raise AssertionError(problem)


class Patience:
    """Counts how often it is asked to wait, and does not."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, tries: int) -> bool:
        self.asked += 1
        return False


def test_the_log_does_not_grow_beyond_its_bound_and_one_commit(path: str, writer: Writer) -> None:
    with writer() as opened:
        set_patience(opened.db, Patience(), unexpected)
        for _ in range(10):
            fill(opened.db, 300)
        assert CHECKPOINT_PAGES < log_pages(path) < CHECKPOINT_PAGES + 400


def test_a_checkpoint_never_waits_for_a_reader_and_is_done_later(path: str, writer: Writer) -> None:
    with writer() as opened, closing(apsw.Connection(path)) as reader:
        patience = Patience()
        set_patience(opened.db, patience, unexpected)
        reader.execute("BEGIN; SELECT count(*) FROM meta").fetchall()
        for _ in range(2):
            fill(opened.db, CHECKPOINT_PAGES)
        reader.execute("COMMIT")
        long = log_pages(path)
        assert patience.asked == 0
        for _ in range(5):
            fill(opened.db, CHECKPOINT_PAGES // 2)
        assert 2 * CHECKPOINT_PAGES < log_pages(path) < long + CHECKPOINT_PAGES


def test_a_checkpoint_that_fails_takes_nothing_from_the_commit(path: str, writer: Writer) -> None:
    """The log has room in itself, the file would have to grow beyond the limit."""
    told: list[apsw.Error] = []
    with writer() as opened:
        set_patience(opened.db, Patience(), told.append)
        fill(opened.db, CHECKPOINT_PAGES)
        with largest_file(Path(f"{path}-wal").stat().st_size + 100_000):
            fill(opened.db, CHECKPOINT_PAGES)
        assert len(meta(opened.db)) == 2
        assert [fault(problem) for problem in told] == ["io"]


def test_after_a_checkpoint_other_writers_are_waited_for_again(path: str, writer: Writer) -> None:
    with writer() as opened, closing(apsw.Connection(path)) as other:
        patience = Patience()
        set_patience(opened.db, patience, unexpected)
        fill(opened.db, CHECKPOINT_PAGES)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(apsw.BusyError):
            fill(opened.db, 1)
        assert patience.asked == 1


class BadFile(apsw.VFSFile):
    """A file that can be read but not written while it is broken."""

    broken = True

    def __init__(self, name: Any, flags: list[int]) -> None:
        super().__init__("unix", name, flags)

    def xWrite(self, data: Any, offset: int) -> None:
        if self.broken:
            raise apsw.IOError("the disk is broken")
        super().xWrite(data, offset)


class BadDisk(apsw.VFS):
    """Where databases cannot be written, but their logs can."""

    def __init__(self) -> None:
        super().__init__("bad disk", "unix")

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:
        if flags[0] & apsw.SQLITE_OPEN_MAIN_DB:
            return BadFile(name, flags)
        return apsw.VFSFile("unix", name, flags)


def test_a_log_that_cannot_be_copied_back_is_reported(
    writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is committed is safe in it, but it would grow without end."""
    with writer():
        pass
    before, disk = apsw.vfs_names()[0], BadDisk()
    apsw.set_default_vfs("bad disk")
    told: list[apsw.Error] = []
    try:
        with writer() as opened:
            set_patience(opened.db, lambda tries: False, told.append)
            fill(opened.db, CHECKPOINT_PAGES // 2)
            assert told == []
            fill(opened.db, CHECKPOINT_PAGES)
            assert [fault(problem) for problem in told] == ["io"]
            monkeypatch.setattr(BadFile, "broken", False)  # or closing it would raise as well
    finally:
        apsw.set_default_vfs(before)
        disk.unregister()


def meta(db: apsw.Connection) -> set[object]:
    return {key for (key,) in db.execute("SELECT key FROM meta WHERE key <> 'log'")}


def add(db: apsw.Connection, key: str) -> None:
    db.execute("INSERT OR ROLLBACK INTO meta (key, value) VALUES (?, '')", (key,))


def test_a_transaction_that_raises_leaves_nothing(writer: Writer) -> None:
    with writer() as opened:
        with pytest.raises(ZeroDivisionError), Transaction(opened.db, durable=True):
            add(opened.db, "a")
            raise ZeroDivisionError
        assert meta(opened.db) == set()
        with Transaction(opened.db, durable=True):
            add(opened.db, "b")
        assert meta(opened.db) == {"b"}


def test_a_transaction_excludes_other_writers_from_its_start(path: str, writer: Writer) -> None:
    """Specification 15.5: BEGIN IMMEDIATE for every write."""
    with writer() as opened, Transaction(opened.db, durable=True):
        other = apsw.Connection(path)
        with pytest.raises(apsw.BusyError):
            other.execute("BEGIN IMMEDIATE")
        other.close()


def test_a_savepoint_is_undone_alone(writer: Writer) -> None:
    """Specification 3.7: each handler in its own savepoint, rolled back on refusal or fault."""
    with writer() as opened:
        with Transaction(opened.db, durable=True):
            add(opened.db, "a")
            with pytest.raises(ZeroDivisionError), Savepoint(opened.db):
                add(opened.db, "b")
                raise ZeroDivisionError
            with Savepoint(opened.db):
                add(opened.db, "c")
        assert meta(opened.db) == {"a", "c"}


def test_what_sqlite_rolled_back_by_itself_is_not_rolled_back_again(writer: Writer) -> None:
    with writer() as opened:
        with (
            pytest.raises(apsw.ConstraintError),
            Transaction(opened.db, durable=True),
            Savepoint(opened.db),
        ):
            add(opened.db, "a")
            add(opened.db, "a")
        assert not opened.db.in_transaction
        assert meta(opened.db) == set()


def test_a_full_database_rolls_back_and_can_be_written_again(writer: Writer) -> None:
    """Specification 12.13: the transaction rolls back, and the next commit ends it."""
    with writer() as opened:
        opened.db.execute(f"PRAGMA max_page_count = {pragma(opened.db, 'page_count')}")
        with (
            pytest.raises(apsw.FullError) as caught,
            Transaction(opened.db, durable=True),
        ):
            add(opened.db, "a")
            add(opened.db, "x" * 100_000)
        assert fault(caught.value) == "full"
        with Transaction(opened.db, durable=True):
            add(opened.db, "b")
        assert meta(opened.db) == {"b"}


def failure(action: Callable[[], object]) -> Fault | None:
    with pytest.raises(apsw.Error) as caught:
        action()
    return fault(caught.value)


def read(path: str) -> None:
    with closing(connect(path, "write")) as db:
        db.execute("SELECT name FROM sqlite_schema")


def test_a_fault_explains_what_is_wrong_with_the_database(
    path: str, writer: Writer, tmp_path: Path
) -> None:
    """Specification 12.13: full is neither integrity nor io."""
    (tmp_path / "text").write_text("no database " * 100)
    with writer() as opened, Transaction(opened.db, durable=True):
        other = connect(path, "write")
        other.set_busy_timeout(0)
        assert failure(lambda: other.execute("BEGIN IMMEDIATE")) == "busy"
        other.close()
        reader = connect(path, "read")
        assert failure(lambda: reader.execute("DELETE FROM meta")) == "io"
        reader.close()
        assert failure(lambda: opened.db.execute("SELECT nothing")) is None
    assert failure(lambda: read(str(tmp_path / "text"))) == "damaged"
    assert failure(lambda: connect(str(tmp_path / "absent"), "write")) == "io"
    assert fault(ValueError()) is None


def test_a_disk_too_full_for_the_shared_memory_file_is_full(path: str, writer: Writer) -> None:
    with writer():
        pass
    with largest_file(1_000):
        assert failure(lambda: read(path)) == "full"


def test_a_write_that_fails_is_an_io_fault(writer: Writer) -> None:
    with writer() as opened:
        with (
            largest_file(200_000),
            pytest.raises(apsw.Error) as caught,
            Transaction(opened.db, durable=True),
        ):
            for key in range(1_000):
                add(opened.db, f"{key}" * 200)
        assert fault(caught.value) in ("io", "full")
        assert meta(opened.db) == set()


def test_a_directory_that_is_made_is_synced_into_the_one_above(
    path: str, writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite syncs the directory of its files, but not that directory's own entry."""
    real, synced = os.fsync, list[int]()

    def fsync(descriptor: int) -> None:
        synced.append(os.fstat(descriptor).st_ino)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    for expected in ([Path(path).parents[1].stat().st_ino], []):  # the second time it is there
        with writer():
            pass
        assert synced == expected
        synced.clear()


def test_what_is_created_is_for_its_owner_alone(path: str, writer: Writer) -> None:
    """Specification 15.7: a directory we create is 0700, the file is created 0600."""
    before = os.umask(0)
    try:
        with writer() as opened:
            assert (opened.migrated_from, opened.backup, opened.unclean) == (0, None, False)
            assert mode(Path(path).parent) == 0o700
            for suffix in ("", "-wal", "-shm", ".lock"):
                assert mode(path + suffix) == 0o600
            assert ledger.log_id(opened.db) == LOG
    finally:
        os.umask(before)


def test_an_existing_directory_is_left_alone(path: str, writer: Writer) -> None:
    """Specification 15.7."""
    folder = Path(path).parent
    folder.mkdir(mode=0o755)
    with writer():
        assert mode(folder) == 0o755


def test_a_directory_made_by_another_process_meanwhile_is_used(
    path: str, writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    mkdir = os.mkdir

    def late(folder: str, mode: int) -> None:
        mkdir(folder, mode)
        raise FileExistsError(folder)

    monkeypatch.setattr(os, "mkdir", late)
    with writer() as opened:
        assert opened.migrated_from == 0


def test_a_file_in_place_of_a_directory_is_refused(path: str, writer: Writer) -> None:
    Path(path).parent.write_text("a file")
    with pytest.raises(ResourceError, match="Not a directory"), writer():
        pass


def test_a_second_opening_finds_everything_in_order(path: str, writer: Writer) -> None:
    with writer():
        pass
    assert beside(path) == ["colibri.db", "colibri.db.lock"]
    with writer(new_log=None) as opened:
        assert (opened.migrated_from, opened.unclean) == (None, False)
        assert ledger.log_id(opened.db) == LOG


def test_an_empty_file_becomes_a_database(path: str, writer: Writer) -> None:
    """What a crash right after the file's creation leaves behind."""
    Path(path).parent.mkdir()
    Path(path).touch()
    with writer() as opened:
        assert opened.migrated_from == 0


def test_a_database_can_be_open_for_writing_many_times(path: str, writer: Writer) -> None:
    """Specification 15.6: a shared flock for life."""
    with writer() as one, writer() as other:
        assert (one.migrated_from, other.migrated_from) == (0, None)
        one.check()
        other.check()


def test_a_link_and_the_database_itself_share_one_lock(path: str, writer: Writer) -> None:
    with writer():
        link = Path(path).parent.parent / "link.db"
        link.symlink_to(path)
        opened = open_writer(
            str(link),
            lock_timeout=0,
            monotonic=lambda: 0.0,
            sleep=lambda _: None,
            stamp="",
            new_log=lambda: LOG,
        )
        assert opened.path == os.path.realpath(path)
        opened.close()


@pytest.mark.slow
def test_sixteen_processes_can_open_a_fresh_database_at_once(path: str) -> None:
    """0 failures, one chain, no gap."""
    processes = [start(path, "close") for _ in range(16)]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        finish(process)
    db = open_reader(path)
    report = check.verify(db, pause=lambda: None)
    db.close()
    assert (report.valid, report.record_count, len(report.open_calls)) == (True, 16, 16)


def test_an_end_without_closing_is_noticed_and_loses_nothing(path: str, writer: Writer) -> None:
    """Specification 11.6: a whole quick_check only after an unclean end."""
    finish(start(path, "die"))
    with writer() as opened:
        assert opened.unclean
        assert ledger.head(opened.db) is not None
    with writer() as opened:
        assert not opened.unclean


def test_a_remaining_reader_does_not_make_a_shutdown_unclean(path: str, writer: Writer) -> None:
    with writer() as opened:
        reader = open_reader(path)
        add(opened.db, "a")
    with writer() as opened:
        assert not opened.unclean
    reader.close()


def test_a_second_writer_never_calls_a_living_log_unclean(writer: Writer) -> None:
    with writer() as one:
        add(one.db, "a")
        with writer() as other:
            assert not other.unclean


def test_closing_in_the_middle_of_a_read_still_releases_everything(
    path: str, writer: Writer
) -> None:
    """The checkpoint on close is a courtesy: that it cannot be had is no failure."""
    with writer() as opened:
        opened.db.execute("BEGIN")
        assert ledger.head(opened.db) is None
    with held(path, fcntl.LOCK_EX | fcntl.LOCK_NB):
        pass


def refusal(writer: Writer, **options: object) -> ResourceError:
    with pytest.raises(ResourceError) as caught, writer(**options):
        pass
    assert caught.value.hint
    return caught.value


def test_a_directory_is_refused(path: str, writer: Writer) -> None:
    Path(path).mkdir(parents=True)
    assert "is a directory" in refusal(writer).message
    assert beside(path) == ["colibri.db"]


def test_a_pipe_is_refused(path: str, writer: Writer) -> None:
    Path(path).parent.mkdir()
    os.mkfifo(path)
    assert "not a regular file" in refusal(writer).message


@pytest.mark.parametrize("text", ["no", "some notes\n" * 1_000])
def test_a_file_that_is_not_a_database_is_refused_and_unchanged(
    path: str, writer: Writer, text: str
) -> None:
    Path(path).parent.mkdir()
    Path(path).write_text(text)
    assert "not a database" in refusal(writer).message
    assert Path(path).read_text() == text


@pytest.mark.parametrize(
    "sql", ["CREATE TABLE notes (text)", "PRAGMA user_version = 1", "PRAGMA user_version = 99"]
)
def test_the_database_of_another_program_is_refused(path: str, writer: Writer, sql: str) -> None:
    Path(path).parent.mkdir()
    raw(path, sql)
    before = Path(path).read_bytes()
    assert "another program" in refusal(writer).message
    assert Path(path).read_bytes() == before


def test_the_database_of_a_colibri_that_was_never_released_is_refused_with_a_way_out(
    path: str, writer: Writer
) -> None:
    """docs/decisions/005: the schema was changed in place."""
    with writer():
        pass
    raw(path, f"PRAGMA application_id = {0x436F6C69}")
    refused = refusal(writer)
    assert "was made by a Colibri that was never released" in refused.message
    assert "move the file away" in refused.hint
    with pytest.raises(ResourceError, match="never released"):
        open_reader(path)


def test_a_newer_database_is_refused_and_left_as_it_was(path: str, writer: Writer) -> None:
    """Specification 15.8: newer files are refused."""
    with writer(migrations=NEWER):
        pass
    before = Path(path).read_bytes()
    assert f"schema version {NEXT.version}" in refusal(writer).message
    assert Path(path).read_bytes() == before


def test_a_log_without_its_database_is_refused(path: str, writer: Writer) -> None:
    """SQLite would delete it: an acknowledged commit may be in there."""
    Path(path).parent.mkdir()
    Path(f"{path}-wal").write_text("frames")
    assert "is missing, but its write-ahead log" in refusal(writer).message
    assert Path(f"{path}-wal").read_text() == "frames"


def test_a_file_system_without_shared_memory_is_refused(path: str, writer: Writer) -> None:
    before = apsw.vfs_names()[0]
    apsw.set_default_vfs("unix-none")
    try:
        assert "cannot have a write-ahead log" in refusal(writer).message
    finally:
        apsw.set_default_vfs(before)


def test_a_database_that_may_not_be_opened_is_refused(path: str, writer: Writer) -> None:
    """An error that says nothing of the database itself is told as it is."""
    folder = Path(path).parent
    folder.mkdir()
    (folder / "colibri.db.lock").symlink_to(folder / "elsewhere")
    assert f"cannot open {os.path.realpath(path)}" in refusal(writer).message


@pytest.mark.parametrize("kind", [fcntl.LOCK_EX, fcntl.LOCK_SH])
def test_a_database_that_others_keep_from_being_created_is_waited_for_and_then_refused(
    path: str, writer: Writer, kind: int
) -> None:
    """Specification 11.4: COLIBRI_STARTUP_TIMEOUT_MS bounds the wait for the lock file."""
    waits: list[float] = []
    now = iter(range(100))
    with held(path, kind):
        error = refusal(
            writer, lock_timeout=5, sleep=waits.append, monotonic=lambda: float(next(now))
        )
    assert "another Colibri is using" in error.message
    assert len(waits) == 4
    assert beside(path) == ["colibri.db.lock"]


def test_a_migration_keeps_the_data_and_a_backup_of_it(path: str, writer: Writer) -> None:
    """Specification 15.8: each in one transaction with user_version; a backup is made first."""
    with writer() as opened:
        add(opened.db, "a")
    with writer(migrations=NEWER) as opened:
        assert (opened.migrated_from, opened.version) == (NEXT.version - 1, NEXT.version)
        assert meta(opened.db) == {"a"}
        assert "added" in small_tables(opened.db)
        assert opened.backup == f"{opened.path}.backup-v{NEXT.version - 1}-20260101T000000Z"
        assert mode(opened.backup) == 0o600
        backups = [name for name in beside(path) if "backup" in name]
        assert backups == [Path(opened.backup).name]
        copy = open_reader(opened.backup)
        assert (meta(copy), quick_check(copy)) == ({"a"}, [])
        copy.close()


def test_a_migration_that_fails_leaves_the_database_as_it_was(path: str, writer: Writer) -> None:
    broken = Migration(
        NEXT.version, "CREATE TABLE half (id INTEGER) STRICT; SELECT absent FROM half"
    )
    with writer():
        pass
    assert "no such column" in refusal(writer, migrations=(*load_migrations(), broken)).message
    with writer() as opened:
        assert "half" not in small_tables(opened.db)
        assert opened.version == NEXT.version - 1


def test_without_room_for_a_backup_nothing_is_migrated(path: str, writer: Writer) -> None:
    with writer() as opened:
        for key in range(50):
            add(opened.db, f"{key}" * 1_000)
    with largest_file(65_536):
        refusal(writer, migrations=NEWER)
    assert not [name for name in beside(path) if "backup" in name]
    with writer() as opened:
        assert opened.migrated_from is None


def test_an_old_database_that_others_have_open_is_not_migrated(path: str, writer: Writer) -> None:
    """Specification 15.6: exclusive to create or migrate."""
    with writer():
        assert "another Colibri is using" in refusal(writer, migrations=NEWER).message
        with writer() as opened:
            assert opened.version == NEXT.version - 1


def test_a_newer_colibri_that_starts_during_the_downgrade_is_noticed(
    path: str, writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """flock releases the exclusive lock before it takes the shared one."""
    flock = fcntl.flock

    def slow(descriptor: int, kind: int) -> None:
        flock(descriptor, kind)
        if kind == fcntl.LOCK_SH:
            raw(path, f"PRAGMA user_version = {NEXT.version}")

    monkeypatch.setattr(fcntl, "flock", slow)
    assert f"schema version {NEXT.version}" in refusal(writer).message


def test_a_database_that_is_still_the_same_passes(writer: Writer) -> None:
    with writer() as opened:
        add(opened.db, "a")
        opened.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        opened.check()


def unlink(path: str) -> None:
    Path(path).unlink()


def replace(path: str) -> None:
    shutil.copy(path, f"{path}.copy")
    Path(f"{path}.copy").replace(path)


def link(path: str) -> None:
    Path(f"{path}.second").hardlink_to(path)


def leave_a_link(path: str) -> None:
    Path(path).rename(f"{path}.moved")
    Path(path).symlink_to(f"{path}.moved")


ACTS: dict[str, tuple[Callable[[str], None], str]] = {
    "deleted": (unlink, "was deleted or moved away"),
    "replaced": (replace, "was replaced"),
    "linked": (link, "has a different number of names (hard links)"),
    "link left": (leave_a_link, "was moved away, and a symbolic link is in its place"),
}
FILES = {
    "": "the database file",
    "-wal": "the write-ahead log",
    "-shm": "the shared memory of the write-ahead log",
}


@pytest.mark.parametrize("end", FILES)
@pytest.mark.parametrize("act", ACTS)
def test_a_replaced_file_is_noticed(path: str, writer: Writer, act: str, end: str) -> None:
    """Before an acknowledged commit, after it, and on closing."""
    change, fate = ACTS[act]
    message = f"{FILES[end]} {fate}"
    with writer() as opened:
        with pytest.raises(Damaged) as before, Transaction(opened.db, durable=True):
            opened.db.execute("INSERT INTO meta VALUES ('a', '')")
            change(f"{path}{end}")
            opened.check()
        with pytest.raises(Damaged) as after:
            opened.check_again()
        assert (before.value.message, after.value.message) == (message, message)
        assert changed(opened.place) == message
        assert opened.db.execute("SELECT count(*) FROM meta WHERE key = 'a'").get == 0


@pytest.mark.parametrize("end", ["-wal", "-shm"])
def test_no_commit_goes_into_a_log_that_others_do_not_see(
    path: str, writer: Writer, end: str
) -> None:
    """Nor does a transaction larger than the cache: what it writes stays in memory till then."""
    with writer() as opened:
        before = Path(f"{path}-wal").stat().st_size
        with pytest.raises(Damaged, match="was replaced"), Transaction(opened.db, durable=False):
            opened.db.execute("INSERT INTO meta VALUES ('a', hex(zeroblob(4000000)))")
            assert Path(f"{path}-wal").stat().st_size == before
            replace(f"{path}{end}")


def change(opened: Opened) -> Change:
    return Change(opened.db, opened.watch, durable=False)


VERSIONS = {
    99: "a newer Colibri migrated it: restart",
    0: "the database file was replaced by an older one",
}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_database_of_another_version_is_noticed(path: str, writer: Writer, version: int) -> None:
    """Specification 15.9: user_version, at the start of each transaction."""
    with writer() as opened:
        raw(path, f"PRAGMA user_version = {version}")
        with pytest.raises(Damaged) as caught, change(opened):
            raise AssertionError("it must not come to this")
        assert not opened.db.in_transaction
    assert caught.value.message == VERSIONS[version]


@pytest.mark.parametrize("end", FILES)
def test_a_database_with_two_names_is_refused(path: str, writer: Writer, end: str) -> None:
    with writer():
        link(f"{path}{end}")
        refused = refusal(writer)
    assert f"{path}{end} has 2 names (hard links)" in refused.message
    assert f"find DIR -samefile {path}{end}" in refused.hint


def test_a_second_name_that_an_interrupted_restore_gave_is_taken_back(
    path: str, writer: Writer
) -> None:
    with writer():
        pass
    kept = Path(f"{path}.before-restore-20260101T000000Z")
    kept.hardlink_to(path)
    Path(f"{path}.before-restore-other").write_text("another file")
    with writer():
        assert not kept.exists()
    assert Path(f"{path}.before-restore-other").exists()


def test_a_log_that_stays_behind_a_moved_database_is_refused(path: str, writer: Writer) -> None:
    with writer() as opened:
        add(opened.db, "a")
        leave_a_link(path)
    refused = refusal(writer)
    assert f"without its write-ahead log {path}-wal" in refused.message
    assert f"move the log to {path}.moved-wal" in refused.hint
    Path(f"{path}-wal").rename(f"{path}.moved-wal")
    with writer() as opened:
        assert "a" in meta(opened.db)


def test_the_log_of_another_file_is_not_played_into_the_one_in_its_place(
    path: str, writer: Writer
) -> None:
    with writer():
        pass
    with writer() as opened:
        add(opened.db, "a")
        replace(path)
    refused = refusal(writer)
    assert f"{path} was replaced, but the write-ahead log next to it" in refused.message
    unlink(f"{path}-wal")
    with writer() as opened:
        assert "a" not in meta(opened.db)


@pytest.mark.parametrize("end", ["-wal", "-shm"])
def test_a_second_writer_opens_the_same_files_or_none(path: str, writer: Writer, end: str) -> None:
    """Else the two would not see each other's locks."""
    with writer():
        unlink(f"{path}{end}")
        waiting = "another Colibri is using .* but not the files that are on the disk now"
        with pytest.raises(ResourceError, match=waiting), writer():
            raise AssertionError("it must not come to this")
    with writer():
        pass


def test_what_a_deleted_log_held_is_copied_back_at_the_end(path: str, writer: Writer) -> None:
    with writer() as opened:
        add(opened.db, "a")
        unlink(f"{path}-wal")
    with writer() as opened:
        assert "a" in meta(opened.db)


@contextmanager
def read_only_directory(folder: Path) -> Iterator[None]:
    """Where we, an ordinary user for the time being, can create nothing."""
    user = os.geteuid()
    folder.chmod(0o555)
    if user == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(user)
        folder.chmod(0o755)


@pytest.fixture
def shared_path(writer: Writer, path: str) -> Iterator[str]:
    """A database that everyone can reach and read, at a path that has to be quoted in a URI."""
    with writer():
        pass
    with tempfile.TemporaryDirectory(prefix="colibri-100%?#-") as folder:
        copy = shutil.copy(path, folder)
        Path(copy).chmod(0o644)
        yield copy


def test_a_reader_changes_neither_the_file_nor_the_log(path: str, writer: Writer) -> None:
    """Specification 10.4: the file and the content of -wal never change."""
    finish(start(path, "die"))
    before = Path(path).read_bytes(), Path(f"{path}-wal").read_bytes()
    Path(f"{path}-shm").unlink()
    reader = open_reader(path)
    assert ledger.head(reader) is not None
    with pytest.raises(apsw.ReadOnlyError):
        reader.execute("DELETE FROM meta")
    reader.close()
    assert (Path(path).read_bytes(), Path(f"{path}-wal").read_bytes()) == before


def test_a_reader_sees_what_a_writer_committed(path: str, writer: Writer) -> None:
    with writer() as opened:
        reader = open_reader(path)
        add(opened.db, "a")
        assert meta(reader) == {"a"}
        reader.close()


def test_a_reader_creates_nothing(path: str) -> None:
    """Specification 10.4: nothing created when it is missing."""
    with pytest.raises(ResourceError, match="no database") as caught:
        open_reader(path)
    assert "creates the database" in caught.value.hint
    assert not Path(path).parent.exists()


def test_a_reader_does_not_migrate(path: str, writer: Writer) -> None:
    """Specification 10.4: no lock file, no migration."""
    with writer():
        pass
    Path(f"{path}.lock").unlink()
    with pytest.raises(ResourceError, match="migrated first"):
        open_reader(path, migrations=NEWER)
    open_reader(path).close()
    assert f"{Path(path).name}.lock" not in beside(path)


def test_a_reader_can_read_where_nothing_can_be_written(shared_path: str) -> None:
    """Specification 10.4: where they cannot appear and no -wal exists, immutable=1."""
    with read_only_directory(Path(shared_path).parent):
        reader = open_reader(shared_path)
        assert ledger.log_id(reader) == LOG
        reader.close()
    assert beside(shared_path) == ["colibri.db"]


def test_a_reader_that_would_miss_the_log_is_refused(shared_path: str) -> None:
    """Reading the file alone would hide what was committed to the -wal."""
    Path(f"{shared_path}-wal").touch(mode=0o644)
    with (
        read_only_directory(Path(shared_path).parent),
        pytest.raises(ResourceError, match="cannot open"),
    ):
        open_reader(shared_path)


def test_tables_are_counted_and_the_growing_ones_are_not_small(writer: Writer) -> None:
    with writer() as opened:
        small = small_tables(opened.db)
        assert "meta" in small
        assert not {"ledger", "payloads"} & set(small)
        assert table_count(opened.db) >= len(small) + 2


def test_a_sound_database_has_nothing_wrong(writer: Writer) -> None:
    with writer() as opened:
        assert quick_check(opened.db) == []
        assert quick_check(opened.db, "meta") == []


def test_a_damaged_table_is_found(writer: Writer) -> None:
    with writer() as opened:
        opened.db.execute("PRAGMA ignore_check_constraints = ON")
        opened.db.execute(
            "INSERT INTO ledger (seq, at, kind, call, payload, leaf, prev)"
            " VALUES (1, '', 'thought', '', x'00', x'01', x'02')"
        )
        opened.db.execute("PRAGMA ignore_check_constraints = OFF")
        assert quick_check(opened.db, "meta") == []
        assert quick_check(opened.db, "ledger") == ["CHECK constraint failed in ledger"]
        assert quick_check(opened.db) == ["CHECK constraint failed in ledger"]


def test_a_file_that_is_replaced_while_it_is_opened_is_opened_again(
    path: str, writer: Writer
) -> None:
    """What was made of the first is not taken for the one that is there now."""
    made: list[str] = []

    def new_log() -> str:
        made.append(LOG)
        if len(made) == 1:
            Path(path).rename(f"{path}.away")
            Path(path).touch(0o600)
        return LOG

    with writer(new_log=new_log) as opened:
        assert len(made) == 2
        assert opened.place.seen[0] == look(path).seen[0]
        assert quick_check(opened.db) == []


def test_an_added_file_is_distinguished_from_a_replaced_one(path: str, writer: Writer) -> None:
    with writer():
        pass
    before = look(path)
    Path(f"{path}-wal").touch()
    assert changed(before) == "the write-ahead log was added"
