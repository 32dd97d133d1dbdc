"""Where a project's ledger is, and a ledger that is open for writing: what every engine offers."""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any, Protocol

from colibri.core.errors import ResourceError
from colibri.core.ledger import Head
from colibri.store.connection import Connection

Patience = Callable[[int], bool]  # called before each retry; False ends the wait


class Outdated(ResourceError):
    """The ledger does not exist or needs a migration; the next writer does both."""


class Opened(Protocol):
    """A ledger that is open for writing, and its state when it was opened."""

    @property
    def db(self) -> Connection: ...

    @property
    def log(self) -> str:
        """Which one it is; Damaged if it does not say."""

    @property
    def migrated_from(self) -> int | None:
        """The version of its schema that was migrated; 0 if it was created."""

    @property
    def backup(self) -> str | None:
        """A copy made before it was migrated."""

    @property
    def unclean(self) -> bool:
        """Whether its last writer crashed, so that all of it is worth a check."""

    @property
    def is_far(self) -> bool:
        """Whether each question takes a trip to another machine."""

    @property
    def connections(self) -> int:
        """How many it has had. What was not synced over an earlier one may be gone."""

    def transaction(
        self,
        *,
        durable: bool,
        answered: bool = False,
        known: Head | None = None,
        far: bool = False,
        ahead: Callable[[], Iterable[Callable[[], object]]] | None = None,
    ) -> AbstractContextManager[None]:
        """A transaction of one writer at a time. A durable one is synced, with all earlier ones,
        before it returns; `answered` means that a client learns of it. `known` is a record that the
        ledger must have: Damaged if it has not.

        In a `far` one only records are appended, whose numbers are known after the commit. With
        `ahead`, it also begins the next one and reads what the functions that it returns ask for.
        """

    def chain(
        self,
        log: str,
        nonce: Callable[[int], bytes],
        dump: Callable[[object], bytes] | None = None,
        *,
        known: Head | None = None,
        far: bool = False,
    ) -> Any:
        """The chain of the transaction that is open: a ledger.Chain or, if `far`, one that appends
        as that does.
        """

    def rest(self) -> None:
        """End a transaction that was begun ahead and not used."""

    def utc(self) -> str | None:
        """The time, if the ledger has a clock of its own."""

    def check(self) -> None:
        """Damaged if this is no longer the ledger that was opened: before a commit that a client
        learns of.
        """

    def check_again(self) -> None:
        """The same, after the commit and before its answers are sent; also for a new reader."""

    def wait_with(self, patience: Patience, failed: Callable[[Exception], None]) -> None:
        """Wait for other processes as `patience` says; `failed` is called with errors after a
        commit that do not undo it.
        """

    def sync(self) -> None:
        """Sync what was committed; OSError."""

    def close(self, *, checkpoint: bool = True) -> str:
        """Close it, once; returns what happened to it meanwhile, if anything. `checkpoint` is
        False after an I/O error.
        """


class Home(Protocol):
    """The place of a ledger."""

    @property
    def name(self) -> str:
        """How people know it: the path of a file, or a schema of a database."""

    def open_writer(
        self,
        *,
        timeout: float,
        monotonic: Callable[[], float],
        sleep: Callable[[float], None],
        stamp: str,
        new_log: Callable[[], str],
    ) -> Opened:
        """Open it, and create or migrate it if that is up to us; ResourceError says why not."""

    def open_reader(
        self,
        *,
        watched: bool = False,
        patience: Patience | None = None,
        older: bool = False,
        untouched: bool = False,
        unchecked: bool = False,
    ) -> Connection:
        """A read-only connection; `watched` is for long use: each of its transactions begins with
        a check that it is still the same ledger.

        Of a file alone: `older` also takes one that has to be migrated, `untouched` leaves nothing
        next to it, and with `unchecked` comparing its schema is up to the caller.
        """

    def appending(
        self,
        patience: Patience,
        *,
        monotonic: Callable[[], float],
        sleep: Callable[[float], None],
    ) -> AbstractContextManager[Opened]:
        """Open it for a few records, as it is, and soon close it again; ResourceError if that
        cannot be done now.
        """

    def is_there(self) -> bool:
        """Whether it was made; a server is not asked, and says so when it is opened."""

    def identity(self) -> object:
        """What changes if another ledger takes its place."""

    def version(self) -> str:
        """The engine's own version."""

    def exposure(self) -> str:
        """Which other users can read or write it, and what to do; or nothing."""

    def is_small(self) -> bool:
        """Whether all of it can be checked at every start."""
