"""Erasure: texts taken out of the file for good, under a record that says so.

Payload and nonce of a record are deleted, and those of the call.enter that led to it: its arguments
hold hashes of the text. Whoever names that call.enter means the text, too. A host reports a tool
call when it begins and when it ends, with the same text, also if it is a call of ours: what was
reported under one id goes together. The headers stay, so links, seals and proofs hold, and every
verifier tells what is gone.

What is deleted is not gone yet. SQLite overwrites it (`secure_delete`), but not the copies that it
left in unused parts of pages when it once moved rows about; the search index keeps what it no
longer finds; the write-ahead log has the pages as they were. So `erase` has the index merged, and
the engine's `rewrite` after it rewrites the file and truncates the log.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from colibri.core.errors import Refused
from colibri.core.ledger import ERASABLE, ERASED, load
from colibri.store import record_check, tasks, thought_search
from colibri.store.connection import Connection

MAX_NAMED = 1_000  # by one erasure record; a payload with too many items no verifier reads

# Why the payloads of the other kinds have to stay.
_NEEDED = {
    "call.exit": "it says how a call ended, and holds no text",
    "session.resume": "it says which process continued its session, and holds no text",
    "session.seal": "it is the proof of its session, and holds no text",
    "task": "it shows how the task moved, and holds neither title nor description",
    "erasure": "it says what was erased, and why",
    "deed": "it says what happened, and holds neither command nor path",
}


class Target(NamedTuple):
    """A record whose payload goes, and why."""

    seq: int
    kind: str
    why: str


class _Record(NamedTuple):
    seq: int
    kind: str
    call: str
    task: str | None
    payload: dict[str, Any]


def plan(db: Connection, seqs: Iterable[int]) -> list[Target]:
    """What goes if these go, by seq.

    ERR_NOT_FOUND, ERR_NOT_ERASABLE, ERR_ALREADY_ERASED; ERR_DAMAGED for a record that is not as it
    was written: erased, it could no longer be told from a sound one.
    """
    meant = _meant(db, seqs)
    targets = {record.seq: Target(record.seq, record.kind, why) for record, why in meant}
    records = [record for record, _ in meant]
    for record in tuple(records):
        for other in _repeating(db, record):
            if other.seq not in targets:
                why = f"repeats the text of {record.seq}"
                targets[other.seq] = Target(other.seq, other.kind, why)
                records.append(other)
    for record in records:
        enter = _enter(db, record)
        if enter is not None and enter not in targets:
            why = f"the call that wrote {record.seq}"
            targets[enter] = Target(enter, "call.enter", why)
            records.append(_read(db, enter))
    for record in records:
        for seq in _reported(db, record):
            if seq not in targets:
                _read(db, seq)
                targets[seq] = Target(
                    seq, "deed.text", f"reported of the same call as {record.seq}"
                )
    return [targets[seq] for seq in sorted(targets)]


def payloads(db: Connection, seqs: Iterable[int]) -> list[dict[str, Any]]:
    """What these say, and what was written by those of them that are calls."""
    return [record.payload for record, _ in _meant(db, seqs)]


def erase(db: Connection, targets: Sequence[Target], *, reason: str) -> list[dict[str, object]]:
    """Delete what was planned, in the transaction it was planned in; the payloads of the `erasure`
    records that have to follow.
    """
    touched = {_task_of(db, target.seq) for target in targets if target.kind == "task.text"}
    for target in targets:
        db.engine.erase(db, target.seq)
        db.execute("UPDATE sessions SET intent = ? WHERE open_seq = ?", (ERASED, target.seq))
        if target.kind == "call.enter":
            _forget_caller(db, target.seq)
    for id in touched:
        _blank(db, id)
    if touched:
        db.engine.task_search.forget(db)
    if thoughts := [target.seq for target in targets if target.kind == "thought"]:
        thought_search.forget(db, thoughts)
    seqs = [target.seq for target in targets]
    parts = (seqs[at : at + MAX_NAMED] for at in range(0, len(seqs), MAX_NAMED))
    return [{"seqs": part, "reason": reason} for part in parts]


def _meant(db: Connection, seqs: Iterable[int]) -> list[tuple[_Record, str]]:
    """The records that somebody wants to have erased, and why each is one of them."""
    named = [_named(db, seq) for seq in sorted(set(seqs))]
    meant = {record.seq: (record, "named") for record in named}
    for record in named:
        for other in _written_by(db, record):
            meant.setdefault(other.seq, (other, f"written by the call {record.seq}"))
    return list(meant.values())


def _named(db: Connection, seq: int) -> _Record:
    """A record that somebody wants to have erased, if it can be."""
    kind: str | None = db.execute("SELECT kind FROM ledger WHERE seq = ?", (seq,)).get
    if kind is None:
        hint = "colibri log shows the records with their numbers"
        raise Refused("ERR_NOT_FOUND", f"there is no record {seq}", hint=hint)
    if kind not in ERASABLE:
        why = _NEEDED[kind]
        message = f"record {seq} is a {kind}, which stays: {why}"
        raise Refused("ERR_NOT_ERASABLE", message, hint=_instead(db, seq))
    return _read(db, seq)


def _instead(db: Connection, seq: int) -> str:
    """Where the texts are of the task that a record is about: by the same call, else all."""
    rows: list[Any] = db.execute(
        "SELECT t.seq, t.call = l.call FROM ledger AS l JOIN ledger AS t ON t.task = l.task"
        " WHERE l.seq = ? AND l.kind = 'task' AND t.kind = 'task.text' AND t.body IS NOT NULL"
        " ORDER BY t.seq",
        (seq,),
    ).fetchall()
    texts = [str(text) for text, is_same in rows if is_same] or [str(text) for text, _ in rows]
    if not texts:
        own: int | None = db.execute(
            "SELECT t.seq FROM ledger AS l JOIN ledger AS t ON t.seq = l.seq + 1 WHERE l.seq = ?"
            " AND l.kind = 'deed' AND t.kind = 'deed.text' AND t.body IS NOT NULL",
            (seq,),
        ).get
        if own is not None:
            return f"command and paths are in {own}: colibri erase {own} --reason TEXT"
        kinds = ("task.text", "thought", "session.open", "deed.text")
        return f"colibri log {' '.join(f'--kind {kind}' for kind in kinds)} lists what can go"
    held = f"title and description are in {', '.join(texts)}"
    return f"{held}: colibri erase {' '.join(texts)} --reason TEXT"


def _read(db: Connection, seq: int) -> _Record:
    """A record with its payload, which has to be there and as it was written."""
    breaks = record_check.check_range(db, seq, seq)
    if breaks:
        raise Refused(
            "ERR_DAMAGED",
            f"record {seq} was tampered with ({breaks[0].what}): erasing it would hide that",
            hint="colibri verify checks the whole log: do that first",
        )
    row: Any = db.execute("SELECT kind, call, task, body FROM ledger WHERE seq = ?", (seq,)).get
    kind, call, task, body = row
    if body is None:
        raise Refused("ERR_ALREADY_ERASED", f"record {seq} is already erased")
    return _Record(seq, kind, call, task, load(body))


def _written_by(db: Connection, enter: _Record) -> Iterator[_Record]:
    """The texts that a call wrote, if this is its call.enter; up to its exit, which is not far."""
    if enter.kind != "call.enter":
        return
    left: int | None = db.execute(
        "SELECT seq FROM ledger WHERE seq > ? AND call = ? AND kind = 'call.exit'"
        " ORDER BY seq LIMIT 1",
        (enter.seq, enter.call),
    ).get
    rows = db.execute(
        "SELECT seq FROM ledger WHERE seq > ? AND seq < ? AND call = ? AND body IS NOT NULL"
        " AND kind IN ('thought', 'session.open', 'task.text') ORDER BY seq",
        (enter.seq, left, enter.call),
    ).fetchall()
    for (seq,) in rows:
        yield _read(db, seq)


def _repeating(db: Connection, record: _Record) -> Iterator[_Record]:
    """The other records of a task that hold a text which this one has set.

    A change repeats the text that it replaces; and a text may be set once more.
    """
    if record.kind != "task.text":
        return
    texts = {name: new for name, (_, new) in record.payload["set"].items() if new}
    for seq in _texts(db, record.task):
        if seq != record.seq:
            other = _read(db, seq)
            if any(text in other.payload["set"].get(name, ()) for name, text in texts.items()):
                yield other


def _reported(db: Connection, record: _Record) -> list[int]:
    """The texts of the deeds that tell of the same tool call, where the host gave it an id."""
    ids: Any = None
    if record.kind == "deed.text":
        ids = db.execute(
            "SELECT use, coalesce(host_session, '') FROM deeds WHERE seq = ?",
            (record.payload["of"],),
        ).get
    elif record.kind == "call.enter":
        ids = record.payload["use"], record.payload["host_session"] or ""
    use, host = ids or (None, "")
    rows = db.execute(
        "SELECT t.seq FROM deeds AS d JOIN ledger AS t ON t.seq = d.seq + 1 AND t.call = d.call"
        " WHERE d.use = ? AND coalesce(d.host_session, '') = ? AND t.body IS NOT NULL"
        " ORDER BY t.seq",
        (use, host),
    )
    return [seq for (seq,) in rows]


def _texts(db: Connection, task: str | None) -> list[int]:
    """Where the texts of a task are that are not erased."""
    rows = db.execute(
        "SELECT seq FROM ledger WHERE task = ? AND kind = 'task.text' AND body IS NOT NULL"
        " ORDER BY seq",
        (task,),
    )
    return [seq for (seq,) in rows]


def _enter(db: Connection, record: _Record) -> int | None:
    """The call.enter of the call that wrote a record, unless it is erased; it is not far before."""
    enter: int | None = db.execute(
        "SELECT CASE WHEN body IS NOT NULL THEN seq END FROM ledger"
        " WHERE seq < ? AND call = ? AND kind = 'call.enter' ORDER BY seq DESC LIMIT 1",
        (record.seq, record.call),
    ).get
    return enter


def _forget_caller(db: Connection, enter: int) -> None:
    """Take out of a session's row what the client said of itself in the call that began it, or that
    last went on with it.
    """
    call: str = db.execute("SELECT call FROM ledger WHERE seq = ?", (enter,)).get
    began: int | None = db.execute(
        "SELECT seq FROM ledger WHERE seq > ? AND call = ?"
        " AND kind IN ('session.open', 'session.resume', 'call.exit') ORDER BY seq LIMIT 1",
        (enter, call),
    ).get
    db.execute(
        "UPDATE sessions SET client = NULL, host_session = NULL"
        " WHERE coalesce(resume_seq, open_seq) = ?",
        (began,),
    )


def _task_of(db: Connection, seq: int) -> str:
    id: str = db.execute("SELECT task FROM ledger WHERE seq = ?", (seq,)).get
    return id


def _blank(db: Connection, id: str) -> None:
    """Take the texts out of a task's row that no record later than an erased one has set."""
    erased: int = db.execute(
        "SELECT max(seq) FROM ledger WHERE task = ? AND kind = 'task.text' AND body IS NULL",
        (id,),
    ).get
    known = {
        name for seq in _texts(db, id) if seq > erased for name in _read(db, seq).payload["set"]
    }
    task = tasks.get(db, id)
    title = task.title if "title" in known else ERASED
    description = task.description
    if description is not None and "description" not in known:
        description = ERASED
    db.execute(
        "UPDATE tasks SET title = ?, description = ? WHERE number = ?",
        (title, description, task.number),
    )
    db.engine.task_search.change(db, task.number, title, description)
