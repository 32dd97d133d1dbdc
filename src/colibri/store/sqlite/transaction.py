"""Transactions. Every call uses them, so they are plain objects, for speed."""

from colibri.store.connection import Connection


class Transaction:
    """A write transaction; a durable one syncs itself and all earlier ones before it returns."""

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
            if self._db.in_transaction:  # after a full disk or an I/O error SQLite has rolled back
                self._db.execute("ROLLBACK")
