"""The server's check, colibri_verify.py and verify.mjs on the same logs, finding by finding."""

import base64
import random
from collections import Counter
from types import ModuleType

from tests.support.forging import findings, forged, server_findings
from tests.vectors.builder import bundle_from, text_of
from tests.verify.conftest import INDEX, VECTORS, Node

FORGERIES = 150  # 5,000 in scripts/torture agreement


def test_the_server_finds_in_every_vector_of_a_log_what_the_verifiers_find(
    python: ModuleType,
) -> None:
    """docs/formats.md §9 and §10: one set of rules, one set of codes."""
    compared = 0
    for entry in INDEX:
        data = (VECTORS / entry["file"]).read_bytes()
        verdict = python.verify(data).as_json()
        if verdict["bundle"] and verdict["bundle"]["kind"] == "log":
            found = server_findings(bundle_from(data))
            if found is not None:
                assert found == findings(verdict), entry["file"]
                compared += 1
    assert compared > 100


def test_all_three_find_the_same_in_logs_that_were_forged_at_random(
    python: ModuleType, node: Node
) -> None:
    chance, seen = random.Random(1417), Counter[str]()
    bundles = [bundle for bundle in (forged(chance) for _ in range(FORGERIES))]
    files = [text_of(bundle) for bundle in bundles]
    others = node("verify", [{"base64": base64.b64encode(file).decode()} for file in files])
    for bundle, file, other in zip(bundles, files, others, strict=True):
        verdict = python.verify(file).as_json()
        assert findings(verdict) == findings(other)
        server = server_findings(bundle)
        assert server is None or server == findings(verdict), base64.b64encode(file)
        seen.update(code for code, _ in server or ())
    assert len(seen) > 12, seen
