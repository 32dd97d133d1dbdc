"""A database whose schema is not ours: found whatever was changed, and never written to."""

from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from colibri.core.errors import Damaged, ResourceError
from colibri.store.sqlite import backup, expected
from colibri.store.sqlite.connection import Connection
from colibri.store.sqlite.expected import ForeignSchema
from colibri.store.sqlite.opening import open_reader
from colibri.store.sqlite.schema import load_migrations, upto
from colibri.store.sqlite.watch import Change
from tests.store.conftest import Writer

Act = Callable[[Connection], object]

ENDLESS = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"


def made() -> Connection:
    db = Connection(":memory:")
    for step in load_migrations():
        db.execute(step.sql)
    return db


OBJECTS: list[tuple[Any, ...]] = (
    made().execute("SELECT type, name, sql FROM sqlite_schema").fetchall()
)


def intrude(path: str, act: Act) -> None:
    """As anybody with another SQLite can."""
    with closing(Connection(path)) as db:
        db.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)
        db.execute("PRAGMA writable_schema = ON; PRAGMA foreign_keys = OFF")
        act(db)
        db.execute(f"PRAGMA schema_version = {db.pragma('schema_version') + 1}")


def drop(name: str) -> Act:
    return lambda db: db.execute("DELETE FROM sqlite_schema WHERE name = ?", (name,))


def define_differently(name: str) -> Act:
    return lambda db: db.execute(
        "UPDATE sqlite_schema SET sql = sql || '/* */' WHERE name = ?", (name,)
    )


def run(sql: str) -> Act:
    return lambda db: db.execute(sql)


def view_in_place(db: Connection) -> None:
    db.execute(
        "ALTER TABLE tasks RENAME TO real_tasks; CREATE VIEW tasks AS SELECT * FROM real_tasks"
    )


ADDED: dict[str, Act] = {
    "a table": run("CREATE TABLE more (x)"),
    "an index": run("CREATE INDEX more ON ledger (at)"),
    "a view": run("CREATE VIEW more AS SELECT 1"),
    "an endless view": run(f"CREATE VIEW more AS {ENDLESS}"),
    "a trigger": run("CREATE TRIGGER more AFTER INSERT ON ledger BEGIN SELECT 1; END"),
    "an endless trigger": run(f"CREATE TRIGGER more AFTER INSERT ON ledger BEGIN {ENDLESS}; END"),
    "a search index": run("CREATE VIRTUAL TABLE more USING fts5 (x)"),
    "statistics": run("ANALYZE"),
    "a view in the place of a table": view_in_place,
    "an object without a type": run("INSERT INTO sqlite_schema VALUES (NULL, NULL, NULL, 0, NULL)"),
    "a name that is not seen": run('CREATE TABLE "\u202e\x07" (x)'),
}
CHANGES: dict[str, Act] = (
    {f"no {name}": drop(name) for _, name, _ in OBJECTS}
    | {f"another {name}": define_differently(name) for _, name, sql in OBJECTS if sql}
    | ADDED
)


@pytest.mark.parametrize("change", CHANGES)
def test_whatever_is_dropped_replaced_or_added_is_found(
    path: str, writer: Writer, change: str
) -> None:
    """At opening for writing or reading, by a server that runs, and in a copy."""
    with writer() as opened, closing(open_reader(path)) as reader:
        with reader:
            reader.execute("SELECT count(*) FROM ledger").fetchall()
        intrude(path, CHANGES[change])
        broken = (Damaged, apsw.CorruptError)
        with pytest.raises(broken), Change(opened.db, opened.watch, durable=False):
            raise AssertionError("it must not come to this")
        assert not opened.db.in_transaction
        with pytest.raises(broken), reader:
            raise AssertionError("it must not come to this")
    for open_it in (writer, lambda: closing(open_reader(path))):
        with pytest.raises(ResourceError), open_it():
            raise AssertionError("it must not come to this")
    with closing(backup.open_copy(path)) as copy:
        assert backup.check(copy, head=None, pause=lambda: None) != []


@pytest.mark.parametrize("writes", [True, False])
def test_a_change_made_while_the_database_is_being_opened_is_found(
    path: str, writer: Writer, monkeypatch: pytest.MonkeyPatch, writes: bool
) -> None:
    """Right after the schema was compared: what a connection sees then is not taken for ours."""
    with writer():
        pass
    compare = expected.require

    def compare_then_intrude(*seen: Any) -> None:
        compare(*seen)
        intrude(path, run("CREATE VIEW more AS SELECT 1"))

    monkeypatch.setattr(expected, "require", compare_then_intrude)
    with ExitStack() as stack:
        if writes:
            opened = stack.enter_context(writer())
            transaction: Any = Change(opened.db, opened.watch, durable=False)
        else:
            transaction = stack.enter_context(closing(open_reader(path)))
        with pytest.raises(Damaged, match="the view more was added"), transaction:
            raise AssertionError("it must not come to this")


def test_a_server_that_runs_can_verify_what_was_changed_before_its_reader_was_opened(
    path: str, writer: Writer
) -> None:
    with writer():
        pass
    intrude(path, view_in_place)
    with closing(open_reader(path, in_use=True)) as reader:
        with pytest.raises(Damaged, match="the schema of the database was changed"), reader:
            raise AssertionError("it must not come to this")
        with pytest.raises(Damaged), reader:  # and not only once
            raise AssertionError("it must not come to this")
        assert expected.foreign(reader) != []


def test_what_is_different_is_named(path: str, writer: Writer) -> None:
    with writer():
        pass
    intrude(path, run("CREATE VIEW a AS SELECT 1; DROP INDEX ledger_by_task"))
    intrude(path, define_differently("tasks"))
    with closing(open_reader(path, any_schema=True)) as reader:
        assert expected.foreign(reader) == [
            "the index ledger_by_task is missing",
            "the table tasks is defined differently",
            "the view a was added",
        ]
    with pytest.raises(ForeignSchema) as refused, writer():
        raise AssertionError("it must not come to this")
    assert "the index ledger_by_task is missing, and 2 more" in refused.value.message
    assert "colibri verify lists the differences" in refused.value.hint


@pytest.mark.parametrize("encoding", ["UTF-16le", "UTF-16be"])
def test_a_file_that_keeps_texts_in_another_encoding_is_refused(
    path: str, writer: Writer, encoding: str
) -> None:
    """Even an empty one: the rows of an honest log would not be what its records say."""
    Path(path).parent.mkdir(mode=0o700)
    with closing(Connection(path)) as db:
        db.execute(f"PRAGMA encoding = '{encoding}'; CREATE TABLE x (y); DROP TABLE x")
    for open_it in (writer, lambda: closing(open_reader(path, least=0))):
        with pytest.raises(ResourceError, match=f"it keeps texts in {encoding}"), open_it():
            raise AssertionError("it must not come to this")


def test_two_objects_of_one_name_are_found() -> None:
    db = made()
    db.execute("PRAGMA writable_schema = ON")
    db.execute("INSERT INTO sqlite_schema SELECT * FROM sqlite_schema WHERE name = 'actions'")
    assert expected.differences(db, load_migrations()) == ["the view actions is there 2 times"]


def test_an_index_over_other_keys_is_found_in_a_copy(path: str, writer: Writer) -> None:
    """Its definition says nothing of it."""
    with writer() as opened:
        opened.db.execute("INSERT INTO meta VALUES ('b', '1'), ('a', '2')")
    sql = "SELECT sql FROM sqlite_schema WHERE name = 'meta'"
    intrude(path, lambda db: swapped_keys(db, db.execute(sql).get))
    with closing(backup.open_copy(path)) as copy:
        assert expected.foreign(copy) == []
        (found, *_) = backup.check(copy, head=None, pause=lambda: None)
    assert found.startswith("SQLite: ")


def swapped_keys(db: Connection, sql: str) -> None:
    """Rebuild the key's index from another column, then put the definition back."""
    other = "CREATE TABLE meta (key TEXT NOT NULL, value TEXT NOT NULL PRIMARY KEY) STRICT"
    update = "UPDATE sqlite_schema SET sql = ? WHERE name = 'meta'"
    db.execute(update, (other,))
    with closing(Connection(db.filename)) as second:
        second.execute("REINDEX")
    db.execute(update, (sql,))


def test_the_digest_is_that_of_the_migrations() -> None:
    """Where it is not, every start makes the schema once more to compare it: 5 ms."""
    rows: list[Any] = (
        made().execute("SELECT type, name, tbl_name, sql FROM sqlite_schema").fetchall()
    )
    assert (
        load_migrations()[-1].version,
        expected.digest(rows),
    ) == (expected.VERSION, expected.DIGEST)
    assert upto(load_migrations(), 1) == list(load_migrations()[:1])


@pytest.mark.parametrize("end", ["", "-wal", "-shm", ".lock"])
def test_no_file_is_open_to_others_whatever_the_umask(
    path: str, writer: Writer, open_umask: None, end: str
) -> None:
    with writer():
        assert Path(f"{path}{end}").stat().st_mode & 0o077 == 0
        assert Path(path).parent.stat().st_mode & 0o077 == 0
