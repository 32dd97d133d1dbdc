"""Verification of what the database holds: the log, the rules, and the rows of the tables.

`verify` looks at everything, `verify_session` at the log from a session's opening to its seal.
task_verification.py looks at one task; record_check.py reads the records, and checks a few.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

from colibri.core.check.kinds import read_one
from colibri.core.check.log import LogCheck
from colibri.core.check.rows import Rows
from colibri.core.check.rules import Rules
from colibri.core.ledger import Head
from colibri.core.report import Break, Findings, Note, Report
from colibri.core.witness import NOTHING, Comparison, Witnesses
from colibri.store import (
    deed_rows,
    key_rows,
    ledger,
    log_tree,
    proofs,
    record_check,
    sessions,
    task_rows,
    thought_rows,
    trail,
    witnessed,
)
from colibri.store.connection import Connection
from colibri.store.record_check import SLICE, START, Pause

UNREADABLE = Note("skipped", "the rows: a record that they follow from cannot be read")


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
        erased = record_check.excuse(db, log.check, last)
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
        self.check = LogCheck(log, record_check.Table(db), self.found, head=head, rules=self.rules)
        self._db = db
        self._rows = rows

    def ask(self, last: int) -> None:
        """Look ahead to what is read of a small log."""
        db = self._db
        reads: list[Callable[[], object]] = [
            *record_check.first_of(db, START, last),
            partial(record_check.later, db, last),
        ]
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
        record_check.read(self._db, self._take, START, last, pause, self._on_slice, slice_size)

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
            *record_check.first_of(db, first, last),
            partial(record_check.before, db, first),
            partial(record_check.later, db, last, session=id),
            partial(deeds.ask, last, id),
            partial(proofs.ask_altered, db, id),
        )
    )
    check = record_check.check_from(db, first, found, rules)

    def on_slice(seq: int) -> None:
        deeds.go_on(rules.deeds.rows, seq)
        rules.deeds.rows.clear()

    record_check.read(db, check.take, first, last, pause, on_slice, slice_size)
    with db:
        erased = record_check.excuse(db, check, last)
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


def _catch_up(
    db: Connection, rules: Rules, last: int, erased: Iterable[int], *, session: str | None = None
) -> bool:
    """Show the rules what came after the last row, unchecked; whether all of it can be read.

    What breaks a rule there is for the next verification to tell.
    """
    for row in ledger.rows(db, record_check.later(db, last, session)):
        said = read_one(row)
        if said is None and row.body is not None:
            return False
        rules.show(row, said)
    for row in ledger.rows(db, sorted(erased)):
        if row.kind in ("session.open", "call.enter"):
            rules.sessions.erase(row.seq)
        elif row.kind == "task.text" and row.task is not None and session is None:
            every = ledger.rows_of_task(db, row.task)
            texts = [read_one(one) for one in every if one.kind == "task.text"]
            rules.tasks.retell(row.task, texts)
    return True


def _with(report: Report, what: str, details: Iterable[str]) -> Report:
    """A report with damage that is not at one place of the log."""
    return report.with_breaks(Break(None, what, detail) for detail in details)
