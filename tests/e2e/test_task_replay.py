"""Verification after a real session: valid; and each lie a forger adds to it, by its name."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from colibri.core.ledger import enter_payload, exit_payload
from colibri.core.report import Report
from colibri.store.ledger import Chain, log_id
from colibri.store.sqlite.connection import connect
from colibri.store.sqlite.transaction import Transaction
from colibri.store.verify import verify
from tests.support.client import JSON
from tests.support.ledger_reader import reading
from tests.support.ledger_writer import disable_triggers
from tests.support.task_client import Lab

AT = "2030-01-01T00:00:00.000000Z"
SERVER = "00000000-0000-4000-8000-00000000c01b"
Finding = tuple[str, str]


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database after a working day: tasks in DONE, in VERIFY, waiting and CANCELLED; refusals."""
    with Lab(tmp_path_factory.mktemp("session")) as lab:
        lab.reach("DONE", project="p")  # T-0001
        lab.create("no evidence", description="why")  # T-0002
        for status in ("GATHER", "ANALYZE", "PLAN", "APPLY", "VERIFY"):
            lab.update("T-0002", status=status)
        lab.refusal("task_update", task_id="T-0002", status="DONE")
        lab.create("waits", depends_on=["T-0001", "T-0002"])  # T-0003
        lab.update("T-0003", status="GATHER", title="waits for two")
        lab.update(lab.reach("VERIFY"), status="GATHER")  # T-0004, in its second attempt
        lab.update("T-0004", status="CANCELLED", description=None, title="given up")
        lab.refusal("task_update", task_id="T-0004", title="x")
        lab.invalid("task_create")
        lab.update("T-0003", priority="high", assignee="ada", depends_on=["T-0002"])
        assert lab.close() == 0
    return lab.database


@pytest.fixture
def copy(session: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(session, tmp_path / "copy.db"))


def report(path: Path) -> Report:
    with reading(path) as db:
        return verify(db, pause=lambda: None)


def found(path: Path) -> list[Finding]:
    return [(what, detail) for _, what, detail in report(path).breaks]


def test_a_real_session_is_valid(session: Path) -> None:
    """Design §8: verification replays the records through the rules and compares the rows."""
    checked = report(session)
    assert (checked.valid, checked.breaks, checked.open_calls) == (True, (), ())
    with reading(session) as db:
        assert checked.record_count == db.execute("SELECT max(seq) FROM ledger").get


def append(path: Path, id: str, version: int, **changed: tuple[object, object]) -> None:
    """Forge a task record that the chain takes, and make the row agree with it."""
    db = connect(str(path), "write")
    made = {name: [old, new] for name, (old, new) in changed.items()}
    payload: JSON = {"task_id": id, "version": version, "attempt": 1, "set": made}
    columns = {name: new for name, (_, new) in changed.items()}
    columns |= {"version": version, "updated_at": AT}
    with Transaction(db, durable=False):
        chain = Chain(db, log_id(db), lambda seq: bytes(32))
        about: JSON = {"at": AT, "call": f"00000000-0000-4000-8000-{version:012x}", "task": id}
        entered = enter_payload(server=SERVER, tool="task_update", arguments={})
        enter = chain.append("call.enter", entered, **about)
        chain.append("task", payload, **about)
        left = exit_payload(enter=enter.seq, tool="task_update", outcome="ok", duration_ms=1)
        chain.append("call.exit", left, **about)
        for name, value in columns.items():
            db.execute(f"UPDATE tasks SET {name} = ? WHERE task_id = ?", (value, id))
    db.close()


FORGERIES: dict[str, tuple[Callable[[Path], None], list[Finding]]] = {
    "an illegal move": (
        lambda path: append(path, "T-0003", 4, status=("GATHER", "PLAN")),
        [("illegal-move", "task T-0003")],
    ),
    "a way out of the end": (
        lambda path: append(path, "T-0001", 8, status=("DONE", "CANCELLED")),
        [
            ("change-after-end", "task T-0001"),
            ("altered-task", "T-0001: its records say otherwise: status, version, updated_at"),
        ],
    ),
    "DONE without evidence": (
        lambda path: append(path, "T-0002", 7, status=("VERIFY", "DONE")),
        [
            ("missing-evidence", "task T-0002"),
            ("altered-task", "T-0003: its records say otherwise: open_dependencies"),
        ],
    ),
    "an assignee who was never there": (
        lambda path: append(path, "T-0003", 4, assignee=("eve", "bob")),
        [("wrong-change", "task T-0003")],
    ),
    "a version left out": (
        lambda path: append(path, "T-0003", 5, priority=("high", "low")),
        [("wrong-version", "task T-0003")],
    ),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forged_record_in_a_sound_chain_is_reported_by_name(copy: Path, forgery: str) -> None:
    """Design §8: a forger who can extend the chain still cannot bend the rules unseen."""
    forge, expected = FORGERIES[forgery]
    forge(copy)
    assert found(copy) == expected


def test_the_forger_who_follows_the_rules_is_not_noticed(copy: Path) -> None:
    """The negative control: it is the rule that is found, not the forger."""
    append(copy, "T-0003", 4, status=("GATHER", "ANALYZE"))
    assert found(copy) == []


def test_blocked_moves_are_reported_one_by_one(copy: Path) -> None:
    """Design §8: entering APPLY, VERIFY or DONE needs every dependency ended."""
    append(copy, "T-0003", 4, status=("GATHER", "ANALYZE"))
    append(copy, "T-0003", 5, status=("ANALYZE", "PLAN"))
    append(copy, "T-0003", 6, status=("PLAN", "APPLY"))
    assert found(copy) == [("blocked-move", "task T-0003")]


def rechain(path: Path, old: str, new: str) -> None:
    """Write the whole log anew, every hash right, with the thoughts about one task on another."""
    db = apsw.Connection(str(path))
    rows = list(
        db.execute(
            "SELECT kind, at, call, session, task, agent, nonce, body FROM ledger ORDER BY seq"
        )
    )
    disable_triggers(db)
    db.execute("PRAGMA foreign_keys = OFF; DELETE FROM ledger")
    nonces = [nonce for *_, nonce, _ in rows]
    chain = Chain(db, log_id(db), lambda seq: nonces[seq - 1])
    for kind, at, call, by, task, agent, _, body in rows:
        about = new if kind == "thought" and task == old else task
        payload: JSON = json.loads(body)
        chain.append(kind, payload, at=at, call=call, session=by, task=about, agent=agent)
    db.close()


def test_a_log_written_anew_without_the_evidence_is_found_out(copy: Path) -> None:
    """Design §8: the writeback rule binds the log itself, not only the tool."""
    rechain(copy, "T-0001", "T-0002")
    assert ("missing-evidence", "task T-0001") in found(copy)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (
            "UPDATE tasks SET status = 'CANCELLED' WHERE task_id = 'T-0001'",
            "T-0001: its records say otherwise: status",
        ),
        (
            "UPDATE tasks SET title = 'kept all along' WHERE task_id = 'T-0004'",
            "T-0004: its records say otherwise: title",
        ),
        (
            "UPDATE tasks SET assignee = 'eve' WHERE task_id = 'T-0003'",
            "T-0003: its records say otherwise: assignee",
        ),
        (
            "DELETE FROM task_dependencies WHERE task = 3",
            "T-0003: its records say otherwise: depends_on",
        ),
    ],
)
def test_a_row_that_was_edited_is_an_altered_task(copy: Path, sql: str, expected: str) -> None:
    """Design §8: the `tasks` table is a projection."""
    db = apsw.Connection(str(copy))
    db.execute(sql)
    db.close()
    assert found(copy) == [("altered-task", expected)]
