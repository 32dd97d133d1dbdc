"""Tool: one tool, declared in one place; and Work, what its handler is given."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

import msgspec

from colibri.core.ledger import Entry
from colibri.core.modes import Capability

if TYPE_CHECKING:
    from colibri.config import Config
    from colibri.store.connection import Connection

Lane = Literal["probe", "read", "write"]
Pattern = Literal["A", "B"]


class Work(Protocol):
    """A call as its handler sees it; the world comes in through this."""

    @property
    def db(self) -> "Connection":
        """The lane's connection, inside a transaction."""

    @property
    def now(self) -> str:
        """UTC, RFC 3339, microseconds."""

    @property
    def config(self) -> "Config":
        """What the environment decided."""

    @property
    def before(self) -> int | None:
        """The place of the last record before this call; None where it is not in the ledger."""

    @property
    def next_seq(self) -> int:
        """The place of the next record of this call."""

    def new_id(self, purpose: str) -> str:
        """Twelve hex digits that nobody has used before."""

    def record(
        self,
        kind: str,
        payload: dict[str, object],
        *,
        session: str | None = None,
        task: str | None = None,
    ) -> Entry:
        """Append a record of this call to the ledger, in the transaction that is open."""

    def pause(self) -> None:
        """Between two slices of a long read: let the lane serve what waits."""


Handler = Callable[[Any, Any], object]


class Answer(msgspec.Struct):
    """What a tool of ours returns: texts, exact integers and what is made of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """`handler` is None for the probes: the main thread answers them before msgspec is loaded."""

    name: str
    title: str
    description: str
    input: type[msgspec.Struct]
    output: type[msgspec.Struct] | None
    lane: Lane
    capability: Capability
    pattern: Pattern
    handler: Handler | None
    idempotent: bool
    alone: bool = False  # has a round of its own
    sliced: bool = False  # a long read, with a transaction of its own for each slice


def tool(
    name: str,
    title: str,
    description: str,
    *,
    capability: Capability = Capability.CHANGE,
    pattern: Pattern = "B",
    **run: bool,
) -> Callable[[Handler], Tool]:
    """Make a tool of a handler; its arguments and its answer are what the handler's types say."""
    changes = capability is Capability.CHANGE
    return lambda handler: Tool(
        name=name,
        title=title,
        description=description,
        input=handler.__annotations__["args"],
        output=handler.__annotations__["return"],
        lane="write" if changes else "read",
        capability=capability,
        pattern=pattern,
        handler=handler,
        idempotent=not changes,
        **run,
    )


def is_struct(schema: object) -> bool:
    """Whether a schema can describe a tool's arguments."""
    return isinstance(schema, type) and issubclass(schema, msgspec.Struct)
