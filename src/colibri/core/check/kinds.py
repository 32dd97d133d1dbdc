"""Payloads, typed: one struct a kind, with its members in canonical order.

`read` decodes payloads strictly, encodes them again and wants the same bytes: that is the canonical
form of docs/formats.md §1 and the table of its §3. What types cannot say (two members that must
agree, an order within a list) is in `fit`. A new kind or member is added here and nowhere else;
those of deeds are in deed_payloads.py.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Annotated, Any, Literal, TypedDict

from msgspec import UNSET, Meta, Struct, UnsetType, ValidationError, convert
from msgspec.json import Decoder, Encoder

from colibri.core.canonical import MAX_DEPTH, MAX_INTEGER
from colibri.core.check.deed_payloads import Deed, DeedText
from colibri.core.check.payload import Header, Integer, Name, Natural, Payload, Seq
from colibri.core.check.rows import Columns, are_hashes, are_uuids
from colibri.core.ledger import TEXTS
from colibri.core.rows import Row

Ids = Annotated[list[str], Meta(max_length=100)]
Status = Literal["INIT", "GATHER", "ANALYZE", "PLAN", "APPLY", "VERIFY", "DONE", "CANCELLED"]
Priority = Literal["low", "medium", "high", "critical"]


class Part(Struct, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """An object among the arguments of a call: the digest of a text, or a thought with one."""

    content: "Part | UnsetType | None" = UNSET
    sha256: str | UnsetType = UNSET
    size: Natural | UnsetType = UNSET
    type: str | UnsetType = UNSET

    @property
    def is_digest(self) -> bool:
        has = self.sha256 is not UNSET and self.size is not UNSET
        return has and self.content is UNSET and self.type is UNSET


def text_of_thought(arguments: Mapping[str, Any]) -> Any:
    """The digest of the thought that comes with a change, if one does."""
    thought = arguments.get("thought")
    if type(thought) is Part:
        return None if thought.content is UNSET else thought.content
    return thought.get("content") if type(thought) is dict else None


_Plain = str | Integer | bool | list[str] | Part | None


class Enter(Payload):
    arguments: dict[str, Any] | None
    client: Name | None
    host_session: Name | None
    server: str
    sha256: str | None
    size: Natural | None
    tool: str
    use: Name | None

    @staticmethod
    def fit(said: Sequence["Enter"], headers: Iterable[Header]) -> bool:
        """It has arguments, or size and hash of the line in their place; a digest for a text."""
        hashes: list[Any] = []
        for one in said:
            arguments = one.arguments
            if arguments is None:
                if one.size is None or one.sha256 is None:
                    return False
                hashes.append(one.sha256)
            elif one.size is not None or one.sha256 is not None:
                return False
            elif not _NESTED.isdisjoint(arguments):
                for name in _NESTED.intersection(arguments):
                    text = arguments[name] if name in TEXTS else text_of_thought(arguments)
                    if text is not None:
                        if type(text) is not Part or not text.is_digest:
                            return False
                        hashes.append(text.sha256)
        return are_uuids([*{one.server for one in said}]) and are_hashes(hashes)


class PlainEnter(Enter):
    """Its arguments as our own tools take them; those of others may nest deeper."""

    arguments: dict[str, _Plain] | None


class Exit(Payload):
    code: str | None
    duration_ms: Natural
    enter: Seq
    outcome: Literal["ok", "refused", "invalid", "error", "cancelled"]
    repeats: Seq | None
    result_sha256: str | None
    tool: str

    @staticmethod
    def fit(said: Sequence["Exit"], headers: Iterable[Header]) -> bool:
        explained = all([(one.code is None) == (one.outcome in _SILENT) for one in said])
        hashes = [one.result_sha256 for one in said if one.result_sha256 is not None]
        return explained and are_hashes(hashes)


class SessionOpen(Payload, kw_only=True, omit_defaults=True):
    gates: str | UnsetType = UNSET
    intent: str
    session_id: str
    task_id: str | None

    def fits(self, seq: int, session: str | None, task: str | None) -> bool:
        hashes = [] if self.gates is UNSET else [self.gates]
        return self.session_id == session and self.task_id == task and are_hashes(hashes)


class SessionResume(Payload):
    server: str

    def fits(self, seq: int, session: str | None, task: str | None) -> bool:
        return are_uuids([self.server])


class Thought(Payload):
    content: str
    index: Natural
    prev: str
    thought_id: str
    type: Literal["plan", "analysis", "decision", "reflection"]

    @staticmethod
    def fit(said: Sequence["Thought"], headers: Iterable[Header]) -> bool:
        ids = [f"R-{seq}" for seq, _, _ in headers]
        return [one.thought_id for one in said] == ids and are_hashes([one.prev for one in said])


class Seal(Payload):
    count: Seq
    first_seq: Seq
    last_seq: Seq
    root: str

    def fits(self, seq: int, session: str | None, task: str | None) -> bool:
        return are_hashes([self.root])


class FieldChanges(TypedDict, total=False):
    """field → [old, new] for those that change."""

    assignee: tuple[str | None, str | None]
    depends_on: tuple[Ids | None, Ids]
    holder: tuple[str | None, str | None]
    priority: tuple[Priority | None, Priority]
    project: tuple[str | None, str | None]
    status: tuple[Status | None, Status]


class TextChanges(TypedDict, total=False):
    """The same for texts."""

    description: tuple[str | None, str | None]
    title: tuple[str | None, str]


class Taken(Struct, forbid_unknown_fields=True, gc=False):
    """The last sign of life of the session that held a task before, and its age."""

    last: Seq
    minutes: Natural


class Gate(Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True, gc=False):
    """The rule under which a task became DONE, and the deeds that satisfied it."""

    after_last_edit: bool
    command: Annotated[str, Meta(max_length=1024)]
    digest: str
    evidence: Annotated[list[Seq], Meta(max_length=64)]
    exit: Integer
    waived: bool | UnsetType = UNSET

    @property
    def is_waived(self) -> bool:
        return self.waived is not UNSET

    @property
    def fits(self) -> bool:
        return are_hashes([self.digest]) and self.waived is not False


class TaskFields(Payload, kw_only=True, omit_defaults=True):
    attempt: Seq
    gate: Gate | UnsetType = UNSET
    set: FieldChanges
    taken: Taken | UnsetType = UNSET
    task_id: str
    version: Seq

    @property
    def gated(self) -> Gate | None:
        return None if self.gate is UNSET else self.gate

    @property
    def takeover(self) -> Taken | None:
        return None if self.taken is UNSET else self.taken

    def fits(self, seq: int, session: str | None, task: str | None) -> bool:
        lists = self.set.get("depends_on", ())
        distinct = all(ids is None or len({*ids}) == len(ids) for ids in lists)
        fits = self.task_id == task and distinct and len(self.set) > 0
        return fits and (self.gate is UNSET or self.gate.fits)


class TaskTexts(Payload):
    set: TextChanges
    task_id: str
    version: Seq

    def fits(self, seq: int, session: str | None, task: str | None) -> bool:
        return self.task_id == task and len(self.set) > 0


class Erasure(Payload):
    reason: str | None
    seqs: Annotated[list[Seq], Meta(min_length=1)]

    def fits(self, seq: int, session: str | None, task: str | None) -> bool:
        return all(one < other for one, other in pairwise(self.seqs))


_KINDS: Mapping[str, type[Payload]] = {
    "call.enter": Enter,
    "call.exit": Exit,
    "session.open": SessionOpen,
    "session.resume": SessionResume,
    "thought": Thought,
    "session.seal": Seal,
    "task": TaskFields,
    "task.text": TaskTexts,
    "erasure": Erasure,
    "deed": Deed,
    "deed.text": DeedText,
}
_NESTED = TEXTS | {"thought"}
_SILENT = frozenset({"ok", "cancelled"})  # outcomes that no code explains
_encode = Encoder(order="deterministic").encode_lines  # dicts sorted, structs as they are


def read(c: Columns) -> list[Payload] | None:
    """What the payloads of some records say; None if one of them is not made like its kind."""
    places: dict[str, list[int]] = {kind: [] for kind in {*c.kinds}}
    for place, kind in enumerate(c.kinds):
        places[kind].append(place)
    said: dict[str, Iterator[Any]] = {}
    seqs, sessions, tasks = c.seqs, c.sessions, c.tasks
    for kind, where in places.items():
        some = _read(kind, map(c.bodies.__getitem__, where))
        headers = ((seqs[place], sessions[place], tasks[place]) for place in where)
        if some is None or len(some) != len(where) or not _KINDS[kind].fit(some, headers):
            return None
        said[kind] = iter(some)
    return [*map(next, map(said.__getitem__, c.kinds))]


def read_one(row: Row) -> Any:
    """What a record says, unchecked; None if it is erased or cannot be read."""
    said = None if row.body is None else read(Columns.of(row))
    return said[0] if said else None


def _read(kind: str, bodies: Iterable[bytes]) -> list[Any] | None:
    """Payloads of one kind, each on a line: canonical JSON has no line ends in it."""
    lines = b"\n".join((*bodies, b""))
    try:
        said = _DECODE[kind](lines)
        return said if _encode(said) == lines else None
    except (ValueError, RecursionError):
        return None


def _enters(lines: bytes) -> list[Any]:
    """Those with plain arguments are known by their types; others are looked through."""
    if lines.isascii():
        try:
            return _plain_enters(lines)
        except ValidationError:
            pass
    said = _any_enters(lines)
    for arguments in (one.arguments for one in said if one.arguments is not None):
        if not _is_allowed(arguments, MAX_DEPTH - 1):
            raise ValueError("not what canonical form has a place for")
        thought = arguments.get("thought")
        for where, name in [(arguments, name) for name in TEXTS] + [(thought, "content")]:
            if type(where) is dict and name in where:
                where[name] = convert(where[name], Part | None)
    return said


_plain_enters, _any_enters = Decoder(PlainEnter).decode_lines, Decoder(Enter).decode_lines
_DECODE: Mapping[str, Callable[[bytes], list[Any]]] = {
    **{kind: Decoder(struct).decode_lines for kind, struct in _KINDS.items()},
    "call.enter": _enters,
}


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
