"""Moves a ledger from a file into a schema of a database, where a team shares it from then on.

While it is copied, which copying.py does, the version of the schema is below 0, so that no server
writes to it, and `moving` in `meta` says with which record of the file the copy will end. After an
interruption the copy continues with what is missing.
"""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any, Literal

import psycopg
from psycopg import sql

from colibri.core.errors import ResourceError
from colibri.core.ledger import Head
from colibri.core.report import Report
from colibri.store import connection, ledger
from colibri.store.postgres import SCHEMA, faults, roles, schema, team
from colibri.store.postgres.connection import Connection
from colibri.store.postgres.copying import Progress, copy, forget_tables, transaction
from colibri.store.verify import verify

_NOTE = "moving"
_LOCK = 0x436F6C36  # of two that fill a schema at once
_SECONDS = 15  # that the session of one which was killed may take to end

State = Literal["empty", "unfinished", "whole"]


@contextmanager
def target(url: str, name: str) -> Iterator["Target"]:
    """The schema of this name, for somebody who may act as its owner; ResourceError."""
    schema.require_name(name)
    with closing(team.connect(url)) as pg, _explained(name, pg.info.user):
        pg.execute(f"SET lock_timeout = '{_SECONDS}s'; SET statement_timeout = 0".encode())
        try:
            pg.execute("SELECT pg_advisory_lock(%s::int, hashtext(%s))", (_LOCK, name))
        except psycopg.errors.LockNotAvailable:
            raise ResourceError(
                f"another colibri move-ledger is at work on the schema {name}", "wait for its end"
            ) from None
        yield Target(pg, name)


class Target:
    """A schema that a ledger is copied into; `db` is for reading it."""

    def __init__(self, pg: psycopg.Connection[Any], name: str) -> None:
        self.db = Connection(pg)
        pg.prepare_threshold = 5  # a migration has several statements, which cannot be prepared
        self._pg = pg
        self._name = name

    def begin(self, log: str, head: Head | None) -> State:
        """Make the schema, or take an empty one, for this log; returns what it was before.

        ResourceError if something else is in it. A whole copy is left as it is.
        """
        with transaction(self._pg):
            state = self._state(log, head)
            if state == "empty":
                team.make(self._pg, self._name, log)
                self._take(log, head)
        self._act_as_owner("SESSION")
        self._pg.execute("SET synchronous_commit = off")
        return state

    def copy(self, source: connection.Connection, progress: Progress) -> None:
        """Copy what is missing; progress(rows done, all rows). The source must not change."""
        head = ledger.head(source)
        if self._noted() != head:  # the file has more records than when it was copied
            with transaction(self._pg):
                forget_tables(source, self.db)
                self._note(head)
        copy(source, self.db, progress)

    def check(self, head: Head | None, pause: Callable[[], None]) -> tuple[list[str], Report]:
        """How the schema differs from the one that Colibri makes, and the report of all in it."""
        return self.db.engine.foreign(self.db), verify(self.db, head=head, pause=pause)

    def finish(self, head: Head | None) -> None:
        """Let servers write to it."""
        with transaction(self._pg):
            self._pg.execute("SET LOCAL synchronous_commit = on")
            self._pg.execute("SELECT lock_head(%s)", (-SCHEMA,))
            self._set("schema", str(SCHEMA))
            self._set("verified", str(head.seq if head else 0))
            self._pg.execute("DELETE FROM meta WHERE key = %s", (_NOTE,))

    def give_back(self, log: str, head: Head | None) -> None:
        """Let no server write to it any more; ResourceError if one has since it was copied."""
        with transaction(self._pg):
            if not team.is_there(self._pg, self._name):
                return
            self._act_as_owner("LOCAL")
            version = schema.version(self._pg)
            if version <= 0 or ledger.log_id(self.db) != log:
                return
            self._pg.execute("SELECT lock_head(%s)", (version,))
            newest = ledger.head(self.db)
            if newest != head:
                more = (newest.seq if newest else 0) - (head.seq if head else 0)
                raise ResourceError(
                    f"the schema {self._name} holds {more:,} records that the file has not",
                    "the ledger is there now: set COLIBRI_DB_URL and COLIBRI_DB_SCHEMA",
                )
            self._note(head)

    def _state(self, log: str, head: Head | None) -> State:
        if not team.is_there(self._pg, self._name):
            return "empty"
        self._act_as_owner("LOCAL")
        version = schema.version(self._pg)
        if version == 0:
            return "empty"
        held, newest = ledger.log_id(self.db), ledger.head(self.db)
        if version < 0 and (held != log or version != -SCHEMA):
            what = "a newer or older Colibri began" if held == log else f"is of another log, {held}"
            raise ResourceError(
                f"the schema {self._name} holds an unfinished copy that {what}",
                "name another schema, or drop this one with psql",
            )
        if version < 0:
            return "unfinished"
        if newest is None:
            return "empty"
        if held == log and head and ledger.leaf_at(self.db, head.seq) == head.leaf:
            return "whole"
        raise ResourceError(
            f"the schema {self._name} is not empty: it holds {newest.seq:,} records of {held}",
            "name a new schema with --schema; colibri move-ledger makes it",
        )

    def _take(self, log: str, head: Head | None) -> None:
        """Keep every server out of an empty schema, and give it this log's name."""
        self._pg.execute("SELECT lock_head(%s)", (SCHEMA,))
        if ledger.head(self.db) is not None:  # a server was faster
            raise ResourceError(
                f"the schema {self._name} is not empty any more",
                "close the clients that use it, and name a new schema",
            )
        self._set("log", log)
        self._note(head)

    def _act_as_owner(self, scope: str) -> None:
        """For the rest of the transaction, or of the session; tables are found in the schema."""
        owner = sql.Identifier(roles.names(self._name).owner)
        self._pg.execute(sql.SQL(f"SET {scope} ROLE {{}}").format(owner))
        path = sql.SQL(f"SET {scope} search_path = {{}}, pg_temp")
        self._pg.execute(path.format(sql.Identifier(self._name)))

    def _note(self, head: Head | None) -> None:
        self._set("schema", str(-SCHEMA))
        self._set(_NOTE, f"{head.seq}:{head.leaf.hex()}" if head else "")

    def _noted(self) -> Head | None:
        text: str = self.db.execute("SELECT value FROM meta WHERE key = ?", (_NOTE,)).get
        seq, _, leaf = text.partition(":")
        return Head(int(seq), bytes.fromhex(leaf)) if seq else None

    def _set(self, key: str, value: str) -> None:
        self._pg.execute(
            "INSERT INTO meta (key, value) VALUES (%s, %s)"
            " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            (key, value),
        )


@contextmanager
def _explained(name: str, user: str) -> Iterator[None]:
    """ResourceError for what the database refuses, with what to do."""
    try:
        yield
    except psycopg.errors.InsufficientPrivilege as problem:
        raise ResourceError(
            f"{user} may not fill the schema {name}: {problem.diag.message_primary}",
            f"connect as a superuser, or as a member of {roles.names(name).owner}",
        ) from None
    except psycopg.DataError as problem:
        raise ResourceError(
            f"PostgreSQL cannot hold a text of the file: {_first_line(problem)}",
            "U+0000 is the only character that it cannot; this ledger has to stay in its file",
        ) from problem
    except psycopg.Error as problem:
        full = faults.fault(problem) == "full"
        raise ResourceError(
            f"the database failed: {_first_line(problem)}",
            ("make room on its disk, then run" if full else "run") + " the same command again:"
            " it continues with what is missing",
        ) from problem


def _first_line(problem: psycopg.Error) -> str:
    return " ".join(str(problem).split("\n")[0].split())
