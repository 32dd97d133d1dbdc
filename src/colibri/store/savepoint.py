"""Parts of a transaction, in the words of every engine."""

from colibri.store.connection import Connection


class Savepoint:
    """Part of a transaction, rolled back alone if it raises.

    If the database has rolled back the whole transaction, or the connection broke,
    db.in_transaction is false afterwards.
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
