"""Whether a log extends what was kept of it outside: as a part of a report, or by itself."""

from collections.abc import Iterable, Iterator
from itertools import groupby

from colibri.core.ledger import Head
from colibri.core.report import Break, Note, Report
from colibri.core.witness import Acceptance, Comparison, Judged, Witness, Witnesses, describe
from colibri.store import ledger, log_tree
from colibri.store.connection import Connection

MAX_NAMED = 10  # witnesses that could not be read


def judge(db: Connection, witnesses: Witnesses) -> tuple[Judged, ...]:
    """What the log makes of each, by the hashes that it has: no record is verified."""
    compared, last = _compared(db, witnesses)
    return compared.judge(last)


def accepted(db: Connection, witnesses: Witnesses) -> list[Acceptance]:
    """What was accepted for this log."""
    return _compared(db, witnesses)[0].accepted()


def _compared(db: Connection, witnesses: Witnesses) -> tuple[Comparison, int]:
    compared, last = Comparison(ledger.log_id(db), witnesses), ledger.last_seq(db)
    for seq in compared.seqs:
        compared.leaves[seq] = ledger.leaf_at(db, seq) or b""
    for size in compared.sizes:
        if size <= last:
            compared.roots[size] = log_tree.checkpoint(db, size).root
    return compared, last


def tell(
    report: Report, judged: tuple[Judged, ...], head: Head | None, problems: Iterable[str]
) -> Report:
    """A report on a sound log with what witnesses tell of it, the head that was given included."""
    if head is not None:
        given = Witness("", *head, None, "given", "the head that you gave")
        known = not {"truncated", "head-differs"} & {one.what for one in report.breaks}
        judged = (*judged, Judged(given, "held" if known else "diverged"))
    report = report._replace(witnesses=judged).with_breaks(_breaks(judged))
    report = report.with_notes(*(Note("witness", one) for one in (*_unread(report), *problems)))
    if report.held_to is None:
        return report
    notes = [note for note in report.not_checked if note.code != "outside-head"]
    if report.newer:
        newer = f"the {report.newer:,} newest records, which no witness has seen"
        notes.insert(0, Note("outside-head", newer))
    return report._replace(not_checked=tuple(notes))


def _unread(report: Report) -> Iterator[str]:
    """What could not be read; anybody who can push may have put very many such things there."""
    yield from (describe(one) for one in report.unread[:MAX_NAMED])
    if (more := len(report.unread) - MAX_NAMED) > 0:
        yield f"and {more:,} more witnesses cannot be read"


def _breaks(judged: Iterable[Judged]) -> Iterator[Break]:
    """One finding for all witnesses from the same place that say the same."""
    bad = [one for one in judged if one.result == "diverged" and not _is_given_head(one.witness)]
    bad.sort(key=lambda one: (_likeness(one), one.witness.size))
    for _, same in groupby(bad, key=_likeness):
        group = [*same]
        newest, more = group[-1], len(group) - 1
        first = min(one.witness.size for one in group)
        others = f", and {more:,} more" if more else ""
        yield Break(first, "diverged", f"{describe(newest)}{others}")


def _is_given_head(one: Witness) -> bool:
    """That has findings of its own."""
    return one.kind == "given" and one.leaf is not None


def _likeness(one: Judged) -> tuple[str, str]:
    return one.witness.where, one.detail
