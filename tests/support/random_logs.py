"""Logs that are honest, whatever is in them: refusals, erasures, open calls, quotes."""

import random

from colibri.core.errors import Refused
from colibri.store import sessions
from tests.support.ledger_writer import Lab, in_memory

TYPES = ("plan", "analysis", "decision", "reflection")
TEXTS = ("so", 'a "quoted" word', "two\nlines", "für später", "\N{SNOWMAN}", '},"tool":"x"', "\\")
STEPS = ("GATHER", "ANALYZE", "PLAN", "APPLY", "VERIFY", "DONE", "CANCELLED")


def random_log(chance: random.Random) -> Lab:
    """A few calls, whatever they come to; refusals are part of an honest log."""
    lab = in_memory()
    for _ in range(chance.randrange(1, 40)):
        try:
            step(chance, lab)
        except Refused:
            continue
    if chance.random() < 0.3:
        with lab.calling("task_get", ends=False):
            pass
    return lab


def step(chance: random.Random, lab: Lab) -> None:
    session, task = f"S-{chance.randrange(2)}", f"T-{chance.randrange(1, 4):04d}"
    about = task if chance.random() < 0.5 and _has(lab, task) else None
    match chance.randrange(10):
        case 0 | 1:
            lab.start(session, intent=chance.choice(TEXTS), task=about)
        case 2 | 3 | 4:
            lab.think(
                session, chance.choice(TEXTS), type=chance.choice(TYPES), task=about, agent="ada"
            )
        case 5:
            others = [id for id in ("T-0001", "T-0002") if chance.random() < 0.3]
            lab.create(chance.choice(TEXTS), *others)
        case 6 | 7:
            lab.update(task, status=chance.choice(STEPS))
        case 8:
            lab.seal(session)
        case _:
            erasable = lab.seqs("thought") + lab.seqs("session.open") + lab.seqs("call.enter")
            if erasable:
                lab.erase(*sorted(chance.sample(erasable, min(2, len(erasable)))))


def _has(lab: Lab, task: str) -> bool:
    return lab.db.execute("SELECT 1 FROM tasks WHERE task_id = ?", (task,)).get is not None


def false_alarms(lab: Lab) -> list[str]:
    """What verification has against a log, in every scope."""
    reports = [lab.verify()]
    reports += [lab.verify_session(session.session_id) for session in sessions.every(lab.db)]
    ids = lab.db.execute("SELECT task_id FROM tasks").fetchall()
    reports += [lab.verify_task(str(id)) for (id,) in ids]
    return [f"{broken.seq}: {broken.what}: {broken.detail}" for r in reports for broken in r.breaks]
