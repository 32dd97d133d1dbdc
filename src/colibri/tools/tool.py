"""Tool: one tool, declared in one place; Work, what its handler is given; pages of lists."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol

import msgspec

from colibri.core.modes import Capability
from colibri.store.append import Append

if TYPE_CHECKING:
    from colibri.config import Config
    from colibri.store.connection import Connection
    from colibri.store.sessions import Caller

Lane = Literal["probe", "read", "write"]
Pattern = Literal["A", "B"]
SessionRole = Literal["caller", "selected", "opened"]


class Work(Protocol):
    """A call as its handler sees it; the world comes in through this."""

    now: str  # UTC, RFC 3339, microseconds
    config: "Config"  # what the environment decided

    @property
    def db(self) -> "Connection":
        """The lane's connection, inside a transaction."""

    @property
    def caller(self) -> "Caller":
        """The process and the client that this call comes from."""

    @property
    def session(self) -> str | None:
        """The session whose call it is."""

    @property
    def agent(self) -> str | None:
        """The agent whose call it is."""

    @property
    def arguments(self) -> dict[str, object]:
        """The arguments as plain values, without secrets."""

    @property
    def is_redacted(self) -> bool:
        """Whether a secret among the arguments was replaced."""

    def repeat(self, enter: int) -> None:
        """Say that the call with this enter did the same work before."""

    def set_verified(self, seq: int) -> None:
        """Say that the log was verified up to a record."""

    @property
    def before(self) -> int | None:
        """The place of the last record before this call; None where it is not in the ledger."""

    @property
    def next_seq(self) -> int:
        """The place of the next record of this call."""

    def new_id(self, purpose: str) -> str:
        """Twelve hex digits that nobody has used before."""

    record: Append  # a record of this call, in the transaction that is open

    def pause(self) -> None:
        """Between two slices of a long read: let the lane serve what waits."""


Handler = Callable[[Any, Any], object]


# Of text on one page of what may be long; other rows are small enough for the largest limit.
MAX_PAGE_BYTES = 1024 * 1024
_OFFSET = "how many to skip: the next_offset of the page before"
Offset = Annotated[int, msgspec.Meta(ge=0, le=2**53 - 1, description=_OFFSET)]


def next_offset(offset: int, shown: int, total: int) -> int | None:
    """Where the next page begins; None if there is none."""
    after = offset + shown
    return after if shown and after < total else None


class Answer(msgspec.Struct):
    """What a tool of ours returns: texts, exact integers and what is made of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """`handler` is None for the probes: the main thread answers them before msgspec is loaded."""

    name: str
    title: str = ""
    description: str = ""
    input: type[msgspec.Struct]
    output: type[msgspec.Struct] | None = None
    lane: Lane
    capability: Capability
    pattern: Pattern = "A"
    handler: Handler | None = None
    idempotent: bool = False
    alone: bool = False  # has a round of its own
    sliced: bool = False  # a long read, with a transaction of its own for each slice
    session: SessionRole = "caller"  # whose session_id is among its arguments
    only_reads: Callable[[Any], bool] | None = None  # whether a writing tool changes nothing


def tool(
    name: str,
    title: str,
    description: str,
    *,
    capability: Capability = Capability.CHANGE,
    pattern: Pattern = "B",
    session: SessionRole = "caller",
    only_reads: Callable[[Any], bool] | None = None,
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
        session=session,
        only_reads=only_reads,
        **run,
    )


def is_struct(schema: object) -> bool:
    """Whether a schema can describe a tool's arguments."""
    return isinstance(schema, type) and issubclass(schema, msgspec.Struct)
