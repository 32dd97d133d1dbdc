"""Logs forged at random before they are hashed, in a form for each of the three verifiers.

A forgery changes the drafts of a log that tests/vectors builds; the chain is made afterwards, so
only the rules reveal it. The independent verifiers get a bundle of the log or of a part of it; the
server's check gets the rows of a database with the whole log.
"""

import base64
import copy
import functools
import json
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

import apsw

from colibri.core.ledger import ERASABLE, Head
from colibri.core.report import LINE_OF
from colibri.core.rows import Row
from colibri.store.ledger import create_log
from colibri.store.sqlite.connection import Connection, connect
from colibri.store.sqlite.schema import load_migrations
from colibri.store.verify import verify
from tests.vectors.builder import (
    Draft,
    Log,
    Object,
    b64,
    digest,
    headers,
    log_bundle,
    rehead,
    session_bundle,
    sha,
    task_bundle,
    text_of,
    thoughts_bundle,
    uuid,
    without,
)
from tests.vectors.claims import PERSON, A, B, P, told
from tests.vectors.deeds import alive, lacking
from tests.vectors.deeds import told as told_by_a_host
from tests.vectors.honest import S, erased, erased_text, finished, other_evidence, small, story

OF_DATABASES = {code for code, line in LINE_OF.items() if line == "rows"}


def claimed() -> Log:
    return told().log


def reported() -> Log:
    return told_by_a_host().log


STORIES = (
    *(small, finished, story, erased, erased_text, other_evidence, claimed, claimed, claimed),
    *(reported, reported, reported, lambda: lacking().log, lambda: alive().log),
)
TASKS = ("T-0001", "T-0002", "T-0003")
SESSIONS = (S, A, B, P, "x")
VALUES: tuple[Any, ...] = (
    *(None, 0, 1, 7, "x", "0" * 64, "ok", "refused", "GATHER", "DONE"),
    *(TASKS[0], [], [TASKS[1]], [TASKS[0]], *SESSIONS),
)
ARGUMENTS: tuple[Any, ...] = (
    *(None, "x", 1.5, 2**53, -1, ["a"], {"b": {"c": []}}, {"ä": 1}),
    *(digest("the task T-0001"), digest("x"), {"sha256": "0" * 64, "size": True}),
    {"sha256": "A" * 64, "size": 3},
)
TEXTS = ("title", "content", "description", "intent", "x")
WORDS = ("x", "0" * 64, "2026-03-01T09:30:00.000001Z", 'a"b', "thought", "task")

# What the builder raises when a lie has left a log of which no such bundle can be made.
NO_BUNDLE = (LookupError, RecursionError, StopIteration, TypeError, ValueError)

Finding = tuple[str, int | None]


class Forged(NamedTuple):
    """A bundle, and the root or head that its reader knows."""

    bundle: Object
    root: str | None = None
    head: Object | None = None

    def for_node(self) -> Object:
        return {"base64": b64(text_of(self.bundle)), "root": self.root, "head": self.head}


def forged(chance: Random) -> Forged:
    """A forged log; retries until a bundle can be made of it, as it usually can."""
    while True:
        log = chance.choice(STORIES)()
        for _ in range(chance.choice([0, 1, 1, 1, 2, 3])):
            forge(log, chance)
        try:
            if chance.random() < 0.25:
                return Forged(log_bundle(log))
            return _of_a_part(log, chance)
        except NO_BUNDLE:
            continue


def forged_once(log: Log, chance: Random) -> Forged:
    """A log with one lie in it: the whole log, or the part about a session or a task."""
    while True:
        lie = copy.deepcopy(log)
        forge_plausibly(lie, chance)
        try:
            return Forged(chance.choice([log_bundle, log_bundle, _of_session, _of_task])(lie))
        except NO_BUNDLE:
            continue


def _of_session(log: Log) -> Object:
    """The bundle of the session that is named first."""
    session = next(one.session for one in log.drafts if one.kind == "session.open") or ""
    made = [one for one in log.drafts if not one.kind.startswith("call.")]
    tasks = {one.task for one in made if one.session == session and one.task}
    return session_bundle(log, session, tasks, tail=True)


def _of_task(log: Log) -> Object:
    return task_bundle(log, next(one.task for one in log.drafts if one.kind == "task") or "")


def _of_a_part(log: Log, chance: Random) -> Forged:
    """A bundle of any scope; a part may be left out, and the reader may know a head or root."""
    session, sealed = (_one_with(log, kind, chance) for kind in ("session.open", "session.seal"))
    ways: list[Callable[[], Object]] = [
        lambda: log_bundle(log),
        lambda: session_bundle(log, session, TASKS, tail=chance.random() < 0.5),
        lambda: task_bundle(log, chance.choice(TASKS), chance.choice([(), TASKS[:1]])),
        lambda: thoughts_bundle(log, sealed, [chance.randrange(2)]),
    ]
    bundle = chance.choice(ways)()
    if chance.random() < 0.3:
        bundle = tamper(bundle, chance)
    seq = chance.choice(headers(bundle))["seq"]
    head = {"seq": seq, "leaf": bundle["head"]["leaf"]} if chance.random() < 0.3 else None
    return Forged(bundle, "2:" + "ab" * 32 if chance.random() < 0.1 else None, head)


def _one_with(log: Log, kind: str, chance: Random) -> str:
    """A session that a record of this kind names."""
    return chance.choice(sorted({one.session or S for one in log.drafts if one.kind == kind}))


def tamper(bundle: Object, chance: Random) -> Object:
    """Leave out a call of the finished bundle, a record of it, or a payload."""
    header = chance.choice(headers(bundle))
    call = [one["seq"] for one in headers(bundle) if one["call"] == header["call"]]
    scopes = (None, {"session": "other"}, {"task": TASKS[0]}, {"thoughts": S})
    ways: list[Callable[[], Object]] = [
        lambda: rehead(without(bundle, *call)),
        lambda: without(bundle, *call),
        lambda: without(bundle, header["seq"]),
        lambda: {**bundle, "payloads": dict(sorted(bundle["payloads"].items())[1:])},
        lambda: {**bundle, "scope": chance.choice(scopes)},
    ]
    return chance.choice(ways)()


def forge(log: Log, chance: Random) -> None:
    """Change, move, repeat, remove or erase a record before the chain is hashed."""
    place = chance.randrange(len(log.drafts))
    draft, other = log.drafts[place], chance.choice(log.drafts)
    ways: list[Callable[[], object]] = [
        lambda: forge_payload(draft, chance),
        lambda: forge_payload(draft, chance),
        lambda: forge_payload(draft, chance),
        lambda: forge_member(log, draft, chance),
        lambda: forge_member(log, draft, chance),
        lambda: setattr(draft, "session", chance.choice(sessions_of(log))),
        lambda: setattr(draft, "task", chance.choice([None, "x", *TASKS])),
        lambda: setattr(draft, "agent", chance.choice([None, "x", PERSON])),
        lambda: forge_names(log, draft.call, chance),
        lambda: setattr(draft, "call", other.call),
        lambda: draft.header.update({chance.choice(["at", "call", "kind"]): chance.choice(WORDS)}),
        lambda: log.drafts.pop(place),
        lambda: log.drafts.insert(chance.randrange(len(log.drafts)), copy.deepcopy(draft)),
        lambda: log.drafts.insert(chance.randrange(len(log.drafts)), log.drafts.pop(place)),
        lambda: log.erase(draft),
    ]
    chance.choice(ways)()


def forge_plausibly(log: Log, chance: Random) -> None:
    """Change one record, or what one call names, so that usually only a rule reveals it."""
    draft = chance.choice([one for one in log.drafts if one.kind != "call.enter"])
    ways: list[Callable[[], object]] = [
        lambda: forge_member(log, draft, chance),
        lambda: forge_member(log, draft, chance),
        lambda: forge_names(log, draft.call, chance),
        lambda: forge_payload(draft, chance),
        lambda: log.erase(chance.choice([one for one in log.drafts if one.kind in ERASABLE])),
    ]
    chance.choice(ways)()


def sessions_of(log: Log) -> list[str | None]:
    """The sessions that a log names, one that it does not, and None."""
    return [None, "x", *sorted({draft.session for draft in log.drafts if draft.session})]


def forge_names(log: Log, call: str, chance: Random) -> None:
    """All records of a call name another session or agent."""
    session, agent = chance.choice(sessions_of(log)), chance.choice([None, "x", PERSON])
    name, value = chance.choice([("session", session), ("agent", agent)])
    for draft in log.drafts:
        if draft.call == call:
            setattr(draft, name, value)


def forge_member(log: Log, draft: Draft, chance: Random) -> None:
    """Change a process, a repeat, a take-over or a holder to a plausible one."""
    body, seq = draft.body, chance.randrange(1, len(log.drafts))
    if draft.kind == "task" and chance.random() < 0.5:
        old, new = chance.choices(sessions_of(log), k=2)
        old = body["set"].get("holder", [old])[0]
        body["set"] = {**body["set"], "holder": [old, new]}
    elif draft.kind == "task" and "taken" in body and chance.random() < 0.3:
        del body["taken"]
    elif draft.kind == "task":
        body["taken"] = {"last": seq, "minutes": chance.randrange(90)}
    elif draft.kind == "call.exit":
        body["repeats"] = chance.choice([None, seq])
    elif "server" in body:
        known = {str(one.body["server"]) for one in log.drafts if one.kind == "call.enter"}
        body["server"] = chance.choice([*sorted(known), uuid("a third")])


def forge_payload(draft: Draft, chance: Random) -> None:
    name = chance.choice(sorted(draft.body))
    said = draft.body[name]
    if name == "set" and isinstance(said, dict) and said:
        field = chance.choice(sorted(said))
        said[field] = [chance.choice([None, *VALUES]), chance.choice(VALUES)]
    elif name == "arguments" and isinstance(said, dict):
        said[chance.choice(TEXTS)] = chance.choice(ARGUMENTS)
    else:
        draft.body[name] = chance.choice(VALUES)


class NoTable(Exception):
    """No database can hold what a bundle has: "a part", "no rows" or "its head" is why."""


def server_findings(forged: Forged) -> list[Finding] | None:
    """What the server's check finds in the same log; None if it cannot judge it.

    That compares no root with a seal: the command does.
    """
    if forged.root is not None:
        return None
    try:
        db = table_of(forged.bundle)
    except NoTable:
        return None
    known = forged.head
    head = Head(known["seq"], bytes.fromhex(known["leaf"])) if known else None
    report = verify(db, head=head, pause=lambda: None)
    db.close()
    found = [(one.what, one.seq) for one in report.breaks if one.what not in OF_DATABASES]
    return sorted(found, key=str)


def table_of(bundle: Object) -> Connection:
    """A database with the records of a bundle.

    A table holds a whole log, keeps its rows in order and has no separate head.
    """
    if bundle["scope"] is not None or bundle["proofs"]:
        raise NoTable("a part")
    try:
        rows = rows_of(bundle)
        head = {"seq": rows[-1].seq, "leaf": rows[-1].leaf.hex()}
        if rows != sorted(rows, key=lambda row: row.seq):
            raise NoTable("no rows")
        if head != bundle["head"]:
            raise NoTable("its head")
        return _database(rows, bundle["log"])
    except (IndexError, KeyError, TypeError, ValueError, apsw.Error):
        raise NoTable("no rows") from None


def findings(verdict: Object) -> list[Finding]:
    """The same from the verdict of an independent verifier."""
    return sorted(((one["code"], one["seq"]) for one in verdict["findings"]), key=str)


def rows_of(bundle: Object) -> list[Row]:
    """The rows of a table that holds the records of a bundle."""
    return [_row(base64.b64decode(text), bundle) for text in bundle["headers"]]


def _row(raw: bytes, bundle: Object) -> Row:
    header = json.loads(raw)
    secret = bundle["payloads"].get(str(header["seq"]))
    nonce, body = (secret and base64.b64decode(secret[name]) for name in ("nonce", "body"))
    names = (header[name] for name in Row._fields[:7])
    payload, prev = bytes.fromhex(header["payload"]), bytes.fromhex(header["prev"])
    row = Row._make((*names, payload, nonce, body, sha(b"\0", raw), prev))
    if row.header(bundle["log"]) != raw:
        raise ValueError("no row makes such a header")
    return row


@functools.cache
def _empty(log: str) -> bytes:
    db = connect(":memory:", "write")
    for migration in load_migrations():
        db.execute(migration.sql)
    create_log(db, log)
    for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall():
        db.execute(f"DROP TRIGGER {name}")
    return db.serialize("main")


def _database(rows: list[Row], log: str) -> Connection:
    """A database with these rows, without constraints."""
    db = connect(":memory:", "write")
    db.deserialize("main", _empty(log))
    db.execute("PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON")
    marks = ", ".join("?" * len(Row._fields))
    db.executemany(f"INSERT INTO ledger VALUES ({marks})", rows)
    return db
