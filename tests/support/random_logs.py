"""Random honest logs: with refusals, erasures, open calls and quotes; sessions that claim tasks,
lose them and resume in another process; calls with keys, which may be repeated; and what hosts
report, some of it late.
"""

import random
from typing import Any

from colibri.core.errors import Refused
from colibri.store import sessions
from tests.support.ledger_writer import Lab, in_memory

TYPES = ("plan", "analysis", "decision", "reflection")
TEXTS = ("so", 'a "quoted" word', "two\nlines", "für später", "\N{SNOWMAN}", '},"tool":"x"', "\\")
STATES = ("INIT", "GATHER", "ANALYZE", "PLAN", "APPLY", "VERIFY", "DONE", "CANCELLED")
SERVERS = tuple(f"00000000-0000-4000-8000-0000000000{number:02d}" for number in (1, 2))
AGENTS = (None, "ada", "human:eve")
ERASABLE = "('call.enter', 'session.open', 'thought', 'task.text', 'deed.text')"
HOSTS = (None, "h-1", "h-2")
EVENTS = ("tool.begin", "tool.end", "tool.failed", "prompt", "stop", "session.start")


def random_log(chance: random.Random, most: int = 40) -> Lab:
    """A few random calls; refusals are part of an honest log."""
    lab = in_memory()
    for _ in range(chance.randrange(most // 2, most)):
        try:
            chance.choices([_act, _report], [6, 1])[0](lab, chance)
        except Refused:
            continue
    return lab


def _act(lab: Lab, chance: random.Random) -> None:
    """A call, which may be refused, or an erasure."""
    tasks = [str(task) for (task,) in lab.db.execute("SELECT task_id FROM tasks")]
    known = [session.session_id for session in sessions.every(lab.db)]
    task = chance.choice([*tasks, None]) if tasks else None
    session, text = chance.choice(known) if known else "S-0", chance.choice(TEXTS)
    key, server = chance.choice([None, None, "k", "k2"]), chance.choice(SERVERS)
    way, lab.client = chance.randrange(22), chance.choice(HOSTS)
    if way < 3 or not tasks:
        lab.create(text, *chance.sample(tasks, min(len(tasks), chance.randrange(3))), key=key)
    elif way < 5 or not known:
        lab.start(f"S-{len(known)}", intent=text, task=task, agent=chance.choice(AGENTS))
    elif way < 9:
        type, agent = chance.choice(TYPES), chance.choice(AGENTS)
        lab.think(session, text, type=type, task=task, agent=agent, key=key, server=server)
    elif way < 16 and task:
        _work(lab, chance, task, chance.choice([None, session, session]))
    elif way == 16 and task:
        lab.update(task, title=str(chance.random()), depends_on=chance.sample(tasks, 1))
    elif way == 17:
        lab.resume(session, server=server)
    elif way == 20:
        lab.seal(session, server=server)
    elif way == 18:
        with lab.calling("task_list", session=session, ends=chance.random() < 0.5):
            pass
    else:
        query = f"SELECT seq FROM ledger WHERE kind IN {ERASABLE} AND body IS NOT NULL"
        erasable = [int(str(seq)) for (seq,) in lab.db.execute(query)]
        if erasable:
            lab.erase_everywhere(chance.choice(erasable))


def _report(lab: Lab, chance: random.Random) -> None:
    """A deed, of a host that may have begun a session."""
    event, use = chance.choice(EVENTS), chance.choice([None, "u-1", "u-2"])
    is_of_tool = event.startswith("tool.")
    lab.deed(
        event=event,
        class_=chance.choice(["edit", "run", "mcp"]) if is_of_tool else None,
        exit=chance.choice([None, 0, -9]) if is_of_tool else None,
        use=use if is_of_tool else None,
        host_session=chance.choice(HOSTS),
        host_agent=chance.choice([None, None, "sub"]),
        late=chance.choice([None, None, "2026-01-01T00:00:00.000000Z"]),
        lost=chance.choice([0, 0, 2]),
        command=chance.choice([None, *TEXTS]),
        paths=chance.choice([(), ("a.py", None)]),
        settings=chance.choice([None, "a" * 64, "b" * 64]),
    )


def _work(lab: Lab, chance: random.Random, task: str, session: str | None) -> None:
    """A change with or without a session: steps, an edit, a claim or a release, with a reason."""
    status: str = lab.db.execute("SELECT status FROM tasks WHERE task_id = ?", (task,)).get
    place = STATES.index(status) + 1
    likely = STATES[place : min(place + chance.randrange(1, 4), 7)]
    steps, claim = chance.choice([(likely, None), (likely, None), ((), True), ((), False)])
    odd = claim is not False and chance.random() < 0.2
    reasons = TEXTS if claim is False else (None, *TEXTS)  # a person's release has one
    fields: dict[str, Any] = {"priority": chance.choice(["low", "high"])} if odd else {}
    lab.update(
        task,
        status=[chance.choice(STATES)] if odd else steps,
        session=session,
        claim=claim,
        agent=chance.choice(AGENTS if session else AGENTS[:2]),
        thought=chance.choice(reasons) if session else None,
        minutes=chance.choice([0, 60]),
        server=chance.choice(SERVERS),
        **fields,
    )


def false_alarms(lab: Lab) -> list[str]:
    """What verification finds in an honest log, in every scope."""
    reports = [lab.verify()]
    reports += [lab.verify_session(session.session_id) for session in sessions.every(lab.db)]
    ids = lab.db.execute("SELECT task_id FROM tasks").fetchall()
    reports += [lab.verify_task(str(id)) for (id,) in ids]
    return [f"{broken.seq}: {broken.what}: {broken.detail}" for r in reports for broken in r.breaks]
