"""The server's check, colibri_verify.py and verify.mjs on the same logs, finding by finding."""

import random
from collections import Counter
from pathlib import Path
from types import ModuleType

from tests.support.claiming import SESSIONS, counted, drafts_of, exported, write_log
from tests.support.forging import Forged, findings, forged, forged_once, server_findings
from tests.vectors.builder import bundle_from, text_of
from tests.verify.conftest import INDEX, VECTORS, Node, without_words

FORGERIES = 500  # 5,000 in scripts/torture agreement
CALLS, LIES = 80, 100


def test_the_server_finds_in_every_vector_of_a_log_what_the_verifiers_find(
    python: ModuleType,
) -> None:
    """docs/formats.md §9 and §10: one set of rules, one set of codes."""
    compared = 0
    for entry in INDEX:
        data = (VECTORS / entry["file"]).read_bytes()
        verdict = python.verify(data).as_json()
        if verdict["bundle"] and verdict["bundle"]["kind"] == "log":
            found = server_findings(Forged(bundle_from(data)))
            if found is not None:
                assert found == findings(verdict), entry["file"]
                compared += 1
    assert compared > 100


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
