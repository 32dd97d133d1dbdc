"""`colibri hook`, for whoever types it with more than that; see __main__."""

import argparse

from colibri import hook

HELP = "record what an agent's host reports; hosts run it"

DESCRIPTION = """\
Record an event of an agent's host: a tool call, a prompt, a session that begins or ends. Hosts such
as Claude Code, Codex and Gemini CLI run this command on their events, with JSON on stdin; colibri
setup CLIENT --hooks tells them to.

The event becomes a deed in the ledger of the project that it happened in, bound to the session in
which the agent works. A project without a ledger is left alone.
"""

EPILOG = """\
It never gets in the host's way: it ends within 2 seconds (0.7 when a session ends) and always with
exit code 0, and prints only what the host's protocol asks for: the brief when a session begins, a
denial where a gate of the project forbids an edit (docs/gates.md), and once in a session a reminder
if the agent stops without having recorded a thought. If the ledger cannot be written, the deed
waits in data/colibri.db-spool for the next hook or server; what cannot be kept there either is
counted in data/colibri.db-lost, or, if that cannot be written either, in
~/.local/state/colibri/lost. colibri status shows the number, and the next deed reports it.

It keeps commands and paths, without secrets, exit codes where the host reports them, and SHA-256
digests of inputs, outputs and files. Prompts, contents and outputs themselves are kept only with
COLIBRI_CAPTURE=text. colibri erase removes texts again.

examples:
  colibri trail --follow           watch what it records
  colibri hook <event.json         hand it an event yourself; this is one of Claude Code's:

    {"hook_event_name": "PostToolUse", "session_id": "s1", "tool_use_id": "u1",
     "transcript_path": "/home/me/.claude/s1.jsonl", "cwd": "/home/me/site",
     "tool_name": "Bash", "tool_input": {"command": "make test"},
     "tool_response": {"stdout": "ok", "interrupted": false}}

environment:
  COLIBRI_CAPTURE   commands (default) or text
  COLIBRI_DB_PATH   the database file, as for colibri serve
  COLIBRI_DB_URL, COLIBRI_DB_SCHEMA
                    a ledger on PostgreSQL, as for colibri serve; what it cannot take in time waits
                    next to where the file would be

Exit codes: 0, always.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """It has no options: all it needs is in the event."""


def run(options: argparse.Namespace) -> int:
    hook.main()
