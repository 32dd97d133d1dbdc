"""Whether what was observed of a session satisfies its project's rule for DONE.

The evidence is a deed: the end of a command, reported in time, bound to the session, with the exit
code that is wanted. Whatever cannot be told does not pass.
"""

from collections.abc import Iterable
from functools import partial
from typing import NamedTuple

from colibri.core.canonical import MAX_INTEGER
from colibri.core.errors import Refused
from colibri.core.gates import FILE, RUNS, Done, Gates, is_like, matches
from colibri.core.ledger import HUMAN, load
from colibri.store.connection import Connection


class Run(NamedTuple):
    """The end of a command; None for a command that is erased, and for a begin not known."""

    seq: int
    host: str
    exit: int | None
    late: str | None
    begun: int | None
    command: str | None


class Judged(NamedTuple):
    """The record of the run that satisfies the rule, or what is wrong and what to do about it."""

    evidence: int | None
    reason: str | None = None
    problem: str = ""
    found: int | None = None  # the newest run of the command
    last_edit: int | None = None


def gate_of(
    db: Connection, gates: Gates, task: str, session: str | None, *, waives: bool
) -> dict[str, object] | None:
    """What the record of a move to DONE says of its gate; None without one; ERR_GATE."""
    if gates.problem is not None:
        message, reason = f"{task} cannot be DONE: {gates.problem}", "not-recorded"
        if gates.done is None:
            message, reason = f"{message}; then start the server again", "unreadable"
        raise Refused("ERR_GATE", message, task_id=task, reason=reason)
    rule = gates.done
    if rule is None:
        return None
    judged = judge(db, rule, session)
    said = {name: getattr(rule, name) for name in ("command", "exit", "after_last_edit")}
    gate = {**said, "digest": gates.digest, "evidence": [judged.evidence]}
    if judged.evidence is not None:
        return gate
    if waives:
        return {**gate, "evidence": [], "waived": True}
    raise Refused(
        "ERR_GATE",
        f"{task} cannot be DONE: {FILE} wants {rule}, seen by your host: {judged.problem}",
        task_id=task,
        reason=judged.reason,
        found=judged.found,
        last_edit=judged.last_edit,
        **said,
    )


def need(db: Connection, gates: Gates, holder: str | None) -> str | None:
    """What the rule still asks for before a task that a session holds can be DONE."""
    if gates.problem is not None:
        return f"a rule that can be used: {gates.problem}"
    if gates.done is None:
        return None
    if holder is None:
        return f"{gates.done}, seen by the host of the session that holds the task"
    judged = judge(db, gates.done, holder)
    seen = f"{gates.done}, seen by the host of {holder}: {judged.problem}"
    return None if judged.evidence is not None else seen


def may_waive(agent: str | None, *, with_thought: bool) -> bool:
    """A person may, with a reason."""
    return with_thought and (agent or "").startswith(HUMAN)


def judge(db: Connection, rule: Done, session: str | None) -> Judged:
    """The newest run of a session that satisfies a rule, or why its newest does not."""
    if session is None:
        what = "the call names no session, and commands are seen by session: give session_id"
        return Judged(None, "missing", what)
    edit = last_edit(db, session)
    runs = runs_of(db, session)
    first: Judged | None = None
    for run in runs:
        if run.command is not None and matches(rule.command, run.command):
            wrong = _fault(rule, run) or _age_fault(db, rule, run, session, edit)
            if wrong is None:
                return Judged(run.seq)
            first = first or Judged(None, *wrong, run.seq, edit)
    return first or _missing(rule, runs, edit)


_BY_PERSON = "have a person move the task: colibri move TASK DONE --why TEXT"


def _fault(rule: Done, run: Run) -> tuple[str, str] | None:
    """What keeps a run of the right command from being evidence, whenever it ran."""
    here = f"its newest run (record {run.seq})"
    if run.late is not None:
        return "late", f"{here} was reported late, so it proves nothing: run it again"
    if run.exit is None:
        return "no-exit", (
            f"{here} has no exit code: {run.host} does not report it, or the command went on in the"
            f" background; run it in the foreground, or {_BY_PERSON}"
        )
    if run.exit != rule.exit:
        return "failed", f"{here} ended with exit code {run.exit}: correct that and run it again"
    return None


def _age_fault(
    db: Connection, rule: Done, run: Run, session: str, edit: int | None
) -> tuple[str, str] | None:
    """Whether a run began before the last edit, or may have."""
    here = f"its newest run (record {run.seq})"
    if not rule.after_last_edit or edit is None:
        return None
    if run.begun is not None:
        old = f"{here} began before the last edit (record {edit}): run it again"
        return ("older", old) if run.begun < edit else None
    what = f"whether {here} began after the last edit (record {edit}) is not known"
    if _reports_begins(db, session, run.host):
        return "unknown-begin", f"{what}: run it again, by itself"
    return "no-begin", (
        f"{what}, and running it again does not help: the hooks of {run.host} report only how"
        f" commands end; {_BY_PERSON}, or finish it on a host that reports both (docs/gates.md)"
    )


def _reports_begins(db: Connection, session: str, host: str) -> bool:
    """Whether a host has reported of a session that a command began."""
    found = db.execute(
        "SELECT 1 FROM deeds WHERE session = ? AND class = 'run' AND event = 'tool.begin'"
        " AND host = ? LIMIT 1",
        (session, host),
    )
    return found.fetchone() is not None


def _missing(rule: Done, runs: list[Run], edit: int | None) -> Judged:
    if not runs:
        what = (
            "no command of this session was seen: are the hooks of your host installed?"
            " colibri doctor tells"
        )
        return Judged(None, "missing", what, None, edit)
    for run in runs:
        if run.command is not None and is_like(rule.command, run.command):
            what = (
                f"the command of record {run.seq} does not count: it has a shell operator, a secret"
                " or is too long to be kept whole; run it by itself"
            )
            return Judged(None, "operator", what, run.seq, edit)
    what = f"it is not among the last {RUNS} commands of this session: run it"
    return Judged(None, "missing", what, None, edit)


def evidence_of(db: Connection, tasks: Iterable[str]) -> set[int]:
    """The deeds that were named when these tasks became DONE, and their texts."""
    moves = "SELECT body FROM ledger WHERE task = ? AND kind = 'task'"
    bodies = [body for task in tasks for (body,) in db.execute(moves, (task,)).fetchall()]
    query = (
        "SELECT seq FROM ledger WHERE seq = ? AND kind = 'deed' OR seq = ? AND kind = 'deed.text'"
    )
    named = {seq for body in bodies for seq in _evidence(body)}
    reads = [partial(db.execute, query, (one, one + 1)) for one in named]
    db.look_ahead(reads)
    return {seq for read in reads for (seq,) in read()}


def _evidence(body: bytes | None) -> list[int]:
    """The deeds that a move names; of a damaged record, which a verifier will report, none."""
    try:
        found = load(body or b"null")["gate"]["evidence"]
        return [one for one in found if type(one) is int and 0 < one <= MAX_INTEGER]
    except (ValueError, KeyError, TypeError):
        return []


def last_edit(db: Connection, session: str) -> int | None:
    """The last time that a session edited a file, or began to; a late report counts too."""
    seq: int | None = db.execute(
        "SELECT seq FROM deeds WHERE session = ? AND class = 'edit' AND event <> 'tool.denied'"
        " ORDER BY seq DESC LIMIT 1",
        (session,),
    ).get
    return seq


def runs_of(db: Connection, session: str) -> list[Run]:
    """The last commands of a session that have ended, the newest first."""
    rows = db.execute(
        "SELECT d.seq, d.host, d.exit, d.late, d.host_session, d.host_agent, d.use, l.body"
        " FROM deeds AS d"
        " LEFT JOIN ledger AS l ON l.seq = d.seq + 1 AND l.call = d.call"
        " WHERE d.session = ? AND d.class = 'run' AND d.event IN ('tool.end', 'tool.failed')"
        " ORDER BY d.seq DESC LIMIT ?",
        (session, RUNS),
    ).fetchall()
    return [
        Run(
            seq,
            name,
            exit,
            late,
            _begin_of(db, session, seq, (host, agent, use)),
            None if body is None else load(body)["command"],
        )
        for seq, name, exit, late, host, agent, use, body in rows
    ]


def _begin_of(
    db: Connection, session: str, seq: int, use: tuple[str | None, str | None, str | None]
) -> int | None:
    """Where a command began that ended in a record: the deed before it with the same ids, if that
    came in time. Of a host that gives no id for each command, none other may have been running.
    """
    before = db.execute(
        "SELECT seq, event, late FROM deeds WHERE session = ? AND class = 'run' AND seq < ?"
        " AND host_session IS NOT DISTINCT FROM ? AND host_agent IS NOT DISTINCT FROM ?"
        " AND use IS NOT DISTINCT FROM ? ORDER BY seq DESC LIMIT 2",
        (session, seq, *use),
    ).fetchall()
    events = [event for _, event, _ in before]
    alone = events[:1] == ["tool.begin"] and events[1:] != ["tool.begin"]
    return int(before[0][0]) if alone and before[0][2] is None else None
