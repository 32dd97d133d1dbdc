"""The public API of a server: create_server, its context, and `main` (Specification 16.1)."""

import sys
import threading

from colibri import VERSION
from colibri.config import detect_mode, load
from colibri.core.errors import ConfigError, ResourceError
from colibri.core.frozen import Frozen
from colibri.core.modes import Capability, Mode
from colibri.server import boot, log
from colibri.server.audit import create_noop_audit_sink
from colibri.server.call import Registered
from colibri.server.clock import Clock
from colibri.server.log import Log
from colibri.server.transport import Stream, claim_stdout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from colibri.config import Config
    from colibri.server.audit import AuditSink
    from colibri.server.transport import Transport
    from colibri.tools.tool import Lane, Tool

EX_FAULT = 1
EX_CONFIG = 73
_LANE_CAPABILITY: "dict[Lane, Capability]" = {
    "probe": Capability.PROBE,
    "read": Capability.BROWSE,
    "write": Capability.CHANGE,
}


class ColibriToolConfig(Frozen):
    """The declaration of a tool to register; its schemas are msgspec structs."""

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
    """One server. Opaque except for the members that Specification 16.4 names."""

    __slots__ = ("_hooks", "parts")

    def __init__(self, parts: boot.Parts, *, install_handlers: bool) -> None:
        self.parts = parts
        self._hooks = _Hooks(parts, wanted=install_handlers)

    @property
    def phase(self) -> str | None:
        """None before the start, then phase1, then phase2."""
        return self.parts.life.phase

    def get_version(self) -> str:
        return self.parts.version

    def get_mode(self) -> Mode:
        return self.parts.admission.mode

    def is_connected(self) -> bool:
        return self.parts.life.connected

    def register_colibri_tool(
        self, name: str, config: ColibriToolConfig, handler: "Callable[[Any], object]"
    ) -> None:
        register_colibri_tool(self, name, config, handler)

    def start(self) -> None:
        self._hooks.install()
        try:
            self.parts.start()
        except BaseException:
            self._hooks.restore()
            raise

    def run(self) -> int:
        """Serve until the shutdown; returns the exit code."""
        parts, handlers = self.parts, self._hooks.wanted
        try:
            return parts.loop.run(parts.end.shut_down, install_handlers=handlers)
        finally:
            self._hooks.restore()

    def stop(self) -> None:
        self.parts.end.stop()
        if self.parts.life.ended.is_set():
            self._hooks.restore()


class _Hooks:
    """Log an uncaught exception of any thread and begin a shutdown with exit code 1."""

    def __init__(self, parts: boot.Parts, *, wanted: bool) -> None:
        self.wanted = wanted
        self._uncaught = parts.life.uncaught
        self._before: tuple[Any, Any] | None = None

    def install(self) -> None:
        """Install the hooks, unless another server of this process already has."""
        if not self.wanted or getattr(sys.excepthook, "is_colibri", False):
            return

        def uncaught(kind: object, problem: BaseException, trace: object) -> None:
            self._uncaught(problem)

        uncaught.is_colibri = True  # type: ignore[attr-defined] # how a second start knows it
        self._before = (sys.excepthook, threading.excepthook)
        sys.excepthook = uncaught
        # exc_value is None only while the interpreter itself is shutting down.
        threading.excepthook = lambda args: args.exc_value and self._uncaught(args.exc_value)

    def restore(self) -> None:
        """Put back the hooks that were in place before."""
        if self._before is not None:
            sys.excepthook, threading.excepthook = self._before
            self._before = None


def create_server(  # noqa: PLR0913 - every option of Specification 16.2
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
    """Create a server that is not connected yet; without `config` it opens no database."""
    clock = Clock(now_ms, boot_start_ms)
    if mode is None:
        mode = detect_mode() if config is None else config.mode
    limits = config or load(environ={})
    parts = boot.Parts(
        version or VERSION,
        Mode(mode),
        limits=limits,
        config=config,
        sink=audit_sink or create_noop_audit_sink(),
        transport=transport or Stream(),
        clock=clock,
        log=Log(limits.log_level, logger),
    )
    return ColibriServerContext(parts, install_handlers=install_handlers)


def start(ctx: ColibriServerContext) -> None:
    """Connect the transport, start the lanes and return; `ctx.run()` then serves."""
    ctx.start()


def stop(ctx: ColibriServerContext) -> None:
    """Shut down in order."""
    ctx.stop()


def register_catalogue(ctx: ColibriServerContext) -> None:
    ctx.parts.register()


def register_colibri_tool(
    ctx: ColibriServerContext,
    name: str,
    config: ColibriToolConfig,
    handler: "Callable[[Any], object]",
) -> None:
    """Add a tool to a server that is not connected yet; its calls go through all five stages."""
    import re

    from colibri.tools import schema
    from colibri.tools import tool as tools  # msgspec is loaded: the caller has a struct

    if not re.match(r"[a-z_][a-z0-9_]*\Z", str(name)):
        raise ValueError(f"invalid tool name: {name}")
    if not tools.is_struct(config.input_schema):
        raise ValueError("input_schema must be a msgspec Struct")
    if config.lane not in _LANE_CAPABILITY:
        raise ValueError(f"lane must be one of {', '.join(_LANE_CAPABILITY)}")
    if name in ctx.parts.admission.tools:
        raise ValueError(f"tool already registered: {name}")
    if ctx.is_connected():
        raise ValueError(f"cannot register {name}: the server is connected already")
    tool = tools.Tool(
        name=name,
        title=config.title,
        description=config.description,
        input=config.input_schema,
        output=config.output_schema,
        lane=config.lane,
        capability=_LANE_CAPABILITY[config.lane],
        handler=lambda work, args: schema.plain(handler(args)),
    )
    add_tool(ctx, tool)
    ctx.parts.admission.tools[name].once = True


def add_tool(ctx: ColibriServerContext, tool: "Tool") -> None:
    from colibri.tools import schema  # as above

    registered = Registered(
        schema.listing(tool), lane=tool.lane, capability=tool.capability, pattern=tool.pattern
    )
    registered.bind(tool)
    ctx.parts.admission.tools[tool.name] = registered


def main(project: str | None = None) -> int:
    """Run `colibri serve` on stdin and stdout; returns the exit code."""
    private = claim_stdout()  # first: from here on nothing else can write to the client
    try:
        ctx = create_server(config=load(project), transport=Stream(0, private))  # 1
        register_catalogue(ctx)  # 2
        ctx.start()  # 3, 4
        return ctx.run()
    except ConfigError as problem:
        for line in problem.problems:
            log.write(log.hide_home(f"[colibri] fatal: {line}"))
        return EX_CONFIG
    except ResourceError as problem:
        log.write(log.hide_home(f"[colibri] fatal: {problem.message}"))
        return boot.EX_RESOURCE
    except BaseException as problem:
        log.write(f"[colibri] fatal: {log.describe(problem)}")
        return EX_FAULT
