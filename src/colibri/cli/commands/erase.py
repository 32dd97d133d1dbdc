"""`colibri erase`: take a text out of the ledger for good; the record that it was there stays."""

import argparse
import glob
import json
import os
import pwd
import shlex
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from colibri.cli import lookup, project, terminal
from colibri.cli.complaint import Complaint, Misuse
from colibri.cli.show import times, words
from colibri.config import Config, load
from colibri.core import redaction
from colibri.core.errors import ConfigError, Damaged, ResourceError
from colibri.core.ledger import Entry
from colibri.core.modes import Mode
from colibri.hook import spool
from colibri.server.ids import Ids
from colibri.store import erasure, ledger, records, repeats
from colibri.store.connection import Connection
from colibri.store.erasure import Target
from colibri.store.faults import Undone, errors
from colibri.store.home import Opened
from colibri.store.records import Record
from colibri.store.repeats import Place
from colibri.store.sqlite.connection import BUSY_TIMEOUT_MS
from colibri.tools.text import PROSE

HELP = "remove a text from the ledger for good"

DESCRIPTION = """\
Remove text from the database for good: of thoughts, task titles and descriptions, session intents,
call arguments, and the commands and paths that hooks reported.

A text and the call that carried it are erased together, whichever of the two you name. So are
records that repeat a task's text, and all reports of one tool call: a host reports its command when
it begins and when it ends. Before anything is erased, all of them are listed with their texts, and
so are other records that hold the same text: these stay unless you name them too. Where a host
gives its tool calls no ids (Gemini CLI, Copilot CLI), the other report of the same call is among
those that stay.

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

On PostgreSQL only the eraser's role may do this: set COLIBRI_DB_URL to it for this one command.
Nobody can read the text in the ledger afterwards, but PostgreSQL keeps it for a while in dead rows,
its write-ahead log, standbys and backups. The command says what an administrator can do about that.

--json prints erased [{seq, kind, why}], erasure {seq, leaf} (the erasure record; if more than 1,000
records are erased, the last of several; null if nothing was), gone (nothing of them is left in the
files), kept_in (where PostgreSQL keeps them for a while), repeated [{seq, kind}] (other records
that hold one of the texts; null if more than 100 texts were erased: then it does not look for them)
and backups (files that were not searched).

Exit codes: 0 gone, or erased on PostgreSQL, 1 refused or not confirmed, 73 configuration, 75
resource, or not gone yet.
"""

MAX_REASON = 2000
SHOWN, LONGEST = 20, 2_000  # records whose text is shown before it is erased; its characters
PATIENCE_MS = BUSY_TIMEOUT_MS
KEPT_IN = ("dead rows", "write-ahead log", "standbys", "backups")  # of PostgreSQL
# Where texts were; VACUUM FULL writes a table again, without its dead rows.
TABLES = ("ledger", "sessions", "tasks", "task_search", "thought_search", "thought_words")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "seqs", metavar="SEQ", nargs="*", type=lookup.seq, help="a record, such as 17 or R-17"
    )
    parser.add_argument("--reason", metavar="TEXT", type=reason, help="why; this is recorded")
    parser.add_argument(
        "--finish", action="store_true", help="only remove what is left of erased texts"
    )
    parser.add_argument("--yes", action="store_true", help="do not ask")
    project.options(parser, "describe what was erased as JSON")


def reason(text: str) -> str:
    """For argparse: a reason that can be recorded, without secrets."""
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
    if options.finish and config.db_url is not None:
        message = "--finish rewrites a file, and this ledger is on PostgreSQL"
        raise Complaint(message, f"as an administrator: {_vacuum(config)}")
    try:
        return _run(options, config)
    except errors(Damaged, Undone) as problem:
        hint = "try again: anything already erased is reported"
        raise ResourceError(f"the erasure failed: {problem}", hint) from problem


def _run(options: argparse.Namespace, config: Config) -> int:
    with project.reading(options) as (_, reader):  # it is there, and current
        _require_right(reader, config)
        targets = erasure.plan(reader, options.seqs)
        shown = [(target, records.get(reader, target.seq)) for target in targets[:SHOWN]]
        texts = repeats.texts(erasure.payloads(reader, options.seqs))
        others = _elsewhere(reader, texts, targets)
    if targets and not options.json:
        rows = [(str(seq), kind, why) for seq, kind, why in targets]
        terminal.table(["SEQ", "KIND", "WHY"], rows)
        _show(shown, len(targets))
        _show_others(others, "not erased unless you name them: ")
    if targets and not options.yes:
        _confirm(options)
    with _writing(config) as opened:
        made = _erase(opened, config, options, targets) if targets else []
        left = _finish(opened)
        others = _elsewhere(opened.db, texts, targets)
    _report(options, config, Done(targets, made, others, is_gone=left == ""))
    if left:
        finish = f"colibri erase --finish{project.again(options)}"
        raise ResourceError(
            f"old pages are left in {config.db_path} or its write-ahead log: {left}",
            f"close the clients of this project, then {finish}",
        )
    return 0


def _require_right(reader: Connection, config: Config) -> None:
    """ResourceError that names the role which may erase, if the user of the URL may not."""
    if role := reader.engine.lacks_to_erase(reader):
        assert config.db_url is not None
        scheme, _, rest = config.db_url.partition("://")
        url = f"{scheme}://{role}@{rest.rpartition('@')[2]}"
        raise ResourceError(
            f"the user of COLIBRI_DB_URL may not erase anything: that is for the role {role}",
            f"COLIBRI_DB_URL={shlex.quote(url)} for this one command; libpq finds the password as"
            " for the others",
        )


def _elsewhere(db: Connection, texts: set[str], targets: Sequence[Target]) -> list[Place] | None:
    """The other records that hold one of the texts; None if these are too many to look for."""
    if len(texts) > repeats.MAX_TEXTS:
        return None
    return repeats.elsewhere(db, texts, {target.seq for target in targets}) if texts else []


def _show_others(others: list[Place] | None, front: str = "") -> None:
    if others is None:
        text = f"more than {repeats.MAX_TEXTS} texts: whether other records repeat one is not known"
        terminal.line(text, hang=2)
    elif others:
        numbers = [str(one.seq) for one in others[:SHOWN]]
        more = [f"{len(others) - SHOWN:,} more"] if len(others) > SHOWN else []
        verb = "repeats" if len(others) == 1 else "repeat"
        text = f"{front}{terminal.count(len(others), 'other record')} {verb} one of these texts: "
        terminal.line((f"{text}{', '.join([*numbers, *more])}", "refused"), hang=2)


def _show(texts: list[tuple[Target, Record | None]], total: int) -> None:
    """The texts that go, so that nobody erases the wrong ones."""
    for target, record in texts:
        terminal.line(f"{target.seq}  {target.kind}")
        terminal.paragraph(_text(record.payload if record else None), indent=4)
    if more := total - len(texts):
        terminal.line(f"… and {terminal.count(more, 'record')} more; colibri log SEQ shows one")


def _confirm(options: argparse.Namespace) -> None:
    if options.json or not sys.stdin.isatty():
        raise Complaint("nothing was erased: this cannot be undone; confirm with --yes")
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
    """The ledger as a server opens it, with the same lock."""
    opened = project.home(config).open_writer(
        timeout=config.startup_timeout_ms / 1000,
        monotonic=time.monotonic,
        sleep=time.sleep,
        stamp=times.stamp(),
        new_log=_ids(config).log,
    )
    try:
        yield opened
    finally:
        opened.close()


def _erase(
    opened: Opened, config: Config, options: argparse.Namespace, shown: list[Target]
) -> list[Entry]:
    """In one synced transaction: erase everything that was shown and record it, or nothing."""
    ids = _ids(config)
    with opened.transaction(durable=True, answered=True):
        if erasure.plan(opened.db, options.seqs) != shown:
            message = (
                "nothing was erased: a new record repeats one of the texts; run the command again"
            )
            raise Complaint(message)
        payloads = erasure.erase(opened.db, shown, reason=options.reason)
        chain = opened.chain(ledger.log_id(opened.db), ids.nonce)
        said = {
            "at": opened.utc() or times.recorded(times.now()),
            "call": ids.uuid("erasure", chain.mark().seq + 1),
            "agent": _actor(),
        }
        made = [chain.append("erasure", payload, **said) for payload in payloads]
        opened.check()
    return made


def _finish(opened: Opened) -> str | None:
    """Why old pages are left, or nothing; None if only an administrator can remove them."""
    opened.check_again()
    try:
        emptied = opened.db.engine.rewrite(opened.db, PATIENCE_MS)
    except errors() as problem:  # another writer holds on, or the disk has no room for a copy
        return str(problem)
    if emptied is None:
        return None
    return "" if emptied else "another program is still reading the write-ahead log"


class Done(NamedTuple):
    """What was erased, the records of that, and who else holds one of the texts."""

    targets: list[Target]
    made: list[Entry]
    others: list[Place] | None
    is_gone: bool  # from the pages of the files


def _report(options: argparse.Namespace, config: Config, done: Done) -> None:
    beside = glob.escape(config.db_path)
    backups = sorted(glob.glob(f"{beside}.backup-*") + glob.glob(f"{beside}.before-restore-*"))
    if options.json:
        others = done.others
        terminal.emit(
            {
                "erased": [target._asdict() for target in done.targets],
                "erasure": words.head_json(done.made[-1] if done.made else None),
                "gone": done.is_gone,
                "kept_in": [*KEPT_IN] if config.db_url else [],
                "repeated": others if others is None else [one._asdict() for one in others],
                "backups": backups,
            }
        )
        return
    _say_what_is_left(config, done)
    terminal.line(
        "not touched: backups, exported bundles, the client's logs, free space on the disk", hang=2
    )
    for backup in backups:
        terminal.line(f"not touched: {backup}", hang=2, whole=True)
    if spool.size(config.db_path):
        what = "reports of hooks that are not recorded yet, and may hold the same text"
        terminal.line(f"not touched: {config.db_path}-spool: {what}", hang=2)


def _say_what_is_left(config: Config, done: Done) -> None:
    files = f"{config.db_path} and its write-ahead log"
    if not done.made:
        if done.is_gone:
            terminal.line(f"no old page is left in {files}", hang=2)
        return
    payloads, first = terminal.count(len(done.targets), "payload"), done.made[0].seq
    which = f"record {first} documents it"
    if done.made[1:]:
        which = f"records {first} to {done.made[-1].seq} document it"
    terminal.line((f"erased {payloads}; {which}", "good"), hang=2)
    _show_others(done.others)
    if done.is_gone:
        what = "no trace is left" if done.others == [] else "no trace of these payloads is left"
        terminal.line(f"{what} in {files}", hang=2)
    if config.db_url is not None:
        where = f"{', '.join(KEPT_IN[:-1])} and {KEPT_IN[-1]}"
        terminal.line(f"PostgreSQL keeps it for a while, in {where}", hang=2)
        terminal.line(f"an administrator can shorten that: {_vacuum(config)}", hang=2)


def _vacuum(config: Config) -> str:
    tables = ", ".join(f"{config.db_schema}.{table}" for table in TABLES)
    return (
        f"VACUUM FULL {tables}; (others wait meanwhile), CHECKPOINT, and expire the backups and the"
        " archived write-ahead log from before"
    )


def _ids(config: Config) -> Ids:
    return Ids(config.seed if config.mode == Mode.TEST else None)


def _actor() -> str:
    """Who is at the keyboard, as far as the system knows: the header's agent."""
    try:
        return f"user:{pwd.getpwuid(os.getuid()).pw_name}"
    except KeyError:
        return f"user:{os.getuid()}"
