"""core/rows.py: the proof that rows are intact never holds for rows that are not."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from colibri.core import ledger
from colibri.core.ledger import Entry
from colibri.core.rows import Row, are_intact
from tests.support.ledger_writer import LOG, Lab, in_memory, rows_of

NAMES = st.none() | st.text(st.characters(exclude_categories=["Cs"]))
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
GENESIS = Entry(0, ledger.genesis(LOG))


def put(row: Row, name: str, value: object) -> Row:
    return row._replace(**{name: value})  # type: ignore[arg-type]


def made(rows: list[Row]) -> list[Row]:
    """The same rows, made sound from the first on by the functions that write records."""
    link = GENESIS
    result: list[Row] = []
    for row in rows:
        assert row.nonce is not None
        assert row.body is not None
        payload = ledger.commitment(row.nonce, row.body)
        sound = row._replace(seq=link.seq + 1, payload=payload, prev=link.leaf)
        link = Entry(sound.seq, ledger.leaf(sound.header(LOG)))
        result.append(sound._replace(leaf=link.leaf))
    return result


def every_kind() -> Lab:
    """A record of each of the eight kinds, with and without names."""
    lab = in_memory()
    task = lab.create("für später").task_id
    lab.start("S-1", task=task)
    lab.think("S-1", 'so "be" it\n', agent="ada")
    lab.seal("S-1")
    lab.forge("erasure", {"seqs": [1], "reason": "asked for"})
    return lab


SMALL = rows_of(every_kind())


def test_the_rows_of_an_honest_log_are_intact_as_a_whole_and_in_parts() -> None:
    assert {row.kind for row in SMALL} == set(ledger.KINDS)
    assert are_intact(SMALL, LOG, GENESIS)
    for before, row in pairwise(SMALL):
        assert are_intact([row], LOG, Entry(before.seq, before.leaf))


def test_rows_of_another_place_or_log_are_not_intact() -> None:
    """Design §9: linked to the record before, and naming their log."""
    rest = SMALL[3:]
    assert are_intact(rest, LOG, Entry(3, SMALL[2].leaf))
    assert not are_intact(rest, LOG, Entry(3, SMALL[1].leaf))
    assert not are_intact(rest, LOG, Entry(2, SMALL[2].leaf))
    assert not are_intact(rest, "colibri/" + "f" * 32, Entry(3, SMALL[2].leaf))
    assert not are_intact(SMALL[1:], LOG, GENESIS)
    assert not are_intact([*SMALL[:2], *SMALL[3:]], LOG, GENESIS)
    assert not are_intact([SMALL[0], *SMALL], LOG, GENESIS)


def test_linked_records_whose_numbers_have_a_gap_are_not_intact() -> None:
    """Design §9: seq without gaps, whatever else is sound."""
    first, second = made(SMALL[:2])
    jumped = second._replace(seq=3)
    jumped = jumped._replace(leaf=ledger.leaf(jumped.header(LOG)))
    assert are_intact([first, second], LOG, GENESIS)
    assert not are_intact([first, jumped], LOG, GENESIS)


def test_a_kind_that_is_none_is_not_intact() -> None:
    rows = made([SMALL[0]._replace(kind="call.begin")])
    assert not are_intact(rows, LOG, GENESIS)


@pytest.mark.parametrize("column", ["payload", "leaf", "prev", "nonce", "body"])
def test_no_flip_of_a_byte_passes(column: str) -> None:
    """Every byte of every row."""
    for at, row in enumerate(SMALL):
        stored = getattr(row, column)
        for place in range(len(stored)):
            flipped = bytearray(stored)
            flipped[place] ^= 1 << place % 8
            rows = [*SMALL[:at], put(row, column, bytes(flipped)), *SMALL[at + 1 :]]
            assert not are_intact(rows, LOG, GENESIS), (row.seq, place)


TYPES: tuple[Any, ...] = (None, 0, 1, 2.0, "", "x", b"", b"x", "null", '"')


@pytest.mark.parametrize("column", Row._fields)
def test_no_other_value_of_a_column_passes(column: str) -> None:
    """Of any type: someone may have rebuilt the table."""
    for at, row in enumerate(SMALL):
        old = getattr(row, column)
        values = [value for value in TYPES if value != old]
        if isinstance(old, str):
            values += [old.encode(), old + " ", old[:-1], f'{old}","x":"']
        if isinstance(old, int):
            values += [float(old), float(old) + 0.5, str(old), old + 1, -old]
        for value in values:
            rows = [*SMALL[:at], put(row, column, value), *SMALL[at + 1 :]]
            assert not are_intact(rows, LOG, GENESIS), (row.seq, value)


def test_a_number_is_no_text_even_if_the_header_has_the_same_number() -> None:
    """Columns are text or null, and so is what a header says."""
    row = SMALL[0]
    for name in ("session", "task", "agent", "at", "call"):
        text = made([put(row, name, "5")])[0]
        header = text.header(LOG).replace(b'"5"', b"5")
        for forged in (text, text._replace(leaf=ledger.leaf(header))):
            assert not are_intact([put(forged, name, 5)], LOG, GENESIS)


@given(
    st.lists(st.tuples(TEXTS, TEXTS, NAMES, NAMES, NAMES, st.binary()), min_size=1, max_size=4),
    st.integers(0, 3),
    st.sampled_from(("at", "call", "session", "task", "agent")),
    NAMES,
)
def test_any_text_passes_where_it_was_written_and_nowhere_else(
    records: list[tuple[str, str, str | None, str | None, str | None, bytes]],
    at: int,
    column: str,
    other: str | None,
) -> None:
    """Against the functions that write records: quotes, escapes, any language."""
    blank = SMALL[0]
    rows = made(
        [
            blank._replace(at=at, call=call, session=session, task=task, agent=agent, body=body)
            for at, call, session, task, agent, body in records
        ]
    )
    assert are_intact(rows, LOG, GENESIS)
    at %= len(rows)
    changed = put(rows[at], column, other)
    assert are_intact([*rows[:at], changed, *rows[at + 1 :]], LOG, GENESIS) is (changed == rows[at])
