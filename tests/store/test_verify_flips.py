"""Verification against every single byte, and against logs that are honest."""

import random

import pytest

from colibri.store import sessions
from colibri.store.verify import verify
from tests.support.ledger_writer import Lab, found, in_memory, no_pause
from tests.support.random_logs import false_alarms, random_log

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
HONEST_LOGS = 100  # 1,000 in scripts/torture tamper


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


def test_an_honest_log_is_never_called_broken() -> None:
    """In every scope."""
    kinds: set[str] = set()
    sealed = 0
    for seed in range(HONEST_LOGS):
        lab = random_log(random.Random(seed))
        assert false_alarms(lab) == [], seed
        sealed += sum(session.root is not None for session in sessions.every(lab.db))
        kinds |= {str(kind) for (kind,) in lab.db.execute("SELECT DISTINCT kind FROM ledger")}
        lab.db.close()
    assert len(kinds) == 8
    assert sealed > 10
