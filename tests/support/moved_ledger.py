"""A ledger with everything in it, in a project's file; and what a copy of it must have as well."""

import random
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

from colibri.store import bundle, log_tree, sessions, tasks, trail
from colibri.store.connection import Connection
from colibri.store.sqlite import SCHEMA
from colibri.store.sqlite.schema import APPLICATION_ID
from tests.support.client import COLIBRI, Server
from tests.support.ledger_reader import reading
from tests.support.ledger_writer import Lab
from tests.support.observed import HOST, run
from tests.support.postgres import connection, copying, server
from tests.support.program import database_of
from tests.support.random_logs import random_log

RULE = '[gate.done]\ncommand = "pytest*"\nexit = 0\n'
WHY = {"thought": {"type": "reflection", "content": "it works, and the tests say so"}}
STEPS = ["GATHER", "ANALYZE", "PLAN", "APPLY", "VERIFY"]
LEFT_OUT = {"meta", "task_search", "thought_search", "thought_words"}  # each engine has its own
QUESTIONS = ("quoted word", "später", "it works", "so", "nothing of that")


def save(lab: Lab, project: Path) -> Path:
    """Put a log that was made in memory into a project; returns the project."""
    lab.db.execute(f"PRAGMA user_version = {SCHEMA}; PRAGMA application_id = {APPLICATION_ID}")
    database_of(project).parent.mkdir(parents=True)
    database_of(project).write_bytes(lab.db.serialize("main"))
    return project


def fill(project: Path, calls: int) -> Path:
    """Some hundred random calls, then the work of an agent under a gate. No table is empty."""
    lab = random_log(random.Random(19), calls)
    while log_tree.is_behind(lab.db):
        log_tree.keep(lab.db)
    save(lab, project)
    (project / "colibri.toml").write_text(RULE, encoding="utf-8")
    with Server(project, COLIBRI, CLAUDE_CODE_SESSION_ID=HOST) as server:
        session = server.data("audit_session_start", intent="work under a gate", brief=False)
        task = server.data("task_create", title="Prüfen", key="once")["task_id"]
        server.data("task_update", task_id=task, status=STEPS)
        refused = server.call("task_update", task_id=task, status="DONE", **WHY)
        assert "ERR_GATE" in str(refused)
        run(project, "pytest -q")
        server.data("task_update", task_id=task, status="DONE", **WHY)
        server.data("merkle_finalize", session_id=session["session_id"])
    return project


@contextmanager
def shared(schema: str) -> Iterator[Connection]:
    """The ledger in a schema, for reading."""
    with closing(connection.connect(server().url(f"{schema}_reader"))) as db:
        yield db


def require_same(project: Path, schema: str) -> None:
    """Every row, every bundle and every answer of a search is the same in both places."""
    with reading(database_of(project)) as file, shared(schema) as copy:
        for table in {"ledger", *chain.from_iterable(copying.GROUPS)} - LEFT_OUT:
            assert rows(copy, copy, table) == rows(copy, file, table), table
        assert [*bundles(copy)] == [*bundles(file)]
        assert [*answers(copy)] == [*answers(file)]


def rows(shape: Connection, db: Connection, table: str) -> list[Any]:
    columns = shape.execute(
        "SELECT attname FROM pg_attribute WHERE attrelid = CAST(? AS regclass) AND attnum > 0"
        " AND attgenerated = '' ORDER BY attnum",
        (table,),
    ).fetchall()
    return sorted(map(repr, db.execute(f"SELECT {', '.join(n for (n,) in columns)} FROM {table}")))


def bundles(db: Connection) -> Iterator[bytes]:
    yield from bundle.write(db, bundle.whole_log(db))
    for session in sessions.every(db):
        yield from bundle.write(db, bundle.of_session(db, session.session_id))


def answers(db: Connection) -> Iterator[Any]:
    for words in QUESTIONS:
        yield tasks.find(db, tasks.Filter(), search=words, limit=50, offset=0)
        found, total = trail.find(db, trail.Filter(), search=words, limit=50, offset=0)
        yield [one.seq for one in found], total
