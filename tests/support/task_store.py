"""Tasks in a real database without a server: changes as calls, and everything that is kept."""

import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from apsw import Connection

from colibri.core.errors import Refused
from colibri.core.ledger import Entry, enter_payload, exit_payload
from colibri.core.report import Report
from colibri.store import sessions, task_changes, tasks, trail
from colibri.store.append import Append
from colibri.store.ledger import Chain, create_log, log_id
from colibri.store.sqlite.connection import connect
from colibri.store.sqlite.schema import load_migrations
from colibri.store.sqlite.transaction import Transaction
from colibri.store.tasks import Filter, Task
from colibri.store.verify import verify

T = TypeVar("T")
JSON = dict[str, Any]
LOG = "colibri/" + "0123456789abcdef" * 2
SESSION = "S"
AT = "2026-01-01T00:00:00.000000Z"
SERVER = "00000000-0000-4000-8000-00000000c01b"
TO_VERIFY = ("GATHER", "ANALYZE", "PLAN", "APPLY", "VERIFY")
NEW: JSON = {
    "description": None,
    "project": None,
    "priority": "medium",
    "assignee": None,
    "depends_on": [],
}


def no_pause() -> None:
    """Nobody waits."""


def in_memory() -> "TaskStore":
    """A store for one example of many: real SQLite, no file."""
    db = connect(":memory:", "write")
    for migration in load_migrations():
        db.execute(migration.sql)
    create_log(db, LOG)
    return TaskStore(db)


class TaskStore:
    """Each method is one call: one transaction, which commits even after a refusal."""

    def __init__(self, db: Connection) -> None:
        self.db = db
        self._calls = 0

    def create(self, title: str = "a task", **fields: Any) -> Task:
        return self._call(
            "task_create",
            lambda append, now: task_changes.create(
                self.db, append, fields={"title": title, **NEW, **fields}, now=now
            ),
        )

    def update(self, id: str, *, expected_version: int | None = None, **changes: Any) -> Task:
        return self._call(
            "task_update",
            lambda append, now: task_changes.update(
                self.db, append, id, changes=changes, expected_version=expected_version, now=now
            ),
        )

    def move(self, id: str, *states: str) -> Task:
        for status in states:
            task = self.update(id, status=status)
        return task

    def think(self, id: str) -> int:
        """Record a thought about a task; its seq."""
        if sessions.find(self.db, SESSION) is None:
            self._call("audit_session_start", self._start)
        return self._call("thought_record", lambda append, now: self._think(append, id))

    def _start(self, append: Append, now: str) -> None:
        sessions.start(self.db, append, SESSION, intent="-", task_id=None, now=now)

    def _think(self, append: Append, id: str) -> int:
        session = sessions.get_open(self.db, SESSION)
        seq: int = self.db.execute("SELECT max(seq) + 1 FROM ledger").get
        trail.record(self.db, append, session, seq=seq, type="plan", content="-", task=id)
        return seq

    def finish(self, id: str) -> Task:
        self.think(id)
        return self.move(id, *TO_VERIFY, "DONE")

    def forge(self, kind: str, payload: JSON, *, task: str | None) -> Entry:
        """A record that is sound in itself and in its call, and that no tool has written."""
        return self._call("task_update", lambda append, now: append(kind, payload, task=task))

    def erase(self, seqs: Sequence[int]) -> None:
        """The record of an erasure, which belongs to no call."""
        with Transaction(self.db, durable=False):
            chain = Chain(self.db, log_id(self.db), lambda seq: seq.to_bytes(32))
            payload = {"seqs": list(seqs), "reason": "asked for"}
            chain.append("erasure", payload, at=AT, call=SERVER)

    def find(
        self, search: str | None = None, *, limit: int = 500, offset: int = 0, **wanted: str
    ) -> tuple[list[str], int]:
        """The ids on a page, and the total."""
        found, total = tasks.find(
            self.db, Filter(**wanted), search=search, limit=limit, offset=offset
        )
        return [task.task_id for task in found], total

    def ready(self, *, limit: int = 100, **wanted: str) -> tuple[list[str], int]:
        found, total = tasks.ready(self.db, Filter(**wanted), limit=limit)
        return [task.task_id for task in found], total

    def verify(self, **options: Any) -> Report:
        return verify(self.db, pause=no_pause, **options)

    def breaks(self, **options: Any) -> list[tuple[int | None, str, str]]:
        return [(seq, what, detail) for seq, what, detail in self.verify(**options).breaks]

    def kept(self) -> dict[str, list[Any]]:
        """Every row that a change of a task could touch."""
        return {query: list(self.db.execute(query)) for query in KEPT}

    def _call(self, tool: str, act: Callable[[Append, str], T]) -> T:
        self._calls += 1
        call = f"00000000-0000-4000-8000-{self._calls:012x}"
        now = f"2026-01-01T00:00:00.{self._calls:06d}Z"
        named: dict[str, str | None] = {"session": None, "task": None}
        with Transaction(self.db, durable=False):
            chain = Chain(self.db, log_id(self.db), lambda seq: seq.to_bytes(32))

            def append(kind: str, payload: JSON, **made: str | None) -> Entry:
                named.update({name: id for name, id in made.items() if id is not None})
                return chain.append(kind, payload, at=now, call=call, **named)

            enter = append("call.enter", enter_payload(server=SERVER, tool=tool, arguments={}))
            left = partial(exit_payload, enter=enter.seq, tool=tool, duration_ms=1)
            try:
                answer = act(append, now)
            except Refused as refused:
                append("call.exit", left(outcome="refused", code=refused.code))
                refusal = refused
            else:
                append("call.exit", left(outcome="ok"))
                return answer
        raise refusal


KEPT: Sequence[str] = (
    "SELECT * FROM tasks",
    "SELECT * FROM task_dependencies",
    "SELECT * FROM task_counts",
    "SELECT rowid, text FROM task_search",
    "SELECT seq, leaf, kind, task FROM ledger WHERE kind NOT LIKE 'call.%'",
)


def records(db: Connection, id: str) -> list[tuple[str, JSON]]:
    """The kinds and payloads of a task's records."""
    rows = db.execute(
        "SELECT kind, body FROM ledger WHERE task = ? AND kind IN ('task', 'task.text')"
        " ORDER BY seq",
        (id,),
    )
    return [(kind, json.loads(body)) for kind, body in rows]


def last_of(store: TaskStore, id: str, kind: str) -> int:
    """The seq of a task's newest record of a kind."""
    query = "SELECT max(seq) FROM ledger WHERE task = ? AND kind = ?"
    seq: int = store.db.execute(query, (id, kind)).get
    return seq


def story(db: Connection) -> TaskStore:
    """Three tasks: one is DONE, one waits for it and for the other, which is open."""
    store = TaskStore(db)
    store.create("one", project="p", assignee="ada", description="why")
    store.create("two")
    store.create("three", depends_on=["T-0001", "T-0002"], priority="high")
    store.finish("T-0001")
    store.update("T-0003", title="drei", status="GATHER")
    return store
