"""`colibri export`: records and proofs in one file that anyone can check without Colibri."""

import argparse
import os
import re
from typing import Any, BinaryIO

from colibri.cli import files, lookup, program, project, terminal
from colibri.cli.complaint import Complaint
from colibri.cli.show import words, written
from colibri.store import bundle
from colibri.store.bundle import Contents
from colibri.store.connection import Connection

HELP = "write evidence into a file that anyone can verify"

DESCRIPTION = """\
Write an evidence bundle: the whole log, a session, a task, or single thoughts with their proofs.

The independent verifier reads the bundle before the file gets its name: a bundle that nobody can
check is not written. Whoever receives the file can check it with colibri_verify.py, which needs
only Python, or in a browser. Send them the root of a seal or the head of the log separately, so
that they can tell that the log was not rewritten: the root for a session, a task or thoughts, the
head for --all. A session's bundle ends at its seal, so it contains no later head. If colibri
witness has kept a later checkpoint in git, the bundle carries the proof that it covers the last
record, so it can also be compared with that checkpoint where it was published.
"""

EPILOG = """\
examples:
  colibri export --session S-0123456789ab -o session.colibri.json
  colibri export --task T-0001 -o task.colibri.json
  colibri export --all -o log.colibri.json
  colibri export --thought R-17 R-20 -o two.colibri.json

colibri sessions and colibri tasks list the ids; colibri log --kind thought lists thoughts.

The database is only read, and servers can keep writing. The bundle holds everything that was
recorded, word for word; only you can read the file until you change its permissions.

The root, the head and the check command it prints describe this log as it is now. They prove
something only to a person who also got the root or head from elsewhere, such as the answer of
merkle_finalize or a receipt.

--json prints file, bytes, records, session, task, roots [{session, root}] (of the seals in it,
each SIZE:HEX), head {seq, leaf} (of its last record), checkpoint {size, root} (that covers it, or
null) and verdict (good, or bad if the log itself is damaged). A bundle can be of any size: it has
one line per record and is written and checked line by line.

Exit codes: 0 written, 1 no such session, task or thought, FILE already exists, or no verifier could
check the bundle, 73 configuration, 75 resource. Unless it is 0, no file is left behind.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--all", action="store_true", help="the whole log")
    what.add_argument("--session", metavar="ID", help="a session with its tasks and calls")
    what.add_argument(
        "--task",
        metavar="ID",
        type=lookup.task_id,
        help="a task with its dependencies and the thoughts about it",
    )
    what.add_argument(
        "--thought", metavar="ID", nargs="+", type=_thought, help="thoughts of a sealed session"
    )
    written.options(parser)
    project.options(parser, "describe what was written as JSON")


def _thought(text: str) -> str:
    if not re.fullmatch(r"R-[1-9][0-9]{0,14}", text):
        raise argparse.ArgumentTypeError("the id of a thought is R- and a number, such as R-17")
    return text


def run(options: argparse.Namespace) -> int:
    path: str = options.output
    with project.reading(options) as (config, reader):
        written.refuse(options, config)
        contents = _contents(reader, options)
        written.cover(reader, contents, config)
        judge = _Judge()
        size = files.write(bundle.write(reader, contents), path, judge)
        found = written.facts(reader, contents, path, size) | {"verdict": judge.verdict}
        told = f"judged {judge.verdict.upper()} by the independent verifier"
        written.say(found, options, [told, _check(found)])
    if judge.verdict == "bad":
        terminal.note("hint: the log itself is damaged; colibri verify shows the details")
    return 0


class _Judge:
    """Checks a bundle as its receiver will, before it is written; `verdict` is good or bad."""

    verdict = ""

    def __call__(self, file: BinaryIO) -> None:
        import colibri_verify  # noqa: PLC0415 - 15 ms that no other command need wait

        judged = colibri_verify.verify(file)
        self.verdict = judged.verdict
        if judged.verdict == "cannot tell":
            found = judged.findings[0]
            message = f"no verifier can check this bundle: {found['code']}: {found['detail']}"
            raise Complaint(message, "nothing was written; colibri verify checks the log itself")


def _contents(reader: Connection, options: argparse.Namespace) -> Contents:
    if options.session is not None:
        return bundle.of_session(reader, lookup.session(reader, options.session).session_id)
    if options.task is not None:
        return bundle.of_task(reader, lookup.task(reader, options.task).task_id)
    if options.thought is not None:
        return _thoughts(reader, options.thought)
    return bundle.whole_log(reader)


def _thoughts(reader: Connection, ids: list[str]) -> Contents:
    """A Complaint if an id is not a thought of one sealed session, with what it is instead."""
    found = [lookup.thought(reader, id) for id in ids]
    named = {str(one.session): f"R-{one.seq} to {one.session}" for one in found}
    if len(named) > 1:
        hint = "a proof belongs to one seal: export the thoughts of one session at a time"
        message = f"these thoughts belong to several sessions: {', '.join(named.values())}"
        raise Complaint(message, hint)
    (session,) = named
    if lookup.session(reader, session).root is None:
        message = f"session {session} is open: its thoughts have no proofs until it is sealed"
        hint = f"colibri export --session {session} exports all of them, without proofs"
        raise Complaint(message, hint)
    return bundle.of_thoughts(reader, ids)


def _check(found: dict[str, Any]) -> str:
    """The command that checks it, to be copied."""
    path = "FILE" if found["file"] == "-" else os.path.abspath(found["file"])
    outside = ["--head", words.head(found["head"])]
    if found["roots"] and (found["session"] or found["task"]):
        outside = ["--root", found["roots"][0]["root"]]
    command = program.verifier(path, *outside)
    if terminal.is_terminal() and len(command) > terminal.console().width - len("check  "):
        command = command.replace(f" {outside[0]} ", f" \\\n       {outside[0]} ")  # can be pasted
    return f"check  {command}"
