"""Forged logs with correct hashes, judged by the server's check and both verifiers.

Half of them are logs that real servers wrote, with one record or call changed. Only those count
that all three could judge; bundles of a part of a log, which the server does not read, are compared
between the two verifiers besides.
"""

from collections import Counter
from random import Random
from unittest.mock import patch

from colibri.core.check.calls import Calls
from tests.support.claiming import drafts_of, write_log
from tests.support.forging import (
    Finding,
    Forged,
    findings,
    forged,
    forged_once,
    server_findings,
)
from tests.vectors.builder import Log, text_of
from torture import ControlFailed, Lab, Trial, Violation
from torture.verifiers import AT_ONCE, PYTHON, needs, node

TRIES = 200
CALLS = 60  # of a real log
ALL, BOTH = "by all three", "by both verifiers"

Judged = tuple[Forged, list[Finding] | None]  # and what the server's check finds


def judged(case: Forged) -> Judged:
    return case, server_findings(case)


def compare(cases: list[Judged]) -> Counter[str]:
    """How many findings of each code, and how many logs all three or both verifiers judged.

    Violation if one of the three finds something else.
    """
    seen: Counter[str] = Counter()
    others = node("verify", [case.for_node() for case, _ in cases])
    for (case, mine), other in zip(cases, others, strict=True):
        head = case.head and (case.head["seq"], case.head["leaf"])
        verdict = PYTHON.verify(text_of(case.bundle), root=case.root, head=head)
        found = findings(verdict.as_json())
        if found != findings(other) or mine not in (None, found):
            raise Violation(f"server {mine}, Python {found}, Node {findings(other)}")
        seen.update(code for code, _ in found)
        seen[BOTH if mine is None else ALL] += 1
    return seen


def control(lab: Lab) -> str:
    """A server that does not check changes must be caught by its disagreement."""
    with patch.object(Calls, "_judge_changes", lambda *_: True):
        try:
            compare([judged(forged(lab.random)) for _ in range(TRIES)])
        except Violation:
            return "a server that leaves out one rule is seen to disagree"
    raise ControlFailed("a server that leaves out one rule is said to agree")


def real(lab: Lab, number: int) -> Log:
    """A log that two servers wrote; all three accept it."""
    bundle = write_log(lab.fresh(f"real-{number}"), lab.random, CALLS)
    if compare([judged(Forged(bundle))]) != {ALL: 1}:
        raise Violation("an honest log is not good")
    return drafts_of(bundle)


def lies(log: Log, wanted: int, random: Random) -> list[Judged]:
    """In a real log and in others, until the server has judged so many."""
    made: list[Judged] = []
    while wanted:
        made.append(judged(forged_once(log, random) if random.random() < 0.5 else forged(random)))
        wanted -= made[-1][1] is not None
    return made


def run(lab: Lab) -> dict[str, object]:
    seen: Counter[str] = Counter()
    for first in range(0, lab.count, AT_ONCE // 2):  # as many again are of parts
        wanted = min(AT_ONCE // 2, lab.count - first)
        seen += compare(lies(real(lab, first), wanted, lab.random))
        lab.say(f"{first + wanted:,} of {lab.count:,} forged logs")
    if seen.pop(ALL) != lab.count:
        raise Violation("other logs were counted than those that all three judged")
    both = seen.pop(BOTH)
    return {
        "disagreements": 0,
        "more bundles, by both verifiers alone": both,
        "codes found": len(seen),
    }


TRIAL = Trial(
    name="agreement",
    title="logs in which rules are broken at random, before they are hashed",
    claim="the server's check and both independent verifiers find the same, record by record",
    unit="forged logs",
    quick=200,
    full=5_000,
    minutes=10,
    control=control,
    run=run,
    needs=needs,
)
