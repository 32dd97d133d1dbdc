"""The work that every stack does for one call, in Python: the tool that all of them have.

    create(title)   1 append an enter record to a SHA-256 chain, commit
                    2 insert the task, append an exit record to the chain, commit

WAL; both commits are synced (synchronous=FULL). With BENCH_SYNCS=1 the first one is not, as in
Colibri, where the sync of the second commit covers it. `typescript_sdk.mjs` has the same in
JavaScript, statement for statement.
"""

import json
import os
import sqlite3
import time
from hashlib import sha256

SCHEMA = """
    CREATE TABLE IF NOT EXISTS ledger (
        seq  INTEGER PRIMARY KEY,
        body TEXT NOT NULL,
        prev BLOB NOT NULL UNIQUE,
        leaf BLOB NOT NULL UNIQUE
    ) STRICT;
    CREATE TABLE IF NOT EXISTS tasks (
        id INTEGER PRIMARY KEY, title TEXT NOT NULL, at INTEGER NOT NULL
    ) STRICT;
"""
HEAD = "SELECT seq, leaf FROM ledger ORDER BY seq DESC LIMIT 1"
APPEND = "INSERT INTO ledger (seq, body, prev, leaf) VALUES (?, ?, ?, ?)"
INSERT = "INSERT INTO tasks (title, at) VALUES (?, ?)"
ONE_SYNC = os.environ.get("BENCH_SYNCS") == "1"

Answer = dict[str, str | int]


class Ledger:
    """A database in the working directory."""

    def __init__(self) -> None:
        self._db = sqlite3.connect("stack.db", isolation_level=None, timeout=30)
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=FULL")
        self._db.executescript(SCHEMA)

    def create(self, title: str) -> Answer:
        """Both commits; the answer names the task and its record."""
        db = self._db
        if ONE_SYNC:
            db.execute("PRAGMA synchronous=NORMAL")
        db.execute("BEGIN IMMEDIATE")
        enter, _ = self._append({"kind": "enter", "tool": "task_create", "title": title})
        db.execute("COMMIT")
        if ONE_SYNC:
            db.execute("PRAGMA synchronous=FULL")
        db.execute("BEGIN IMMEDIATE")
        task = db.execute(INSERT, (title, time.time_ns() // 1_000_000)).lastrowid
        seq, leaf = self._append({"kind": "exit", "enter": enter, "task": task})
        db.execute("COMMIT")
        return {"id": f"T-{task}", "title": title, "seq": seq, "head": leaf.hex()}

    def _append(self, record: dict[str, object]) -> tuple[int, bytes]:
        seq, prev = self._db.execute(HEAD).fetchone() or (0, bytes(32))
        body = json.dumps(record, separators=(",", ":"))
        leaf = sha256(prev + body.encode()).digest()
        self._db.execute(APPEND, (seq + 1, body, prev, leaf))
        return seq + 1, leaf
