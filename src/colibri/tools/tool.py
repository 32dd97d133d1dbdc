"""Tool, the declaration of a tool; Work, what its handler gets; and paging."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol

import msgspec

from colibri.core.modes import Capability
from colibri.store.append import Append

if TYPE_CHECKING:
    from colibri.config import Config
    from colibri.core.gates import Gates
    from colibri.store.connection import Connection
    from colibri.store.sessions import Caller

Lane = Literal["probe", "read", "write"]
Pattern = Literal["A", "B"]
SessionRole = Literal["caller", "selected", "opened"]


class Work(Protocol):
    """A call as its handler sees it: time, configuration and database come only from here."""

    now: str  # UTC, RFC 3339, microseconds
    config: "Config"  # what the environment decided

    @property
    def db(self) -> "Connection":
        """The lane's connection, inside a transaction."""

    @property
    def gates(self) -> "Gates":
        """The project's rules; of a writing call alone."""

    @property
    def rules(self) -> "Gates | None":
        """The same of any call, if the server knows them."""

    @property
    def caller(self) -> "Caller":
        """The process and the client that sent this call."""

    @property
    def session(self) -> str | None:
        """The session that made the call."""

    @property
    def agent(self) -> str | None:
        """The agent that made the call."""

    @property
    def arguments(self) -> dict[str, object]:
        """The arguments as plain values, without secrets."""

    @property
    def is_redacted(self) -> bool:
        """Whether a secret in the arguments was replaced."""

    def repeat(self, enter: int) -> None:
        """Note that the call with this enter record already did the work."""

    def set_verified(self, seq: int) -> None:
        """Note that the log was verified up to this record."""

    @property
    def before(self) -> int | None:
        """The seq of the last record before this call; None if the call is not in the ledger."""

    @property
    def next_seq(self) -> int:
        """The seq of this call's next record."""

    def new_id(self, purpose: str) -> str:
        """Twelve hex digits that were never used before."""

    record: Append  # appends a record of this call, in the current transaction

    def pause(self) -> None:
        """Between two slices of a long read: let the lane serve waiting calls."""


Handler = Callable[[Any, Any], object]
# With the connection, the arguments, and the session that probably sends the call.
Read = Callable[[], object]
Reads = Callable[[Any, Any, str | None], list[Read]]


# Characters of text on one page of long rows; other rows are small enough for the largest limit.
MAX_PAGE_BYTES = 1024 * 1024
_OFFSET = "how many to skip: the next_offset of the page before"
Offset = Annotated[int, msgspec.Meta(ge=0, le=2**53 - 1, description=_OFFSET)]


def next_offset(offset: int, shown: int, total: int) -> int | None:
    """Where the next page begins; None after the last."""
    after = offset + shown
    return after if shown and after < total else None


class Answer(msgspec.Struct):
    """The base of our tools' results: texts, exact integers, and lists and structs of these."""


class Tool(msgspec.Struct, frozen=True, kw_only=True):
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
    alone: bool = False  # never shares a round
    sliced: bool = False  # a long read, with one transaction for each slice
    session: SessionRole = "caller"  # what its session_id argument means
    only_reads: Callable[[Any], bool] | None = None  # whether these arguments change nothing
    reads: Reads | None = None  # what it reads first: functions that ask the store just for that
    opens_work: bool = False  # an agent needs it before it can look for others


def tool(  # noqa: PLR0913 - what a tool declares
    name: str,
    title: str,
    description: str,
    *,
    capability: Capability = Capability.CHANGE,
    pattern: Pattern = "B",
    session: SessionRole = "caller",
    only_reads: Callable[[Any], bool] | None = None,
    reads: Reads | None = None,
    **run: bool,
) -> Callable[[Handler], Tool]:
    """Make a tool of a handler, whose annotations are the types of its arguments and answer."""
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
        reads=reads,
        **run,
    )


def is_struct(schema: object) -> bool:
    """Whether a schema can describe a tool's arguments."""
    return isinstance(schema, type) and issubclass(schema, msgspec.Struct)
