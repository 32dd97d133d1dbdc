"""The commands for people. `serve` comes here only with options that need explaining or sorting
out; see `colibri.__main__`."""

import argparse

from colibri import VERSION
from colibri.server import main as serve_mcp

_DESCRIPTION = """\
Colibri makes the work of AI agents accountable: a local MCP server that records every call in a
hash-chained ledger, in one SQLite file. An MCP client starts it; there is nothing to log in to.
"""

_SERVE = """\
Serve MCP on stdin and stdout until the client closes the connection.

The ledger is data/colibri.db in the project directory: --project, else CLAUDE_PROJECT_DIR, else the
working directory. Messages go to stderr.
Exit codes: 0 done, 1 fault, 73 configuration, 75 resource.
"""

_SERVE_ENVIRONMENT = """\
environment:
  COLIBRI_MODE                FULL (default), READONLY, TEST or MINIMAL
  COLIBRI_DB_PATH             the database file (data/colibri.db)
  COLIBRI_SKILLS_ROOT         the folder of skills (.agents/skills)
  COLIBRI_LOG_LEVEL           error, warn, info (default) or debug
  COLIBRI_STARTUP_TIMEOUT_MS  how long to wait for the transport and the lock file (30000)
  COLIBRI_SEED                what TEST derives its ids from (0)
  COLIBRI_HEALTH_INTERVAL_MS  time between two health checks (30000)
  COLIBRI_HEALTH_MAX_RSS_MB, COLIBRI_HEALTH_MAX_LAG_MS, COLIBRI_HEALTH_MAX_QUEUE
                              what counts as an overload (512, 5000, 768)
"""


def main(arguments: list[str]) -> int:
    """Run a command; the exit code."""
    parser = argparse.ArgumentParser(prog="colibri", description=_DESCRIPTION)
    parser.add_argument("--version", action="version", version=f"colibri {VERSION}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    serve = commands.add_parser(
        "serve",
        help="serve MCP on stdin and stdout",
        description=_SERVE,
        epilog=_SERVE_ENVIRONMENT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    serve.add_argument("--project", metavar="DIR", help="the project directory")
    serve.set_defaults(serve=True)
    options = parser.parse_args(arguments)
    if "serve" in options:
        return serve_mcp(options.project)
    parser.print_help()
    return 0
