"""Verification of what the database holds: the log, the rules, and the rows beside it.

`verify` looks at everything, `verify_session` at the log from a session's opening to its seal,
`verify_task` at the records that name a task and at those of its dependencies.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from colibri.core.ledger import Head
from colibri.core.report import Break, Damage, Report
from colibri.core.rules import Rules
from colibri.store import ledger, proofs, sessions, trail
from colibri.store.connection import Connection
from colibri.store.sqlite import altered_tasks


def verify(
    db: Connection,
    *,
    upto: int | None = None,
    head: Head | None = None,
    pause: Callable[[], None],
) -> Report:
    """Recompute the log, replay the records of tasks and sessions, compare the rows with them."""
    rules = Rules()
    thoughts = trail.Comparison(db, rules.sessions)
    report = ledger.verify(
        db, upto=upto, head=head, pause=pause, rules=rules, beside=thoughts.go_on
    )
    read = report.head.seq if report.head else 0
    with db:  # one read transaction: the rows and all the records that they follow from
        ledger.catch_up(db, rules, after=read)
        report = _with(report, "stray record", ledger.stray_records(db))
        if not rules.blind:
            compared = read if report.valid and thoughts.fit else None
            altered = proofs.altered(db, rules.sessions, thoughts_after=compared)
            report = _with(report, "altered task", altered_tasks.altered(db, rules.tasks))
            report = _with(report, "altered session", altered)
    return _without(report, *_unseen(rules, "the rows of tasks and sessions"))


def verify_session(
    db: Connection, id: str, *, upto: int | None = None, pause: Callable[[], None]
) -> Report:
    """The log from a session's opening to the exit of the call that sealed it, or to the end."""
    session = sessions.get(db, id)
    last = None if session.seal_seq is None else session.seal_seq + 1
    if upto is not None:
        last = upto if last is None else min(last, upto)
    rules = Rules(session=id)
    report = ledger.verify(db, first=session.open_seq, upto=last, pause=pause, rules=rules)
    with db:
        ledger.catch_up(db, rules, after=report.head.seq if report.head else 0, session=id)
        if not rules.blind:
            altered = proofs.altered_session(db, rules.sessions, sessions.get(db, id))
            report = _with(report, "altered session", altered)
    outside = f"records before {session.open_seq}" + (f" and after {last}" if last else "")
    return _without(report, outside, *_unseen(rules, "the rows of the session"))


def verify_task(db: Connection, id: str, *, upto: int | None = None) -> Report:
    """Each record that names a task, for itself; its moves, replayed; its row."""
    with db:
        rules = Rules(only_tasks=True)
        report = ledger.verify_task(db, id, upto=upto, rules=rules)
        if not rules.blind:
            report = _with(report, "altered task", altered_tasks.of_task(db, id, rules.tasks))
    return _without(report, *_unseen(rules, "the moves and the row of the task"))


def _unseen(rules: Rules, rows: str) -> Iterator[str]:
    """What could not be judged because of damage."""
    if rules.blind:
        yield f"{rows}: records are missing or damaged that they could follow from"
    for id in sorted(rules.tasks.lost):
        yield f"the task {id}: a record of it cannot be read"
    for id in sorted(filter(None, rules.sessions.lost)):
        yield f"the session {id}: a record of it cannot be read"


def _without(report: Report, *what: str) -> Report:
    """A report that says what else was not checked."""
    return replace(report, not_checked=(*report.not_checked, *what))


def _with(report: Report, what: Damage, details: Iterable[str]) -> Report:
    """A report with damage that is not at one place of the log."""
    return report.with_breaks(Break(0, what, detail) for detail in details)
