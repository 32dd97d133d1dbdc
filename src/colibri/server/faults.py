"""What an error of the store means for a call and for the server.

| error | for the call | for the server |
|---|---|---|
| disk full | UNAVAILABLE, rolled back | ends with the next commit that succeeds |
| held by another process for 10 s | UNAVAILABLE, rolled back | nothing |
| damaged, replaced, migrated by a newer version | UNAVAILABLE, rolled back | SAFE_MODE integrity |
| the same, seen only after the commit | outcome unknown | SAFE_MODE integrity |
| I/O or unexpected error before the commit | UNAVAILABLE, rolled back | SAFE_MODE io |
| the same in the commit | outcome unknown | SAFE_MODE io |
| a database server that is away, a standby or denies it | UNAVAILABLE | until that ends |
| a commit that it has not answered and nobody can look up | outcome unknown | until that ends |
"""

import time

from colibri.core.errors import Damaged, Unavailable
from colibri.server.health import Health

# What is wrong with a database server, and passes without a restart.
AWAY = {
    "unreachable": "the database server cannot be reached",
    "undone": "the connection to the database server broke",
    "read-only": "the database server is a standby, which takes no changes",
    "not allowed": "the database server does not allow it (`colibri doctor` says which role does)",
    "unknown": "a commit was not answered, and whether it took effect cannot be looked up",
}


class CommitFailed(Exception):
    """A commit failed in a way that leaves open whether it took effect."""


class Busy(Unavailable):
    """Another process held the database, as of `at`: worth a retry."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.at = time.monotonic()


class Broken(Unavailable):
    """The connection to the database broke, and nothing was changed: worth a retry at once."""


class Guard:
    """Wraps the use of a connection: reports the store's errors to the health and raises Busy,
    Unavailable or CommitFailed in their place. Other errors pass unchanged.
    """

    def __init__(self, health: Health) -> None:
        self._health = health
        self.committing = False
        self.committed = False

    def __enter__(self) -> None:
        self.committing = self.committed = False

    def __exit__(self, kind: object, problem: BaseException | None, trace: object) -> None:
        meaning = None if problem is None else self._explain(problem)
        if meaning is not None:
            raise meaning from problem

    def _explain(self, problem: BaseException) -> Exception | None:
        kind, why = kind_of(problem), str(problem)
        if kind is None and _is_database_error(problem):
            kind, why = "io", f"unexpected database error: {problem}"
        if kind is None:
            return None
        return self._passing(kind, problem) or self._lasting(kind, why)

    def _passing(self, kind: str, problem: BaseException) -> Exception | None:
        """What ends without a restart."""
        if kind == "full":
            self._health.disk_full = True
            return Unavailable("the disk is full: nothing was changed; free some space, then retry")
        if kind == "busy":
            return Busy("another process held the database for 10 s: nothing was changed; retry")
        if kind not in AWAY:
            return None
        self._health.unreachable = why = f"{AWAY[kind]}: {_said(problem)}"
        if kind == "unknown":
            return CommitFailed(why)
        told = f"{why}; nothing was changed: try again when that is repaired"
        return Broken(told) if kind in ("undone", "unreachable") else Unavailable(told)

    def _lasting(self, kind: str, why: str) -> Exception:
        self._health.degrade("io" if kind == "io" else "integrity", why)
        if self.committed:
            return CommitFailed(f"it was committed, but {why}")
        if self.committing and kind == "io":
            return CommitFailed(f"the commit failed: {why}")
        return Unavailable(f"nothing was changed, and writing has stopped: {why}")


def _said(problem: BaseException) -> str:
    """In one line, without the statements of ours in which PostgreSQL saw it."""
    return " ".join(str(problem).partition("\nCONTEXT:")[0].split())


def kind_of(problem: BaseException) -> str | None:
    """full, busy, damaged or io for an error of the store, None for any other."""
    if isinstance(problem, Damaged):
        return "damaged"
    from colibri.store.faults import fault  # apsw is loaded if a database is open

    return fault(problem)


def _is_database_error(problem: BaseException) -> bool:
    """Whether it is a database error of no other kind, such as a failed lock: treated as I/O. A
    handler's own mistakes never get here: they fail only their call.
    """
    from colibri.store.faults import errors  # as above

    return isinstance(problem, errors())
