"""Transactions and parts of them. Every call passes here, so they are plain objects."""

from apsw import Connection


class Transaction:
    """A write transaction; durable: synced before the commit returns, with all that came before."""

    __slots__ = ("_db", "_durable")

    def __init__(self, db: Connection, *, durable: bool) -> None:
        self._db = db
        self._durable = durable

    def __enter__(self) -> None:
        self._db.execute(
            "PRAGMA synchronous = FULL" if self._durable else "PRAGMA synchronous = NORMAL"
        )
        self._db.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: object, problem: BaseException | None, trace: object) -> None:
        try:
            if problem is None:
                self._db.execute("COMMIT")
        finally:
            if self._db.in_transaction:  # a full disk or an I/O error has SQLite roll back itself
                self._db.execute("ROLLBACK")


class Savepoint:
    """Part of a transaction, undone alone if it raises.

    If SQLite has rolled back the whole transaction the caller finds db.in_transaction false.
    """

    __slots__ = ("_db",)

    def __init__(self, db: Connection) -> None:
        self._db = db

    def __enter__(self) -> None:
        self._db.execute("SAVEPOINT part")

    def __exit__(self, kind: object, problem: BaseException | None, trace: object) -> None:
        if problem is None:
            self._db.execute("RELEASE part")
        elif self._db.in_transaction:
            self._db.execute("ROLLBACK TO part; RELEASE part")
