"""Verification of what the database holds: the log, the rules, and the rows of the tables.

`verify` looks at everything, `verify_session` at the log from a session's opening to its seal,
`check_range` at some records for themselves. task_verification.py looks at one task.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

from colibri.core.check.kinds import Erasure, read_one
from colibri.core.check.log import STRETCH, LogCheck
from colibri.core.check.rows import Rows
from colibri.core.check.rules import Rules
from colibri.core.ledger import Entry, Head
from colibri.core.report import MAX_LISTED, Break, Findings, Note, Report
from colibri.core.witness import NOTHING, Comparison, Witnesses
from colibri.store import (
    deed_rows,
    key_rows,
    ledger,
    log_tree,
    proofs,
    sessions,
    task_rows,
    thought_rows,
    trail,
    witnessed,
)
from colibri.store.connection import Connection

SLICE = 10_000  # records that are read in one transaction
AHEAD = 4  # stretches that are asked for at once, if the database is far
START = -(2**63)  # a row may have any number

Pause = Callable[[], None]


@contextmanager
def at_once(db: Connection, also: Iterable[Callable[[], object]] = ()) -> Iterator[None]:
    """One state for all that a verification reads, if the database is far and the log small: so
    that what does not depend on other answers can be asked together, as `also`.
    """
    with ExitStack() as stack:
        if db.engine.is_far:
            stack.enter_context(db)
            reads = (db.engine.foreign, ledger.log_id, ledger.head, log_tree.kept_count)
            db.look_ahead((*(partial(read, db) for read in reads), *also))
            if ledger.last_seq(db) >= SLICE:
                stack.close()
        yield


def verify(
    db: Connection,
    *,
    upto: int | None = None,
    head: Head | None = None,
    witnesses: Witnesses = NOTHING,
    rows: bool = True,
    pause: Pause,
    slice_size: int = SLICE,
) -> Report:
    """Recompute the log, replay the records of tasks and sessions, compare the rows with them.

    A head from outside is always reached, and so are witnesses. Without rows, only the log is
    looked at.
    """
    last = ledger.last_seq(db)
    if upto is not None:
        outside = (head.seq if head else 0, *(one.size for one in witnesses.found))
        last = min(last, max(upto, *outside))
    log = _Log(db, head, witnesses, rows=rows)
    log.ask(last)
    log.read(last, pause, slice_size)
    if log.found.sound and log.rules.calls.has_repeated_ids():
        log = _Log(db, head, witnesses, rows=rows, remember=True)
        log.read(last, pause, slice_size)
    with db:  # one read transaction: the rows and all the records that they follow from
        erased = _excuse(db, log.check, last)
        report = log.check.finish(last)
        if not log.found.sound:
            return report
        report = witnessed.tell(report, log.outside.judge(log.check.seq), head, witnesses.problems)
        if not rows:
            return report
        if not _catch_up(db, log.rules, last, erased):
            return report.with_notes(UNREADABLE)
        return _with_rows(db, log, report, last)


def _with_rows(db: Connection, log: "_Log", report: Report, last: int) -> Report:
    """A report with the rows that do not follow from the records."""
    rules, after = log.rules, last if log.thoughts.fit else None
    altered = partial(proofs.altered, db, rules.sessions, thoughts_after=after)
    keys = partial(key_rows.altered, db, rules.calls.firsts, last)
    db.look_ahead((lambda: [*altered()], lambda: [*keys()]), further=True)
    report = _with(report, "altered-task", task_rows.altered(db, rules.tasks))
    report = _with(report, "altered-session", altered())
    report = _with(report, "altered-deed", log.deeds.altered(rules.deeds.rows))
    report = _with(report, "altered-tree", log.tree.altered())
    return _with(report, "altered-session", keys())


class _Log:
    """A whole log as it is read, and the rows of its thoughts."""

    def __init__(
        self,
        db: Connection,
        head: Head | None,
        witnesses: Witnesses,
        *,
        rows: bool,
        remember: bool = False,
    ) -> None:
        self.found, self.thoughts = Findings(), trail.Comparison(db)
        self.rules, self.deeds = Rules(self.found, remember=remember), deed_rows.Comparison(db)
        log = ledger.log_id(db)
        self.outside = Comparison(log, witnesses)
        self.tree = log_tree.Comparison(db, rows=rows)
        self.check = LogCheck(log, _Table(db), self.found, head=head, rules=self.rules)
        self._db = db
        self._rows = rows

    def ask(self, last: int) -> None:
        """Look ahead to what is read of a small log."""
        db = self._db
        reads: list[Callable[[], object]] = [*_first_of(db, START, last), partial(_later, db, last)]
        if self._rows:
            reads += [
                partial(self.thoughts.rows, last),
                partial(self.deeds.ask, last),
                self.tree.ask,
                lambda: next(sessions.every(db), None),
                partial(thought_rows.ask, db, after=last),
                partial(task_rows.ask, db),
                partial(key_rows.ask, db, last),
            ]
        db.look_ahead(reads)

    def read(self, last: int, pause: Pause, slice_size: int) -> None:
        _read(self._db, self._take, START, last, pause, self._on_slice, slice_size)

    def _take(self, rows: Rows) -> None:
        leaves = self.check.take(rows)
        if self.found.sound:
            self.tree.take(leaves)
            self.outside.take(rows[0][0], leaves)

    def _on_slice(self, seq: int) -> None:
        if self._rows:
            self.thoughts.go_on(self.rules.sessions.rows, seq)
            self.deeds.go_on(self.rules.deeds.rows, seq)
        self.rules.sessions.rows.clear()
        self.rules.deeds.rows.clear()


def verify_session(
    db: Connection, id: str, *, upto: int | None = None, pause: Pause, slice_size: int = SLICE
) -> Report:
    """The log from a session's opening to the exit of the call that sealed it, or to the end."""
    session = sessions.get(db, id)
    first, last = session.open_seq, ledger.last_seq(db)
    if session.seal_seq is not None:
        last = min(last, session.seal_seq + 1)
    if upto is not None:
        last = min(last, upto)
    found = Findings()
    rules, deeds = Rules(found, session=id), deed_rows.Comparison(db, first)
    db.look_ahead(
        (
            *_first_of(db, first, last),
            partial(_before, db, first),
            partial(_later, db, last, session=id),
            partial(deeds.ask, last, id),
            partial(proofs.ask_altered, db, id),
        )
    )
    check = _check_from(db, first, found, rules)

    def on_slice(seq: int) -> None:
        deeds.go_on(rules.deeds.rows, seq)
        rules.deeds.rows.clear()

    _read(db, check.take, first, last, pause, on_slice, slice_size)
    with db:
        erased = _excuse(db, check, last)
        report = check.finish(last)
        if found.sound and _catch_up(db, rules, last, erased, session=id):
            altered = proofs.altered_session(db, rules.sessions, sessions.get(db, id))
            report = _with(report, "altered-session", altered)
            altered = deeds.altered_of(id, rules.deeds.rows, first)
            report = _with(report, "altered-deed", altered)
        elif found.sound:
            report = report.with_notes(UNREADABLE)
    outside = f"records before {first} and after {last}, the moves of tasks, and the indexes"
    return report.with_notes(Note("scope", outside))


def check_range(db: Connection, first: int, last: int) -> list[Break]:
    """Check some records for themselves and the first of them against the one before it."""
    with db:
        ask_range(db, first, last)
        check = _check_from(db, first, Findings())
        last = min(last, ledger.last_seq(db))
        _read(db, check.take, first, last, pause=lambda: None)
        _excuse(db, check, last)
        return list(check.finish(last).breaks)


def ask_range(db: Connection, first: int, last: int) -> None:
    """Look ahead to what `check_range` reads."""
    db.look_ahead((*_first_of(db, first, last), partial(_before, db, first)))


def _first_of(db: Connection, first: int, last: int) -> list[Callable[[], object]]:
    """What is read first of some records, and what may have been erased of them since."""
    return [partial(_ask_stretches, db, first, last), partial(_erasures, db, last)]


def _ask_stretches(db: Connection, first: int, last: int, most: int = SLICE) -> None:
    """Look ahead to some stretches, as they are if no record is missing."""
    sizes = [min(STRETCH, most - done) for done in range(0, most, STRETCH)][:AHEAD]
    starts = [first, *range(max(first, 1) + STRETCH, last + 2, STRETCH)]
    db.look_ahead(
        partial(ledger.stretch, db, start, last, size)
        for start, size in zip(starts, sizes, strict=False)
    )


class _Table:
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


def _check_from(
    db: Connection, first: int, found: Findings, rules: Rules | None = None
) -> LogCheck:
    return LogCheck(ledger.log_id(db), _Table(db), found, after=_before(db, first), rules=rules)


def _before(db: Connection, first: int) -> Entry | None:
    """The record before the first of some."""
    row = db.execute(
        "SELECT seq, leaf FROM ledger WHERE seq BETWEEN 1 AND ? ORDER BY seq DESC LIMIT 1",
        (first - 1,),
    ).fetchone()
    return Entry(*row) if row else None


def _read(
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


def _excuse(db: Connection, check: LogCheck, last: int) -> list[int]:
    """Show the check what was erased after the last row: it may have been read before or after.

    The records that were named.
    """
    named: list[int] = []
    for row in ledger.rows(db, _erasures(db, last)):
        check.excuse(row)
        said = read_one(row)
        named += said.seqs if isinstance(said, Erasure) else ()
    return named


def _erasures(db: Connection, last: int) -> list[int]:
    rows = db.execute("SELECT seq FROM ledger WHERE kind = 'erasure' AND seq > ?", (last,))
    return [seq for (seq,) in rows.fetchall()]


def _later(db: Connection, last: int, session: str | None = None) -> list[int]:
    """The records after one that change what the rules know, or of these a session's."""
    clause, values = ("", (last,)) if session is None else (" AND session = ?", (last, session))
    rows = db.execute(
        f"SELECT seq FROM ledger WHERE seq > ?{clause}"
        " AND kind NOT IN ('call.enter', 'call.exit', 'erasure') ORDER BY seq",
        values,
    )
    return [seq for (seq,) in rows.fetchall()]


def _catch_up(
    db: Connection, rules: Rules, last: int, erased: Iterable[int], *, session: str | None = None
) -> bool:
    """Show the rules what came after the last row, unchecked; whether all of it can be read.

    What breaks a rule there is for the next verification to tell.
    """
    for row in ledger.rows(db, _later(db, last, session)):
        said = read_one(row)
        if said is None and row.body is not None:
            return False
        rules.show(row, said)
    for row in ledger.rows(db, erased):
        if row.kind in ("session.open", "call.enter"):
            rules.sessions.erase(row.seq)
        elif row.kind == "task.text" and row.task is not None and session is None:
            every = ledger.rows_of_task(db, row.task)
            texts = [read_one(one) for one in every if one.kind == "task.text"]
            rules.tasks.retell(row.task, texts)
    return True


UNREADABLE = Note("skipped", "the rows: a record that they follow from cannot be read")


def _with(report: Report, what: str, details: Iterable[str]) -> Report:
    """A report with damage that is not at one place of the log."""
    return report.with_breaks(Break(None, what, detail) for detail in details)
