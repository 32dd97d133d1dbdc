"""The tool that verifies the log: all of it, or what concerns a session or a task."""

from functools import partial
from typing import Annotated

from msgspec import Meta, Struct

from colibri.core import report as core
from colibri.core import witness
from colibri.core.modes import Capability
from colibri.store import sessions, tasks
from colibri.tools.text import SessionId, TaskId
from colibri.tools.tool import Answer, Read, Work, tool


class Verify(Struct, forbid_unknown_fields=True, omit_defaults=True):
    session_id: Annotated[SessionId | None, Meta(description="only this session")] = None
    task_id: Annotated[TaskId | None, Meta(description="only this task")] = None

    def __post_init__(self) -> None:
        if self.session_id is not None and self.task_id is not None:
            raise ValueError("give session_id or task_id, not both")


class Broken(Answer):
    seq: int | None
    what: str
    detail: str


class Head(Answer):
    seq: int
    leaf: str


class OpenCall(Answer):
    seq: int
    call: str
    tool: str | None
    server: str | None
    at: str


class Note(Answer):
    code: str
    detail: str


class Verdict(Answer):
    valid: bool
    record_count: int
    broken_count: int
    first_broken_at: int | None
    breaks: list[Broken]
    head: Head | None
    open_call_count: int
    open_calls: list[OpenCall]
    erased_count: int
    erased: list[int]
    not_checked: list[Note]
    witnesses: list[str]
    held_to: int | None
    newer: int | None


@tool(
    "audit_verify_chain",
    "Verify the ledger",
    "Check the account, or only what concerns one session or task: recompute every"
    " hash, replay the rules, compare the tables and the heads that were kept outside. Says whether"
    " it is valid, what is broken, which calls have not ended and what was not checked.",
    capability=Capability.VERIFY,
    pattern="A",
    sliced=True,
    session="selected",
)
def check(work: Work, args: Verify) -> Verdict:
    # Imported here: only verification needs the checker.
    from colibri.store import task_verification, verify  # noqa: PLC0415

    also: list[Read] = []
    if args.session_id is not None:
        also = [partial(sessions.get, work.db, args.session_id)]
    elif args.task_id is not None:
        also = task_verification.ask(work.db, args.task_id)
    with verify.at_once(work.db, also):
        return _check(work, args)


def _check(work: Work, args: Verify) -> Verdict:
    from colibri.store import heads, task_verification, verify  # noqa: PLC0415

    if strange := work.db.engine.foreign(work.db):  # then nothing that it returns can be trusted
        return _verdict(core.only("foreign-schema", strange))
    if args.session_id is not None:
        return _verdict(
            verify.verify_session(work.db, args.session_id, upto=work.before, pause=work.pause)
        )
    if args.task_id is not None:
        tasks.get(work.db, args.task_id)
        return _verdict(task_verification.verify_task(work.db, args.task_id, upto=work.before))
    kept = heads.of(work.db, work.config.ledger_name, work.config.state, others=True)
    report = verify.verify(work.db, upto=work.before, witnesses=kept, pause=work.pause)
    if report.valid:
        damage = work.db.engine.damaged(work.db, pause=work.pause)
        report = report.with_breaks(core.Break(None, "damaged-file", what) for what in damage)
    if report.valid and not report.unread and report.head is not None:
        work.set_verified(report.head.seq)
    return _verdict(report)


def _verdict(report: core.Report) -> Verdict:
    return Verdict(
        valid=report.valid,
        record_count=report.record_count,
        broken_count=report.broken_count,
        first_broken_at=report.first_broken_at,
        breaks=[Broken(seq, what, _shown(detail)) for seq, what, detail in report.breaks],
        head=Head(report.head.seq, report.head.leaf.hex()) if report.head else None,
        open_call_count=len(report.open_calls),
        open_calls=[_open(call) for call in report.open_calls[: core.MAX_LISTED]],
        erased_count=len(report.erased),
        erased=list(report.erased[: core.MAX_LISTED]),
        not_checked=[Note(code, _shown(detail)) for code, detail in report.not_checked],
        witnesses=[_shown(one) for one in _told(report)],
        held_to=report.held_to,
        newer=report.newer,
    )


def _told(report: core.Report) -> list[str]:
    judged = report.witnesses or ()
    return [*filter(None, [witness.held(judged, report.newer or 0)]), *witness.remarks(judged)]


def _open(call: core.OpenCall) -> OpenCall:
    tool, server = (None if text is None else _shown(text) for text in (call.tool, call.server))
    return OpenCall(call.seq, call.call, tool, server, call.at)


def _shown(text: str) -> str:
    """Someone else may have written a lone surrogate into the database; no answer can hold it."""
    return text.encode(errors="backslashreplace").decode()
