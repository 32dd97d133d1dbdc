"""`colibri brief`: where the work stands, as agents read it."""

import argparse

from colibri.cli import project, terminal
from colibri.store import brief

HELP = "where the work stands, as agents are told it"

DESCRIPTION = """\
Say where the work stands: open sessions with their agent, intent and last sign of life, tasks in
progress and who holds them, the next tasks that are free, the newest decisions and reflections, and
up to which record the log was last verified.

An agent is told the same by audit_session_start. What agents wrote is shown as a quoted string, cut
where it is long: it is their word, not Colibri's.
"""

EPILOG = f"""\
examples:
  colibri brief
  colibri brief --json

It has at most {brief.MOST_CHARACTERS:,} characters, however large the project is. colibri tasks,
colibri sessions and colibri search show more.

--json prints {{brief}}: the text.

Exit codes: 0 shown, 73 configuration, 75 resource.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    project.options(parser)


def run(options: argparse.Namespace) -> int:
    with project.reading(options) as (_, reader):
        text = brief.write(reader)
    if options.json:
        terminal.emit({"brief": text})
        return 0
    for line in text.split("\n"):
        terminal.line((line, "" if line.startswith("- ") else "bold"), hang=2)
    return 0
