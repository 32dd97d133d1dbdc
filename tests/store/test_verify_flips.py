"""Verification against every single byte, and against a thousand logs that are honest."""

import random

import pytest

from colibri.core.errors import Refused
from colibri.store import sessions, tasks
from colibri.store.verify import verify
from tests.support.traillab import Lab, found, in_memory, no_pause

BLOBS = (
    ("ledger", "header"),
    ("ledger", "leaf"),
    ("ledger", "prev"),
    ("payloads", "nonce"),
    ("payloads", "body"),
    ("merkle_nodes", "hash"),
    ("sessions", "last_leaf"),
    ("sessions", "root"),
)
HONEST_LOGS = 1_000
TYPES = ("plan", "analysis", "decision", "reflection")
TEXTS = ("so", 'a "quoted" word', "two\nlines", "für später", "\N{SNOWMAN}", '},"tool":"x"', "\\")
STEPS = ("GATHER", "ANALYZE", "PLAN", "APPLY", "VERIFY", "DONE", "CANCELLED")


@pytest.fixture(scope="module")
def small() -> Lab:
    """A record of every kind: a task, a sealed session, an erasure, an open call."""
    lab = in_memory()
    with lab.calling("task_list", ends=False):
        pass
    task = lab.create().task_id
    with lab.calling("several", session="S-1") as call:
        sessions.start(lab.db, call.append, "S-1", intent="i", task_id=None, now=call.now)
    for _ in range(2):
        lab.think("S-1", "so", task=task)
    lab.erase(lab.seqs("thought")[0])
    lab.seal("S-1")
    lab.drop_triggers()
    lab.db.execute("PRAGMA ignore_check_constraints = ON; PRAGMA foreign_keys = OFF")
    return lab


@pytest.mark.parametrize(("table", "column"), BLOBS)
def test_a_flip_of_any_byte_is_found(small: Lab, table: str, column: str) -> None:
    """Every byte of every stored header, leaf, payload and node."""
    key = "session || '/' || level || '/' || idx" if table == "merkle_nodes" else "rowid"
    db, missed, flips = small.db, [], 0
    assert found(small.verify()) == []
    for id, stored in db.execute(f"SELECT {key}, {column} FROM {table}").fetchall():
        assert isinstance(stored, bytes)
        for at in range(len(stored)):
            flipped = bytearray(stored)
            flipped[at] ^= 1 << at % 8
            db.execute("BEGIN")
            db.execute(f"UPDATE {table} SET {column} = ? WHERE {key} = ?", (bytes(flipped), id))
            if verify(db, pause=no_pause).valid:
                missed.append((id, at))
            db.execute("ROLLBACK")
            flips += 1
    assert missed == []
    assert flips >= 32


def test_a_log_of_every_kind_is_what_is_flipped(small: Lab) -> None:
    """Otherwise the test above would claim too much."""
    kinds = {str(kind) for (kind,) in small.db.execute("SELECT DISTINCT kind FROM ledger")}
    assert len(kinds) == 8


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


def test_an_honest_log_is_never_called_broken() -> None:
    """0 false alarms on 1,000 honest logs, in every scope."""
    kinds: set[str] = set()
    sealed = 0
    for seed in range(HONEST_LOGS):
        lab = random_log(random.Random(seed))
        report = lab.verify()
        assert report.valid, (seed, report.breaks)
        for session in sessions.every(lab.db):
            one = lab.verify_session(session.session_id)
            assert one.valid, (seed, one.breaks)
            sealed += session.root is not None
        for (id,) in lab.db.execute("SELECT task_id FROM tasks"):
            one = lab.verify_task(str(id))
            assert one.valid, (seed, one.breaks)
            assert tasks.get(lab.db, str(id)).version >= 1
        kinds |= {str(kind) for (kind,) in lab.db.execute("SELECT DISTINCT kind FROM ledger")}
        lab.db.close()
    assert len(kinds) == 8
    assert sealed > 100
