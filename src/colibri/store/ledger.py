"""The ledger's tables: `ledger` and `meta`; appending to the chain and checking it.

Nothing here begins a write transaction: a Chain lives inside one that its caller holds, which is
what keeps two processes from extending the same head.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import count
from typing import Any

from colibri.core import canonical
from colibri.core import ledger as record
from colibri.core.chain import Checker
from colibri.core.errors import Damaged
from colibri.core.ledger import Entry, Head
from colibri.core.payload import load
from colibri.core.report import MAX_BREAKS, NO_HEAD, Break, Report
from colibri.core.rows import Row
from colibri.core.rules import Finding, Rules
from colibri.store.connection import Connection
from colibri.store.faults import breaks_constraint

_COLUMNS = ", ".join(Row._fields)
_INSERT = f"INSERT INTO ledger ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"

# The casts cost nothing on sound rows and keep a rebuilt, untyped table from tripping the check.
_ROWS = """
    SELECT seq, at, kind, call, session, task, agent, coalesce(CAST(payload AS BLOB), x''),
        CAST(nonce AS BLOB), CAST(body AS BLOB), coalesce(CAST(leaf AS BLOB), x''),
        coalesce(CAST(prev AS BLOB), x'')
    FROM ledger
    WHERE seq BETWEEN ? AND ?
    ORDER BY seq
    LIMIT ?
"""
_AS_BYTES = """
    SELECT seq, CAST(at AS BLOB), CAST(kind AS BLOB), CAST(call AS BLOB), CAST(session AS BLOB),
        CAST(task AS BLOB), CAST(agent AS BLOB), coalesce(CAST(payload AS BLOB), x''),
        CAST(nonce AS BLOB), CAST(body AS BLOB), coalesce(CAST(leaf AS BLOB), x''),
        coalesce(CAST(prev AS BLOB), x'')
    FROM ledger
"""
_TEXT_COLUMNS = slice(1, 7)

_SEQS_OF_TASK = "SELECT seq FROM ledger WHERE task = ? AND seq <= ? ORDER BY seq"

# Of the task and of every other that its records have ever named in depends_on.
_SEQS_OF_TASK_AND_DEPENDENCIES = """
    SELECT seq FROM ledger
    WHERE kind IN ('task', 'task.text', 'thought') AND (task = ?1 OR task IN (
        SELECT other.value FROM ledger AS l,
            json_each(iif(json_valid(CAST(l.body AS TEXT)), CAST(l.body AS TEXT), '{}'),
                '$.set.depends_on[1]') AS other
        WHERE l.task = ?1 AND l.kind = 'task'))
    ORDER BY seq
"""


def create_log(db: Connection, log: str) -> None:
    """Give a new database its identity; once, in the transaction that creates it."""
    db.execute("INSERT INTO meta (key, value) VALUES ('log', ?)", (log,))


def log_id(db: Connection) -> str:
    """The log's id; Damaged if the database has none."""
    row = db.execute("SELECT value FROM meta WHERE key = 'log'").fetchone()
    if row is None:
        raise Damaged("the database does not say which log it holds")
    return str(row[0])


def head(db: Connection) -> Head | None:
    row = db.execute("SELECT seq, leaf FROM ledger ORDER BY seq DESC LIMIT 1").fetchone()
    return Head(*row) if row else None


def leaf_at(db: Connection, seq: int) -> bytes | None:
    """The leaf stored at a seq, or None if there is none."""
    row = db.execute("SELECT leaf FROM ledger WHERE seq = ?", (seq,)).fetchone()
    return row[0] if row else None


class Chain:
    """The head of the ledger inside one write transaction, and the way to extend it.

    A savepoint that is rolled back takes records with it: mark() before it, reset() after.
    """

    __slots__ = ("_db", "_dump", "_head", "_log", "_nonce")

    def __init__(
        self,
        db: Connection,
        log: str,
        nonce: Callable[[int], bytes],
        dump: Callable[[object], bytes] = canonical.dump,
    ) -> None:
        self._db = db
        self._dump = dump
        self._log = log
        self._nonce = nonce
        self._head = head(db) or Head(0, record.genesis(log))

    def append(
        self,
        kind: str,
        payload: Mapping[str, object],
        *,
        at: str,
        call: str,
        session: str | None = None,
        task: str | None = None,
        agent: str | None = None,
    ) -> Entry:
        """Add a record and return it.

        ValueError if the payload is not one of its kind, Damaged if a row that does not belong
        there is in its way.
        """
        seq, prev = self._head.seq + 1, self._head.leaf
        nonce = self._nonce(seq)
        body = record.body(kind, payload, self._dump)
        said = (seq, at, kind, call, session, task, agent, record.commitment(nonce, body))
        leaf = record.leaf(record.header(self._log, *said, prev))
        try:
            self._db.execute(_INSERT, (*said, nonce, body, leaf, prev))
        except Exception as problem:
            if not breaks_constraint(problem):
                raise
            why = f"the ledger does not take record {seq}: {problem}"
            raise Damaged(f"{why}; audit_verify_chain says what is wrong with it") from problem
        self._head = Entry(seq, leaf)
        return self._head

    def mark(self) -> Head:
        return self._head

    def reset(self, mark: Head) -> None:
        self._head = mark


def verify(  # noqa: PLR0913 - what to check, by what rules, and who is told of it meanwhile
    db: Connection,
    *,
    first: int = 1,
    upto: int | None = None,
    head: Head | None = None,
    pause: Callable[[], None],
    rules: Rules | None = None,
    beside: Callable[[int], None] = lambda seq: None,
    slice_size: int = 10_000,
) -> Report:
    """Check the log from a seq to another, or to its end; a head from outside is always reached.

    Each slice has a read transaction of its own and pause() runs between two of them, so that the
    write-ahead log can be checkpointed and others can be served. Within each, beside() is told
    how far it has come.
    """
    last = _last_seq(db)
    if upto is not None:
        last = min(last, max(upto, head.seq if head else 0))
    checker = _checker(db, first, head=head, rules=rules)
    erasure, more = 0, True
    while more:
        with db:  # a savepoint, which outside a transaction is a read transaction
            # Again for each slice: an erasure may have been committed since the last one.
            erasure = _expect_erased(db, checker, after=erasure)
            more = _feed(db, checker, last, slice_size)
            beside(checker.seq)
        if more:
            pause()
    return checker.finish(last)


def catch_up(db: Connection, rules: Rules, *, after: int, session: str | None = None) -> None:
    """Show the rules the records that came after a seq, of one session or all, unchecked."""
    clause, values = ("", (after,)) if session is None else (" AND session = ?", (after, session))
    rows = db.execute(
        f"SELECT seq FROM ledger WHERE seq > ?{clause}"
        " AND kind NOT IN ('call.enter', 'call.exit') ORDER BY seq",
        values,
    )
    for (seq,) in rows:
        for _ in _show(rules, _row_as_bytes(db, seq)):
            pass  # what breaks the rules there is for the next verification to tell


def _show(rules: Rules, row: Row) -> Iterator[Finding]:
    """Show the rules a record that nobody has checked."""
    try:
        payload = None if row.body is None else load(row.body)
    except ValueError:
        rules.lose(row)
        return
    yield from rules.feed(row, payload)


def check_range(db: Connection, first: int, last: int) -> list[Break]:
    """Check some records for themselves and the first of them against the one before it."""
    with db:
        checker = _checker(db, first)
        _expect_erased(db, checker, after=first)
        while _feed(db, checker, last, last - first + 1):
            pass
        report = checker.finish(min(last, _last_seq(db)))
    return list(report.breaks)


def stray_records(db: Connection) -> Iterator[str]:
    """Records before the first, which no check of the chain comes by."""
    for (seq,) in db.execute("SELECT seq FROM ledger WHERE seq < 1 ORDER BY seq"):
        yield f"record {seq}: the log begins with record 1"


def verify_task(db: Connection, id: str, *, upto: int | None, rules: Rules) -> Report:
    """Check each record that names a task, and replay them beside those of its dependencies."""
    newest = _last_seq(db)
    last = newest if upto is None else min(upto, newest)
    seqs = [seq for (seq,) in db.execute(_SEQS_OF_TASK, (id, last))]
    breaks = [broken for seq in seqs for broken in check_range(db, seq, seq)]
    if breaks:
        rules.go_blind()
    for (seq,) in db.execute(_SEQS_OF_TASK_AND_DEPENDENCIES, (id,)):
        row = _row_as_bytes(db, seq)
        found = [Break(seq, what, detail) for what, detail in _show(rules, row)]
        breaks += found if row.task == id and seq <= last else []
    return Report(
        record_count=len(seqs),
        broken_count=len(breaks),
        breaks=tuple(breaks[:MAX_BREAKS]),
        head=Head(seqs[-1], leaf_at(db, seqs[-1]) or b"") if seqs else None,
        open_calls=(),
        erased=(),
        not_checked=(NO_HEAD, "records that do not name the task, and calls that are open"),
    )


def _checker(db: Connection, first: int, **more: Any) -> Checker:
    before = db.execute(
        "SELECT seq, leaf FROM ledger WHERE seq BETWEEN 1 AND ? ORDER BY seq DESC LIMIT 1",
        (first - 1,),
    ).fetchone()
    after = Entry(*before) if before else None
    return Checker(log_id(db), seq_of=_finder(db), after=after, **more)


def rows(db: Connection, seqs: Iterable[int]) -> Iterator[Row]:
    """The records with these numbers, as far as they are there, even if a text in them is none."""
    for seq in seqs:
        found = db.execute(f"{_AS_BYTES} WHERE seq = ?", (seq,)).get
        if found is not None:
            yield _decoded(found)


def calls_since(db: Connection, seq: int) -> Iterator[tuple[int, str, str]]:
    """(seq, kind, call) of every enter and exit after seq, in slices: a log may be long."""
    while True:
        rows: list[Any] = db.execute(
            "SELECT seq, kind, call FROM ledger"
            " WHERE seq > ? AND kind IN ('call.enter', 'call.exit') ORDER BY seq LIMIT 10000",
            (seq,),
        ).fetchall()
        yield from rows
        if not rows:
            return
        seq = rows[-1][0]


def _last_seq(db: Connection) -> int:
    newest = head(db)
    return newest.seq if newest else 0


def _finder(db: Connection) -> Callable[[bytes], int | None]:
    """Find the record that has a leaf; only damage asks, for the log is read as far as there.

    What a report no longer names is not looked for.
    """
    asked = count(1)

    def seq_of(leaf: bytes) -> int | None:
        if next(asked) > MAX_BREAKS:
            return None
        seq: int | None = db.execute("SELECT seq FROM ledger WHERE leaf = ?", (leaf,)).get
        return seq

    return seq_of


def _expect_erased(db: Connection, checker: Checker, *, after: int) -> int:
    """Show the checker the erasure records after a seq; the seq of the newest."""
    newest = after
    for (newest,) in db.execute(
        "SELECT seq FROM ledger WHERE kind = 'erasure' AND seq > ? ORDER BY seq", (after,)
    ):
        checker.expect_erased(_row_as_bytes(db, newest))
    return newest


def _feed(db: Connection, checker: Checker, last: int, limit: int) -> bool:
    """Feed the checker its next rows, up to a seq and a number; whether there may be more."""
    before = checker.seq
    try:
        # Not fetchall: ten thousand thoughts of the largest size would be gigabytes.
        checker.feed_all(db.execute(_ROWS, (before + 1, last, limit)))
    except UnicodeDecodeError:
        checker.feed(_row_as_bytes(db, checker.seq + 1))
    return before < checker.seq < last


def _row_as_bytes(db: Connection, first: int) -> Row:
    """The row at or after a seq, even if what its text columns hold is no text."""
    return _decoded(next(db.execute(f"{_AS_BYTES} WHERE seq >= ? ORDER BY seq LIMIT 1", (first,))))


def _decoded(row: Iterable[Any]) -> Row:
    values = list(row)
    values[_TEXT_COLUMNS] = [
        value.decode(errors="replace") if isinstance(value, bytes) else None
        for value in values[_TEXT_COLUMNS]
    ]
    return Row._make(values)
