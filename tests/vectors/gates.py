"""Gates: what a move to DONE names as its evidence, true and made up."""

from collections.abc import Callable, Iterator

from tests.vectors.builder import Draft, Object, log_bundle, session_bundle, sha, task_bundle, uuid
from tests.vectors.claims import Story, seq_of
from tests.vectors.honest import FORWARD, expect
from tests.vectors.vector import Vector

A, B, T = "S-agent", "S-other", "T-0001"
PERSON = "human:pat"
RULE: Object = {"command": "pytest*", "exit": 0, "after_last_edit": True}
DEED: Object = {
    **dict.fromkeys(("host_version", "host_session", "host_agent", "use", "tool", "class")),
    **dict.fromkeys(("exit", "duration_ms", "input", "output", "git", "settings", "late")),
    **{"host": "claude-code", "event": "tool.end", "files": [], "lost": 0},
}


class Gated(Story):
    """A task in VERIFY, held by a session that its host reports on."""

    def __init__(self) -> None:
        super().__init__()
        self.names: Object = {"session": A, "task": T}
        for session in (A, B):
            self.log.start(session)
        next(d for d in self.log.drafts if d.session == A).body["gates"] = sha(b"rules").hex()
        self.create("made", T)
        self.change("claim", A, {"status": "GATHER", "holder": A})
        for state in FORWARD[1:]:
            self.change(state, A, {"status": state})
        self.deeds: dict[str, Draft] = {}

    def deed(self, name: str, text: Object | None = None, **said: object) -> Draft:
        call = uuid("deed", name)
        self.deeds[name] = deed = self.log.add("deed", call, {**DEED, **said}, **self.names)
        if text is not None:
            body: Object = {
                "of": seq_of(deed),
                "command": None,
                "paths": [],
                "tree": None,
                "text": None,
            }
            self.deeds[f"{name}.text"] = self.log.add(
                "deed.text", call, {**body, **text}, **self.names
            )
        return deed

    def run(self, name: str, command: object = "pytest -q", **said: object) -> Draft:
        about = {"class": "run", "use": name, "tool": "Bash"}
        self.deed(f"{name} begins", {"command": command}, **{**about, "event": "tool.begin"})
        return self.deed(name, {"command": command}, **{**about, "exit": 0, **said})

    def edit(self, name: str = "edit", **said: object) -> Draft:
        return self.deed(name, {"paths": ["a.py"]}, **{"class": "edit", "use": name, **said})

    def done(self, *evidence: Draft, **gate: object) -> Draft:
        """The move, with the gate that it states."""
        call = self.change("done", A, {"status": "DONE"}, say="it works")
        call.changes[-1].body["gate"] = lambda made: {
            **RULE,
            "digest": sha(b"rules").hex(),
            "evidence": [seq_of(one)(made) for one in evidence],
            **gate,
        }
        return call.changes[-1]


def vectors() -> Iterator[Vector]:
    yield from good()
    for name, says, lie in lies():
        story = Gated()
        at = lie(story)
        seq = 1 + story.log.drafts.index(at)
        yield Vector(f"gate-{name}", says, log_bundle(story.log), "wrong-gate", seq)
    yield from in_parts()


def good() -> Iterator[Vector]:
    def vector(name: str, says: str, content: Object, expected: Object) -> Vector:
        return Vector(name, says, content, verdict="good", expect=expected)

    says = "a task that is DONE after a failed and a good run of the command"
    yield vector("gate", says, log_bundle(_tested().log), expect("log", "open"))
    bundle = session_bundle(_tested().log, A, [T])
    yield vector("gate-session", "the bundle of its session", bundle, expect("session", "open"))
    of_task = expect("task", "open", gaps=True, also_not_checked="gate")
    yield vector("gate-task", "the bundle of the task", task_bundle(_tested().log, T), of_task)
    other = expect("session", "open", also_not_checked="gate")
    bundle = session_bundle(_tested(seen_by=B).log, B, [T])
    yield vector("gate-other-session", "of a session that only read of it", bundle, other)
    story = Gated()
    story.change("waived", A, {"status": "DONE"}, agent=PERSON, say="by hand")
    gate = {**RULE, "digest": sha(b"rules").hex(), "evidence": [], "waived": True}
    story.calls["waived"].changes[-1].body["gate"] = gate
    yield vector(
        "gate-waived", "a person, with a reason", log_bundle(story.log), expect("log", "open")
    )
    story = Gated()
    story.done(story.run("run", "ls"), command="*")
    yield vector("gate-any", "any command will do", log_bundle(story.log), expect("log", "open"))
    story = Gated()
    story.done(story.run("run", "cd app && make test"), command="cd * && make *st")
    says = "operators match themselves"
    yield vector("gate-operators", says, log_bundle(story.log), expect("log", "open"))
    story = Gated()
    run = story.run("run")
    story.edit()
    story.done(run, after_last_edit=False)
    says = "the rule allows an edit after it"
    yield vector("gate-before-edit", says, log_bundle(story.log), expect("log", "open"))
    story = _tested()
    story.log.erase(story.deeds["second.text"])
    erased = [1 + story.log.drafts.index(story.deeds["second.text"])]
    expected = expect("log", "open", erased=erased, also_not_checked="gate")
    yield vector("gate-erased", "the command is erased", log_bundle(story.log), expected)


def _tested(*, seen_by: str | None = None) -> Gated:
    story = Gated()
    story.edit()
    story.run("first", exit=1, event="tool.failed")
    if seen_by is not None:
        story.log.think(seen_by, "plan", T)
    story.done(story.run("second"))
    return story


Lie = Callable[[Gated], Draft]  # it answers the move


def of(**said: object) -> Lie:
    return lambda story: story.done(story.run("run", **said))


def after(deed: Lie) -> Lie:
    def lie(story: Gated) -> Draft:
        run = story.run("run")
        deed(story)
        return story.done(run)

    return lie


def elsewhere(story: Gated) -> Draft:
    story.names = {"session": B, "task": None}
    return story.done(story.run("run"))


def at_begin(story: Gated) -> Draft:
    story.run("run")
    return story.done(story.deeds["run begins"])


def no_begin(story: Gated) -> Draft:
    story.edit()
    about = {"class": "run", "use": "u", "exit": 0}
    return story.done(story.deed("run", {"command": "pytest"}, **about))


def two_at_once(story: Gated) -> Draft:
    """A host that gives no ids: which of the two has ended?"""
    story.edit()
    about: Object = {"class": "run", "event": "tool.begin"}
    for name in ("one", "two"):
        story.deed(name, {"command": "pytest"}, **about)
    ended = {"class": "run", "exit": 0}
    return story.done(story.deed("run", {"command": "pytest"}, **ended))


def late_begin(story: Gated) -> Draft:
    story.edit()
    run = story.run("run")
    story.deeds["run begins"].body["late"] = "2026-03-01T09:30:00.000001Z"
    return story.done(run)


def too_long_ago(story: Gated) -> Draft:
    run = story.run("run")
    for number in range(64):
        story.run(f"other {number}", "ls")
    return story.done(run)


def later(story: Gated) -> Draft:
    move = story.done()
    story.names = {"session": A, "task": None}
    gate, run = move.body["gate"], story.run("run")
    move.body["gate"] = lambda made: {**gate(made), "evidence": [seq_of(run)(made)]}
    return move


def no_move(story: Gated) -> Draft:
    move = story.done(story.run("run"))
    move.body["set"] = {"priority": ["medium", "high"]}
    return move


def waived(**said: object) -> Lie:
    def lie(story: Gated) -> Draft:
        step: Object = {"status": "DONE"}
        story.log.think(A, "plan", T)
        call = story.change("waived", A, step, **said)  # type: ignore[arg-type]
        gate = {**RULE, "digest": sha(b"rules").hex(), "evidence": [], "waived": True}
        call.changes[-1].body["gate"] = gate
        return call.changes[-1]

    return lie


def lies() -> Iterator[tuple[str, str, Lie]]:
    late = {"late": "2026-03-01T09:30:00.000001Z"}
    yield "nothing", "it names no command", lambda story: story.done()
    yield "thought", "it names a thought", lambda s: s.done(s.log.think(A, "plan", T))
    yield "edit", "it names an edit", lambda story: story.done(story.edit())
    yield "begin", "it names where a command began", at_begin
    yield "elsewhere", "a command of another session", elsewhere
    yield "later", "a command that ran after the move", later
    yield "failed", "it failed", of(exit=1, event="tool.failed")
    yield "no-exit", "nobody knows how it ended", of(exit=None)
    yield "denied", "it was not run at all", of(event="tool.denied", exit=None)
    yield "late", "it was reported late", of(**late)
    yield "command", "another command", of(command="ls")
    yield "or-true", "a shell operator", of(command="pytest || true")
    yield "line", "a second line", of(command="pytest\ntrue")
    yield "substitution", "a substitution", of(command="pytest $(true)")
    yield "cut", "a command that may have been cut", of(command="pytest ".ljust(4096, "x"))
    yield "redacted", "a secret, and whatever went with it", of(command="pytest [redacted:x]")
    yield "class", "it is no command", of(**{"class": "mcp"})
    yield "older", "an edit came after it", after(lambda story: story.edit())
    yield "older-than-late", "a late edit", after(lambda story: story.edit(**late))
    yield "older-than-begun", "an edit that has begun", after(lambda s: s.edit(event="tool.begin"))
    yield "no-begin", "nobody knows when it began", no_begin
    yield "late-begin", "its begin was reported late", late_begin
    yield "two-at-once", "two commands at once, without ids", two_at_once
    yield "too-long-ago", "64 commands ago", too_long_ago
    yield "no-move", "the record is no move to DONE", no_move
    yield "waived-by-agent", "an agent sets the rule aside", waived(say="by hand")
    yield "waived-without-reason", "no thought in the call", waived(agent=PERSON)


def in_parts() -> Iterator[Vector]:
    """What a bundle of a part of the log still tells."""
    for kind in ("session", "task"):
        for name, says, said in (
            ("failed", "it failed", {"exit": 1, "event": "tool.failed"}),
            ("or-true", "a shell operator", {"command": "pytest || true"}),
        ):
            story = Gated()
            at = story.done(story.run("run", **said))
            seq = 1 + story.log.drafts.index(at)
            bundle = session_bundle(story.log, A, [T]) if kind == "session" else None
            content = bundle or task_bundle(story.log, T)
            yield Vector(f"gate-{kind}-{name}", says, content, "wrong-gate", seq)
