"""Verification of one task: the records that name it, and those of its dependencies."""

from collections.abc import Callable, Iterable
from functools import partial
from itertools import groupby

from colibri.core.check.gates import Gates
from colibri.core.check.kinds import TaskFields, read_one
from colibri.core.check.sessions import Sessions
from colibri.core.check.tasks import Tasks
from colibri.core.ledger import Head
from colibri.core.report import MAX_LISTED, NO_HEAD, Break, Findings, Note, Report
from colibri.core.rows import Row
from colibri.store import ledger, sessions, task_rows, tasks
from colibri.store.connection import Connection
from colibri.store.gates import evidence_of
from colibri.store.record_check import ask_range, check_range
from colibri.store.verify import UNREADABLE


def verify_task(db: Connection, id: str, *, upto: int | None = None) -> Report:
    """Each record that names a task or is its evidence, for itself; its moves, replayed, and the
    rules that they satisfied; its row."""
    with db:
        newest = ledger.last_seq(db)
        last = newest if upto is None else min(upto, newest)
        db.look_ahead((partial(evidence_of, db, [id]), partial(_needed_for, db, id)), further=True)
        own = [(row.seq, row.leaf) for row in ledger.rows_of_task(db, id) if row.seq <= last]
        named = sorted(
            {*(seq for seq, _ in own), *(seq for seq in evidence_of(db, [id]) if seq <= last)}
        )
        runs = [*_runs(named)]
        needed = partial(ledger.rows, db, sorted(_needed_for(db, id)))
        db.look_ahead((*(partial(ask_range, db, *run) for run in runs), lambda: [*needed()]))
        breaks = [broken for run in runs for broken in check_range(db, *run)]
        about = Note(
            "scope", "records that do not name the task, calls that are open, and the indexes"
        )
        notes = [NO_HEAD, about]
        if breaks:
            notes.append(Note("skipped", "the moves and the row of the task"))
        else:
            found = Findings()
            gates = Gates(found)
            replay = _replay_task(needed(), id, found, last, gates)
            breaks += found.listed()[1]
            problems = () if replay is None else task_rows.of_task(db, id, replay)
            breaks += [Break(None, "altered-task", one) for one in problems]
            notes += [UNREADABLE] if replay is None else []
            notes += gates.notes()
        return Report(
            record_count=len(own),
            broken_count=len(breaks),
            breaks=tuple(breaks[:MAX_LISTED]),
            head=Head(*own[-1]) if own else None,
            open_calls=(),
            erased=(),
            not_checked=tuple(notes),
        )


def ask(db: Connection, id: str) -> list[Callable[[], object]]:
    """What the verification of a task reads first."""
    reads = (tasks.get, ledger.rows_of_task)
    return [*(partial(read, db, id) for read in reads), partial(evidence_of, db, [id])]


def _runs(seqs: Iterable[int]) -> Iterable[tuple[int, int]]:
    """The first and the last of those that follow one another."""
    for _, run in groupby(enumerate(seqs), lambda one: one[1] - one[0]):
        members = [seq for _, seq in run]
        yield members[0], members[-1]


def _replay_task(
    rows: Iterable[Row], id: str, found: Findings, last: int, gates: Gates
) -> Tasks | None:
    """A task's records, replayed beside those of all that it ever depended on and of the sessions
    that held it; None if one of them cannot be read. Only what its own records up to a seq break is
    found. The gates are shown what hosts reported of these sessions.
    """
    ignored, reasons = Findings(), dict[str, list[str | None]]()
    known = Sessions(ignored)
    replay = Tasks(found, known, whole=False)
    for row in rows:
        replay.found = found if row.task == id and row.seq <= last else ignored
        said = read_one(row)
        if said is None and row.body is not None:
            return None
        if row.kind == "session.open":
            known.open(row, said, None)
        elif row.kind == "session.seal":
            known.seal(row, said, None)
            gates.seal(row.session)
        elif row.kind == "deed":
            gates.deed(row, said)
        elif row.kind == "deed.text":
            gates.text(row, said)
        elif row.kind == "thought":
            replay.name(row)
            reasons.setdefault(row.call, []).append(row.task)
        elif row.kind in ("task", "task.text"):
            replay.take(row, said, lambda row: reasons.get(row.call, ()))
            if replay.found is found:
                gates.task(row, said, lambda row: reasons.get(row.call, ()))
    return replay


def _needed_for(db: Connection, id: str) -> set[int]:
    """The records that name a task, or what it ever depended on, the ends of its holders, and the
    deeds of a session whose commands were its evidence."""
    own = ledger.rows_of_task(db, id)
    reads: list[Callable[[], list[int]]] = []
    for row in own:
        said = read_one(row) if row.kind == "task" else None
        if isinstance(said, TaskFields):
            for other in said.set.get("depends_on", (None, ()))[1] or ():
                reads.append(partial(ledger.seqs_of_task, db, other))
            for holder in filter(None, said.set.get("holder", ())):
                reads.append(partial(sessions.ends_of, db, holder))
            if said.gated is not None and row.session is not None:
                reads.append(partial(ledger.deeds_of, db, row.session))
    db.look_ahead(reads)
    return {row.seq for row in own}.union(*(read() for read in reads))
