"""No false alarm: whatever the store has written in whatever order, each of its bundles is good."""

import random
from collections import Counter
from types import ModuleType
from typing import Any

from apsw import Connection

from colibri.core.errors import Refused
from colibri.store import bundle
from colibri.store.bundle import Contents
from tests.support.ledger_writer import Lab, in_memory
from tests.vectors.builder import b64
from tests.verify.conftest import Node

STATES = ("GATHER", "ANALYZE", "PLAN", "APPLY", "VERIFY", "DONE", "CANCELLED")
LOGS, CALLS = 8, 80


def act(lab: Lab, chance: random.Random) -> None:
    """A call, which may be refused, or an erasure."""
    tasks = [task for (task,) in lab.db.execute("SELECT task_id FROM tasks")]
    sessions = [id for (id,) in lab.db.execute("SELECT session_id FROM sessions")]
    task = chance.choice([*tasks, None]) if tasks else None
    session = chance.choice(sessions) if sessions else "S-0"
    way = chance.randrange(20)
    if way < 3 or not tasks:
        lab.create("t", *chance.sample(tasks, min(len(tasks), chance.randrange(3))))
    elif way < 5 or not sessions:
        lab.start(f"S-{len(sessions)}", task=task)
    elif way < 10:
        lab.think(session, "so", task=task, agent=chance.choice([None, "ada"]))
    elif way < 15 and task:
        row = lab.db.execute("SELECT status FROM tasks WHERE task_id = ?", (task,)).get
        likely = STATES[: STATES.index(row) + 2][-1] if row in STATES else STATES[0]
        lab.update(task, status=chance.choice([likely, likely, chance.choice(STATES)]))
    elif way < 17 and task:
        lab.update(task, title=str(chance.random()), depends_on=chance.sample(tasks, 1))
    elif way == 17:
        lab.seal(session)
    elif way == 18:
        with lab.calling("task_list", session=session, ends=chance.random() < 0.5):
            pass
    else:
        erase(lab, chance)


def erase(lab: Lab, chance: random.Random) -> None:
    """A text, an intent, a thought or a call's arguments, of which the payload is still there."""
    kinds = "('call.enter', 'session.open', 'thought', 'task.text')"
    query = f"SELECT seq FROM ledger WHERE kind IN {kinds} AND body IS NOT NULL"
    lab.erase(chance.choice([int(str(seq)) for (seq,) in lab.db.execute(query)]))


def written(chance: random.Random) -> Lab:
    lab = in_memory()
    for _ in range(CALLS):
        try:
            act(lab, chance)
        except Refused:
            continue  # it is in the log all the same
    return lab


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
        lab = written(chance)
        texts += [b"".join(bundle.write(lab.db, contents)) for contents in bundles(lab.db)]
    verdicts: list[Any] = [python.verify(text).as_json() for text in texts]
    kinds = Counter(verdict["bundle"]["kind"] for verdict in verdicts)
    assert [verdict["findings"] for verdict in verdicts if verdict["findings"]] == []
    assert min(kinds[kind] for kind in ("log", "session", "task", "thoughts")) >= LOGS, kinds
    assert sum(bool(verdict["erased"]) for verdict in verdicts) > LOGS
    assert node("verify", [{"base64": b64(text)} for text in texts]) == verdicts
