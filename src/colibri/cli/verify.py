"""`colibri verify`: is the log, a part of it or a bundle what it was, and what is not known."""

import argparse
import re
from contextlib import closing
from typing import Any

import apsw
from apsw import Connection

from colibri.cli import project, terminal, verdict
from colibri.cli.progress import Bar
from colibri.config import load
from colibri.core.errors import Damaged, Refused, ResourceError
from colibri.core.ledger import Head
from colibri.core.report import Report
from colibri.store import backup, db, ledger, sessions, tasks
from colibri.store import verify as check
from colibri.store.sessions import Session

HELP = "check the log, a session, a task or a bundle"

DESCRIPTION = """\
Recompute every hash, replay every rule, and say what is broken, what it means, and what could not
be checked. Without arguments it looks at the whole log of the project; FILE is an evidence bundle,
which the independent verifier colibri_verify judges, or a copy that colibri backup wrote.

A log that was cut off at its end, or written anew as a whole, shows only to who brings along a head
(from any receipt, or from colibri backup) or a root (from merkle_finalize) that was kept elsewhere.
"""

EPILOG = """\
examples:
  colibri verify
  colibri verify --head 1204:HEX
  colibri verify --session S-0123456789ab --root HEX
  colibri verify session.colibri.json --root HEX

The database is only read, a slice at a time; servers may go on writing meanwhile.
Exit codes: 0 good, 1 bad, 2 cannot tell, 73 configuration, 130 interrupted.
"""

EXIT = {"good": 0, "bad": 1, "cannot tell": 2}
NO_ROOT = "no root from outside: whether a seal is the one that was published cannot be seen"
NO_MOVES = "the moves of tasks: that takes the whole log, or --task"
NO_PAGES = "pages and indexes of the file that hold no record: colibri backup looks at all pages"
NO_TRUTH = "whether what was recorded is true, or something was never recorded"


def configure(parser: argparse.ArgumentParser) -> None:
    """Its options."""
    what = parser.add_mutually_exclusive_group()
    what.add_argument("file", metavar="FILE", nargs="?", help="a bundle, or a copy of the database")
    what.add_argument("--session", metavar="ID", help="only from a session's opening to its seal")
    what.add_argument("--task", metavar="ID", help="only the records of a task")
    parser.add_argument("--root", metavar="HEX", type=_root, help="a seal's root, kept elsewhere")
    parser.add_argument("--head", metavar="SEQ:HEX", type=_head, help="a head, kept elsewhere")
    terminal.json_option(parser, "the verdict as JSON")
    project.option(parser)
    parser.set_defaults(usage_error=parser.error)


def _root(text: str) -> bytes:
    if not re.fullmatch("[0-9a-f]{64}", text):
        raise argparse.ArgumentTypeError("a root is 64 lower-case hex digits")
    return bytes.fromhex(text)


def _head(text: str) -> Head:
    found = re.fullmatch("([1-9][0-9]{0,15}):([0-9a-f]{64})", text)
    if not found:
        raise argparse.ArgumentTypeError("a head is SEQ:HEX, a number and 64 lower-case hex digits")
    return Head(int(found[1]), bytes.fromhex(found[2]))


def run(options: argparse.Namespace) -> int:
    """Judge; the exit code."""
    if options.head and (options.session or options.task):
        options.usage_error("--head takes the whole log: leave out --session and --task")
    if options.root and options.task:
        options.usage_error("--root takes the whole log or a session: leave out --task")
    if options.file is not None and not backup.is_database(options.file):
        return _judge_bundle(options)
    path = load(options.project).db_path if options.file is None else options.file
    judged = _judge_log(path, options)
    if options.json:
        terminal.emit(judged)
    else:
        verdict.show(judged)
    return EXIT[judged["verdict"]]


def _judge_bundle(options: argparse.Namespace) -> int:
    """By the independent verifier; its verdict as it is."""
    import colibri_verify  # noqa: PLC0415 - 15 ms that no other command need wait

    root = options.root and options.root.hex()
    head = options.head and (options.head.seq, options.head.leaf.hex())
    try:
        judged = colibri_verify.verify_file(options.file, root, head)
    except MemoryError:
        terminal.complain(f"{options.file} takes more memory than there is", "nothing is concluded")
        return EXIT["cannot tell"]
    if options.json:
        terminal.emit(judged.as_json())
    else:
        terminal.say(colibri_verify.as_text(judged).rstrip("\n"), lines=True)
    return judged.exit_code


def _judge_log(path: str, options: argparse.Namespace) -> dict[str, Any]:
    """The verdict, of one shape whatever comes of it."""
    judged: dict[str, Any] = {
        "format": "colibri-log-verdict/1",
        "verdict": "cannot tell",
        "reason": None,  # why it cannot be told
        "database": path,
        "log": None,
        "session": options.session,
        "task": options.task,
        "records": 0,
        "head": None,
        "lines": dict.fromkeys(verdict.LINES, "not checked"),
        "sessions": None,
        "erased": None,
        "open_calls": None,
        "findings": [],
        "finding_count": 0,
        "not_checked": ["everything"],
    }
    try:
        with closing(db.open_reader(path)) as reader:
            judged["log"] = ledger.log_id(reader)
            report = _examine(reader, options)
            if not report.record_count and report.valid:
                raise ResourceError("the log holds no records: there is nothing to check")
            judged |= _findings(report, list(sessions.every(reader)), options)
    except (ResourceError, Refused) as problem:
        return judged | _cannot_tell(problem.message, getattr(problem, "hint", ""))
    except (apsw.CorruptError, apsw.SQLError, UnicodeDecodeError, Damaged) as problem:
        damage = verdict.finding(None, "damaged file", str(problem))
        judged["lines"]["intact"] = "no"
        judged |= {"findings": [damage], "finding_count": 1}
    except apsw.Error as problem:
        return judged | _cannot_tell(
            f"cannot read {path}: {problem}", "try again, or verify a copy"
        )
    return judged | {"verdict": "bad" if judged["finding_count"] else "good"}


def _cannot_tell(reason: str, hint: str) -> dict[str, Any]:
    terminal.complain(reason, hint)
    return {"reason": reason}


def _examine(reader: Connection, options: argparse.Namespace) -> Report:
    """The check that was asked for, with a bar; an interrupt says how far it came."""
    newest = ledger.head(reader)
    first, last = 1, newest.seq if newest else 0
    if options.session is not None:
        session = sessions.get(reader, options.session)
        first, last = session.open_seq, session.seal_seq or last
    with Bar("verifying", "records", last - first + 1) as bar:
        try:
            if options.session is not None:
                return check.verify_session(reader, options.session, pause=bar.slice)
            if options.task is not None:
                tasks.get(reader, options.task)
                return check.verify_task(reader, options.task)
            return check.verify(reader, head=options.head, pause=bar.slice)
        except KeyboardInterrupt:
            far = f"after about {bar.done:,} of {bar.total:,} records: nothing is concluded"
            raise KeyboardInterrupt(far) from None


def _findings(report: Report, every: list[Session], options: argparse.Namespace) -> dict[str, Any]:
    """What was found, as members of the verdict."""
    looked_at = [one for one in every if options.session in (None, one.session_id)]
    roots = [one.root for one in looked_at if one.root is not None]
    found = [verdict.finding(seq or None, what, detail) for seq, what, detail in report.breaks]
    count = report.broken_count
    if options.root is not None and options.root not in roots:
        found.append(verdict.finding(None, "other root", f"seals that were compared: {len(roots)}"))
        count += 1
    members: dict[str, Any] = {
        "records": report.record_count,
        "head": report.head and {"seq": report.head.seq, "leaf": report.head.leaf.hex()},
        "lines": verdict.lines({one["what"] for one in found}, cut=count > len(found)),
        "findings": found,
        "finding_count": count,
        "not_checked": [*report.not_checked, NO_PAGES, NO_TRUTH],
    }
    if options.task is not None:  # its records alone say nothing of seals, erasures and calls
        members["lines"]["seals"] = "not checked"
        return members
    if members["lines"]["seals"] == "yes" and not roots:
        members["lines"]["seals"] = "none"
    if options.session is not None:
        members["not_checked"].append(NO_MOVES)
    if roots and options.root is None:
        members["not_checked"].append(NO_ROOT)
    return members | {
        "sessions": {"sealed": len(roots), "open": len(looked_at) - len(roots)},
        "erased": list(report.erased),
        "open_calls": [call._asdict() for call in report.open_calls],
    }
