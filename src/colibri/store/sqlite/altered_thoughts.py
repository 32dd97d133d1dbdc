"""Finds rows of thoughts that do not match the records or one another."""

from collections.abc import Iterator

from colibri.store.connection import Connection
from colibri.store.trail import thought_id


def altered(db: Connection, *, after: int | None = None) -> Iterator[str]:
    """Differences of `thoughts`, after a seq, and of `thought_counts` from the records."""
    yield from altered_rows(db, after=after)
    for (seq,) in db.execute(_WRONGLY_INDEXED):
        yield f"{thought_id(seq)}: only one of the ledger and the search index has it"
    if db.execute(_WRONG_COUNTS).get:
        yield "the totals in thought_counts are not those of the rows"


def altered_rows(
    db: Connection, *, session: str | None = None, after: int | None = None
) -> Iterator[str]:
    """Differences of `thoughts` from the records: of one session, after a seq, or all."""
    rows = records = ""
    values: tuple[str | int, ...] = ()
    if session is not None:
        rows, records, values = " AND t.session = ?1", " AND session = ?1", (session,)
    elif after is not None:
        rows, records, values = " AND t.seq > ?1", " AND seq > ?1", (after,)
    for (seq,) in db.execute(_WRONG_ROWS.format(rows=rows, records=records), values):
        yield f"{thought_id(seq)}: its row in thoughts is missing or not as its record says"


# An erased record has no type and no index, but its position among the others is known.
_WRONG_ROWS = """
    SELECT t.seq FROM thoughts AS t
    LEFT JOIN ledger AS l ON l.seq = t.seq
    WHERE true{rows} AND (
        l.kind IS NOT 'thought' OR t.session IS NOT l.session OR t.task IS NOT l.task
        OR CASE
            WHEN l.body IS NULL THEN t.idx IS NOT (
                SELECT count(*) FROM thoughts AS o WHERE o.session = t.session AND o.seq < t.seq)
            WHEN json_valid(CAST(l.body AS TEXT)) THEN
                t.idx IS NOT CAST(l.body AS TEXT) ->> '$.index'
                OR t.type IS NOT CAST(l.body AS TEXT) ->> '$.type'
        END)
    UNION ALL
    SELECT seq FROM ledger
    WHERE kind = 'thought'{records} AND seq NOT IN (SELECT seq FROM thoughts)
"""
# Thoughts enter the index in order, a batch at a time; an erased one may have been removed.
_WRONGLY_INDEXED = """
    SELECT seq FROM thoughts
    WHERE seq < (SELECT max(rowid) FROM thought_search)
        AND seq NOT IN (SELECT rowid FROM thought_search)
        AND (SELECT body FROM ledger WHERE ledger.seq = thoughts.seq) IS NOT NULL
    UNION ALL
    SELECT rowid FROM thought_search WHERE rowid NOT IN (SELECT seq FROM thoughts)
"""
_WRONG_COUNTS = """
    SELECT 1 FROM (SELECT type, count(*) AS n FROM thoughts GROUP BY type) AS right
    FULL JOIN (SELECT type, n FROM thought_counts WHERE n > 0) AS stored ON stored.type = right.type
    WHERE stored.n IS NOT right.n LIMIT 1
"""
