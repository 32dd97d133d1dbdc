"""Logs that are honest, whatever is in them: refusals, erasures, open calls, quotes."""

import random

from colibri.core.errors import Refused
from colibri.store import sessions
from tests.support.ledger_writer import Lab, in_memory

TYPES = ("plan", "analysis", "decision", "reflection")
TEXTS = ("so", 'a "quoted" word', "two\nlines", "für später", "\N{SNOWMAN}", '},"tool":"x"', "\\")
STATES = ("INIT", "GATHER", "ANALYZE", "PLAN", "APPLY", "VERIFY", "DONE", "CANCELLED")
ERASABLE = "('call.enter', 'session.open', 'thought', 'task.text')"


def random_log(chance: random.Random, most: int = 40) -> Lab:
    """A few calls, whatever they come to; refusals are part of an honest log."""
    lab = in_memory()
    for _ in range(chance.randrange(most // 2, most)):
        try:
            _act(lab, chance)
        except Refused:
            continue
    return lab


def _act(lab: Lab, chance: random.Random) -> None:
    """A call, which may be refused, or an erasure."""
    tasks = [str(task) for (task,) in lab.db.execute("SELECT task_id FROM tasks")]
    known = [session.session_id for session in sessions.every(lab.db)]
    task = chance.choice([*tasks, None]) if tasks else None
    session, text = chance.choice(known) if known else "S-0", chance.choice(TEXTS)
    way = chance.randrange(20)
    if way < 3 or not tasks:
        lab.create(text, *chance.sample(tasks, min(len(tasks), chance.randrange(3))))
    elif way < 5 or not known:
        lab.start(f"S-{len(known)}", intent=text, task=task)
    elif way < 10:
        agent = chance.choice([None, "ada"])
        lab.think(session, text, type=chance.choice(TYPES), task=task, agent=agent)
    elif way < 15 and task:
        row = lab.db.execute("SELECT status FROM tasks WHERE task_id = ?", (task,)).get
        likely = STATES[min(STATES.index(row) + 1, 6)]
        lab.update(task, status=chance.choice([likely, likely, chance.choice(STATES)]))
    elif way < 17 and task:
        lab.update(task, title=str(chance.random()), depends_on=chance.sample(tasks, 1))
    elif way == 17:
        lab.seal(session)
    elif way == 18:
        with lab.calling("task_list", session=session, ends=chance.random() < 0.5):
            pass
    else:
        query = f"SELECT seq FROM ledger WHERE kind IN {ERASABLE} AND body IS NOT NULL"
        erasable = [int(str(seq)) for (seq,) in lab.db.execute(query)]
        if erasable:
            lab.erase_everywhere(chance.choice(erasable))


def false_alarms(lab: Lab) -> list[str]:
    """What verification has against a log, in every scope."""
    reports = [lab.verify()]
    reports += [lab.verify_session(session.session_id) for session in sessions.every(lab.db)]
    ids = lab.db.execute("SELECT task_id FROM tasks").fetchall()
    reports += [lab.verify_task(str(id)) for (id,) in ids]
    return [f"{broken.seq}: {broken.what}: {broken.detail}" for r in reports for broken in r.breaks]
