"""No false alarm: whatever the store has written in whatever order, each of its bundles is good."""

import random
from collections import Counter
from types import ModuleType
from typing import Any

from colibri.store import bundle
from colibri.store.bundle import Contents
from colibri.store.sqlite.connection import Connection
from tests.support.random_logs import random_log
from tests.vectors.builder import b64
from tests.verify.conftest import Node

LOGS, CALLS = 6, 80


def bundles(db: Connection) -> list[Contents]:
    """Of the log, of every session and task, and of every sealed thought."""
    found = [bundle.whole_log(db)]
    found += [
        bundle.of_session(db, str(id)) for (id,) in db.execute("SELECT session_id FROM sessions")
    ]
    found += [bundle.of_task(db, str(id)) for (id,) in db.execute("SELECT task_id FROM tasks")]
    sealed = "SELECT seq FROM thoughts JOIN sessions ON session = session_id WHERE root IS NOT NULL"
    found += [bundle.of_thoughts(db, [f"R-{seq}"]) for (seq,) in db.execute(sealed)]
    return found


def test_every_bundle_of_every_honest_log_is_good_in_both_verifiers(
    python: ModuleType, node: Node
) -> None:
    chance = random.Random(8785)
    texts = []
    for _ in range(LOGS):
        lab = random_log(chance, CALLS)
        texts += [b"".join(bundle.write(lab.db, contents)) for contents in bundles(lab.db)]
    verdicts: list[Any] = [python.verify(text).as_json() for text in texts]
    kinds = Counter(verdict["bundle"]["kind"] for verdict in verdicts)
    assert [verdict["findings"] for verdict in verdicts if verdict["findings"]] == []
    assert min(kinds[kind] for kind in ("log", "session", "task", "thoughts")) >= LOGS, kinds
    assert sum(bool(verdict["erased"]) for verdict in verdicts) > LOGS
    assert node("verify", [{"base64": b64(text)} for text in texts]) == verdicts
