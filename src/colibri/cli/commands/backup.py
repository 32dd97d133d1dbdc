"""`colibri backup`: a copy of the database, made while servers write, and checked."""

import argparse
import os
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

from colibri.cli import files, program, project, terminal
from colibri.cli.complaint import Complaint
from colibri.cli.show import words
from colibri.cli.show.progress import bar as progress_bar
from colibri.config import Config, load
from colibri.core.errors import ResourceError
from colibri.core.ledger import Head
from colibri.store import ledger
from colibri.store.sqlite import backup

HELP = "copy the database and check the copy"

DESCRIPTION = """\
Copy the database into one file, as it was at one moment, while servers keep writing. The copy is
checked before it gets its name: its pages, every hash, every rule, and that it ends where the log
ended. It contains every call that was answered before the copy began.

Keep the printed head somewhere else: colibri verify --head uses it to detect a truncated or
rewritten log.
"""

EPILOG = """\
examples:
  colibri backup ~/backups                 a file named after the time, in an existing directory
  colibri backup before-upgrade.db

To back up a ledger on PostgreSQL, use PostgreSQL's own tools: the command names them.

To put it back: colibri restore FILE. To check it again: colibri verify FILE --head SEQ:HEX.

--json prints file, bytes, replaced (FILE existed before), log, records and head {seq, leaf}, which
is null if there are no records.

Exit codes: 0 written, 1 not written: the log is not sound or FILE already exists, 73 configuration,
75 resource, 130 interrupted.
"""

SHOWN = 5
# What to do about a ledger on PostgreSQL.
DUMP = (
    "pg_dump --format=custom --schema={schema} copies it, pg_basebackup the whole server;"
    " pg_dumpall --roles-only has its roles. Keep the head that colibri verify prints"
)


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("target", metavar="FILE|DIR", help="where to write the copy")
    parser.add_argument("--force", action="store_true", help="replace FILE if it exists")
    project.options(parser, "describe what was written as JSON")


def run(options: argparse.Namespace) -> int:
    target = _target(options)
    unfinished = f"{target}.partial-{os.getpid()}"
    try:
        log, head = _copy(options, unfinished)
        problems = check(unfinished, head)
        if problems:
            message = f"the log is not sound, so no copy was kept: {summary(problems)}"
            raise Complaint(message, "colibri verify shows the details")
        replaced = os.path.exists(target)
        backup.publish(unfinished, target)
    finally:
        backup.discard(unfinished)
    _report(
        {
            "file": target,
            "bytes": os.path.getsize(target),
            "replaced": replaced,
            "log": log,
            "records": head.seq if head else 0,
            "head": words.head_json(head),
        },
        options,
    )
    return 0


def _target(options: argparse.Namespace) -> str:
    """The file to write; a Complaint if writing it would destroy something."""
    config = load(options.project)
    refuse_server(config, DUMP)
    target: str = options.target
    files.refuse_links(target, config.project)
    if os.path.isdir(target):
        now = datetime.now(UTC)
        target = os.path.join(target, f"colibri-{now:%Y%m%dT%H%M%SZ}.db")
    directory = os.path.dirname(os.path.abspath(target))
    if not os.path.isdir(directory):
        raise ResourceError(f"there is no directory {directory}", "create it, or name another")
    if is_same(target, config.db_path):
        raise Complaint(f"{target} is the database itself", "name another file")
    if left := backup.companions(target):
        hint = "SQLite would treat it as part of the copy: name another file"
        raise Complaint(f"there is a file {left[0]} next to {target}", hint)
    files.refuse_existing(target, force=options.force)
    return target


def refuse_server(config: Config, instead: str) -> None:
    """Complaint if the ledger is no file, with what to do."""
    if config.db_url is not None:
        hint = instead.format(schema=config.db_schema)
        raise Complaint(f"{config.ledger_name} is on a server, which has its own backups", hint)


def is_same(one: str, other: str) -> bool:
    """Whether two paths are the same file, or would be."""
    if os.path.exists(one) and os.path.exists(other):
        return os.path.samefile(one, other)
    return os.path.realpath(one) == os.path.realpath(other)


def _copy(options: argparse.Namespace, path: str) -> tuple[str, Head | None]:
    """Copy the database; the log's id, and its head at that moment."""
    with project.reading(options) as (_, reader), progress_bar("copying", "pages") as bar:
        log, head = ledger.log_id(reader), ledger.head(reader)
        backup.copy(reader, path, progress=bar)
    return log, head


def check(path: str, head: Head | None) -> list[str]:
    """What is wrong with a copy that was just made, with a bar."""
    with (
        closing(backup.open_copy(path)) as copied,
        progress_bar("checking", "records", head.seq if head else 0) as bar,
    ):
        return backup.check(copied, head=head, pause=bar.slice)


def summary(problems: list[str]) -> str:
    """The first few, in one line."""
    more = [f"and {len(problems) - SHOWN} more"] if len(problems) > SHOWN else []
    return "; ".join(problems[:SHOWN] + more)


def _report(written: dict[str, Any], options: argparse.Namespace) -> None:
    if options.json:
        terminal.emit(written)
        return
    size = terminal.count(written["bytes"], "byte")
    records = terminal.count(written["records"], "record")
    again = ", replacing the old file" if written["replaced"] else ""
    text = f"wrote {written['file']}: {records}, {size}, checked{again}"
    terminal.line((text, "good"), hang=7)
    if written["head"]:
        terminal.line(f"head   {words.head(written['head'])}", whole=True)
        keep = program.typed("colibri verify --head compares it with the log")
        terminal.line(f"keep   this head somewhere else: {keep}", hang=7)
