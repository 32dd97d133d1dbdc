"""What is found of a log in git: a checkpoint, or where one should be that cannot be read."""

import hashlib
from datetime import UTC, datetime
from typing import NamedTuple

from colibri.core.checkpoint import Checkpoint
from colibri.core.witness import Acceptance, Kind, Proof, Signature, Witness

SHORT = 10  # digits of a commit


class Found(NamedTuple):
    """`problem` says why there is no checkpoint, or what is wrong with one that was read."""

    kind: Kind
    commit: str  # "" if all of `ref`, or of a kind, cannot be read
    ref: str  # "" of a trailer: commits are on any number of branches
    at: str
    checkpoint: Checkpoint | None
    remote: str | None = None
    text: str = ""
    signature: str = ""  # the id of its blob
    problem: str = ""
    accepted: Acceptance | None = None  # of the checkpoint before it
    all_accepted: str = ""  # the id of the blob with all of them
    formerly: str = ""  # why a remote that had it is not known to have it now
    proof: Proof | None = None  # that it extends another checkpoint

    @property
    def where(self) -> str:
        if not self.commit:
            return self.ref
        what = {"trailer": "the message of commit", "note": "a note on commit"}
        return f"{what.get(self.kind, 'commit')} {self.commit[:SHORT]}"

    def witness(self, log: str, signature: Signature | None = None) -> Witness:
        """The same as verifications take it; `log` is the one that was looked for."""
        signed = signature if self.signature else None
        about = (self.kind, self.where, self.at or None, self.remote, signed)
        was = self.formerly or None
        if self.checkpoint is None:
            id = hashlib.sha256(f"{self.kind} {self.commit}".encode()).digest()
            object = id if self.commit else None
            return Witness(
                log, 0, None, None, *about, object=object, problem=self.problem, formerly=was
            )
        log, size, root = self.checkpoint
        return Witness(log, size, None, root, *about, formerly=was, proof=self.proof)


def unread(kind: Kind, where: str, problem: object) -> Found:
    """A place of which nothing, or not everything, could be read."""
    return Found(kind, "", where, "", None, problem=str(problem))


def moment(seconds: int) -> str:
    """A commit's time, as records have theirs; "" if it has none."""
    try:
        return (
            datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if seconds else ""
        )
    except (ValueError, OverflowError, OSError):
        return ""
