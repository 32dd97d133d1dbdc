"""The server's check, colibri_verify.py and verify.mjs on the same logs, finding by finding."""

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from unittest.mock import patch

from tests.support.claiming import SESSIONS, counted, drafts_of, exported, write_log
from tests.support.forging import (
    Forged,
    NoTable,
    findings,
    forged,
    forged_once,
    server_findings,
    table_of,
)
from tests.vectors import make
from tests.vectors.builder import Log, Made, Object, b64, bundle_from, bundle_of, text_of
from tests.vectors.vector import Vector
from tests.verify.conftest import INDEX, Node, judge, without_words

FORGERIES = 500  # 5,000 in scripts/torture agreement
CALLS, LIES = 80, 50


# How many vectors the server's check cannot judge, and why.
UNJUDGED = {
    "no bundle": 50,  # it reads rows: a file that is no bundle is refused before there are any
    "no rows": 9,  # no columns make such a header, or two records have one seq, or are not in order
    "its head": 4,  # a bundle says which record is its last one; of a table that is a fact
    "outside": 13,  # what the reader knows: a root, a checkpoint, a head that is in no header
    "only the bundle": 63,  # what is wrong was done to it: the log that it was taken from is good
}


def test_the_server_finds_in_every_vector_what_the_verifiers_find(python: ModuleType) -> None:
    """docs/formats.md §9 and §10: one set of rules, one set of codes.

    The server judges whole logs: for a bundle of a part, the log that it was taken from. Only a
    bundle has a checkpoint, so the server looks for none.
    """
    entries, unjudged = {entry["file"]: entry for entry in INDEX}, Counter[str]()
    for vector, logs in vectors_with_logs():
        entry = entries.pop(vector.file)
        if reason := compared(python, entry, vector.data(), logs):
            unjudged[reason] += 1
    assert entries == {}
    assert unjudged == UNJUDGED
    assert len(INDEX) - sum(UNJUDGED.values()) > 300


def vectors_with_logs() -> Iterator[tuple[Vector, list[Made]]]:
    """Every vector, with the logs that were made for it and before it."""
    made: list[Made] = []

    def make_and_keep(log: Log) -> Made:
        made.append(make_log(log))
        return made[-1]

    make_log = Log.make
    with patch.object(Log, "make", make_and_keep):
        for family in make.FAMILIES:
            for vector in family.vectors():
                yield vector, made


def compared(python: ModuleType, entry: Object, data: bytes, logs: list[Made]) -> str:
    """Hold the server's findings against the verifiers'; if it cannot judge them, why."""
    verdict = judge(python, entry)
    if not verdict["bundle"]:
        return "no bundle"
    if entry["code"] in OUTSIDE or (entry["code"] and "checkpoint" in entry):
        return "outside"
    bundle = bundle_from(data)
    expected = [one for one in findings(verdict) if "checkpoint" not in one[0]]
    if bundle["scope"] is not None:
        return compared_with_its_log(python, entry, bundle, logs)
    try:
        table_of(bundle).close()
    except NoTable as why:
        return str(why)
    assert server_findings(Forged(bundle, None, entry["head"])) == expected, entry["file"]
    return ""


def compared_with_its_log(
    python: ModuleType, entry: Object, bundle: Object, logs: list[Made]
) -> str:
    """The same for a bundle of a part: what it reveals, the server finds in the whole log."""
    whole = whole_log(bundle, logs)
    if whole is None:
        return "only the bundle"
    found, expected = server_findings(Forged(whole)), findings(judge(python, entry))
    assert found == findings(python.verify(text_of(whole)).as_json()), entry["file"]
    if expected and not found:
        return "only the bundle"
    assert set(expected) <= set(found or []), entry["file"]  # more may be wrong in what it hides
    return ""


OUTSIDE = {"root-differs", "head-not-covered", "checkpoint-differs", "checkpoint-not-covered"}


def whole_log(bundle: Object, logs: list[Made]) -> Object | None:
    """All of the log, made last, that a bundle is a part of; None if no log has these headers."""
    parts = set(bundle["headers"])
    for made in reversed(logs):
        if parts <= {b64(raw) for raw in made.raw}:
            every = range(1, len(made.raw) + 1)
            return bundle_of(made, None, every, every)
    return None


def test_all_three_find_the_same_in_logs_that_were_forged_at_random(
    python: ModuleType, node: Node
) -> None:
    """The two that read bundles also in those of a part of a log."""
    chance, seen, kinds = random.Random(1417), Counter[str](), Counter[str]()
    cases = [forged(chance) for _ in range(FORGERIES)]
    others = node("verify", [case.for_node() for case in cases])
    for case, other in zip(cases, others, strict=True):
        head = case.head and (case.head["seq"], case.head["leaf"])
        mine = python.verify(text_of(case.bundle), root=case.root, head=head).as_json()
        if not mine["bundle"]:  # what is wrong with a file that is no bundle: each in its own words
            assert mine["verdict"] == other["verdict"] == "cannot tell"
            continue
        assert without_words(mine) == without_words(other), case.for_node()
        server = server_findings(case)
        assert server is None or server == findings(mine), case.for_node()
        seen.update(code for code, _ in findings(mine))
        kinds[mine["bundle"]["kind"]] += 1
        kinds[mine["verdict"]] += 1
        kinds["by the server"] += server is not None
    assert len(seen) > 20, seen
    wanted = {"log", "session", "task", "thoughts", "good", "bad", "by the server"}
    assert kinds.keys() >= wanted and min(kinds.values()) > 40, kinds


def test_all_three_find_the_same_in_what_real_servers_wrote_with_one_lie_in_it(
    python: ModuleType, node: Node, tmp_path: Path
) -> None:
    """Claims, take-overs, resumed sessions and repeats; without a lie every bundle is good."""
    chance = random.Random(1215)
    honest = write_log(tmp_path, chance, CALLS)
    log, seen = drafts_of(honest), Counter[str]()
    assert min(counted(log).values()) > 0, counted(log)
    assert server_findings(Forged(honest)) == []
    tasks = sorted({draft.task for draft in log.drafts if draft.kind == "task" and draft.task})
    parts = [exported(tmp_path, "--session", id) for id in SESSIONS]
    parts += [exported(tmp_path, "--task", id) for id in tasks]
    lies = [forged_once(log, chance) for _ in range(LIES)]
    cases = [Forged(bundle) for bundle in (honest, *parts)] + lies
    others = node("verify", [case.for_node() for case in cases])
    for place, (case, other) in enumerate(zip(cases, others, strict=True)):
        mine = python.verify(text_of(case.bundle)).as_json()
        assert without_words(mine) == without_words(other), case.for_node()
        assert server_findings(case) in (None, findings(mine)), case.for_node()
        if place <= len(parts):
            assert findings(mine) == []
        seen.update(code for code, _ in findings(mine))
    assert len(seen) > 4, seen
