"""Writes a ledger without a server, with the store's own functions, each change within a call."""

import functools
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import apsw

from colibri.core import ledger as record
from colibri.core.errors import Refused
from colibri.core.ledger import Entry, Said
from colibri.core.report import Report
from colibri.store import erasure, keys, ledger, proofs, sessions, task_changes, tasks, trail
from colibri.store.claims import Asked
from colibri.store.connection import Connection as AnyConnection
from colibri.store.deeds import Arrival, Deed
from colibri.store.deeds import record as record_deed
from colibri.store.keys import First, Key
from colibri.store.ledger import Chain
from colibri.store.sessions import Caller, Session
from colibri.store.sqlite.connection import Connection, connect
from colibri.store.sqlite.opening import open_writer
from colibri.store.sqlite.schema import load_migrations
from colibri.store.task_changes import Change
from colibri.store.task_verification import verify_task
from colibri.store.tasks import Task
from colibri.store.trail import Thought
from colibri.store.verify import verify, verify_session
from tests.support import engines

T = TypeVar("T")
JSON = dict[str, Any]
LOG = "colibri/" + "0123456789abcdef" * 2
ZEROS = "0" * 64
_DEED = "00000000-0000-4000-8001-"
SERVER = "00000000-0000-4000-8000-00000000c01b"
TO_VERIFY = ("GATHER", "ANALYZE", "PLAN", "APPLY", "VERIFY")
DEED: JSON = {
    **dict.fromkeys(Deed.__slots__),
    **{"host": "claude-code", "event": "tool.end", "class_": "run", "files": (), "paths": ()},
}
NEW: JSON = {"description": None, "project": None, "priority": "medium", "assignee": None}


def no_pause() -> None:
    """Nothing waits for a pause."""


def nonce(seq: int) -> bytes:
    return seq.to_bytes(32, "big")


class Lab:
    """Each method is one call: enter, changes, exit. A refusal is recorded, then raised."""

    def __init__(self, db: AnyConnection, log: str = LOG) -> None:
        self.db: Any = db  # of either engine
        self.log = log
        self.older = ledger.last_seq(db)  # so that no call repeats an older id
        self.client: str | None = None  # the client of the next calls
        self.use: str | None = None
        self.result_sha256 = ZEROS
        self.second = "2026-01-01T00:00:00"  # of the next calls and deeds
        self._calls = 0

    def start(
        self,
        id: str = "S-1",
        *,
        intent: str = "try",
        task: str | None = None,
        agent: str | None = None,
        server: str = SERVER,
    ) -> Session:
        def act(call: "Call") -> Session:
            caller = Caller(server, self.client, self.client, agent)
            return sessions.start(
                self.db, call.append, id, intent=intent, task_id=task, caller=caller, now=call.now
            )

        named = {"session": id, "task": task, "agent": agent}
        return self.call("audit_session_start", act, server=server, **named)

    def resume(self, id: str = "S-1", *, server: str = SERVER) -> Session:
        def act(call: "Call") -> Session:
            return sessions.resume(
                self.db, call.append, id, caller=Caller(server, self.client, self.client)
            )

        return self.call("audit_session_start", act, session=id, server=server)

    def think(
        self,
        session: str = "S-1",
        content: str = "because",
        *,
        type: str = "plan",
        task: str | None = None,
        agent: str | None = None,
        key: str | None = None,
        server: str = SERVER,
    ) -> Thought:
        def act(call: "Call") -> Thought:
            mine = sessions.get_mine(self.db, session, server)
            said = {"type": type, "content": content, "task": task}

            def make() -> int:
                seq = call.next_seq
                return trail.record(self.db, call.append, mine, seq=seq, **said).seq  # type: ignore[arg-type]

            seq = call.once(None if key is None else Key("thought_record", session, key), make)
            return trail.get(self.db, seq)

        return self.call(
            "thought_record", act, session=session, task=task, agent=agent, server=server, key=key
        )

    def seal(self, session: str = "S-1", *, server: str = SERVER) -> Session:
        def act(call: "Call") -> Session:
            found = sessions.get_mine(self.db, session, server)
            return proofs.seal(self.db, call.append, found, now=call.now)

        return self.call("merkle_finalize", act, session=session, server=server)

    def create(
        self, title: str = "a task", *depends_on: str, key: str | None = None, **fields: Any
    ) -> Task:
        def act(call: "Call") -> Task:
            wanted = {**NEW, "title": title, "depends_on": list(depends_on), **fields}

            def make() -> int:
                return task_changes.create(self.db, call.append, fields=wanted, now=call.now).number

            number = call.once(None if key is None else Key("task_create", "", key), make)
            return tasks.get(self.db, tasks.task_id(number))

        return self.call("task_create", act, key=key)

    def update(  # noqa: PLR0913 - as the tool has them
        self,
        task: str,
        *,
        status: str | Sequence[str] = (),
        session: str | None = None,
        agent: str | None = None,
        claim: bool | None = None,
        thought: str | None = None,
        expected_version: int | None = None,
        minutes: float = 60,
        server: str = SERVER,
        **fields: Any,
    ) -> Task:
        """`thought` is recorded about the task, in the session."""

        def act(call: "Call") -> Task:
            found = None if session is None else sessions.get_mine(self.db, session, server)
            steps = [status] if isinstance(status, str) else status
            asked = Asked(found, claim, bool(steps), agent, call.now, minutes)
            record = (
                None
                if thought is None
                else functools.partial(self._add, call, session, thought, task)
            )
            change = Change(asked, steps, fields, expected_version, record)
            return task_changes.update(self.db, call.append, task, change)

        return self.call("task_update", act, session=session, task=task, agent=agent, server=server)

    def _add(self, call: "Call", session: str | None, content: str, task: str) -> Entry:
        found = sessions.get_open(self.db, session or "")
        said = {"type": "reflection", "content": content, "task": task}
        return trail.record(self.db, call.append, found, seq=call.next_seq, **said)

    def move(self, task: str, *states: str, session: str | None = None) -> Task:
        for status in states:
            moved = self.update(task, status=status, session=session)
        return moved

    def give_evidence(self, task: str) -> int:
        """Record a thought about a task; its seq."""
        if sessions.find(self.db, "S") is None:
            self.start("S")
        return self.think("S", task=task).seq

    def cancel(self, task: str) -> Task:
        self.give_evidence(task)
        return self.update(task, status="CANCELLED")

    def read(self, tool: str = "task_list", *, session: str | None = None) -> None:
        """A call that changes nothing."""
        self.call(tool, lambda call: None, session=session)

    def call(
        self,
        tool: str,
        act: Callable[["Call"], T],
        *,
        session: str | None = None,
        task: str | None = None,
        agent: str | None = None,
        server: str = SERVER,
        key: str | None = None,
    ) -> T:
        with self.calling(
            tool, session=session, task=task, agent=agent, server=server, key=key
        ) as call:
            try:
                return act(call)
            except Refused as refused:
                call.refusal = refused
        raise call.refusal

    @contextmanager
    def calling(
        self,
        tool: str,
        *,
        session: str | None = None,
        task: str | None = None,
        agent: str | None = None,
        ends: bool = True,
        server: str = SERVER,
        key: str | None = None,
    ) -> Iterator["Call"]:
        """A call in one transaction; without `ends` it gets no exit record."""
        named = {"session": session, "task": task, "agent": agent}
        self._calls += 1
        with self.db.engine.transaction(self.db, durable=False):
            call = Call(self, self._calls, named)
            arguments = {f"{name}_id": id for name, id in named.items() if id is not None}
            arguments |= {} if key is None else {"key": key}
            payload = record.enter_body(
                server=server,
                tool=tool,
                arguments=arguments,
                client=self.client,
                host_session=self.client,
                use=self.use,
            )
            enter = call.append("call.enter", payload)
            call.enter, call.arguments = enter.seq, arguments
            yield call
            if ends:
                left = record.exit_body(
                    enter=enter.seq,
                    tool=tool,
                    outcome="ok" if call.refusal is None else "refused",
                    code=None if call.refusal is None else call.refusal.code,
                    result_sha256=self.result_sha256,
                    duration_ms=1,
                    repeats=call.repeats,
                )
                call.append("call.exit", left)

    def deed(
        self, *, late: str | None = None, lost: int = 0, call: int = 0, **said: Any
    ) -> Entry | None:
        """What a host reports: by default a command that has ended."""
        self._calls += 2
        arrival = Arrival(
            call=f"{_DEED}{call or self.older + self._calls:012x}",
            bind_call=f"{_DEED}{self.older + self._calls - 1:012x}",
            at=f"{self.second}.{self._calls:06d}Z",
            late=late,
            lost=lost,
        )
        with self.db.engine.transaction(self.db, durable=False):
            chain = Chain(self.db, self.log, nonce)
            return record_deed(self.db, chain, Deed(**DEED | said), arrival, minutes=60)

    def forge(
        self, kind: str, payload: JSON, *, session: str | None = None, task: str | None = None
    ) -> Entry:
        """Append a well-formed record that no tool would write."""
        with self.db.engine.transaction(self.db, durable=False):
            return self._outside().append(kind, payload, session=session, task=task)

    def erase(self, *seqs: int) -> Entry:
        """Delete payloads, and a session's intent from its row: Specification 9.10."""
        with self.db.engine.transaction(self.db, durable=False):
            for seq in seqs:
                if self.db.execute("SELECT body FROM ledger WHERE seq = ?", (seq,)).get is not None:
                    self.db.engine.erase(self.db, seq)
                self.db.execute(
                    "UPDATE sessions SET intent = '[erased]' WHERE open_seq = ?", (seq,)
                )
            payload: JSON = {"seqs": sorted(seqs), "reason": "asked for"}
            return self._outside().append("erasure", payload)

    def erase_everywhere(self, seq: int) -> None:
        """Erase as `colibri erase` does, wherever else the text is."""
        with self.db.engine.transaction(self.db, durable=False):
            targets = erasure.plan(self.db, [seq])
            call = self._outside()
            for payload in erasure.erase(self.db, targets, reason="asked for"):
                call.append("erasure", payload)

    def _outside(self) -> "Call":
        return Call(self, 0, {"session": None, "task": None, "agent": None})

    def seqs(self, kind: str, **columns: str) -> list[int]:
        """The seqs of the records of a kind."""
        clause = "".join(f" AND {name} = ?" for name in columns)
        query = f"SELECT seq FROM ledger WHERE kind = ?{clause} ORDER BY seq"
        return [int(str(seq)) for (seq,) in self.db.execute(query, (kind, *columns.values()))]

    def head(self) -> Entry:
        found = ledger.head(self.db)
        assert found is not None
        return found

    def verify(self, **options: Any) -> Report:
        return verify(self.db, pause=no_pause, **options)

    def verify_session(self, id: str = "S-1", **options: Any) -> Report:
        return verify_session(self.db, id, pause=no_pause, **options)

    def verify_task(self, id: str = "T-0001", **options: Any) -> Report:
        return verify_task(self.db, id, **options)

    def tamper(self, statement: str, values: Sequence[object] = ()) -> None:
        """Change rows behind the store's back."""
        engines.tamper(self.db, statement, values)

    def drop_triggers(self) -> None:
        """Drop the triggers that refuse changes; those that count keep counting."""
        engines.require_sqlite("tampering with a file")
        query = "SELECT name FROM sqlite_schema WHERE type = 'trigger' AND name LIKE '%refuse%'"
        for (name,) in self.db.execute(query).fetchall():
            self.db.execute(f"DROP TRIGGER {name}")


class Call:
    """What a handler gets, as far as the store needs it."""

    def __init__(self, lab: Lab, number: int, named: dict[str, str | None]) -> None:
        self.id = f"00000000-0000-4000-8000-{lab.older + number:012x}"
        self.now = f"{lab.second}.{number:06d}Z"
        self.refusal: Refused | None = None
        self.enter, self.arguments = 0, dict[str, str]()
        self.repeats: int | None = None
        self._db = lab.db
        self._chain = Chain(lab.db, lab.log, nonce)
        self._named = named

    @property
    def next_seq(self) -> int:
        return self._chain.mark().seq + 1

    def once(self, key: Key | None, make: Callable[[], int]) -> int:
        """Do the work of a call, unless a call with the same key has done it."""
        first = None if key is None else keys.find(self._db, key, self.arguments, compare=True)
        if first is not None:
            self.repeats = first.enter
            return first.made
        made = make()
        if key is not None:
            keys.keep(self._db, key, First(self.enter, made))
        return made

    def append(
        self,
        kind: str,
        payload: Said,
        *,
        session: str | None = None,
        task: str | None = None,
    ) -> Entry:
        made = {"session": session, "task": task}
        self._named.update({name: id for name, id in made.items() if id is not None})
        return self._chain.append(kind, payload, at=self.now, call=self.id, **self._named)


@functools.cache
def _empty() -> bytes:
    db = connect(":memory:", "write")
    for migration in load_migrations():
        db.execute(migration.sql)
    ledger.create_log(db, LOG)
    return db.serialize("main")


def in_memory() -> Lab:
    """A lab in memory, for tests with many examples: real SQLite, no file. Where the tests of a
    module run on both engines, its other half is on a real PostgreSQL.
    """
    if engines.chosen() == "postgres":
        return Lab(engines.on_postgres(LOG))
    db = connect(":memory:", "write")
    db.deserialize("main", _empty())
    return Lab(db)


@contextmanager
def opened(project: Path, log: str = LOG) -> Iterator[Connection]:
    """The database of a project, open for writing, without a server."""
    if engines.chosen() == "postgres":
        project.mkdir(parents=True, exist_ok=True)
        ledger: Any = engines.of_project(project)
        with closing(ledger):
            yield ledger
        return
    result = open_writer(
        str(project / "data" / "colibri.db"),
        lock_timeout=1.0,
        monotonic=time.monotonic,
        sleep=time.sleep,
        stamp="20260101T000000Z",
        new_log=lambda: log,
    )
    try:
        yield result.db
    finally:
        result.close()


def without_constraints(database: Path, sql: str) -> None:
    """Change the ledger without its constraints, then restore its definition."""
    columns = "seq INTEGER PRIMARY KEY, at, kind, call, session, task, agent, payload, nonce, body"
    loose = f"CREATE TABLE ledger ({columns}, leaf, prev)"
    with closing(apsw.Connection(str(database))) as db:
        strict = db.execute("SELECT sql FROM sqlite_schema WHERE name = 'ledger'").get
    for definition, statement in ((loose, ""), (strict, sql)):
        with closing(apsw.Connection(str(database))) as db:
            disable_triggers(db)
            db.execute(statement)
            db.execute("PRAGMA writable_schema = ON")
            db.execute("UPDATE sqlite_schema SET sql = ? WHERE name = 'ledger'", (definition,))


def disable_triggers(db: apsw.Connection) -> None:
    """Stop all triggers for this connection; the schema stays unchanged."""
    engines.require_sqlite("tampering with a file")
    db.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)


def found(report: Report) -> list[tuple[int | None, str]]:
    """The seq and code of each finding."""
    return [(broken.seq, broken.what) for broken in report.breaks]


def story(lab: Lab) -> Lab:
    """A task from INIT to DONE in a sealed session of five thoughts, and an open one of two."""
    task = lab.create("mend it", project="p").task_id
    lab.start("S-1", intent="mend", task=task)
    lab.think("S-1", "first look", type="analysis", task=task, agent="ada")
    lab.move(task, *TO_VERIFY, session="S-1")
    for content in ("it holds", 'and "so" on\n', "für später"):
        lab.think("S-1", content, type="decision", task=task)
    lab.think("S-1", "done, because", type="reflection", task=task)
    lab.move(task, "DONE", session="S-1")
    lab.seal("S-1")
    lab.start("S-2", intent="look around")
    lab.think("S-2", "hm")
    lab.think("S-2", "aha")
    lab.read()
    return lab
