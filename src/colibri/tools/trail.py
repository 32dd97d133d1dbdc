"""The tools of the decision trail: sessions, thoughts, and verification of the log."""

from operator import attrgetter
from typing import Annotated, Literal

from msgspec import Meta, Struct

from colibri.core import report as core
from colibri.core.errors import Invalid
from colibri.core.modes import Capability
from colibri.store import brief, sessions, tasks, trail
from colibri.store.keys import Key
from colibri.store.sqlite.expected import foreign
from colibri.tools.caller import AgentOf, KeyOf, SessionOf, keep, made_before, required
from colibri.tools.issues import issue
from colibri.tools.text import AgentId, Content, Intent, SessionId, TaskId, ThoughtType
from colibri.tools.tool import MAX_PAGE_BYTES, Answer, Offset, Tool, Work, next_offset, tool

Order = Literal["oldest", "newest", "best"]


class Start(Struct, forbid_unknown_fields=True, omit_defaults=True):
    intent: Annotated[Intent | None, Meta(description="what this session is to achieve")] = None
    task_id: Annotated[TaskId | None, Meta(description="the task it is about")] = None
    session_id: Annotated[
        SessionId | None, Meta(description="an id of your own; else one is made")
    ] = None
    agent_id: Annotated[AgentId | None, Meta(description="your name, for all calls of it")] = None
    resume: Annotated[bool, Meta(description="continue the open session with this id")] = False
    brief: Annotated[bool, Meta(description="whether to say where the work stands")] = True

    def __post_init__(self) -> None:
        if self.resume and self.session_id is None:
            allowed = "the id of an open session"
            raise Invalid([issue("session_id", "is required with resume", allowed)])
        if not self.resume and self.intent is None:
            allowed = "what the session is to achieve, 1 to 2000 characters"
            raise Invalid([issue("intent", "is required for a new session", allowed)])


class Started(Answer):
    session_id: str
    intent: str
    task_id: str | None
    agent_id: str | None
    started_at: str
    resumed: bool
    note: str | None
    brief: str | None


class Record(Struct, forbid_unknown_fields=True, omit_defaults=True):
    type: Annotated[ThoughtType, Meta(description="what kind of thought")]
    content: Annotated[
        Content, Meta(description="what you found or decided and why, for a later reader")
    ]
    task_id: Annotated[TaskId | None, Meta(description="the task it is about")] = None
    key: KeyOf = None
    session_id: SessionOf = None
    agent_id: AgentOf = None


class Thought(Answer):
    thought_id: str
    seq: int
    index: int
    session_id: str
    task_id: str | None
    agent_id: str | None
    type: ThoughtType
    content: str
    created_at: str
    prev_hash: str
    hash: str


class Recorded(Thought):
    repeated: bool


class List(Struct, forbid_unknown_fields=True, omit_defaults=True):
    session_id: Annotated[SessionId | None, Meta(description="only this session")] = None
    task_id: Annotated[TaskId | None, Meta(description="only about this task")] = None
    type: Annotated[ThoughtType | None, Meta(description="only this kind")] = None
    search: Annotated[
        Annotated[str, Meta(max_length=256)] | None,
        Meta(description="any of these words, or longer ones that begin with them"),
    ] = None
    order: Annotated[Order | None, Meta(description="oldest first; with search, best first")] = None
    limit: Annotated[
        int, Meta(ge=1, le=500, description="thoughts per page; fewer if they are long")
    ] = 50
    offset: Offset = 0

    def __post_init__(self) -> None:
        if self.order == "best" and not self.words:
            raise Invalid([issue("order", "best takes a search", "oldest or newest without one")])

    @property
    def words(self) -> str | None:
        """The words to search for; None if there are none."""
        return self.search if self.search and self.search.split() else None


class Page(Answer):
    records: list[Thought]
    total_count: int
    next_offset: int | None


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


@tool(
    "audit_session_start",
    "Start a session",
    "Begin here: open a session for your work, or resume one. Your calls belong to it from then on;"
    " merkle_finalize seals it at the end. The brief says where the work stands.",
    alone=True,
    session="opened",
)
def start(work: Work, args: Start) -> Started:
    caller = work.caller._replace(agent=work.agent)
    if args.resume:
        assert args.session_id is not None
        session = sessions.resume(work.db, work.record, args.session_id, caller=caller)
    else:
        if args.task_id is not None:
            tasks.get(work.db, args.task_id)
        session = sessions.start(
            work.db,
            work.record,
            args.session_id or f"S-{work.new_id('session')}",
            intent=args.intent or "",
            task_id=args.task_id,
            caller=caller,
            gates=work.gates.digest,
            now=work.now,
        )
    return Started(
        *(session.session_id, session.intent, session.task_id, session.agent, session.started_at),
        resumed=args.resume,
        note=_note_of_others(work, session.session_id),
        brief=brief.write(work.db, session.session_id) if args.brief else None,
    )


def _note_of_others(work: Work, id: str) -> str | None:
    """Advice for a caller with several open sessions."""
    minutes = work.config.claim_minutes
    found = sessions.at_work(work.db, work.caller, now=work.now, minutes=minutes)
    others = [other for other, _ in found if other != id]
    if not others:
        return None
    return f"name session_id from now on: you also work in {tasks.named(others)}"


@tool(
    "thought_record",
    "Record a thought",
    "Write down why, before and while you act: a plan, an analysis, a decision or,"
    " at the end, a reflection. It is chained to the thought before it in your session and"
    " cannot be changed later. With task_id it is the evidence that a task needs before it ends.",
    pattern="A",
)
def record(work: Work, args: Record) -> Recorded:
    session = required(work, "to record a thought")
    if args.task_id is not None:
        tasks.get(work.db, args.task_id)

    key = None if args.key is None else Key("thought_record", session.session_id, args.key)
    made = made_before(work, key)
    if made is not None:
        return Recorded(*(*_fields(trail.get(work.db, made)), True))
    thought = trail.record(
        work.db,
        work.record,
        session,
        seq=work.next_seq,
        type=args.type,
        content=args.content,
        task=args.task_id,
    )
    keep(work, key, thought.seq)
    return Recorded(*(*_fields(thought), False))


@tool(
    "thought_record_list",
    "Read the trail",
    "Thoughts, your own or others', page by page: in the order they were recorded, or the best for"
    " the words of search.",
    capability=Capability.BROWSE,
    pattern="A",
    session="selected",
)
def find(work: Work, args: List) -> Page:
    wanted = trail.Filter(session=args.session_id, task=args.task_id, type=args.type)
    found, total = trail.find(
        work.db,
        wanted,
        search=args.words,
        order=args.order or ("best" if args.words else "oldest"),
        limit=args.limit,
        offset=args.offset,
        most_bytes=MAX_PAGE_BYTES,
    )
    records = [Thought(*_fields(thought)) for thought in found]
    return Page(records, total, next_offset(args.offset, len(found), total))


_fields = attrgetter(*Thought.__struct_fields__)  # in their order


@tool(
    "audit_verify_chain",
    "Verify the ledger",
    "Check the account, or only what concerns one session or task: recompute every"
    " hash, replay the rules, compare the tables. Says whether it is valid, what is broken,"
    " which calls have not ended and what was not checked.",
    capability=Capability.VERIFY,
    pattern="A",
    sliced=True,
    session="selected",
)
def check(work: Work, args: Verify) -> Verdict:
    # Imported here: only verification needs the checker.
    from colibri.store import verify  # noqa: PLC0415
    from colibri.store.sqlite import indexes  # noqa: PLC0415

    if strange := foreign(work.db):  # then nothing that it returns can be trusted
        return _verdict(core.only("foreign-schema", strange))
    if args.session_id is not None:
        return _verdict(
            verify.verify_session(work.db, args.session_id, upto=work.before, pause=work.pause)
        )
    if args.task_id is not None:
        tasks.get(work.db, args.task_id)
        return _verdict(verify.verify_task(work.db, args.task_id, upto=work.before))
    report = verify.verify(work.db, upto=work.before, pause=work.pause)
    if report.valid:
        damage = indexes.damaged(work.db, pause=work.pause)
        report = report.with_breaks(core.Break(None, "damaged-file", what) for what in damage)
    if report.valid and report.head is not None:
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
    )


def _open(call: core.OpenCall) -> OpenCall:
    tool, server = (None if text is None else _shown(text) for text in (call.tool, call.server))
    return OpenCall(call.seq, call.call, tool, server, call.at)


def _shown(text: str) -> str:
    """Someone else may have written a lone surrogate into the database; no answer can hold it."""
    return text.encode(errors="backslashreplace").decode()


TOOLS: tuple[Tool, ...] = (record, find, check, start)
