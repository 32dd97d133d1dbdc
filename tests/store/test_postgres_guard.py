"""The database itself refuses a record that is not hashed as docs/formats.md says, or out of place.

What it computes must be what core/ledger.py computes, for every text that there can be.
"""

import random
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from colibri.core import ledger as record
from colibri.core.rows import Row
from colibri.store.postgres import SCHEMA
from tests.support.postgres import LOG, empty_schema, errors, psycopg, roles, server
from tests.support.postgres_rows import AT, CALL, insert, row

Connection = psycopg.Connection[Any]

APPEND = (
    "INSERT INTO ledger (at, kind, call, session, task, agent, nonce, body)"
    " VALUES (%s, %s, %s, %s, %s, %s, %s, %s) RETURNING seq, leaf"
)

CONTROLS = [chr(code) for code in (*range(1, 0x20), *range(0x7F, 0xA0))]
HARD = [
    *CONTROLS,
    *(
        '"',
        "\\",
        "/",
        "\\\\",
        '\\"',
        "\\n",
        "\\u0000",
        "\\u0001",
        "</script>",
        "'",
        "''",
        "$$",
        "%s",
    ),
    *("\u2028", "\u2029", "\ufeff", "\ufffd", "\uffff", "\ufffe", "\ud7ff", "\ue000"),
    *(
        "\U00010000",
        "\U0001f426",
        "\U0010ffff",
        "e\u0301",
        "\u00e9",
        "\u202e",
        "",
        " ",
        "null",
        "x" * 9_000,
    ),
    "".join(CONTROLS),
]


@pytest.fixture
def name() -> str:
    return empty_schema()


@pytest.fixture
def writer(name: str) -> Iterator[Connection]:
    with server().connect(roles.names(name).writer) as db:
        yield db


def some_text(luck: random.Random) -> str:
    codes = (luck.choice((0x80, 0x800, 0xD800, 0x110000)) for _ in range(luck.randrange(40)))
    found = (chr(luck.randrange(1, most)) for most in codes)
    return "".join(one for one in found if unicodedata.category(one) != "Cs")


def test_both_hash_a_header_alike(writer: Connection) -> None:
    """Every control character, what JSON escapes, and what it might: in each place of a header."""
    luck = random.Random(19)
    texts = HARD + [some_text(luck) for _ in range(2_000)]
    hashes = [luck.randbytes(32) for _ in texts]
    seqs = [luck.choice((1, 9, 10, 2**31, 2**53 - 1)) for _ in texts]
    rows = writer.execute(
        "SELECT record_leaf(t, s, t, t, t, t, t, t, h, h), record_leaf(t, s, t, t, t, NULL, NULL,"
        " NULL, h, h), genesis(t)"
        " FROM unnest(%s::text[], %s::bigint[], %s::bytea[]) AS hard (t, s, h)",
        (texts, seqs, hashes),
    ).fetchall()
    for text, seq, hash_, found in zip(texts, seqs, hashes, rows, strict=True):
        whole = record.header(text, seq, text, text, text, text, text, text, hash_, hash_)
        without = record.header(text, seq, text, text, text, None, None, None, hash_, hash_)
        made = (record.leaf(whole), record.leaf(without), record.genesis(text))
        assert found == made, ascii(text)


def test_records_with_hard_texts_are_taken(writer: Connection) -> None:
    rows: list[Row] = []
    for text in HARD:
        last = rows[-1] if rows else None
        rows.append(row(last, body=text.encode(), agent=text, session=text, task=text))
    insert(writer, *rows[:1])
    insert(writer, *rows[1:])
    kept = writer.execute("SELECT * FROM ledger ORDER BY seq").fetchall()
    assert [Row._make(one) for one in kept] == rows


def test_a_text_with_the_character_0_cannot_be_stored(writer: Connection) -> None:
    with pytest.raises(psycopg.DataError, match="NUL"):
        insert(writer, row(agent="a\0b"))


def forged(good: Row) -> dict[str, Row]:
    """What differs from a good record in one thing, and says nothing of it."""
    other = bytes(32)
    return {
        "seq": good._replace(seq=good.seq + 1),
        "at": good._replace(at="2026-01-02T03:04:05.000007Z"),
        "kind": good._replace(kind="thought"),
        "call": good._replace(call=CALL.replace("0", "1")),
        "session": good._replace(session="S-0"),
        "task": good._replace(task=None),
        "agent": good._replace(agent="mallory"),
        "payload": good._replace(payload=other),
        "nonce": good._replace(nonce=other),
        "body": good._replace(body=b"[]"),
        "leaf": good._replace(leaf=other),
        "prev": good._replace(prev=other),
    }


@pytest.mark.parametrize("at_once", [False, True], ids=["alone", "among good ones"])
def test_a_forged_record_is_refused(writer: Connection, at_once: bool) -> None:
    first = row()
    insert(writer, first)
    second = row(first, agent="ann", task="T-0001")
    third = row(second, agent="ann", task="T-0001")
    for what, bad in forged(third if at_once else second).items():
        try:
            insert(writer, *([second, bad] if at_once else [bad]))
        except errors.IntegrityError:
            continue
        pytest.fail(f"another {what} was taken")
    insert(writer, second, third)


@pytest.mark.parametrize("missing", [*range(3), 6, 7, slice(6, 8)])
def test_only_number_and_hashes_are_filled_in(writer: Connection, missing: Any) -> None:
    values: list[object] = [AT, "call.enter", CALL, None, None, None, bytes(32), b"{}"]
    values[missing] = [None, None] if isinstance(missing, slice) else None
    with pytest.raises(errors.IntegrityError):
        writer.execute(APPEND, values)


def rehashed(good: Row, **said: Any) -> Row:
    """A record with another place, hashed as if that were its own."""
    changed = good._replace(**said)
    leaf = record.leaf(record.header(LOG, *changed[:8], changed.prev))
    return changed._replace(leaf=leaf)


def test_a_record_with_its_own_hash_in_the_wrong_place_is_refused(writer: Connection) -> None:
    first = row()
    second, third = row(first), row(row(first))
    insert(writer, first, second)
    for bad in (
        rehashed(third, prev=first.leaf),  # a fork
        rehashed(third, prev=bytes(32)),
        rehashed(third, seq=4),  # a gap
        rehashed(third, seq=1, prev=record.genesis(LOG)),  # a second beginning
        rehashed(third, seq=2, prev=first.leaf),
        rehashed(third, seq=0),
        rehashed(third, kind="nonsense"),
    ):
        with pytest.raises(errors.IntegrityError):
            insert(writer, bad)
    insert(writer, third)


def test_the_log_begins_with_its_own_name(writer: Connection) -> None:
    with pytest.raises(errors.IntegrityError, match="follows the newest"):
        insert(writer, row(log="colibri/another"))


def test_a_hole_that_a_superuser_made_is_not_filled(name: str, writer: Connection) -> None:
    first = row()
    second = row(first)
    insert(writer, first, second, row(second))
    with server().connect() as admin:
        admin.execute(
            f"SET session_replication_role = replica; DELETE FROM {name}.ledger WHERE seq = 2"
        )
    with pytest.raises(errors.IntegrityError, match="follows the newest"):
        insert(writer, second)


def test_a_statement_without_rows_is_nothing(writer: Connection) -> None:
    writer.execute("INSERT INTO ledger SELECT * FROM ledger")


def test_the_database_appends_as_the_server_does(writer: Connection) -> None:
    """A record without a number is put at the end; its bytes are those of core/ledger.py."""
    rows: list[Row] = []
    for text in HARD:
        wanted = row(rows[-1] if rows else None, body=text.encode(), agent=text, task=text or None)
        values = (*wanted[1:7], wanted.nonce, wanted.body)
        found = writer.execute(APPEND, values).fetchone()
        assert found == (wanted.seq, wanted.leaf)
        rows.append(wanted)
    kept = writer.execute("SELECT * FROM ledger ORDER BY seq").fetchall()
    assert [Row._make(one) for one in kept] == rows


def test_two_who_append_wait_for_each_other(name: str, writer: Connection) -> None:
    """The head is read after the lock: the second sees what the first has committed."""
    values = (AT, "call.enter", CALL, None, None, None, bytes(32), b"{}")

    def added(by: Connection) -> object:
        with by.transaction():
            by.execute("SELECT lock_head(%s)", (SCHEMA,))
            ((seq, _),) = by.execute(APPEND, values).fetchall()
            return seq

    with server().connect(roles.names(name).writer) as other:
        other.execute("SET lock_timeout = '100ms'")
        with writer.transaction():
            assert added(writer) == 1
            with pytest.raises(errors.LockNotAvailable):
                added(other)
        assert added(other) == 2


def test_the_last_sign_of_life_is_found_however_many_records_a_session_has(
    writer: Connection,
) -> None:
    """PostgreSQL knows nothing about the table yet, and would read and sort all of them."""
    last = None
    for number in range(600):
        kind = "call.exit" if number % 3 == 2 else "call.enter"
        last = row(last, kind=kind, session="S-1", body=b'{"outcome":"ok"}')
        insert(writer, last)
    assert last is not None
    find = "SELECT seq, at FROM last_sign('S-1')"
    assert writer.execute(find).fetchone() == (last.seq, last.at)
    ((plan,),) = writer.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {find}").fetchall()
    assert plan[0]["Plan"]["Shared Hit Blocks"] < 12


def test_a_value_that_no_task_has_is_refused(writer: Connection) -> None:
    insert(writer, row())
    writer.execute(
        "INSERT INTO tasks (number, title, priority, status, attempt, version, created_at,"
        " updated_at, attempt_seq, open_dependencies)"
        " VALUES (1, 'x', 'low', 'INIT', 1, 1, '', '', 1, 0)"
    )
    for change in (
        "number = 0",
        "priority = 'urgent'",
        "status = 'init'",
        "attempt = 0",
        "version = 0",
        "open_dependencies = -1",
    ):
        with pytest.raises(errors.CheckViolation):
            writer.execute(f"UPDATE tasks SET {change}".encode())
    writer.execute("UPDATE tasks SET version = 2, priority = 'critical', status = 'CANCELLED'")


def trips(db: Connection, into: Path, work: Callable[[], object]) -> int:
    """How often a client waits for an answer before it can go on."""
    with into.open("w+") as trace:
        db.pgconn.trace(trace.fileno())
        db.pgconn.set_trace_flags(psycopg.pq.Trace.SUPPRESS_TIMESTAMPS)
        work()
        db.pgconn.untrace()
        trace.seek(0)
        sides = "".join(line[0] for line in trace)
    return sides.count("FB")


def test_a_record_is_appended_and_committed_in_one_trip(writer: Connection, tmp_path: Path) -> None:
    """With a number of its own it takes two: one to learn what the head is."""
    good = row()

    def by_the_database() -> None:
        values = (*good[1:7], good.nonce, good.body)
        with writer.pipeline():
            writer.execute("BEGIN")
            writer.execute(APPEND, values)
            writer.execute("COMMIT")

    def by_the_server() -> None:
        head = "SELECT seq, leaf, prev FROM ledger ORDER BY seq DESC LIMIT 1"
        with writer.pipeline():
            writer.execute("BEGIN")
            writer.execute("SELECT lock_head(%s)", (SCHEMA,))
            writer.execute(head).fetchone()
            insert(writer, row(good))
            writer.execute("COMMIT")

    assert trips(writer, tmp_path / "trace", by_the_database) == 1
    assert trips(writer, tmp_path / "trace", by_the_server) == 2
    assert writer.execute("SELECT max(seq) FROM ledger").fetchone() == (2,)
