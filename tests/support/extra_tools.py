"""A real server with a few more tools, for tests that need one that writes, is slow or fails.

Run as a program it serves on stdio like `colibri serve`; it reads the same environment.
"""

import sys
import time
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from colibri.config import load
from colibri.core.errors import Refused
from colibri.core.modes import Capability
from colibri.server import checks
from colibri.server.context import ColibriServerContext, add_tool, create_server, register_catalogue
from colibri.server.transport import Stream, claim_stdout
from colibri.server.work import Work
from colibri.store import verify as check
from colibri.tools.tool import Lane, Tool

_RSS_MB = checks.rss_mb


class Note(Struct, forbid_unknown_fields=True):
    n: int
    content: Annotated[str, Meta(min_length=1, max_length=100)] = "-"
    session_id: str | None = None
    task_id: str | None = None
    agent_id: str | None = None


class Keep(Struct, forbid_unknown_fields=True):
    """Write a row, then perhaps refuse or fail."""

    key: str
    then: str = "ok"


class Nap(Struct):
    ms: int = 0


class Size(Struct):
    bytes: int = 0


class Where(Struct):
    lane: str = "write"


class Broken(Struct):
    broken: bool = True


class Nothing(Struct):
    pass


class Anything(Struct):
    pass


def note(work: Work, args: Note) -> object:
    """The simplest writing tool."""
    return {"n": args.n}


def keep(work: Work, args: Keep) -> object:
    """Change the database, so that a test can see whether the change was rolled back."""
    assert work.db is not None
    work.db.execute("INSERT INTO meta (key, value) VALUES (?, ?)", (args.key, "kept"))
    if args.then == "refuse":
        raise Refused("ERR_TEST", "refused after writing", key=args.key)
    if args.then == "fail":
        raise RuntimeError("failed after writing")
    if args.then == "exit":
        raise SystemExit(9)
    return {"key": args.key}


def nap(work: Work, args: Nap) -> object:
    """Block the lane."""
    time.sleep(args.ms / 1000)
    return {"slept": True}


def nap_then_look(work: Work, args: Nap) -> object:
    """Read the database after whatever happened to it meanwhile."""
    time.sleep(args.ms / 1000)
    with work.db:
        return {"slept": True}


def big(work: Work, args: Size) -> object:
    """A large answer."""
    return {"text": "x" * args.bytes}


def verify(work: Work, args: Nothing) -> object:
    """Recompute the whole ledger, slice by slice."""
    assert work.db is not None
    report = check.verify(work.db, pause=work.pause)
    return {"valid": report.valid, "records": report.record_count}


def break_check(work: Work, args: Broken) -> object:
    """Make the health check itself fail, or work again."""
    checks.rss_mb = _raise if args.broken else _RSS_MB
    return {}


def _tool(name: str, handler: Any, struct: type[Struct], lane: Lane, **more: Any) -> Tool:
    capability = {"probe": Capability.PROBE, "read": Capability.BROWSE, "write": Capability.CHANGE}
    return Tool(
        name=name,
        title=name,
        description="A tool for tests.",
        input=struct,
        output=Anything,
        lane=lane,
        capability=capability[lane],
        handler=handler,
        **{"pattern": "B", **more},
    )


def add_toolbox(ctx: ColibriServerContext) -> None:
    """Register them all."""

    def crash(work: Work, args: Where) -> object:
        def fault() -> None:
            raise RuntimeError(f"a fault in the {args.lane} thread")

        if args.lane == "main":
            _raise_once(ctx.parts.transport, "receive")
        elif args.lane == "health":
            ctx.parts.health.settle = _raise  # type: ignore[method-assign]
        else:
            (ctx.parts.read if args.lane == "read" else ctx.parts.write).put(fault)
        return {}

    for tool in (
        _tool("note", note, Note, "write"),
        _tool("keep", keep, Keep, "write"),
        _tool("keep_a", keep, Keep, "write", pattern="A"),
        _tool("nap_write", nap, Nap, "write"),
        _tool("nap_alone", nap, Nap, "write", alone=True),
        _tool("nap_read", nap, Nap, "read"),
        _tool("nap_then_look", nap_then_look, Nap, "read", sliced=True),
        _tool("big", big, Size, "read"),
        _tool("verify", verify, Nothing, "read", sliced=True),
        _tool("crash", crash, Where, "probe"),
        _tool("break_check", break_check, Broken, "probe"),
    ):
        add_tool(ctx, tool)


def _raise_once(owner: object, name: str) -> None:
    """Make only the next call of this method fail."""
    real = getattr(owner, name)

    def fault(*_args: object, **_options: object) -> None:
        setattr(owner, name, real)
        raise RuntimeError("a fault in this thread")

    setattr(owner, name, fault)


def _raise(*_args: object, **_options: object) -> Any:
    raise RuntimeError("a fault in this thread")


def main() -> int:
    """Serve on stdio."""
    private = claim_stdout()
    ctx = create_server(config=load(), transport=Stream(0, private))
    register_catalogue(ctx)
    add_toolbox(ctx)
    ctx.start()
    return ctx.run()


if __name__ == "__main__":
    msgspec.json.encode(None)  # load msgspec, as a server with its own tools does
    sys.exit(main())
