"""`colibri report`: a session or a task as one page that shows and proves what an agent did."""

import argparse

from colibri.cli import files, lookup, project, terminal
from colibri.cli.complaint import Complaint, Misuse
from colibri.cli.show import report_page, written
from colibri.store import bundle
from colibri.store.bundle import Contents
from colibri.store.connection import Connection

MAX_EVIDENCE = 64 * 1024 * 1024  # of a page, which holds it several times

HELP = "write a page that shows and proves what an agent did"

DESCRIPTION = """\
Write a report on a session or a task: one HTML file with the story, the tasks, every thought, move
and call, a picture of the seal, and the evidence itself. The page verifies that evidence every time
it is opened. It needs a browser, but no server, no network and no Colibri.

The page holds everything that was recorded about the session or task, word for word: read it before
you pass it on. Only you can read the file until you change its permissions.
"""

EPILOG = """\
examples:
  colibri report S-0123456789ab -o report.html
  colibri report T-0001 -o task.html --open

colibri sessions and colibri tasks list the ids. If a session and a task share an id, the session
wins. Send readers the root of the seal, or a head, separately: the page has a field to compare it.
A page holds at most 64 MiB of evidence, about 50,000 records; colibri export has no such limit.

--json prints file, bytes, records, session, task, roots [{session, root}] (of the seals in it,
each SIZE:HEX) and head {seq, leaf} (of its last record).

Exit codes: 0 written, 1 no such session or task, too much for a page, or FILE already exists,
73 configuration, 75 resource. Unless it is 0, no file is left behind.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help="the session or the task")
    written.options(parser)
    parser.add_argument("--open", action="store_true", help="open it in your browser")
    project.options(parser, "describe what was written as JSON")


def run(options: argparse.Namespace) -> int:
    path: str = options.output
    if path == "-" and options.open:
        raise Misuse("--open needs a file, but -o - is stdout")
    with project.reading(options) as (config, reader):
        written.refuse(options, config)
        contents = _contents(reader, options.id)
        _refuse_large(reader, contents)
        size = files.write(report_page.write(bundle.write(reader, contents)), path)
        written.say(written.facts(reader, contents, path, size), options)
    if options.open:
        _open(path)
    return 0


def _contents(reader: Connection, id: str) -> Contents:
    session, _ = lookup.either(reader, id)
    return bundle.of_task(reader, id) if session is None else bundle.of_session(reader, id)


def _refuse_large(reader: Connection, contents: Contents) -> None:
    """Before anything is written: a page that a browser cannot check is no evidence."""
    size = 0
    for line in bundle.write(reader, contents):
        size += len(line)
        if size > MAX_EVIDENCE:
            ((kind, id),) = (contents.scope or {}).items()
            raise Complaint(
                f"the evidence of {id} is larger than {MAX_EVIDENCE >> 20} MiB,"
                " which is more than a page can show and check",
                f"colibri export --{kind} {id} writes it into a file without this limit",
            )


def _open(path: str) -> None:
    import webbrowser  # noqa: PLC0415 - 30 ms that the other commands need not wait
    from pathlib import Path  # noqa: PLC0415

    if not webbrowser.open(Path(path).resolve().as_uri()):
        terminal.note("hint: no browser was found; open the file yourself")
