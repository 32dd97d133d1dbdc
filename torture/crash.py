"""Crash states: what a disk may hold after a power cut, at every operation of the real server.

tests.support.recording_disk records all disk operations of SQLite and all answers of the server.
The recording is played back, and the power may fail after any entry: tests.support.powercut says
what is left. Each such state is opened by the ordinary code and must be valid and have everything
that was acknowledged.
"""

import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

import apsw

from colibri.core.errors import ColibriError
from colibri.core.ledger import Head
from colibri.store import ledger
from colibri.store.sqlite.opening import open_writer
from colibri.store.sqlite.schema import load_migrations, quick_check
from colibri.store.sqlite.transaction import Transaction
from colibri.store.verify import verify
from tests.support.client import JSON, Server
from tests.support.ledger_reader import LOG, fill
from tests.support.ledger_writer import Lab as Writer
from tests.support.powercut import Disk
from tests.support.recording_disk import DATABASE, read_notes
from torture import ControlFailed, Lab, Trial, Violation, in_memory

RECORDED = (sys.executable, "-m", "tests.support.recording_disk")
STATES_PER_STORY = 500
CONTROL_STATES = 200
MIGRATIONS = load_migrations()
# Where a story begins, in turn: without a database, or with an older schema.
BEGINNINGS = (0, 0, 1, 0, 2)
# A crash at these is more interesting than in the middle of a log's pages.
WEIGHTS = {"write": 1, "sync": 4, "truncate": 8, "delete": 40, "open": 20, "sent": 4}


class Story:
    """Recorded runs of the real server on one project."""

    def __init__(self, directory: Path, random: Random, beginning: int, *faults: str) -> None:
        self._random = random
        self._project = directory
        self._notes = directory / "notes"
        self._program = (*RECORDED, *faults)
        self._lives = self._posted = 0
        self.before: bytes | None = None
        self.acknowledged: Head | None = None  # before the story began
        if beginning:
            self._write_older(beginning)
        self._live()
        self._live()
        self.notes = list(read_notes(self._notes))

    def _write_older(self, version: int) -> None:
        """A database as an older Colibri left it."""
        path = self._project / "data" / DATABASE
        opened = open_writer(
            str(path),
            lock_timeout=1.0,
            monotonic=time.monotonic,
            sleep=time.sleep,
            stamp="-",
            new_log=lambda: LOG,
            migrations=MIGRATIONS[:version],
        )
        with Transaction(opened.db, durable=True):
            fill(opened.db, 20)
        if version > 1:
            Writer(opened.db).create("an older task")
        self.acknowledged = ledger.head(opened.db)
        opened.close()
        self.before = path.read_bytes()

    def _live(self) -> None:
        """A session from start to seal, in bursts; then a shutdown, or kill -9 while it is idle."""
        self._lives += 1
        session = f"S-{self._lives}"
        with Server(self._project, self._program, DISK_NOTES=str(self._notes)) as server:
            calls = self._calls(session)
            while calls:
                burst = self._random.randint(1, 5)
                ids = [self._post(server, tool, given) for tool, given in calls[:burst]]
                del calls[:burst]
                for id in ids:
                    server.answer(id)
            if self._random.random() < 0.4:
                server.process.kill()

    def _post(self, server: Server, tool: str, given: JSON) -> str:
        """The id names the tool: only the answer to a change promises durability."""
        self._posted += 1
        id = f"{tool} {self._posted}"
        server.post("tools/call", {"name": tool, "arguments": given}, id=id)
        return id

    def _calls(self, session: str) -> list[tuple[str, JSON]]:
        calls: list[tuple[str, JSON]] = [
            ("audit_session_start", {"session_id": session, "intent": "be cut off"})
        ]
        for number in range(self._random.randint(4, 10)):
            size = self._random.choice((10, 200, 3_000))
            thought = {"session_id": session, "type": "plan", "content": "x" * size}
            one: tuple[str, JSON] = self._random.choice(
                (
                    ("task_create", {"title": f"task {number}"}),
                    ("task_update", {"task_id": "T-0001", "status": "GATHER"}),
                    ("thought_record", thought),
                    ("thought_record", thought),
                    ("task_list", {}),
                    ("audit_verify_chain", {}),
                )
            )
            calls.append(one)
        return [*calls, ("merkle_finalize", {"session_id": session})]


class Checker:
    """Opens states and judges them, in memory if the system has such a file system."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / DATABASE
        self._seen: set[int] = set()

    def judge(self, state: dict[str, bytes], acknowledged: Head | None) -> str | None:
        """What is wrong with a state; "" if nothing is, None for a state seen before."""
        key = hash((tuple(sorted(state.items())), acknowledged))
        if key in self._seen:
            return None
        self._seen.add(key)
        for name, content in state.items():
            self._path.with_name(name).write_bytes(content)
        try:
            return self._open(acknowledged)
        except (ColibriError, apsw.Error) as problem:
            return f"corrupt: {problem}"
        finally:
            for file in self._path.parent.iterdir():
                file.unlink()

    def _open(self, acknowledged: Head | None) -> str:
        opened = open_writer(
            str(self._path),
            lock_timeout=1.0,
            monotonic=time.monotonic,
            sleep=time.sleep,
            stamp="-",
            new_log=lambda: LOG,
            migrations=MIGRATIONS,
        )
        try:
            if damage := quick_check(opened.db):
                return f"corrupt: {damage[0]}"
            report = verify(opened.db, pause=lambda: None)
            if not report.valid:
                return f"corrupt: {report.breaks[0]}"
            # In a valid chain each record covers all before it: checking the newest is enough.
            if acknowledged and ledger.leaf_at(opened.db, acknowledged.seq) != acknowledged.leaf:
                return f"lost: record {acknowledged.seq} was acknowledged, {report.head} is newest"
            return ""
        finally:
            opened.close()


def _receipt(line: bytes) -> Head | None:
    """What a line acknowledges as durable: its newest head, even in the answer to a read."""
    result = json.loads(line).get("result", {})
    receipt = result.get("_meta", {}).get("colibri/receipt")
    content = result.get("structuredContent", {}).get("data")
    told = content.get("head") if isinstance(content, dict) else None
    heads = [(receipt["seq"], receipt["head"])] if receipt else []
    heads += [(told["seq"], told["leaf"])] if told else []
    seq, leaf = max(heads, default=(0, ""))
    return Head(seq, bytes.fromhex(leaf)) if seq else None


def _verdicts(
    story: Story, checker: Checker, random: Random, count: int, *, syncs: bool = True
) -> Iterator[str]:
    """What is wrong with each of so many states; "" if nothing is."""
    weights = [WEIGHTS[note[0]] for note in story.notes]
    while count:
        moments = Counter(random.choices(range(len(story.notes)), weights, k=count))
        disk, acknowledged = Disk(story.before, syncs=syncs), story.acknowledged
        for moment, note in enumerate(story.notes):
            if note[0] == "sent":
                acknowledged = _receipt(note[1]) or acknowledged
            else:
                disk.play(note)
            for _ in range(moments[moment]):
                verdict = checker.judge(disk.cut(random), acknowledged)
                if verdict is not None:
                    count -= 1
                    yield verdict


def control(lab: Lab) -> str:
    """A disk that ignores syncs, and a server that does not sync its commits."""
    caught = []
    for name, faults, syncs in (
        ("a disk that ignores syncs", (), False),
        ("a server that does not sync its commits", ("never-syncs",), True),
    ):
        story = Story(lab.fresh(name), lab.random, 0, *faults)
        with in_memory() as directory:
            found = _verdicts(story, Checker(directory), lab.random, CONTROL_STATES, syncs=syncs)
            bad = Counter(verdict.partition(":")[0] for verdict in found if verdict)
        if not bad:
            raise ControlFailed(f"{name} was not caught in {CONTROL_STATES} states")
        figures = ", ".join(f"{number} {what}" for what, number in bad.items())
        caught.append(f"{name}: {figures} of {CONTROL_STATES}")
    return "; ".join(caught)


def run(lab: Lab) -> dict[str, object]:
    """Story after story, each with its own states."""
    figures: Counter[str] = Counter()
    for first in range(0, lab.count, STATES_PER_STORY):
        number = first // STATES_PER_STORY
        beginning = BEGINNINGS[number % len(BEGINNINGS)]
        story = Story(lab.fresh(f"story-{number}"), lab.random, beginning)
        figures["operations on the disk"] += sum(note[0] != "sent" for note in story.notes)
        figures["heads told"] += sum(
            note[0] == "sent" and _receipt(note[1]) is not None for note in story.notes
        )
        figures["migrations of an older schema"] += bool(beginning)
        states = min(STATES_PER_STORY, lab.count - first)
        with in_memory() as directory:
            for done, bad in enumerate(_verdicts(story, Checker(directory), lab.random, states)):
                if bad:
                    raise Violation(f"story {number}, state {done}: {bad}")
        lab.say(f"{first + states:,} of {lab.count:,} states")
    return {**figures, "corrupt": 0, "lost": 0}


TRIAL = Trial(
    name="crash",
    title="power cut at any operation on the disk, with any part of what was not synced",
    claim="every state opens, is sound, its chain is good, and no acknowledged change is lost",
    unit="different states",
    quick=800,
    full=50_000,
    minutes=8,
    control=control,
    run=run,
)
