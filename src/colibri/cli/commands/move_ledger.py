"""`colibri move-ledger`: from the project's file to a database that a team shares."""

import argparse
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from colibri.cli import program, project, terminal, witnesses
from colibri.cli.commands.backup import summary
from colibri.cli.complaint import Complaint, Misuse
from colibri.cli.show import words
from colibri.cli.show.progress import bar as progress_bar
from colibri.config import Config, load, shared_name, wrong_url
from colibri.core.errors import Damaged
from colibri.core.ledger import Head
from colibri.store import ledger, moved
from colibri.store.faults import errors
from colibri.store.homes import require_driver
from colibri.store.moved import FINISHED, UNFINISHED, Mark
from colibri.store.sqlite.backup import describe
from colibri.store.sqlite.opened import Opened
from colibri.store.sqlite.opening import open_alone, open_reader
from colibri.store.sqlite.schema import integrity_check
from colibri.store.verify import verify

if TYPE_CHECKING:
    from colibri.store.postgres.moving import Target

HELP = "move the ledger into a PostgreSQL database"

DESCRIPTION = """\
Copy the project's ledger from its file into a schema of a PostgreSQL database, so that agents on
many machines can share it. It stays the same log: the same records, hashes, seals and head. The
file is verified before anything is copied, the copy before anybody can write to it.

No server may be running on the file. Once copying has begun, the file can still be read but no
longer written, and whoever tries is told where the ledger is now.

URL names the database and a role that may create roles and schemas there, or act as the schema's
owner. The schema is made if it does not exist; otherwise it must hold no records. docs/team.md
explains every step.
"""

EPILOG = """\
examples:
  colibri move-ledger --to postgresql://postgres@db.example.org/colibri
  colibri move-ledger --to postgresql://postgres@db.example.org/colibri --schema billing
  colibri move-ledger --undo

The URL has no password in it: libpq finds that in ~/.pgpass, PGPASSFILE, a service or PGPASSWORD.

You can interrupt it at any time: until it has finished, no server writes to the copy, and the same
command continues where it stopped. --undo keeps the ledger in the file instead. After the move,
--undo --to URL goes back to the file, as long as nothing was written to the database.

--json prints moved (false after --undo), from (the file), to (the database and the schema), log,
records, head {seq, leaf} and found (what was there before: empty, unfinished or whole).

Exit codes: 0 moved, or taken back, 1 the file or the copy is not sound, or it was not moved, 2 a
wrong command line, 73 configuration, 75 resource, such as a running server or a schema that is not
empty, 130 interrupted.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--to", metavar="URL", help="the database, as postgresql://USER@HOST/NAME")
    parser.add_argument("--schema", metavar="NAME", help="the schema (default: COLIBRI_DB_SCHEMA)")
    parser.add_argument("--undo", action="store_true", help="stay with the file, or go back to it")
    project.options(parser, "describe what was done as JSON")


def run(options: argparse.Namespace) -> int:
    if options.to is None and not options.undo:
        raise Misuse("--to URL is missing: it names the database to move the ledger to")
    if options.to is not None and (problem := wrong_url(options.to, "--to")):
        raise Misuse(problem)
    config = load(options.project)
    schema: str = options.schema or config.db_schema
    open_reader(config.db_path, least=1).close()  # or it says that there is none
    with open_alone(config.db_path) as opened:
        told = _undo(opened, options, schema) if options.undo else _move(opened, options, schema)
        head = ledger.head(opened.db)
        told |= {
            "from": opened.path,
            "log": ledger.log_id(opened.db),
            "records": head.seq if head else 0,
            "head": words.head_json(head),
        }
    _tell(told, options, schema)
    return 0


def _move(opened: Opened, options: argparse.Namespace, schema: str) -> dict[str, Any]:
    """1 check the file, 2 take the schema, 3 mark the file, 4 copy, 5 check the copy, 6 mark the
    file as moved, 7 let servers write to the copy.

    Whenever it is interrupted, at most one of the two places can be written.
    """
    place = shared_name(options.to, schema)
    mark = moved.mark_of(opened.db)
    if mark is not None and mark.place != place:
        moved.require_unmarked(opened.db, opened.path)
    config = load(options.project)
    _check_file(opened, config)  # 1
    log, head = ledger.log_id(opened.db), ledger.head(opened.db)
    with _target(options.to, schema) as target:
        state = target.begin(log, head)  # 2
        if state == "whole":
            _mark(opened, Mark(FINISHED, place))
        else:
            _mark(opened, Mark(UNFINISHED, place))  # 3
            _copy(opened, target)  # 4
            _check_copy(target, head)  # 5
            _mark(opened, Mark(FINISHED, place))  # 6
            target.finish(head)  # 7
    return {"moved": True, "to": place, "found": state}


def _undo(opened: Opened, options: argparse.Namespace, schema: str) -> dict[str, Any]:
    """Take the mark away; before, make sure that no server writes to the copy."""
    mark = moved.mark_of(opened.db)
    if mark is None:
        raise Complaint(f"the ledger of {opened.path} was not moved: there is nothing to undo")
    if mark.is_finished:
        if options.to is None or shared_name(options.to, schema) != mark.place:
            raise Complaint(
                f"the ledger was moved to {mark.place}: name that place with --to and --schema",
                "it is checked that nothing was written there since",
            )
        with _target(options.to, schema) as target:
            target.give_back(ledger.log_id(opened.db), ledger.head(opened.db))
    _mark(opened, None)
    return {"moved": False, "to": mark.place, "found": None}


@contextmanager
def _target(url: str, schema: str) -> "Iterator[Target]":
    require_driver()
    from colibri.store.postgres import moving  # noqa: PLC0415 - it loads psycopg

    with moving.target(url, schema) as target:
        yield target


def _mark(opened: Opened, mark: Mark | None) -> None:
    with opened.transaction(durable=True):
        moved.set_mark(opened.db, mark)
        opened.check()


def _check_file(opened: Opened, config: Config) -> None:
    """Complaint if the file is not what it should be, or not all that a witness knows of."""
    db = opened.db
    with progress_bar("checking the file", "records", ledger.last_seq(db)) as bar:
        try:
            problems = [f"SQLite: {' '.join(text.split())}" for text in integrity_check(db)]
            if not problems:
                known = witnesses.known(config, db)
                report = verify(db, witnesses=known, pause=bar.slice)
                problems = [describe(one) for one in report.breaks]
        except errors(UnicodeDecodeError, Damaged) as problem:
            problems = [str(problem)]
        except KeyboardInterrupt:
            raise KeyboardInterrupt("before anything was copied") from None
    if problems:
        message = f"{opened.path} is not sound, so nothing was copied: {summary(problems)}"
        raise Complaint(message, "colibri verify shows the details")


def _copy(opened: Opened, target: "Target") -> None:
    with progress_bar("copying", "rows") as bar, _resumable(bar):
        target.copy(opened.db, bar)


def _check_copy(target: "Target", head: Head | None) -> None:
    """Complaint unless the copy is sound and ends where the file does."""
    records = head.seq if head else 0
    with progress_bar("checking the copy", "records", records) as bar, _resumable(bar):
        foreign, report = target.check(head, bar.slice)
    problems = [*foreign, *map(describe, report.breaks)]
    if not problems and report.head != head:
        problems = ["its newest record is not that of the file"]
    if problems:
        raise Complaint(
            f"the copy is not sound, so no server may write to it: {summary(problems)}",
            "drop the schema with psql and move the ledger again, or colibri move-ledger --undo",
        )


@contextmanager
def _resumable(bar: Any) -> Iterator[None]:
    """An interrupt says how far it came, and how to continue."""
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"after about {bar.done:,} of {bar.total:,}: the same command continues;"
            " move-ledger --undo stays with the file"
        ) from None


def _tell(told: dict[str, Any], options: argparse.Namespace, schema: str) -> None:
    if options.json:
        terminal.emit(told)
        return
    line, records = terminal.line, terminal.count(told["records"], "record")
    if not told["moved"]:
        line((f"undone   servers write to {told['from']} again", "good"), hang=9)
        line(f"copy     what {told['to']} holds stays there, and no server writes to it", hang=9)
        return
    how = "which was done before" if told["found"] == "whole" else "checked"
    line((f"moved    {records} to {told['to']}, {how}", "good"), hang=9)
    line(f"log      {told['log']}", whole=True)
    line(f"head     {words.head(told['head'])}", whole=True)
    line(f"file     {told['from']} can be read, and no server writes to it any more", hang=9)
    init = program.typed(f"colibri team init {shlex.quote(options.to)} --schema {schema}")
    line(f"next     {init} prints what each machine has to set", hang=9)
