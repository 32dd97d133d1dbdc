"""Bundles of one task: those that keep every rule, and those that tell a lie."""

import copy
from collections.abc import Iterator

from tests.vectors.builder import (
    Log,
    Object,
    bundle_of,
    headers,
    proof_of,
    sha,
    task_bundle,
    without,
)
from tests.vectors.honest import FORWARD, S, expect, finished, seal_root, story
from tests.vectors.vector import Vector

FIRST, SECOND = "T-0001", "T-0002"


def vectors() -> Iterator[Vector]:
    yield from good()
    yield from left_out()
    yield from put_in()
    yield from proofs()
    yield from forged()
    yield from unclear()


def two_sessions() -> Log:
    """Thoughts about one task in a sealed session that is about another, and in an open one.

    1–4 5–8 tasks (2, 6), 9–11 12–14 sessions, 15–17 of no task, 18–20 a thought (19), 21–22 a ping,
    23–25 another thought (24), 26–28 29–31 thoughts without a gap (27, 30), 32–34 seal (33).
    """
    log = Log()
    log.create(FIRST)
    log.create(SECOND)
    log.start(S, SECOND)
    log.start("other")
    log.think(S, "plan")
    log.think(S, "analysis", FIRST)
    log.ping()
    log.think("other", "plan", FIRST)
    log.think(S, "decision", FIRST)
    log.think(S, "reflection", FIRST)
    log.seal(S)
    return log


def good() -> Iterator[Vector]:
    def vector(name: str, says: str, content: Object, expected: Object, **given: object) -> Vector:
        return Vector(name, says, content, verdict="good", expect=expected, **given)  # type: ignore[arg-type]

    yield vector(
        "task",
        "a task from INIT to DONE, its one thought in a session that is not sealed",
        task_bundle(finished(), FIRST),
        expect("task", "open"),
    )
    yield vector(
        "task-sealed",
        "a task with a retry, its thoughts in a sealed session, each with its proof",
        task_bundle(story(), FIRST),
        expect("task", "yes", gaps=True),
        root=seal_root(story()),
    )
    yield vector(
        "task-with-dependency",
        "a task, the one it waited for, and thoughts in two sessions of which one is sealed",
        task_bundle(story(), SECOND, [FIRST]),
        expect("task", "open", gaps=True, also_not_checked="evidence"),
    )
    yield vector(
        "task-in-two-sessions",
        "a session that was opened about another task, which does not come along",
        task_bundle(two_sessions(), FIRST),
        expect("task", "open", gaps=True),
    )
    log = Log()
    log.create(FIRST)
    yield vector(
        "task-without-thoughts", "no session", task_bundle(log, FIRST), expect("task", "none")
    )
    log = two_sessions()
    log.erase(log.drafts[26], log.drafts[25])
    log.erase(log.drafts[2])
    yield vector(
        "task-erased",
        "a thought with its enter, and the text of the task; its proof still holds",
        task_bundle(log, FIRST),
        expect("task", "open", gaps=True, erased=[3, 26, 27]),
    )
    log = two_sessions()
    made = log.make()
    yield vector(
        "task-head-given",
        "the last record's leaf is known",
        task_bundle(log, FIRST),
        expect("task", "open", gaps=True),
        head=(34, made.leaves[33].hex()),
    )


def calls_of(bundle: Object, *seqs: int) -> list[int]:
    """All records of the calls that wrote these."""
    calls = {header["call"] for header in headers(bundle) if header["seq"] in seqs}
    return [header["seq"] for header in headers(bundle) if header["call"] in calls]


def left_out() -> Iterator[Vector]:
    done = task_bundle(finished(), FIRST)
    gone = without(done, *calls_of(done, 24))
    gone = without(gone, *calls_of(done, 6))
    yield Vector("task-thought-removed", "its evidence", gone, "missing-evidence", 27)
    gone = without(done, *calls_of(done, 2))
    yield Vector("task-creation-removed", "its creation", gone, "missing-record", 9)
    gone = without(done, *calls_of(done, 15))
    yield Vector("task-move-removed", "the move to PLAN", gone, "missing-record", 18)
    gone = without(done, 28)
    gone["head"] = {"seq": 27, "leaf": finished().make().leaves[26].hex()}
    yield Vector("task-exit-removed", "of its move to DONE", gone, "stray-change", 27)
    gone = without(done, 26)
    yield Vector("task-enter-removed", "of its move to DONE", gone, "missing-record", 27)
    gone = without(done, *calls_of(done, 6))
    yield Vector("task-session-open-removed", "of its thought", gone, "missing-record", 24)
    gone = copy.deepcopy(done)
    del gone["payloads"]["3"]
    yield Vector("task-text-removed", "its title, not erased", gone, "missing-payload", 3)
    both = task_bundle(story(), SECOND, [FIRST])
    first = [h["seq"] for h in headers(both) if h["kind"] == "task" and h["task"] == FIRST]
    text = [h["seq"] for h in headers(both) if h["kind"] == "task.text" and h["task"] == FIRST]
    gone = without(both, *calls_of(both, *first, *text))
    created = next(h["seq"] for h in headers(both) if h["task"] == SECOND)
    yield Vector("task-dependency-removed", "all of it", gone, "unknown-task", created)
    other = {**copy.deepcopy(done), "scope": {"task": "T-0009"}}
    yield Vector("task-of-another-name", "of a task not here", other, "missing-record", None)


def put_in() -> Iterator[Vector]:
    log = two_sessions()
    made, bundle = log.make(), task_bundle(two_sessions(), FIRST)
    there = [header["seq"] for header in headers(bundle)]

    def added(*seqs: int, shown: bool = True) -> Object:
        chosen = [*there, *seqs]
        edited = bundle_of(made, None, chosen, chosen if shown else there)
        return {**edited, "scope": bundle["scope"], "proofs": bundle["proofs"]}

    yield Vector("task-foreign-thought", "about no task", added(16), "stray-record", 16)
    yield Vector(
        "task-foreign-header", "without payload", added(21, shown=False), "stray-record", 21
    )
    yield Vector("task-foreign-task", "another task", added(5, 6, 7, 8), "stray-record", 5)


def proofs() -> Iterator[Vector]:
    log = two_sessions()
    bundle = task_bundle(log, FIRST)

    def proof(name: str, says: str, code: str, seq: int, *proofs: Object) -> Vector:
        edited = {**copy.deepcopy(bundle), "proofs": list(copy.deepcopy(proofs))}
        return Vector(f"task-proof-{name}", says, edited, code, seq)

    a, b, c = bundle["proofs"]
    yield proof("missing", "of the second", "missing-proof", 27, a, c)
    bent = {**b, "path": [sha(b"another").hex(), *b["path"][1:]]}
    yield proof("step", "another step", "bad-proof", 27, a, bent, c)
    yield proof("index", "another index", "bad-proof", 27, a, {**b, "index": 1}, c)
    extra = proof_of(log.make(), 24)
    yield proof("of-an-open-session", "there is no seal", "bad-proof", 24, a, b, c, extra)


def forged() -> Iterator[Vector]:
    """Lies told before hashing."""
    log = Log()
    log.create(FIRST)
    log.walk(FIRST, *FORWARD)
    log.walk(FIRST, "DONE")
    bundle = task_bundle(log, FIRST)
    yield Vector("task-done-unthought", "no evidence", bundle, "missing-evidence", 21)
    log = Log()
    log.create(FIRST)
    log.ping()
    log.walk(FIRST, "ANALYZE")
    bundle = task_bundle(log, FIRST)
    yield Vector("task-leap", "INIT to ANALYZE, after a gap", bundle, "illegal-move", 8)
    log = two_sessions()
    log.drafts[29].body["index"] = 5
    del log.drafts[31:]
    bundle = task_bundle(log, FIRST)
    says = "an index too high, with no gap before it"
    yield Vector("task-thought-index", says, bundle, "wrong-index", 30)
    log = two_sessions()
    log.drafts[29].body["prev"] = "0" * 64
    bundle = task_bundle(log, FIRST)
    yield Vector("task-thought-prev", "not its predecessor", bundle, "broken-thought-chain", 30)
    log = two_sessions()
    log.drafts[26].body["index"] = 1
    del log.drafts[31:]
    bundle = task_bundle(log, FIRST)
    yield Vector("task-thought-index-again", "an index twice", bundle, "wrong-index", 27)
    log = two_sessions()
    log.drafts[32].body["first_seq"] = 20
    bundle = task_bundle(log, FIRST)
    yield Vector("task-seal-first", "a first that is too late", bundle, "wrong-range", 33)


def unclear() -> Iterator[Vector]:
    bundle = task_bundle(finished(), FIRST)

    def vector(name: str, says: str, content: Object, code: str = "malformed-bundle") -> Vector:
        return Vector(name, says, content, code, None, "cannot tell")

    both = {"session": S, "task": FIRST}
    yield vector("scope-of-two", "a session and a task", {**bundle, "scope": both})
    yield vector("scope-task-path", "a path", {**bundle, "scope": {"task": "../x"}})
    log = story()
    late = vector("head-after-the-task", "not in it", task_bundle(log, FIRST), "head-not-covered")
    leaves = log.make().leaves
    late.head, late.seq = (len(leaves), leaves[-1].hex()), len(leaves)
    yield late
