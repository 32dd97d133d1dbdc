"""The tools of the decision trail: sessions and thoughts."""

from functools import partial
from operator import attrgetter
from typing import Annotated, Literal

from msgspec import Meta, Struct

from colibri.core.errors import Invalid
from colibri.core.modes import Capability
from colibri.store import brief, sessions, task_needs, tasks, thought_search, trail
from colibri.store.connection import Connection
from colibri.store.keys import Key
from colibri.tools.caller import (
    AgentOf,
    KeyOf,
    SessionOf,
    keep,
    key_reads,
    made_before,
    required,
    session_reads,
)
from colibri.tools.issues import issue
from colibri.tools.text import AgentId, Content, Intent, SessionId, TaskId, ThoughtType, Words
from colibri.tools.tool import (
    MAX_PAGE_BYTES,
    Answer,
    Offset,
    Read,
    Tool,
    Work,
    next_offset,
    tool,
)
from colibri.tools.verification import check

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
        Words | None,
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


@tool(
    "audit_session_start",
    "Start a session",
    "Begin here: open a session for your work, or resume one. Your calls belong to it from then on;"
    " merkle_finalize seals it at the end. The brief says where the work stands.",
    alone=True,
    session="opened",
    opens_work=True,
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
    look = partial(brief.ask, work.db, session.session_id) if args.brief else None
    work.db.look_ahead((*(() if look is None else (look,)), partial(_at_work, work)))
    return Started(
        *(session.session_id, session.intent, session.task_id, session.agent, session.started_at),
        resumed=args.resume,
        note=_note_of_others(work, session.session_id),
        brief=brief.write(work.db, session.session_id) if args.brief else None,
    )


def _note_of_others(work: Work, id: str) -> str | None:
    """Advice for a caller with several open sessions."""
    others = [other for other, _ in _at_work(work) if other != id]
    if not others:
        return None
    return f"name session_id from now on: you also work in {task_needs.named(others)}"


def _record_reads(db: Connection, args: Record, session: str | None) -> list[Read]:
    task = [] if args.task_id is None else [partial(tasks.get, db, args.task_id)]
    keyed = key_reads(db, None if session is None else _key(args, session))
    count: Read = partial(thought_search.count, db)
    return [*session_reads(db, session), *task, *keyed, count]


def _key(args: Record, session: str) -> Key | None:
    return None if args.key is None else Key("thought_record", session, args.key)


def _at_work(work: Work) -> list[tuple[str, str | None]]:
    minutes = work.config.claim_minutes
    return sessions.at_work(work.db, work.caller, now=work.now, minutes=minutes)


@tool(
    "thought_record",
    "Record a thought",
    "Write down why, before and while you act: a plan, an analysis, a decision or,"
    " at the end, a reflection. It is chained to the thought before it in your session and"
    " cannot be changed later. With task_id it is the evidence that a task needs before it ends.",
    pattern="A",
    reads=_record_reads,
    opens_work=True,
)
def record(work: Work, args: Record) -> Recorded:
    session = required(work, "to record a thought")
    if args.task_id is not None:
        tasks.get(work.db, args.task_id)

    key = _key(args, session.session_id)
    made = made_before(work, key)
    if made is not None:
        return Recorded(*(*_fields(trail.get(work.db, made)), True))
    said = {"type": args.type, "content": args.content}
    entry = trail.record(
        work.db, work.record, session, seq=work.next_seq, task=args.task_id, **said
    )
    keep(work, key, entry.seq)
    return Recorded(
        thought_id=trail.thought_id(entry.seq),
        seq=entry.seq,
        index=session.record_count,
        session_id=session.session_id,
        task_id=args.task_id,
        agent_id=work.agent,
        type=args.type,
        content=args.content,
        created_at=work.now,
        prev_hash=session.last_leaf.hex(),
        hash=entry.leaf.hex(),
        repeated=False,
    )


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


TOOLS: tuple[Tool, ...] = (record, find, check, start)
