"""Lies told before hashing, by someone who rewrote the whole chain: only the rules show them."""

from collections.abc import Callable, Iterator

from tests.vectors.builder import Log, Made, log_bundle, merkle, session_bundle, sha
from tests.vectors.honest import FORWARD, S, finished, small, worked
from tests.vectors.vector import Vector

Forge = Callable[[Log], None]


def vectors() -> Iterator[Vector]:
    yield from links()
    yield from bodies()
    yield from trails()
    yield from calls()
    yield from moves()
    yield from evidence()
    yield from dependencies()
    yield from values()
    yield from erasures()


def forge(name: str, says: str, log: Log, lie: Forge, code: str, seq: int) -> Vector:
    lie(log)
    return Vector(name, says, log_bundle(log), code, seq)


def body(seq: int, **members: object) -> Forge:
    def lie(log: Log) -> None:
        log.drafts[seq - 1].body.update(members)

    return lie


def links() -> Iterator[Vector]:
    def genesis(log: Log) -> None:
        log.drafts[0].header["prev"] = sha(b"another").hex()

    def fork(log: Log) -> None:
        log.drafts[9].header["prev"] = lambda made: made.leaves[6].hex()

    def elsewhere(log: Log) -> None:
        log.drafts[9].header["prev"] = sha(b"another").hex()

    yield forge("genesis", "it does not follow its genesis", small(), genesis, "broken-link", 1)
    yield forge("fork", "record 10 follows record 7", small(), fork, "broken-link", 10)
    yield forge(
        "record-replaced", "record 10 follows another 9", small(), elsewhere, "altered-header", 9
    )


def bodies() -> Iterator[Vector]:
    bad = "bad-payload"
    yield forge("body-member-added", "a member more", small(), body(8, mood="good"), bad, 8)
    yield forge("body-of-another-type", "an index in letters", small(), body(8, index="1"), bad, 8)
    yield forge("body-with-a-fraction", "1.5 ms", small(), body(9, duration_ms=1.5), bad, 9)
    yield forge("body-thought-id", "another id", small(), body(8, thought_id="R-7"), bad, 8)
    yield forge("body-thought-type", "a type not known", small(), body(8, type="guess"), bad, 8)
    yield forge("body-session-id", "another session", small(), body(2, session_id="x"), bad, 2)
    yield forge("body-ok-with-code", "ok, and a code", small(), body(9, code="ERR_X"), bad, 9)
    yield forge("body-arguments-and-digest", "both", small(), body(7, size=1), bad, 7)
    yield forge("body-seal-of-nothing", "a count of 0", small(), body(14, count=0), bad, 14)
    yield forge("body-hash-in-capitals", "a root", small(), body(14, root="AB" * 32), bad, 14)
    deep: object = []
    for _ in range(64):
        deep = [deep]
    yield forge("body-too-deep", "66 levels", small(), body(7, arguments={"a": deep}), bad, 7)
    yield forge(
        "body-state-not-known",
        "a state",
        finished(),
        body(27, set={"status": ["VERIFY", "OK"]}),
        bad,
        27,
    )


def trails() -> Iterator[Vector]:
    """Sessions, thoughts, seals."""

    def leaves(made: Made) -> list[bytes]:
        return [made.leaves[n] for n in made.thoughts(S)]

    def doubled(made: Made) -> str:
        a, b, c = leaves(made)
        return sha(b"\1", sha(b"\1", a, b), sha(b"\1", c, c)).hex()

    def untagged(made: Made) -> str:
        a, b, c = leaves(made)
        return sha(sha(a, b), c).hex()

    def without_last(made: Made) -> str:
        return merkle(leaves(made)[:2]).hex()

    def sorted_root(made: Made) -> str:
        return merkle(sorted(leaves(made), reverse=True)).hex()

    for name, root in {
        "of-another-tree": lambda made: sha(b"another").hex(),
        "with-the-odd-leaf-doubled": doubled,
        "without-tags": untagged,
        "without-the-last-thought": without_last,
        "of-sorted-leaves": sorted_root,
    }.items():
        yield forge(
            f"seal-root-{name}", "another root", small(), body(14, root=root), "wrong-root", 14
        )
    yield forge("seal-count", "one too many", small(), body(14, count=4), "wrong-count", 14)
    yield forge("seal-first", "not its first", small(), body(14, first_seq=2), "wrong-range", 14)
    yield forge("seal-last", "not its last", small(), body(14, last_seq=12), "wrong-range", 14)
    yield forge("thought-index", "index 5", small(), body(8, index=5), "wrong-index", 8)
    skip = body(11, prev=lambda made: made.leaves[4].hex())
    yield forge("thought-prev", "it skips one", small(), skip, "broken-thought-chain", 11)
    zeros = body(8, prev="0" * 64)
    yield forge("thought-prev-zeros", "a second first", small(), zeros, "broken-thought-chain", 8)

    def late(log: Log) -> None:
        log.think(S)

    yield forge("thought-after-seal", "after the seal", small(), late, "thought-after-seal", 19)
    log = small()
    log.think(S)
    bundle = session_bundle(log, S)
    extra = log_bundle(log)
    bundle["headers"] = extra["headers"]
    bundle["payloads"] |= {n: extra["payloads"][n] for n in ("18", "19", "20")}
    bundle["head"] = extra["head"]
    stray = "the ping in between is left out"
    bundle["headers"] = [h for n, h in enumerate(bundle["headers"], 1) if n not in (16, 17)]
    yield Vector("session-thought-after-seal", stray, bundle, "thought-after-seal", 19)
    again: Forge = lambda log: (log.seal(S), None)[1]  # noqa: E731
    yield forge("second-seal", "sealed again", small(), again, "second-seal", 19)
    reopen: Forge = lambda log: log.start(S)  # noqa: E731
    yield forge("second-open", "opened again", small(), reopen, "second-open", 19)
    log = Log()
    log.think("nowhere")
    yield Vector("thought-without-session", "never opened", log_bundle(log), "outside-session", 2)


def calls() -> Iterator[Vector]:
    pair, stray = "bad-pair", "stray-change"
    yield forge("exit-of-another-enter", "call 7's", small(), body(12, enter=7), pair, 12)
    yield forge("exit-of-another-tool", "a ping", small(), body(12, tool="server_ping"), pair, 12)
    again: Forge = lambda log: log.drafts.insert(12, log.drafts[11])  # noqa: E731
    yield forge("exit-twice", "call 10 ends twice", small(), again, pair, 13)

    def reused(log: Log) -> None:
        log.drafts[15].call = log.drafts[16].call = log.drafts[9].call

    yield forge("call-id-reused", "call 16 has 10's id", small(), reused, pair, 16)

    def agent(log: Log) -> None:
        log.drafts[7].agent = "somebody else"

    yield forge("thought-of-another-agent", "than its call", small(), agent, pair, 8)
    refused = body(9, outcome="refused", code="ERR_ALREADY_FINALIZED")
    yield forge("change-by-a-refused-call", "thought 8", small(), refused, stray, 8)
    log = worked()
    log.drafts.pop()
    yield Vector("change-without-exit", "the last exit is cut off", log_bundle(log), stray, 24)

    def ping(log: Log) -> None:
        for draft in (log.drafts[6], log.drafts[8]):
            draft.body["tool"] = "server_ping"

    yield forge("change-by-a-reading-call", "a ping wrote thought 8", small(), ping, stray, 8)

    log = Log()
    creation = log.create("T-0001")
    log.drafts = [creation]
    yield Vector("change-outside-any-call", "a task from nowhere", log_bundle(log), stray, 1)

    def nothing(log: Log) -> None:
        log.drafts.pop(10)

    yield forge(
        "ok-call-without-thought", "10 wrote nothing", small(), nothing, "missing-change", 11
    )
    log = worked()
    log.drafts.pop(2)
    yield Vector("task-without-text", "no task.text", log_bundle(log), "missing-change", 3)


def log_of(name: str, says: str, log: Log, code: str, seq: int) -> Vector:
    return Vector(name, says, log_bundle(log), code, seq)


def moves() -> Iterator[Vector]:
    log = Log()
    log.create("T-0001")
    log.walk("T-0001", "ANALYZE")
    yield log_of("task-skips-a-state", "INIT to ANALYZE", log, "illegal-move", 6)
    log = worked()
    log.walk("T-0001", "PLAN")
    yield log_of("task-goes-back", "VERIFY to PLAN", log, "illegal-move", 27)
    log = Log()
    log.create("T-0001").body["set"]["status"] = [None, "VERIFY"]
    yield log_of("task-created-in-verify", "not in INIT", log, "illegal-move", 2)
    log = finished()
    log.walk("T-0001", "GATHER")
    yield log_of("task-moves-after-done", "DONE to GATHER", log, "change-after-end", 30)
    log = finished()
    log.update("T-0001", title="another title")
    yield log_of("task-title-after-done", "another title", log, "change-after-end", 30)


def evidence() -> Iterator[Vector]:
    log = Log()
    log.create("T-0001")
    log.walk("T-0001", *FORWARD)
    log.walk("T-0001", "DONE")
    yield log_of("task-done-without-thought", "no evidence", log, "missing-evidence", 21)
    log = worked()
    log.walk("T-0001", "GATHER", attempt=2)
    log.walk("T-0001", *FORWARD[1:], "DONE", attempt=2)
    yield log_of("task-done-on-old-evidence", "attempt 1's", log, "missing-evidence", 42)
    log = worked()
    for draft in log.drafts[22:]:
        draft.task = None
    log.walk("T-0001", "DONE")
    yield log_of("task-done-on-a-thought-of-no-task", "no evidence", log, "missing-evidence", 27)


def dependencies() -> Iterator[Vector]:
    log = Log()
    log.create("T-0001")
    log.create("T-0002", ["T-0001"])
    log.walk("T-0002", *FORWARD[:4])
    yield log_of("task-applied-while-blocked", "T-0001 is in INIT", log, "blocked-move", 19)
    log = worked()
    log.create("T-0002")
    log.update("T-0001", depends_on=["T-0002"])
    yield log_of("task-blocked-afterwards", "by what is open", log, "blocked-move", 31)
    log = Log()
    log.create("T-0002", ["T-0001"])
    yield log_of("task-depends-on-nothing", "T-0001 is not there", log, "unknown-task", 2)
    log = Log()
    log.start(S)
    log.think(S, "plan", "T-0001")
    yield log_of("thought-of-an-unknown-task", "T-0001 is not there", log, "unknown-task", 5)
    log = Log()
    log.create("T-0001")
    log.create("T-0002", ["T-0001"])
    log.update("T-0001", depends_on=["T-0002"])
    yield log_of("task-cycle", "each needs the other", log, "dependency-cycle", 10)
    log = Log()
    log.create("T-0001")
    log.update("T-0001", depends_on=["T-0001"])
    yield log_of("task-needs-itself", "a cycle of one", log, "dependency-cycle", 6)


def values() -> Iterator[Vector]:
    log = worked()
    log.drafts[11].body["version"] = 7
    for draft in log.drafts[12:]:
        if draft.kind == "task":
            draft.body["version"] += 4
    yield log_of("task-version-skipped", "3 is 7", log, "wrong-version", 12)
    log = worked()
    log.drafts[11].body["attempt"] = 2
    for draft in log.drafts[12:]:
        if draft.kind == "task":
            draft.body["attempt"] = 2
    yield log_of("task-attempt", "2 without a retry", log, "wrong-attempt", 12)
    log = worked()
    log.drafts[11].body["set"]["status"][0] = "INIT"
    yield log_of("task-old-value", "it was not in INIT", log, "wrong-change", 12)
    log = Log()
    log.create("T-0001")
    log.update("T-0001", priority="medium")
    yield log_of("task-change-of-nothing", "medium to medium", log, "wrong-change", 6)
    log = Log()
    del log.create("T-0001").body["set"]["project"]
    yield log_of("task-created-without-project", "a field less", log, "bad-creation", 2)
    log = Log()
    log.create("T-0001").body["version"] = 2
    log.drafts[2].body["version"] = 2
    yield log_of("task-created-as-version-2", "not 1", log, "bad-creation", 2)


def erasures() -> Iterator[Vector]:
    log = worked()
    log.erase(log.drafts[1])
    yield Vector("erasure-of-a-task", "a move cannot go", log_bundle(log), "bad-erasure", 26)
    log = small()
    log.erase().body["seqs"] = [99]
    yield Vector("erasure-of-what-comes-later", "record 99", log_bundle(log), "bad-erasure", 18)
    log = small()
    log.erase(log.drafts[7]).body["seqs"] = [5]
    bundle = log_bundle(log)
    del bundle["payloads"]["5"]
    yield Vector("erasure-of-another", "5 is named, 8 is gone too", bundle, "missing-payload", 8)
