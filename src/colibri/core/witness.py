"""Witnesses: what was kept of a log outside of it, and whether the log still extends that.

A witness is a head (the number and the leaf of one record) or a checkpoint (the number of records
and the root of their tree). A log that does not contain it has diverged: it was truncated,
rewritten, replaced by an older copy, or the witness was written by a copy that went on by itself.
Only a person can tell which, and accept it. An acceptance holds for logs that contain the record
after which it was given. One that is kept in git, with a checkpoint, holds for logs that contain
that checkpoint as well. It also covers later checkpoints that are proved to extend the accepted
one: they are of the copy that went on, and can say nothing about this log.

A witness that is known to exist and cannot be read may say anything, so while there is one that
nobody accepted, nobody can tell whether the log is what it was.
"""

from collections import defaultdict
from collections.abc import Sequence
from itertools import chain, groupby
from typing import Literal, NamedTuple

from colibri.core.checkpoint import Checkpoint
from colibri.core.ledger import Head
from colibri.core.merkle import GrowingTree, check_consistency

Kind = Literal["state", "ref", "branch", "trailer", "note", "given"]
NAMED = 3  # other logs, in words
What = Literal["leaf", "root", "object"]
Result = Literal["held", "diverged", "accepted", "other-log", "unread"]


class Signature(NamedTuple):
    """What a check of a witness's signature found, and whose key it was."""

    state: Literal["good", "unknown key", "bad", "other namespace", "unchecked"]
    by: str | None = None


class Place(NamedTuple):
    """Where a ledger is: two copies of one log are told apart by it."""

    path: str
    machine: str


class Proof(NamedTuple):
    """That a tree begins with an older one of `size`."""

    size: int
    path: tuple[bytes, ...]


class Witness(NamedTuple):
    """A head or a checkpoint; `where` names what keeps it, so that it reads well in a sentence."""

    log: str
    size: int  # of a head, its seq
    leaf: bytes | None
    root: bytes | None
    kind: Kind
    where: str
    at: str | None = None
    remote: str | None = None  # where else it is known to be kept
    signature: Signature | None = None
    place: Place | None = None  # of the ledger that it was taken from
    object: bytes | None = None  # of one that cannot be read: what it can be accepted by
    problem: str = ""  # and why it cannot be read
    formerly: str | None = None  # why a remote that had it is not known to have it now
    proof: Proof | None = None  # that it extends another checkpoint

    @property
    def hash(self) -> bytes:
        """The leaf or the root, or what else it is known by."""
        return self.leaf or self.root or self.object or b""

    @property
    def what(self) -> What:
        """What the hash is."""
        return "leaf" if self.leaf else "root" if self.root else "object"


class Acceptance(NamedTuple):
    """A person knows that the log does not extend a witness, and why."""

    size: int
    hash: bytes
    place: Place | None  # of the witness
    why: str
    at: str
    by: Head  # the log's newest record at that time; 0 if there was none
    by_place: Place | None  # None if it was kept in git
    what: What = "leaf"  # what the hash is
    by_root: Checkpoint | None = None  # kept in git: of the commit, and the log must have it too
    where: str = ""  # that commit


class Witnesses(NamedTuple):
    """All that is known of a log from outside, and the place where that log is now."""

    found: tuple[Witness, ...] = ()
    accepted: tuple[Acceptance, ...] = ()
    place: Place | None = None
    problems: tuple[str, ...] = ()  # what could not be read, and why


class Judged(NamedTuple):
    """A witness and what a log makes of it."""

    witness: Witness
    result: Result
    detail: str = ""
    accepted: Acceptance | None = None


NOTHING = Witnesses()


class Comparison:
    """What a log has in the places that its witnesses name, and so what it makes of each.

    Either it takes every leaf of the log, or its user fills `leaves` for `seqs` and `roots` for
    `sizes`, as far as the log reaches.
    """

    def __init__(self, log: str, witnesses: Witnesses) -> None:
        self._log, self._witnesses = log, witnesses
        own = [one for one in witnesses.found if one.log == log]
        heads = {one.size for one in own if one.leaf} | {one.by.seq for one in witnesses.accepted}
        self.seqs = sorted(heads - {0})
        roots = {one.by_root.size for one in witnesses.accepted if one.by_root}
        self.sizes = sorted({one.size for one in own if one.root} | roots)
        self.leaves: dict[int, bytes] = {}
        self.roots: dict[int, bytes] = {}
        self._accepted_by_hash = defaultdict[tuple[int, bytes], list[Acceptance]](list)
        self._accepted_by_place = defaultdict[Place | None, list[Acceptance]](list)
        self._accepted_roots = defaultdict[int, set[bytes]](set)
        for one in witnesses.accepted:
            self._accepted_by_hash[one.size, one.hash].append(one)
            self._accepted_by_place[one.place].append(one)
            if one.what == "root":
                self._accepted_roots[one.size].add(one.hash)
        self._next_seqs, self._next_sizes = self.seqs[::-1], self.sizes[::-1]
        self._tree = GrowingTree()

    def take(self, first: int, leaves: Sequence[bytes]) -> None:
        """The next leaves, from the record `first`; a tree is made only as far as it is needed."""
        end = first + len(leaves)
        while self._next_seqs and self._next_seqs[-1] < end:
            seq = self._next_seqs.pop()
            self.leaves[seq] = leaves[seq - first]
        while self._next_sizes:
            missing = self._next_sizes[-1] - self._tree.size
            self._tree.extend(leaves[:missing])
            leaves = leaves[missing:]
            if self._tree.size < self._next_sizes[-1]:
                break
            self.roots[self._next_sizes.pop()] = self._tree.root()

    def judge(self, last: int) -> tuple[Judged, ...]:
        """Each witness, in the order given; last is the log's newest record."""
        found = self._witnesses.found
        # The smaller first: a proof leads from what was accepted to what is larger.
        order = sorted(range(len(found)), key=lambda n: found[n].size)
        judged = {n: self._judge(found[n], last) for n in order}
        return tuple(judged[n] for n in range(len(found)))

    def accepted(self) -> list[Acceptance]:
        """Those that hold for this log."""
        return [one for one in self._witnesses.accepted if self._is_ours(one)]

    def _judge(self, one: Witness, last: int) -> Judged:
        if one.log != self._log:
            result: Result = "diverged" if one.kind == "given" else "other-log"
            return Judged(one, result, f"that is a record of another log, {one.log}")
        if one.problem:
            accepted = self._accepted(one)
            return Judged(one, "accepted" if accepted else "unread", one.problem, accepted)
        if one.size > last:
            detail = f"the log ends at record {last:,}"
        elif one.hash == (self.leaves if one.leaf else self.roots).get(one.size):
            return Judged(one, "held")
        elif one.leaf:
            detail = "the log has another record there"
        else:
            detail = "the log has other records up to there"
        if one.place and self._witnesses.place not in (None, one.place):
            detail += f": a copy at {one.place.path} on {one.place.machine} wrote it"
        accepted = self._accepted(one)
        return Judged(one, "accepted" if accepted else "diverged", detail, accepted)

    def _accepted(self, one: Witness) -> Acceptance | None:
        """What this log's owner said about it: about that witness, or all of a copy elsewhere."""
        same = self._accepted_by_hash.get((one.size, one.hash), [])
        is_copy = one.place is not None and one.place != self._witnesses.place
        copy = self._accepted_by_place.get(one.place, []) if is_copy else []
        elsewhere = (by for by in copy if by.by_place != one.place)
        known = (by for by in chain(same, elsewhere) if self._is_ours(by))
        return next(known, None) or self._accepted_before(one)

    def _accepted_before(self, one: Witness) -> Acceptance | None:
        """The acceptance of the checkpoint that this one is proved to extend."""
        if one.root is None or one.proof is None:
            return None
        size, path = one.proof
        for root in self._accepted_roots.get(size, ()):
            ours = (by for by in self._accepted_by_hash[size, root] if self._is_ours(by))
            if (by := next(ours, None)) and check_consistency(
                old_size=size, old_root=root, size=one.size, root=one.root, path=path
            ):
                self._accepted_by_hash[one.size, one.root].append(by)
                self._accepted_roots[one.size].add(one.root)
                return by
        return None

    def _is_ours(self, acceptance: Acceptance) -> bool:
        """Whether it was given for this log, and not for another copy of it."""
        (seq, leaf), root = acceptance.by, acceptance.by_root
        if root is not None and root != (self._log, root.size, self.roots.get(root.size)):
            return False
        return not seq or self.leaves.get(seq) == leaf


def held_to(judged: Sequence[Judged]) -> int | None:
    """The largest size that a witness holds."""
    return max((one.witness.size for one in judged if one.result == "held"), default=None)


def is_held(judged: Sequence[Judged]) -> Literal["yes", "no", "none", "not checked"]:
    """The line `witnessed` of a verdict."""
    results = {one.result for one in judged}
    if "diverged" in results:
        return "no"
    return "not checked" if "unread" in results else "yes" if "held" in results else "none"


def held(judged: Sequence[Judged], newer: int) -> str:
    """How far a log is held and by what, in words; "" if nothing holds it."""
    size = held_to(judged)
    if size is None:
        return ""
    more = "1 record is" if newer == 1 else f"{newer:,} records are"
    rest = f"; {more} newer than any witness" if newer else ""
    return f"held to record {size:,} by {_holder(judged)}{rest}"


def remarks(judged: Sequence[Judged]) -> list[str]:
    """What witnesses say that a person accepted, and those of other logs."""
    found, told, in_git = [], [], []
    for one in judged:
        if one.result == "other-log" and one.witness.kind != "state":
            in_git.append(one.witness)
        elif one.result in ("accepted", "other-log"):
            told.append(one)
    for (what, *_), same in groupby(sorted(told, key=_likeness), key=_likeness):
        group = [*same]
        more = f", and {len(group) - 1:,} more" if len(group) > 1 else ""
        found.append(f"{what}: {describe(max(group, key=_size))}{more}")
    found += _no_longer_kept([one.witness for one in judged if one.witness.formerly])
    return [*found, _other_logs(in_git)] if in_git else found


def _no_longer_kept(some: Sequence[Witness]) -> list[str]:
    """The newest witness of each remote that had it and is not known to have it now."""
    newest = {one.formerly: one for one in sorted(some, key=lambda one: one.size)}
    return [f"{one.where}, record {one.size:,}: {why}" for why, one in newest.items()]


def _other_logs(kept: Sequence[Witness]) -> str:
    """Logs that git holds checkpoints of: the ledger before this one, or those of other clones."""
    largest = {one.log: one for one in sorted(kept, key=lambda one: one.size)}
    newest = [*largest.values()][::-1]
    named = [
        f"{one.log} to record {one.size:,} by {one.where}"
        + (f", kept at {one.remote}" if one.remote else "")
        for one in newest[:NAMED]
    ]
    more = [f"{len(newest) - NAMED:,} more"] if len(newest) > NAMED else []
    return f"other logs are witnessed in this repository: {'; '.join([*named, *more])}"


def _holder(judged: Sequence[Judged]) -> str:
    """What holds the most records, in words; one that is kept elsewhere before one that is not."""
    held = [one.witness for one in judged if one.result == "held"]
    best = max(held, key=lambda one: (one.size, one.remote is not None, one.kind != "state"))
    remote = f", kept at {best.remote}" if best.remote else ""
    return f"{best.where}{remote}{_signed(best.signature)}"


def _signed(signature: Signature | None) -> str:
    if signature is None:
        return ""
    whose = f" of {signature.by}" if signature.by else ""
    return f", {signature.state} signature{whose}"


def describe(one: Judged) -> str:
    """What a witness says that the log does not extend."""
    kept, what = one.witness, "record" if one.witness.leaf else "the records up to"
    if kept.problem:
        return f"{kept.where} cannot be read: {kept.problem}"
    when = f" of {kept.at}" if kept.at else ""
    return f"{kept.where} has {what} {kept.size:,}{when}, but {one.detail}"


def _likeness(one: Judged) -> tuple[str, ...]:
    if one.accepted is not None:
        where = f" in {one.accepted.where}" if one.accepted.where else ""
        why = f"accepted at {one.accepted.at}{where} ({one.accepted.why})"
        return why, one.witness.where, one.detail
    return "another log", one.witness.where, one.detail


def _size(one: Judged) -> int:
    return one.witness.size
