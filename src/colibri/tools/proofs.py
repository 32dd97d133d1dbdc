"""Tools that seal a session and prove that a thought belongs to it."""

from operator import attrgetter
from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from colibri.core.modes import Capability
from colibri.store import proofs
from colibri.tools.caller import required
from colibri.tools.text import SessionId, ThoughtId
from colibri.tools.tool import Answer, Tool, Work, tool


class Finalize(Struct, forbid_unknown_fields=True):
    session_id: Annotated[SessionId, Meta(description="the session to seal")]


class Seal(Answer):
    session_id: str
    root: str
    record_count: int
    finalized_at: str


class Root(Struct, forbid_unknown_fields=True, omit_defaults=True):
    session_id: Annotated[SessionId, Meta(description="a sealed session")]
    proof_for: Annotated[ThoughtId | None, Meta(description="the thought_id to prove")] = None


class Proof(Answer):
    thought_id: str
    index: int
    size: int
    leaf: str
    path: list[str]


class Proven(Seal):
    proof: Proof | UnsetType = UNSET


@tool(
    "merkle_finalize",
    "Seal a session",
    "End a session for good: seal its thoughts under one Merkle root. Report the"
    " root, or keep it where the ledger's owner cannot change it: with it anyone can prove"
    " which thoughts it held.",
    alone=True,
)
def finalize(work: Work, args: Finalize) -> Seal:
    session = required(work, "to seal one")
    return Seal(*_seal(proofs.seal(work.db, work.record, session, now=work.now)))


@tool(
    "merkle_root",
    "Read a seal",
    "The root of a sealed session; with proof_for also the proof that a thought is in it.",
    capability=Capability.INSPECT,
    session="selected",
)
def root(work: Work, args: Root) -> Proven:
    proofs.ask(work.db, args.session_id, args.proof_for)
    session = proofs.sealed(work.db, args.session_id)
    proven = Proven(*_seal(session))
    if args.proof_for is not None:
        proven.proof = Proof(**proofs.prove(work.db, session, args.proof_for))
    return proven


_seal = attrgetter("session_id", "sized_root", "record_count", "finalized_at")


TOOLS: tuple[Tool, ...] = (finalize, root)
