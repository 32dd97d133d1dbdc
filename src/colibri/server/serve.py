"""`main`: the whole life of `colibri serve`, and its exit codes."""

from colibri.config import load
from colibri.core.errors import ConfigError, ResourceError
from colibri.server import log
from colibri.server.context import create_server, register_catalogue
from colibri.server.transport import Stream, claim_stdout

EX_FAULT = 1
EX_CONFIG = 73
EX_RESOURCE = 75


def main(project: str | None = None) -> int:
    """Serve on stdin and stdout; the exit code."""
    private = claim_stdout()  # first of all: from here on nothing else can reach the wire
    try:
        ctx = create_server(config=load(project), transport=Stream(0, private))  # 1
        register_catalogue(ctx)  # 2
        ctx.start()  # 3, 4
        return ctx.run()
    except ConfigError as problem:
        for line in problem.problems:
            log.write(log.shorten(f"[colibri] fatal: {line}"))
        return EX_CONFIG
    except ResourceError as problem:
        log.write(log.shorten(f"[colibri] fatal: {problem.message}"))
        return EX_RESOURCE
    except BaseException as problem:
        log.write(f"[colibri] fatal: {log.describe(problem)}")
        return EX_FAULT
