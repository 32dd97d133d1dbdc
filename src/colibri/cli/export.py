"""`colibri export`: records and proofs in one file that anyone can check without Colibri."""

import argparse
import json
import os
import re
import sys
from collections.abc import Iterator
from typing import Any

from apsw import Connection

from colibri.cli import files, lookup, program, project, terminal
from colibri.core.errors import Refused
from colibri.core.visible import visible
from colibri.store import bundle, ledger
from colibri.store.bundle import Contents

HELP = "write evidence into a file that anyone can verify"

DESCRIPTION = """\
Write an evidence bundle: the whole log, a session, a task, or single thoughts with their proofs.

Whoever receives the file checks it with colibri_verify.py, which needs nothing but Python, or in a
browser. Give them the root of a seal or the head of the log by another way, so that they can tell
that the bundle is not a log written anew: the root with a session, a task or thoughts, the head
with --all. A session's bundle ends at its seal, so that a head from later is not in it.
"""

EPILOG = """\
examples:
  colibri export --session S-0123456789ab -o session.colibri.json
  colibri export --task T-0001 -o task.colibri.json
  colibri export --all -o log.colibri.json
  colibri export --thought R-17 R-20 -o two.colibri.json

colibri sessions and colibri tasks list the ids, colibri log --kind thought those of thoughts.

The database is only read; servers may go on writing meanwhile. The file is readable for you alone
until you change that: it holds everything that was recorded, as it was written.

The root and the head that it prints, and the command for checking, are of this log as it is now:
they prove something to who knows them from elsewhere, as from merkle_finalize or a receipt.

--json prints file, bytes, records, session, task, roots [{session, root}] (of the seals in it) and
head {seq, leaf} (of its last record).

Exit codes: 0 written, 1 no such session, task or thought, or FILE exists already, 73 configuration,
75 resource.
"""


ROOTS = 5  # that a person is shown


def configure(parser: argparse.ArgumentParser) -> None:
    """Its options."""
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--all", action="store_true", help="the whole log")
    what.add_argument("--session", metavar="ID", help="a session with its tasks and calls")
    what.add_argument(
        "--task", metavar="ID", help="a task with what it depends on and the thoughts about it"
    )
    what.add_argument(
        "--thought", metavar="ID", nargs="+", type=_thought, help="thoughts of a sealed session"
    )
    parser.add_argument(
        "-o", "--output", metavar="FILE", required=True, help="where to; - is stdout"
    )
    parser.add_argument("--force", action="store_true", help="replace FILE if it exists")
    terminal.json_option(parser, "say what was written as JSON")
    project.option(parser)


def _thought(text: str) -> str:
    if not re.fullmatch(r"R-[1-9][0-9]{0,14}", text):
        raise argparse.ArgumentTypeError("the id of a thought is R- and a number, such as R-17")
    return text


def run(options: argparse.Namespace) -> int:
    """Write the bundle; the exit code."""
    path: str = options.output
    if path != "-":
        files.refuse_existing(path, force=options.force)
    with project.reading(options) as (_, reader):
        contents = _contents(reader, options)
        written = files.write(bundle.write(reader, contents), path)
        _report(reader, contents, options, written)
    return 0


def _contents(reader: Connection, options: argparse.Namespace) -> Contents:
    if options.session is not None:
        return bundle.of_session(reader, lookup.session(reader, options.session).session_id)
    if options.task is not None:
        return bundle.of_task(reader, lookup.task(reader, options.task).task_id)
    if options.thought is not None:
        return _thoughts(reader, options.thought)
    return bundle.whole_log(reader)


def _thoughts(reader: Connection, ids: list[str]) -> Contents:
    """Refused with what an id is, if it is no thought of one sealed session."""
    found = [lookup.thought(reader, id) for id in ids]
    named = {str(one.session): f"R-{one.seq} is of {one.session}" for one in found}
    if len(named) > 1:
        hint = "a proof leads to one seal: export the thoughts of one session at a time"
        message = f"these thoughts are of several sessions: {', '.join(named.values())}"
        raise Refused("ERR_NOT_FOUND", message, hint=hint)
    (session,) = named
    if lookup.session(reader, session).root is None:
        message = f"the session {session} is open: its thoughts have no proofs before it is sealed"
        hint = f"colibri export --session {session} has them all, without proofs"
        raise Refused("ERR_NOT_FINALIZED", message, hint=hint)
    return bundle.of_thoughts(reader, ids)


def _report(reader: Connection, contents: Contents, options: argparse.Namespace, size: int) -> None:
    last = contents.headers[-1]
    leaf = (ledger.leaf_at(reader, last) or b"").hex()
    roots = bundle.roots(reader, contents)
    report: dict[str, Any] = {
        "file": options.output,
        "bytes": size,
        "records": len(contents.headers),
        "session": (contents.scope or {}).get("session"),
        "task": (contents.scope or {}).get("task"),
        "roots": [{"session": session, "root": root.hex()} for session, root in roots.items()],
        "head": {"seq": last, "leaf": leaf},
    }
    # With the bundle itself on stdout, words about it go to stderr.
    stream = sys.stderr if options.output == "-" else sys.stdout
    if options.json:
        print(json.dumps(report), file=stream)
        return
    for line in _told(report):
        print(visible(line), file=stream)


def _told(report: dict[str, Any]) -> Iterator[str]:
    """In words, with the command that checks it, to be copied."""
    records = terminal.count(report["records"], "record")
    yield f"wrote {report['file']}: {records}, {terminal.count(report['bytes'], 'byte')}"
    for one in report["roots"][:ROOTS]:
        yield f"root   {one['root']}  {one['session']}"
    if more := len(report["roots"][ROOTS:]):
        yield f"       and {more:,} more; --json names them"
    head = "{seq}:{leaf}".format(**report["head"])
    yield f"head   {head}"
    path = "FILE" if report["file"] == "-" else os.path.abspath(report["file"])
    outside = ["--head", head]
    if report["roots"] and (report["session"] or report["task"]):
        outside = ["--root", report["roots"][0]["root"]]
    yield f"check  {program.verifier(path, *outside)}"
