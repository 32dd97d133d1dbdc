"""The ledger: what a record is, how it is hashed, and how a chain of them is checked.

RECORD FORMAT, version 1

A record is a header and a payload. The header is the RFC 8785 bytes (`canonical.py`) of an object
with exactly these members:

    v        the integer 1
    log      "colibri/" and 32 hex digits, chosen when the database is made
    seq      1 for the first record, then +1, without gaps
    at       UTC, RFC 3339, microseconds, Z; information only: the order is seq
    kind     one of KINDS
    call     the correlation id of the call that wrote the record (uuid 4)
    session  whose work it is: the session that the caller names, else the current one of its
    agent    process, else null; and the agent that it names, else the session's
    task     the task that the arguments name, else null
             an id that the call itself makes is null on its enter and set on its later records
    payload  hex of SHA-256("colibri/payload/v1\\n" ‖ 32-byte nonce ‖ payload bytes)
    prev     hex of the leaf of seq − 1; for seq 1 of SHA-256("colibri/ledger/v1\\n" ‖ log)

    leaf = SHA-256(0x00 ‖ header bytes): the chain's link and the Merkle tree's leaf at once

The payload is the RFC 8785 bytes of an object with exactly the members of its kind, null where
there is nothing to say. Its nonce keeps it secret from anyone who has only the header, so
payload and nonce can be erased and the chain still holds.

    call.enter    server         the process that took the call (uuid 4)
                  tool           the tool's name; of an unknown tool, 128 characters
                  arguments      as validated; title, description, content and intent are replaced
                                 by {sha256, size} of their UTF-8 bytes: a text is kept in one place
                  client         name and version of the program that sent the call
                  host_session   that program's own ids of its session,
                  use            and of this use of the tool
                  size, sha256   null; of a refused call, whose arguments are null, the size and
                                 hash of the request line without its newline
    call.exit     enter          the seq of the call.enter that it closes
                  tool           the same name
                  outcome        one of OUTCOMES
                  code           refused, invalid, error: why; ok and cancelled: null
                  result_sha256  of the RFC 8785 bytes of the envelope, null where none was sent
                  duration_ms    an integer
                  repeats        the seq of the call.enter of the call that this one repeats
    session.open  session_id, intent, task_id
                  gates          only where the project has a colibri.toml: its SHA-256
    session.resume  server       the process that continues the session (uuid 4)
    thought       thought_id     "R-" and the record's seq
                  index          from 0 in the session
                  type           one of TYPES
                  content
                  prev           hex leaf of the session's thought before this, else 64 zeros
    session.seal  root, count, first_seq, last_seq
    task          task_id, version, attempt
                  set            field → [old, new] for FIELDS and `holder`; at creation all of
                                 FIELDS, old null
                  taken          only where a task is taken over: {last, minutes}
                  gate           only of a move to DONE under a rule: {command, exit,
                                 after_last_edit, digest, evidence}, and waived: true if a person
                                 has set the rule aside; evidence has the seqs of deeds
    task.text     task_id, version
                  set            the same for TEXT_FIELDS
    erasure       seqs, reason   whose payloads are gone; only of ERASABLE kinds
    deed          host, host_version, host_session, host_agent
                                 the program that ran the agent, as its hook reported it
                  event          one of EVENTS
                  use, tool      the host's id of the tool call, and the tool's name
                  class          one of CLASSES; null where the event is not one of a tool
                  exit, duration_ms
                                 null where the host does not tell
                  input, output  {sha256, size}, or null
                  files          {n, sha256, size} of what was on disk; n is a place in `paths`
                  git            {branch, commit}, or null
                  settings       the hash of the hook settings, at session.start
                  late           null, or when it happened, if it had to wait to be recorded
                  lost           how many deeds before it could not be kept
                  unjudged       only of an edit that begins, where the project's rule for edits
                                 could not be applied: one of UNJUDGED
    deed.text     of             the seq of its deed, the record before
                  command, paths, tree, text

A deed is written by no call: its `call` is an id of its own, which its deed.text shares. Its
session, task and agent are those that it was bound to, else null.

THE VIEWS of the database show the records under other names (Specification 9.7). `actions`, also
called `audit_events`, has a row for each call.enter and call.exit; both carry the enter's seq as
sequence_no, and the outcome of an enter is `running`. `thought_records` has a row for each thought.
"""

from collections.abc import Callable, Mapping
from hashlib import sha256
from json.decoder import JSONDecoder
from json.encoder import encode_basestring
from typing import Any, Literal, NamedTuple, NoReturn

from colibri.core.canonical import MAX_INTEGER, dump, encode

MEMBERS: Mapping[str, frozenset[str]] = {
    "call.enter": frozenset(
        {"server", "tool", "arguments", "client", "host_session", "use", "size", "sha256"}
    ),
    "call.exit": frozenset(
        {"enter", "tool", "outcome", "code", "result_sha256", "duration_ms", "repeats"}
    ),
    "session.open": frozenset({"session_id", "intent", "task_id"}),
    "session.resume": frozenset({"server"}),
    "thought": frozenset({"thought_id", "index", "type", "content", "prev"}),
    "session.seal": frozenset({"root", "count", "first_seq", "last_seq"}),
    "task": frozenset({"task_id", "version", "attempt", "set"}),
    "task.text": frozenset({"task_id", "version", "set"}),
    "erasure": frozenset({"seqs", "reason"}),
    "deed": frozenset(
        {
            *("host", "host_version", "host_session", "host_agent", "event", "use", "tool"),
            *("class", "exit", "duration_ms", "input", "output", "files", "git", "settings"),
            *("late", "lost"),
        }
    ),
    "deed.text": frozenset({"of", "command", "paths", "tree", "text"}),
}
OPTIONAL = {
    "session.open": frozenset({"gates"}),
    "task": frozenset({"gate", "taken"}),
    "deed": frozenset({"unjudged"}),
}
KINDS = tuple(MEMBERS)
ERASABLE = frozenset({"call.enter", "session.open", "thought", "task.text", "deed.text"})
OUTCOMES = ("ok", "refused", "invalid", "error", "cancelled")
TEXTS = frozenset({"title", "description", "content", "intent"})
FIELDS = ("status", "priority", "assignee", "project", "depends_on")
HELD_FIELDS = (*FIELDS, "holder")
TEXT_FIELDS = ("title", "description")
TYPES = ("plan", "analysis", "decision", "reflection")
TOOL_EVENTS = ("tool.begin", "tool.end", "tool.failed", "tool.denied")
EVENTS = (
    *("session.start", "session.end", "prompt", *TOOL_EVENTS, "stop"),
    *("subagent.start", "subagent.end", "compact", "bind"),
)
UNJUDGED = ("rules", "session", "ledger", "host")
CLASSES = ("edit", "run", "read", "fetch", "mcp", "other")

Outcome = Literal["ok", "refused", "invalid", "error", "cancelled"]

COMMITMENT = b"colibri/payload/v1\n"
NO_LEAF = bytes(32)  # what a session's first thought names as the one before it
HUMAN = "human:"  # how the names of people begin
ERASED = "[erased]"  # what tools show in the place of a text that is gone


class Entry(NamedTuple):
    """A record's place in the chain."""

    seq: int
    leaf: bytes


Head = Entry  # the newest record's


def genesis(log: str) -> bytes:
    """What the first record names as the one before it."""
    return sha256(b"colibri/ledger/v1\n" + log.encode()).digest()


def commitment(nonce: bytes, body: bytes) -> bytes:
    """What a header says of its payload."""
    return sha256(COMMITMENT + nonce + body).digest()


def header(  # noqa: PLR0913, PLR0917 - one for each member, in the order of the columns
    log: str,
    seq: int,
    at: str,
    kind: str,
    call: str,
    session: str | None,
    task: str | None,
    agent: str | None,
    payload: bytes,
    prev: bytes,
) -> bytes:
    """The header's bytes: what canonical.encode gives for these members, four times as fast."""
    quote = encode_basestring
    return (
        f'{{"agent":{"null" if agent is None else quote(agent)},"at":{quote(at)}'
        f',"call":{quote(call)},"kind":{quote(kind)},"log":{quote(log)}'
        f',"payload":"{payload.hex()}","prev":"{prev.hex()}","seq":{seq}'
        f',"session":{"null" if session is None else quote(session)}'
        f',"task":{"null" if task is None else quote(task)},"v":1}}'
    ).encode()


def leaf(header: bytes) -> bytes:
    return sha256(b"\0" + header).digest()


Said = Mapping[str, object] | bytes  # a payload, or the bytes of one that is known to be good


def body(kind: str, payload: Said, dump: Callable[[object], bytes] | None = None) -> bytes:
    """The payload's bytes; ValueError if its members are not those of its kind.

    With `dump` only numbers are checked, which may come from a row that somebody altered: its other
    values are our own, or were checked in the arguments of a call.
    """
    if isinstance(payload, bytes):
        return payload
    if payload.keys() != MEMBERS[kind] and payload.keys() - OPTIONAL.get(kind, ()) != MEMBERS[kind]:
        raise ValueError(f"a {kind} record has {sorted(MEMBERS[kind])}, not {sorted(payload)}")
    if dump is None:
        return encode(payload)
    for name, value in payload.items():
        if type(value) is int and abs(value) > MAX_INTEGER:
            raise ValueError(f"{name} is beyond 2^53-1: audit_verify_chain says which row is wrong")
    return dump(payload)


def load(data: bytes) -> Any:
    """The one JSON value that a payload is; ValueError if it is not one, or holds a float."""
    text = data.decode()
    try:
        value, end = _decode(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if end != len(text):
        raise ValueError("more than one value")
    return value


def _refuse(number: str) -> NoReturn:
    raise ValueError(f"{number} has no place in a record")


_decode = JSONDecoder(parse_float=_refuse, parse_constant=_refuse).raw_decode


def enter_body(  # noqa: PLR0913 - its members
    *,
    server: str,
    tool: str,
    arguments: Mapping[str, object] | None,
    client: str | None = None,
    host_session: str | None = None,
    use: str | None = None,
    size: int | None = None,
    sha256: str | None = None,
    dump: Callable[[object], bytes] = dump,
) -> bytes:
    """The payload's bytes of a call.enter, as `body` gives them for these members, but faster.

    The arguments are known to be allowed (`canonical.check`). For a refused call: arguments None,
    and size and sha256 of the request line.
    """
    given = b"null" if arguments is None else dump(without_texts(arguments))
    return b'{"arguments":%b%b' % (
        given,
        (
            f',"client":{_or_null(client)},"host_session":{_or_null(host_session)}'
            f',"server":{encode_basestring(server)},"sha256":{_or_null(sha256)}'
            f',"size":{"null" if size is None else size},"tool":{encode_basestring(tool)}'
            f',"use":{_or_null(use)}}}'
        ).encode(),
    )


def exit_body(
    *,
    enter: int,
    tool: str,
    outcome: Outcome,
    duration_ms: int,
    code: str | None = None,
    result_sha256: str | None = None,
    repeats: int | None = None,
) -> bytes:
    """The same of a call.exit."""
    return (
        f'{{"code":{_or_null(code)},"duration_ms":{duration_ms},"enter":{enter}'
        f',"outcome":"{outcome}","repeats":{"null" if repeats is None else repeats}'
        f',"result_sha256":{_or_null(result_sha256)},"tool":{encode_basestring(tool)}}}'
    ).encode()


def _or_null(text: str | None) -> str:
    return "null" if text is None else encode_basestring(text)


def without_texts(arguments: Mapping[str, object]) -> dict[str, object]:
    """A text is kept in one place; another tool than ours may have no text under its name."""
    return {name: _without_text(name, value) for name, value in arguments.items()}


def _without_text(name: str, value: object) -> object:
    if name in TEXTS and value is not None:
        return digest_of(_text(value))
    return without_texts(value) if name == "thought" and isinstance(value, dict) else value


def _text(value: object) -> str:
    return value if isinstance(value, str) else encode(value).decode()


def digest_of(text: str) -> dict[str, object]:
    """What a call's arguments say of a text."""
    data = text.encode()
    return {"sha256": sha256(data).hexdigest(), "size": len(data)}
