"""`colibri serve`, where it has options that need explaining or sorting out; see __main__."""

import argparse

from colibri.server import main

HELP = "serve MCP on stdin and stdout"

DESCRIPTION = """\
Serve MCP on stdin and stdout until the client closes the connection.

The ledger is data/colibri.db in the project directory: --project, or else the nearest directory
upwards that has a ledger, or else the root of the git repository. The search begins at
CLAUDE_PROJECT_DIR or in the working directory. Messages go to stderr; on a terminal, Ctrl-D ends
the server.

Exit codes: 0 done, 1 fault, 73 configuration, 75 resource.
"""

EPILOG = """\
examples:
  colibri serve                          what an MCP client runs
  colibri serve --project ~/site
  COLIBRI_MODE=READONLY colibri serve    changes nothing

environment:
  COLIBRI_MODE                FULL (default), READONLY, TEST or MINIMAL
  COLIBRI_DB_PATH             the database file (data/colibri.db)
  COLIBRI_DB_URL              a PostgreSQL database that holds the ledger instead (without password)
  COLIBRI_DB_SCHEMA           the schema of the project in that database (colibri)
  COLIBRI_SKILLS_ROOT         the folder of skills (.agents/skills)
  COLIBRI_CLAIM_MINUTES       how long a holder must be silent before its claim can be taken (60)
  COLIBRI_CAPTURE             what colibri hook keeps: commands (default) or text
  COLIBRI_LOG_LEVEL           error, warn, info (default) or debug
  COLIBRI_STARTUP_TIMEOUT_MS  how long to wait for the transport and the lock file (30000)
  COLIBRI_SEED                what TEST derives its ids from (0)
  COLIBRI_HEALTH_INTERVAL_MS  time between two health checks (30000)
  COLIBRI_HEALTH_MAX_RSS_MB, COLIBRI_HEALTH_MAX_LAG_MS, COLIBRI_HEALTH_MAX_QUEUE
                              what counts as an overload (512, 5000, 768)
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--project", metavar="DIR", help="the project directory")


def run(options: argparse.Namespace) -> int:
    return main(options.project)
