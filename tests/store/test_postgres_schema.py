"""The tables on PostgreSQL are those of SQLite, and so are their rules."""

import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import apsw
import pytest

from colibri.core.errors import ResourceError
from colibri.store.postgres import SCHEMA
from colibri.store.sqlite.schema import load_migrations
from tests.support.postgres import (
    LOG,
    SUPERUSER,
    errors,
    expected,
    fresh_schema,
    programs,
    psycopg,
    roles,
    schema,
    server,
    team,
)
from tests.support.postgres_rows import insert, row

VIEWS = {"actions", "audit_events", "thought_records"}
SEARCH = {"task_search", "thought_search", "thought_words"}  # each engine has its own
TYPES = {"INTEGER": "bigint", "TEXT": "text", "BLOB": "bytea"}
Columns = dict[str, dict[str, tuple[str, bool]]]


@pytest.fixture(scope="module")
def name() -> str:
    return fresh_schema()


def of_sqlite() -> Columns:
    db = apsw.Connection(":memory:")
    for step in load_migrations():
        db.execute(step.sql)
    rows = db.execute(
        "SELECT t.name, c.name, c.type, c.'notnull' OR t.type = 'table' AND c.pk > 0"
        " FROM pragma_table_list AS t JOIN pragma_table_xinfo(t.name) AS c"
        " WHERE t.schema = 'main' AND t.type IN ('table', 'view') AND t.name NOT LIKE 'sqlite%'"
    )
    found: Columns = {}
    for table, column, type_, needed in rows:
        found.setdefault(table, {})[column] = (TYPES.get(type_, ""), bool(needed))
    return found


def of_postgres(name: str) -> Columns:
    with server().connect() as admin:
        rows = admin.execute(
            "SELECT table_name, column_name, data_type, is_nullable = 'NO', collation_name"
            " FROM information_schema.columns WHERE table_schema = %s ORDER BY ordinal_position",
            (name,),
        ).fetchall()
    found: Columns = {}
    for table, column, type_, needed, collation in rows:
        assert collation == ("C" if type_ == "text" else None), (table, column)
        found.setdefault(table, {})[column] = (type_, needed)
    return found


def test_both_engines_have_the_same_tables_and_columns(name: str) -> None:
    """Texts are compared by their bytes, as SQLite does, whatever the language of the server."""
    ours, theirs = of_postgres(name), of_sqlite()
    assert {one: theirs[one] for one in theirs.keys() - SEARCH - VIEWS} == {
        one: ours[one] for one in ours.keys() - SEARCH - VIEWS
    }
    assert {one: [*theirs[one]] for one in VIEWS} == {one: [*ours[one]] for one in VIEWS}


def test_both_engines_have_the_same_versions() -> None:
    assert schema.load_migrations()[-1].version == SCHEMA
    assert [step.version for step in schema.load_migrations()] == [
        step.version for step in load_migrations()
    ]


def test_a_second_making_changes_nothing_and_keeps_the_log(name: str) -> None:
    with server().connect() as admin:
        made = team.make(admin, name, "colibri/another")
        assert made.before == made.version == schema.load_migrations()[-1].version
        log = admin.execute(f"SELECT value FROM {name}.meta WHERE key = 'log'").fetchone()
    assert log == (LOG,)


@pytest.mark.parametrize("bad", ["", "Colibri", "pg_colibri", "1x", 'x"', "x" * 49, "a-b", "ä"])
def test_a_name_that_no_schema_can_have_is_refused(bad: str) -> None:
    with server().connect() as admin, pytest.raises(ResourceError, match="cannot be the name"):
        team.make(admin, bad, LOG)


def test_a_schema_of_somebody_else_is_left_alone() -> None:
    with server().connect() as admin:
        admin.execute("CREATE SCHEMA theirs; CREATE TABLE theirs.meta (key text)")
        with pytest.raises(ResourceError, match="theirs belongs to admin"):
            team.make(admin, "theirs", LOG)
        assert not roles.existing(admin, "theirs")


def test_roles_of_another_database_get_no_rights_here() -> None:
    """They belong to the server, and somebody may hold their passwords."""
    with server().connect() as admin:
        admin.execute("CREATE ROLE elsewhere_reader")
        with pytest.raises(ResourceError, match="elsewhere_reader"):
            team.make(admin, "elsewhere", LOG)
        assert roles.existing(admin, "elsewhere") == ["elsewhere_reader"]


def test_tables_of_somebody_else_in_a_schema_with_our_name_are_left_alone() -> None:
    with server().connect() as admin:
        roles.create(admin, "half")
        admin.execute("CREATE SCHEMA half AUTHORIZATION half_owner")
        admin.execute("CREATE TABLE half.accounts (id int)")
        with pytest.raises(ResourceError, match="another program"):
            team.make(admin, "half", LOG)
        admin.execute("CREATE TABLE half.meta (key text, value text)")
        admin.execute("GRANT SELECT ON half.meta TO half_owner")
        with pytest.raises(ResourceError, match="another program"):
            team.make(admin, "half", LOG)


def test_a_schema_of_a_newer_version_is_left_alone() -> None:
    name = fresh_schema()
    with server().connect() as admin:
        admin.execute(f"UPDATE {name}.meta SET value = '99' WHERE key = 'schema'")
        with pytest.raises(ResourceError, match="version 99") as told:
            team.make(admin, name, LOG)
    assert told.value.hint == "use the newer Colibri that migrated it"


def test_a_database_in_another_encoding_is_refused() -> None:
    with server().connect() as admin:
        libc = "LOCALE_PROVIDER libc" if admin.info.server_version >= 150_000 else ""
        made = f"CREATE DATABASE latin ENCODING 'LATIN1' {libc} LOCALE 'C' TEMPLATE template0"
        admin.execute(made.encode())
    url = server().url().removesuffix("postgres") + "latin"
    told = pytest.raises(ResourceError, match="keeps texts in LATIN1")
    with psycopg.connect(url) as latin, told:
        team.make(latin, "some", LOG)


def test_an_administrator_who_is_no_superuser_can_make_one() -> None:
    with server().connect() as admin:
        admin.execute(
            "CREATE ROLE deputy LOGIN CREATEROLE; GRANT CREATE ON DATABASE postgres TO deputy"
        )
    with server().connect("deputy") as deputy:
        assert team.make(deputy, "by_deputy", LOG).before == 0
        assert team.make(deputy, "by_deputy", LOG).before > 0


def test_an_old_server_is_refused() -> None:
    schema.require_server(140_000, "UTF8")
    with pytest.raises(ResourceError, match="PostgreSQL 13 is too old") as told:
        schema.require_server(139_999, "UTF8")
    assert told.value.hint == "use PostgreSQL 14 or newer"


def test_what_an_administrator_may_not_do_is_named_and_leaves_nothing() -> None:
    with server().connect() as admin:
        admin.execute("CREATE ROLE helper LOGIN; CREATE ROLE maker LOGIN CREATEROLE")
    for user in ("helper", "maker"):
        with server().connect(user) as db, pytest.raises(ResourceError, match=user) as told:
            team.make(db, "nothing", LOG)
        assert "CREATEROLE" in told.value.hint
    with server().connect() as admin:
        assert not roles.existing(admin, "nothing")


def test_two_who_make_the_same_schema_at_once_make_it_once() -> None:
    def made(_: int) -> int:
        with server().connect() as admin:
            return team.make(admin, "at_once", LOG).before

    with ThreadPoolExecutor(2) as both:
        assert sorted(both.map(made, range(2))) == [0, schema.load_migrations()[-1].version]


def waits(admin: psycopg.Connection[Any], pid: int) -> None:
    """Until a session waits for a lock."""
    query = "SELECT 1 FROM pg_stat_activity WHERE pid = %s AND wait_event_type = 'Lock'"
    end = time.monotonic() + 30
    while not admin.execute(query, (pid,)).fetchone():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_writer_that_waited_for_a_migration_learns_of_it() -> None:
    """A migration waits for whoever appends; and whoever waits for it would append in vain."""
    name = fresh_schema()
    connect = server().connect
    with (
        connect() as admin,
        connect(f"{name}_writer") as first,
        connect(f"{name}_writer") as second,
        connect() as watch,
        ThreadPoolExecutor(2) as pool,
    ):
        schema_name = f"SET search_path = {name}; DROP TABLE log_tree; DROP FUNCTION keep_log_tree;"
        admin.execute(f"{schema_name} UPDATE meta SET value = '4' WHERE key = 'schema'".encode())
        first.execute("BEGIN; SELECT lock_head(4)")
        making = pool.submit(team.make, admin, name, LOG)
        waits(watch, admin.info.backend_pid)
        second.execute("BEGIN")
        locked = pool.submit(second.execute, "SELECT lock_head(4)")
        waits(watch, second.info.backend_pid)
        first.execute("COMMIT")
        assert making.result(30).before == 4
        with pytest.raises(psycopg.Error, match=f"has version {SCHEMA}, .* knows version 4"):
            locked.result(30)


def test_a_dump_by_the_reader_is_a_whole_backup() -> None:
    """Restored by PostgreSQL's own program, it has the records, the guards and the rights."""
    name = fresh_schema()
    first = row(agent='"\\\u2028\x01')
    with server().connect(f"{name}_writer") as writer:
        insert(writer, first)
    bin, found = programs(), server()
    if not bin or not (bin / "pg_dump").exists():
        pytest.skip("PostgreSQL's client programs are missing")
    reached = ["-h", str(found.directory), "-p", str(found.port)]
    dump = [str(bin / "pg_dump"), *reached, "-U", f"{name}_reader", "-n", name, "postgres"]
    restore = [str(bin / "psql"), *reached, "-qX", "-v", "ON_ERROR_STOP=1", "-U", SUPERUSER]
    made = subprocess.run(dump, check=True, capture_output=True).stdout
    with found.connect() as admin:
        admin.execute("CREATE DATABASE restored TEMPLATE template0")
    subprocess.run([*restore, "restored"], check=True, input=made, capture_output=True)
    url = found.url(f"{name}_writer").removesuffix("postgres") + "restored"
    with psycopg.connect(url, autocommit=True) as db:
        assert expected.foreign(cast(Any, db)) == []
        assert db.execute("SELECT * FROM ledger").fetchall() == [first]
        with pytest.raises(errors.IntegrityError):
            insert(db, row(first)._replace(agent="mallory"))
        insert(db, row(first))
