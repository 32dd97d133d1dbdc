"""`colibri report`: a session or a task as one page that shows and proves what an agent did."""

import argparse

from colibri.cli import files, lookup, project, terminal
from colibri.cli.complaint import Misuse
from colibri.cli.show import report_page, written
from colibri.store import bundle
from colibri.store.bundle import Contents
from colibri.store.connection import Connection

HELP = "write what an agent did into a page that proves it"

DESCRIPTION = """\
Write a report of a session or a task: one HTML file with the story, the tasks, every thought, move
and call, the seal as a picture, and the evidence itself, which the page verifies each time that it
is opened. It needs no server, no network and no Colibri, only a browser.

The page holds everything that was recorded about the session or task, as it was written: read it
before you pass it on. The file is readable for you alone until you change that.
"""

EPILOG = """\
examples:
  colibri report S-0123456789ab -o report.html
  colibri report T-0001 -o task.html --open

colibri sessions and colibri tasks list the ids.
An ID that a session and a task have both is taken as the session's. Give whoever reads the report
the root of the seal, or a head, by another way: the page has a field to compare it.
--json prints file, bytes, records, session, task, roots [{session, root}] (of the seals in it) and
head {seq, leaf} (of its last record).
Exit codes: 0 written, 1 no such session or task, or FILE exists already, 73 configuration,
75 resource.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Its options."""
    parser.add_argument("id", metavar="ID", help="the session or the task")
    parser.add_argument(
        "-o", "--output", metavar="FILE", required=True, help="where to; - is stdout"
    )
    parser.add_argument("--force", action="store_true", help="replace FILE if it exists")
    parser.add_argument("--open", action="store_true", help="show it in your browser")
    terminal.json_option(parser, "say what was written as JSON")
    project.option(parser)


def run(options: argparse.Namespace) -> int:
    """Write the page; the exit code."""
    path: str = options.output
    if path == "-" and options.open:
        raise Misuse("--open needs a file, and -o - is none")
    with project.reading(options) as (config, reader):
        if path != "-":
            files.refuse_links(path, config.project)
            files.refuse_existing(path, force=options.force)
        contents = _contents(reader, options.id)
        size = files.write(report_page.write(bundle.write(reader, contents)), path)
        written.say(written.facts(reader, contents, path, size), options)
    if options.open:
        _open(path)
    return 0


def _contents(reader: Connection, id: str) -> Contents:
    session, _ = lookup.either(reader, id)
    return bundle.of_task(reader, id) if session is None else bundle.of_session(reader, id)


def _open(path: str) -> None:
    import webbrowser  # noqa: PLC0415 - 30 ms that the other commands need not wait
    from pathlib import Path  # noqa: PLC0415

    if not webbrowser.open(Path(path).resolve().as_uri()):
        terminal.note("hint: no browser was found: open the file yourself")
