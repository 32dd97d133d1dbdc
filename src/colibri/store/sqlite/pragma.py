"""Single numbers that SQLite tells of a database."""

from colibri.store.connection import Connection


def version(db: Connection) -> int:
    """The schema version in the file's header."""
    return number(db, "PRAGMA user_version")


def number(db: Connection, query: str) -> int:
    """The single number that a query returns."""
    (value,) = next(db.execute(query))
    assert isinstance(value, int)
    return value
