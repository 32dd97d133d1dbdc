"""store/postgres: connections, transactions and errors, on a real server."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from colibri.store import bundle, claims, ledger, tasks, trail
from colibri.store.connection import Connection
from colibri.store.faults import breaks_constraint, errors, fault
from colibri.store.savepoint import Savepoint
from tests.support import engines
from tests.support.ledger_writer import LOG, TO_VERIFY, Lab, in_memory, no_pause, story
from tests.support.postgres import connection, psycopg, server, transaction

connect = connection.connect
Transaction = transaction.Transaction


@pytest.fixture(scope="module", autouse=True)
def engine() -> Iterator[str]:
    with engines.use("postgres"):
        yield "postgres"


@pytest.fixture
def lab() -> Lab:
    return in_memory()


def schema_of(db: Connection) -> str:
    return str(db.execute("SELECT current_schema()").get)


def other(lab: Lab, role: str) -> Connection:
    """Another connection to the same schema."""
    return connect(server().url(f"{schema_of(lab.db)}_{role}"))


def as_superuser(lab: Lab, statement: str) -> None:
    with server().connect() as admin:
        admin.execute(f"SET search_path = {schema_of(lab.db)}".encode())
        admin.execute(statement.encode())


def test_rows_are_the_values_that_python_gave(lab: Lab) -> None:
    """Also text that looks like a placeholder, whole numbers of any size, and sums of them."""
    query = "SELECT '?', ?, ?, ?, CAST(? AS bigint), sum(n) FROM (VALUES (1), (2)) AS t (n)"
    given = ("T’s \N{SNOWMAN}", b"\x00\xff", -(2**63), 7)
    assert lab.db.execute(query, given).fetchall() == [("?", *given, 3)]


@pytest.mark.parametrize(
    ("query", "plain"),
    [
        ("SELECT 1 WHERE false", None),
        ("SELECT 1", 1),
        ("SELECT 1, 'x'", (1, "x")),
        ("VALUES (1), (2)", [1, 2]),
        ("VALUES (1, 'x'), (2, 'y')", [(1, "x"), (2, "y")]),
    ],
)
def test_get_has_as_little_around_the_values_as_possible(
    lab: Lab, query: str, plain: object
) -> None:
    assert lab.db.execute(query).get == plain


def test_a_cursor_is_read_row_by_row_or_at_once(lab: Lab) -> None:
    rows = lab.db.execute("VALUES (1), (2), (3), (4)")
    assert (next(rows), rows.fetchone(), rows.fetchall()) == ((1,), (2,), [(3,), (4,)])
    assert rows.fetchone() is None


def test_the_rows_that_were_changed_are_counted(lab: Lab) -> None:
    before = lab.db.total_changes()
    lab.create()
    made = lab.db.total_changes()
    tasks.get(lab.db, "T-0001")
    assert before < made == lab.db.total_changes()


def test_a_failed_transaction_leaves_nothing(lab: Lab) -> None:
    with pytest.raises(ValueError), Transaction(lab.db, durable=True):
        lab.db.execute("INSERT INTO thought_words (word) VALUES ('one')")
        raise ValueError
    assert not lab.db.in_transaction
    assert lab.db.execute("SELECT count(*) FROM thought_words").get == 0


def test_a_savepoint_is_rolled_back_alone_even_after_an_error_of_the_database(lab: Lab) -> None:
    with Transaction(lab.db, durable=False):
        with Savepoint(lab.db):
            lab.db.execute("INSERT INTO thought_words (word) VALUES ('one')")
        with pytest.raises(psycopg.errors.UniqueViolation), Savepoint(lab.db):
            lab.db.execute("INSERT INTO thought_words (word) VALUES ('two')")
            lab.db.execute("INSERT INTO thought_words (word) VALUES ('two')")
    assert lab.db.execute("SELECT word FROM thought_words").get == "one"


def test_a_durable_transaction_is_on_disk_with_all_before_it(lab: Lab) -> None:
    with Transaction(lab.db, durable=False):
        lab.db.execute("INSERT INTO thought_words (word) VALUES ('early')")
    written = lab.db.execute("SELECT CAST(pg_current_wal_insert_lsn() AS text)").get
    with Transaction(lab.db, durable=True):
        pass
    assert lab.db.execute(f"SELECT '{written}' <= pg_current_wal_flush_lsn()").get


def test_who_appends_waits_for_the_head(lab: Lab) -> None:
    """And sees, once it is free, what was committed meanwhile."""
    with closing(other(lab, "writer")) as db:
        db.execute("SET lock_timeout = '50ms'")
        with Transaction(lab.db, durable=False):
            with pytest.raises(errors()) as refused, Transaction(db, durable=False):
                pass
            assert fault(refused.value) == "busy"
            assert not db.in_transaction
        lab.create()
        with Transaction(db, durable=False):
            assert ledger.head(db) == lab.head()


def test_what_is_read_in_one_go_is_one_state(lab: Lab) -> None:
    lab.create()
    with closing(other(lab, "reader")) as db:
        with db:
            before = ledger.last_seq(db)
            with db:
                lab.create()
            assert ledger.last_seq(db) == before
        assert ledger.last_seq(db) > before
        with pytest.raises(ValueError), db:
            raise ValueError
        assert not db.in_transaction


def _terminate(lab: Lab, db: Connection) -> None:
    lab.db.execute("SELECT 1")
    pid = db.execute("SELECT pg_backend_pid()").get
    as_superuser(lab, f"SELECT pg_terminate_backend({pid}, 5000)")
    db.execute("SELECT 1")


def _fill(lab: Lab, db: Connection) -> None:
    db.execute("DO $$ BEGIN RAISE SQLSTATE '53100'; END $$")


FAULTS: dict[str, Callable[[Lab, Connection], object]] = {
    "unreachable": _terminate,
    "full": _fill,
    "read-only": lambda lab, db: db.execute(
        "BEGIN READ ONLY; INSERT INTO thought_words (word) VALUES ('x')"
    ),
    "not allowed": lambda lab, db: db.execute("DELETE FROM tasks"),
    "busy": lambda lab, db: db.execute("SET statement_timeout = 10; SELECT pg_sleep(5)"),
    "damaged": lambda lab, db: db.execute("SELECT 1 FROM there_is_none"),
}


@pytest.mark.parametrize("kind", FAULTS)
def test_errors_say_what_is_wrong_with_the_database(lab: Lab, kind: str) -> None:
    with closing(other(lab, "writer")) as db:
        with pytest.raises(errors()) as problem:
            FAULTS[kind](lab, db)
        assert fault(problem.value) == kind
        assert not breaks_constraint(problem.value)


def test_a_server_that_is_not_there_is_unreachable(tmp_path: Path) -> None:
    with pytest.raises(errors()) as problem:
        connect(f"host={tmp_path} user=nobody dbname=none")
    assert fault(problem.value) == "unreachable"


def test_a_mistake_of_the_caller_is_no_fault_and_neither_is_a_rule(lab: Lab) -> None:
    with pytest.raises(errors()) as mistake:
        lab.db.execute("SELEC 1")
    with pytest.raises(errors()) as rule:
        lab.db.execute("INSERT INTO meta (key, value) VALUES ('verified', NULL)")
    assert fault(mistake.value) is None and not breaks_constraint(mistake.value)
    assert fault(rule.value) is None and breaks_constraint(rule.value)
    assert fault(ValueError()) is None
    assert fault(psycopg.errors.lookup("25P04")()) == "unreachable"  # from PostgreSQL 17 on


def test_after_the_connection_broke_a_savepoint_has_nothing_to_roll_back(lab: Lab) -> None:
    with closing(other(lab, "writer")) as db:
        with pytest.raises(errors()) as problem, Transaction(db, durable=True), Savepoint(db):
            _terminate(lab, db)
        assert (fault(problem.value), db.in_transaction) == ("unreachable", False)


def library(lab: Lab) -> list[int]:
    """The seqs of a batch of thoughts, so that the index has them."""
    lab.start()
    texts = [f"alpha beta gamma{n}" for n in range(15)] + ["beta " + "w" * 3_000]
    return [lab.think(content=text).seq for text in texts]


def test_thoughts_are_found_by_phrases_in_a_row(lab: Lab) -> None:
    seqs, index = library(lab), lab.db.engine.thought_index
    assert index.last(lab.db) == seqs[-1]
    assert index.count(lab.db, ["alpha beta", "none"], 9) == 9
    assert index.count(lab.db, ["beta alpha"], 9) == 0
    newest = index.newest([["beta"], ["gamma3", "gamma5"]], 9)
    assert lab.db.execute(*newest).get == [seqs[5], seqs[3]]
    assert lab.db.execute(*index.having(["gamma7"])).fetchall() == [(seqs[7],)]
    assert index.beginning(lab.db, "gamma1", 3) == ["gamma1", "gamma10", "gamma11"]
    assert index.beginning(lab.db, "zebra", 3) == []


def test_the_index_forgets_an_erased_thought_and_damage_to_it_is_named(lab: Lab) -> None:
    seqs = library(lab)
    lab.erase_everywhere(seqs[3])
    words = [word for (word,) in lab.db.execute("SELECT word FROM thought_words ORDER BY word")]
    assert words == sorted(["alpha", "beta", *(f"gamma{n}" for n in range(15) if n != 3)])
    assert trail.find(lab.db, trail.Filter(), search="gamma3", limit=9, offset=0) == ([], 0)
    assert lab.verify().valid
    lab.tamper("DELETE FROM thought_search WHERE seq = ?", (seqs[5],))
    lab.tamper("INSERT INTO thought_search (seq, words) VALUES (1, '')")
    missing = "only one of the ledger and the search index has it"
    found = [one.detail for one in lab.verify().breaks]
    assert found[:-1] == [f"R-{seq}: {missing}" for seq in (seqs[5], 1)]  # and a word


def test_no_task_has_the_character_that_postgresql_cannot_hold(lab: Lab) -> None:
    lab.create("a b")
    found = [
        tasks.find(lab.db, tasks.Filter(), search=words, limit=9, offset=0)[1]
        for words in (*("a", "a\0", "\0"),)
    ]
    assert found == [1, 0, 0]


def test_what_verification_asks_of_the_schema_is_answered(lab: Lab) -> None:
    """Of indexes it says nothing: that is for the server's own amcheck."""
    assert lab.db.engine.foreign(lab.db) == []
    assert [*lab.db.engine.damaged(lab.db, pause=no_pause)] == []


def _whole_story(lab: Lab) -> list[bytes]:
    """What every engine has to make of the same calls: the log, its bundle, answers, a verdict."""
    story(lab)
    lab.start("S-9", agent="ada")
    for number in range(40):
        task = lab.create(title=f"Task {number} äöü", project="p" if number % 3 else None)
        lab.think("S-9", f"src/app.py{number} was décidé for T-{number:04d}", task=task.task_id)
    lab.move("T-0005", *TO_VERIFY, session="S-9")
    lab.deed(command="make test", exit=2, use="u1")
    lab.seal("S-9")
    lab.erase(lab.seqs("thought", session="S-9")[3])
    found = [
        trail.find(lab.db, trail.Filter(), search=words, limit=9, offset=0, order="best")
        for words in ("app.py7", "decide T-0012", "nothing of that", "was")
    ]
    listed = tasks.find(lab.db, tasks.Filter(project="p"), search="task 3", limit=9, offset=2)
    free = [task.task_id for task in claims.free(lab.db, tasks.Filter(), limit=9)]
    answers = repr(([[one.seq for one in page] for page, _ in found], listed, free))
    contents = (bundle.whole_log(lab.db), bundle.of_session(lab.db, "S-9"))
    lines = [line for one in contents for line in bundle.write(lab.db, one)]
    return [*lines, answers.encode(), repr(lab.verify()).encode()]


def test_the_same_calls_make_the_same_bytes_on_both_engines(lab: Lab) -> None:
    with engines.use("sqlite"):
        on_sqlite = _whole_story(in_memory())
    assert _whole_story(lab) == on_sqlite
    assert ledger.log_id(lab.db) == LOG
