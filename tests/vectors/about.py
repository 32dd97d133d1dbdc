"""Bundles that disclose calls about a task which changed nothing, and where that is a lie."""

from collections.abc import Iterator

from tests.vectors.builder import Log, Object, b64, bundle_of, headers, session_bundle, task_bundle
from tests.vectors.honest import S, expect, finished, story
from tests.vectors.vector import Vector

TASKS = ("T-0001", "T-0002")


def vectors() -> Iterator[Vector]:
    yield Vector(
        "session-refused-call",
        "a refused call about one of its tasks is disclosed",
        disclosing(story(), session_bundle(story(), S, TASKS), "ERR_WRITEBACK_REQUIRED"),
        verdict="good",
        expect=expect("session", "yes", gaps=True),
    )
    yield Vector(
        "task-refused-call",
        "a refused call about it is disclosed",
        with_records(turned_away(), task_bundle(turned_away(), "T-0001"), "ERR_BLOCKED"),
        verdict="good",
        expect=expect("task", "open", gaps=False),
    )
    yield Vector(
        "session-call-of-no-task",
        "a refused call that is about none of its tasks is disclosed",
        disclosing(story(), session_bundle(story(), S, TASKS), "-32602"),
        code="stray-payload",
        seq=pair(story(), "-32602")[0],
    )


def turned_away() -> Log:
    log = finished()
    log.exit(log.enter("task_update", {}, task="T-0001"), "refused", "ERR_BLOCKED")
    return log


def pair(log: Log, code: str) -> list[int]:
    """Enter and exit of the call that was refused so."""
    calls = {draft.call for draft in log.drafts if draft.body.get("code") == code}
    return [seq for seq, draft in enumerate(log.drafts, 1) if draft.call in calls]


def disclosing(log: Log, bundle: Object, code: str) -> Object:
    """The same, with the payloads of that call."""
    made = log.make()
    for seq in pair(log, code):
        nonce, body = made.payloads[seq - 1]
        bundle["payloads"][str(seq)] = {"nonce": b64(nonce), "body": b64(body)}
    return bundle


def with_records(log: Log, bundle: Object, code: str) -> Object:
    """The same, with both records of that call."""
    there = {header["seq"] for header in headers(bundle)} | set(pair(log, code))
    made = bundle_of(log.make(), None, there, there)
    return {**made, "scope": bundle["scope"], "proofs": bundle["proofs"]}
