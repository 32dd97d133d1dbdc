"""Records of the log, read and checked for themselves: in slices, or a range of them.

verify.py adds the rules and the rows of the tables, which a server needs only when it is asked.
"""

from collections.abc import Callable
from functools import partial

from colibri.core.check.kinds import Erasure, read_one
from colibri.core.check.log import STRETCH, LogCheck, Rules
from colibri.core.check.rows import Rows
from colibri.core.ledger import Entry
from colibri.core.report import MAX_LISTED, Break, Findings
from colibri.store import ledger
from colibri.store.connection import Connection

SLICE = 10_000  # records that are read in one transaction
AHEAD = 4  # stretches that are asked for at once, if the database is far
START = -(2**63)  # a row may have any number

Pause = Callable[[], None]


def check_range(db: Connection, first: int, last: int) -> list[Break]:
    """Check some records for themselves and the first of them against the one before it."""
    with db:
        ask_range(db, first, last)
        check = check_from(db, first, Findings())
        last = min(last, ledger.last_seq(db))
        read(db, check.take, first, last, pause=lambda: None)
        excuse(db, check, last)
        return list(check.finish(last).breaks)


def ask_range(db: Connection, first: int, last: int) -> None:
    """Look ahead to what `check_range` reads."""
    db.look_ahead((*first_of(db, first, last), partial(before, db, first)))


class Table:
    """What only damage asks of the ledger, and not more often than a report can tell."""

    def __init__(self, db: Connection) -> None:
        self._db = db
        self._asked = 0

    def has_leaf(self, leaf: bytes) -> bool:
        """Whether a record has a leaf; there is no index of them."""
        self._asked += 1
        if self._asked > MAX_LISTED:
            return False
        found = self._db.execute("SELECT 1 FROM ledger WHERE leaf = ? LIMIT 1", (leaf,))
        return found.fetchone() is not None

    def kind_at(self, seq: int) -> str | None:
        row = next(ledger.rows(self._db, [seq]), None)
        return row and row.kind


def check_from(db: Connection, first: int, found: Findings, rules: Rules | None = None) -> LogCheck:
    return LogCheck(ledger.log_id(db), Table(db), found, after=before(db, first), rules=rules)


def excuse(db: Connection, check: LogCheck, last: int) -> list[int]:
    """Show the check what was erased after the last row: it may have been read before or after.

    The records that were named.
    """
    named: list[int] = []
    for row in ledger.rows(db, erasures(db, last)):
        check.excuse(row)
        said = read_one(row)
        named += said.seqs if isinstance(said, Erasure) else ()
    return named


def read(
    db: Connection,
    take: Callable[[Rows], object],
    first: int,
    last: int,
    pause: Pause,
    on_slice: Callable[[int], None] = lambda seq: None,
    slice_size: int = SLICE,
) -> None:
    """Hand over the rows from a seq to another, in slices.

    Each has its own read transaction, and pause() runs between two of them, so that the write-ahead
    log can be checkpointed and others can be served. Within each, on_slice is told how far it is.
    """
    more = True
    while more:
        with db:  # a savepoint, which outside a transaction is a read transaction
            for done in range(0, slice_size, STRETCH):
                if done % (AHEAD * STRETCH) == 0:
                    _ask_stretches(db, first, last, slice_size - done)
                size = min(STRETCH, slice_size - done)
                rows = ledger.stretch(db, first, last, size)
                if rows:
                    take(rows)
                    first = rows[-1][0] + 1
                more = len(rows) == size
                if not more:
                    break
            on_slice(max(first, START + 1) - 1)
        if more:
            pause()


def first_of(db: Connection, first: int, last: int) -> list[Callable[[], object]]:
    """What is read first of some records, and what may have been erased of them since."""
    return [partial(_ask_stretches, db, first, last), partial(erasures, db, last)]


def _ask_stretches(db: Connection, first: int, last: int, most: int = SLICE) -> None:
    """Look ahead to some stretches, as they are if no record is missing."""
    sizes = [min(STRETCH, most - done) for done in range(0, most, STRETCH)][:AHEAD]
    starts = [first, *range(max(first, 1) + STRETCH, last + 2, STRETCH)[: AHEAD - 1]]
    db.look_ahead(
        partial(ledger.stretch, db, start, last, size)
        for start, size in zip(starts, sizes, strict=False)
    )


def before(db: Connection, first: int) -> Entry | None:
    """The record before the first of some."""
    row = db.execute(
        "SELECT seq, leaf FROM ledger WHERE seq BETWEEN 1 AND ? ORDER BY seq DESC LIMIT 1",
        (first - 1,),
    ).fetchone()
    return Entry(*row) if row else None


def erasures(db: Connection, last: int) -> list[int]:
    query = "SELECT seq FROM ledger WHERE kind = 'erasure' AND seq > ? ORDER BY seq"
    rows = db.execute(query, (last,))
    return [seq for (seq,) in rows.fetchall()]


def later(db: Connection, last: int, session: str | None = None) -> list[int]:
    """The records after one that change what the rules know, or of these a session's."""
    clause, values = ("", (last,)) if session is None else (" AND session = ?", (last, session))
    rows = db.execute(
        f"SELECT seq FROM ledger WHERE seq > ?{clause}"
        " AND kind NOT IN ('call.enter', 'call.exit', 'erasure') ORDER BY seq",
        values,
    )
    return [seq for (seq,) in rows.fetchall()]
