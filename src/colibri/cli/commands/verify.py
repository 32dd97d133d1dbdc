"""`colibri verify`: is the log, a part of it or a bundle what it was, and what is not known."""

import argparse
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Any, BinaryIO, NamedTuple

from colibri.cli import lookup, project, terminal, witnesses
from colibri.cli.complaint import Complaint, Misuse, why
from colibri.cli.show import deeds, verdict, words
from colibri.cli.show.progress import bar as progress_bar
from colibri.config import load
from colibri.core import checkpoint, witness
from colibri.core.checkpoint import Checkpoint
from colibri.core.errors import Damaged, ResourceError
from colibri.core.ledger import Head
from colibri.core.report import LINE_OF, MAX_LISTED, Report
from colibri.core.witness import Witness, Witnesses
from colibri.store import ledger, sessions, task_verification
from colibri.store import verify as check
from colibri.store.connection import Connection
from colibri.store.faults import errors, fault
from colibri.store.home import Home
from colibri.store.sessions import Session
from colibri.store.sqlite import backup
from colibri.store.sqlite.home import Home as InFile

HELP = "check the log, a session, a task or a bundle"

DESCRIPTION = """\
Recompute every hash, replay every rule, and report what is broken, what that means, and what could
not be checked. By default this checks the project's whole log. FILE is an evidence bundle, which
the independent verifier colibri_verify judges, or a copy made by colibri backup.

Only a witness can reveal that a log was truncated or completely rewritten: a head or a checkpoint
of it that was kept elsewhere. Servers keep heads in your state directory (colibri heads), and
colibri witness keeps checkpoints in git. The log is compared with all of them; the verdict says up
to which record they confirm it, and how many records are newer. While a witness is known to exist
but cannot be read, the verdict is not good. Give a head from a receipt or from colibri backup with
--head, the root of a seal with --root, and a checkpoint that you received with --checkpoint. For a
bundle, the head must be that of a record in it: a session's bundle ends at its seal, but its
checkpoint can be a later one.
"""

EPILOG = """\
examples:
  colibri verify
  colibri verify --head 1204:HEX
  colibri verify --session S-0123456789ab --root SIZE:HEX
  colibri verify session.colibri.json --root SIZE:HEX
  colibri verify session.colibri.json --checkpoint LOG@SIZE:HEX

colibri sessions and colibri tasks list the ids. The database is only read, one slice at a time, and
servers can keep writing. A report is not a bundle: it checks itself when a browser opens it.

Verdicts on logs and bundles have the same lines and codes (docs/formats.md §10 and §11). A log's
verdict has two more lines: rows, whether the tables that tools read agree with the records, and
witnessed, whether the log extends its witnesses.

--json prints format, verdict, reason (why it cannot tell), database, log, session, task, records,
head, lines, sessions, erased, open_calls, coverage (what hooks reported, and what is missing from
it), unrecorded [TEXT] (what hooks could not record, and no record mentions yet), witnesses [{log,
size, leaf, root, kind, where, at, remote, signature, place, object, problem (why it cannot be
read), result, detail, accepted}], held_to, newer, held and remarks (the same in words), findings
[{code, seq, detail, meaning}], finding_count and not_checked [{code, detail}]; for a bundle, what
colibri_verify.py --json prints.

Exit codes: 0 good, 1 bad, or no such session or task, 2 cannot tell, 73 configuration,
75 resource, 130 interrupted.
"""

Known = Callable[[Connection], Witnesses]  # what a log is compared with

EXIT = {"good": 0, "bad": 1, "cannot tell": 2}
START = 4096  # bytes of a file, by which it is known
MAX_NOTE = 65536  # characters of a checkpoint's text, with its signatures
BUNDLE = b"colibri-bundle/"
PAGE = (b"<!doctype html", b"<html")
_PASSING = ("busy", "full", "io", "unreachable", "not allowed")  # faults that say nothing of a log
FILES = "name a bundle written by colibri export, or a copy made by colibri backup"


def configure(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group()
    what.add_argument("file", metavar="FILE", nargs="?", help="a bundle, or a copy of the database")
    what.add_argument("--session", metavar="ID", help="only this session, from opening to seal")
    what.add_argument(
        "--task", metavar="ID", type=lookup.task_id, help="only the records of this task"
    )
    parser.add_argument(
        "--root", metavar="SIZE:HEX", type=_root, help="the root of a seal, kept elsewhere"
    )
    parser.add_argument("--head", metavar="SEQ:HEX", type=_head, help="a head, kept elsewhere")
    parser.add_argument(
        "--checkpoint",
        metavar="LOG@SIZE:HEX",
        type=_checkpoint,
        help="a checkpoint, kept elsewhere; or the file with its text",
    )
    project.options(parser, "the verdict as JSON")


class Root(NamedTuple):
    """A root, and the number of thoughts that it claims to cover."""

    size: int | None
    hash: bytes

    def __str__(self) -> str:
        return self.hash.hex() if self.size is None else f"{self.size}:{self.hash.hex()}"

    def is_of(self, session: Session) -> bool:
        return session.root == self.hash and self.size in (session.record_count, None)


def _root(text: str) -> Root:
    found = re.fullmatch("(?:([1-9][0-9]{0,15}):)?([0-9a-fA-F]{64})", text)
    if not found:
        raise argparse.ArgumentTypeError("a root is SIZE:HEX, a number and 64 hex digits")
    return Root(int(found[1]) if found[1] else None, bytes.fromhex(found[2]))


def _head(text: str) -> Head:
    found = re.fullmatch("([1-9][0-9]{0,15}):([0-9a-fA-F]{64})", text)
    if not found:
        raise argparse.ArgumentTypeError("a head is SEQ:HEX, a number and 64 hex digits")
    return Head(int(found[1]), bytes.fromhex(found[2]))


def _checkpoint(text: str) -> Checkpoint:
    try:
        if not os.path.isfile(text):
            return checkpoint.parse_trailer(text.lower())
        with open(text, encoding="utf-8") as file:
            return checkpoint.parse(file.read(MAX_NOTE))
    except (OSError, ValueError) as problem:  # a UnicodeDecodeError is one
        raise argparse.ArgumentTypeError(f"no checkpoint: {problem}") from None


def run(options: argparse.Namespace) -> int:
    for name in ("head", "checkpoint"):
        if getattr(options, name) and (options.session or options.task):
            raise Misuse(f"--{name} needs the whole log: leave out --session and --task")
    if options.root and options.task:
        raise Misuse("--root needs the whole log or a session: leave out --task")
    if options.file is None:
        config = load(options.project)
        home, untold = project.home(config), deeds.unrecorded(config)
        return _judge_log(home, options, lambda db: witnesses.known(config, db), untold)
    try:
        if backup.is_database(options.file):
            return _judge_log(InFile(options.file), options, witnesses.of_copy)
        return _judge_bundle(options)
    except ResourceError as problem:  # there is nothing to judge in it
        raise Complaint(problem.message, problem.hint, EXIT["cannot tell"]) from problem


def _judge_bundle(options: argparse.Namespace) -> int:
    """By the independent verifier; its verdict as it is."""
    import colibri_verify  # noqa: PLC0415 - 15 ms that no other command need wait

    root = options.root and str(options.root)
    head = options.head and (options.head.seq, options.head.leaf.hex())
    given = options.checkpoint and options.checkpoint._replace(root=options.checkpoint.root.hex())
    try:
        with _opened(options.file) as plain, colibri_verify.rereadable(plain) as file:
            start = _start(options.file, file)
            judged = colibri_verify.verify(file, root=root, head=head, checkpoint=given)
    except OSError as problem:
        raise ResourceError(f"cannot read {options.file}: {why(problem)}", FILES) from problem
    except MemoryError:
        message = f"there is not enough memory to check {options.file}"
        raise ResourceError(message, "check it on a larger machine") from None
    if options.json:
        terminal.emit(judged.as_json())
    elif BUNDLE not in start and judged.findings[0]["code"] in ("malformed-bundle", "too-large"):
        raise ResourceError(f"{options.file} is not an evidence bundle", FILES)
    else:
        verdict.show_rows(colibri_verify.as_rows(judged))
    return judged.exit_code


def _opened(path: str) -> BinaryIO:
    """What could be a bundle, or a pipe with one; else a ResourceError."""
    if not os.path.exists(path):
        raise ResourceError(f"there is no file {path}", FILES)
    if os.path.isdir(path):
        raise ResourceError(f"{path} is a directory", FILES)
    return open(path, "rb")


def _start(path: str, file: BinaryIO) -> bytes:
    """How it begins; ResourceError for a page."""
    start = file.read(START)
    file.seek(0)
    if start.lstrip().lower().startswith(PAGE):
        message = f"{path} is a web page, not a bundle: a report checks itself in the browser"
        hint = "colibri export --session ID -o FILE writes a bundle to verify"
        raise ResourceError(message, hint)
    return start


def _judge_log(
    home: Home, options: argparse.Namespace, known: Known, untold: Sequence[str] = ()
) -> int:
    """Tell the verdict, of one shape whatever comes of it."""
    judged, hint = verdict.blank(home.name, options.session, options.task), ""
    judged["unrecorded"] = list(untold)
    with closing(home.open_reader(unchecked=True)) as reader:
        try:
            if unsound := _unsound(reader):
                return _tell(judged | unsound, options)
            judged["log"] = ledger.log_id(reader)
            report = _examine(reader, options, known)
            reader.engine.sync(reader)  # the head may be kept: a power cut must not undo it
            if report.record_count or not report.valid:
                judged |= _findings(report, list(sessions.every(reader)), options)
                if report.unread and not judged["finding_count"]:
                    judged["reason"] = _unread(report)
                    hint = "delete what does not belong there, or colibri heads accept --why TEXT"
            else:
                judged["reason"] = "the log holds no records: there is nothing to check"
        except errors(UnicodeDecodeError, Damaged) as problem:
            if fault(problem) in _PASSING:
                judged["reason"] = f"cannot read {home.name}: {problem}"
                hint = "try again, or verify a copy"
            else:
                damage = verdict.finding(None, "damaged-file", str(problem))
                judged["lines"]["intact"] = "no"
                judged |= {"findings": [damage], "finding_count": 1}
    return _tell(judged, options, hint)


def _unread(report: Report) -> str:
    """Why nobody can tell: something that could speak against the log was not heard."""
    first, more = report.unread[0].witness, len(report.unread) - 1
    others = f", and {more:,} more" if more else ""
    return f"a witness of this log cannot be read: {first.where}: {first.problem}{others}"


def _unsound(reader: Connection) -> dict[str, Any]:
    """What keeps everything else from being believed: another schema, pages or indexes."""
    engine = reader.engine
    code, found = "foreign-schema", engine.foreign(reader)
    if not found:
        broken = engine.integrity_check(reader)
        code, found = "damaged-file", [" ".join(one.split()) for one in broken]
    if not found:
        return {}
    lines = dict.fromkeys(verdict.LINES, "not checked") | {LINE_OF[code]: "no"}
    listed = [verdict.finding(None, code, one) for one in found[:MAX_LISTED]]
    return {"findings": listed, "finding_count": len(found), "lines": lines}


def _tell(judged: dict[str, Any], options: argparse.Namespace, hint: str = "") -> int:
    if not judged["reason"]:
        judged["verdict"] = "bad" if judged["finding_count"] else "good"
    if options.json:
        terminal.emit(judged)
    else:
        verdict.show(judged)
    if judged["reason"]:
        raise Complaint(judged["reason"], hint, EXIT["cannot tell"])
    return EXIT[judged["verdict"]]


def _examine(reader: Connection, options: argparse.Namespace, known: Known) -> Report:
    """The check that was asked for, with a bar; an interrupt says how far it came."""
    first, last = 1, ledger.last_seq(reader)
    if options.session is not None:
        session = lookup.session(reader, options.session)
        first, last = session.open_seq, session.seal_seq or last
    if options.task is not None:
        lookup.task(reader, options.task)
    with progress_bar("verifying", "records", last - first + 1) as bar:
        try:
            if options.session is not None:
                return check.verify_session(reader, options.session, pause=bar.slice)
            if options.task is not None:
                return task_verification.verify_task(reader, options.task)
            kept = known(reader)
            if options.checkpoint is not None:
                kept = kept._replace(found=(*kept.found, _given(options.checkpoint)))
            return check.verify(reader, head=options.head, witnesses=kept, pause=bar.slice)
        except KeyboardInterrupt:
            far = f"after about {bar.done:,} of {bar.total:,} records: there is no verdict"
            raise KeyboardInterrupt(far) from None


def _given(checkpoint: Checkpoint) -> Witness:
    log, size, root = checkpoint
    return Witness(log, size, None, root, "given", "the checkpoint that you gave")


def _findings(report: Report, every: list[Session], options: argparse.Namespace) -> dict[str, Any]:
    """What was found, as members of the verdict."""
    looked_at = [one for one in every if options.session in (None, one.session_id)]
    roots = [one.root for one in looked_at if one.root is not None]
    found = [verdict.finding(seq, what, detail) for seq, what, detail in report.breaks]
    count = report.broken_count
    if options.root is not None and not any(map(options.root.is_of, looked_at)):
        compared = f"seals that were compared: {len(roots)}"
        found.append(verdict.finding(None, "root-differs", compared))
        count += 1
    whole = options.task is None  # its records alone say nothing of seals, erasures and calls
    members: dict[str, Any] = {
        "records": report.record_count,
        "head": words.head_json(report.head),
        "lines": verdict.lines({one["code"] for one in found}, report.witnesses),
        "findings": found,
        "finding_count": count,
        "not_checked": list(_not_checked(report, options, sealed=whole and bool(roots))),
    }
    if not whole:
        members["lines"]["sealed"] = "not checked"
        return members
    still_open = len(looked_at) - len(roots)
    if members["lines"]["sealed"] == "yes":
        members["lines"]["sealed"] = "open" if still_open else "yes" if roots else "none"
    return members | {
        "sessions": {"sealed": len(roots), "open": still_open},
        "erased": list(report.erased[:MAX_LISTED]),
        "erased_count": len(report.erased),
        "open_calls": [call._asdict() for call in report.open_calls[:MAX_LISTED]],
        "open_call_count": len(report.open_calls),
        "coverage": report.coverage and report.coverage._asdict(),
        **_witnesses(report),
    }


def _witnesses(report: Report) -> dict[str, Any]:
    judged = report.witnesses
    if judged is None:
        return {}
    return {
        "witnesses": [verdict.witness(one) for one in judged],
        "held_to": report.held_to,
        "newer": report.newer,
        "held": witness.held(judged, report.newer or 0),
        "remarks": witness.remarks(judged),
    }


def _not_checked(
    report: Report, options: argparse.Namespace, *, sealed: bool
) -> Iterator[dict[str, str]]:
    """As a bundle's verdict has it: what is never checked, then what was not this time."""
    yield from map(verdict.note, ("truth", "clock", "arguments", "pages"))
    yield from ({"code": one.code, "detail": one.detail} for one in report.not_checked)
    if sealed and options.root is None:
        yield verdict.note("outside-root")
    if options.root is not None and options.root.size is None:
        yield verdict.note("size")
