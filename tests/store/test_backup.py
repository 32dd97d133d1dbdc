"""store/backup.py: copies of one moment, their check, and a way back that never mixes two logs."""

import errno
import os
import resource
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import apsw
import pytest

from colibri.core.errors import ResourceError
from colibri.core.ledger import Head
from colibri.store import ledger
from colibri.store.sqlite import backup, opening
from colibri.store.sqlite.connection import Access, Connection, connect
from colibri.store.sqlite.opening import open_reader
from colibri.store.sqlite.schema import load_migrations
from tests.store.conftest import Writer
from tests.support.ledger_reader import create
from tests.support.ledger_writer import LOG, Lab, disable_triggers, no_pause, opened
from tests.support.program import tell_story

OTHER = "colibri/" + "f" * 32


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project whose database holds the story, and nobody has it open."""
    return tell_story(tmp_path)


@pytest.fixture
def path(project: Path) -> Path:
    return project / "data" / "colibri.db"


def silent(done: int, total: int) -> None:
    """Nobody looks."""


def copied(source: Path, target: Path) -> Path:
    with closing(open_reader(str(source))) as db, db:
        backup.copy(db, str(target), progress=silent)
    return target


def put(new: Path, path: Path) -> list[Path]:
    """In its place; the old one is kept with .old after its name."""
    return [Path(name) for name in backup.put(str(new), str(path), f"{path}.old")]


def also(path: Path, end: str) -> Path:
    """What is named after a file."""
    return path.with_name(path.name + end)


def wrong_with(path: Path, head: Head | None = None) -> list[str]:
    with closing(backup.open_copy(str(path))) as db:
        return backup.check(db, head=head, pause=no_pause)


def head_of(path: Path) -> Head | None:
    with closing(backup.open_copy(str(path))) as db:
        return ledger.head(db)


def names(directory: Path) -> list[str]:
    return sorted(one.name for one in directory.iterdir())


@contextmanager
def intruder(path: Path) -> Iterator[Connection]:
    db = Connection(str(path))
    disable_triggers(db)
    db.execute("PRAGMA ignore_check_constraints = ON")
    try:
        yield db
    finally:
        db.close()


# Copying.


def test_a_copy_is_one_file_for_its_owner_alone_and_sound(path: Path, tmp_path: Path) -> None:
    copy = copied(path, tmp_path / "copies.db")
    assert names(tmp_path) == ["copies.db", "data"]
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert wrong_with(copy, head_of(path)) == []
    assert names(tmp_path) == ["copies.db", "data"], "reading it makes nothing beside it"


def test_a_copy_is_of_one_moment_however_much_is_written_meanwhile(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer between any two steps neither waits nor makes the copy start over."""
    monkeypatch.setattr(backup, "STEP", 2)
    seen: list[tuple[int, int]] = []
    with opened(project) as db:
        lab = Lab(db)
        before = lab.head()

        def write(done: int, total: int) -> None:
            seen.append((done, total))
            lab.think("S-2", "and " * 2_000)

        with closing(open_reader(str(project / "data" / "colibri.db"))) as reader, reader:
            backup.copy(reader, str(tmp_path / "copy.db"), progress=write)
        assert lab.head().seq > before.seq + len(seen)
    total = seen[0][1]
    assert seen == [(min(2 * n, total), total) for n in range(1, len(seen) + 1)]
    assert len(seen) > 10
    assert wrong_with(tmp_path / "copy.db", before) == []


def test_a_copy_never_goes_over_a_file(path: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(FileExistsError):
        copied(path, tmp_path / "mine")
    assert (tmp_path / "mine").read_text() == "mine"


def test_a_copy_that_cannot_be_written_says_so(path: Path, tmp_path: Path) -> None:
    """As when a limit is reached; Python has the signal for it ignored."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with closing(open_reader(str(path))) as db, db:
        resource.setrlimit(resource.RLIMIT_FSIZE, (65_536, before[1]))
        try:
            with pytest.raises(ResourceError, match=r"cannot copy to .*copy\.db: "):
                backup.copy(db, str(tmp_path / "copy.db"), progress=silent)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert names(tmp_path) == ["copy.db", "data"]
    backup.discard(str(tmp_path / "copy.db"))
    backup.discard(str(tmp_path / "copy.db"))  # nothing more to discard
    assert names(tmp_path) == ["data"]


# What is a database, and what is a copy.


def test_only_a_database_file_counts_as_one(path: Path, tmp_path: Path) -> None:
    (tmp_path / "bundle.json").write_text('{"format": "colibri-bundle/1"}')
    (tmp_path / "large.json").write_text('{"format": "colibri-bundle/1"}' * 1_000)
    os.mkfifo(tmp_path / "pipe")
    found = {name: backup.is_database(str(tmp_path / name)) for name in names(tmp_path)}
    assert found == {"bundle.json": False, "data": False, "large.json": False, "pipe": False}
    assert backup.is_database(str(path))
    assert not backup.is_database(str(tmp_path / "nothing"))


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _foreign(path: Path) -> None:
    with closing(apsw.Connection(str(path))) as db:
        db.execute("CREATE TABLE t (x)")


def _garbage(path: Path) -> None:
    path.write_bytes(b"garbage " * 1_000)


NOT_COPIES: dict[str, tuple[Callable[[Path], object], str]] = {
    "nothing": (lambda path: None, "there is no database at"),
    "an empty file": (_empty, "is empty"),
    "another program's": (_foreign, "is the database of another program"),
    "garbage": (_garbage, "it is not a database, or a damaged one"),
    "a directory": (Path.mkdir, "is a directory"),
}


@pytest.mark.parametrize(("make", "why"), NOT_COPIES.values(), ids=NOT_COPIES.keys())
def test_what_is_no_copy_is_refused(
    tmp_path: Path, make: Callable[[Path], object], why: str
) -> None:
    make(tmp_path / "x.db")
    with pytest.raises(ResourceError, match=why) as refused:
        backup.open_copy(str(tmp_path / "x.db"))
    assert refused.value.hint == "name a file that colibri backup wrote"


# Checking.


def test_a_page_that_is_damaged_is_found(path: Path, tmp_path: Path) -> None:
    """Also one that no check of the log reads."""
    copy = copied(path, tmp_path / "copy.db")
    with closing(open_reader(str(copy))) as db:
        page: int = db.execute("SELECT rootpage FROM sqlite_schema WHERE name LIKE '%by_task'").get
    with copy.open("r+b") as file:
        file.seek((page - 1) * 4_096)
        file.write(b"\xff" * 8)
    (found, *_) = wrong_with(copy)
    assert found.startswith("SQLite: ")
    assert f" Tree {page} page {page}: " in found


def test_a_file_that_sqlite_cannot_read_is_found(path: Path, tmp_path: Path) -> None:
    """Where the list of tables was."""
    copy = copied(path, tmp_path / "copy.db")
    with copy.open("r+b") as file:
        file.seek(100)
        file.write(b"\xff" * 8)
    assert wrong_with(copy) == ["database disk image is malformed"]


BROKEN = {
    "UPDATE ledger SET nonce = NULL, body = NULL WHERE seq = 9": (
        "record 9: missing-payload: no erasure names it"
    ),
    "UPDATE sessions SET intent = 'x'": "altered-session: S-1: its records say otherwise: intent",
    "DELETE FROM meta": "the database does not say which log it holds",
}


@pytest.mark.parametrize(("sql", "wrong"), BROKEN.items(), ids=BROKEN.values())
def test_a_broken_log_is_found(path: Path, tmp_path: Path, sql: str, wrong: str) -> None:
    copy = copied(path, tmp_path / "copy.db")
    with intruder(copy) as db:
        db.execute(sql)
    assert wrong_with(copy)[0] == wrong


def test_a_copy_that_lacks_the_newest_record_is_found(path: Path, tmp_path: Path) -> None:
    """The control of every check that says nothing is lost."""
    copy = copied(path, tmp_path / "copy.db")
    head = head_of(copy)
    assert head is not None
    with intruder(copy) as db:
        db.execute("UPDATE ledger SET nonce = NULL, body = NULL WHERE seq = ?", (head.seq,))
        db.execute("DELETE FROM ledger WHERE seq = ?", (head.seq,))
    assert wrong_with(copy, head) == [f"record {head.seq}: truncated: record {head.seq} was seen"]


def test_a_copy_that_goes_on_after_its_head_is_found(project: Path, path: Path) -> None:
    before = head_of(path)
    with opened(project) as db:
        Lab(db).read()
    assert wrong_with(path, before) == ["its newest record is not the newest that was copied"]


def test_of_an_older_schema_the_chain_is_checked(path: Path, tmp_path: Path) -> None:
    """Specification 15.8: an older Colibri left it, and the next start migrates it."""
    copy = tmp_path / "copy.db"
    create(copy, 10, migrations=load_migrations()[:2])
    assert wrong_with(copy, head_of(copy)) == []
    with intruder(copy) as db:
        db.execute("UPDATE ledger SET nonce = NULL, body = NULL WHERE seq = 9")
    assert wrong_with(copy, head_of(copy)) == ["record 9: missing-payload: no erasure names it"]


# Comparing.


def compared(current: Path, copy: Path) -> backup.Comparison:
    one, other = (closing(backup.open_copy(str(path))) for path in (current, copy))
    with one as here, other as there:
        return backup.compare(here, there)


def test_a_copy_of_the_same_records_is_identical(path: Path, tmp_path: Path) -> None:
    copy = copied(path, tmp_path / "copy.db")
    assert compared(path, copy) == backup.Comparison("identical", 54, 0, 0, {}, None, None)


def test_an_older_copy_and_what_it_lacks(project: Path, path: Path, tmp_path: Path) -> None:
    copy = copied(path, tmp_path / "copy.db")
    with opened(project) as db:
        lab = Lab(db)
        lab.think("S-2", "one more")
        lab.read()
    first = "2026-01-01T00:00:00.000001Z"
    kinds = {"call.enter": 2, "call.exit": 2, "thought": 1}
    assert compared(path, copy) == backup.Comparison(
        "older", 54, 5, 0, kinds, first, first.replace("1Z", "2Z")
    )
    assert compared(copy, path) == backup.Comparison("newer", 54, 0, 5, {}, None, None)


def test_two_that_went_different_ways(project: Path, path: Path, tmp_path: Path) -> None:
    (tmp_path / "other" / "data").mkdir(parents=True)
    copy = copied(path, tmp_path / "other" / "data" / "colibri.db")
    with opened(project) as db:
        Lab(db).read("task_list")
    with opened(tmp_path / "other") as db:
        Lab(db).think("S-2", "elsewhere")
    found = compared(path, copy)
    assert (found.relation, found.common, found.lost, found.gained) == ("diverged", 54, 2, 3)


def test_another_log_has_nothing_in_common(path: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    with opened(tmp_path / "other", log=OTHER) as db:
        Lab(db, OTHER).read()
    found = compared(path, tmp_path / "other" / "data" / "colibri.db")
    assert (found.relation, found.common, found.lost, found.gained) == ("another log", 0, 54, 2)


def test_a_hole_in_the_current_log_stops_no_comparison(path: Path, tmp_path: Path) -> None:
    copy = copied(path, tmp_path / "copy.db")
    with intruder(path) as db:
        db.execute("DELETE FROM ledger WHERE seq <> 1 AND seq < 54")
    assert compared(path, copy).lost == 53


# Putting in place.


@pytest.fixture
def new(path: Path, tmp_path: Path) -> Path:
    """A copy next to the database, which has grown since."""
    made = copied(path, also(path, ".new"))
    with opened(tmp_path) as db:
        Lab(db).read()
    return made


def leave_a_log(path: Path) -> None:
    """What is left when a process is killed: a write-ahead log with a commit in it."""
    db = connect(str(path), "write")
    db.execute("PRAGMA journal_mode = WAL")
    db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    db.execute("INSERT INTO meta (key, value) VALUES ('from the log', 'yes')")
    db.close()
    assert also(path, "-wal").stat().st_size > 0


def knows_the_log(path: Path) -> bool:
    with closing(open_reader(str(path))) as db:
        return bool(db.execute("SELECT count(*) FROM meta WHERE key = 'from the log'").get)


def test_the_old_database_is_kept_with_what_its_log_held(new: Path, path: Path) -> None:
    """No `-wal` of the old one is left that SQLite could play into the new one."""
    leave_a_log(path)
    kept = put(new, path)
    assert kept == [also(path, ".old")]
    assert names(path.parent) == ["colibri.db", "colibri.db.lock", "colibri.db.old"]
    assert (knows_the_log(path), knows_the_log(also(path, ".old"))) == (False, True)
    assert head_of(path) == (54, head_of(path)[1])  # type: ignore[index]
    assert wrong_with(path) == []
    assert path.stat().st_nlink == also(path, ".old").stat().st_nlink == 1


def test_a_missing_database_is_no_problem(new: Path, path: Path) -> None:
    path.unlink()
    assert put(new, path) == []
    assert names(path.parent) == ["colibri.db", "colibri.db.lock"]
    assert wrong_with(path) == []


def test_a_log_without_its_database_is_moved_away(new: Path, path: Path) -> None:
    leave_a_log(path)
    path.unlink()
    kept = put(new, path)
    assert kept == [also(path, ".old-wal"), also(path, ".old-shm")]
    assert wrong_with(path) == []


def damage(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(b"\0" * 4_096)


def test_a_damaged_database_is_kept_as_it_is_with_its_log(new: Path, path: Path) -> None:
    """SQLite cannot make one file of it any more, so each keeps its part."""
    leave_a_log(path)
    damage(path)
    before = path.read_bytes(), also(path, "-wal").read_bytes()
    kept = put(new, path)
    assert kept == [also(path, ".old"), also(path, ".old-wal"), also(path, ".old-shm")]
    assert (kept[0].read_bytes(), kept[1].read_bytes()) == before
    assert wrong_with(path) == []


def test_a_reader_that_stays_keeps_everything_as_it_was(new: Path, path: Path) -> None:
    """A server in mode READONLY takes no part in the lock, but it is noticed all the same."""
    leave_a_log(path)
    with closing(open_reader(str(path))) as reader:
        reader.execute("SELECT count(*) FROM meta").get  # noqa: B018 - it is a query
        with pytest.raises(ResourceError, match=r"another program has .* open"):
            put(new, path)
    assert knows_the_log(path)
    assert new.exists()
    assert not also(path, ".old").exists()


def test_a_database_that_cannot_be_written_is_left_alone(
    new: Path, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_only(path: str, access: Access) -> Connection:
        return Connection(path, flags=apsw.SQLITE_OPEN_READONLY)

    leave_a_log(path)
    monkeypatch.setattr(backup, "connect", read_only)
    with pytest.raises(ResourceError, match="cannot write"):
        put(new, path)
    monkeypatch.undo()
    assert knows_the_log(path)


class Crash(BaseException):
    """The process is gone."""


def crash_at(monkeypatch: pytest.MonkeyPatch, number: int) -> list[str]:
    """Have the nth change of a name be the last thing that never happens; what was begun."""
    begun: list[str] = []

    def watched(name: str) -> None:
        real = getattr(os, name)

        def act(*arguments: object) -> None:
            begun.append(name)
            if len(begun) == number:
                raise Crash
            real(*arguments)

        monkeypatch.setattr(os, name, act)

    for name in ("link", "rename", "replace", "fsync"):
        watched(name)
    return begun


STEPS = {"sound": ["link", "fsync", "replace", "fsync"]}
STEPS["damaged"] = ["link", "rename", "rename", "fsync", "replace", "fsync"]


@pytest.mark.parametrize(
    ("state", "number"), [(state, n + 1) for state in STEPS for n in range(len(STEPS[state]))]
)
def test_a_crash_leaves_the_old_database_or_the_new_one(
    new: Path, path: Path, monkeypatch: pytest.MonkeyPatch, state: str, number: int
) -> None:
    """And never a log of the old one next to the new one."""
    leave_a_log(path)
    if state == "damaged":
        damage(path)
    old_log = also(path, "-wal").read_bytes()
    with monkeypatch.context() as patch, pytest.raises(Crash):
        begun = crash_at(patch, number)
        put(new, path)
    assert begun == STEPS[state][:number]
    replaced = begun[:-1].count("replace") == 1
    assert new.exists() is not replaced
    if replaced:
        assert wrong_with(path) == []
        assert not backup.companions(str(path))
    elif state == "sound":
        assert knows_the_log(path)
    else:  # the damaged one is in its place; its log is with it, or where its second name is
        assert path.read_bytes()[:4_096] == bytes(4_096)
        place = path if also(path, "-wal").exists() else also(path, ".old")
        assert also(place, "-wal").read_bytes() == old_log
        assert place.read_bytes() == path.read_bytes()


@pytest.mark.parametrize("state", STEPS)
def test_what_cannot_be_put_in_place_is_undone(
    new: Path, path: Path, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    """As in a directory where others' files cannot be replaced."""
    leave_a_log(path)
    if state == "damaged":
        damage(path)

    def refuse(old: str, new: str) -> None:
        raise PermissionError(errno.EPERM, "not yours")

    with monkeypatch.context() as patch, pytest.raises(PermissionError):
        patch.setattr(os, "replace", refuse)
        put(new, path)
    assert not also(path, ".old").exists()
    assert path.stat().st_nlink == 1
    if state == "sound":
        assert knows_the_log(path)
    else:
        assert backup.companions(str(path)) == [f"{path}-wal", f"{path}-shm"]


def test_a_missing_database_that_cannot_be_put_in_place_stays_missing(
    new: Path, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.unlink()

    def refuse(old: str, new: str) -> None:
        raise PermissionError(errno.EPERM, "not yours")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(PermissionError):
        put(new, path)
    assert not path.exists()


def test_a_disk_that_fails_after_the_exchange_undoes_nothing(
    new: Path, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new database has its name: bringing the old one's log back would spoil it."""
    leave_a_log(path)
    damage(path)
    real, calls = os.fsync, []

    def fail_second(descriptor: int) -> None:
        calls.append(descriptor)
        if len(calls) == 2:
            raise OSError(errno.EIO, "the disk")
        real(descriptor)

    with monkeypatch.context() as patch, pytest.raises(OSError, match="the disk"):
        patch.setattr(os, "fsync", fail_second)
        put(new, path)
    assert wrong_with(path) == []
    assert also(path, ".old-wal").exists()


# Who may.


def test_only_without_a_writer(path: Path, writer: Writer) -> None:
    """Specification 15.6: a writer holds `<db>.lock` shared for life."""
    using = pytest.raises(ResourceError, match="a Colibri server is using")
    with writer(), using as held, opening.alone(str(path)):
        raise AssertionError("it must not come to this")
    assert "close the clients of this project" in held.value.hint
    waiting = pytest.raises(ResourceError, match="another Colibri is using")
    with opening.alone(str(path)), waiting, writer():
        raise AssertionError("it must not come to this")
    with writer():
        pass


def test_a_directory_that_is_missing_is_made(tmp_path: Path) -> None:
    with opening.alone(str(tmp_path / "a" / "b" / "colibri.db")):
        assert names(tmp_path / "a" / "b") == ["colibri.db.lock"]
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o700


def test_a_lock_that_cannot_be_taken_is_explained(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    lock = opening.alone(str(tmp_path / "file" / "colibri.db"))
    with pytest.raises(ResourceError, match="cannot open"), lock:
        pass


def test_a_copy_can_be_copied_again(path: Path, tmp_path: Path) -> None:
    """It is a database like any other; also by the means of the system, as it is one file."""
    copy = copied(path, tmp_path / "copy.db")
    again = copied(copy, tmp_path / "again.db")
    shutil.copy(again, tmp_path / "third.db")
    assert wrong_with(tmp_path / "third.db", head_of(path)) == []
    with closing(backup.open_copy(str(again))) as db:
        assert ledger.log_id(db) == LOG
