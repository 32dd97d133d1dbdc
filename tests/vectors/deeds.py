"""What hosts reported: deeds, their texts, what they are bound to, and what they do not show."""

from collections.abc import Callable, Iterator
from typing import Any

from tests.vectors.builder import ZEROS, Draft, Late, Log, Object, log_bundle, session_bundle, uuid
from tests.vectors.claims import PERSON, Story, seq_of
from tests.vectors.honest import expect
from tests.vectors.vector import Vector

A, B = "S-A", "S-B"
T, FREE = "T-0001", "T-0002"
HOST = "h-1"
NOTHING: Object = dict.fromkeys(
    (
        *("host_version", "host_session", "host_agent", "use", "tool", "class", "exit"),
        *("duration_ms", "input", "output", "git", "settings", "late"),
    )
)
SETTINGS, NEW_SETTINGS = "5e" * 32, "6f" * 32


class Told:
    """A log in the making, and its deeds by name."""

    def __init__(self) -> None:
        self.story = Story()
        self.deeds: dict[str, Draft] = {}
        self.texts: dict[str, Draft] = {}

    @property
    def log(self) -> Log:
        return self.story.log

    def deed(
        self,
        name: str,
        event: str,
        *,
        bound: bool = True,
        text: Object | None = None,
        **said: object,
    ) -> Draft:
        """One of the session A, about the task T, unless it is not bound."""
        named = {"session": A, "task": T, "agent": None} if bound else {}
        call = uuid("deed", name)
        body = NOTHING | {"host": "claude-code", "event": event, "files": [], "lost": 0}
        body |= {"host_session": HOST} | said
        self.deeds[name] = deed = self.log.add("deed", call, body, **named)
        if text is not None:
            nothing: Object = {"command": None, "paths": [], "tree": ".", "text": None}
            made: Object = {**nothing, **text, "of": seq_of(deed)}
            self.texts[name] = self.log.add("deed.text", call, made, **named)
        return deed

    def tool(self, name: str, tool: str, kind: str, *, end: str = "tool.end", **said: Any) -> None:
        """A tool call from its beginning to its end, with more details."""
        about: Object = {"tool": tool, "class": kind, "use": f"u-{name}"}
        digest = {"sha256": ZEROS, "size": 2}
        self.deed(f"{name} begins", "tool.begin", **about, input=digest)
        self.deed(name, end, **about, input=digest, output=digest, duration_ms=7, **said)


def told() -> Told:
    """A session that claims a task, edits a file, runs a test that fails and one that passes, ends
    the task and seals itself; the call that seals it ends after that."""
    told = Told()
    log, story = told.log, told.story
    told.deed("start", "session.start", bound=False, settings=SETTINGS, host_version="2.1")
    log.start(A)
    story.create("made", T)
    story.change("claim", A, {"holder": A})
    files = [{"n": 0, "sha256": "ab" * 32, "size": 3}, {"n": 1, "sha256": None, "size": None}]
    paths: Object = {"paths": ["src/a.py", None]}
    told.tool("edit", "Edit", "edit", files=files, text=paths)
    red: Object = {"command": "pytest -q"}
    told.tool("red", "Bash", "run", end="tool.failed", exit=1, text=red)
    git = {"branch": "main", "commit": "c0" * 20}
    told.tool("green", "Bash", "run", exit=0, git=git, text=red)
    steps: list[Object] = [{"status": one} for one in ("GATHER", "ANALYZE", "PLAN", "APPLY")]
    story.change("finish", A, *steps, {"status": "VERIFY"}, {"status": "DONE"}, say="it holds")
    sealing: Object = {"tool": "mcp__colibri__merkle_finalize", "class": "mcp", "use": "u-seal"}
    told.deed("sealing", "tool.begin", **sealing).task = None
    log.seal(A)
    told.deed("sealed", "tool.end", bound=False, **sealing)
    told.deed("end", "session.end", bound=False)
    return told


FULL: Object = {
    "deeds": 10,
    "not_ended": [],
    "not_ended_count": 0,
    "unpaired": 0,
    "unseen": [],
    "unseen_count": 0,
    "unjudged": 0,
    "settings_changed": 0,
    "lost": 0,
    "sessions": 1,
    "unreported": 0,
}


def covers(kind: str, sealed: str, also: str | None = None, **coverage: object) -> Object:
    more = {} if also is None else {"also_not_checked": also}
    expected = expect(kind, sealed, gaps=kind == "session", **more)
    return {**expected, "coverage": FULL | coverage}


def good() -> Iterator[Vector]:
    def vector(name: str, says: str, bundle: Object, expected: Object) -> Vector:
        return Vector(f"deeds-{name}", says, bundle, verdict="good", expect=expected)

    says = "a session with all that its host reported"
    yield vector("log", says, log_bundle(told().log), covers("log", "yes"))
    bundle = session_bundle(told().log, A, [T])
    says = "the deeds of a session; the call that sealed it has no end here"
    yield vector("session", says, bundle, covers("session", "yes", deeds=7))
    story = told()
    story.log.erase(story.texts["edit"], story.texts["red"])
    erased = [1 + story.log.drafts.index(story.texts[name]) for name in ("edit", "red")]
    expected = expect("log", "yes", erased=erased)
    says = "commands and paths are erased, what was done stays"
    yield vector("erased", says, log_bundle(story.log), {**expected, "coverage": FULL})
    yield vector(
        "gaps", "what is not known", log_bundle(lacking().log), covers("log", "open", **LACKS)
    )
    yield vector("taken-over", "a deed is a sign of life", log_bundle(alive().log), ALIVE)
    story = told()
    story.deeds["edit begins"].body["unjudged"] = "session"
    says = "an edit that no rule could judge, because its session was not known"
    yield vector("unjudged", says, log_bundle(story.log), covers("log", "yes", unjudged=1))
    yield from reported()


class Watched(Told):
    """A session whose host reports every call: with which ids, and whether also when it begins."""

    def __init__(
        self, *, in_calls: bool = True, in_deeds: bool = True, begins: bool = True
    ) -> None:
        super().__init__()
        self.in_calls, self.in_deeds, self.begins = in_calls, in_deeds, begins
        self.is_watched = True  # until the hooks are taken out
        self.enters: dict[str, Draft] = {}

    def call(self, name: str, make: Callable[[], object], *bound: bool) -> None:
        """A call of ours, and what the host reports when it begins and ends: in the session?"""
        about: Object = {"tool": f"mcp__colibri__{name}", "class": "mcp"}
        use = f"u-{name}"
        about["use"] = use if self.in_deeds else None
        if self.is_watched and self.begins:
            self.deed(f"{name} begins", "tool.begin", bound=bound[0], **about).task = None
        place = len(self.log.drafts)
        make()
        self.enters[name] = enter = self.log.drafts[place]
        enter.body |= {"host_session": HOST, "use": use} if self.in_calls else {}
        if self.is_watched:
            self.deed(name, "tool.end", bound=bound[1], **about).task = None

    def play(self, *, removed_before: str = "") -> "Watched":
        """From the opening to the seal, with a refusal that some hosts report no end of."""
        log = self.log
        steps: list[tuple[str, Callable[[], object], bool, bool]] = [
            ("start", lambda: log.start(A), False, True),
            ("plan", lambda: log.think(A, "plan"), True, True),
            ("look", lambda: log.exit(log.enter("task_list", session=A)), True, True),
            ("decision", lambda: log.think(A, "decision"), True, True),
            ("seal", lambda: log.seal(A), True, False),
        ]
        for name, make, *bound in steps:
            self.is_watched &= name != removed_before
            self.call(name, make, *bound)
        return self

    def seqs(self, *names: str) -> list[int]:
        return [1 + self.log.drafts.index(self.enters[name]) for name in names]


def reported() -> Iterator[Vector]:
    """Every call of ours is reported, or not from some point on."""

    def vector(name: str, says: str, story: Watched, deeds: int, **coverage: object) -> Vector:
        expected = covers("log", "yes", None, deeds=deeds, **coverage)
        return Vector(f"deeds-{name}", says, log_bundle(story.log), verdict="good", expect=expected)

    yield vector("calls", "each call is reported, under its id", Watched().play(), 10)
    bundle = session_bundle(Watched().play().log, A, [])
    says = "the same for the session: the start began before it, and the seal ends after it"
    expected = covers("session", "yes", deeds=8)
    yield Vector("deeds-calls-session", says, bundle, verdict="good", expect=expected)
    story = Watched().play(removed_before="look")
    seqs = story.seqs("look", "decision", "seal")
    says = "the hooks are taken out in the middle of the session"
    yield vector("calls-unseen", says, story, 4, unseen=seqs, unseen_count=3)
    story = Watched(begins=False).play(removed_before="look")
    seqs = story.seqs("look", "decision")
    says = "the same, where only ends are reported: the end of the seal comes after it"
    yield vector("calls-unseen-ends", says, story, 2, unseen=seqs, unseen_count=2, unpaired=2)
    says = "ids in the reports, and none in the calls"
    yield vector("calls-no-use", says, Watched(in_calls=False).play(), 10)
    story = Watched(in_calls=False).play(removed_before="look")
    seqs = story.seqs("look", "decision")
    says = "the same, without hooks from the middle on: the calls after the last report"
    yield vector("calls-no-use-unseen", says, story, 4, unseen=seqs, unseen_count=2)
    says = "no ids at all: which begin and which end belong together is not known"
    story = Watched(in_calls=False, in_deeds=False).play()
    yield vector("calls-no-ids", says, story, 10, unpaired=5)
    says = "ids in the calls, and none in the reports: which call was reported is not known"
    yield vector("calls-no-ids-reported", says, Watched(in_deeds=False).play(), 10, unpaired=5)
    says = "no ids, and no begins"
    story = Watched(in_calls=False, in_deeds=False, begins=False).play()
    yield vector("calls-ends", says, story, 5, unpaired=5)


LACKS: Object = {
    **{"deeds": 5, "unpaired": 1, "settings_changed": 1, "lost": 3, "sessions": 2},
    **{"unreported": 1, "not_ended": [18], "not_ended_count": 1},
}


def lacking() -> Told:
    """Deeds that show that others are missing."""
    told = Told()
    told.deed("start", "session.start", bound=False, settings=SETTINGS)
    for session in (A, B, "S-P"):
        told.log.start(session)
    told.log.drafts[-1].agent = told.log.drafts[-2].agent = told.log.drafts[-3].agent = PERSON
    told.story.create("made", T)
    told.story.change("claim", A, {"holder": A})
    run: Object = {"tool": "Bash", "class": "run"}
    told.deed("begun", "tool.begin", **run, use="u-1")
    told.deed("no id", "tool.begin", **run, lost=3)
    late = "2026-03-01T09:00:00.000000Z"
    told.deed("late", "tool.denied", **run, use="u-2", late=late)
    told.deed("again", "session.start", settings=NEW_SETTINGS)
    return told


def alive() -> Told:
    """A deed that is late is no sign of life; one that is not is the last."""
    told = Told()
    for session in (A, B):
        told.log.start(session)
    told.story.create("made", T)
    told.story.change("claim", A, {"holder": A})
    sign = told.deed("prompt", "prompt")
    told.deed("late", "stop", late="2026-03-01T09:00:00.000000Z")
    taken: Late = lambda made: {"last": 1 + made.places[id(sign)], "minutes": 61}  # noqa: E731
    told.story.change("takeover", B, {"holder": B}, taken=taken)
    return told


ALIVE = covers("log", "open", "takeover", deeds=2, sessions=2, unreported=1)

Lie = Callable[[Told], Draft]  # it answers where the lie is told


Lies = Iterator[tuple[str, str, str, Lie]]


def bind(name: str, **names: str | None) -> Lie:
    """A deed and its text are bound to something else."""

    def lie(told: Told) -> Draft:
        for draft in (told.deeds[name], *filter(None, [told.texts.get(name)])):
            for member, value in names.items():
                setattr(draft, member, value)
        return told.deeds[name]

    return lie


def say(name: str, **said: object) -> Lie:
    def lie(told: Told) -> Draft:
        told.deeds[name].body |= said
        return told.deeds[name]

    return lie


def write(name: str, **said: object) -> Lie:
    def lie(told: Told) -> Draft:
        told.texts[name].body |= said
        return told.texts[name]

    return lie


def call_of(give: Callable[[Told], str]) -> Lie:
    """The last deed has the id of something else."""

    def lie(told: Told) -> Draft:
        told.deeds["end"].call = give(told)
        return told.deeds["end"]

    return lie


def entered_after(told: Told) -> Draft:
    enter = told.log.enter("server_ping")
    enter.call = told.deeds["end"].call
    return enter


def text_apart(told: Told) -> Draft:
    text = told.texts["red"]
    told.log.drafts.remove(text)
    told.log.drafts.append(text)
    return text


def text_of_another(told: Told) -> Draft:
    told.texts["red"].call = told.deeds["edit"].call
    return told.texts["red"]


def text_elsewhere(told: Told) -> Draft:
    told.texts["red"].agent = "another"
    return told.texts["red"]


def text_twice(told: Told) -> Draft:
    text = told.texts["red"]
    again = Draft(text.kind, text.call, dict(text.body), text.session, text.task, text.agent)
    again.body["of"] = seq_of(text)
    told.log.drafts.insert(told.log.drafts.index(text) + 1, again)
    return again


def pairs() -> Lies:
    """A deed has an id of its own, and its text follows it."""
    code = "bad-pair"
    deed, call = lambda told: told.deeds["start"].call, lambda told: told.log.drafts[1].call
    yield "same-id", "two deeds with one id", code, call_of(deed)
    yield "id-of-a-call", "a deed with the id of a call", code, call_of(call)
    yield "id-entered", "a call with the id of a deed", code, entered_after
    yield "text-of-another", "a text with the id of another deed", code, text_of_another
    yield "text-elsewhere", "a text of another agent than its deed", code, text_elsewhere
    yield "text-twice", "a second text", code, text_twice
    yield "text-apart", "a text that does not follow its deed", "bad-payload", text_apart
    yield "no-path", "a file without a path", code, write("edit", paths=["src/a.py"])


def elsewhere(told: Told) -> Draft:
    """Another session is open meanwhile, and gets the command that failed."""
    drafts, names = told.log.drafts, ("red begins", "red")
    place = drafts.index(told.deeds[names[0]])
    told.log.start(B)
    drafts[place:place] = [drafts.pop() for _ in range(3)][::-1]
    for name in names:
        bind(name, session=B)(told)
    return told.deeds[names[0]]


def bindings() -> Lies:
    """What a deed is bound to is open, and held."""
    pair, held = "bad-pair", "wrong-holder"
    late, early = "change-after-seal", "outside-session"
    yield "another-agent", "an agent who has not opened the session", pair, bind("red", agent="x")
    yield "agent-unbound", "an agent without a session", pair, bind("end", agent="x")
    yield "after-seal", "bound to a session that is sealed", late, bind("end", session=A)
    yield "unopened", "bound to a session that nobody opened", early, bind("start", session=A)
    yield "another-session", "bound to a session that does not hold its task", held, elsewhere
    yield "not-held", "about a task that its session does not hold", held, bind("sealing", task=T)
    yield "unknown-task", "about a task that does not exist", held, bind("red", task=FREE)
    yield "task-unbound", "about a task, and of no session", held, bind("end", task=T)


def payloads() -> Lies:
    """What a deed may say."""
    code, many = "bad-payload", [{"n": n, "sha256": None, "size": None} for n in range(65)]
    commit = {"branch": None, "commit": "c" * 41}
    yield "class-of-a-prompt", "a class without a tool", code, say("end", **{"class": "run"})
    yield "no-class", "a tool without a class", code, say("red", **{"class": None})
    yield "exit-of-an-end", "an exit code without a tool", code, say("end", exit=0)
    yield "exit-as-text", "an exit code that is no number", code, say("red", exit="1")
    yield "unknown-event", "an event that there is not", code, say("end", event="end")
    yield "commit", "a commit of 41 digits", code, say("green", git=commit)
    yield "late-as-flag", "late without a time", code, say("end", late=True)
    yield "lost-negative", "fewer than none are lost", code, say("end", lost=-1)
    long = write("red", command="é" * 4097)
    yield "long-command", "a command of 4,097 characters", code, long
    yield "many-files", "65 files", code, say("edit", files=many)
    yield "of-another", "a text that names another deed", code, write("red", of=1)
    yield "member", "one member more", code, say("end", note="x")
    yield "unjudged-run", "no rule for edits judges a command", code, say("red", unjudged="host")
    yield "unjudged-why", "an unknown reason", code, say("edit begins", unjudged="busy")


def vectors() -> Iterator[Vector]:
    yield from good()
    for tell in (pairs, bindings, payloads):
        for name, says, code, lie in tell():
            story = told()
            at = lie(story)
            place = next(n for n, draft in enumerate(story.log.drafts, 1) if draft is at)
            yield Vector(f"deeds-{name}", says, log_bundle(story.log), code, place)
    yield from parts()


def parts() -> Iterator[Vector]:
    """Bundles of a session."""
    story = told()
    story.deeds["red"].agent = story.texts["red"].agent = "another"
    at = 1 + story.log.drafts.index(story.deeds["red"])
    bundle = session_bundle(story.log, A, [T])
    yield Vector("deeds-session-another-agent", "another agent", bundle, "bad-pair", at)
    bundle = session_bundle(told().log, A, [T])
    story = told()
    at = 1 + story.log.drafts.index(story.texts["red"])
    del bundle["payloads"][str(at)]
    says = "the text of a deed is missing, and no erasure names it"
    yield Vector("deeds-session-no-text", says, bundle, "missing-payload", at)
    bundle = session_bundle(story.log, A, [T])
    del bundle["payloads"][str(at - 1)]
    yield Vector("deeds-session-no-deed", "a deed is missing", bundle, "missing-payload", at - 1)
    story.log.erase(story.deeds["red"])
    at = len(story.log.drafts)
    yield Vector("deeds-deed-erased", "a deed is erased", log_bundle(story.log), "bad-erasure", at)
    story = alive()
    last = story.log.drafts[-2]
    last.body["taken"] = lambda made: {"last": seq_of(story.deeds["late"])(made), "minutes": 61}
    says = "a deed that came late passes for the last sign of life"
    at = len(story.log.drafts) - 1
    yield Vector("deeds-late-sign", says, log_bundle(story.log), "wrong-takeover", at)
