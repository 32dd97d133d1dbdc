"""Bundles that keep every rule, and the logs that the lies are made of."""

import json
from collections.abc import Iterator

from tests.vectors.builder import (
    Log,
    Object,
    log_bundle,
    session_bundle,
    sha,
    thoughts_bundle,
)
from tests.vectors.vector import Vector

S = "S-0123456789ab"
FORWARD = ("GATHER", "ANALYZE", "PLAN", "APPLY", "VERIFY")


def small() -> Log:
    """1–3 start, 4–6 7–9 10–12 three thoughts (records 5, 8, 11), 13–15 seal (14), 16–17 a ping."""
    log = Log()
    log.start(S)
    for type in ("plan", "decision", "reflection"):
        log.think(S, type)
    log.seal(S)
    log.ping()
    return log


def worked() -> Log:
    """1–4 task (2), 5–7 start, 8–22 moves to VERIFY (9, 12, 15, 18, 21), 23–25 a thought (24)."""
    log = Log()
    log.create("T-0001")
    log.start(S)
    log.walk("T-0001", *FORWARD)
    log.think(S, "reflection", "T-0001")
    return log


def finished() -> Log:
    """As `worked`, then 26–28 DONE (27)."""
    log = worked()
    log.walk("T-0001", "DONE")
    return log


def sized(count: int) -> Log:
    log = Log()
    log.start(S)
    for number in range(count):
        log.think(S, ("plan", "analysis", "decision", "reflection")[number % 4])
    log.seal(S)
    return log


def story() -> Log:
    """Two tasks, a retry, a dependency, two sessions at once, and calls that changed nothing."""
    log = Log()
    log.ping()
    log.create("T-0001")
    log.create("T-0002", ["T-0001"])
    log.update("T-0001", assignee="ada", title="a better title")
    log.start("other")
    log.start(S, "T-0001")
    log.think(S, "plan", "T-0001")
    log.think("other", "analysis")
    log.walk("T-0001", *FORWARD)
    log.exit(log.enter("task_update", {}, task="T-0001"), "refused", "ERR_WRITEBACK_REQUIRED")
    log.walk("T-0001", "GATHER", attempt=2)
    log.walk("T-0001", *FORWARD[1:], attempt=2)
    log.think(S, "reflection", "T-0001")
    log.update("T-0002", description="waits for the other")
    log.walk("T-0001", "DONE", attempt=2)
    log.walk("T-0002", *FORWARD)
    log.think("other", "decision", "T-0002")
    log.think(S, "decision", "T-0002")
    log.walk("T-0002", "DONE")
    log.exit(log.enter("merkle_root", {"session_id": S}, session=S), "refused", "ERR_NOT_FINALIZED")
    refused = log.enter("no_such_tool")
    refused.body |= {"arguments": None, "size": 77, "sha256": sha(b"line").hex()}
    log.exit(refused, "invalid", "-32602").body["result_sha256"] = None
    log.seal(S)
    log.ping()
    return log


def erased() -> Log:
    log = small()
    log.erase(log.drafts[7], log.drafts[6])
    return log


def erased_text() -> Log:
    log = Log()
    log.create("T-0001")
    log.update("T-0001", title="a name that must go")
    log.update("T-0001", title="a harmless title", priority="high")
    log.update("T-0001", description="later", title="another")
    texts = [draft for draft in log.drafts if draft.kind == "task.text"]
    log.erase(*texts[1:3])
    return log


def seal_root(log: Log) -> str:
    """As it is handed out: with its size."""
    made = log.make()
    at = next(n for n, draft in enumerate(log.drafts) if draft.kind == "session.seal")
    stated = json.loads(made.payloads[at][1])
    return f"{stated['count']}:{stated['root']}"


def expect(kind: str, sealed: str, *, rules: str = "yes", **more: object) -> Object:
    lines = {"intact": "yes", "complete": "yes", "sealed": sealed, "rules": rules}
    calls: list[int] | None = None if kind == "thoughts" else []
    return {"kind": kind, "lines": lines, "erased": [], "open_calls": calls, "gaps": False, **more}


def vectors() -> Iterator[Vector]:
    def good(name: str, says: str, content: Object, expected: Object, **given: object) -> Vector:
        return Vector(name, says, content, verdict="good", expect=expected, **given)  # type: ignore[arg-type]

    whole, tasks = story(), ("T-0001", "T-0002")
    yield good("log", "a whole log", log_bundle(small()), expect("log", "yes"))
    yield good(
        "log-root-and-head-given",
        "a whole log, with its root and head brought along",
        log_bundle(small()),
        expect("log", "yes"),
        root=seal_root(small()),
        head=(17, small().make().leaves[16].hex()),
    )
    yield good(
        "log-without-sessions", "nothing but pings", log_bundle(_pings()), expect("log", "none")
    )
    yield good(
        "log-two-tasks-retry-dependency",
        "two tasks, one of which waits for the other, a retry, two sessions",
        log_bundle(whole),
        expect("log", "open"),
    )
    yield good(
        "session", "a session", session_bundle(small(), S), expect("session", "yes", gaps=False)
    )
    yield good(
        "session-with-tasks",
        "a session whose tasks are older, with gaps before it",
        session_bundle(whole, S, tasks),
        expect("session", "yes", gaps=True),
        root=seal_root(whole),
    )
    yield good(
        "session-unsealed",
        "a session that is not sealed",
        session_bundle(worked(), S, ["T-0001"]),
        expect("session", "open"),
    )
    yield good(
        "session-evidence-in-a-gap",
        "the thought that allowed DONE is another session's, before the stretch",
        session_bundle(other_evidence(), S, ["T-0001"]),
        expect("session", "yes", gaps=True, also_not_checked="evidence"),
    )
    yield good(
        "log-erased-thought",
        "one thought and its enter are erased",
        log_bundle(erased()),
        expect("log", "yes", erased=[7, 8]),
    )
    yield good(
        "session-erased-thought",
        "the erasure comes after the stretch",
        session_bundle(erased(), S),
        expect("session", "yes", erased=[7, 8], gaps=True),
    )
    yield good(
        "log-erased-task-text",
        "a title, in both records that have it",
        log_bundle(erased_text()),
        expect("log", "none", erased=[6, 10]),
    )
    yield good(
        "thoughts-erased",
        "a proof of a thought whose text is erased",
        thoughts_bundle(erased(), S, [0, 1]),
        expect("thoughts", "yes", rules="not checked", erased=[8], gaps=True),
    )
    yield good(
        "log-open-call",
        "a call that never ended",
        log_bundle(_open_call()),
        expect("log", "open", open_calls=[4]),
    )
    yield good(
        "log-calls-in-one-round",
        "two calls are entered before the first of them is answered",
        log_bundle(_round()),
        expect("log", "yes"),
    )
    yield good(
        "session-call-ends-after-it",
        "a reading call that ends after the stretch, with a gap",
        session_bundle(_late_reader(), S),
        expect("session", "yes", gaps=True),
    )
    for size in (1, 2, 3, 5, 8):
        yield good(
            f"thoughts-of-{size}",
            f"every thought of {size}, each with its proof",
            thoughts_bundle(sized(size), S, range(size)),
            expect("thoughts", "yes", rules="not checked", gaps=True),
            root=seal_root(sized(size)),
        )
    yield good(
        "thoughts-one-of-8",
        "a single thought of eight",
        thoughts_bundle(sized(8), S, [5]),
        expect("thoughts", "yes", rules="not checked", gaps=True),
    )


def _pings() -> Log:
    log = Log()
    log.ping()
    log.ping()
    return log


def _open_call() -> Log:
    log = Log()
    log.start(S)
    log.enter("thought_record", {"session_id": S}, session=S)
    log.ping()
    return log


def _round() -> Log:
    log = small()
    log.drafts.insert(4, log.drafts.pop(6))
    return log


def _late_reader() -> Log:
    log = Log()
    log.start(S)
    log.think(S)
    enter = log.enter("thought_record_list", {"session_id": S}, session=S)
    log.seal(S)
    log.ping()
    log.exit(enter)
    return log


def other_evidence() -> Log:
    log = Log()
    log.create("T-0001")
    log.start("other")
    log.walk("T-0001", *FORWARD)
    log.think("other", "reflection", "T-0001")
    log.walk("T-0001", "DONE")
    log.start(S)
    log.think(S, "analysis", "T-0001")
    log.seal(S)
    return log
