"""The file that export and report write, and the roots and head to compare it with later."""

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from colibri.cli import files, terminal
from colibri.cli.show import words
from colibri.cli.witness import collect
from colibri.config import Config
from colibri.core.errors import Damaged
from colibri.core.visible import visible
from colibri.store import bundle, ledger
from colibri.store.bundle import Contents
from colibri.store.connection import Connection

ROOTS = 5  # that a person is shown


def options(parser: argparse.ArgumentParser, default: str | None = None) -> None:
    """Which file."""
    text = "the file to write; - is stdout" + (f" (default: {default})" if default else "")
    parser.add_argument(
        *("-o", "--output"), metavar="FILE", required=default is None, default=default, help=text
    )
    parser.add_argument("--force", action="store_true", help="replace FILE if it exists")


def refuse(options: argparse.Namespace, config: Config) -> None:
    """A Complaint if the file cannot be the one that is meant."""
    if options.output != "-":
        files.refuse_links(options.output, config.project)
        files.refuse_existing(options.output, force=options.force)


def cover(reader: Connection, contents: Contents, config: Config) -> None:
    """Add the newest checkpoint that git has of the log, if it reaches the end of the bundle."""
    newest = collect.newest_checkpoint(config.project, ledger.log_id(reader))
    try:
        if newest is not None:
            bundle.cover(reader, contents, newest)
    except (ValueError, Damaged) as problem:
        terminal.note(f"warning: the newest checkpoint in git is left out: {problem}")
        terminal.note("hint: colibri verify compares the log with all checkpoints")


def facts(reader: Connection, contents: Contents, path: str, size: int) -> dict[str, Any]:
    """All of it, as --json prints it."""
    scope, last, covered = contents.scope or {}, contents.last, contents.checkpoint
    roots = bundle.roots(reader, contents)
    return {
        "file": path,
        "bytes": size,
        "records": contents.count,
        "session": scope.get("session") or scope.get("thoughts"),
        "task": scope.get("task"),
        "roots": [{"session": session, "root": root} for session, root in roots.items()],
        "head": {"seq": last, "leaf": (ledger.leaf_at(reader, last) or b"").hex()},
        "checkpoint": covered and {"size": covered["size"], "root": covered["root"]},
    }


def say(found: dict[str, Any], options: argparse.Namespace, more: Iterable[str] = ()) -> None:
    """Tell of it. With the file itself on stdout, words about it go to stderr."""
    stream = sys.stderr if found["file"] == "-" else sys.stdout
    if options.json:
        print(json.dumps(found), file=stream)
        return
    for line in (*_told(found), *more):
        print(visible(line), file=stream)


def _told(found: dict[str, Any]) -> Iterator[str]:
    records = terminal.count(found["records"], "record")
    yield f"wrote {found['file']}: {records}, {terminal.count(found['bytes'], 'byte')}"
    for one in found["roots"][:ROOTS]:
        yield f"sealed {one['session']}"
        yield f"root   {one['root']}"
    if more := len(found["roots"][ROOTS:]):
        yield f"       and {more:,} more; --json names them"
    yield f"head   {words.head(found['head'])}"
    if found["checkpoint"]:
        yield f"covered by the checkpoint of {found['checkpoint']['size']:,} records in git"
