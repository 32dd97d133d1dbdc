"""The ledger's tables: `ledger` and `meta`; appending to the chain and reading it.

Nothing here begins a write transaction: a Chain lives inside one that its caller holds, which is
what keeps two processes from extending the same head.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

from colibri.core import ledger as record
from colibri.core.errors import Damaged
from colibri.core.ledger import Entry, Head
from colibri.core.rows import Row
from colibri.store.connection import Connection
from colibri.store.faults import breaks_constraint

_COLUMNS = ", ".join(Row._fields)
INSERT = f"INSERT INTO ledger ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"

_PART = 256  # records that are read at once
_FROM = " FROM ledger WHERE seq >= ? AND seq <= ? ORDER BY seq LIMIT ?"


def create_log(db: Connection, log: str) -> None:
    """Give a new database its identity; once, in the transaction that creates it."""
    db.execute("INSERT INTO meta (key, value) VALUES ('log', ?)", (log,))


def log_id(db: Connection) -> str:
    """The log's id; Damaged if the database has none."""
    row = db.execute("SELECT value FROM meta WHERE key = 'log'").fetchone()
    if row is None:
        raise Damaged("the database does not say which log it holds")
    return str(row[0])


def verified(db: Connection) -> str | None:
    """The last record up to which a server has found the log good; a note, and no evidence."""
    value: str | None = db.execute("SELECT value FROM meta WHERE key = 'verified'").get
    return value


def note_verified(db: Connection, seq: int) -> None:
    db.execute(
        "INSERT INTO meta (key, value) VALUES ('verified', ?)"
        " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        (str(seq),),
    )


def head(db: Connection) -> Head | None:
    row = db.execute("SELECT seq, leaf FROM ledger ORDER BY seq DESC LIMIT 1").fetchone()
    return Head(*row) if row else None


def last_seq(db: Connection) -> int:
    """Of the newest record; 0 if there is none."""
    newest = head(db)
    return newest.seq if newest else 0


def leaf_at(db: Connection, seq: int) -> bytes | None:
    """The leaf stored at a seq, or None if there is none."""
    row = db.execute("SELECT leaf FROM ledger WHERE seq = ?", (seq,)).fetchone()
    return row[0] if row else None


class Chain:
    """The head of the ledger inside one write transaction, and the way to extend it.

    A savepoint that is rolled back takes records with it: mark() before it, reset() after.
    """

    __slots__ = ("_db", "_dump", "_head", "_log", "_nonce")

    is_far = False  # its records have their numbers at once

    def __init__(
        self,
        db: Connection,
        log: str,
        nonce: Callable[[int], bytes],
        dump: Callable[[object], bytes] | None = None,
        newest: Head | None = None,
    ) -> None:
        """`dump` encodes payloads whose values were checked before; without it they are checked.

        `newest` is the head, if the caller has just read it.
        """
        self._db = db
        self._dump = dump
        self._log = log
        self._nonce = nonce
        self._head = newest or head(db) or Head(0, record.genesis(log))

    def append(
        self,
        kind: str,
        payload: record.Said,
        *,
        at: str,
        call: str,
        session: str | None = None,
        task: str | None = None,
        agent: str | None = None,
    ) -> Entry:
        """Add a record and return it.

        ValueError if the payload is not one of its kind, Damaged if a row that does not belong
        there is in its way.
        """
        seq, prev = self._head.seq + 1, self._head.leaf
        nonce = self._nonce(seq)
        body = record.body(kind, payload, self._dump)
        said = (seq, at, kind, call, session, task, agent, record.commitment(nonce, body))
        leaf = record.leaf(record.header(self._log, *said, prev))
        try:
            self._db.execute(INSERT, (*said, nonce, body, leaf, prev))
        except Exception as problem:
            if not breaks_constraint(problem):
                raise
            what, *_ = str(problem).splitlines()
            why = f"the database refuses record {seq}: {what}"
            raise Damaged(f"{why}; audit_verify_chain says what is wrong with it") from problem
        self._head = Entry(seq, leaf)
        return self._head

    def mark(self) -> Head:
        return self._head

    def reset(self, mark: Head) -> None:
        self._head = mark


def stretch(db: Connection, first: int, last: int, size: int) -> list[tuple[Any, ...]]:
    """Rows from a seq to another, so many at most, even if a text in them is none."""
    try:
        return db.execute(f"SELECT {_COLUMNS}{_FROM}", (first, last, size)).fetchall()
    except UnicodeDecodeError:
        return [*db.engine.records(db, _FROM, (first, last, size))]


def creation_of(db: Connection, id: str) -> Row | None:
    """The record that creates a task, if one does."""
    query = " FROM ledger WHERE task = ? AND kind = 'task' ORDER BY seq LIMIT 1"
    return next(iter(db.engine.records(db, query, (id,))), None)


def seqs_of_task(db: Connection, id: str) -> list[int]:
    """The records that name a task."""
    rows = db.execute("SELECT seq FROM ledger WHERE task = ? ORDER BY seq", (id,))
    return [seq for (seq,) in rows]


def rows_of_task(db: Connection, id: str) -> list[Row]:
    """The same, whole, even if a text in them is none."""
    return db.engine.records(db, " FROM ledger WHERE task = ? ORDER BY seq", (id,))


def deeds_of(db: Connection, session: str) -> list[int]:
    """The deeds of a session, and their texts."""
    kinds = "(kind = 'deed' OR kind = 'deed.text')"
    rows = db.execute(f"SELECT seq FROM ledger WHERE session = ? AND {kinds}", (session,))
    return [seq for (seq,) in rows]


def rows(db: Connection, seqs: Iterable[int]) -> Iterator[Row]:
    """The records with these ascending numbers, as far as they are there.

    Even if a text in them is none. The numbers are taken as they are needed: a log may be long.
    """
    wanted = iter(seqs)
    while some := [*islice(wanted, _PART)]:
        among = ", ".join("?" * len(some))
        yield from db.engine.records(db, f" FROM ledger WHERE seq IN ({among}) ORDER BY seq", some)


def calls_since(db: Connection, seq: int) -> Iterator[tuple[int, str, str]]:
    """(seq, kind, call) of every enter and exit after seq, in slices: a log may be long."""
    while True:
        rows: list[Any] = db.execute(
            "SELECT seq, kind, call FROM ledger"
            " WHERE seq > ? AND kind IN ('call.enter', 'call.exit') ORDER BY seq LIMIT 10000",
            (seq,),
        ).fetchall()
        yield from rows
        if not rows:
            return
        seq = rows[-1][0]
