"""Verification of everything the database holds: the log, the rules, and the rows beside it."""

from collections.abc import Callable
from dataclasses import replace

from apsw import Connection

from colibri.core.ledger import MAX_BREAKS, Break, Head, Report
from colibri.core.replay import Replay
from colibri.store import ledger, tasks


def verify(
    db: Connection,
    *,
    upto: int | None = None,
    head: Head | None = None,
    pause: Callable[[], None],
) -> Report:
    """Recompute the log, replay the records of tasks, and hold their rows against them."""
    replay = Replay()
    report = ledger.verify(db, upto=upto, head=head, pause=pause, replay=replay)
    with db:  # one read transaction: the rows and all the records that they follow from
        ledger.catch_up(db, replay, after=report.head.seq if report.head else 0)
        if replay.blind:
            blind = "the rows of tasks: records are missing that they could follow from"
            return replace(report, not_checked=(*report.not_checked, blind))
        altered = [Break(0, "altered task", detail) for detail in tasks.altered(db, replay)]
    lost = [f"the task {id}: a record of it cannot be read" for id in sorted(replay.lost)]
    return replace(
        report,
        not_checked=(*report.not_checked, *lost),
        broken_count=report.broken_count + len(altered),
        breaks=(*report.breaks, *altered)[:MAX_BREAKS],
    )
