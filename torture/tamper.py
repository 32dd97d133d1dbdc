"""Tampering with real databases, each time judged by the check behind audit_verify_chain.

The verifier has a head that was kept elsewhere. tests/e2e/test_tamper_matrix.py tests each kind of
attack through the server, and which layer catches it.
"""

from collections.abc import Callable, Iterator, Sequence
from random import Random
from time import sleep
from typing import Any
from unittest.mock import patch

from colibri.core.check import log as checked
from colibri.core.check.log import LogCheck
from colibri.core.errors import Damaged
from colibri.store import proofs, task_rows, thought_search
from colibri.store.sqlite import task_search as search
from colibri.store.sqlite.connection import Connection
from colibri.store.verify import verify
from tests.support.client import COLIBRI, Server
from tests.support.random_logs import false_alarms, random_log
from tests.support.random_walks import Walk, random_run
from tests.support.tampering import WAYS, Victim, head_of, in_memory, tamper
from torture import ControlFailed, Lab, Trial, Violation

VICTIMS = 4
RUNS_EACH = 2
MUTATIONS_PER_HONEST_LOG = 20
TRIES = 100
SILENCE = 0.05  # seconds after which a claim of these servers expires
OLDER = "put an older copy back"
THOUGHTS = [{"type": "plan", "content": content} for content in ("one", "two", "three")]
STORY = [  # not every random run has these: two seals, two dependencies, a search batch
    (tool, {"session_id": session, **arguments})
    for session in ("told-1", "told-2")
    for tool, arguments in (
        ("audit_session_start", {"intent": f"tell {session}"}),
        *(("thought_record", thought) for thought in THOUGHTS),
        ("merkle_finalize", {}),
    )
] + [
    ("task_create", {"title": "one more", "depends_on": ["T-0001", "T-0002"]})
    for _ in range(search.BATCH)
]


def make_victim(lab: Lab, number: int) -> Victim:
    """A database that a real server wrote in a few random runs, and copies made in between."""
    project = lab.fresh(f"victim-{number}")
    database = project / "data" / "colibri.db"
    older = []
    with Walk(project) as walk:
        for _ in range(RUNS_EACH):
            for step in random_run(lab.random):
                walk.take(step)
            older.append(in_memory(database))
        for tool, arguments in STORY:
            walk.compare(0, tool, arguments)
        walk.finish()
    with Server(project, COLIBRI, COLIBRI_CLAIM_MINUTES="0.0001") as server:
        lose_a_claim(server)
        for _ in range(thought_search.BATCH):  # so that the search index has some
            server.data("thought_record", session_id="next", **THOUGHTS[0])
        server.close()
    with Server(project, COLIBRI) as server:
        server.data("audit_session_start", session_id="next", resume=True, brief=False)
        receipt = server.call("task_create", title="the last record")["_meta"]["colibri/receipt"]
        server.close()
    return Victim(in_memory(database), head_of(receipt), older)


def lose_a_claim(server: Server) -> None:
    """A session claims a task and another session takes it over."""
    task = server.data("task_create", title="wanted", key="wanted")["task_id"]
    for session in ("silent", "next"):
        server.data("audit_session_start", session_id=session, intent="hold it", brief=False)
        sleep(SILENCE)
        server.data("task_update", task_id=task, session_id=session, claim=True)


def misses(victim: Victim, way: str, chance: Random) -> tuple[str | None, bool]:
    """Tamper and verify: what was done, and whether it goes unnoticed; then restore the file."""
    if way == OLDER:
        return OLDER, passes(chance.choice(victim.older), victim)
    victim.db.execute("BEGIN")
    try:
        done = tamper(victim, WAYS[way], chance)
        return done, done is not None and passes(victim.db, victim)
    finally:
        victim.db.execute("ROLLBACK")


def misses_once(victims: Sequence[Victim], way: str, chance: Random) -> tuple[str, bool]:
    """The same for one victim, with another if a table refuses it or has nothing to change."""
    for _ in range(TRIES):
        what, missed = misses(chance.choice(victims), way, chance)
        if what is not None:
            return what, missed
    raise ControlFailed(f"could not be done in {TRIES} tries, so nothing is known of it: {way}")


def passes(db: Connection, victim: Victim) -> bool:
    try:
        return verify(db, head=victim.head, pause=lambda: None).valid
    except Damaged:
        return False


def _nothing(*_: object, **__: object) -> Iterator[str]:
    yield from ()


# A check to disable, and an attack that only this check catches.
LEFT_OUT: dict[str, tuple[Any, str, Callable[..., Any], str]] = {
    "payloads": (checked, "are_committed", lambda c: True, "ledger.nonce"),
    "rows of tasks": (task_rows, "altered", _nothing, "tasks.title"),
    "rows of sessions": (proofs, "altered", _nothing, "sessions.intent"),
    "the head": (LogCheck, "_compare_outside", lambda *_: None, "rewrite the log"),
}


def control(lab: Lab) -> str:
    """An untouched log passes; with one check disabled, the attack it covers goes unnoticed."""
    victim = make_victim(lab, 0)
    if not passes(victim.db, victim):
        raise ControlFailed("an untouched log does not pass")
    for what, (owner, name, nothing, way) in LEFT_OUT.items():
        with patch.object(owner, name, nothing):
            missed = any(misses(victim, way, lab.random)[1] for _ in range(TRIES))
        if not missed:
            raise ControlFailed(f"a check without {what} is said to catch everything")
    return f"a check without {', '.join(LEFT_OUT)} is each time seen to miss something"


def run(lab: Lab) -> dict[str, object]:
    """Every attack in turn, on every victim in turn; then honest logs."""
    victims = [make_victim(lab, number) for number in range(VICTIMS)]
    ways = [*WAYS, OLDER]
    for number in range(lab.count):
        way = ways[number % len(ways)]
        what, missed = misses_once(victims, way, lab.random)
        if missed:
            raise Violation(f"not noticed: {way}: {what}")
        if number % 100 == 0:
            lab.say(f"{number:,} of {lab.count:,} mutations")
    honest = lab.count // MUTATIONS_PER_HONEST_LOG
    for number in range(honest):
        log = random_log(lab.random)
        if alarms := false_alarms(log):
            raise Violation(f"an honest log is called broken: {alarms[:3]}")
        log.db.close()
        lab.say(f"{number + 1:,} of {honest:,} honest logs")
    records = sum(victim.head.seq for victim in victims)
    return {
        "ways": len(ways),
        "caught": lab.count,
        "missed": 0,
        "records in the databases": records,
        "honest logs": honest,
        "false alarms": 0,
    }


TRIAL = Trial(
    name="tamper",
    title="a cell, a row, two rows, the tail or everything is changed in real servers' databases,"
    " or an older copy put back; and honest logs",
    claim="given an outside head every change is caught; no honest log is called broken",
    unit="mutations",
    quick=400,
    full=20_000,
    minutes=4,
    control=control,
    run=run,
)
