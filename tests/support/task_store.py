"""Tasks in a real database without a server: finding them, and all that is stored of them."""

import json
from collections.abc import Sequence
from typing import Any

from colibri.core.ledger import Entry
from colibri.store import tasks
from colibri.store.sqlite.connection import Connection
from colibri.store.tasks import Filter, Task
from tests.support import engines, ledger_writer
from tests.support.ledger_writer import JSON, TO_VERIFY, Lab

KEPT: Sequence[str] = (
    "SELECT * FROM tasks",
    "SELECT * FROM task_dependencies",
    "SELECT * FROM task_counts",
    "SELECT text FROM task_search",
    "SELECT seq, leaf, kind, task FROM ledger WHERE kind NOT LIKE 'call.%'",
)


def in_memory() -> "TaskStore":
    """A store in memory, for tests with many examples: real SQLite, no file."""
    engines.require_sqlite("many examples")
    return TaskStore(ledger_writer.in_memory().db)


class TaskStore(Lab):
    """A lab with helpers to finish, find and compare tasks."""

    def finish(self, task: str) -> Task:
        self.give_evidence(task)
        return self.move(task, *TO_VERIFY, "DONE")

    def forge_in_a_call(self, kind: str, payload: JSON, *, task: str) -> Entry:
        """Append a well-formed record, within a call, that no tool would write."""
        return self.call("task_update", lambda call: call.append(kind, payload, task=task))

    def find(
        self, search: str | None = None, *, limit: int = 500, offset: int = 0, **wanted: str
    ) -> tuple[list[str], int]:
        """The ids on a page, and the total."""
        found, total = tasks.find(
            self.db, Filter(**wanted), search=search, limit=limit, offset=offset
        )
        return [task.task_id for task in found], total

    def ready(self, *, limit: int = 100, **wanted: str) -> tuple[list[str], int]:
        found = tasks.queue(self.db, Filter(**wanted), limit)
        return [task.task_id for task in found], tasks.count_ready(self.db, Filter(**wanted))

    def breaks(self, **options: Any) -> list[tuple[int | None, str, str]]:
        return [(seq, what, detail) for seq, what, detail in self.verify(**options).breaks]

    def kept(self) -> dict[str, list[Any]]:
        """Every row that a change of a task could touch."""
        return {query: list(self.db.execute(query)) for query in KEPT}


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
    return store.seqs(kind, task=id)[-1]


def story(db: Connection) -> TaskStore:
    """Three tasks: one DONE, one open, and one that depends on both."""
    store = TaskStore(db)
    store.create("one", project="p", assignee="ada", description="why")
    store.create("two")
    store.create("three", depends_on=["T-0001", "T-0002"], priority="high")
    store.finish("T-0001")
    store.update("T-0003", title="drei", status="GATHER")
    return store
