"""The connection that the store's functions are given, and what it can do in its engine's own way.

A connection of `apsw` has the methods as they are. Opening one, transactions and all that concerns
files belong to the engine as well: see sqlite/.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from colibri.core.rows import Row

Bindings = Sequence[Any] | Mapping[str, Any]
Query = tuple[str, Sequence[Any]]  # a question for the seqs of thoughts, with its values


class Cursor(Protocol):
    """The rows of a statement that was executed."""

    @property
    def get(self) -> Any:
        """All rows, with as little around them as possible: a single value is just that."""

    def fetchone(self) -> Any | None:
        """The next row, if there is one."""

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All rows."""

    def __iter__(self) -> Iterator[tuple[Any, ...]]: ...

    def __next__(self) -> tuple[Any, ...]: ...


class Connection(Protocol):
    """An open database; as a context manager it is one transaction."""

    @property
    def engine(self) -> "Engine":
        """What it does in its own way."""

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open; an error may have ended it."""

    def execute(self, statements: str, bindings: Bindings | None = None) -> Cursor:
        """Run statements."""

    def executemany(self, statements: str, sequenceofbindings: Iterable[Bindings]) -> Cursor:
        """Run statements for each of several bindings."""

    def look_ahead(self, reads: Iterable[Callable[[], object]], *, further: bool = False) -> None:
        """If the database is far, send the first question of each of these functions at once; they
        are answered together, as long as nothing is changed before they are asked for.

        To look further is to wait for what was sent ahead before, and to go on from there: then
        it is the first question of each that has no answer yet.
        """

    def total_changes(self) -> int:
        """How many rows it has changed so far, or more: it grows with every change."""

    def close(self) -> None:
        """Once."""

    def __enter__(self) -> object: ...

    def __exit__(self, kind: Any, problem: Any, trace: Any) -> bool | None: ...


class TaskSearch(Protocol):
    """Finds tasks by words in their title or description."""

    def add(self, db: Connection, number: int, title: str, description: str | None) -> None:
        """A new task has this number and these texts."""

    def change(self, db: Connection, number: int, title: str, description: str | None) -> None:
        """The texts of a task have changed to these."""

    def forget(self, db: Connection) -> None:
        """Keep nothing of texts that were there before."""

    def find(self, db: Connection, text: str, clause: str, values: Sequence[str]) -> list[int]:
        """The numbers of all tasks that contain every word of a text, oldest first."""

    def known(self, db: Connection) -> int:
        """The last task that must be in the index."""

    def texts(self, db: Connection) -> Iterator[tuple[int, str]]:
        """Number and text of all that is in the index, in order."""


class ThoughtIndex(Protocol):
    """Which thoughts have which words.

    A phrase is some words in a row, as the index has them: folded, with a space between two.
    """

    def add(self, db: Connection, texts: Sequence[tuple[int, str]]) -> None:
        """Index some thoughts: seq and text of each."""

    def forget(self, db: Connection, seqs: Sequence[int]) -> None:
        """Remove some thoughts, and what is left of those removed before."""

    def last(self, db: Connection) -> int:
        """The newest thought in the index; 0 if there is none."""

    def beginning(self, db: Connection, start: str, most: int) -> list[str]:
        """The first words that begin so, at most so many."""

    def count(self, db: Connection, phrases: Sequence[str], most: int) -> int:
        """How many thoughts have one of some phrases, up to a number."""

    def missing(self) -> "Query":
        """The thoughts that are not in the index yet: all after the newest one in it."""

    def having(self, phrases: Sequence[str]) -> "Query":
        """The seqs of the thoughts that have one of some phrases, each once."""

    def newest(self, phrases: Sequence[Sequence[str]], most: int) -> "Query":
        """The newest thoughts that have one phrase of each group."""

    def altered(self, db: Connection) -> Iterator[int]:
        """The seqs of thoughts that only one of the ledger and the index has."""

    def has_other_words(self, db: Connection) -> bool:
        """Whether its list of words is not that of the words of its thoughts."""


class Engine(Protocol):
    """What each database does in its own way."""

    @property
    def is_far(self) -> bool:
        """Whether each question takes a trip to another machine."""

    @property
    def task_search(self) -> TaskSearch: ...

    @property
    def thought_index(self) -> ThoughtIndex: ...

    def rows(
        self,
        db: Connection,
        columns: Sequence[str],
        query: str,
        values: Sequence[object] = (),
        *,
        texts: Container[str],
    ) -> Iterator[tuple[Any, ...]]:
        """Some columns of the rows that a query, given from its FROM on, finds; `texts` are those
        which hold text, even if somebody has stored something else there.
        """

    def records(self, db: Connection, query: str, values: Sequence[object]) -> list[Row]:
        """The records that a query, given from its FROM on, finds, in the same way."""

    def transaction(self, db: Connection, *, durable: bool) -> AbstractContextManager[None]:
        """A write transaction; a durable one is safe on disk, with all earlier ones, before it
        returns.
        """

    def last_sign(self, session: str, columns: str) -> str:
        """A query for seq or at of a session's last sign of life: the exit of a call that was not
        refused, a deed that was not late, or its opening. A long session must not cost more.
        """

    def sync(self, db: Connection) -> None:
        """Make sure that all it could read so far survives a crash: people keep heads."""

    def listening(self, db: Connection) -> AbstractContextManager[Callable[[float], object] | None]:
        """Gives a function that waits for more records, but no longer than some seconds; None if
        nobody tells of any.
        """

    def facts(self, db: Connection) -> dict[str, Any]:
        """What people want to know about the place: its size, and of a server who we are there."""

    def lacks_to_erase(self, db: Connection) -> str:
        """The role whose rights are missing to erase anything, or nothing."""

    def erase(self, db: Connection, seq: int) -> None:
        """Take the payload of a record out of the ledger."""

    def rewrite(self, db: Connection, timeout_ms: int) -> bool | None:
        """Remove what is left of erased texts; False if another process prevents it, None if that
        is up to an administrator.
        """

    def foreign(self, db: Connection) -> list[str]:
        """What the schema has that no version of Colibri has made, or lacks."""

    def table_count(self, db: Connection) -> int:
        """How many tables there are."""

    def small_tables(self, db: Connection) -> list[str]:
        """The parts that are small enough for every health check."""

    def quick_check(self, db: Connection, table: str | None) -> list[str]:
        """What the engine finds wrong with one of these, or with all there is."""

    def integrity_check(self, db: Connection) -> list[str]:
        """The same of all there is, as thoroughly as the engine can."""

    def damaged(self, db: Connection, *, pause: Callable[[], None]) -> Iterator[str]:
        """What is wrong with the indexes."""
