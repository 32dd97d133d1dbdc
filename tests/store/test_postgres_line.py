"""Statements that leave together and are answered together."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from colibri.store.postgres import faults, line
from colibri.store.postgres.connection import MOST_PREPARED, PART
from colibri.store.postgres.pipelined import Pipelined
from colibri.store.savepoint import Savepoint
from tests.support.postgres import psycopg, server


@pytest.fixture
def db() -> Iterator[Pipelined]:
    with closing(Pipelined(server().connect())) as made:
        yield made


def prepared(db: Pipelined) -> int:
    count: int = db.execute("SELECT count(*) FROM pg_prepared_statements").get
    return count


def test_a_connection_keeps_only_so_many_prepared_statements(db: Pipelined) -> None:
    """One that was forgotten is prepared again."""
    for _ in range(2):
        for number in range(MOST_PREPARED + 10):
            assert db.execute(f"SELECT {number}").get == number
    assert prepared(db) <= MOST_PREPARED


def test_a_value_of_another_type_is_another_statement(db: Pipelined) -> None:
    """`null` has none of its own."""
    for value in ("text", None, "again"):
        assert db.execute("SELECT coalesce(?, 'none')", (value,)).get == (value or "none")
    before = prepared(db)
    db.execute("SELECT coalesce(?, 'none')", ("once more",))
    assert prepared(db) == before


def test_many_and_long_rows_come_in_parts_and_while_others_are_asked(db: Pipelined) -> None:
    rows = db.each("SELECT n, repeat('x', 1000) FROM generate_series(1, ?) AS n", (3 * PART + 1,))
    assert next(rows)[0] == 1
    assert db.execute("SELECT 'meanwhile'").get == "meanwhile"
    assert [number for number, _ in rows] == [*range(2, 3 * PART + 2)]


def test_a_flight_may_be_longer_than_every_buffer(db: Pipelined) -> None:
    """Neither side waits for the other to read."""
    with db:
        sent = [db.send("SELECT ?", ("x" * 100_000,)) for _ in range(100)]
        assert {len(value) for one in sent for (value,) in db.receive(one)} == {100_000}


def test_the_first_error_of_a_flight_is_the_one_that_is_raised(db: Pipelined) -> None:
    db.execute("BEGIN")
    db.send("SELECT 1 / 0")
    db.send("SELECT nothing")
    with pytest.raises(psycopg.errors.DivisionByZero):
        db.execute("SELECT 1")
    with pytest.raises(psycopg.errors.InFailedSqlTransaction):
        db.execute("SELECT 2")


def test_what_an_error_kept_from_being_prepared_is_prepared_again(db: Pipelined) -> None:
    """After a savepoint the connection goes on, and so does one of a reader."""
    db.execute("BEGIN")
    with pytest.raises(psycopg.errors.DivisionByZero), Savepoint(db):
        db.send("SELECT 1 / 0")
        db.execute("SELECT 'new'")
    for number in range(3):
        assert db.execute(f"SELECT {number}").get == number
    assert db.execute("SELECT 'new'").get == "new"


def test_a_connection_that_was_ended_is_noticed_before_anything_is_sent(db: Pipelined) -> None:
    db.line.require()
    pid = db.execute("SELECT pg_backend_pid()").get
    with server().connect() as admin:
        admin.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,))
    with pytest.raises(psycopg.OperationalError):
        db.line.require()
    assert db.is_broken


def test_a_server_that_stays_silent_is_given_up(
    db: Pipelined, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its kernel still answers, so neither side would ever end the connection."""
    monkeypatch.setattr(line, "SILENCE", 0.2)
    db.execute("SELECT pg_sleep(0.05)")
    with pytest.raises(psycopg.OperationalError, match="said nothing for") as problem:
        db.execute("SELECT pg_sleep(5)")
    assert faults.fault(problem.value) == "unreachable"
    assert db.is_broken
