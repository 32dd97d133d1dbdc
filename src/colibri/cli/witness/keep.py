"""Keeps the ledger's checkpoint in git, and at a remote."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import NamedTuple

from colibri.cli import git, remotes
from colibri.cli.complaint import Complaint
from colibri.cli.git import GitError, Repository
from colibri.cli.remotes import Remote
from colibri.cli.witness import accepted, chain, seen, signatures
from colibri.cli.witness.chain import Entry, Place
from colibri.cli.witness.found import SHORT
from colibri.cli.witness.seen import Lost
from colibri.config import Config
from colibri.core import checkpoint as checkpoints
from colibri.core.checkpoint import Checkpoint
from colibri.core.witness import Judged, Witness, Witnesses
from colibri.store import heads, ledger, log_tree, witnessed
from colibri.store.connection import Connection

TRIES = 8  # others may add to the chain at the same time
COMPARED = 200  # commits of a chain that a divergence is looked for in

Reading = Callable[[], AbstractContextManager[tuple[Config, Connection]]]


class Kept(NamedTuple):
    """The newest commit of the chain; `new` if it was made just now, and what a remote had lost."""

    commit: str
    checkpoint: Checkpoint
    new: bool
    lost: tuple[Lost, ...] = ()


def keep(
    repository: Repository, branch: str | None, key: str | None, reading: Reading
) -> tuple[Place, Kept]:
    """Add the ledger's checkpoint to its chain, unless the newest commit has it."""
    for _ in range(TRIES):
        with reading() as (_, db):
            where = chain.place(ledger.log_id(db), branch)
        # The chain first, then the ledger: what is in the chain was in the ledger before.
        parent = chain.tip(repository, where.ref)
        before = chain.newest(repository, parent, where.folder) if parent else None
        with reading() as (config, db):
            now = log_tree.checkpoint(db)
            known = accepted.in_commit(repository, now.log, before)
            kept = heads.of(db, config.ledger_name, config.state)
            kept = kept._replace(accepted=(*kept.accepted, *known), found=())
            told = accepted.text(now.log, witnessed.accepted(db, kept))
            is_told = before and before.checkpoint == now and told == accepted.text(now.log, known)
            if before and is_told and (before.signature or not key):
                return where, Kept(before.commit, now, False)
            history = _History(repository, where.folder, db, kept)
            files = _files(history, before, now) | ({"accepted": told} if told else {})
        if key:
            text = checkpoints.text(now)
            files["checkpoint_sig"] = signatures.sign(text, key, repository.work_tree)
        made = chain.commit(repository, where, parent, now, **files)
        if chain.advance(repository, where.ref, made, parent):
            return where, Kept(made, now, True)
    raise Complaint(f"others keep adding to {where.ref}", "try again")


class _History(NamedTuple):
    """A chain, and what it is compared with."""

    repository: Repository
    folder: str
    db: Connection
    kept: Witnesses

    def judge(self, entry: Entry) -> Judged:
        """What the ledger, and whoever accepted that it differs, make of a commit of the chain."""
        found = witnessed.judge(self.db, self.kept._replace(found=(_witness(entry),)))
        if found[0].result != "diverged":
            return found[0]
        # It may go on from one that was accepted: a copy of the ledger keeps pushing.
        every = self.until(entry)
        pairs = zip(every, [*every[1:], None], strict=True)
        said = [told for one, before in pairs if (told := accepted.of_commit(one, before))]
        kept = self.kept._replace(accepted=(*self.kept.accepted, *said))
        some = tuple(_witness(one) for one in every if one.checkpoint)
        return witnessed.judge(self.db, kept._replace(found=some))[0]

    def own(self, entry: Entry) -> Checkpoint | None:
        """The newest checkpoint up to a commit that the ledger extends."""
        known = (one.checkpoint for one in self.until(entry) if _extends(self.db, one.checkpoint))
        return next(known, None)

    def until(self, entry: Entry) -> list[Entry]:
        """A commit and those before it, as many as are compared."""
        page = next(chain.commits(self.repository, entry.commit))[:COMPARED]
        return [one for one in chain.entries(self.repository, page, self.folder) if one]


def _witness(entry: Entry) -> Witness:
    assert entry.checkpoint is not None
    log, size, root = entry.checkpoint
    proof = chain.proved(entry.consistency)
    return Witness(log, size, None, root, "ref", f"commit {entry.commit[:SHORT]}", proof=proof)


def _files(history: _History, before: Entry | None, now: Checkpoint) -> dict[str, str]:
    """The proof that the ledger extends the checkpoint before, or why it need not."""
    if now.size == 0:
        hint = "a witness needs a record: use Colibri from your MCP client, or colibri note TEXT"
        raise Complaint("nothing was recorded yet", hint)
    if before is None:
        return {"consistency": ""}
    old, commit = before.checkpoint, before.commit[:SHORT]
    if old is None or old.log != now.log:
        problem = before.problem or f"its checkpoint is of another log, {old and old.log}"
        hint = "colibri witness list shows the chain; put its ref back to the last good commit"
        raise Complaint(f"commit {commit} does not belong to this chain: {problem}", hint)
    if _extends(history.db, old):
        return {"consistency": _proof(history.db, old, now)}
    judged = history.judge(before)
    if judged.accepted is None:
        raise Complaint(
            f"the ledger does not extend the checkpoint of record {old.size:,} that commit"
            f" {commit} keeps: {judged.detail}",
            "colibri verify shows more; if you know why, colibri heads accept --why TEXT",
        )
    own = history.own(before)
    proof = "" if own is None else _proof(history.db, own, now)
    return {"consistency": proof, "diverged": f"{judged.accepted.why}\n"}


def _proof(db: Connection, old: Checkpoint, now: Checkpoint) -> str:
    return chain.proof(old.size, log_tree.consistency(db, old.size, now.size))


# At a remote.


def push(
    repository: Repository,
    where: Place,
    remote: Remote,
    kept: Kept,
    *,
    reading: Reading,
    again: Callable[[], Kept],
) -> Kept:
    """Push the chain and read it back; `again` adds to it once more, after it was moved."""
    lost: list[Lost] = []
    for _ in range(TRIES):
        try:
            before = remotes.push(repository, remote, kept.commit, where.ref)
            lost += _read_back(repository, where, remote, kept, before)
            return kept._replace(lost=tuple({one.commit: one for one in lost}.values()))
        except remotes.Refused as refused:
            if not refused.behind:
                raise Complaint(
                    f"{remote} refused the checkpoint: {refused}",
                    "it is committed here; if the host takes only branches, add --branch NAME",
                ) from None
        lost += _take_over(repository, where, remote, kept.commit, reading)
        kept = again()
    raise Complaint(f"others keep pushing to {where.ref} at {remote}", "try again")


def _read_back(
    repository: Repository, where: Place, remote: Remote, kept: Kept, before: str | None
) -> list[Lost]:
    there = remotes.listed(repository, remote, where.ref)
    if there != kept.commit:
        raise Complaint(
            f"{remote} took the push, but {where.ref} is {there or 'not'} there now",
            "others may have pushed at the same time: try again",
        )
    return seen.pushed(repository, where, remote, kept.commit, before)


def _take_over(
    repository: Repository, where: Place, remote: Remote, ours: str, reading: Reading
) -> list[Lost]:
    """Continue from what the remote has, if the ledger extends that, or a person accepted that it
    does not, and nothing else is lost.

    Checkpoints that were only here are left out then: the next one proves as much. What the remote
    has lost is returned, and kept.
    """
    theirs, lost = seen.fetch(repository, where, remote)
    if theirs is None:  # somebody deleted it a moment ago
        return lost
    there = chain.newest(repository, theirs, where.folder)
    with reading() as (config, db):
        kept = heads.of(db, config.ledger_name, config.state)
        fits = there is None or _fits(_History(repository, where.folder, db, kept), there)
    if not fits or (where.folder and not _only_ours(repository, where.folder, ours, theirs)):
        raise Complaint(
            f"the chain at {remote} has diverged: {where.ref} is {theirs[:10]} there, which"
            f" {'has other work than the branch here' if fits else 'this ledger does not extend'}",
            "nothing was overwritten; colibri verify compares both chains with the ledger, and if"
            " you know why they differ, colibri heads accept --why TEXT",
        )
    chain.advance(repository, where.ref, theirs, ours)
    return lost


def _fits(history: _History, there: Entry) -> bool:
    if there.checkpoint is None or there.checkpoint.log != ledger.log_id(history.db):
        return False
    return history.judge(there).result in ("held", "accepted")


def _extends(db: Connection, old: Checkpoint | None) -> bool:
    """Whether the ledger begins with the records of a checkpoint."""
    if old is None or old.log != ledger.log_id(db) or old.size > ledger.last_seq(db):
        return False
    return log_tree.checkpoint(db, old.size) == old


def _only_ours(repository: Repository, folder: str, ours: str, theirs: str) -> bool:
    """Whether a branch has nothing here that is not there, but for this log's folder."""
    try:
        base = git.run(repository, "merge-base", ours, theirs).decode().strip()
        changed = git.run(repository, "diff", "--name-only", "-z", base, ours)
    except GitError:
        # Both made the branch, each without the other: all of it is only here.
        changed = git.run(repository, "ls-tree", "-r", "--name-only", "-z", ours)
    return all(path.startswith(folder.encode()) for path in changed.split(b"\0")[:-1])
