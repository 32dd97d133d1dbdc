"""Forged logs, hashed as if nothing were wrong, before the server's check and both verifiers."""

import base64
from collections import Counter
from collections.abc import Callable
from unittest.mock import patch

from colibri.core.check.calls import Calls
from tests.support.client import JSON
from tests.support.forging import Finding, findings, forged, server_findings
from tests.vectors.builder import text_of
from torture import ControlFailed, Lab, Trial, Violation
from torture.verifiers import AT_ONCE, PYTHON, needs, node

TRIES = 200

Judge = Callable[[JSON], list[Finding] | None]


def compare(bundles: list[JSON], server: Judge) -> Counter[str]:
    """Every finding by its code; Violation where one of the three finds something else."""
    seen: Counter[str] = Counter()
    files = [text_of(bundle) for bundle in bundles]
    others = node("verify", [{"base64": base64.b64encode(file).decode()} for file in files])
    for bundle, file, other in zip(bundles, files, others, strict=True):
        found = findings(PYTHON.verify(file).as_json())
        mine = server(bundle)
        if found != findings(other) or mine not in (None, found):
            raise Violation(f"server {mine}, Python {found}, Node {findings(other)}")
        seen.update(code for code, _ in found)
        seen["compared with the server"] += mine is not None
    return seen


def control(lab: Lab) -> str:
    """A server that does not judge changes must be seen to disagree."""
    with patch.object(Calls, "_judge_changes", lambda *_: True):
        try:
            compare([forged(lab.random) for _ in range(TRIES)], server_findings)
        except Violation:
            return "a server that leaves out one rule is seen to disagree"
    raise ControlFailed("a server that leaves out one rule is said to agree")


def run(lab: Lab) -> dict[str, object]:
    seen: Counter[str] = Counter()
    for first in range(0, lab.count, AT_ONCE):
        count = min(AT_ONCE, lab.count - first)
        seen += compare([forged(lab.random) for _ in range(count)], server_findings)
        lab.say(f"{first + count:,} of {lab.count:,} forged logs")
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
