"""What each role may do on PostgreSQL, and what the database refuses it: tried with real roles."""

from collections.abc import Iterator
from typing import Any

import pytest

from colibri.core.canonical import encode
from colibri.core.rows import Row
from colibri.store.postgres import SCHEMA
from tests.support.postgres import errors, fresh_schema, psycopg, roles, server
from tests.support.postgres_rows import AT, insert, row

Connection = psycopg.Connection[Any]
THOUGHT = b'{"content":"why","index":0,"prev":"00","thought_id":"R-3","type":"plan"}'


@pytest.fixture(scope="module")
def name() -> str:
    """A schema with four records, a session, a thought and a task."""
    name = fresh_schema()
    enter = row(body=b'{"tool":"task_create"}')
    opened = row(enter, kind="session.open", session="S-1")
    thought = row(opened, body=THOUGHT, kind="thought", session="S-1")
    left = row(thought, kind="call.exit", body=b'{"enter":1,"tool":"task_create"}')
    with server().connect(roles.names(name).writer) as db:
        insert(db, enter, opened, thought, left)
        db.execute(
            "INSERT INTO sessions (session_id, intent, server, started_at, open_seq, record_count,"
            " last_leaf) VALUES ('S-1', 'try', 'server', %s, 2, 1, %s)",
            (AT, thought.leaf),
        )
        db.execute("INSERT INTO thoughts VALUES (3, 'S-1', 0, NULL, 'plan')")
        db.execute("INSERT INTO merkle_nodes VALUES ('S-1', 0, 0, %s)", (thought.leaf,))
        db.execute(
            "INSERT INTO tasks (number, title, priority, status, attempt, version, created_at,"
            " updated_at, attempt_seq, open_dependencies)"
            " VALUES (1, 'a task', 'high', 'INIT', 1, 1, %s, %s, 4, 0)",
            (AT, AT),
        )
    return name


@pytest.fixture(params=["writer", "eraser", "reader"])
def anybody(request: pytest.FixtureRequest, name: str) -> Iterator[Connection]:
    with server().connect(getattr(roles.names(name), request.param)) as db:
        yield db


@pytest.fixture
def writer(name: str) -> Iterator[Connection]:
    with server().connect(roles.names(name).writer) as db:
        yield db


@pytest.fixture
def eraser(name: str) -> Iterator[Connection]:
    with server().connect(roles.names(name).eraser) as db:
        yield db


@pytest.fixture
def owner(name: str) -> Iterator[Connection]:
    with server().connect() as db:
        db.execute(f"SET ROLE {name}_owner; SET search_path = {name}")
        yield db


def records(db: Connection) -> list[Row]:
    return [Row._make(one) for one in db.execute("SELECT * FROM ledger ORDER BY seq").fetchall()]


FORBIDDEN = """
UPDATE ledger SET agent = 'mallory'
UPDATE ledger SET nonce = NULL, body = NULL WHERE seq = 3
DELETE FROM ledger
TRUNCATE ledger CASCADE
INSERT INTO ledger SELECT * FROM ledger ON CONFLICT (seq) DO UPDATE SET agent = 'mallory'
SELECT * FROM ledger FOR UPDATE
LOCK TABLE ledger IN ACCESS EXCLUSIVE MODE
ALTER TABLE ledger DISABLE TRIGGER ALL
ALTER TABLE ledger DISABLE TRIGGER ledger_refuses_a_fork
ALTER TABLE ledger ADD COLUMN more text
ALTER TABLE ledger RENAME TO old
ALTER TABLE ledger OWNER TO CURRENT_USER
DROP TRIGGER ledger_refuses_a_fork ON ledger
DROP TABLE ledger CASCADE
DROP SCHEMA {name} CASCADE
CREATE RULE r AS ON INSERT TO ledger DO INSTEAD NOTHING
CREATE TRIGGER t BEFORE INSERT ON ledger EXECUTE FUNCTION suppress_redundant_updates_trigger()
CREATE INDEX i ON ledger (agent)
CREATE TABLE {name}.more (id int)
CREATE FUNCTION {name}.more() RETURNS int LANGUAGE sql AS 'SELECT 1'
CREATE OR REPLACE FUNCTION check_record() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN END'
CREATE OR REPLACE FUNCTION genesis(text) RETURNS bytea LANGUAGE sql AS 'SELECT NULL::bytea'
ALTER FUNCTION check_record() SET search_path = public
ALTER FUNCTION check_record() OWNER TO CURRENT_USER
DROP FUNCTION check_record() CASCADE
SET ROLE {name}_owner
SET SESSION AUTHORIZATION {name}_owner
SET session_replication_role = replica
GRANT {name}_owner TO CURRENT_USER
ALTER ROLE {name}_writer SUPERUSER
ALTER ROLE {name}_owner LOGIN PASSWORD 'x'
DELETE FROM meta
INSERT INTO meta VALUES ('log2', 'colibri/another')
UPDATE meta SET value = '99' WHERE key = 'schema'
UPDATE meta SET value = 'colibri/another' WHERE key = 'log'
UPDATE meta SET key = 'verified' WHERE key = 'log'
UPDATE task_counts SET n = 99
INSERT INTO thought_counts VALUES ('plan', 99) ON CONFLICT (type) DO UPDATE SET n = 99
UPDATE thoughts SET idx = 1
DELETE FROM thoughts
UPDATE merkle_nodes SET idx = 1
DELETE FROM merkle_nodes
TRUNCATE merkle_nodes
UPDATE log_tree SET idx = 1
DELETE FROM log_tree
DELETE FROM tasks
DELETE FROM sessions
UPDATE deeds SET late = ''
DELETE FROM call_keys
COPY ledger TO PROGRAM 'cat'
""".strip().splitlines()


def allowed(db: Connection, statements: list[str]) -> list[str]:
    """Those that this role may run after all."""
    found = []
    for statement in statements:
        try:
            with db.transaction(force_rollback=True):
                db.execute(statement.encode())
        except errors.InsufficientPrivilege:
            continue
        found.append(statement)
    return found


def test_no_role_changes_deletes_or_takes_over_anything(name: str, anybody: Connection) -> None:
    assert not allowed(anybody, [one.format(name=name) for one in FORBIDDEN])


def test_no_role_hands_on_a_right(name: str, anybody: Connection) -> None:
    """PostgreSQL only warns of that."""
    rights = f"SELECT relacl FROM pg_class WHERE relnamespace = '{name}'::regnamespace ORDER BY oid"
    before = anybody.execute(rights.encode()).fetchall()
    anybody.execute(f"GRANT ALL ON ALL TABLES IN SCHEMA {name} TO PUBLIC".encode())
    assert anybody.execute(rights.encode()).fetchall() == before


READER_FORBIDDEN = """
INSERT INTO ledger SELECT * FROM ledger
INSERT INTO tasks (number) VALUES (9)
UPDATE tasks SET title = 'x'
UPDATE sessions SET intent = 'x'
INSERT INTO meta VALUES ('verified', '1')
SELECT erase(3)
SELECT lock_head(5)
INSERT INTO ledger (at, kind, call, nonce, body) VALUES ('', 'thought', '', '', '')
""".strip().splitlines()


def test_the_reader_only_reads(name: str) -> None:
    with server().connect(roles.names(name).reader) as db:
        assert not allowed(db, READER_FORBIDDEN)


def test_everybody_reads_everything(anybody: Connection, name: str) -> None:
    tables = anybody.execute(
        "SELECT table_name FROM information_schema.tables WHERE table_schema = %s", (name,)
    ).fetchall()
    assert len(tables) >= len(roles.WRITES) + 3
    for (table,) in tables:
        anybody.execute(f"SELECT * FROM {table}".encode())


def test_every_table_has_been_thought_of(owner: Connection, name: str) -> None:
    """Totals belong to the triggers; what the writer may do with any other is written down."""
    rows = owner.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", (name,))
    found = {str(table) for (table,) in rows.fetchall()}
    assert found == {*roles.WRITES, "task_counts", "thought_counts"}


def test_nobody_else_may_do_anything(name: str) -> None:
    with server().connect() as admin:
        admin.execute("DROP ROLE IF EXISTS stranger; CREATE ROLE stranger LOGIN")
    with server().connect("stranger") as db:
        for statement in (f"SELECT * FROM {name}.ledger", f"SELECT {name}.erase(3)"):
            with pytest.raises(errors.InsufficientPrivilege):
                db.execute(statement.encode())


def test_the_writer_does_what_a_server_does(writer: Connection) -> None:
    writer.execute("SELECT lock_head(%s)", (SCHEMA,))
    writer.execute(
        "INSERT INTO meta VALUES ('verified', '3')"
        " ON CONFLICT (key) DO UPDATE SET value = excluded.value"
    )
    writer.execute("UPDATE meta SET value = '4' WHERE key = 'verified'")
    writer.execute("UPDATE tasks SET status = 'GATHER' WHERE number = 1")
    writer.execute("UPDATE sessions SET client = 'test' WHERE session_id = 'S-1'")
    counted = writer.execute(
        "SELECT n FROM task_counts WHERE status = 'GATHER' AND field = 'status'"
    ).fetchone()
    assert counted == (1,)
    assert writer.execute("SELECT type, n FROM thought_counts").fetchall() == [("plan", 1)]


def test_a_table_of_its_own_does_not_fool_the_guard(name: str, writer: Connection) -> None:
    """Temporary tables come first in a search path that does not name them; the guard's does."""
    (*_, last) = records(writer)
    forged = row(last)._replace(leaf=bytes(32))
    writer.execute(f"CREATE TEMP TABLE meta AS SELECT * FROM {name}.meta")
    writer.execute("UPDATE pg_temp.meta SET value = 'colibri/another'")
    writer.execute(f"CREATE TEMP TABLE ledger (LIKE {name}.ledger)")
    writer.execute("CREATE TEMP TABLE added (LIKE pg_temp.ledger)")
    writer.execute(
        "CREATE FUNCTION pg_temp.sha256(bytea) RETURNS bytea LANGUAGE sql AS 'SELECT $1'"
    )
    for path in (f"pg_temp, {name}", f"pg_temp, {name}, pg_catalog", f"{name}"):
        writer.execute(f"SET search_path = {path}".encode())
        for bad in (forged, row(last, log="colibri/another")):
            marks = ", ".join(["%s"] * len(bad))
            with pytest.raises(errors.IntegrityError):
                writer.execute(f"INSERT INTO {name}.ledger VALUES ({marks})".encode(), bad)


def test_a_copy_is_guarded_too(writer: Connection) -> None:
    (*_, last) = records(writer)
    forged = row(last)._replace(agent="mallory")
    refused = pytest.raises(errors.IntegrityError, match="leaf of record")
    with refused, writer.cursor().copy("COPY ledger FROM STDIN") as copy:
        copy.write_row(forged)


def test_the_eraser_erases_once_and_only_what_may_go(name: str, eraser: Connection) -> None:
    before = records(eraser)
    with eraser.transaction(force_rollback=True):
        eraser.execute("SELECT erase(3)")
        after = records(eraser)
        assert after == [*before[:2], before[2]._replace(nonce=None, body=None), before[3]]
        kept = eraser.execute("SELECT content, idx, hash FROM thought_records").fetchone()
        assert kept == ("[erased]", None, before[2].leaf.hex())
        with pytest.raises(errors.IntegrityError, match="does not exist, is erased, or has to"):
            eraser.execute("SELECT erase(3)")
    for seq in (4, 99, None):  # an exit, and records that do not exist
        with pytest.raises(errors.IntegrityError):
            eraser.execute("SELECT erase(%s)", (seq,))
    assert records(eraser) == before


def test_the_writer_does_not_erase(writer: Connection) -> None:
    with pytest.raises(errors.InsufficientPrivilege):
        writer.execute("SELECT erase(3)")


def test_the_eraser_is_not_fooled_by_a_search_path(name: str, eraser: Connection) -> None:
    """What runs with the owner's rights finds the tables of its own schema."""
    eraser.execute(f"CREATE TEMP TABLE ledger AS SELECT * FROM {name}.ledger")
    eraser.execute(f"SET search_path = pg_temp, {name}")
    with eraser.transaction(force_rollback=True):
        eraser.execute(f"SELECT {name}.erase(3)")
        there = eraser.execute(f"SELECT body FROM {name}.ledger WHERE seq = 3").fetchone()
        assert there == (None,)


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("UPDATE ledger SET agent = 'x' WHERE seq = 1", "never changed"),
        ("UPDATE ledger SET body = 'x' WHERE seq = 1", "never changed"),
        ("UPDATE ledger SET body = NULL, nonce = NULL, leaf = prev WHERE seq = 1", "never changed"),
        ("UPDATE ledger SET seq = 99 WHERE seq = 1", "never changed"),
        ("DELETE FROM ledger WHERE seq = 4", "never deleted"),
        ("TRUNCATE ledger CASCADE", "never deleted"),
        ("UPDATE merkle_nodes SET idx = 1", "a sealed session"),
        ("DELETE FROM merkle_nodes", "a sealed session"),
        ("TRUNCATE merkle_nodes", "a sealed session"),
        ("DELETE FROM log_tree", "so is its tree"),
    ],
)
def test_the_rules_hold_for_the_owner_too(owner: Connection, statement: str, why: str) -> None:
    with pytest.raises(errors.IntegrityError, match=why):
        owner.execute(statement.encode())


def test_a_writer_that_is_stopped_frees_the_head(name: str) -> None:
    with server().connect() as admin:
        rows = admin.execute(
            "SELECT rolname, rolconfig FROM pg_roles WHERE rolname = ANY(%s)",
            ([*roles.names(name)],),
        ).fetchall()
    settings = {role: dict(one.split("=", 1) for one in kept or ()) for role, kept in rows}
    for role in (f"{name}_writer", f"{name}_eraser"):
        assert settings[role] | roles.PATIENCE == settings[role]
    with server().connect(f"{name}_writer") as stopped, server().connect(f"{name}_writer") as next_:
        shown = stopped.execute("SHOW idle_in_transaction_session_timeout").fetchone()
        assert shown == ("5s",)
        stopped.execute("SET idle_in_transaction_session_timeout = '200ms'")
        stopped.execute(f"BEGIN; SELECT lock_head({SCHEMA})".encode())
        next_.execute("SELECT lock_head(%s)", (SCHEMA,))  # it waits until the other is ended
        with pytest.raises(errors.IdleInTransactionSessionTimeout):
            stopped.execute("SELECT 1")


def test_the_views_show_what_sqlite_shows(writer: Connection) -> None:
    actions = writer.execute(
        "SELECT sequence_no, phase, tool, outcome FROM actions ORDER BY sequence_no, phase"
    ).fetchall()
    assert actions == [
        (1, "enter", "task_create", "running"),
        (1, "exit", "task_create", None),
    ]
    assert writer.execute("SELECT thought_id, content, idx FROM thought_records").fetchall() == [
        ("R-3", "why", 0)
    ]


def test_a_view_shows_a_payload_with_the_character_0(name: str) -> None:
    """A tool of somebody else may have been given one; JSON writes it as an escape."""
    said = {"tool": "a\0b\0\0", "arguments": "\\u0000 \\\\u0000 \\\0"}
    with server().connect(f"{name}_writer") as db, db.transaction(force_rollback=True):
        (*_, last) = records(db)
        insert(db, row(last, body=encode(said)))
        body = db.execute("SELECT shown(body) FROM ledger ORDER BY seq DESC LIMIT 1").fetchone()
        tool = db.execute("SELECT tool FROM actions ORDER BY sequence_no DESC LIMIT 1").fetchone()
    assert tool == ("a\ufffdb\ufffd\ufffd",)
    assert body == ({name: text.replace("\0", "\ufffd") for name, text in said.items()},)
