"""Finds rows of thoughts that do not match the records or one another."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from colibri.core.ledger import load
from colibri.core.rows import Row
from colibri.store import ledger
from colibri.store.connection import Connection
from colibri.store.trail import thought_id

# Of an erased record neither type nor index is left, but its position among the others.
_PLACE = """
    CASE WHEN (SELECT body FROM ledger AS l WHERE l.seq = t.seq) IS NULL THEN (
        SELECT count(*) FROM thoughts AS b WHERE b.session = t.session AND b.seq < t.seq) END
"""
_COLUMNS = ("seq", "session", "idx", "task", "type", _PLACE)
_TEXTS = ("session", "task", "type")
_START = -(2**63)  # a row may have any number
_PART = 1_000  # rows that are compared at once


def altered(db: Connection, *, after: int | None = None) -> Iterator[str]:
    """Differences of `thoughts`, after a seq, and of `thought_counts` from the records."""
    yield from altered_rows(db, after=after)
    for seq in db.engine.thought_index.altered(db):
        yield f"{thought_id(seq)}: only one of the ledger and the search index has it"
    if db.engine.thought_index.has_other_words(db):
        yield "the list of words in the search index is not that of its thoughts"
    if db.execute(_WRONG_COUNTS).fetchone():
        yield "the totals in thought_counts are not those of the rows"


def ask(db: Connection, *, after: int | None) -> None:
    """Look ahead to what `altered` reads."""
    index, all_of_them = db.engine.thought_index, ("true", (), after)
    db.look_ahead(
        (
            lambda: next(_wrong(db, *all_of_them), None),
            lambda: next(_missing(db, *all_of_them), None),
            lambda: next(index.altered(db), None),
            partial(index.has_other_words, db),
            lambda: db.execute(_WRONG_COUNTS),
        )
    )


def ask_session(db: Connection, session: str) -> None:
    """Look ahead to what `altered_rows` reads of a session."""
    of = ("t.session = ?", (session,), None)
    db.look_ahead((lambda: next(_wrong(db, *of), None), lambda: next(_missing(db, *of), None)))


def altered_rows(
    db: Connection, *, session: str | None = None, after: int | None = None
) -> Iterator[str]:
    """Differences of `thoughts` from the records: of one session, after a seq, or all."""
    condition, values = ("true", ()) if session is None else ("t.session = ?", (session,))
    for seq in (*_wrong(db, condition, values, after), *_missing(db, condition, values, after)):
        yield f"{thought_id(seq)}: its row in thoughts is missing or not as its record says"


def _wrong(
    db: Connection, condition: str, values: tuple[str, ...], after: int | None
) -> Iterator[int]:
    query = f"FROM thoughts AS t WHERE {condition} AND seq > ? ORDER BY seq LIMIT ?"

    def page(last: int) -> list[Any]:
        return [*db.engine.rows(db, _COLUMNS, query, (*values, last, _PART), texts=_TEXTS)]

    last = _START if after is None else after
    while rows := page(last):
        seqs = [row[0] for row in rows]
        last = seqs[-1]
        db.look_ahead((lambda: [*ledger.rows(db, seqs)], partial(page, last)))  # noqa: B023 - at once
        records = {row.seq: row for row in ledger.rows(db, seqs)}
        for row in rows:
            if not _is_right(row, records.get(row[0])):
                yield row[0]


def _is_right(row: tuple[Any, ...], record: Row | None) -> bool:
    _, session, idx, task, type, place = row
    if record is None or (record.kind, record.session, record.task) != ("thought", session, task):
        return False
    if record.body is None:
        return bool(idx == place)
    said = load(record.body)
    return (said["index"], said["type"]) == (idx, type)


def _missing(
    db: Connection, condition: str, values: tuple[str, ...], after: int | None
) -> Iterator[int]:
    query = f"""
        SELECT seq FROM ledger AS t WHERE {condition} AND kind = 'thought' AND seq > ?
        AND NOT EXISTS (SELECT 1 FROM thoughts WHERE thoughts.seq = t.seq) ORDER BY seq
    """
    for (seq,) in db.execute(query, (*values, _START if after is None else after)):
        yield seq


_COUNTED = "SELECT type, count(*) AS n FROM thoughts GROUP BY type"
_STORED = "SELECT type, n FROM thought_counts WHERE n <> 0"
_WRONG_COUNTS = f"""
    SELECT 1 FROM ({_COUNTED}) AS counted
    FULL JOIN ({_STORED}) AS stored ON stored.type = counted.type
    WHERE stored.n IS DISTINCT FROM counted.n LIMIT 1
"""
