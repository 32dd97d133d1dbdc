"""Logs and bundles made by hand, from docs/formats.md alone: nothing of colibri is imported.

A Log is a list of Drafts, which can be changed in any way before they are hashed: a lie told there
is one whose teller rewrote the whole chain. A lie told in the finished bundle is one whose
teller did not.
"""

import base64
import copy
import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from tests.support.naive_tree import NaiveTree

LOG = "colibri/" + "5eed" * 8
OTHER_LOG = "colibri/" + "0bad" * 8
ZEROS = "0" * 64

Object = dict[str, Any]
Late = Callable[["Made"], Any]  # a payload's member that is known only when the chain is hashed


def canonical(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode()


def sha(*parts: bytes) -> bytes:
    return hashlib.sha256(b"".join(parts)).digest()


def uuid(*words: object) -> str:
    text = sha(" ".join(map(str, words)).encode()).hex()
    return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-a{text[17:20]}-{text[20:32]}"


def digest(text: str) -> Object:
    """As arguments have it."""
    return {"sha256": sha(text.encode()).hex(), "size": len(text.encode())}


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def merkle(leaves: list[bytes]) -> bytes:
    return NaiveTree(leaves).root() if leaves else sha(b"")  # a forger may seal nothing


@dataclass
class Draft:
    """A record before it is hashed; `header` overrides members, `body` may hold Late values."""

    kind: str
    call: str
    body: Object
    session: str | None = None
    task: str | None = None
    agent: str | None = None
    header: Object = field(default_factory=dict)
    erased: bool = False


@dataclass
class Made:
    """What is hashed so far."""

    log: str
    headers: list[Object] = field(default_factory=list)
    raw: list[bytes] = field(default_factory=list)
    leaves: list[bytes] = field(default_factory=list)
    payloads: list[tuple[bytes, bytes]] = field(default_factory=list)
    drafts: list[Draft] = field(default_factory=list)
    places: dict[int, int] = field(default_factory=dict)  # of each draft, by its id

    def thoughts(self, session: str) -> list[int]:
        """The places of the session's thoughts."""
        numbered = enumerate(self.headers)
        return [n for n, h in numbered if h["kind"] == "thought" and h["session"] == session]


class Log:
    """A server that does what its tests tell it."""

    def __init__(self, log: str = LOG) -> None:
        self.log = log
        self.drafts: list[Draft] = []
        self.calls = 0
        self.versions: dict[str, int] = {}
        self.fields: dict[str, Object] = {}

    def enter(self, tool: str, arguments: Object | None = None, **names: str | None) -> Draft:
        self.calls += 1
        body = {
            "server": uuid("server"),
            "tool": tool,
            "arguments": arguments if arguments is not None else {},
            "client": "vectors 1",
            "host_session": None,
            "use": None,
            "size": None,
            "sha256": None,
        }
        return self.add("call.enter", uuid("call", self.log, self.calls), body, **names)

    def add(self, kind: str, call: str, body: Object, **names: str | None) -> Draft:
        draft = Draft(kind, call, body, names.get("session"), names.get("task"), names.get("agent"))
        self.drafts.append(draft)
        return draft

    def exit(self, enter: Draft, outcome: str = "ok", code: str | None = None) -> Draft:
        body = {
            "enter": lambda made: 1 + made.places[id(enter)],
            "tool": enter.body["tool"],
            "outcome": outcome,
            "code": code,
            "result_sha256": sha(b"answer").hex(),
            "duration_ms": 3,
            "repeats": None,
        }
        return self.add(
            "call.exit", enter.call, body, session=enter.session, task=enter.task, agent=enter.agent
        )

    def ping(self) -> None:
        self.exit(self.enter("server_ping"))

    def start(self, session: str, task: str | None = None) -> None:
        enter = self.enter("audit_session_start", {"session_id": session}, task=task)
        body = {"session_id": session, "intent": f"the intent of {session}", "task_id": task}
        self.add("session.open", enter.call, body, session=session, task=task)
        self.exit(enter).session = session

    def think(self, session: str, type: str = "plan", task: str | None = None) -> Draft:
        """A thought in a call of its own; the thought's draft is answered."""
        names = {"session": session, "task": task, "agent": "agent-7"}
        enter = self.enter("thought_record", {"session_id": session, "type": type}, **names)
        draft = self.add("thought", enter.call, {}, **names)

        def before(made: Made) -> str:
            places = made.thoughts(session)
            return made.leaves[places[-1]].hex() if places else ZEROS

        draft.body = {
            "thought_id": lambda made: f"R-{len(made.headers) + 1}",
            "index": lambda made: len(made.thoughts(session)),
            "type": type,
            "content": f"a {type}: naïve “quotes”, \\ and\nlines 🐦",
            "prev": before,
        }
        self.exit(enter)
        return draft

    def seal(self, session: str) -> Draft:
        enter = self.enter("merkle_finalize", {"session_id": session}, session=session)

        def places(made: Made) -> list[int]:
            return made.thoughts(session)

        body = {
            "root": lambda made: merkle([made.leaves[n] for n in places(made)]).hex(),
            "count": lambda made: len(places(made)),
            "first_seq": lambda made: places(made)[0] + 1,
            "last_seq": lambda made: places(made)[-1] + 1,
        }
        draft = self.add("session.seal", enter.call, body, session=session)
        self.exit(enter)
        return draft

    def create(self, task: str, depends_on: Iterable[str] = ()) -> Draft:
        enter = self.enter("task_create", {"title": digest(f"the task {task}")})
        fields = {
            "status": "INIT",
            "priority": "medium",
            "assignee": None,
            "project": "demo",
            "depends_on": list(depends_on),
        }
        texts = {"title": f"the task {task}", "description": None}
        self.fields[task] = {**fields, **texts}
        self.versions[task] = 1
        made = {name: [None, value] for name, value in fields.items()}
        body = {"task_id": task, "version": 1, "attempt": 1, "set": made}
        draft = self.add("task", enter.call, body, task=task)
        made = {name: [None, value] for name, value in texts.items()}
        self.add("task.text", enter.call, {"task_id": task, "version": 1, "set": made}, task=task)
        self.exit(enter).task = task
        return draft

    def update(self, task: str, attempt: int = 1, **changes: object) -> Draft:
        """One task_update; the draft of its `task` record, or else `task.text`, is answered."""
        enter = self.enter("task_update", {"task_id": task}, task=task)
        self.versions[task] += 1
        answer: Draft | None = None
        for kind, mine in (("task", True), ("task.text", False)):
            names = [n for n in changes if (n not in ("title", "description")) is mine]
            if not names:
                continue
            made = {name: [self.fields[task][name], changes[name]] for name in names}
            body: Object = {"task_id": task, "version": self.versions[task], "set": made}
            if mine:
                body["attempt"] = attempt
            draft = self.add(kind, enter.call, body, task=task)
            answer = answer or draft
        self.fields[task].update(changes)
        self.exit(enter)
        assert answer is not None
        return answer

    def walk(self, task: str, *states: str, attempt: int = 1) -> Draft:
        """Several moves; the last one's draft is answered."""
        for state in states:
            draft = self.update(task, attempt, status=state)
        return draft

    def erase(self, *drafts: Draft, reason: str = "personal data") -> Draft:
        for draft in drafts:
            draft.erased = True
        seqs: Late = lambda made: sorted(1 + made.drafts.index(draft) for draft in drafts)  # noqa: E731
        return self.add(
            "erasure", uuid("erasure", len(self.drafts)), {"seqs": seqs, "reason": reason}
        )

    def make(self) -> Made:
        """Hash the chain."""
        made = Made(self.log, drafts=self.drafts)
        made.places = {id(draft): n for n, draft in reversed([*enumerate(self.drafts)])}
        prev = sha(b"colibri/ledger/v1\n", self.log.encode()).hex()
        for seq, draft in enumerate(self.drafts, 1):
            body = canonical({k: v(made) if callable(v) else v for k, v in draft.body.items()})
            nonce = sha(b"nonce", str(seq).encode())
            header = {
                "v": 1,
                "log": self.log,
                "seq": seq,
                "at": f"2026-03-01T09:30:00.{seq:06}Z",
                "kind": draft.kind,
                "call": draft.call,
                "session": draft.session,
                "task": draft.task,
                "agent": draft.agent,
                "payload": sha(b"colibri/payload/v1\n", nonce, body).hex(),
                "prev": prev,
                **{k: v(made) if callable(v) else v for k, v in draft.header.items()},
            }
            raw = canonical(header)
            made.headers.append(header)
            made.raw.append(raw)
            made.leaves.append(sha(b"\0", raw))
            made.payloads.append((nonce, body))
            prev = made.leaves[-1].hex()
        return made


def text_of(bundle: Object) -> bytes:
    """The file of a bundle, line by line: docs/formats.md §8."""
    elsewhere = ("headers", "payloads", "proofs", "head", "checkpoint")
    first = {name: value for name, value in bundle.items() if name not in elsewhere}
    left = dict(bundle["payloads"])
    records = []
    for header in bundle["headers"]:
        records.append({"header": header, **left.pop(_seq_of(header), {})})
    last = {name: bundle[name] for name in ("head", "checkpoint") if name in bundle}
    return b"".join(canonical(line) + b"\n" for line in [first, *records, *bundle["proofs"], last])


def _seq_of(header: Any) -> str | None:
    try:
        return str(json.loads(base64.b64decode(header))["seq"])
    except (KeyError, TypeError, ValueError):
        return None


def bundle_from(text: bytes) -> Object:
    """The other way round: the headers and, by seq, the payloads of a file."""
    first, *lines, last = map(json.loads, text.splitlines())
    records = [line for line in lines if "header" in line]
    payloads = {_seq_of(one["header"]): one for one in records if "body" in one}
    return {
        **first,
        "headers": [one["header"] for one in records],
        "payloads": {
            seq: {"nonce": one["nonce"], "body": one["body"]} for seq, one in payloads.items()
        },
        "proofs": [line for line in lines if "header" not in line],
        **last,
    }


def bundle_of(made: Made, session: str | None, seqs: Iterable[int], shown: Iterable[int]) -> Object:
    """A bundle of these headers, and of the payloads of `shown` that are not erased."""
    chosen, open_ = sorted(set(seqs)), sorted(set(shown))
    payloads = {
        str(seq): {"nonce": b64(made.payloads[seq - 1][0]), "body": b64(made.payloads[seq - 1][1])}
        for seq in open_
        if not made.drafts[seq - 1].erased
    }
    return {
        "format": "colibri-bundle/2",
        "log": made.log,
        "scope": None if session is None else {"session": session},
        "headers": [b64(made.raw[seq - 1]) for seq in chosen],
        "payloads": payloads,
        "head": {"seq": chosen[-1], "leaf": made.leaves[chosen[-1] - 1].hex()},
        "proofs": [],
    }


def log_bundle(log: Log) -> Object:
    made = log.make()
    everything = range(1, len(made.raw) + 1)
    return bundle_of(made, None, everything, everything)


def session_bundle(
    log: Log, session: str, tasks: Iterable[str] = (), *, tail: bool = False
) -> Object:
    """The bundle of a session; `tasks` are those of its thoughts and their dependencies.

    With a tail it has no gap between the stretch and what is included after it.
    """
    made = log.make()
    numbered = list(enumerate(made.headers, 1))
    start = next(n for n, h in numbered if (h["kind"], h["session"]) == ("session.open", session))
    ends = [n for n, h in numbered if (h["kind"], h["session"]) == ("session.seal", session)]
    sealing = {made.headers[n - 1]["call"] for n in ends}
    exits = [n for n, h in numbered if h["kind"] == "call.exit" and h["call"] in sealing]
    end = exits[0] if exits else len(numbered)
    stretch = range(start, end + 1)
    own = {n for n in stretch if made.headers[n - 1]["session"] == session}
    kinds = ("task", "task.text")
    own |= {n for n, h in numbered[:end] if h["kind"] in kinds and h["task"] in set(tasks)}
    own |= ends_of(made, holders(made, own), end)
    calls = {made.headers[n - 1]["call"] for n in own}
    own |= {n for n, h in numbered if h["kind"].startswith("call.") and h["call"] in calls}
    present = own | set(stretch)
    for n, draft in enumerate(log.drafts, 1):
        if draft.kind == "erasure" and present & set(json.loads(made.payloads[n - 1][1])["seqs"]):
            own.add(n)
    linked = range(end, max(own) + 1) if tail else ()
    return bundle_of(made, session, {*stretch, *linked, *own}, own)


def thoughts_bundle(log: Log, session: str, indexes: Iterable[int]) -> Object:
    """Single thoughts of a sealed session, with their proofs."""
    made = log.make()
    places = made.thoughts(session)
    seal = next(
        n
        for n, h in enumerate(made.headers, 1)
        if (h["kind"], h["session"]) == ("session.seal", session)
    )
    seqs = [places[index] + 1 for index in indexes]
    chosen = {*seqs, seal}
    for n, draft in enumerate(log.drafts, 1):
        if draft.kind == "erasure" and chosen & set(json.loads(made.payloads[n - 1][1])["seqs"]):
            chosen.add(n)
    bundle = bundle_of(made, session, chosen, chosen)
    proofs = [proof_of(made, seq) for seq in seqs]
    return {**bundle, "scope": {"thoughts": session}, "proofs": proofs}


def task_bundle(log: Log, task: str, depends_on: Iterable[str] = ()) -> Object:
    """The bundle of a task; `depends_on` are the tasks that it depends on, directly or not."""
    made = log.make()
    numbered = list(enumerate(made.headers, 1))
    thoughts = {n for n, h in numbered if (h["kind"], h["task"]) == ("thought", task)}
    tasks = {task, *depends_on}
    own = {n for n, h in numbered if h["kind"] in ("task", "task.text") and h["task"] in tasks}
    sessions = holders(made, own)
    own |= thoughts
    sessions |= {made.headers[n - 1]["session"] for n in own}
    own |= ends_of(made, sessions, len(numbered))
    own |= evidence(made, own)
    calls = {made.headers[n - 1]["call"] for n in own}
    own |= {n for n, h in numbered if h["kind"].startswith("call.") and h["call"] in calls}
    for n, draft in enumerate(log.drafts, 1):
        if draft.kind == "erasure" and own & set(json.loads(made.payloads[n - 1][1])["seqs"]):
            own.add(n)
    bundle = bundle_of(made, None, own, own)
    sealed = {h["session"] for n, h in numbered if n in own and h["kind"] == "session.seal"}
    proven = [n for n in sorted(thoughts) if made.headers[n - 1]["session"] in sealed]
    return {**bundle, "scope": {"task": task}, "proofs": [proof_of(made, n) for n in proven]}


def evidence(made: Made, seqs: Iterable[int]) -> set[int]:
    """The deeds that the records of tasks name, and their texts."""
    changed = [made.payloads[n - 1][1] for n in seqs if made.drafts[n - 1].kind == "task"]
    named = {
        seq for body in changed for seq in json.loads(body).get("gate", {}).get("evidence", ())
    }
    numbered = [*enumerate(made.headers, 1)]
    return {n for n, h in numbered if h["kind"] == "deed" and n in named} | {
        n for n, h in numbered if h["kind"] == "deed.text" and n - 1 in named
    }


def holders(made: Made, seqs: Iterable[int]) -> set[str]:
    """The sessions that the records of tasks name as holders."""
    changed = [made.drafts[n - 1].body for n in seqs if made.drafts[n - 1].kind == "task"]
    return {id for body in changed for id in body["set"].get("holder", ()) if id}


def ends_of(made: Made, sessions: Iterable[str | None], last: int) -> set[int]:
    """Where these sessions are opened, resumed and sealed."""
    kinds, wanted = ("session.open", "session.resume", "session.seal"), {*sessions} - {None}
    numbered = enumerate(made.headers[:last], 1)
    return {n for n, h in numbered if h["kind"] in kinds and h["session"] in wanted}


def proof_of(made: Made, seq: int) -> Object:
    """That the seal of its session covers a thought."""
    places = made.thoughts(made.headers[seq - 1]["session"])
    index, leaves = places.index(seq - 1), [made.leaves[n] for n in places]
    path = [step.hex() for step in NaiveTree(leaves).inclusion(index)]
    return {"seq": seq, "index": index, "size": len(places), "path": path}


def header_at(bundle: Object, seq: int) -> Object:
    return next(h for h in headers(bundle) if h["seq"] == seq)


def seals(bundle: Object) -> list[int]:
    """The seqs of those that are disclosed."""
    there = (h["seq"] for h in headers(bundle) if h["kind"] == "session.seal")
    return [seq for seq in there if str(seq) in bundle["payloads"]]


def headers(bundle: Object) -> list[Object]:
    return [json.loads(base64.b64decode(text)) for text in bundle["headers"]]


def edit_header(bundle: Object, seq: int, /, **members: object) -> Object:
    """A copy in which members of one header are others; nothing is hashed again."""
    edited = copy.deepcopy(bundle)
    at = next(n for n, h in enumerate(headers(bundle)) if h["seq"] == seq)
    edited["headers"][at] = b64(canonical({**header_at(bundle, seq), **members}))
    return edited


def edit_payload(bundle: Object, seq: int, **members: object) -> Object:
    edited = copy.deepcopy(bundle)
    body = json.loads(base64.b64decode(bundle["payloads"][str(seq)]["body"]))
    edited["payloads"][str(seq)]["body"] = b64(canonical({**body, **members}))
    return edited


def without(bundle: Object, *seqs: int, payloads: bool = True) -> Object:
    """A copy without these headers, and without their payloads; `head` stays."""
    edited = copy.deepcopy(bundle)
    kept = zip(bundle["headers"], headers(bundle), strict=True)
    edited["headers"] = [text for text, header in kept if header["seq"] not in seqs]
    for seq in seqs if payloads else ():
        edited["payloads"].pop(str(seq), None)
    return edited


def rehead(bundle: Object) -> Object:
    """A copy whose `head` is that of its last header."""
    edited = copy.deepcopy(bundle)
    raw = base64.b64decode(edited["headers"][-1])
    edited["head"] = {"seq": json.loads(raw)["seq"], "leaf": sha(b"\0", raw).hex()}
    return edited
