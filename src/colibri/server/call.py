"""A tool as the server holds it, a call on its way, how many may wait."""

import threading
import time

from colibri.core.errors import Invalid
from colibri.core.modes import Capability
from colibri.server.lines import structure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from colibri.core.ledger import Entry
    from colibri.server.answers import Request
    from colibri.store.ledger import Chain
    from colibri.store.sessions import Caller
    from colibri.tools.tool import Tool


class Cancelled(Exception):
    """The client took the call back before it ran."""


class UnknownTool(Exception):
    """There is no such tool, or the mode does not admit it."""


class Registered:
    """A tool in the registry. One from catalogue.json has no handler until `bind`."""

    __slots__ = (
        "alone", "capability", "lane", "listing", "name", "once", "only_reads", "pattern", "plain",
        "run",
        "session", "sliced", "validate",
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
        self.once = False  # its handler may touch more than the database: never run it again
        self.validate: Callable[[object], object] = object_only
        self.plain: Callable[[object], dict[str, object]] = _nothing
        self.run: Callable[[Any, Any], bytes] = _not_loaded

    def bind(self, tool: "Tool") -> None:
        """Take over what only the loaded declaration has: stage 2 and the handler."""
        from colibri.tools import schema  # msgspec is loaded after the first answer

        self.alone = tool.alone
        self.sliced = tool.sliced
        self.session = tool.session
        self.only_reads = tool.only_reads
        if tool.handler is not None:
            self.validate = schema.Validator(tool.input)
            self.plain = schema.recordable
            handler = tool.handler
            self.run = lambda work, args: schema.encode(handler(work, args))


def object_only(arguments: object) -> object:
    """Stage 2 of the probes, which must not wait for msgspec: unknown keys are ignored."""
    if isinstance(arguments, dict):
        return {}
    raise Invalid([{"path": "", "problem": "not an object", "allowed": "an object"}])


def _nothing(args: object) -> dict[str, object]:
    return {}


def _not_loaded(work: object, args: object) -> bytes:
    raise RuntimeError("the tool was called before it was loaded")


MAX_CALLS = 1024
MAX_WAITING_BYTES = 64 * 1024 * 1024  # 32 MiB of lines in ASCII, and those as parsed
_taking = threading.Lock()


class Call:
    """One tools/call.

    `plain` are its validated arguments as plain values, `redacted` says which secrets they held,
    `refusal` is why its handler does not run, and then `digest` is all that is kept of its line.
    `entry` is its enter record. `owner` are the session and the agent whose call it is; `session`,
    `task` and `agent` are what its next record names: these, or what it has made. `repeats` is the
    enter of a call that did its work before.
    """

    __slots__ = (
        "agent", "args", "caller", "came", "cancelled", "digest", "duration_ms", "enter_ms",
        "entry", "id", "lane", "name", "owner", "plain", "raw", "redacted", "refusal", "repeats",
        "request", "session", "sink_entered", "taken", "task", "tool", "verified", "weight",
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
        self.caller: Caller | None = None  # once it is in the ledger
        self.owner: tuple[str | None, str | None] = (None, None)
        self.session: str | None = None
        self.task: str | None = None
        self.agent: str | None = None
        self.repeats: int | None = None
        self.verified: int | None = None  # the record up to which it found the log good
        self.refusal: Exception | None = None
        self.digest: tuple[int, str] | None = None
        self.entry: Entry | None = None
        self.enter_ms = 0.0
        self.duration_ms = 0
        self.taken = False
        self.cancelled = False
        self.sink_entered = False

    def begin(self) -> None:
        """From here on it cannot be cancelled."""
        with _taking:
            self.taken = True

    def cancel(self) -> bool:
        """Drop it, if no transaction has seen it yet."""
        with _taking:
            self.cancelled = not self.taken
        return self.cancelled

    def take(self, args: object, plain: dict[str, object] | None) -> None:
        """Its arguments as stage 2 left them; None where it refused them."""
        self.args = args
        self.plain = plain
        selects = self.tool is not None and self.tool.session == "selected"
        self.owned(None if selects else _id(args, "session_id"), _id(args, "agent_id"))

    @property
    def changes_nothing(self) -> bool:
        """Whether it is known that its commit need not be synced."""
        asks = None if self.tool is None else self.tool.only_reads
        return self.refusal is None and asks is not None and asks(self.args)

    def owned(self, session: str | None, agent: str | None) -> None:
        """Whose call it is."""
        self.owner = (session, agent)
        self.name_again()

    def refused(self) -> dict[str, object] | None:
        """What is told of the line of a refused call: its size and hash."""
        return self.digest and {"size": self.digest[0], "sha256": self.digest[1]}

    def name_again(self) -> None:
        """Its next record names its owner and its task: it has made nothing yet."""
        self.session, self.agent = self.owner
        self.task = _id(self.args, "task_id")
        self.repeats = None

    def append(self, chain: "Chain", kind: str, payload: dict[str, object], at: str) -> "Entry":
        return chain.append(
            kind,
            payload,
            at=at,
            call=self.id,
            session=self.session,
            task=self.task,
            agent=self.agent,
        )

    def lighten(self) -> None:
        """Keep no more than is needed after stage 2: a line and what it holds may be megabytes."""
        if self.refusal is not None:
            from colibri.core.canonical import sha256  # hashlib costs 4 ms of start-up

            line = self.request.line
            self.digest = (len(line), sha256(line).hex())
        self.raw = None
        self.request.line = b""


def weigh(line: bytes) -> int:
    """An upper bound of the memory of a call that waits: its line, and that as parsed.

    One character beyond ASCII makes each of its string take up to 4 bytes; each value takes some
    64 bytes beside those of its text.
    """
    width = 1 if line.isascii() and b"\\u" not in line else 4
    return len(line) * (1 + width) + 64 * structure(line)


def _id(args: object, field: str) -> str | None:
    value = getattr(args, field, None)
    return value if isinstance(value, str) else None


class Load:
    """Calls accepted and not yet answered, over all lanes, and what they weigh in memory."""

    def __init__(self, emptied: "Callable[[], None]") -> None:
        self._lock = threading.Lock()
        self._calls: set[Call] = set()
        self._bytes = 0
        self._emptied = emptied

    def accept(self, call: Call) -> bool:
        """Count a call in, or refuse it because a bound is reached."""
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
        if not self._calls:
            self._emptied()

    def of(self, lane: str) -> list[Call]:
        """The calls of a lane that are not answered yet."""
        with self._lock:
            return [call for call in self._calls if call.lane == lane]

    def __len__(self) -> int:
        return len(self._calls)
