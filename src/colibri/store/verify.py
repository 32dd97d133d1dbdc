"""Verification of what the database holds: the log, the rules, and the rows beside it.

`verify` looks at everything, `verify_session` at the log from a session's opening to its seal,
`verify_task` at the records that name a task and at those of its dependencies, `check_range` at
some records for themselves.
"""

from collections.abc import Callable, Iterable
from itertools import groupby

from colibri.core.check.kinds import Erasure, TaskFields, read_one
from colibri.core.check.log import STRETCH, LogCheck
from colibri.core.check.rules import Rules
from colibri.core.check.sessions import Sessions
from colibri.core.check.tasks import Tasks
from colibri.core.ledger import Entry, Head
from colibri.core.report import MAX_LISTED, NO_HEAD, Break, Findings, Note, Report
from colibri.store import ledger, proofs, sessions, trail
from colibri.store.connection import Connection
from colibri.store.sqlite import altered_deeds, altered_keys, altered_tasks

SLICE = 10_000  # records that are read in one transaction
START = -(2**63)  # a row may have any number

Pause = Callable[[], None]


def verify(
    db: Connection,
    *,
    upto: int | None = None,
    head: Head | None = None,
    rows: bool = True,
    pause: Pause,
    slice_size: int = SLICE,
) -> Report:
    """Recompute the log, replay the records of tasks and sessions, compare the rows with them.

    A head from outside is always reached. Without rows, only the log is looked at.
    """
    last = ledger.last_seq(db)
    if upto is not None:
        last = min(last, max(upto, head.seq if head else 0))
    log = _Log(db, head, rows=rows)
    log.read(last, pause, slice_size)
    if log.found.sound and log.rules.calls.has_repeated_ids():
        log = _Log(db, head, rows=rows, remember=True)
        log.read(last, pause, slice_size)
    with db:  # one read transaction: the rows and all the records that they follow from
        erased = _excuse(db, log.check, last)
        report = log.check.finish(last)
        if not log.found.sound or not rows:
            return report
        rules, fit = log.rules, log.thoughts.fit
        if not _catch_up(db, rules, last, erased):
            return report.with_notes(_UNREADABLE)
        altered = proofs.altered(db, rules.sessions, thoughts_after=last if fit else None)
        report = _with(report, "altered-task", altered_tasks.altered(db, rules.tasks))
        report = _with(report, "altered-session", altered)
        report = _with(report, "altered-deed", log.deeds.altered(rules.deeds.rows))
        return _with(report, "altered-session", altered_keys.altered(db, rules.calls.firsts, last))


class _Log:
    """A whole log as it is read, and the rows of thoughts beside it."""

    def __init__(
        self, db: Connection, head: Head | None, *, rows: bool, remember: bool = False
    ) -> None:
        self.found, self.thoughts = Findings(), trail.Comparison(db)
        self.deeds = altered_deeds.Comparison(db)
        self.rules = Rules(self.found, remember=remember)
        log = ledger.log_id(db)
        self.check = LogCheck(log, _Table(db), self.found, head=head, rules=self.rules)
        self._db = db
        self._rows = rows

    def read(self, last: int, pause: Pause, slice_size: int) -> None:
        _read(
            self._db,
            self.check,
            START,
            last,
            pause=pause,
            on_slice=self._on_slice,
            slice_size=slice_size,
        )

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
    rules = Rules(found, session=id)
    check = _check_from(db, first, found, rules)
    _read(db, check, first, last, pause=pause, slice_size=slice_size)
    with db:
        erased = _excuse(db, check, last)
        report = check.finish(last)
        if found.sound and _catch_up(db, rules, last, erased, session=id):
            altered = proofs.altered_session(db, rules.sessions, sessions.get(db, id))
            report = _with(report, "altered-session", altered)
        elif found.sound:
            report = report.with_notes(_UNREADABLE)
    outside = f"records before {first} and after {last}, the moves of tasks, and the indexes"
    return report.with_notes(Note("scope", outside))


def verify_task(db: Connection, id: str, *, upto: int | None = None) -> Report:
    """Each record that names a task, for itself; its moves, replayed; its row."""
    with db:
        newest = ledger.last_seq(db)
        last = newest if upto is None else min(upto, newest)
        own = [seq for seq in ledger.seqs_of_task(db, id) if seq <= last]
        breaks = [broken for first, end in _runs(own) for broken in check_range(db, first, end)]
        about = Note(
            "scope", "records that do not name the task, calls that are open, and the indexes"
        )
        notes = [NO_HEAD, about]
        if breaks:
            notes.append(Note("skipped", "the moves and the row of the task"))
        else:
            found = Findings()
            replay = _replay_task(db, id, found, last)
            breaks += found.listed()[1]
            problems = () if replay is None else altered_tasks.of_task(db, id, replay)
            breaks += [Break(None, "altered-task", one) for one in problems]
            notes += [_UNREADABLE] if replay is None else []
        return Report(
            record_count=len(own),
            broken_count=len(breaks),
            breaks=tuple(breaks[:MAX_LISTED]),
            head=Head(own[-1], ledger.leaf_at(db, own[-1]) or b"") if own else None,
            open_calls=(),
            erased=(),
            not_checked=tuple(notes),
        )


def check_range(db: Connection, first: int, last: int) -> list[Break]:
    """Check some records for themselves and the first of them against the one before it."""
    with db:
        check = _check_from(db, first, Findings())
        last = min(last, ledger.last_seq(db))
        _read(db, check, first, last, pause=lambda: None)
        _excuse(db, check, last)
        return list(check.finish(last).breaks)


def _runs(seqs: Iterable[int]) -> Iterable[tuple[int, int]]:
    """The first and the last of those that follow one another."""
    for _, run in groupby(enumerate(seqs), lambda one: one[1] - one[0]):
        members = [seq for _, seq in run]
        yield members[0], members[-1]


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
    before = db.execute(
        "SELECT seq, leaf FROM ledger WHERE seq BETWEEN 1 AND ? ORDER BY seq DESC LIMIT 1",
        (first - 1,),
    ).fetchone()
    after = Entry(*before) if before else None
    return LogCheck(ledger.log_id(db), _Table(db), found, after=after, rules=rules)


def _read(
    db: Connection,
    check: LogCheck,
    first: int,
    last: int,
    *,
    pause: Pause,
    on_slice: Callable[[int], None] = lambda seq: None,
    slice_size: int = SLICE,
) -> None:
    """Show the check the rows from a seq to another, in slices.

    Each has its own read transaction, and pause() runs between two of them, so that the write-ahead
    log can be checkpointed and others can be served. Within each, on_slice is told how far it is.
    """
    more = True
    while more:
        with db:  # a savepoint, which outside a transaction is a read transaction
            for done in range(0, slice_size, STRETCH):
                size = min(STRETCH, slice_size - done)
                rows = ledger.stretch(db, first, last, size)
                if rows:
                    check.take(rows)
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
    late = db.execute("SELECT seq FROM ledger WHERE kind = 'erasure' AND seq > ?", (last,))
    named: list[int] = []
    for row in ledger.rows(db, [seq for (seq,) in late.fetchall()]):
        check.excuse(row)
        said = read_one(row)
        named += said.seqs if isinstance(said, Erasure) else ()
    return named


def _catch_up(
    db: Connection, rules: Rules, last: int, erased: Iterable[int], *, session: str | None = None
) -> bool:
    """Show the rules what came after the last row, unchecked; whether all of it can be read.

    What breaks a rule there is for the next verification to tell.
    """
    clause, values = ("", (last,)) if session is None else (" AND session = ?", (last, session))
    later = db.execute(
        f"SELECT seq FROM ledger WHERE seq > ?{clause}"
        " AND kind NOT IN ('call.enter', 'call.exit', 'erasure') ORDER BY seq",
        values,
    )
    for row in ledger.rows(db, [seq for (seq,) in later.fetchall()]):
        said = read_one(row)
        if said is None and row.body is not None:
            return False
        rules.show(row, said)
    for row in ledger.rows(db, erased):
        if row.kind in ("session.open", "call.enter"):
            rules.sessions.erase(row.seq)
        elif row.kind == "task.text" and row.task is not None and session is None:
            every = ledger.rows(db, ledger.seqs_of_task(db, row.task))
            texts = [read_one(one) for one in every if one.kind == "task.text"]
            rules.tasks.retell(row.task, texts)
    return True


def _replay_task(db: Connection, id: str, found: Findings, last: int) -> Tasks | None:
    """A task's records, replayed beside those of all that it ever depended on and of the sessions
    that held it; None if one of them cannot be read. Only what its own records up to a seq break is
    found.
    """
    ignored, reasons = Findings(), dict[str, list[str | None]]()
    known = Sessions(ignored)
    replay = Tasks(found, known, whole=False)
    for row in ledger.rows(db, sorted(_needed_for(db, id))):
        replay.found = found if row.task == id and row.seq <= last else ignored
        said = read_one(row)
        if said is None and row.body is not None:
            return None
        if row.kind == "session.open":
            known.open(row, said, None)
        elif row.kind == "session.seal":
            known.seal(row, said, None)
        elif row.kind == "thought":
            replay.name(row)
            reasons.setdefault(row.call, []).append(row.task)
        elif row.kind in ("task", "task.text"):
            replay.take(row, said, lambda row: reasons.get(row.call, ()))
    return replay


def _needed_for(db: Connection, id: str) -> set[int]:
    """The records that name a task, or what it ever depended on, and the ends of its holders."""
    own = [*ledger.rows(db, ledger.seqs_of_task(db, id))]
    seqs = {row.seq for row in own}
    for row in own:
        said = read_one(row) if row.kind == "task" else None
        if isinstance(said, TaskFields):
            for other in said.set.get("depends_on", (None, ()))[1]:
                seqs.update(ledger.seqs_of_task(db, other))
            for holder in filter(None, said.set.get("holder", ())):
                seqs.update(sessions.ends_of(db, holder))
    return seqs


_UNREADABLE = Note("skipped", "the rows: a record that they follow from cannot be read")


def _with(report: Report, what: str, details: Iterable[str]) -> Report:
    """A report with damage that is not at one place of the log."""
    return report.with_breaks(Break(None, what, detail) for detail in details)
