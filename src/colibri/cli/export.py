"""`colibri export`: records and proofs in one file that anyone can check without Colibri."""

import argparse
import json
import os
import re
import sys
from collections.abc import Iterator
from typing import Any

from apsw import Connection

from colibri.cli import project, terminal
from colibri.core.errors import ResourceError
from colibri.store import bundle, ledger
from colibri.store.bundle import Contents

HELP = "write evidence into a file that anyone can verify"

DESCRIPTION = """\
Write an evidence bundle: the whole log, a session, a task, or single thoughts with their proofs.

Whoever receives the file checks it with colibri_verify.py, which needs nothing but Python, or in a
browser. Give them the root of the seal or the head of the log by another way, so that they can tell
that the bundle is not a log written anew.
"""

EPILOG = """\
examples:
  colibri export --session S-0123456789ab -o session.colibri.json
  colibri export --task T-0001 -o task.colibri.json
  colibri export --all -o log.colibri.json
  colibri export --thought R-17 R-20 -o two.colibri.json

The database is only read; servers may go on writing meanwhile.

Exit codes: 0 written, 1 no such session, task or thought, 73 configuration, 75 resource.
"""


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
    if path != "-" and os.path.exists(path) and not options.force:
        raise ResourceError(f"{path} exists already", "name another file, or add --force")
    with project.reading(options) as (_, reader):
        contents = _contents(reader, options)
        written = _write(bundle.write(reader, contents), path)
        _report(reader, contents, options, written)
    return 0


def _contents(reader: Connection, options: argparse.Namespace) -> Contents:
    if options.session is not None:
        return bundle.of_session(reader, options.session)
    if options.task is not None:
        return bundle.of_task(reader, options.task)
    if options.thought is not None:
        return bundle.of_thoughts(reader, options.thought)
    return bundle.whole_log(reader)


def _write(pieces: Iterator[bytes], path: str) -> int:
    """Write all of it or nothing: a file is given its name when it is complete."""
    size = 0
    if path == "-":
        for piece in pieces:
            size += sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
        return size
    partial = f"{path}.partial-{os.getpid()}"
    try:
        with open(partial, "xb") as file:
            for piece in pieces:
                size += file.write(piece)
        os.replace(partial, path)
    except BaseException:
        if os.path.exists(partial):
            os.unlink(partial)
        raise
    return size


def _report(reader: Connection, contents: Contents, options: argparse.Namespace, size: int) -> None:
    last = contents.headers[-1]
    leaf = (ledger.leaf_at(reader, last) or b"").hex()
    report: dict[str, Any] = {
        "file": options.output,
        "bytes": size,
        "records": len(contents.headers),
        "session": (contents.scope or {}).get("session"),
        "task": (contents.scope or {}).get("task"),
        "head": {"seq": last, "leaf": leaf},
    }
    # With the bundle itself on stdout, words about it go to stderr.
    stream = sys.stderr if options.output == "-" else sys.stdout
    if options.json:
        print(json.dumps(report), file=stream)
        return
    print(f"wrote {options.output}: {len(contents.headers)} records, {size:,} bytes", file=stream)
    print(f"head   {last}:{leaf}", file=stream)
    print(f"check  python colibri_verify.py {options.output}", file=stream)
