"""What goes wrong around a commit: a refused call has changed nothing, any other is in the log."""

import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any
from uuid import uuid4

import pytest

from colibri.store import ledger
from colibri.store.postgres import opened
from colibri.store.postgres.faults import OutcomeUnknown
from tests.support.postgres import Home, fresh_schema, server


@pytest.fixture
def writer() -> Iterator[opened.Opened]:
    schema = fresh_schema()
    home = Home(server().url(f"{schema}_writer"), "test", schema)
    clock: Any = {"monotonic": time.monotonic, "sleep": time.sleep}
    with closing(home.open_writer(timeout=5, stamp="", new_log=str, **clock)) as made:
        yield made


def append(writer: opened.Opened, *, far: bool = False, records: int = 1, **more: Any) -> list[Any]:
    """Some records, in one transaction."""
    payload: Any = {"seqs": [1], "reason": None}
    with writer.transaction(durable=True, far=far, **more):
        chain = writer.chain(writer.log, lambda _: bytes(32), far=far)
        made = [
            chain.append("erasure", payload, at=writer.utc(), call=str(uuid4()))
            for _ in range(records)
        ]
    chain.mark()
    return made


def test_a_commit_whose_flush_failed_is_flushed_over_another_connection(
    writer: opened.Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    reconnect = writer.reconnect

    def repair() -> None:
        monkeypatch.undo()
        reconnect()

    monkeypatch.setattr(opened, "_FLUSH", "SELECT 1 / 0")
    monkeypatch.setattr(writer, "reconnect", repair)
    (made,) = append(writer)
    assert ledger.head(writer.db) == made
    assert writer.connections == 1


def test_a_commit_whose_flush_fails_for_good_is_unknown(
    writer: opened.Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opened, "_FLUSH", "SELECT 1 / 0")
    with pytest.raises(OutcomeUnknown):
        append(writer)


def test_what_fails_in_the_next_transaction_does_not_hide_the_commit(
    writer: opened.Opened,
) -> None:
    """Another server may hold the lock for too long."""

    def ahead() -> list[Any]:
        return [lambda: writer.db.execute("SELECT 1 / 0")]

    (made,) = append(writer, far=True, ahead=ahead)
    assert (writer.begun, made.seq) == (False, 1)
    (after,) = append(writer)
    assert after.seq == 2


def test_what_could_not_be_sent_is_not_committed_by_the_next_transaction(
    writer: opened.Opened,
) -> None:
    word = "INSERT INTO thought_words (word) VALUES (?)"
    with pytest.raises(UnicodeEncodeError), writer.transaction(durable=True):
        writer.db.execute(word, ("sent",))
        writer.db.execute("SELECT 1")
        writer.db.execute(word, ("\ud800",))
    append(writer)
    assert writer.db.execute("SELECT count(*) FROM thought_words").get == 0


def test_all_records_have_arrived_when_the_newest_is_known(writer: opened.Opened) -> None:
    """Another thread may ask for one while the connection answers something else."""
    made = append(writer, far=True, records=3)
    assert [one._entry is not None for one in made] == [True] * 3


def test_a_clock_that_stood_still_puts_no_record_into_the_past(writer: opened.Opened) -> None:
    """As that of a machine that slept: the time since the last question does not count."""
    append(writer)
    writer._monotonic = lambda: time.monotonic() - 3600
    append(writer, far=True)
    first, second = writer.db.execute("SELECT at FROM ledger ORDER BY seq").get
    assert first < second


def test_a_record_changes_the_answers_to_what_was_asked_ahead(writer: opened.Opened) -> None:
    """Such as when a session gave its last sign of life, which decides about its claims."""
    payload: Any = {"seqs": [1], "reason": None}
    with writer.transaction(durable=True):
        chain = writer.chain(writer.log, lambda _: bytes(32))
        writer.db.look_ahead([lambda: ledger.last_seq(writer.db)])
        made = chain.append("erasure", payload, at=writer.utc(), call=str(uuid4()))
        assert ledger.last_seq(writer.db) == made.seq
