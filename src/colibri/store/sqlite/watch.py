"""Whether the schema of an open database is still the one that it was opened with.

SQLite takes over a schema that another program changes with the next statement. So each transaction
asks first whether anybody else has written (`data_version`), which costs 1 µs, and if so whether
that was to the schema.
"""

import sys
from collections.abc import Callable, Sequence
from typing import Self

import apsw

from colibri.core.errors import Damaged
from colibri.store.sqlite.connection import number, version
from colibri.store.sqlite.expected import differences
from colibri.store.sqlite.schema import Migration
from colibri.store.sqlite.transaction import Transaction


class Watch:
    """What a connection knows of the schema."""

    __slots__ = ("_data", "_db", "_migrations", "_schema", "_version")

    def __init__(self, db: apsw.Connection, migrations: Sequence[Migration]) -> None:
        self._db = db
        self._migrations = migrations
        self._version = version(db)
        self._schema = number(db, "PRAGMA schema_version")
        self._data = number(db, "PRAGMA data_version")

    def check(self) -> None:
        """Damaged if somebody else has migrated the database or changed its schema."""
        data = number(self._db, "PRAGMA data_version")
        if data != self._data:
            self._look()
            self._data = data

    def _look(self) -> None:
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
    """A write transaction in a database whose schema is ours; Damaged before anything is done."""

    __slots__ = ("_watch",)

    def __init__(self, db: apsw.Connection, watch: Watch, *, durable: bool) -> None:
        super().__init__(db, durable=durable)
        self._watch = watch

    def __enter__(self) -> None:
        super().__enter__()
        try:
            self._watch.check()
        except BaseException:
            self._db.execute("ROLLBACK")
            raise


class Reader(apsw.Connection):
    """A read-only connection; each of its transactions begins with a look at the schema.

    `also` is asked at the same moment; it raises Damaged if something else is not as it was.
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
