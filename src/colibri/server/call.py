"""A registered tool, a call in progress, and the limit on calls that wait."""

import threading
import time

from colibri.core.errors import Invalid
from colibri.core.modes import Capability
from colibri.server.lines import structure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from colibri.core.ledger import Entry, Said
    from colibri.server.answers import Request
    from colibri.store.ledger import Chain
    from colibri.store.sessions import Caller
    from colibri.tools.tool import Tool


class Cancelled(Exception):
    """The client cancelled the call before it ran."""


class UnknownTool(Exception):
    """The tool does not exist, or the mode does not allow it."""


class Registered:
    """A tool in the registry. One from catalogue.json has no handler until `bind`."""

    __slots__ = (
        "alone", "capability", "lane", "listing", "name", "once", "only_reads", "pattern", "plain",
        "reads", "run", "session", "sliced", "validate",
    )  # fmt: skip

    def __init__(
        self, listing: "dict[str, Any]", *, lane: str, capability: Capability, pattern: str = "A"
    ) -> None:
        self.name: str = listing["name"]
        self.listing = listing
        self.lane = lane
        self.capability = capability
        self.pattern = pattern
        self.alone = False
        self.sliced = False
        self.session = "caller"
        self.only_reads: Callable[[Any], bool] | None = None
        self.reads: Callable[[Any, Any, str | None], list[Any]] = _no_reads
        self.once = False  # the handler may change more than the database: never run it twice
        self.validate: Callable[[object], object] = object_only
        self.plain: Callable[[object], dict[str, object]] = _no_arguments
        self.run: Callable[[Any, Any], bytes] = _not_loaded

    def bind(self, tool: "Tool") -> None:
        """Add what only the loaded declaration has: the validator and the handler."""
        from colibri.tools import schema  # msgspec is loaded after the first answer

        self.alone = tool.alone
        self.sliced = tool.sliced
        self.session = tool.session
        self.only_reads = tool.only_reads
        self.reads = tool.reads or _no_reads
        if tool.handler is not None:
            self.validate = schema.Validator(tool.input)
            self.plain = schema.recordable
            handler = tool.handler
            self.run = lambda work, args: schema.encode(handler(work, args))


def object_only(arguments: object) -> object:
    """Stage 2 of the probes, without msgspec, which may not be loaded yet; ignores unknown keys."""
    if isinstance(arguments, dict):
        return {}
    raise Invalid([{"path": "", "problem": "not an object", "allowed": "an object"}])


def _no_arguments(args: object) -> dict[str, object]:
    return {}


def _no_reads(db: object, args: object, session: str | None) -> list[object]:
    return []


def _not_loaded(work: object, args: object) -> bytes:
    raise RuntimeError("the tool was called before it was loaded")


MAX_CALLS = 1024
MAX_WAITING_BYTES = 64 * 1024 * 1024  # 32 MiB of ASCII lines and their parsed values
_taking = threading.Lock()


class Call:
    """One tools/call.

    `plain` holds the validated arguments as plain values; `redacted` lists the secrets removed from
    them. `refusal` says why the handler does not run; of such a call's line only `digest` is kept.
    `entry` is the enter record, `connection` the number of the one that it was sent over. `owner`
    is the session and agent that made the call; `session`, `task` and `agent` go into its next
    record: the owner's, or those that the call has created.
    `repeats` is the enter record of an earlier call that already did this call's work.
    """

    __slots__ = (
        "agent", "args", "caller", "came", "cancelled", "connection", "digest", "duration_ms",
        "enter_ms", "entry", "id", "lane", "name", "owner", "plain", "raw", "redacted", "refusal",
        "repeats", "request", "session", "sink_entered", "taken", "task", "tool", "verified",
        "weight",
    )  # fmt: skip

    def __init__(self, request: "Request", name: str, raw: object, tool: Registered | None) -> None:
        self.request = request
        self.came = time.monotonic()
        self.name = name
        self.raw = raw
        self.tool = tool
        self.lane = "write" if tool is None else tool.lane
        self.weight = weigh(request.line)
        self.id = ""
        self.args: object = None
        self.plain: dict[str, object] | None = None
        self.redacted: list[dict[str, str]] = []
        self.caller: Caller | None = None  # set when it enters the ledger
        self.owner: tuple[str | None, str | None] = (None, None)
        self.session: str | None = None
        self.task: str | None = None
        self.agent: str | None = None
        self.repeats: int | None = None
        self.verified: int | None = None  # the last record that it found valid
        self.refusal: Exception | None = None
        self.digest: tuple[int, str] | None = None
        self.entry: Entry | None = None
        self.connection = 0
        self.enter_ms = 0.0
        self.duration_ms = 0
        self.taken = False
        self.cancelled = False
        self.sink_entered = False

    def begin(self) -> None:
        """Mark it as running: from now on it cannot be cancelled."""
        with _taking:
            self.taken = True

    def cancel(self) -> bool:
        """Drop it if it has not begun; whether it was dropped."""
        with _taking:
            self.cancelled = not self.taken
        return self.cancelled

    def take(self, args: object, plain: dict[str, object] | None) -> None:
        """Keep the arguments that stage 2 returned; None if it refused them."""
        self.args = args
        self.plain = plain
        selects = self.tool is not None and self.tool.session == "selected"
        self.set_owner(None if selects else _id(args, "session_id"), _id(args, "agent_id"))

    @property
    def changes_nothing(self) -> bool:
        """Whether the arguments show that it only reads, so its commit needs no sync."""
        asks = None if self.tool is None else self.tool.only_reads
        return self.refusal is None and asks is not None and asks(self.args)

    def set_owner(self, session: str | None, agent: str | None) -> None:
        """Set the session and agent that made the call."""
        self.owner = (session, agent)
        self.reset_names()

    def line_digest(self) -> dict[str, object] | None:
        """Size and hash of a refused call's line, which are recorded in its place."""
        return self.digest and {"size": self.digest[0], "sha256": self.digest[1]}

    def reset_names(self) -> None:
        """Let the next record name the owner and the task again: nothing was created yet."""
        self.session, self.agent = self.owner
        self.task = _id(self.args, "task_id")
        self.repeats = None

    def append(self, chain: "Chain", kind: str, payload: "Said", at: str) -> "Entry":
        return chain.append(
            kind,
            payload,
            at=at,
            call=self.id,
            session=self.session,
            task=self.task,
            agent=self.agent,
        )

    def drop_line(self) -> None:
        """Drop what is not needed after stage 2: the line and its values may take megabytes."""
        if self.refusal is not None:
            from colibri.core.canonical import sha256  # hashlib costs 4 ms of start-up

            line = self.request.line
            self.digest = (len(line), sha256(line).hex())
        self.raw = None
        self.request.line = b""


def weigh(line: bytes) -> int:
    """An upper bound on the memory of a waiting call: its line and the parsed values.

    One character outside ASCII can make its whole string take 4 bytes a character; each value takes
    about 64 bytes on top of its text.
    """
    width = 1 if line.isascii() and b"\\u" not in line else 4
    return len(line) * (1 + width) + 64 * structure(line)


def _id(args: object, field: str) -> str | None:
    value = getattr(args, field, None)
    return value if isinstance(value, str) else None


class Load:
    """Calls accepted and not yet answered, in all lanes, and the memory they take."""

    def __init__(self, emptied: "Callable[[], None]") -> None:
        self._lock = threading.Lock()
        self._calls: set[Call] = set()
        self._bytes = 0
        self._emptied = emptied
        self.draining = False  # somebody waits to be told that the last one is answered

    def accept(self, call: Call) -> bool:
        """Count a call in; False if a limit is reached."""
        with self._lock:
            if len(self._calls) >= MAX_CALLS or self._bytes + call.weight > MAX_WAITING_BYTES:
                return False
            self._calls.add(call)
            self._bytes += call.weight
        return True

    def release(self, call: Call) -> None:
        """Count a call out, if it was counted in."""
        with self._lock:
            if call in self._calls:
                self._calls.remove(call)
                self._bytes -= call.weight
        if self.draining and not self._calls:
            self._emptied()

    def of(self, lane: str) -> list[Call]:
        """The calls of a lane that are not answered yet."""
        with self._lock:
            return [call for call in self._calls if call.lane == lane]

    def __len__(self) -> int:
        return len(self._calls)
