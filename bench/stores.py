"""Builds large stores with the store's own functions, so that every record is real.

    tasks    any number of tasks, every second one with dependencies, every 50th with a sealed
             session of four thoughts: for measuring the tools as the store grows
    log      stories of a session with its task, thoughts and reads, each call with its enter and
             exit, and one open session of many thoughts: for verification and sealing
    project  tasks in all states, some of them held, open sessions with many thoughts of many words,
             and commands of which many failed: for the brief and for search

A large one takes minutes to build and is kept in bench/.contestants; a copy is measured.
"""

import os
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from bench import install
from colibri.core.ledger import Entry, Said, enter_body, exit_body
from colibri.store import deeds, ledger, proofs, sessions, task_changes, trail
from colibri.store.claims import Asked
from colibri.store.deeds import Arrival, Deed
from colibri.store.ledger import Chain
from colibri.store.sessions import Caller
from colibri.store.sqlite.connection import Connection
from colibri.store.sqlite.opened import Opened
from colibri.store.sqlite.opening import open_writer
from colibri.store.sqlite.transaction import Transaction
from colibri.store.task_changes import Change

AT = "2026-01-01T00:00:00.000000Z"
BATCH = 20_000
PRIORITIES = ("low", "medium", "high", "critical")
MOVES = ("GATHER", "ANALYZE", "PLAN", "APPLY", "VERIFY", "DONE")
SERVER = "00000000-0000-4000-8000-000000000000"
AGENT = "agent-7"
CONTENT = "Because the tests of part 7 say so; the other way would cost a copy of each row."
LARGE = "S-large"
SESSION_EVERY, SESSION_THOUGHTS = 50, 4
# Per task two records within a call; per session an enter, a record and an exit for each call.
RECORDS_PER_TASK = 4 + 3 * (SESSION_THOUGHTS + 2) / SESSION_EVERY
LEAST_COMMANDS = 600  # of a project: more than the brief looks at, so that no size is spared
KEPT = install.FOLDER / "stores"


def put(build: Callable[..., None], project: Path, *size: int) -> Path:
    """Put a store of this kind and size into a project: built now, or copied from the cache."""
    kept = KEPT / f"{build.__name__}-{'-'.join(map(str, size))}-{_made_by()}"
    if not kept.exists():
        print(f"   building {kept.name}", file=sys.stderr, flush=True)
        unfinished = KEPT / f"unfinished-{os.getpid()}"
        shutil.rmtree(unfinished, ignore_errors=True)
        build(str(unfinished / "data" / "colibri.db"), *size)
        unfinished.rename(kept)
    shutil.copytree(kept, project, dirs_exist_ok=True)
    return project / "data" / "colibri.db"


def _made_by() -> str:
    """Eight digits that change with any code that decides what is in a store."""
    digest = sha256(Path(__file__).read_bytes())
    for folder, pattern in (("core", "ledger.py"), ("store", "**/*")):
        for file in sorted((install.ROOT / "src" / "colibri" / folder).glob(pattern)):
            if file.suffix in (".py", ".sql"):
                digest.update(file.read_bytes())
    return digest.hexdigest()[:8]


def tasks(path: str, count: int) -> None:
    """So many tasks; two dependencies each on average, 100 projects, 20 assignees."""
    opened = _open(path)
    name = ledger.log_id(opened.db)
    for first in range(0, count, BATCH // 4):
        with Transaction(opened.db, durable=False):
            builder = Builder(opened.db, Chain(opened.db, name, lambda seq: os.urandom(32)))
            for number in range(first + 1, min(first + BATCH // 4, count) + 1):
                builder.create(_fields(number))
                if number % SESSION_EVERY == 0:
                    builder.session(session_of(number), f"T-{number:04d}")
    opened.close()


def session_of(number: int) -> str:
    """The session about a task whose number is a multiple of 50."""
    return f"S-{number:012x}"


def _fields(number: int) -> dict[str, Any]:
    others = {number // 2, number // 3, number // 5, number // 7} - {0, number}
    return {
        "title": f"Task {number}: mend the {number % 997} of {number % 89}",
        "description": f"Look at part {number * 7919 % 10007} and write down what you find.",
        "project": f"project-{number % 100}",
        "priority": PRIORITIES[number % 4],
        "assignee": f"agent-{number % 20}",
        "depends_on": [f"T-{other:04d}" for other in sorted(others)] if number % 2 else [],
    }


def project(path: str, task_count: int, session_count: int, thought_count: int) -> None:
    """Every seventh task is done; each session holds a task; its thoughts are about others."""
    opened = _open(path)
    name = ledger.log_id(opened.db)

    def each(count: int, build: Callable[[Builder, int], None]) -> None:
        for first in range(1, count + 1, BATCH):
            with Transaction(opened.db, durable=False):
                builder = Builder(opened.db, Chain(opened.db, name, lambda seq: os.urandom(32)))
                for number in range(first, min(first + BATCH, count + 1)):
                    build(builder, number)

    def think(builder: Builder, number: int) -> None:
        session, task = f"S-{number % session_count + 1}", f"T-{number % task_count + 1:04d}"
        type = TYPES[number % len(TYPES)]
        builder.think(session, task, content=some_thought(number), type=type)

    def work(builder: Builder, number: int) -> None:
        session, task = f"S-{number % session_count + 1}", f"T-{number:04d}"
        if number <= session_count:
            builder.move(session, task, MOVES[: number % len(MOVES)] or ["GATHER"])
        elif number % 7 == 0:
            builder.move(session, task, MOVES)

    def run(builder: Builder, number: int) -> None:
        command = f"pytest tests/test_{_PARTS[number % 30]}.py -k {_PARTS[number % 7]}"
        builder.run(f"H-{number % session_count + 1}", command, number)

    each(task_count, lambda builder, number: builder.create(_fields(number) | {"depends_on": []}))
    each(session_count, lambda builder, number: builder.start(f"S-{number}", f"H-{number}"))
    each(thought_count, think)
    each(task_count, work)
    each(max(task_count, LEAST_COMMANDS), run)
    opened.close()


def some_thought(number: int) -> str:
    """About 25 words: twenty are common, one of which is in nearly every thought; most are rare."""
    rare = [f"{_PARTS[number * 7919 % 89 % 30]}{number * step % 4999}" for step in (3, 17, 101)]
    usual = [_PARTS[number * step % 97 % 30] for step in (1, 5, 11, 29, 31, 37)]
    return (
        f"The test of the {rare[0]} in src/{usual[0]}/{rare[1]}.py shows that the {usual[1]} and"
        f" the {usual[2]} of T-{number % 9999:04d} wait for the {usual[3]}: so the {rare[2]} is"
        f" {usual[4]} number {number}, and the {usual[5]} stays as it is."
    )


TYPES = ("plan", "analysis", "decision", "reflection")
_PARTS = (
    *(
        "archive",
        "batch",
        "cache",
        "digest",
        "entry",
        "filter",
        "group",
        "header",
        "index",
        "journal",
    ),
    *("key", "lane", "marker", "note", "owner", "parser", "queue", "record", "schema", "table"),
    *(
        "upload",
        "vector",
        "window",
        "export",
        "yield",
        "zone",
        "buffer",
        "cursor",
        "detail",
        "engine",
    ),
)


def log(path: str, records: int, thoughts: int, commands: int = 0) -> None:
    """So many records; the open session with so many thoughts is LARGE. A host reports so many
    commands for each of the others.
    """
    opened = _open(path)
    name, number, left = ledger.log_id(opened.db), 0, thoughts
    while left or (ledger.head(opened.db) or (0,))[0] < records:
        with Transaction(opened.db, durable=False):
            chain = Chain(opened.db, name, lambda seq: os.urandom(32))
            builder, first = Builder(opened.db, chain), chain.mark().seq
            if not first:
                builder.start(LARGE)
            while left and chain.mark().seq - first < BATCH:
                builder.think(LARGE, None)
                left -= 1
            while chain.mark().seq - first < BATCH and chain.mark().seq < records:
                number += 1
                builder.story(number)
                for turn in range(commands):
                    builder.run(f"H-{number}", f"pytest tests/test_{turn}.py", turn)
    opened.close()


def _open(path: str) -> Opened:
    """Open it for building: the file need not survive a power cut, so nothing is synced."""
    opened = open_writer(
        path,
        lock_timeout=10,
        monotonic=time.monotonic,
        sleep=time.sleep,
        stamp="bench",
        new_log=lambda: "colibri/" + os.urandom(16).hex(),
    )
    for pragma in ("synchronous = OFF", "cache_size = -1000000", "wal_autocheckpoint = 100000"):
        opened.db.execute(f"PRAGMA {pragma}")
    return opened


class Builder:
    """Writes calls as the server does: an enter, what the handler appends, an exit."""

    def __init__(self, connection: Connection, chain: Chain) -> None:
        self.db = connection
        self.chain = chain
        self._call = SERVER
        self._named: dict[str, str | None] = {}

    def call(
        self,
        tool: str,
        act: Callable[[], object] | None = None,
        given: dict[str, Any] | None = None,
        host_session: str | None = None,
        **named: str | None,
    ) -> None:
        """Write a call with its arguments: the ids it names, and the others."""
        self._call = _new_call()
        self._named = {"session": None, "task": None, "agent": AGENT, **named}
        arguments = {f"{name}_id": id for name, id in named.items()} | (given or {})
        payload = enter_body(
            server=SERVER, tool=tool, arguments=arguments, host_session=host_session
        )
        enter = self.record("call.enter", payload)
        if act is not None:
            act()
        left = exit_body(
            enter=enter.seq, tool=tool, outcome="ok", duration_ms=1, result_sha256="0" * 64
        )
        self.record("call.exit", left)

    def record(
        self,
        kind: str,
        payload: Said,
        *,
        session: str | None = None,
        task: str | None = None,
    ) -> Entry:
        """Append a record; the store's functions call this."""
        made = {"session": session, "task": task}
        self._named |= {name: id for name, id in made.items() if id is not None}
        return self.chain.append(kind, payload, at=AT, call=self._call, **self._named)

    def start(self, session: str, host_session: str | None = None) -> None:
        caller = Caller(SERVER, host_session=host_session, agent=AGENT)
        start = partial(sessions.start, intent="bench", task_id=None, caller=caller, now=AT)
        given = {"intent": "bench", "session_id": session}
        act = partial(start, self.db, self.record, session)
        self.call("audit_session_start", act, given, host_session)

    def think(
        self, session: str, task: str | None, content: str = CONTENT, type: str = "analysis"
    ) -> None:
        given = {"content": content, "type": type}

        def act() -> None:
            opened, seq = sessions.get_open(self.db, session), self.chain.mark().seq + 1
            trail.record(self.db, self.record, opened, seq=seq, task=task, **given)

        self.call("thought_record", act, given, session=session, task=task)

    def create(self, fields: dict[str, Any]) -> None:
        """Create a task; the call assigns its id."""
        create = partial(task_changes.create, self.db, self.record, fields=fields, now=AT)
        self.call("task_create", create, fields)

    def move(self, session: str, task: str, steps: Sequence[str]) -> None:
        """Move a task in a session, which keeps the claim unless the task is then done."""

        def act() -> None:
            asked = Asked(sessions.get(self.db, session), None, True, None, AT, 60)
            task_changes.update(self.db, self.record, task, Change(asked, steps))

        self.call("task_update", act, {"status": [*steps]}, session=session, task=task)

    def run(self, host_session: str, command: str, number: int) -> None:
        """Report a command as a host does; of eleven four failed."""
        said: dict[str, Any] = dict.fromkeys(Deed.__slots__)
        said |= {"host": "claude-code", "host_session": host_session, "use": f"use-{number}"}
        said |= {"event": "tool.end", "tool": "Bash", "class_": "run", "command": command}
        said |= {"exit": int(number % 11 < 4), "duration_ms": 1, "files": (), "paths": ()}
        deed = Deed(**said)
        arrival = Arrival(call=_new_call(), bind_call=_new_call(), at=AT, late=None, lost=0)
        deeds.record(self.db, self.chain, deed, arrival, minutes=60)

    def session(self, session: str, task: str) -> None:
        """A sealed session about a task."""
        self.start(session)
        for _ in range(SESSION_THOUGHTS):
            self.think(session, task)
        self.seal(session)

    def seal(self, session: str) -> None:
        def seal() -> object:
            return proofs.seal(self.db, self.record, sessions.get_open(self.db, session), now=AT)

        self.call("merkle_finalize", seal, session=session)

    def story(self, number: int) -> None:
        """A session, a task from INIT to DONE, 20 thoughts, 25 reads, the seal: 138 records."""
        session, task = f"S-{number:012x}", f"T-{number:04d}"
        self.start(session)
        fields: dict[str, Any] = {
            "title": "mend it",
            "description": "Look at it first.",
            "project": None,
        }
        fields |= {"priority": "high", "assignee": "agent-7", "depends_on": []}
        self.create(fields)
        for move in MOVES:
            for _ in range(3):
                self.think(session, task)
            asked = Asked(None, None, moves=True, agent=None, now=AT, minutes=60)
            wanted = Change(asked, [move])
            change = partial(task_changes.update, self.db, self.record, task, wanted)
            self.call("task_update", change, {"status": move}, task=task)
        for _ in range(2):
            self.think(session, None)
        for _ in range(25):
            self.call("task_get", task=task)
        self.seal(session)


def _new_call() -> str:
    return f"{os.urandom(4).hex()}-0000-4000-8000-{os.urandom(6).hex()}"
