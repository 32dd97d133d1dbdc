"""Payloads, typed: one struct a kind, with its members in canonical order.

`read` decodes payloads strictly, encodes them again and wants the same bytes: that is the canonical
form of docs/formats.md §1 and the table of its §3. What types cannot say (two members that must
agree, an order within a list) is in `fits`. A new kind or member is added here and nowhere else.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, ValidationError
from msgspec.json import Decoder, Encoder
from msgspec.structs import astuple

from colibri.core.canonical import MAX_DEPTH, MAX_INTEGER
from colibri.core.check.rows import Columns, are_hashes, are_uuids
from colibri.core.ledger import TEXTS

Natural = Annotated[int, Meta(ge=0, le=MAX_INTEGER)]
Seq = Annotated[int, Meta(ge=1, le=MAX_INTEGER)]
Ids = Annotated[list[str], Meta(max_length=100)]
Status = Literal["INIT", "GATHER", "ANALYZE", "PLAN", "APPLY", "VERIFY", "DONE", "CANCELLED"]
Priority = Literal["low", "medium", "high", "critical"]

# Arguments as our own tools take them. Others may nest deeper, and are looked through.
_Plain = str | Annotated[int, Meta(ge=-MAX_INTEGER, le=MAX_INTEGER)] | bool | None
_Arguments = dict[str, _Plain | list[str] | dict[str, _Plain]]


class Payload(Struct, forbid_unknown_fields=True, gc=False):
    """What a record says."""

    def fits(self, seq: int, session: str | None, task: str | None) -> bool:
        """Whether its members agree with each other and with the header."""
        return True


class Enter(Payload):
    arguments: _Arguments | None
    server: str
    sha256: str | None
    size: Natural | None
    tool: str


class AnyEnter(Enter):
    arguments: dict[str, Any] | None


class Exit(Payload):
    code: str | None
    duration_ms: Natural
    enter: Seq
    outcome: Literal["ok", "refused", "invalid", "error", "cancelled"]
    result_sha256: str | None
    tool: str


class SessionOpen(Payload):
    intent: str
    session_id: str
    task_id: str | None

    def fits(self, seq: int, session: str | None, task: str | None) -> bool:
        return self.session_id == session and self.task_id == task


class Thought(Payload):
    content: str
    index: Natural
    prev: str
    thought_id: str
    type: Literal["plan", "analysis", "decision", "reflection"]

    def fits(self, seq: int, session: str | None, task: str | None) -> bool:
        return self.thought_id == f"R-{seq}"


class Seal(Payload):
    count: Seq
    first_seq: Seq
    last_seq: Seq
    root: str


class Changes(Struct, forbid_unknown_fields=True, gc=False):
    """field → [old, new] for those that change."""

    def made(self) -> dict[str, tuple[Any, Any]]:
        pairs = zip(self.__struct_fields__, astuple(self), strict=True)
        return {name: pair for name, pair in pairs if pair is not UNSET}


class FieldChanges(Changes):
    assignee: tuple[str | None, str | None] | UnsetType = UNSET
    depends_on: tuple[Ids | None, Ids] | UnsetType = UNSET
    priority: tuple[Priority | None, Priority] | UnsetType = UNSET
    project: tuple[str | None, str | None] | UnsetType = UNSET
    status: tuple[Status | None, Status] | UnsetType = UNSET


class TextChanges(Changes):
    description: tuple[str | None, str | None] | UnsetType = UNSET
    title: tuple[str | None, str] | UnsetType = UNSET


class TaskFields(Payload):
    attempt: Seq
    set: FieldChanges
    task_id: str
    version: Seq

    def fits(self, seq: int, session: str | None, task: str | None) -> bool:
        lists = () if self.set.depends_on is UNSET else self.set.depends_on
        distinct = all(ids is None or len({*ids}) == len(ids) for ids in lists)
        return self.task_id == task and distinct and self.set != FieldChanges()


class TaskTexts(Payload):
    set: TextChanges
    task_id: str
    version: Seq

    def fits(self, seq: int, session: str | None, task: str | None) -> bool:
        return self.task_id == task and self.set != TextChanges()


class Erasure(Payload):
    reason: str | None
    seqs: Annotated[list[Seq], Meta(min_length=1)]

    def fits(self, seq: int, session: str | None, task: str | None) -> bool:
        return all(one < other for one, other in pairwise(self.seqs))


_KINDS: Mapping[str, type[Payload]] = {
    "call.enter": Enter,
    "call.exit": Exit,
    "session.open": SessionOpen,
    "thought": Thought,
    "session.seal": Seal,
    "task": TaskFields,
    "task.text": TaskTexts,
    "erasure": Erasure,
}
_DECODE: Mapping[str, Callable[[bytes], Payload]] = {
    kind: Decoder(struct).decode for kind, struct in _KINDS.items()
}
_DECODE_ANY = {**_DECODE, "call.enter": Decoder(AnyEnter).decode}
_SILENT = frozenset({"ok", "cancelled"})  # outcomes that no code explains
_encode = Encoder(order="deterministic").encode  # dicts sorted, structs as they are


def read(c: Columns) -> list[Payload] | None:
    """What the payloads of some records say; None if one of them is not made like its kind."""
    pairs = [*zip(c.kinds, c.bodies, strict=True)]
    try:
        try:
            said = [_DECODE[kind](body) for kind, body in pairs]
        except ValidationError:
            said = [_DECODE_ANY[kind](body) for kind, body in pairs]
        if tuple(map(_encode, said)) != c.bodies:
            return None
    except (ValueError, RecursionError):
        return None
    return said if _fit(said, c) else None


def _fit(said: Sequence[Any], c: Columns) -> bool:
    """Whether what types cannot say is right, too."""
    plain = all(map(bytes.isascii, c.bodies))
    hashes, servers = [], set()
    for one, seq, session, task in zip(said, c.seqs, c.sessions, c.tasks, strict=True):
        kind = type(one)
        if kind is Exit:
            if (one.code is None) != (one.outcome in _SILENT):
                return False
            hashes.append(one.result_sha256)
        elif kind is Enter or kind is AnyEnter:
            if not _is_enter(one, hashes, plain=plain and kind is Enter):
                return False
            servers.add(one.server)
        elif not one.fits(seq, session, task):
            return False
        elif kind is Thought:
            hashes.append(one.prev)
        elif kind is Seal:
            hashes.append(one.root)
    stated = [one for one in hashes if one is not None]
    return are_uuids([*servers]) and are_hashes(stated)


def _is_enter(one: Enter, hashes: list[Any], *, plain: bool) -> bool:
    """Whether it has arguments, or size and hash of the line in their place, and a digest is where
    a text was. Of plain arguments types have said the rest. What must be a hash is added to them.
    """
    arguments = one.arguments
    if arguments is None:
        hashes.append(one.sha256)
        return one.size is not None and one.sha256 is not None
    for name in () if TEXTS.isdisjoint(arguments) else TEXTS:
        digest = arguments.get(name)
        if digest is not None:
            if type(digest) is not dict or digest.keys() != {"sha256", "size"}:
                return False
            hash, size = digest["sha256"], digest["size"]
            if type(hash) is not str or type(size) is not int or size < 0:
                return False
            hashes.append(hash)
    allowed = plain or _is_allowed(arguments, MAX_DEPTH - 1)
    return allowed and one.size is None and one.sha256 is None


def _is_allowed(value: object, levels: int) -> bool:
    """Whether canonical form has a place for a value that nests at most so deep."""
    if type(value) is dict:
        keys = all(map(str.isascii, value))
        return levels > 0 and keys and all(_is_allowed(one, levels - 1) for one in value.values())
    if type(value) is list:
        return levels > 0 and all(_is_allowed(one, levels - 1) for one in value)
    if type(value) is int:
        return -MAX_INTEGER <= value <= MAX_INTEGER
    return value is None or type(value) in (str, bool)
