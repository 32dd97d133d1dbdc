"""Every witness of a log that this machine has; the one place where they are joined."""

from colibri.cli import program, terminal
from colibri.cli.show import times
from colibri.cli.witness import collect
from colibri.config import Config, state_of_user
from colibri.core.witness import Witness, Witnesses
from colibri.store import heads, ledger
from colibri.store.connection import Connection


def known(config: Config, db: Connection) -> Witnesses:
    """Those of the project's log: what the user's state directory and the repository have."""
    kept = heads.of(db, config.ledger_name, config.state, others=True)
    in_git = collect.collect(config.project, ledger.log_id(db))
    return kept._replace(
        found=(*kept.found, *in_git.witnesses),
        accepted=(*kept.accepted, *in_git.accepted),
        problems=(*kept.problems, *in_git.problems),
    )


def of_copy(db: Connection) -> Witnesses:
    """Those of a copy of a database, which ends where it was made and is not at its place."""
    log, last = ledger.log_id(db), ledger.last_seq(db)
    kept = heads.read(state_of_user(), log, None)
    return kept._replace(found=tuple(one for one in kept.found if one.size <= last))


def newest(config: Config, db: Connection) -> Witness | None:
    """The one of the largest size, as it says itself; in git only the ends of chains are read."""
    log = ledger.log_id(db)
    kept = [one for one in heads.of(db, config.ledger_name, config.state).found if one.log == log]
    if (in_git := collect.newest(config.project, log)) is not None:
        kept.append(in_git)
    return max(kept, key=lambda one: (one.size, one.remote is not None), default=None)


def told(witness: Witness | None, records: int) -> str:
    """How far a log is witnessed, by what and since when."""
    if witness is None:
        return program.typed("none: colibri witness --push keeps one at a git remote")
    remote = f", kept at {witness.remote}" if witness.remote else ""
    when = f", {times.with_age(witness.at)}" if witness.at else ""
    newer = records - witness.size
    rest = f"; {terminal.count(newer, 'record')} newer" if newer > 0 else ""
    if newer < 0:
        rest = f"; the log ends at record {records:,} now, colibri verify says more"
    return f"record {witness.size:,} by {witness.where}{remote}{when}{rest}"
