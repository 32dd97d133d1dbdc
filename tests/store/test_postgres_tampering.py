"""What a superuser, or the writer, can falsify on PostgreSQL is named by verification."""

from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from colibri.core.errors import Damaged
from colibri.core.report import Report
from colibri.store.postgres import SCHEMA
from tests.support.ledger_writer import Lab, story
from tests.support.postgres import connection, fresh_schema, server, transaction


@pytest.fixture(scope="module")
def name() -> str:
    """A schema with a story in it, which no test changes for good."""
    name = fresh_schema()
    with closing(connection.connect(server().url(f"{name}_writer"))) as db:
        lab = story(Lab(db))
        lab.deed(command="make test", exit=0)
        assert lab.verify().valid
    return name


@contextmanager
def trial(name: str, user: str, *first: str) -> Iterator[Lab]:
    """The story as a user sees it within a transaction that is rolled back."""
    with closing(connection.connect(server().url(user))) as db:
        for statement in (f"SET search_path = {name}", "BEGIN", *first):
            db.execute(statement)
        yield Lab(db)
        db.execute("ROLLBACK")


@pytest.fixture
def superuser(name: str) -> Iterator[Lab]:
    """A user that no trigger and no foreign key stops."""
    with trial(name, "admin", "SET session_replication_role = replica") as lab:
        yield lab


@pytest.fixture
def writer(name: str) -> Iterator[Lab]:
    with trial(name, f"{name}_writer") as lab:
        yield lab


def codes(report: Report) -> set[str]:
    return {one.what for one in report.breaks}


RECORDS = {
    "at": ("UPDATE ledger SET at = '2020-01-01T00:00:00.000000Z' WHERE seq = 5", "altered-header"),
    "agent": ("UPDATE ledger SET agent = 'mallory' WHERE seq = 5", "altered-header"),
    "what no eye sees": ("UPDATE ledger SET agent = 'a' || chr(173) || 'da'", "altered-header"),
    "body": ("UPDATE ledger SET body = body || '\\x20' WHERE seq = 5", "altered-payload"),
    "nonce": ("UPDATE ledger SET nonce = payload WHERE seq = 5", "altered-payload"),
    "payload": ("UPDATE ledger SET payload = leaf WHERE seq = 5", "altered-header"),
    "leaf": ("UPDATE ledger SET leaf = payload WHERE seq = 5", "altered-header"),
    "prev": ("UPDATE ledger SET prev = leaf WHERE seq = 5", "altered-header"),
    "erased": ("UPDATE ledger SET nonce = NULL, body = NULL WHERE seq = 5", "missing-payload"),
    "deleted": ("DELETE FROM ledger WHERE seq = 5", "missing-record"),
    "the first deleted": ("DELETE FROM ledger WHERE seq = 1", "missing-record"),
    "moved": ("UPDATE ledger SET seq = 1000 WHERE seq = 50", "altered-header"),
}


@pytest.mark.parametrize("what", RECORDS)
def test_a_record_that_a_superuser_changed_is_named(superuser: Lab, what: str) -> None:
    statement, code = RECORDS[what]
    superuser.db.execute(statement)
    assert code in codes(superuser.verify())


@pytest.mark.parametrize("cut", ["DELETE FROM ledger WHERE seq > 50", "TRUNCATE ledger CASCADE"])
def test_a_truncated_or_emptied_ledger_is_detected_with_a_head(superuser: Lab, cut: str) -> None:
    """Nothing within it can tell; a head that somebody has kept can."""
    head = superuser.head()
    superuser.db.execute(cut)
    assert "truncated" in codes(superuser.verify(head=head))


@pytest.mark.parametrize("table", ["tasks", "sessions", "thoughts", "merkle_nodes", "deeds"])
def test_a_projection_that_was_emptied_is_named(superuser: Lab, table: str) -> None:
    superuser.db.execute(f"DELETE FROM {table}")
    assert codes(superuser.verify()) & {"altered-task", "altered-session", "altered-deed"}


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("UPDATE tasks SET status = 'CANCELLED'", "altered-task"),
        ("UPDATE tasks SET title = 'another'", "altered-task"),
        ("INSERT INTO lost_claims SELECT number, 'S-9' FROM tasks", "altered-task"),
        ("UPDATE sessions SET intent = 'another'", "altered-session"),
        ("UPDATE sessions SET last_leaf = sha256('x')", "altered-session"),
        ("INSERT INTO thoughts VALUES (1, 'S-1', 99, NULL, 'plan')", "altered-session"),
        ("INSERT INTO log_tree VALUES (0, sha256('x'))", "altered-tree"),
        ("INSERT INTO log_tree VALUES (9223372036854775807, sha256('x'))", "altered-tree"),
        ("INSERT INTO thought_words VALUES ('aaaa')", "altered-session"),
    ],
)
def test_what_the_writer_can_falsify_is_named(writer: Lab, statement: str, code: str) -> None:
    """Projections are its own to keep; the records say what they should hold."""
    writer.db.execute(statement)
    assert code in codes(writer.verify())


NUMBERS = (-(2**63), -1, 2**40, 2**63 - 1)
# Of a table that has no row yet.
OF_ITS_OWN = {
    "log_tree": ("INSERT INTO log_tree VALUES (0, sha256(''))",),
    "lost_claims": ("INSERT INTO lost_claims SELECT number, 'S-9' FROM tasks",),
    "task_dependencies": ("INSERT INTO task_dependencies SELECT number, 0, number FROM tasks",),
    "call_keys": ("INSERT INTO call_keys VALUES ('thought_record', '', 'k', 1, 3)",),
    "thought_search": ("INSERT INTO thought_search SELECT max(seq), '' FROM thoughts",),
}
CHECKS = {
    "log_tree": ("log_tree_idx_check",),
    "merkle_nodes": ("merkle_nodes_level_check", "merkle_nodes_idx_check"),
    "sessions": ("sessions_record_count_check", "sessions_check"),
    "thought_counts": ("thought_counts_n_check",),
    "thoughts": ("thoughts_idx_check",),
}


def test_a_number_however_large_is_refused_or_named(name: str) -> None:
    """In each column that takes one; none stops the verification."""
    find = (
        "SELECT relname, attname FROM pg_attribute JOIN pg_class ON attrelid = pg_class.oid"
        f" WHERE relnamespace = '{name}'::regnamespace AND relkind = 'r' AND attnum > 0"
        " AND atttypid = 'bigint'::regtype AND attgenerated = ''"
    )
    with server().connect() as db:
        columns = db.execute(find.encode()).fetchall()
    assert len(columns) > 20
    for table, column in columns:
        first = ["SET session_replication_role = replica", *OF_ITS_OWN.get(table, ())]
        first += [f"ALTER TABLE {table} DROP CONSTRAINT {one}" for one in CHECKS.get(table, ())]
        for number in NUMBERS:
            with trial(name, "admin", *first) as lab:
                lab.db.execute(
                    f"UPDATE {table} SET {column} = {number}"
                    f" WHERE ctid = (SELECT max(ctid) FROM {table})"
                )
                assert codes(lab.verify()), (table, column, number)


def test_a_total_below_0_is_named(superuser: Lab) -> None:
    """It counts as little as one of 0, but it is added to the others."""
    superuser.db.execute("ALTER TABLE thought_counts DROP CONSTRAINT thought_counts_n_check")
    superuser.db.execute("INSERT INTO thought_counts VALUES ('more', -1)")
    assert "altered-session" in codes(superuser.verify())
    superuser.db.execute("INSERT INTO task_counts VALUES ('', '', '', 'DONE', 0, 0, -1)")
    assert "altered-task" in codes(superuser.verify())


def test_a_guard_that_was_taken_away_is_named_and_so_is_what_came_past_it(superuser: Lab) -> None:
    """The triggers are disabled, a forged record is inserted, and the triggers enabled again."""
    db = superuser.db
    assert db.engine.foreign(db) == []
    db.execute("ALTER TABLE ledger DISABLE TRIGGER ALL")
    assert "the trigger ledger_refuses_a_fork is defined differently" in db.engine.foreign(db)
    db.execute(
        "INSERT INTO ledger SELECT seq + 1, at, kind, call, session, task, 'mallory', payload,"
        " nonce, body, leaf, leaf FROM ledger ORDER BY seq DESC LIMIT 1"
    )
    db.execute("ALTER TABLE ledger ENABLE TRIGGER ALL")
    assert db.engine.foreign(db) == []
    assert "altered-header" in codes(superuser.verify())


def test_a_server_of_another_version_appends_nothing() -> None:
    name = fresh_schema()
    with closing(connection.connect(server().url(f"{name}_writer"))) as db:
        with server().connect() as admin:
            admin.execute(f"UPDATE {name}.meta SET value = '99' WHERE key = 'schema'".encode())
        told = rf"version 99, and this program knows version {SCHEMA}: start it again, and use"
        with pytest.raises(Damaged, match=told), transaction.Transaction(db, durable=True):
            pytest.fail("it was given the head")
        assert not db.in_transaction


def test_a_server_whose_record_is_refused_says_what_to_do(name: str) -> None:
    """The log is not the one that it knows."""
    change = "UPDATE meta SET value = 'colibri/another' WHERE key = 'log'"
    refused = pytest.raises(
        Damaged,
        match=r"one, or none; audit_verify_chain says what is wrong|hash of its header; audit_v",
    )
    with trial(name, "admin", change) as lab, refused:
        lab.create()
