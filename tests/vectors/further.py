"""Rules that none of the other families tells apart."""

from collections.abc import Iterator

from tests.vectors.builder import Log, log_bundle, sha, task_bundle, without
from tests.vectors.honest import S, small
from tests.vectors.vector import Vector


def vectors() -> Iterator[Vector]:
    log = small()
    log.drafts[6].body["arguments"] = {"größe": 1}
    yield Vector("body-key-not-ascii", "in arguments", log_bundle(log), "bad-payload", 7)
    log = Log()
    log.create("T-0001")
    del log.drafts[2].body["set"]["description"]
    yield Vector("task-text-incomplete", "no description", log_bundle(log), "bad-creation", 3)
    log = Log()
    log.create("T-0001")
    log.drafts[2].body["set"]["title"][0] = "an older title"
    yield Vector("task-text-before-creation", "a title", log_bundle(log), "bad-creation", 3)
    log = Log()
    log.start(S)
    seal = log.seal(S)
    seal.body |= {"root": sha(b"nothing").hex(), "count": 1, "first_seq": 2, "last_seq": 2}
    yield Vector("seal-without-thoughts", "of nothing", log_bundle(log), "wrong-count", 5)
    yield _unknown_status()


def _unknown_status() -> Vector:
    """What a missing record has set is not compared with what comes later."""
    log = Log()
    log.create("T-0001")
    log.walk("T-0001", "GATHER")
    log.update("T-0001", priority="high")
    log.walk("T-0001", "ANALYZE")
    bundle = without(task_bundle(log, "T-0001"), 5, 6, 7)
    says = "its move to GATHER; then the priority changes, and it moves on"
    return Vector("task-status-unknown", says, bundle, "missing-record", 9)
