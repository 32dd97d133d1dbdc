"""Verification against every single byte, and against logs that are honest."""

import random

import pytest

from colibri.core.ledger import KINDS
from colibri.core.rows import Row
from colibri.store import sessions
from colibri.store.verify import verify
from tests.support.ledger_writer import Lab, found, in_memory, no_pause
from tests.support.random_logs import false_alarms, random_log

COLUMNS = (
    *(("ledger", column) for column in Row._fields[1:]),
    ("merkle_nodes", "hash"),
    ("sessions", "last_leaf"),
    ("sessions", "root"),
)
HONEST_LOGS = 40  # 1,000 in scripts/torture tamper


@pytest.fixture(scope="module")
def small() -> Lab:
    """A record of every kind: a task, a resumed and sealed session, an erasure, an open call."""
    lab = in_memory()
    with lab.calling("task_list", ends=False):
        pass
    task = lab.create().task_id
    lab.start("S-1", intent="i")
    for _ in range(2):
        lab.think("S-1", "so", task=task, agent="ada")
    lab.erase(lab.seqs("thought")[0])
    lab.resume("S-1")
    lab.seal("S-1")
    lab.drop_triggers()
    lab.db.execute("PRAGMA ignore_check_constraints = ON; PRAGMA foreign_keys = OFF")
    return lab


@pytest.mark.parametrize(("table", "column"), COLUMNS)
def test_a_flip_of_any_byte_is_found(small: Lab, table: str, column: str) -> None:
    """Every byte of every column of the ledger, and of every node."""
    key = "session || '/' || level || '/' || idx" if table == "merkle_nodes" else "rowid"
    db, missed, flips = small.db, [], 0
    assert found(small.verify()) == []
    query = f"SELECT {key}, CAST({column} AS BLOB), typeof({column}) FROM {table}"
    for id, stored, type in db.execute(query).fetchall():
        for at in range(len(stored or b"")):
            flipped = bytearray(stored)
            flipped[at] ^= 1 << at % 8
            db.execute("BEGIN")
            change = f"UPDATE {table} SET {column} = CAST(? AS {type}) WHERE {key} = ?"
            db.execute(change, (bytes(flipped), id))
            if verify(db, pause=no_pause).valid:
                missed.append((id, at))
            db.execute("ROLLBACK")
            flips += 1
    assert missed == []
    assert flips >= 18


def test_a_log_of_every_kind_is_what_is_flipped(small: Lab) -> None:
    """Otherwise the test above would claim too much."""
    kinds = {str(kind) for (kind,) in small.db.execute("SELECT DISTINCT kind FROM ledger")}
    assert len(kinds) == 9


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
    assert kinds == {*KINDS}
    assert sealed > 10
