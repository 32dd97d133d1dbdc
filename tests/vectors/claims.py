"""Who holds a task, which process continues a session, and calls that are sent again."""

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tests.vectors.builder import (
    ZEROS,
    Draft,
    Late,
    Log,
    Made,
    Object,
    b64,
    bundle_of,
    digest,
    headers,
    log_bundle,
    session_bundle,
    task_bundle,
    uuid,
)
from tests.vectors.honest import expect
from tests.vectors.vector import Vector

A, B, P = "S-A", "S-B", "S-P"  # P is a person's
T, FREE, SMALL = "T-0001", "T-0002", "T-0003"
PERSON = "human:eve"
SECOND = "the second process"


@dataclass
class Call:
    """The drafts of a call: its enter, what it changes, its exit."""

    enter: Draft
    changes: list[Draft] = field(default_factory=list)
    exit: Draft = field(init=False)


@dataclass
class Story:
    """A log, and its calls by name."""

    log: Log = field(default_factory=Log)
    calls: dict[str, Call] = field(default_factory=dict)

    def change(  # noqa: PLR0913 - what a call can say
        self,
        name: str,
        session: str | None,
        *steps: Object,
        task: str = T,
        tool: str = "task_update",
        agent: str | None = None,
        say: str | None = None,
        taken: Late | None = None,
        server: str = "server",
    ) -> Call:
        """A call that changes a task, with a record for each step, after a thought about it."""
        named = {"session": session, "task": task, "agent": agent}
        is_update = tool == "task_update"
        arguments: Object = {"task_id": task} if is_update else {"claim": True}
        call = self._enter(name, tool, arguments, named if is_update else {**named, "task": None})
        call.enter.body["server"] = uuid(server)
        if say is not None:
            arguments["thought"] = {"type": "decision", "content": digest(say)}
            call.changes.append(self._thought(call.enter.call, named, say))
        log = self.log
        for step in steps:
            log.versions[task] += 1
            made = {field: [log.fields[task].get(field), step[field]] for field in step}
            body: Object = {"task_id": task, "version": log.versions[task], "attempt": 1}
            body |= {"set": made} | ({} if taken is None else {"taken": taken})
            call.changes.append(log.add("task", call.enter.call, body, **named))
            log.fields[task].update(step)
        self._exit(call).task = task
        return call

    def think(self, name: str, session: str, *, key: str | None = None) -> Call:
        """A thought about no task."""
        arguments: Object = {"session_id": session, "content": digest("so be it")}
        arguments |= {} if key is None else {"key": key}
        call = self._enter(name, "thought_record", arguments, {"session": session})
        call.changes.append(self._thought(call.enter.call, {"session": session}, "so be it"))
        self._exit(call)
        return call

    def resume(self, name: str, session: str, server: str) -> Call:
        arguments = {"session_id": session, "resume": True}
        call = self._enter(name, "audit_session_start", arguments, {"session": session})
        call.enter.body["server"] = uuid(server)
        body = {"server": uuid(server)}
        call.changes.append(self.log.add("session.resume", call.enter.call, body, session=session))
        self._exit(call)
        return call

    def create(self, name: str, task: str, *, key: str | None = None) -> Call:
        place = len(self.log.drafts)
        self.log.create(task)
        enter, *changes, left = self.log.drafts[place:]
        enter.body["arguments"] |= {} if key is None else {"key": key}
        self.calls[name] = call = Call(enter, changes)
        call.exit = left
        return call

    def repeat(self, name: str, first: str, session: str | None = None) -> Call:
        """The same call once more."""
        body = self.calls[first].enter.body
        call = self._enter(name, body["tool"], body["arguments"], {"session": session})
        self._exit(call).body["repeats"] = seq_of(self.calls[first].enter)
        return call

    def _enter(self, name: str, tool: str, arguments: Object, named: Object) -> Call:
        self.calls[name] = call = Call(self.log.enter(tool, arguments, **named))
        return call

    def _exit(self, call: Call) -> Draft:
        call.exit = self.log.exit(call.enter)
        return call.exit

    def _thought(self, call: str, named: Object, text: str) -> Draft:
        session = named["session"]

        def before(made: Made) -> str:
            places = made.thoughts(session)
            return made.leaves[places[-1]].hex() if places else ZEROS

        body: Object = {
            "thought_id": lambda made: f"R-{len(made.headers) + 1}",
            "index": lambda made: len(made.thoughts(session)),
            "type": "decision",
            "content": text,
            "prev": before,
        }
        return self.log.add("thought", call, body, **named)


def seq_of(draft: Draft) -> Late:
    return lambda made: 1 + made.places[id(draft)]


def silent_since(call: Call) -> Late:
    """What the record of a take-over says."""
    return lambda made: {"last": 1 + made.places[id(call.exit)], "minutes": 61}


def told() -> Story:
    """All that is allowed.

    A claims a task and moves it, B takes it over, a person releases it, somebody without a session
    moves it, A goes on in another process and ends it in one call. What B holds when it is sealed
    is free; A moves it and gives it up for good. A task and a thought are sent twice.
    """
    story = Story()
    log, change = story.log, story.change
    for session in (A, B, P):
        log.start(session)
    story.create("made", T)
    change("claim", A, {"holder": A}, tool="task_next_actions")
    begin = change("begin", A, {"status": "GATHER"})
    log.exit(log.enter("task_get", {"task_id": T}, session=A, task=T), "refused", "ERR_BUSY")
    change("takeover", B, {"status": "ANALYZE", "holder": B}, taken=silent_since(begin))
    change("edit", B, {"priority": "high"})
    change("release", P, {"holder": None}, agent=PERSON, say="B is on holiday")
    change("nobody", None, {"status": "PLAN"})
    story.resume("resume", A, SECOND)
    steps: list[Object] = [{"status": "APPLY", "holder": A}, {"status": "VERIFY"}]
    change("finish", A, *steps, {"status": "DONE"}, say="it holds", server=SECOND)
    story.create("first", FREE, key="k")
    story.repeat("again", "first", B)
    change("held", B, {"holder": B}, task=FREE)
    story.think("thought", B, key="k")
    story.repeat("thought again", "thought", B)
    log.seal(B)
    log.fields[FREE]["holder"] = None
    change("freed", A, {"status": "GATHER", "holder": A}, task=FREE, server=SECOND)
    change("cancel", A, {"status": "CANCELLED"}, task=FREE, say="not needed", server=SECOND)
    story.create("small", SMALL)
    change("own", A, {"holder": A}, task=SMALL, server=SECOND)
    return story


def vectors() -> Iterator[Vector]:
    yield from good()
    for tell in (sessions, processes, holding, changing, takeovers, repeats, calls, payloads):
        for name, says, code, lie in tell():
            story = told()
            at = lie(story)
            place = next(n for n, draft in enumerate(story.log.drafts, 1) if draft is at)
            yield Vector(f"claims-{name}", says, log_bundle(story.log), code, place)
    yield from parts()


Lie = Callable[[Story], Draft]  # it answers where the lie is told
Lies = Iterator[tuple[str, str, str, Lie]]


def vector(name: str, says: str, bundle: Object, expected: Object) -> Vector:
    return Vector(f"claims-{name}", says, bundle, verdict="good", expect=expected)


def good() -> Iterator[Vector]:
    says = "a task claimed, taken over, released by a person, ended in a resumed session; repeats"
    silent = {"also_not_checked": "takeover"}
    yield vector("log", says, log_bundle(told().log), expect("log", "open", **silent))
    log = told().log
    sealed = session_bundle(log, B, [T, FREE], tail=True)
    says = "the session that took a task over, and was sealed holding another"
    yield vector("session", says, sealed, expect("session", "yes", **silent))
    opened = session_bundle(log, A, [T, FREE, SMALL])
    says = "the session that lost a task; why a person released it is another's to disclose"
    yield vector("session-resumed", says, opened, expect("session", "open", **silent))
    bundle = task_bundle(log, T)
    says = "a task with all who held it"
    yield vector("task", says, bundle, expect("task", "open", gaps=True, **silent))
    bundle = task_bundle(log, FREE)
    says = "a claim that ended with its session, and a reason to cancel"
    yield vector("task-cancelled", says, bundle, expect("task", "open", gaps=True))
    yield from good_corners()


def good_corners() -> Iterator[Vector]:
    story = Story()
    story.create("made", T)
    story.create("other", FREE)
    story.log.start(B, FREE)
    story.log.start(A, T)
    story.change("held", B, {"holder": B})
    says = "who holds its task works on another, which does not come along"
    expected = expect("session", "open", gaps=True)
    yield vector("session-of-a-holder", says, session_bundle(story.log, A, [T]), expected)
    story = told()
    story.calls["resume"].enter.body["arguments"]["intent"] = digest("another intent")
    says = "who resumes a session may state an intent, which changes nothing"
    yield vector("resume-with-intent", says, log_bundle(story.log), expect("log", "open"))
    says = "the first of two calls with the same key is another session's"
    yield vector(
        "repeat-not-disclosed",
        says,
        _without_first(),
        expect("session", "yes", gaps=False, also_not_checked="repeats"),
    )
    story = told()
    late = story.change("late", A, {"priority": "high"}, task=SMALL)
    story.log.erase(late.enter)
    erased = len(story.log.drafts) - 3
    says = "which process made a change is erased"
    expected = expect("log", "open", erased=[erased])
    yield vector("server-erased", says, log_bundle(story.log), expected)
    story = told()
    left = story.repeat("late", "first")
    first = story.create("after", "T-0004", key="other")
    left.exit.body["repeats"] = seq_of(first.enter)
    story.log.drafts.append(story.log.drafts.pop(story.log.drafts.index(left.exit)))
    says = "the call that did the work was entered after the one that repeats it"
    yield vector("repeat-entered-first", says, log_bundle(story.log), expect("log", "open"))


def _without_first() -> Object:
    """A session that is told about no task but sends a call again that another has made."""
    story = Story()
    story.log.start(B)
    story.create("first", FREE, key="k")
    story.repeat("again", "first", B)
    story.think("thought", B)
    story.log.seal(B)
    return session_bundle(story.log, B)


def sessions() -> Lies:
    """S1: what names a session lies between its opening and its seal."""

    def after(session: str, **step: object) -> Lie:
        return lambda story: story.change("lie", session, dict(step), task=SMALL).changes[0]

    def text(story: Story) -> Draft:
        (draft,) = story.change("lie", B, {"title": "another"}, task=SMALL).changes
        draft.kind = "task.text"
        del draft.body["attempt"]
        return draft

    def freed(story: Story) -> Story:
        story.change("free", A, {"holder": None}, task=SMALL, server=SECOND)
        return story

    def when_free(lie: Lie) -> Lie:
        return lambda story: lie(freed(story))

    late = "change-after-seal"
    yield "change-after-seal", "a priority", late, when_free(after(B, priority="high"))
    yield "claim-after-seal", "a claim", late, when_free(after(B, holder=B))
    yield "text-after-seal", "a title", late, when_free(text)
    resumed: Lie = lambda story: story.resume("lie", B, SECOND).changes[0]  # noqa: E731
    yield "resume-after-seal", "a resumption", late, resumed
    early = "outside-session"
    yield "change-unopened", "a session not opened", early, when_free(after("S-X", priority="low"))
    never: Lie = lambda story: story.resume("lie", "S-X", SECOND).changes[0]  # noqa: E731
    yield "resume-unopened", "a session not opened", early, never


def processes() -> Lies:
    """S2: only the process that went on with a session last works in it."""

    def sealing(story: Story) -> Draft:
        return story.log.seal(A)

    def another(story: Story) -> Draft:
        story.calls["resume"].changes[0].body["server"] = uuid("a third")
        for call in story.calls.values():
            if call.enter.body["server"] == uuid(SECOND):
                call.enter.body["server"] = uuid("a third")
        story.calls["resume"].enter.body["server"] = uuid(SECOND)
        return story.calls["resume"].changes[0]

    code = "wrong-server"
    edit: Lie = lambda story: story.change("lie", A, {"priority": "low"}, task=SMALL).changes[0]  # noqa: E731
    yield "older-process-changes", "a priority, by the first process", code, edit
    yield (
        "older-process-thinks",
        "by the first process",
        code,
        lambda story: story.think("lie", A).changes[0],
    )
    yield "older-process-seals", "by the first process", code, sealing
    yield "resumed-for-another", "the process is not that of the call", code, another


def holding() -> Lies:
    """H1, H4: which session a record may make the holder, and when it must."""

    def given(story: Story) -> Draft:
        story.calls["own"].changes[0].body["set"]["holder"][1] = P
        return story.calls["own"].changes[0]

    def by_nobody(story: Story) -> Draft:
        call = story.calls["own"]
        call.enter.session = call.changes[0].session = call.exit.session = None
        return call.changes[0]

    def unclaimed(story: Story) -> Draft:
        del story.calls["freed"].changes[0].body["set"]["holder"]
        return story.calls["freed"].changes[0]

    code = "wrong-holder"
    yield "for-another", "a session claims for another", code, given
    yield "for-a-session-by-nobody", "no session claims", code, by_nobody
    yield (
        "move-without-claim",
        "a session moves what nobody holds, and takes it not",
        code,
        unclaimed,
    )
    yield (
        "cancelled-without-a-reason",
        "no thought about it",
        "missing-evidence",
        lambda story: _without_thought(story, "cancel").changes[-1],
    )


def _without_thought(story: Story, name: str) -> Call:
    call = story.calls[name]
    story.log.drafts.remove(call.changes.pop(0))
    del call.enter.body["arguments"]["thought"]
    return call


def changing() -> Lies:
    """H2: while a session holds a task, nobody else changes it; a person may release it."""
    code = "claimed-change"

    def by(session: str | None, *steps: Object, **options: object) -> Lie:
        def lie(story: Story) -> Draft:
            return story.change("lie", session, *steps, task=SMALL, **options).changes[-1]  # type: ignore[arg-type]

        return lie

    def text(story: Story) -> Draft:
        draft = by(P, {"title": "another"})(story)
        draft.kind = "task.text"
        del draft.body["attempt"]
        return draft

    def elsewhere(story: Story) -> Draft:
        draft = by(P, {"holder": None}, agent=PERSON, say="because")(story)
        call = story.calls["lie"]
        call.changes[0].task = call.enter.task = None
        return draft

    yield "change-of-a-claimed-task", "a priority", code, by(P, {"priority": "low"})
    yield "change-by-nobody", "without a session", code, by(None, {"priority": "low"})
    yield "text-of-a-claimed-task", "a title", code, text
    yield "move-of-a-claimed-task", "a status", code, by(P, {"status": "GATHER"})
    released: Object = {"holder": None}
    yield "release-by-another", "it is no person", code, by(P, released, say="because")
    yield "release-without-a-reason", "no thought", code, by(P, released, agent=PERSON)
    yield "release-for-another-task", "the thought is about no task", code, elsewhere
    both = {"holder": None, "priority": "low"}
    yield (
        "release-and-more",
        "a priority, too",
        code,
        by(P, both, agent=PERSON, say="because"),
    )


def takeovers() -> Lies:
    """H3: a take-over says since when the old holder was silent; nothing else does."""
    code = "wrong-takeover"

    def at(name: str, last: Late | None) -> Lie:
        def lie(story: Story) -> Draft:
            draft = story.calls[name].changes[-1]
            if last is None:
                del draft.body["taken"]
            else:
                draft.body["taken"] = lambda made: {"last": last(made), "minutes": 61}
            return draft

        return lie

    def of(call: str, part: str) -> Lie:
        def lie(story: Story) -> Draft:
            return at("takeover", seq_of(getattr(story.calls[call], part)))(story)

        return lie

    def refused(story: Story) -> Draft:
        left = next(draft for draft in story.log.drafts if draft.body.get("code") == "ERR_BUSY")
        return at("takeover", seq_of(left))(story)

    def alive(story: Story) -> Draft:
        """The holder has read something meanwhile."""
        log, taking = story.log, story.calls["takeover"]
        place = log.drafts.index(taking.enter)
        log.exit(log.enter("task_list", {}, session=A))
        log.drafts[place:place] = [log.drafts.pop(-2), log.drafts.pop(-1)]
        return taking.changes[0]

    one: Late = lambda made: 1  # noqa: E731
    yield "takeover-unsaid", "it says nothing", code, at("takeover", None)
    yield "takeover-from-who-lives", "a call ended since", code, alive
    yield "takeover-before-the-last-sign", "an older exit", code, of("claim", "exit")
    yield "takeover-since-an-enter", "not an exit", code, of("begin", "enter")
    yield "takeover-since-a-refusal", "a refused call", code, refused
    yield "takeover-since-another", "of another session", code, of("made", "exit")
    itself: Lie = lambda story: at(  # noqa: E731
        "takeover", seq_of(story.calls["takeover"].changes[0])
    )(story)
    yield "takeover-since-itself", "its own record", code, itself
    yield "takeover-of-what-is-free", "nobody held it", code, at("own", one)
    yield "takeover-of-its-own", "it holds the task", code, at("edit", one)
    yield "takeover-of-what-was-sealed", "the claim had ended", code, at("freed", one)
    yield "takeover-in-a-release", "it releases", code, at("release", one)

    def new(story: Story) -> Draft:
        story.calls["small"].changes[0].body["taken"] = {"last": 1, "minutes": 1}
        return story.calls["small"].changes[0]

    yield "takeover-of-what-is-new", "it creates the task", code, new


def repeats() -> Lies:
    """R1: a call that is sent again changes nothing and names the one that did the work."""
    code = "bad-repeat"

    def naming(find: Callable[[Story], Late]) -> Lie:
        def lie(story: Story) -> Draft:
            left = story.calls["again"].exit
            left.body["repeats"] = find(story)
            return left

        return lie

    def part(name: str, of: str = "enter") -> Lie:
        return naming(lambda story: seq_of(getattr(story.calls[name], of)))

    yield "repeat-of-itself", "its own enter", code, part("again")
    yield "repeat-of-an-exit", "not an enter", code, part("first", "exit")
    yield "repeat-of-no-key", "a call without a key", code, part("made")
    yield "repeat-of-another-tool", "a thought", code, part("thought")
    yield "repeat-of-what-comes-later", "record 999", code, naming(lambda _: lambda made: 999)

    def second(story: Story) -> Draft:
        left = story.repeat("lie", "first").exit
        left.body["repeats"] = seq_of(story.calls["again"].enter)
        return left

    def failed(story: Story) -> Draft:
        left = story.calls["again"].exit
        left.body |= {"outcome": "refused", "code": "ERR_BUSY"}
        return left

    def of_a_failure(story: Story) -> Draft:
        call = story.repeat("failed", "first")
        call.exit.body |= {"outcome": "refused", "code": "ERR_BUSY", "repeats": None}
        left = story.repeat("lie", "first").exit
        left.body["repeats"] = seq_of(call.enter)
        return left

    def ping(story: Story) -> Draft:
        story.log.ping()
        left = story.log.drafts[-1]
        left.body["repeats"] = seq_of(story.calls["first"].enter)
        return left

    yield "repeat-of-a-repeat", "it has not done the work", code, second
    yield "repeat-that-failed", "it was refused", code, failed
    yield "repeat-of-a-failure", "the first was refused", code, of_a_failure
    yield "repeat-of-a-ping", "no tool with a key", code, ping

    def with_change(story: Story) -> Draft:
        call = story.create("lie", "T-0005", key="k")
        call.exit.body["repeats"] = seq_of(story.calls["first"].enter)
        return call.changes[0]

    yield "repeat-with-a-change", "it makes a task", "stray-change", with_change


def calls() -> Lies:
    """What one call may write."""
    stray = "stray-change"

    def states(story: Story) -> Draft:
        """Nine steps: back and forth between priorities, as states would end."""
        ways: list[Object] = [{"priority": "low" if n % 2 else "high"} for n in range(9)]
        return story.change("lie", A, *ways, task=SMALL, server=SECOND).changes[-1]

    def late_thought(story: Story) -> Draft:
        call = story.calls["finish"]
        place = story.log.drafts.index(call.changes[0])
        story.log.drafts.insert(place + 1, story.log.drafts.pop(place))
        return call.changes[0]

    def two_claims(story: Story) -> Draft:
        call = story.change(
            "lie", A, {"priority": "low"}, {"priority": "high"}, task=SMALL,
            tool="task_next_actions", server=SECOND,
        )  # fmt: skip
        return call.changes[1]

    def both(story: Story) -> Draft:
        call = story.calls["resume"]
        again = copy.deepcopy(call.changes[0])
        story.log.drafts.insert(story.log.drafts.index(call.exit), again)
        return again

    def other_text(story: Story) -> Draft:
        enter = story.calls["finish"].enter
        enter.body["arguments"]["thought"]["content"] = digest("it fails")
        return enter

    def no_thought(story: Story) -> Draft:
        enter = story.calls["own"].enter
        enter.body["arguments"]["thought"] = {"type": "plan", "content": digest("unsaid")}
        return enter

    yield "nine-steps", "in one call", stray, states
    yield "two-claims", "in one task_next_actions", stray, two_claims
    yield "resumed-twice", "in one call", stray, both
    yield "step-before-its-thought", "the thought comes second", stray, late_thought
    yield "thought-of-another-text", "with a change", "wrong-digest", other_text
    yield "thought-unrecorded", "with a claim", "wrong-digest", no_thought


def payloads() -> Lies:
    """What docs/formats.md §3 has no place for."""
    bad = "bad-payload"

    def body(name: str, place: int, **members: object) -> Lie:
        def lie(story: Story) -> Draft:
            call = story.calls[name]
            draft = [call.enter, *call.changes, call.exit][place]
            draft.body |= members
            return draft

        return lie

    yield "client-too-long", "129 characters", bad, body("own", 0, client="x" * 129)
    yield "use-of-another-type", "a number", bad, body("own", 0, use=1)
    yield "repeats-nothing", "record 0", bad, body("own", -1, repeats=0)
    yield "resume-without-a-process", "no uuid", bad, body("resume", 1, server="nobody")
    yield "resume-and-more", "a member more", bad, body("resume", 1, why="why not")
    yield "takeover-in-part", "no minutes", bad, body("takeover", 1, taken={"last": 1})
    yield "takeover-null", "null for nothing", bad, body("own", 1, taken=None)
    yield "holder-is-a-number", "7", bad, body("own", 1, set={"holder": [None, 7]})
    plain = {"task_id": SMALL, "thought": {"content": "in plain words"}}
    yield "thought-in-plain-words", "no digest", bad, body("own", 0, arguments=plain)


def parts() -> Iterator[Vector]:
    """Lies in the bundles of a part of a log."""
    story = told()
    taking = story.calls["takeover"]
    taking.changes[0].body["taken"] = silent_since(story.calls["claim"])
    says = "the task's own records show a later sign of life"
    at = 1 + story.log.drafts.index(taking.changes[0])
    bundle = task_bundle(story.log, T)
    yield Vector("claims-task-takeover", says, bundle, "wrong-takeover", at)
    bundle = session_bundle(story.log, A, [T, FREE, SMALL])
    yield Vector("claims-session-takeover", says, bundle, "wrong-takeover", at)
    yield holder_that_is_no_pair()
    story = told()
    _without_thought(story, "release")
    at = 1 + story.log.drafts.index(story.calls["release"].changes[0])
    says = "a person releases a task without a reason, in the session of its holder"
    bundle = session_bundle(story.log, B, [T, FREE], tail=True)
    yield Vector("claims-session-release", says, bundle, "claimed-change", at)
    story = told()
    lie = story.change("lie", A, {"priority": "low"}, task=SMALL)
    at = 1 + story.log.drafts.index(lie.changes[0])
    bundle = task_bundle(story.log, SMALL)
    says = "a change by an older process"
    yield Vector("claims-task-older-process", says, bundle, "wrong-server", at)
    bundle = session_bundle(story.log, A, [T, FREE, SMALL])
    yield Vector("claims-session-older-process", says, bundle, "wrong-server", at)
    log = told().log
    bundle = task_bundle(log, SMALL)
    there = [header["seq"] for header in headers(bundle)]
    opening = 1 + next(n for n, d in enumerate(log.drafts) if (d.kind, d.session) == OPENING)
    added = bundle_of(log.make(), None, [*there, opening], [*there, opening])
    says = "the opening of a session that has nothing to do with it"
    yield Vector(
        "claims-task-stray", says, {**added, "scope": bundle["scope"]}, "stray-record", opening
    )
    bundle = session_bundle(log, A, [T, FREE, SMALL])
    made, thought = log.make(), told_why(log)
    nonce, body = made.payloads[thought - 1]
    bundle["payloads"][str(thought)] = {"nonce": b64(nonce), "body": b64(body)}
    says = "another session's thought is disclosed"
    yield Vector("claims-session-stray", says, bundle, "stray-payload", thought)


def holder_that_is_no_pair() -> Vector:
    """Reading it to find out what belongs in must not fail."""
    story = told()
    draft = story.calls["own"].changes[0]
    draft.body["set"]["holder"] = 7
    at = 1 + story.log.drafts.index(draft)
    made, bundle = story.log.make(), task_bundle(told().log, SMALL)
    there = [header["seq"] for header in headers(bundle)]
    content = {**bundle_of(made, None, there, there), "scope": bundle["scope"]}
    return Vector("claims-task-holder", "a number for old and new", content, "bad-payload", at)


OPENING = ("session.open", P)


def told_why(log: Log) -> int:
    """Where the person says why."""
    return 1 + next(n for n, d in enumerate(log.drafts) if (d.kind, d.session) == ("thought", P))
