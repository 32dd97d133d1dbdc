"""The connection that the store's functions are given: `apsw.Connection` fulfils it as it is.

Opening one, transactions and all that concerns files belong to the engine: see sqlite/.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, Self

Bindings = Sequence[Any] | Mapping[str, Any]


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
    def in_transaction(self) -> bool:
        """Whether a transaction is open; an error may have ended it."""

    def execute(self, statements: str, bindings: Bindings | None = None) -> Cursor:
        """Run statements."""

    def executemany(self, statements: str, sequenceofbindings: Iterable[Bindings]) -> Cursor:
        """Run statements for each of several bindings."""

    def close(self) -> None:
        """Once."""

    def __enter__(self) -> "Self": ...

    def __exit__(self, kind: Any, problem: Any, trace: Any) -> bool | None: ...
