"""Records and steps in words for people, and as JSON for machines."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from colibri.cli.show import deeds
from colibri.cli.terminal import Span, count
from colibri.core.ledger import Head
from colibri.core.states import Status
from colibri.store.records import Record, Work
from colibri.store.sessions import Session
from colibri.store.timeline import Step

EXCERPT = 60
IDS = ("session_id", "task_id", "agent_id")  # of arguments; the header says them too
NOT_KEPT = {
    "erased": "[erased]",
    "missing": "[missing, and no erasure record names it]",
    "unreadable": "[unreadable: not in the form of its kind]",
}

RETRY = [Status.VERIFY, Status.GATHER]  # the move that begins another attempt

JSON = dict[str, Any]
Spans = list[Span]


# For machines.


def head_json(head: Head | None) -> JSON | None:
    """A head as --json prints it."""
    return head and {"seq": head.seq, "leaf": head.leaf.hex()}


def head(found: JSON | None) -> str:
    """A head as --head takes it, from its JSON."""
    return "none" if found is None else f"{found['seq']}:{found['leaf']}"


def record_json(record: Record) -> JSON:
    """A record as --json prints it."""
    return {
        **_picked(record, "seq", "at", "kind", "call", "session", "task", "agent"),
        "leaf": record.leaf.hex(),
        "prev": record.prev.hex(),
        "payload": record.payload,
        "payload_state": record.state,
    }


def step_json(step: Step) -> JSON:
    """A step as --json prints it."""
    enter, left = ((one and one.payload) or {} for one in (step.enter, step.exit))
    open_or_none = "open" if step.enter and not step.exit else None
    return {
        **_picked(step.first, "seq", "at", "call", "session", "task", "agent"),
        "server": enter.get("server"),
        "client": enter.get("client"),
        "tool": left.get("tool", enter.get("tool")),
        "arguments": enter.get("arguments"),
        "outcome": left.get("outcome", open_or_none),
        "code": left.get("code"),
        "duration_ms": left.get("duration_ms"),
        "repeats": left.get("repeats"),
        "records": [record_json(record) for record in step.records],
    }


def session_json(session: Session, done: Work) -> JSON:
    """A session as --json prints it, with what it did to tasks."""
    names = ("session_id", "intent", "task_id", "started_at", "record_count", "finalized_at")
    who = {"agent_id": session.agent, "client": session.client}
    root = {"root": session.sized_root}
    return {**_picked(session, *names), **root, **who, "tasks": done._asdict()}


def _picked(value: object, *names: str) -> JSON:
    return {name: getattr(value, name) for name in names}


# For people.


def summary(record: Record) -> Spans:
    """What a record says, on one line."""
    if record.payload is None:
        return [(NOT_KEPT[record.state], "refused")]
    return _SUMMARIES[record.kind](record.payload)


def kind_of_thought(payload: Mapping[str, Any]) -> Span:
    """Its type, in its colour."""
    return payload["type"], payload["type"]


def names(record: Record) -> Iterator[str]:
    """The session, task and agent of a record."""
    yield from filter(None, (record.session, record.task, record.agent))


def excerpt(text: str) -> str:
    """The beginning of a text, on one line."""
    start = " ".join(text[: EXCERPT * 4].split())
    return f"“{start[:EXCERPT]}{'…' if len(start) > EXCERPT or len(text) > EXCERPT * 4 else ''}”"


def arguments(given: Mapping[str, Any] | None) -> str:
    """The arguments of a call without its ids; for texts the record has only the size."""
    shown = {name: value for name, value in (given or {}).items() if name not in IDS}
    return "".join(f" {name}={_argument(value)}" for name, value in shown.items())


def _argument(value: Any) -> str:
    if isinstance(value, Mapping):
        size = value.get("size")
        return f"({count(size, 'byte')})" if isinstance(size, int) else "(a text)"
    if isinstance(value, list):
        return ",".join(map(str, value)) or "nothing"
    return "none" if value is None else str(value)


def outcome(payload: Mapping[str, Any]) -> Spans:
    """How a call ended."""
    if payload["outcome"] == "ok":
        return [(f"ok, {payload['duration_ms']} ms", "dim")]
    code = payload["code"]
    return [(payload["outcome"] if code is None else f"{payload['outcome']} {code}", "refused")]


def work(done: Work) -> str:
    """What a session did to tasks; "" if nothing."""
    facts = ((number, name) for name, number in done._asdict().items())
    return " · ".join(f"{count(number, 'task')} {name}" for number, name in facts if number)


def changes(*payloads: Mapping[str, Any]) -> Spans:
    """What one call changed about a task, with its steps on one line."""
    moves = [said["set"]["status"] for said in payloads if "status" in said["set"]]
    passed = [str(old) for old, _ in moves[:1] if old is not None] + [str(new) for _, new in moves]
    parts: list[Spans] = [_joined([[(state, state)] for state in passed], " → ")]
    for said in payloads:
        if said["set"].get("status") == RETRY:
            parts.append([f"attempt {said['attempt']}"])
        for name, (old, new) in sorted(said["set"].items(), key=_importance):
            if name == "holder":
                parts.append([_claim(old, new, said.get("taken"))])
            elif name != "status":
                parts.append([_changed(name, old, new)])
        if "gate" in said:
            parts.append([_gate(said["gate"])])
    return _joined([part for part in parts if part], ", ")


def _gate(gate: Mapping[str, Any]) -> Span:
    """By which commands a move satisfied the project's rule, or that a person set it aside."""
    rule = f"`{excerpt(gate['command'])[1:-1]}` with exit {gate.get('exit')}"
    if gate.get("waived"):
        return f"waived by a person: {rule}", "refused"
    seen = ", ".join(f"#{seq}" for seq in gate["evidence"])
    return f"{rule} seen in {seen}", "dim"


def _joined(parts: list[Spans], between: str) -> Spans:
    return [span for part in parts for span in (between, *part)][1:]


def _claim(old: str | None, new: str | None, taken: Mapping[str, Any] | None) -> str:
    """The session that claims is the record's own."""
    if new is None:
        return "released"
    if taken is None:
        return "claimed"
    return f"taken over from {old}, silent for {count(taken.get('minutes', 0), 'minute')}"


def creation(fields: Mapping[str, Any]) -> Spans:
    """A task as it was created, from all of its fields."""
    facts = [
        f"{label}{_value(name, fields[name])}" for name, label in _FACTS.items() if fields.get(name)
    ]
    return [f"{fields.get('title', NOT_KEPT['erased'])}  ", (" · ".join(facts), "dim")]


def _importance(change: tuple[str, Any]) -> int:
    return [*_FIELDS, change[0]].index(change[0])


def _changed(name: str, old: Any, new: Any) -> str:
    label = name.replace("_", " ")
    if old is None:
        return f"{label} {_value(name, new)}"
    return f"{label} {_value(name, old)} → {_value(name, new)}"


def _value(name: str, value: Any) -> str:
    if value is None or value == []:
        return "none"
    if name == "description":
        return f"a text of {count(len(str(value)), 'character')}"
    if name == "title":
        return f"“{value}”"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


_FACTS = {"priority": "", "project": "", "assignee": "", "depends_on": "depends on "}
_FIELDS = ("status", "title", "priority", "project", "assignee", "depends_on", "description")


def _erasure(payload: JSON) -> Spans:
    seqs = payload["seqs"]
    noun = "record" if len(seqs) == 1 else "records"
    return [f"erased {noun} {', '.join(map(str, seqs))}: {excerpt(payload['reason'])}"]


_SUMMARIES: Mapping[str, Callable[[JSON], Spans]] = {
    "call.enter": lambda said: [(said["tool"], "bold"), arguments(said["arguments"])],
    "call.exit": lambda said: [(said["tool"], "bold"), " ", *outcome(said)],
    "session.open": lambda said: [excerpt(said["intent"])],
    "session.resume": lambda said: [f"by server {said['server'][:8]}"],
    "thought": lambda said: [kind_of_thought(said), f" {excerpt(said['content'])}"],
    "session.seal": lambda said: [
        f"{count(said['count'], 'thought')}, root {said['count']}:{said['root'][:16]}…"
    ],
    "task": changes,
    "task.text": changes,
    "erasure": _erasure,
    "deed": deeds.deed,
    "deed.text": deeds.text,
}
