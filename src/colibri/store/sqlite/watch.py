"""Detects that another program changed the schema of an open database.

SQLite follows a schema change by another program from the next statement on. So each transaction
first asks whether anybody else has written (`data_version`), which costs 1 µs, and if so, whether
the schema changed. The first transaction of a connection always compares the schema: whatever was
seen before it may have changed since.
"""

import sys
from collections.abc import Callable, Sequence
from typing import Self

from colibri.core.errors import Damaged
from colibri.store.sqlite.connection import Connection
from colibri.store.sqlite.expected import differences
from colibri.store.sqlite.pragma import number, version
from colibri.store.sqlite.schema import Migration
from colibri.store.sqlite.transaction import Transaction

_UNKNOWN = -1


class Watch:
    """What a connection knows of the schema that these migrations made."""

    __slots__ = ("_data", "_db", "_migrations", "_schema", "_version")

    def __init__(self, db: Connection, migrations: Sequence[Migration]) -> None:
        self._db = db
        self._migrations = migrations
        self._version = migrations[-1].version
        self._schema = self._data = _UNKNOWN

    def check(self) -> None:
        """Damaged if another program migrated the database or changed its schema.

        Call it in a transaction, so that all of this is about the same moment.
        """
        data = number(self._db, "PRAGMA data_version")
        if data != self._data:
            self._check_versions()
            self._data = data

    def _check_versions(self) -> None:
        now = version(self._db)
        if now > self._version:
            raise Damaged("a newer Colibri migrated it: restart")
        if now < self._version:
            raise Damaged("the database file was replaced by an older one")
        schema = number(self._db, "PRAGMA schema_version")
        if schema != self._schema:
            if foreign := differences(self._db, self._migrations):
                raise Damaged(f"the schema of the database was changed: {foreign[0]}")
            self._schema = schema


class Change(Transaction):
    """A write transaction that begins with a check of the schema and raises Damaged."""

    __slots__ = ("_watch",)

    def __init__(self, db: Connection, watch: Watch, *, durable: bool) -> None:
        super().__init__(db, durable=durable)
        self._watch = watch

    def __enter__(self) -> None:
        super().__enter__()
        try:
            self._watch.check()
        except BaseException:
            self._db.execute("ROLLBACK")
            raise


class Reader(Connection):
    """A read-only connection; each of its transactions begins with a check of the schema.

    `also` is called at the same moment; it raises Damaged if anything else has changed.
    """

    watch: Watch | None = None
    also: Callable[[], None] | None = None

    def __enter__(self) -> Self:
        super().__enter__()
        try:
            if self.watch is not None:
                self.watch.check()
            if self.also is not None:
                self.also()
        except BaseException:
            super().__exit__(*sys.exc_info())
            raise
        return self
