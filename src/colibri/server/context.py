"""ColibriServerContext: one server, its parts, and how a request comes to a lane.

`create_server` puts the parts together and touches no descriptor, handler or database.
"""

import itertools
import json
import threading
import time

from colibri import VERSION
from colibri.config import detect_mode, load
from colibri.core.errors import Unavailable
from colibri.core.frozen import Frozen
from colibri.core.modes import MODE_GRANTS, Capability, Mode
from colibri.server import boot, envelope, log, shutdown
from colibri.server.audit import create_noop_audit_sink
from colibri.server.call import Call, Registered
from colibri.server.health import CheckThread, Health
from colibri.server.ids import Ids
from colibri.server.lanes import Load, ReadLane, WriteLane
from colibri.server.pipeline import STAGES, Pipeline
from colibri.server.transport import Stream
from colibri.server.wire import Wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from colibri.config import Config
    from colibri.server.audit import AuditSink
    from colibri.server.transport import Transport
    from colibri.server.wire import Request
    from colibri.tools.tool import Lane, Tool

# A client opens with a handshake and tools/list. Loading the database and the tools competes with
# the main thread for the interpreter, so it begins after these two, or when a call needs it.
OPENING_ANSWERS = 2
MAX_UNKNOWN_NAME = 128
MAX_SCRUBBED_NAME = 4096  # a secret that is cut off might not be known any more
_LANE_CAPABILITY: "dict[Lane, Capability]" = {
    "probe": Capability.PROBE,
    "read": Capability.BROWSE,
    "write": Capability.CHANGE,
}


class ColibriToolConfig(Frozen):
    """What a tool is registered with; the schemas are msgspec structs."""

    __slots__ = ("description", "input_schema", "lane", "output_schema", "title")
    title: str
    description: str
    input_schema: type
    output_schema: type | None
    lane: "Lane"

    def __init__(
        self,
        *,
        input_schema: type,
        output_schema: type | None = None,
        title: str = "",
        description: str = "",
        lane: "Lane" = "write",
    ) -> None:
        super().__init__(
            title=title,
            description=description,
            input_schema=input_schema,
            output_schema=output_schema,
            lane=lane,
        )


class ColibriServerContext:
    """One server. Opaque but for what seed 000 §1 names, `phase` and `run`."""

    def __init__(  # noqa: PLR0913 - every seam of seed 000 §3
        self,
        *,
        audit_sink: "AuditSink",
        transport: "Transport",
        version: str,
        mode: Mode,
        now_ms: "Callable[[], float]",
        boot_start_ms: float,
        logger: "Callable[..., None] | None",
        config: "Config | None",
        install_handlers: bool,
    ) -> None:
        self.audit_sink = audit_sink
        self.transport = transport
        self.version = version
        self.mode = mode
        self.now_ms = now_ms
        self.boot_start_ms = boot_start_ms
        self.logger = logger
        self.config = config
        self.limits = config or load(environ={})
        self.install_handlers = install_handlers
        self.phase: str | None = None
        self.tools: dict[str, Registered] = {}
        self.instructions = ""
        self.connected = False
        self.stop_reason: str | None = None
        self.signalled = False
        self.input_ended = False
        self.exit_code = 0
        self.store_failure: str | None = None
        self.store_status = _store_status(mode, config)
        self.may_load = threading.Event()
        self.room = _set_event()  # cleared while the client leaves too many answers unread
        self._answers = 0
        self.store_ready = threading.Event()
        self.cancel_lock = threading.Lock()
        self.ids = Ids(config.seed if config and mode == Mode.TEST else None)
        self.health = Health(self.log)
        self.load = Load()
        self.pipeline = Pipeline(self)
        self.wire = Wire(self, self.send)
        self.read = ReadLane("read", self)
        self.write = WriteLane("write", self)
        self.checks = CheckThread(self)
        self.hooks_before: tuple[Any, Any] | None = None
        self.runner: threading.Thread | None = None
        self.ending = threading.Lock()
        self.ended = threading.Event()
        self._listed: bytes | None = None
        self._second = (-1, "")
        self._unrecorded = itertools.count(1)

    stages = STAGES

    def get_version(self) -> str:
        """The version it says it is."""
        return self.version

    def get_mode(self) -> Mode:
        """The mode it was started in."""
        return self.mode

    def is_connected(self) -> bool:
        """Whether the transport is connected."""
        return self.connected

    def register_colibri_tool(
        self, name: str, config: "ColibriToolConfig", handler: "Callable[[Any], object]"
    ) -> None:
        """See the function of this name."""
        register_colibri_tool(self, name, config, handler)

    def start(self) -> None:
        """Connect the transport, start the lanes and return."""
        boot.start(self)

    def run(self) -> int:
        """Serve until the end; the exit code."""
        return shutdown.run(self)

    def stop(self) -> None:
        """Shut down in order."""
        boot.stop(self)

    def uptime_ms(self) -> int:
        """Whole milliseconds since the boot began."""
        return max(0, int(self.now_ms() - self.boot_start_ms))

    # What the wire asks.

    def tool_list(self) -> bytes:
        """The JSON array of the admitted tools."""
        if self._listed is None:  # once connected, the tools stay as they are
            listings = [tool.listing for tool in self.admitted()]
            text = json.dumps(listings, ensure_ascii=False, separators=(",", ":"))
            self._listed = text.encode()
        return self._listed

    def call(self, request: "Request", name: str, arguments: object) -> None:
        """Hand a call to its lane, or turn it away."""
        tool = self.tools.get(name)
        if tool is not None and tool.capability not in MODE_GRANTS[self.mode]:
            tool = None
        call = Call(request, name if tool else _unknown_name(name), arguments, tool)
        request.work = call
        if self.stop_reason is not None:
            self.pipeline.turn_away(call, envelope.SHUTTING_DOWN, "the server is shutting down")
        elif call.lane == "probe":
            self.pipeline.probe(call)
        elif tool is not None and (why := self.health.why_not(tool.capability)) is not None:
            self.pipeline.turn_away(call, envelope.UNAVAILABLE, why)
        elif not self.load.accept(call):
            message = "too many calls wait for their answer: wait for some of them, then retry"
            self.pipeline.turn_away(call, envelope.OVERLOADED, message)
        else:
            (self.read if call.lane == "read" else self.write).put(call)
            if not self.may_load.is_set():
                self.may_load.set()

    def cancel(self, request: "Request") -> bool:
        """Drop a call that no transaction has seen yet."""
        call = request.work
        assert isinstance(call, Call)  # a request under way is a call
        with self.cancel_lock:
            call.cancelled = not call.taken
        return call.cancelled

    # What the lanes ask.

    @property
    def keeps_ledger(self) -> bool:
        """Whether calls are recorded in the ledger, now or when the database is open."""
        if self.config is None or self.mode in (Mode.READONLY, Mode.MINIMAL):
            return False
        return self.store_failure is None and not self.health.latched

    def no_store(self) -> Unavailable:
        """Why nothing can be written or read."""
        if self.store_failure is not None:
            return Unavailable(f"the database is not open: {self.store_failure}")
        return Unavailable(self.health.condition.why or "this server has no database")

    def send(self, lines: bytes) -> None:
        """Send whole lines, from any thread; none is nothing to send."""
        if not lines:
            return
        self.transport.send(lines)
        if self.transport.unsent > shutdown.MAX_UNREAD:
            self.room.clear()
        if not self.may_load.is_set():
            self._answers += 1
            if self._answers >= OPENING_ANSWERS:
                self.may_load.set()

    def release(self, call: Call) -> None:
        """A call is through with; the last one lets a shutdown go on."""
        self.load.release(call)
        if self.stop_reason is not None and not len(self.load):
            self.transport.wake()

    def new_call_id(self) -> str:
        """A correlation id for a call that gets none from the ledger."""
        recorder = self.pipeline.recorder
        purpose = f"call without a record of {recorder.server if recorder else 'nobody'}"
        return self.ids.uuid(purpose, next(self._unrecorded))

    def unknown_tool(self, name: str) -> str:
        """What to say about a tool that is not there."""
        shown = "".join(c if c.isprintable() else "?" for c in name[:64])
        names = ", ".join(tool.name for tool in self.admitted())
        if name in self.tools:
            return f"the tool {shown} is not admitted in mode {self.mode}; there are: {names}"
        return f"there is no tool {shown}; there are: {names}"

    # What everybody asks.

    def admitted(self) -> list[Registered]:
        """The tools that the mode admits, in order."""
        grants = MODE_GRANTS[self.mode]
        return [tool for tool in self.tools.values() if tool.capability in grants]

    def log(self, level: str, text: str) -> None:
        """Say something on stderr, if the level is wanted."""
        if log.LEVELS.index(level) > log.LEVELS.index(self.limits.log_level):
            return
        text = log.shorten(text)
        if self.logger is not None:
            self.logger(text)
        else:
            self.write_stderr(text)

    def write_stderr(self, text: str) -> None:
        """A line that no level silences, such as the audit trail."""
        if not log.write(text):
            self.health.count("log_lines")

    def utc(self) -> str:
        """Now, as RFC 3339 with microseconds."""
        seconds, nanoseconds = divmod(time.time_ns(), 1_000_000_000)
        known, text = self._second
        if known != seconds:  # formatting a second takes longer than all the rest
            text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
            self._second = (seconds, text)
        return f"{text}.{nanoseconds // 1000:06d}Z"

    def request_stop(self, reason: str) -> None:
        """Begin the shutdown, from any thread; the first reason stays."""
        self.stop_reason = self.stop_reason or reason
        self.transport.wake()

    def uncaught(self, problem: BaseException) -> None:
        """An exception that nobody handled: say so and shut down with exit code 1."""
        self.log("error", f"[colibri] uncaughtException: {log.describe(problem)}")
        self.exit_code = 1
        self.request_stop("uncaughtException")


def create_server(  # noqa: PLR0913 - every seam of seed 000 §3
    *,
    audit_sink: "AuditSink | None" = None,
    transport: "Transport | None" = None,
    version: str | None = None,
    mode: Mode | str | None = None,
    now_ms: "Callable[[], float] | None" = None,
    boot_start_ms: float | None = None,
    logger: "Callable[..., None] | None" = None,
    config: "Config | None" = None,
    install_handlers: bool = True,
) -> ColibriServerContext:
    """A server that is not connected yet; without `config` it opens no database."""
    now_ms = now_ms or _monotonic_ms
    return ColibriServerContext(
        audit_sink=audit_sink or create_noop_audit_sink(),
        transport=transport or Stream(),
        version=version or VERSION,
        mode=_mode(mode, config),
        now_ms=now_ms,
        boot_start_ms=now_ms() if boot_start_ms is None else boot_start_ms,
        logger=logger,
        config=config,
        install_handlers=install_handlers,
    )


def _unknown_name(name: str) -> str:
    """What is kept of a name that is no tool's: the ledger has the request line's hash."""
    from colibri.core import redaction  # only this mistake pays for it

    return redaction.scrub(name[:MAX_SCRUBBED_NAME])[:MAX_UNKNOWN_NAME]


def _set_event() -> threading.Event:
    event = threading.Event()
    event.set()
    return event


def _store_status(mode: Mode, settings: "Config | None") -> str:
    """What server_health says of the database before the write thread has come to it."""
    if settings is None:
        return "not configured"
    return "not opened in MINIMAL" if mode == Mode.MINIMAL else "opening"


def _mode(mode: Mode | str | None, settings: "Config | None") -> Mode:
    if mode is not None:
        return Mode(mode)
    return detect_mode() if settings is None else settings.mode


def _monotonic_ms() -> float:
    return time.monotonic() * 1000


def register_colibri_tool(
    ctx: ColibriServerContext,
    name: str,
    config: ColibriToolConfig,
    handler: "Callable[[Any], object]",
) -> None:
    """Add a tool to a server that is not connected yet; its calls go through all five stages."""
    import re

    from colibri.tools import schema
    from colibri.tools import tool as tools  # whoever has a struct has loaded msgspec already

    if not re.match(r"[a-z_][a-z0-9_]*\Z", str(name)):
        raise ValueError(f"invalid tool name: {name}")
    if not tools.is_struct(config.input_schema):
        raise ValueError("input_schema must be a msgspec Struct")
    if config.lane not in _LANE_CAPABILITY:
        raise ValueError(f"lane must be one of {', '.join(_LANE_CAPABILITY)}")
    if name in ctx.tools:
        raise ValueError(f"tool already registered: {name}")
    if ctx.connected:
        raise ValueError(f"cannot register {name}: the server is connected already")
    tool = tools.Tool(
        name=name,
        title=config.title,
        description=config.description,
        input=config.input_schema,
        output=config.output_schema,
        lane=config.lane,
        capability=_LANE_CAPABILITY[config.lane],
        pattern="A",
        handler=lambda work, args: schema.plain(handler(args)),
        idempotent=False,
    )
    add_tool(ctx, tool)


def add_tool(ctx: ColibriServerContext, tool: "Tool") -> None:
    """Register a declared tool."""
    from colibri.tools import schema  # as above

    registered = Registered(
        schema.listing(tool), lane=tool.lane, capability=tool.capability, pattern=tool.pattern
    )
    registered.bind(tool)
    ctx.tools[tool.name] = registered
