"""`colibri erase`: take a text out of the ledger for good; the record that it was there stays."""

import argparse
import glob
import json
import os
import pwd
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from colibri.cli import lookup, project, terminal
from colibri.cli.complaint import Complaint, Misuse
from colibri.cli.show import times, words
from colibri.config import Config, load
from colibri.core import redaction
from colibri.core.errors import ConfigError, Damaged, ResourceError
from colibri.core.ledger import Entry
from colibri.core.modes import Mode
from colibri.server.ids import Ids
from colibri.store import erasure, ledger, records
from colibri.store.erasure import Target
from colibri.store.faults import DatabaseError
from colibri.store.ledger import Chain
from colibri.store.records import Record
from colibri.store.sqlite import opening
from colibri.store.sqlite.checkpoint import rewrite
from colibri.store.sqlite.connection import BUSY_TIMEOUT_MS
from colibri.store.sqlite.identity import Opened, check_same_file, check_same_place
from colibri.store.sqlite.opening import open_writer
from colibri.store.sqlite.watch import Change
from colibri.tools.text import PROSE

HELP = "remove a text from the ledger for good"

DESCRIPTION = """\
Remove text from the database for good: of thoughts, task titles and descriptions, session intents
and call arguments.

A text and the call that brought it are erased together, whichever of the two you name, and so are
records that repeat a task's text. All of them are listed before anything is erased.

Only the payload is removed. The records, hashes, seals and proofs stay valid, an erasure record
says what was erased, when, by whom and why, and every verifier reports it. It cannot be undone.
"""

EPILOG = """\
examples:
  colibri erase 17 --reason "a password had slipped in"
  colibri erase R-17 R-21 --reason "asked by the customer" --yes
  colibri erase --finish

Servers may keep running. Rewriting the file blocks them for about a second per 50 MB. If one of
them is reading at that moment, old pages stay in the write-ahead log: the command says so, and
--finish tries again. Backups, exported bundles and the client's logs are not touched.

--json prints erased [{seq, kind, why}], erasure {seq, leaf} (the erasure record; if more than
1,000 records are erased, the last of several; null if nothing was), gone (nothing is left in the
files) and backups (files not looked at).

Exit codes: 0 gone, 1 refused or not confirmed, 73 configuration, 75 resource, or not gone yet.
"""

MAX_REASON = 2000
SHOWN, LONGEST = 20, 2_000  # records whose text is shown before it is erased; its characters
PATIENCE_MS = BUSY_TIMEOUT_MS


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "seqs", metavar="SEQ", nargs="*", type=lookup.seq, help="a record, such as 17 or R-17"
    )
    parser.add_argument("--reason", metavar="TEXT", type=_reason, help="why; this is recorded")
    parser.add_argument(
        "--finish", action="store_true", help="only remove what is left of erased texts"
    )
    parser.add_argument("--yes", action="store_true", help="do not ask")
    project.options(parser, "describe what was erased as JSON")


def _reason(text: str) -> str:
    problem = PROSE.breach(text) or ("" if text.strip() else "is blank")
    if len(text) > MAX_REASON:
        problem = f"is longer than {MAX_REASON} characters"
    if problem:
        raise argparse.ArgumentTypeError(f"the reason {problem}")
    return redaction.scrub(text)


def run(options: argparse.Namespace) -> int:
    if options.finish == bool(options.seqs):
        raise Misuse("name at least one record, or give --finish alone")
    if options.seqs and options.reason is None:
        raise Misuse("a reason is missing: --reason TEXT")
    config = load(options.project)
    if config.mode in (Mode.READONLY, Mode.MINIMAL):
        raise ConfigError([f"COLIBRI_MODE is {config.mode}, which changes nothing: unset it"])
    try:
        return _run(options, config)
    except (DatabaseError, Damaged) as problem:
        hint = "try again: anything already erased is reported"
        raise ResourceError(f"the erasure failed: {problem}", hint) from problem


def _run(options: argparse.Namespace, config: Config) -> int:
    with project.reading(options) as (_, reader):  # it is there, and current
        targets = erasure.plan(reader, options.seqs)
        texts = [(target, records.get(reader, target.seq)) for target in targets[:SHOWN]]
    if targets and not options.json:
        rows = [(str(seq), kind, why) for seq, kind, why in targets]
        terminal.table(["SEQ", "KIND", "WHY"], rows)
    if targets and not options.yes:
        _confirm(options, texts)
    with _writing(config) as opened:
        made = _erase(opened, config, options, targets) if targets else []
        left = _finish(opened)
    _report(options, config, targets, made, gone=not left)
    if left:
        finish = f"colibri erase --finish{project.again(options)}"
        raise ResourceError(
            f"old pages are left in {config.db_path} or its write-ahead log: {left}",
            f"close the clients of this project, then {finish}",
        )
    return 0


def _confirm(options: argparse.Namespace, texts: list[tuple[Target, Record | None]]) -> None:
    if options.json or not sys.stdin.isatty():
        raise Complaint("nothing was erased: this cannot be undone; confirm with --yes")
    for target, record in texts:
        terminal.line(f"{target.seq}  {target.kind}")
        terminal.paragraph(_text(record.payload if record else None), indent=4)
    print("erase these payloads for good? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Complaint("nothing was erased")


def _text(payload: dict[str, Any] | None) -> str:
    """What a person would recognise: the text of a thought or an intent, else the whole payload."""
    kept = payload or {}
    text = str(kept.get("content") or kept.get("intent") or "")
    text = text or json.dumps(kept.get("arguments", kept), ensure_ascii=False)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text):,} characters)"


@contextmanager
def _writing(config: Config) -> Iterator[Opened]:
    """The database as a server opens it, with the same lock."""
    opened = open_writer(
        config.db_path,
        lock_timeout=config.startup_timeout_ms / 1000,
        monotonic=time.monotonic,
        sleep=time.sleep,
        stamp=times.stamp(),
        new_log=_ids(config).log,
    )
    try:
        yield opened
    finally:
        opening.close(opened)


def _erase(
    opened: Opened, config: Config, options: argparse.Namespace, shown: list[Target]
) -> list[Entry]:
    """In one synced transaction: erase everything that was shown and record it, or nothing."""
    ids = _ids(config)
    with Change(opened.db, opened.watch, durable=True):
        if erasure.plan(opened.db, options.seqs) != shown:
            message = (
                "nothing was erased: a new record repeats one of the texts; run the command again"
            )
            raise Complaint(message)
        payloads = erasure.erase(opened.db, shown, reason=options.reason)
        chain = Chain(opened.db, ledger.log_id(opened.db), ids.nonce)
        said = {
            "at": times.recorded(times.now()),
            "call": ids.uuid("erasure", chain.mark().seq + 1),
            "agent": _actor(),
        }
        made = [chain.append("erasure", payload, **said) for payload in payloads]
        check_same_file(opened)
    return made


def _finish(opened: Opened) -> str:
    """Why old pages are left, or nothing."""
    check_same_place(opened)
    try:
        emptied = rewrite(opened.db, PATIENCE_MS)
    except DatabaseError as problem:  # another writer holds on, or the disk has no room for a copy
        return str(problem)
    return "" if emptied else "another program is still reading the write-ahead log"


def _report(
    options: argparse.Namespace,
    config: Config,
    targets: list[Target],
    made: list[Entry],
    *,
    gone: bool,
) -> None:
    beside = glob.escape(config.db_path)
    backups = sorted(glob.glob(f"{beside}.backup-*") + glob.glob(f"{beside}.before-restore-*"))
    if options.json:
        terminal.emit(
            {
                "erased": [target._asdict() for target in targets],
                "erasure": words.head_json(made[-1] if made else None),
                "gone": gone,
                "backups": backups,
            }
        )
        return
    if made:
        payloads = terminal.count(len(targets), "payload")
        which = f"record {made[0].seq} documents it"
        if made[1:]:
            which = f"records {made[0].seq} to {made[-1].seq} document it"
        terminal.line((f"erased {payloads}; {which}", "good"), hang=2)
    if gone:
        text = f"no trace is left in {config.db_path} and its write-ahead log"
        terminal.line(text, hang=2)
    terminal.line(
        "not touched: backups, exported bundles, the client's logs, free space on the disk", hang=2
    )
    for backup in backups:
        terminal.line(f"not touched: {backup}", hang=2, whole=True)


def _ids(config: Config) -> Ids:
    return Ids(config.seed if config.mode == Mode.TEST else None)


def _actor() -> str:
    """Who is at the keyboard, as far as the system knows: the header's agent."""
    try:
        return f"user:{pwd.getpwuid(os.getuid()).pw_name}"
    except KeyError:
        return f"user:{os.getuid()}"
