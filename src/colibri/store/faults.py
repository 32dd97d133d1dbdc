"""What an error of a database means, whichever engine raised it."""

from typing import Literal, Protocol

# Of a server alone: it cannot be reached, is a standby, does not let us, or left a commit open.
Fault = Literal[
    "full", "busy", "io", "damaged", "unreachable", "undone", "read-only", "not allowed", "unknown"
]


class Undone(Exception):
    """The connection to the database broke, and what was not answered did not take effect."""


class Faults(Protocol):
    """An engine's own errors, and what they mean."""

    @property
    def DatabaseError(self) -> type[Exception]:
        """The base of all its errors."""

    def fault(self, exc: BaseException) -> Fault | None:
        """What an error says about the database, or None if nothing."""

    def breaks_constraint(self, exc: BaseException) -> bool:
        """Whether the schema refused a change."""


_engines: list[Faults] = []


def register(engine: Faults) -> None:
    """Make the errors of an engine known; done where it opens connections."""
    _engines.append(engine)


def errors(*others: type[Exception]) -> tuple[type[Exception], ...]:
    """The errors of every engine in use, and some others, for an `except`."""
    return (*(engine.DatabaseError for engine in _engines), *others)


def fault(exc: BaseException) -> Fault | None:
    """What an error says about the database, or None if nothing."""
    if isinstance(exc, Undone):
        return "undone"
    return next((found for engine in _engines if (found := engine.fault(exc))), None)


def breaks_constraint(exc: BaseException) -> bool:
    """Whether a CHECK, a key or a trigger of the schema refused a change."""
    return any(engine.breaks_constraint(exc) for engine in _engines)
