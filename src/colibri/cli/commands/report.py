"""`colibri report`: a project, a session or a task as one page that shows and proves its work."""

import argparse
import time
from typing import Any

from colibri.cli import files, follow, lookup, project, terminal
from colibri.cli.complaint import INTERRUPTED, Complaint, Misuse
from colibri.cli.show import report_page, times, written
from colibri.cli.why import unexplained
from colibri.config import Config
from colibri.store import bundle, deed_list, ledger, sessions
from colibri.store.bundle import Contents
from colibri.store.connection import Connection
from colibri.store.home import Home

FILE = "colibri-report.html"
MAX_EVIDENCE = 64 * 1024 * 1024  # of a page, which holds it several times
BEAT = 60.0  # seconds after which a watched page is written again, as a sign of life
PAUSE = 1.0  # at least, from one writing to the next
SHARE = 4  # of the time at most one part in five is spent on writing

HELP = "write a page that shows and proves what was done"

DESCRIPTION = """\
Write a report: one HTML file with the story, who did what, the decisions, the tasks, every thought,
move and call, and the evidence itself. The page verifies that evidence every time it is opened. It
needs a browser, but no server, no network and no Colibri.

Without an ID the report is about the whole project: what is being worked on and what blocks it, the
sessions, the agents, the decisions, and what is not verified yet.

The page holds everything that was recorded about its subject, word for word: read it before you
pass it on. Only you can read the file until you change its permissions.
"""

EPILOG = f"""\
examples:
  colibri report --open                          the whole project, in your browser
  colibri report S-0123456789ab -o report.html   a session
  colibri report T-0001 -o task.html --open      a task
  colibri report --watch --open                  the project, live

colibri sessions and colibri tasks list the ids. If a session and a task share an id, the session
wins. Send readers the root of the seal, or a head, separately: the page has a field to compare it.
Without -o the last report of this project is replaced; any other file only with --force.
A page holds at most {MAX_EVIDENCE >> 20} MiB of evidence, about 50,000 records; colibri export
has no such limit.

--watch writes the file again while agents work, and the open page reloads itself and keeps its
place. Ctrl-C stops it, and so does the seal of the session; the page that is left does not reload.

--json prints file, bytes, records, session, task (both null for a project), roots [{{session,
root}}] (of the seals in it, each SIZE:HEX), head {{seq, leaf}} (of its last record) and checkpoint
{{size, root}} (the newest in git, if it covers that record; otherwise null).

Exit codes: 0 written, 1 no such session or task, no record yet, too much for a page, or FILE
already exists, 73 configuration, 75 resource, 130 stopped by Ctrl-C while watching. Unless it is 0
or 130, no file is left behind.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "id", metavar="ID", nargs="?", help="the session or the task (default: the whole project)"
    )
    written.options(parser, FILE)
    parser.add_argument("--open", action="store_true", help="open it in your browser")
    parser.add_argument("--watch", action="store_true", help="keep the file current; Ctrl-C stops")
    project.options(parser, "describe what was written as JSON")


def run(options: argparse.Namespace) -> int:
    path: str = options.output
    if path == "-" and (options.open or options.watch):
        option = "--open" if options.open else "--watch"
        raise Misuse(f"{option} needs a file, but -o - is stdout")
    # Before the database: files are opened and closed only while we hold no lock of it.
    replaced = report_page.log_of(path) if path == FILE else None
    with project.opened(options) as (config, reader):
        if replaced == ledger.log_id(reader):
            options.force = True
        written.refuse(options, config)
        found = _write(options, watched=options.watch)
        written.say(found, options)
        if options.open:
            _open(path)
        return _watch(options, project.home(config), reader, found) if options.watch else 0


def _write(options: argparse.Namespace, *, watched: bool = False) -> dict[str, Any]:
    """Write the page as the project is now; what was written."""
    path: str = options.output
    with project.reading(options) as (config, reader):
        contents = _contents(reader, options.id)
        written.cover(reader, contents, config)
        _refuse_large(reader, contents)
        at = times.recorded(times.now()) if watched else ""
        seen = _changes(reader, config, contents.scope, path)
        page = report_page.write(
            bundle.write(reader, contents),
            log=ledger.log_id(reader),
            watched=at,
            changes=seen,
        )
        return written.facts(reader, contents, path, files.write(page, path))


def _watch(
    options: argparse.Namespace, home: Home, reader: Connection, found: dict[str, Any]
) -> int:
    """Write it again whenever there is more; the last time as a page that stays as it is."""
    session: str | None = found["session"]

    def is_over(_: int) -> bool:
        return session is not None and sessions.get(reader, session).root is not None

    try:
        if not is_over(0):
            terminal.note("watching for new records; Ctrl-C stops")
        for _ in follow.heads(reader, home, after=found["head"]["seq"], until=is_over, beat=BEAT):
            begun = time.monotonic()
            _write(options, watched=True)
            time.sleep(max(PAUSE, SHARE * (time.monotonic() - begun)))
    except KeyboardInterrupt:
        _write(options)
        return INTERRUPTED
    _write(options)
    return 0


def _contents(reader: Connection, id: str | None) -> Contents:
    if id is None:
        return bundle.whole_log(reader)
    session, task = lookup.either(reader, id)
    if task is not None:
        return bundle.of_task(reader, task.task_id)
    assert session is not None
    return bundle.of_session(reader, session.session_id)


def _changes(
    reader: Connection, config: Config, scope: dict[str, str] | None, path: str
) -> dict[str, Any] | None:
    """The changed files of a session or a project that no deed explains; None of a task, or where
    no host has ever reported an edit."""
    kind, id = next(iter((scope or {"log": ""}).items()))
    since, until = deed_list.first_edit(reader), None
    if since is None or kind == "task":
        return None
    if kind != "log":
        session = sessions.get(reader, id)
        since, until = session.started_at, session.finalized_at
    return unexplained.find(reader, config, since, until, page=path)._asdict()


def _refuse_large(reader: Connection, contents: Contents) -> None:
    """Before anything is written: a page that a browser cannot check is no evidence."""
    size = 0
    for line in bundle.write(reader, contents):
        size += len(line)
        if size > MAX_EVIDENCE:
            raise _too_large(contents.scope)


def _too_large(scope: dict[str, str] | None) -> Complaint:
    name, export, hint = "this project", "--all", "colibri report SESSION is about one session; "
    for kind, id in (scope or {}).items():
        name, export, hint = id, f"--{kind} {id}", ""
    message = f"the evidence of {name} is larger than {MAX_EVIDENCE >> 20} MiB,"
    return Complaint(
        f"{message} which is more than a page can show and check",
        f"{hint}colibri export {export} writes it into a file without this limit",
    )


def _open(path: str) -> None:
    import webbrowser  # noqa: PLC0415 - 30 ms that the other commands need not wait
    from pathlib import Path  # noqa: PLC0415

    if not webbrowser.open(Path(path).resolve().as_uri()):
        terminal.note("hint: no browser was found; open the file yourself")
