"""`colibri restore`: replace the database with a copy; the old one is kept next to it."""

import argparse
import os
import shlex
import sys
from contextlib import closing
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from colibri.cli import program, project, terminal
from colibri.cli.commands import heads
from colibri.cli.commands.backup import check, is_same, refuse_server, summary
from colibri.cli.complaint import Complaint
from colibri.cli.show import words
from colibri.cli.show.progress import bar as progress_bar
from colibri.config import Config, load
from colibri.core.errors import Damaged, ResourceError
from colibri.core.ledger import Head
from colibri.core.visible import visible
from colibri.store import ledger, moved
from colibri.store.connection import Connection
from colibri.store.faults import errors
from colibri.store.sqlite import backup, opening
from colibri.store.sqlite.files import BEFORE_RESTORE
from colibri.store.sqlite.opening import open_reader

HELP = "replace the database with a copy"

DESCRIPTION = """\
Replace the project's database with a copy made by colibri backup. No server may be running. The
copy is checked first and compared with the current database. If the copy is older, belongs to
another log or has diverged, the command lists what would be lost and asks for --force, or for a yes
on the terminal. The old database is kept next to the new one under another name. If both are sound
and hold the same records, nothing is done.
"""

EPILOG = """\
examples:
  colibri restore ~/backups/colibri-20260101T120000Z.db

If it is interrupted, either the old or the new database is in place, never a mixture.

--json prints restored (false: nothing was changed), relation (none, identical, newer, older,
diverged, another log, unknown), lost (how many records), reason and older_schema; unless relation
is none or unknown, also common, gained, kinds, since and until; and after a restore also database,
head {seq, leaf}, kept (the old files, under their new names) and accepted (how many heads, kept
outside, the restored log no longer contains: see colibri heads).

Exit codes: 0 restored, or nothing to do, 1 the copy is not sound, or records would be lost and
--force is missing, 73 configuration, 75 resource, such as a running server, 130 interrupted.
"""

RELATIONS = {
    "none": "there was no database",
    "identical": "the copy and the database hold the same records",
    "newer": "the copy holds the whole database and {gained_records} more",
    "older": "the copy is older: it ends at record {common:,}, {lost_records} before the database",
    "diverged": "the copy and the database diverge after record {common:,}",
    "another log": "the copy belongs to another log",
    "unknown": "the database cannot be read: {reason}",
}

# What to do about a ledger on PostgreSQL.
PUT_BACK = (
    "stop the servers; pg_restore puts a dump of the schema {schema} back, into a database without"
    " it. Then colibri verify compares it with the heads that were kept"
)


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a copy made by colibri backup")
    parser.add_argument(
        "--force",
        action="store_true",
        help="restore even if records are lost, or nothing differs",
    )
    project.options(parser, "describe what was done as JSON")


def run(options: argparse.Namespace) -> int:
    """1 open the copy, 2 keep servers out, 3 copy it next to the database, 4 check that,
    5 compare, 6 ask, 7 put it in place, 8 tell."""
    config = load(options.project)
    refuse_server(config, PUT_BACK)
    path = os.path.realpath(config.db_path)
    if is_same(options.file, path):
        raise Complaint(f"{options.file} is the database itself", "name a copy of it")
    new = f"{path}.restore-{os.getpid()}"
    with closing(backup.open_copy(options.file)) as source, opening.alone(path):  # 1, 2
        _refuse_moved(path)
        try:
            head = _copy(source, new)  # 3
            if problems := check(new, head):  # 4
                message = f"{options.file} is not sound: {summary(problems)}"
                raise Complaint(
                    message, "nothing was changed; colibri verify FILE shows the details"
                )
            found = _compare(path, new)  # 5
            if found["relation"] == "identical" and not options.force and not check(path, head):
                _tell_same(path, found, options)
                return 0
            if found["lost"] != 0 and not options.force:
                _ask(found, options)  # 6
            kept = backup.put(new, path, _aside(path))  # 7
        finally:
            backup.discard(new)
    accepted = _accept(config, options)
    result = {"restored": True, "database": path, **found, "kept": kept, "accepted": accepted}
    _tell(result | {"head": words.head_json(head)}, options)  # 8
    return 0


def _refuse_moved(path: str) -> None:
    """ResourceError if the ledger was moved: a copy in the place of the file would be a fork."""
    if not os.path.exists(path):
        return
    try:
        with closing(open_reader(path, least=1)) as current:
            mark = moved.mark_of(current)
    except errors(ResourceError):  # too damaged to have one
        return
    if mark is not None:
        raise ResourceError(
            f"the ledger of {path} was moved to {mark.place}: a copy here would be a second one",
            "back up and restore that one with PostgreSQL's own tools: docs/team.md says how",
        )


def _accept(config: Config, options: argparse.Namespace) -> int:
    """Accept that the restored log differs from the heads kept outside; how many there were."""
    try:
        bad = [one for one in heads.compared(config)[1] if one.result == "diverged"]
        if bad:
            name = os.path.basename(options.file)
            heads.accept(config, bad, f"restored from {name}, a copy of the database")
    except errors(ResourceError) as problem:
        terminal.note(f"the heads kept outside were not accepted: {problem}")
        return 0
    return len(bad)


def _copy(source: Connection, new: str) -> Head | None:
    """Copy the copy; its head, if that can be read."""
    head = None
    with source, progress_bar("copying", "pages") as bar:  # source: one transaction
        backup.copy(source, new, progress=bar)
        try:
            head = ledger.head(source)
        except errors():
            pass  # what is wrong with it, its check will tell
    return head


def _compare(path: str, new: str) -> dict[str, Any]:
    """How the copy and the database relate; `lost` is None if that is unknown."""
    with closing(backup.open_copy(new)) as copied:
        found: dict[str, Any] = {"older_schema": backup.is_older(copied), "reason": None}
        if not os.path.exists(path) and not backup.companions(path):
            return found | {"relation": "none", "lost": 0}
        try:
            with closing(open_reader(path, least=1)) as current:
                return found | asdict(backup.compare(current, copied))
        except errors(ResourceError, Damaged, UnicodeDecodeError) as problem:
            return found | {"relation": "unknown", "lost": None, "reason": str(problem)}


def _ask(found: dict[str, Any], options: argparse.Namespace) -> None:
    """Whether what is lost may be lost; a Complaint if not."""
    relation, loss = _relation(found), _loss(found)
    if options.json:
        terminal.emit({"restored": False, **found})
    if options.json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise Complaint(relation, f"{loss}; --force restores anyway")
    for line in (relation, loss):
        print(visible(line), file=sys.stderr)
    print("restore anyway? type yes: ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() != "yes":
        raise Complaint("nothing was changed")


def _relation(found: dict[str, Any]) -> str:
    """How the copy and the database relate, in words."""
    numbers = {
        f"{name}_records": terminal.count(found.get(name) or 0, "record")
        for name in ("gained", "lost")
    }
    return RELATIONS[found["relation"]].format(**found, **numbers)


def _loss(found: dict[str, Any]) -> str:
    """What would be gone, in words."""
    if found["lost"] is None:
        return "it is unknown which of its records the copy lacks"
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in found["kinds"].items())
    back = (
        "; texts erased since then would be readable again" if "erasure" in found["kinds"] else ""
    )
    return (
        f"{terminal.count(found['lost'], 'record')} from {found['since']} to {found['until']}"
        f" would be lost ({kinds}){back}"
    )


def _aside(path: str) -> str:
    """A name for the database that was there, which nothing has yet."""
    name = f"{path}{BEFORE_RESTORE}{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    number = 1
    while any(os.path.exists(name + end) for end in ("", *backup.COMPANIONS)):
        number += 1
        name = f"{name.rpartition('Z')[0]}Z-{number}"
    return name


def _tell_same(path: str, found: dict[str, Any], options: argparse.Namespace) -> None:
    if options.json:
        terminal.emit({"restored": False, **found})
    else:
        terminal.line(f"nothing to do: {_relation(found)}, and {path} is sound", hang=2)


def _tell(result: dict[str, Any], options: argparse.Namespace) -> None:
    if options.json:
        terminal.emit(result)
        return
    line = terminal.line
    line((f"restored {result['database']} from {options.file}", "good"), hang=9)
    line(f"compared {_relation(result)}", hang=9)
    empty = "" if result["head"] else ": it is empty"
    line(f"head     {words.head(result['head'])}{empty}", whole=True)
    if result["older_schema"]:
        line("schema   from an older Colibri: the next server start migrates it", hang=9)
    if result["accepted"]:
        count = terminal.count(result["accepted"], "head")
        line(f"heads    accepted that {count} kept outside are not in it", hang=9)
    for name in result["kept"]:
        line(f"before   {name}", whole=True)
    if result["relation"] not in ("none", "unknown"):
        back = f"colibri restore {shlex.quote(result['kept'][0])}{project.again(options)}"
        line(f"back     {program.typed(back)}", whole=True)
    if result["lost"] != 0:
        common = result.get("common")
        which = (
            f"receipts and heads after record {common:,}" if common else "older receipts and heads"
        )
        says = program.typed("colibri verify --head reports it")
        line(f"note     {which} no longer match this log: {says}", hang=9)
