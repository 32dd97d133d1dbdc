"""Bundles with a checkpoint that covers their last record, and checkpoints from elsewhere."""

from collections.abc import Iterator
from typing import Any

from tests.support.naive_tree import NaiveTree
from tests.vectors.builder import (
    LOG,
    OTHER_LOG,
    Object,
    bundle_of,
    log_bundle,
    session_bundle,
    sha,
    task_bundle,
    thoughts_bundle,
)
from tests.vectors.honest import S, erased, expect, finished, small
from tests.vectors.vector import Vector

WRONG = sha(b"another root").hex()
UNPUBLISHED = {"also_not_checked": "outside-checkpoint"}


def vectors() -> Iterator[Vector]:
    yield from honest()
    yield from proofs()
    yield from outside()
    yield from malformed()


def tree() -> NaiveTree:
    """Of the 17 records of `small`; the exit of its seal is record 15."""
    return NaiveTree(small().make().leaves)


def covered(bundle: Object, size: int = 17, seq: int = 15, **members: object) -> Object:
    """The bundle with a checkpoint of `small`, and the proof that this covers a record."""
    path = [step.hex() for step in tree().inclusion(seq - 1, 0, size)]
    root = tree().root(0, size).hex()
    return {**bundle, "checkpoint": {"size": size, "root": root, "path": path, **members}}


def session() -> Object:
    return session_bundle(small(), S)


def honest() -> Iterator[Vector]:
    def good(name: str, says: str, content: Object, expected: Object, **given: object) -> Vector:
        return Vector(name, says, content, verdict="good", expect=expected, **given)  # type: ignore[arg-type]

    sealed = expect("session", "yes")
    published = (LOG, 17, tree().root(0, 17).hex())
    yield good(
        "checkpoint-session",
        "a session that a later checkpoint covers",
        covered(session()),
        {**sealed, **UNPUBLISHED},
    )
    yield good(
        "checkpoint-session-given",
        "the same, and the checkpoint is brought along",
        covered(session()),
        {**sealed, "outside_head": False},
        checkpoint=published,
    )
    yield good(
        "checkpoint-at-the-end",
        "a checkpoint of no more records than the bundle has",
        covered(session(), size=15),
        {**sealed, "outside_head": False},
        checkpoint=(LOG, 15, tree().root(0, 15).hex()),
    )
    yield good(
        "checkpoint-log",
        "a whole log, with the checkpoint of it",
        covered(log_bundle(small()), seq=17),
        {**expect("log", "yes"), **UNPUBLISHED},
    )
    yield good(
        "checkpoint-log-given",
        "a whole log without one; the checkpoint is brought along",
        log_bundle(small()),
        {**expect("log", "yes"), "outside_head": False},
        checkpoint=published,
    )
    yield good(
        "checkpoint-log-older-given",
        "a checkpoint of the first 9 records is brought along: what comes later is not covered",
        log_bundle(small()),
        expect("log", "yes"),
        checkpoint=(LOG, 9, tree().root(0, 9).hex()),
    )
    yield good(
        "checkpoint-thoughts",
        "single thoughts: the seal is the last record",
        covered(thoughts_bundle(small(), S, [0, 2]), seq=14),
        {**expect("thoughts", "yes", rules="not checked", gaps=True), "outside_head": False},
        checkpoint=published,
    )
    log = finished()
    leaves = NaiveTree(log.make().leaves)
    path = [step.hex() for step in leaves.inclusion(27)]
    yield good(
        "checkpoint-task",
        "a task",
        {
            **task_bundle(log, "T-0001"),
            "checkpoint": {"size": 28, "root": leaves.root().hex(), "path": path},
        },
        {**expect("task", "open"), **UNPUBLISHED},
    )
    late = erased()
    leaves = NaiveTree(late.make().leaves)
    path = [step.hex() for step in leaves.inclusion(17)]
    yield good(
        "checkpoint-tail",
        "the last record is that of the tail",
        {
            **session_bundle(late, S, tail=True),
            "checkpoint": {"size": 18, "root": leaves.root().hex(), "path": path},
        },
        {**expect("session", "yes", erased=[7, 8]), "outside_head": False},
        checkpoint=(LOG, 18, leaves.root().hex()),
    )


def proofs() -> Iterator[Vector]:
    def lie(name: str, says: str, **changes: Any) -> Vector:
        bundle = covered(session(), **changes)
        return Vector(f"checkpoint-{name}", says, bundle, "bad-checkpoint", 15)

    path: list[str] = covered(session())["checkpoint"]["path"]
    flipped = f"{int(path[0][0], 16) ^ 1:x}{path[0][1:]}"
    yield lie("bit", "a bit of the proof is another", path=[flipped, *path[1:]])
    yield lie("longer", "the proof has a hash more", path=[*path, WRONG])
    yield lie("shorter", "the proof has a hash less", path=path[:-1])
    yield lie("swapped", "two hashes of the proof are swapped", path=[path[1], path[0], *path[2:]])
    yield lie("without-proof", "the proof is empty", path=[])
    yield lie("root", "the root is another", root=WRONG)
    yield lie("record", "the proof is that of the record before", seq=14)
    yield Vector(
        "checkpoint-size",
        "it claims to be of more records than the proof shows",
        _resized(covered(session()), 33),
        "bad-checkpoint",
        15,
    )
    yield Vector(
        "checkpoint-before-the-end",
        "it is of fewer records than the bundle has",
        _resized(covered(session()), 14),
        "bad-checkpoint",
        15,
    )
    everything = range(1, 16)
    yield Vector(
        "checkpoint-log-cut",
        "a whole log, it says, but its checkpoint is of two records more",
        covered(bundle_of(small().make(), None, everything, everything)),
        "bad-checkpoint",
        15,
    )


def _resized(bundle: Object, size: int) -> Object:
    return {**bundle, "checkpoint": {**bundle["checkpoint"], "size": size}}


def outside() -> Iterator[Vector]:
    yield Vector(
        "checkpoint-given-differs",
        "the checkpoint that was published has another root",
        covered(session()),
        "checkpoint-differs",
        15,
        checkpoint=(LOG, 17, WRONG),
    )
    yield Vector(
        "checkpoint-given-of-another-log",
        "the checkpoint that was published is of another log",
        covered(session()),
        "checkpoint-differs",
        checkpoint=(OTHER_LOG, 17, tree().root(0, 17).hex()),
    )
    yield Vector(
        "checkpoint-given-differs-from-log",
        "the first 9 records of the log have another root than was published",
        log_bundle(small()),
        "checkpoint-differs",
        9,
        checkpoint=(LOG, 9, WRONG),
    )
    yield Vector(
        "checkpoint-given-beyond-log",
        "a checkpoint of 18 records was published, and the log has 17",
        log_bundle(small()),
        "truncated",
        18,
        checkpoint=(LOG, 18, WRONG),
    )
    for name, says, bundle, size in (
        ("none", "the bundle has no checkpoint", session(), 17),
        ("another", "the bundle's checkpoint is of another size", covered(session()), 16),
        ("older", "it is older than the end of the session", covered(session()), 9),
    ):
        yield Vector(
            f"checkpoint-given-{name}",
            says,
            bundle,
            "checkpoint-not-covered",
            verdict="cannot tell",
            checkpoint=(LOG, size, tree().root(0, size).hex()),
        )


def malformed() -> Iterator[Vector]:
    whole = covered(session())["checkpoint"]
    for name, checkpoint in (
        ("null", None),
        ("member-less", {name: value for name, value in whole.items() if name != "path"}),
        ("member-more", {**whole, "log": LOG}),
        ("of-nothing", {**whole, "size": 0}),
        ("too-long", {**whole, "path": [WRONG] * 65}),
        ("no-hash", {**whole, "root": "00"}),
    ):
        yield Vector(
            f"checkpoint-{name}",
            "a checkpoint that is not made like one",
            {**session(), "checkpoint": checkpoint},
            "malformed-bundle",
            verdict="cannot tell",
        )
