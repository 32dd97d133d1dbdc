"""`colibri seal`: end a session under its Merkle root."""

import argparse

from colibri.cli import person, project, terminal

HELP = "seal your session, or another one, for good"

DESCRIPTION = """\
Seal a session: its thoughts are put under one Merkle root, nothing can be added to it any more, and
the tasks that it holds are free. Without SESSION your own is sealed; the next thing that you do
opens a new one.

Keep the root and the head where the owner of this ledger cannot change them. With the root anybody
can check the thoughts of the session, with the head every record up to the seal.
"""

EPILOG = """\
examples:
  colibri seal
  colibri seal S-0123456789ab

--json prints the seal as merkle_finalize answers it, and the head; a refusal is
{error: {code, message}}.

Exit codes: 0 sealed, 1 refused or there is nothing to seal, 73 configuration, 75 resource.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", metavar="SESSION", nargs="?", help="the session to seal")
    project.options(parser)


def run(options: argparse.Namespace) -> int:
    with person.at_work(options) as me:
        session = options.session or me.open_session()
        if session is None:
            terminal.note("you have no open session; colibri sessions lists all of them")
            return 1
        sealed = me.call("merkle_finalize", {}, session)
        head = me.head
    if options.json:
        terminal.emit({**sealed, "head": head})
        return 0
    terminal.field("sealed", (sealed["session_id"], "bold"))
    terminal.field("thoughts", str(sealed["record_count"]))
    terminal.field("root", sealed["root"], whole=True)
    if head is not None:
        terminal.field("head", head, whole=True)
    return 0
