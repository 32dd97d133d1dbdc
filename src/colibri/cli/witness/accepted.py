"""What a person accepted, as the chain of checkpoints keeps it, so that every clone knows it.

Whoever can write the ledger and the chain can write this too. It counts only for a log that has the
record after which it was given and the checkpoint of the commit that it is in.
"""

from collections.abc import Iterable, Iterator

from colibri.cli import objects
from colibri.cli.git import Repository
from colibri.cli.witness.chain import Entry
from colibri.cli.witness.found import SHORT, Found, moment
from colibri.core.ledger import NO_LEAF, Head
from colibri.core.witness import Acceptance, Witness
from colibri.store import head_lines

MAX_BYTES = 1 << 20  # of the file
MAX_FILES = 20  # that are read, those of the newest checkpoints
MAX_REASON = 2000  # characters


def of_commit(entry: Entry, before: Entry | None) -> Acceptance | None:
    """What the file `diverged` of a commit says about the checkpoint of the commit before."""
    if not entry.diverged or not entry.checkpoint or not before or not before.checkpoint:
        return None
    _, size, root = before.checkpoint
    why, at = entry.diverged.strip()[:MAX_REASON], moment(entry.at)
    by, where = Head(0, NO_LEAF), _where(entry.commit)
    return Acceptance(size, root, None, why, at, by, None, "root", entry.checkpoint, where)


def read(repository: Repository, log: str, found: Iterable[Found]) -> list[Acceptance]:
    """What the files `accepted` of some commits say, which come the newest first."""
    commits: dict[str, list[Found]] = {}
    for one in found:
        if one.all_accepted and one.checkpoint:
            commits.setdefault(one.all_accepted, []).append(one)
    facts = objects.facts(repository, [*commits][:MAX_FILES])
    small = [fact for fact in facts if fact and fact.size <= MAX_BYTES]
    return [
        one
        for id, text in objects.read(repository, small)
        for commit in dict.fromkeys((commits[id][0], commits[id][-1]))
        for one in _parsed(text, log, commit)
    ]


def in_commit(repository: Repository, log: str, entry: Entry | None) -> list[Acceptance]:
    """The same of one commit."""
    if entry is None or not entry.accepted:
        return []
    commit = Found("ref", entry.commit, "", "", entry.checkpoint, all_accepted=entry.accepted)
    return read(repository, log, [commit])


def _parsed(text: bytes, log: str, commit: Found) -> Iterator[Acceptance]:
    """Those that can be read; others accept nothing."""
    for line in text.split(b"\n"):
        try:
            said = head_lines.parse_in_git(line)
        except ValueError:
            continue
        if said.log != log or isinstance(said.said, Witness):
            continue
        for one in said.said:
            if one.by.seq:
                yield one._replace(by_root=commit.checkpoint, where=_where(commit.commit))


def _where(commit: str) -> str:
    return f"commit {commit[:SHORT]}"


def text(log: str, accepted: Iterable[Acceptance]) -> str:
    """The file, about what git can hold: checkpoints, and what cannot be read."""
    bare = {
        one._replace(place=None, by_place=None, by_root=None, where="")
        for one in accepted
        if one.what != "leaf" and one.by.seq
    }
    lines: list[str] = []
    total = 0
    for line in head_lines.of_acceptances(log, bare):
        total += len(line)
        if total > MAX_BYTES:
            break
        lines.append(line)
    return "".join(lines)
