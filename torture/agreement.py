"""Forged logs with correct hashes, judged by the server's check and both verifiers.

Half of them are logs that real servers wrote, with one record or call changed.
"""

from collections import Counter
from collections.abc import Callable
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

Judge = Callable[[Forged], list[Finding] | None]


def compare(cases: list[Forged], server: Judge) -> Counter[str]:
    """Counts of all findings by code; Violation if one of the three finds something else."""
    seen: Counter[str] = Counter()
    others = node("verify", [case.for_node() for case in cases])
    for case, other in zip(cases, others, strict=True):
        head = case.head and (case.head["seq"], case.head["leaf"])
        verdict = PYTHON.verify(text_of(case.bundle), root=case.root, head=head)
        found, mine = findings(verdict.as_json()), server(case)
        if found != findings(other) or mine not in (None, found):
            raise Violation(f"server {mine}, Python {found}, Node {findings(other)}")
        seen.update(code for code, _ in found)
        seen["compared with the server"] += mine is not None
    return seen


def control(lab: Lab) -> str:
    """A server that does not check changes must be caught by its disagreement."""
    with patch.object(Calls, "_judge_changes", lambda *_: True):
        try:
            compare([forged(lab.random) for _ in range(TRIES)], server_findings)
        except Violation:
            return "a server that leaves out one rule is seen to disagree"
    raise ControlFailed("a server that leaves out one rule is said to agree")


def real(lab: Lab, number: int) -> Log:
    """A log that two servers wrote; all three accept it."""
    bundle = write_log(lab.fresh(f"real-{number}"), lab.random, CALLS)
    if compare([Forged(bundle)], server_findings) != {"compared with the server": 1}:
        raise Violation("an honest log is not good")
    return drafts_of(bundle)


def run(lab: Lab) -> dict[str, object]:
    seen: Counter[str] = Counter()
    for first in range(0, lab.count, AT_ONCE):
        count = min(AT_ONCE, lab.count - first) // 2
        log = real(lab, first)
        cases = [forged_once(log, lab.random) for _ in range(count)] + [
            forged(lab.random) for _ in range(count)
        ]
        seen += compare(cases, server_findings)
        lab.say(f"{first + 2 * count:,} of {lab.count:,} forged logs")
    compared = seen.pop("compared with the server")
    return {"disagreements": 0, "of them in a database": compared, "codes found": len(seen)}


TRIAL = Trial(
    name="agreement",
    title="logs in which rules are broken at random, before they are hashed",
    claim="the server's check and both independent verifiers find the same, record by record",
    unit="forged logs",
    quick=200,
    full=5_000,
    minutes=8,
    control=control,
    run=run,
    needs=needs,
)
