"""From nothing to a connected server: boot steps 2 to 4.

    1 create    the context and its parts, see context.py
    2 register  the tools, from catalogue.json: msgspec is not loaded yet
    3 connect   the transport, before the database, so that no client times out
    4 answer    the handshake: phase1
    5, 6        on the write thread, see store.py

Also what catches an exception that nobody handled.
"""

import json
import os
import sys
import threading

import colibri
from colibri.core import canonical
from colibri.core.errors import ResourceError
from colibri.core.modes import Capability
from colibri.server import health
from colibri.server.call import Registered
from colibri.server.shutdown import restore_hooks, shut_down

TYPE_CHECKING = False
if TYPE_CHECKING:
    from colibri.server.context import ColibriServerContext


def register_catalogue(ctx: "ColibriServerContext") -> None:
    """Register every tool; those that need msgspec get their handlers in step 6."""
    path = os.path.join(os.path.dirname(colibri.__file__), "tools", "catalogue.json")
    with open(path, encoding="utf-8") as file:
        catalogue = json.load(file)
    ctx.instructions = catalogue["instructions"]
    for entry in catalogue["tools"]:
        tool = Registered(
            entry["listing"],
            lane=entry["lane"],
            capability=Capability(entry["capability"]),
            pattern=entry["pattern"],
        )
        ctx.tools[tool.name] = tool
    ctx.tools["server_ping"].run = lambda work, args: canonical.encode(health.ping(ctx))
    ctx.tools["server_health"].run = lambda work, args: canonical.encode(health.report(ctx))


def start(ctx: "ColibriServerContext") -> None:
    """Connect the transport, start the lanes and return; `ctx.run()` then serves."""
    if ctx.install_handlers:
        _install_hooks(ctx)
    ctx.log("info", f"[colibri] starting in mode={ctx.mode} version={ctx.version}")
    ctx.phase = "phase1"
    try:
        _connect(ctx)
    except BaseException:
        restore_hooks(ctx)
        raise
    ctx.connected = True
    for lane in (ctx.write, ctx.read):
        lane.thread.start()
    ctx.log("info", "[colibri] ready")


def _connect(ctx: "ColibriServerContext") -> None:
    """Step 3, within COLIBRI_STARTUP_TIMEOUT_MS."""
    failures: list[BaseException] = []

    def connect() -> None:
        try:
            ctx.transport.start()
        except BaseException as problem:
            failures.append(problem)

    thread = threading.Thread(target=connect, name="colibri-connect", daemon=True)
    thread.start()
    thread.join(ctx.limits.startup_timeout_ms / 1000)
    if thread.is_alive():
        raise ResourceError("startup timeout exceeded")
    if failures:
        raise failures[0]


def _install_hooks(ctx: "ColibriServerContext") -> None:
    """Uncaught exceptions, of any thread, are logged and begin a shutdown with exit code 1."""
    if getattr(sys.excepthook, "is_colibri", False):
        return

    def uncaught(kind: object, problem: BaseException, trace: object) -> None:
        ctx.uncaught(problem)

    def uncaught_in_thread(args: threading.ExceptHookArgs) -> None:
        if args.exc_value is not None:
            ctx.uncaught(args.exc_value)

    uncaught.is_colibri = True  # type: ignore[attr-defined] # how a second start knows it
    ctx.hooks_before = (sys.excepthook, threading.excepthook)
    sys.excepthook = uncaught
    threading.excepthook = uncaught_in_thread


def stop(ctx: "ColibriServerContext") -> None:
    """Shut down in order: through the thread that runs the server, or here when none does."""
    ctx.request_stop("stop")
    own = (ctx.runner, ctx.read.thread, ctx.write.thread)
    if threading.current_thread() in own:
        return  # a handler or a sink asks: the server cannot wait for itself
    while ctx.runner is not None and not ctx.ended.wait(0.05):
        pass  # `run` shuts down; if it was left by an exception, it is up to us
    if ctx.connected:
        shut_down(ctx)
    elif not ctx.ended.is_set():
        ctx.transport.close()
