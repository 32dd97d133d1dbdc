"""Transactions of a ledger on PostgreSQL.

Whoever appends holds the lock of the log's head from the beginning of a transaction to its commit.
The commit is not synced, so that the lock is held for no disk; a durable transaction is flushed
afterwards, by a small one of its own that is synced: that covers all before it. Until then nobody
may be told of it: a crash would take it back.
"""

from colibri.core.errors import Damaged
from colibri.store.connection import Connection
from colibri.store.postgres import SCHEMA
from colibri.store.postgres.faults import OTHER_VERSION

# Each statement sees what was committed before it: the head is read after the lock is ours. One log
# has one lock; it needs no right on any row, and is given in the order of asking. Only then is
# it known whether the schema was migrated meanwhile.
_BEGIN = (
    "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL synchronous_commit = off;"
    f" SELECT lock_head({SCHEMA})"
)
# A commit that has written nothing of its own would not wait for the disk.
_FLUSH = (
    "BEGIN; SET LOCAL synchronous_commit = on;"
    " SELECT pg_logical_emit_message(true, 'colibri', ''); COMMIT"
)


class Transaction:
    """A write transaction; a durable one is flushed, with all earlier ones, before it returns."""

    __slots__ = ("_db", "_durable")

    def __init__(self, db: Connection, *, durable: bool) -> None:
        self._db = db
        self._durable = durable

    def __enter__(self) -> None:
        try:
            self._db.execute(_BEGIN)
        except BaseException as problem:
            self._end()
            if getattr(problem, "sqlstate", None) == OTHER_VERSION:
                what, *_ = str(problem).splitlines()
                raise Damaged(
                    f"{what}: start it again, and use the newer Colibri that migrated it"
                ) from problem
            raise

    def __exit__(self, kind: object, problem: BaseException | None, trace: object) -> None:
        try:
            if problem is None:
                self._db.execute("COMMIT")
        finally:
            self._end()
        if problem is None and self._durable:
            flush(self._db)

    def _end(self) -> None:
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")


def flush(db: Connection) -> None:
    """Wait until all that was committed before is on disk, and on a synchronous standby."""
    db.execute(_FLUSH)
