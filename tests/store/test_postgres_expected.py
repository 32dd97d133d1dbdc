"""What a superuser does to the schema, past every guard, is named."""

from collections.abc import Iterator
from typing import Any, cast

import pytest

from tests.support.postgres import empty_schema, expected, fresh_schema, psycopg, schema, server

Connection = psycopg.Connection[Any]


@pytest.fixture(scope="module")
def name() -> str:
    return empty_schema()


@pytest.fixture
def admin(name: str) -> Iterator[Connection]:
    """A superuser in the schema, whose changes are undone."""
    with server().connect() as db, db.transaction(force_rollback=True):
        schema.use(db, name)
        yield db


def foreign(db: Connection) -> list[str]:
    return expected.foreign(cast(Any, db))


@pytest.mark.parametrize("role", ["writer", "reader"])
def test_the_schema_that_we_made_is_ours(name: str, role: str) -> None:
    """Whoever may read it can tell."""
    with server().connect(f"{name}_{role}") as db:
        assert foreign(db) == []


@pytest.mark.parametrize("other", ["order", "n" * 48], ids=["a word of SQL", "the longest"])
def test_so_is_one_of_any_name(other: str) -> None:
    fresh_schema(name=other)
    with server().connect(f"{other}_reader") as db:
        assert foreign(db) == []


CHANGES = [
    ("ALTER TABLE ledger DISABLE TRIGGER ledger_refuses_a_fork", "trigger ledger_refuses_a_fork"),
    ("ALTER TABLE ledger ENABLE REPLICA TRIGGER ledger_refuses_update", "trigger ledger_refuses"),
    ("ALTER TABLE thoughts DISABLE TRIGGER ALL", "trigger RI_ConstraintTrigger_c"),
    ("DROP TRIGGER ledger_refuses_delete ON ledger", "trigger ledger_refuses_delete is missing"),
    ("DROP FUNCTION check_record() CASCADE", "function check_record is missing"),
    (
        "CREATE OR REPLACE FUNCTION check_record() RETURNS trigger LANGUAGE plpgsql"
        " AS 'BEGIN RETURN NULL; END'",
        "function check_record is defined differently",
    ),
    ("ALTER FUNCTION check_record() SET search_path = public", "function check_record is def"),
    ("ALTER FUNCTION check_record() RESET ALL", "function check_record is defined differently"),
    ("ALTER FUNCTION last_sign(text) RESET enable_sort", "function last_sign is defined differ"),
    ("ALTER FUNCTION check_record() SECURITY DEFINER", "function check_record is defined"),
    ("ALTER FUNCTION erase(bigint) SECURITY INVOKER", "function erase is defined differently"),
    ("ALTER FUNCTION erase(bigint) OWNER TO CURRENT_USER", "function erase is defined differently"),
    (
        "CREATE FUNCTION genesis(varchar) RETURNS bytea LANGUAGE sql AS 'SELECT NULL::bytea'",
        "function genesis is defined differently",
    ),
    ("CREATE FUNCTION more() RETURNS int LANGUAGE sql AS 'SELECT 1'", "function more was added"),
    (
        "CREATE TRIGGER more BEFORE INSERT ON ledger EXECUTE FUNCTION keep_records()",
        "trigger more was added",
    ),
    (
        "DROP TRIGGER ledger_refuses_update ON ledger; CREATE TRIGGER ledger_refuses_update BEFORE"
        " UPDATE ON ledger FOR EACH ROW WHEN (false) EXECUTE FUNCTION keep_record()",
        "trigger ledger_refuses_update is defined differently",
    ),
    (
        "DROP TRIGGER ledger_refuses_update ON ledger; CREATE TRIGGER ledger_refuses_update BEFORE"
        " UPDATE OF seq ON ledger FOR EACH ROW EXECUTE FUNCTION keep_record()",
        "trigger ledger_refuses_update is defined differently",
    ),
    ("CREATE RULE more AS ON UPDATE TO tasks DO INSTEAD NOTHING", "rule more was added"),
    ("ALTER TABLE ledger ENABLE ROW LEVEL SECURITY", "table ledger is defined differently"),
    ("CREATE TABLE more () INHERITS (ledger)", "table ledger is defined differently"),
    ("ALTER TABLE log_tree SET UNLOGGED", "table log_tree is defined differently"),
    ("CREATE TABLE more (id int)", "table more was added"),
    ("CREATE SEQUENCE more", "relation more was added"),
    ("CREATE VIEW more AS SELECT 1", "view more was added"),
    ("DROP VIEW audit_events", "view audit_events is missing"),
    ("DROP TABLE log_tree", "table log_tree is missing"),
    ("ALTER TABLE ledger ADD COLUMN more int", "column ledger.more was added"),
    ("ALTER TABLE deeds DROP COLUMN late", "column deeds.late is missing"),
    ("ALTER TABLE deeds ALTER COLUMN host DROP NOT NULL", "column deeds.host is defined diff"),
    ('ALTER TABLE deeds ALTER COLUMN use TYPE text COLLATE "POSIX"', "column deeds.use is def"),
    ("ALTER TABLE thoughts DROP CONSTRAINT thoughts_idx_check", "table thoughts's constraints is"),
    ("ALTER TABLE ledger DROP CONSTRAINT ledger_pkey CASCADE", "table ledger's constraints is"),
    ("ALTER TABLE deeds DROP CONSTRAINT deeds_seq_fkey", "table deeds's constraints is"),
    ("DROP INDEX deeds_once", "index deeds_once is missing"),
    ("DROP INDEX deeds_once; CREATE INDEX deeds_once ON deeds (use)", "index deeds_once is def"),
    ("UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'deeds_once'::regclass", "deeds_"),
    ("CREATE INDEX more ON ledger (agent)", "index more was added"),
    ("GRANT UPDATE ON ledger TO PUBLIC", "right UPDATE ON ledger TO PUBLIC was added"),
    ("GRANT UPDATE (body) ON ledger TO {name}_writer", "right UPDATE ON ledger.body TO"),
    ("GRANT INSERT ON ledger TO {name}_writer WITH GRANT OPTION", "right INSERT ON ledger TO"),
    ("GRANT CREATE ON SCHEMA {name} TO {name}_reader", "right CREATE ON"),
    ("GRANT EXECUTE ON FUNCTION erase(bigint) TO {name}_writer", "right EXECUTE ON erase TO"),
    ("GRANT EXECUTE ON FUNCTION count_task() TO PUBLIC", "EXECUTE ON count_task TO PUBLIC was"),
    ("GRANT {name}_owner TO {name}_writer", "the right to act as"),
    ("GRANT {name}_eraser TO {name}_reader", "the right to act as"),
    ("ALTER ROLE {name}_writer SUPERUSER", "the right to act as"),
    ("ALTER TABLE ledger OWNER TO CURRENT_USER", "table ledger is defined differently"),
    ("ALTER SCHEMA {name} OWNER TO CURRENT_USER", "is defined differently"),
    (
        "CREATE FUNCTION public.check_record() RETURNS trigger LANGUAGE plpgsql"
        " AS 'BEGIN RETURN NEW; END'; DROP TRIGGER ledger_refuses_a_fork ON ledger;"
        " CREATE TRIGGER ledger_refuses_a_fork BEFORE INSERT ON ledger FOR EACH ROW"
        " EXECUTE FUNCTION public.check_record()",
        "trigger ledger_refuses_a_fork is defined differently",
    ),
    (
        "DROP TRIGGER tasks_counted ON tasks; CREATE CONSTRAINT TRIGGER tasks_counted AFTER INSERT"
        " OR UPDATE ON tasks DEFERRABLE FOR EACH ROW EXECUTE FUNCTION count_task()",
        "trigger tasks_counted is defined differently",
    ),
    (
        "CREATE FUNCTION public.more() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';"
        " CREATE TRIGGER more BEFORE INSERT ON ledger FOR EACH ROW EXECUTE FUNCTION public.more();"
        " UPDATE pg_trigger SET tgisinternal = true WHERE tgname = 'more'",
        "trigger more was added",
    ),
    ("ALTER FUNCTION record_leaf STRICT", "function record_leaf is defined differently"),
    ("ALTER FUNCTION check_record() STABLE", "function check_record is defined differently"),
    ("ALTER TABLE ledger ALTER leaf SET DEFAULT ''", "column ledger.leaf is defined differently"),
    ("ALTER TABLE tasks ALTER is_ready DROP EXPRESSION", "column tasks.is_ready is defined diff"),
    (
        "CREATE COLLATION \"C\" (provider = icu, locale = 'en');"
        ' ALTER TABLE deeds ALTER use TYPE text COLLATE {name}."C"',
        "column deeds.use is defined differently",
    ),
    ("CREATE DOMAIN more AS text", "type more was added"),
    (
        "CREATE TABLE public.parent (LIKE ledger); ALTER TABLE ledger INHERIT public.parent",
        "table ledger is defined differently",
    ),
    ("ALTER ROLE {name}_writer SET session_replication_role = replica", "setting session_repl"),
    ("ALTER DATABASE postgres SET session_replication_role = replica", "setting session_repl"),
]


@pytest.mark.parametrize(("change", "told"), CHANGES, ids=[change for change, _ in CHANGES])
def test_a_change_is_named(name: str, admin: Connection, change: str, told: str) -> None:
    admin.execute(change.replace("{name}", name).encode())
    assert any(told in one for one in foreign(admin)), foreign(admin)


def test_an_operator_is_named(admin: Connection) -> None:
    admin.execute(
        "CREATE FUNCTION joined(text, bigint) RETURNS text LANGUAGE sql AS 'SELECT $1';"
        " CREATE OPERATOR || (LEFTARG = text, RIGHTARG = bigint, FUNCTION = joined)"
    )
    assert "the operator || was added" in foreign(admin)


def test_readers_of_a_teams_own_are_its_own_affair(admin: Connection) -> None:
    admin.execute("CREATE ROLE analyst; GRANT SELECT ON ledger, tasks TO analyst")
    assert foreign(admin) == []
