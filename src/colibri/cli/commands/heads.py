"""`colibri heads`: heads of the log that are kept outside of it; accepting that it differs."""

import argparse
from collections.abc import Iterable
from contextlib import closing
from typing import Any

from colibri.cli import person, project, terminal, witnesses
from colibri.cli.commands.erase import reason
from colibri.cli.complaint import Misuse
from colibri.cli.show import times, verdict
from colibri.config import Config, load
from colibri.core import witness
from colibri.core.errors import ResourceError
from colibri.core.ledger import NO_LEAF, Head
from colibri.core.modes import Mode
from colibri.core.witness import Judged, Witnesses
from colibri.store import heads, ledger, witnessed

HELP = "list heads kept outside the ledger, or accept that it differs"

DESCRIPTION = """\
A head is the number and the hash of a record. Servers keep one outside the ledger, in your state
directory, at each seal and when they end. A ledger that does not contain them was truncated,
rewritten, replaced by an older copy, or copied and continued in two places; colibri verify then
calls it diverged.

heads lists the heads and the checkpoints in git, and how the log compares with each. Use heads
accept if you know why the log differs, or why something in git that should be a checkpoint cannot
be read: it records your reason in the ledger and next to the heads. From then on verify is good
again, but repeats the reason every time. colibri restore does this by itself.
"""

EPILOG = """\
examples:
  colibri heads
  colibri heads accept --why "I copied the project to the laptop and work in both places"

The heads of a log are one file in $XDG_STATE_HOME/colibri/heads, by default
~/.local/state/colibri/heads. A server in TEST mode keeps none. After accepting a copy in another
place, later heads of that copy are accepted too.

--json prints state (the directory), witnesses (as verify --json), problems (lines or files that
were not used) and, of heads accept, accepted (how many) and thought_id.

Exit codes: 0 the log extends them, or it was accepted, 1 it does not, or one cannot be read,
2 usage, 73 configuration, 75 resource.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", metavar="accept", nargs="?", choices=["accept"])
    parser.add_argument("--why", metavar="TEXT", type=reason, help="the reason; it is recorded")
    project.options(parser)


def run(options: argparse.Namespace) -> int:
    if (options.action is None) != (options.why is None):
        raise Misuse("heads accept and --why TEXT belong together")
    config = load(options.project)
    if config.state is None:
        why = "COLIBRI_MODE is TEST" if config.mode == Mode.TEST else "HOME is not set"
        raise ResourceError(f"no heads are kept: {why}")
    kept, judged = compared(config)
    bad = unaccepted(judged)
    done: dict[str, Any] = {}
    if options.action is not None:
        done = {"accepted": len(bad), "thought_id": None}
    if bad and done:
        done["thought_id"] = _note(options, bad)
        accept(config, bad, options.why)
        kept, judged = compared(config)
    _tell(config, kept, judged, done, options)
    return 1 if _unsettled(judged) else 0


def unaccepted(judged: Iterable[Judged]) -> list[Judged]:
    """What a person may accept: the log does not extend it, or nobody can read it."""
    return [one for one in _unsettled(judged) if one.witness.hash]


def _unsettled(judged: Iterable[Judged]) -> list[Judged]:
    return [one for one in judged if one.result in ("diverged", "unread")]


def compared(config: Config) -> tuple[Witnesses, tuple[Judged, ...]]:
    """Every witness of the project's log, and what the log makes of each."""
    with closing(project.home(config).open_reader(older=True)) as reader:
        kept = witnesses.known(config, reader)
        return kept, witnessed.judge(reader, kept)


def accept(config: Config, bad: list[Judged], why: str) -> None:
    """Accept, for the log as it is now, that it does not extend these witnesses."""
    assert config.state is not None
    with closing(project.home(config).open_reader(older=True)) as reader:
        log, newest = ledger.log_id(reader), ledger.head(reader)
        reader.engine.sync(reader)
    try:
        heads.accept(
            config.state,
            log,
            [one.witness for one in bad],
            why=why,
            at=times.recorded(times.now()),
            by=newest or Head(0, NO_LEAF),
            place=heads.here(config.ledger_name),
        )
    except OSError as problem:
        raise ResourceError(f"cannot write to {config.state}: {problem.strerror}") from problem


def _note(options: argparse.Namespace, bad: list[Judged]) -> str:
    """Record in the ledger what is accepted; the id of the thought."""
    newest = max(bad, key=lambda one: one.witness.size)
    more = f", and {len(bad) - 1:,} more" if len(bad) > 1 else ""
    content = f"Accepted that {witness.describe(newest)}{more}. Reason: {options.why}"
    with person.at_work(options) as me:
        recorded = me.call("thought_record", {"type": "decision", "content": content})
    return str(recorded["thought_id"])


def _tell(
    config: Config,
    kept: Witnesses,
    judged: tuple[Judged, ...],
    done: dict[str, Any],
    options: argparse.Namespace,
) -> None:
    if options.json:
        listed = [verdict.witness(one) for one in judged]
        terminal.emit(
            {"state": config.state, "witnesses": listed, "problems": kept.problems, **done}
        )
        return
    rows = [
        (f"{one.witness.size:,}", one.witness.at or "", one.witness.where, _result(one))
        for one in judged
    ]
    if rows:
        terminal.table(["RECORD", "KEPT", "BY", "RESULT"], rows)
    else:
        terminal.say(f"no heads of this log are kept in {config.state}")
    for problem in kept.problems:
        terminal.line(problem, hang=2)
    if done:
        count = terminal.count(done["accepted"], "head")
        terminal.say(f"accepted {count}" if done["accepted"] else "nothing to accept: all hold")


def _result(one: Judged) -> str:
    detail = f": {one.detail}" if one.detail else ""
    why = f" (accepted at {one.accepted.at}: {one.accepted.why})" if one.accepted else ""
    return f"{one.result}{detail}{why}"
