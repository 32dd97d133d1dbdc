"""What clients were told about the tasks that they asked for, compared with what the database has;
and the ways in which a connection breaks meanwhile.
"""

import signal
import time
from collections import Counter
from typing import Any

from tests.support.client import JSON, Server
from tests.support.cluster import Database, execute, missing, verified, wait
from tests.support.far import Far
from tests.support.ledger_reader import eventually

QUIET: dict[str, str] = {"COLIBRI_HEALTH_INTERVAL_MS": "1000000"}
LONG = 90.0  # seconds for an answer: one may wait for a connection, a lock and a look-up


class Told:
    """Of one schema; every task has its own title."""

    def __init__(self, database: Database, schema: str) -> None:
        self.database = database
        self.schema = schema
        self.done: dict[str, JSON] = {}  # title and receipt
        self.refused: dict[str, str] = {}  # title and why
        self.unknown: set[str] = set()
        self.patience = LONG
        self._next = 0

    def post(self, server: Server, count: int = 5, **more: Any) -> dict[Any, str]:
        """Ask for tasks and wait for nothing; the titles, by the ids of the calls."""
        titles = [f"t{self._next + number}" for number in range(count)]
        self._next += count
        return {server.post_call("task_create", title=title, **more): title for title in titles}

    def collect(self, server: Server, posted: dict[Any, str]) -> list[str]:
        """Wait for the answers; the titles of what was done."""
        return [
            title
            for id, title in posted.items()
            if self._keep(title, server.answer(id, self.patience)["result"])
        ]

    def collect_of_dead(self, server: Server, posted: dict[Any, str]) -> None:
        """The answers that a killed server has sent; the outcome of the rest is unknown."""
        left = dict(posted)
        while message := server.receive():
            self._keep(left.pop(message["id"]), message["result"])
        self.unknown |= {*left.values()}

    def call(self, server: Server, **more: Any) -> str:
        """Ask for one task; why it was refused, or ""."""
        (title,) = posted = (*self.post(server, 1, **more).items(),)
        self.collect(server, dict(posted))
        return self.refused.get(title[1], "unknown" if title[1] in self.unknown else "")

    def call_until_done(self, server: Server, seconds: float = LONG) -> None:
        """Until one is done again; AssertionError if that takes too long."""
        end = time.monotonic() + seconds
        while why := self.call(server):
            assert time.monotonic() < end, f"still refused: {why}"
            wait(0.1)

    def _keep(self, title: str, result: JSON) -> bool:
        if not result["isError"]:
            self.done[title] = result["_meta"]["colibri/receipt"]
            return True
        message = str(result["structuredContent"]["error"]["message"])
        if "OUTCOME_UNKNOWN" in message:
            self.unknown.add(title)
        else:
            self.refused[title] = message
        return False

    def forget(self, titles: list[str]) -> None:
        """They are gone, and those who knew of them have said so."""
        for title in titles:
            del self.done[title]

    def check(self) -> None:
        """Nothing lost, nothing twice, nothing done that was refused; AssertionError if not."""
        rows = execute(self.database, f"SELECT title FROM {self.schema}.tasks ORDER BY number")
        found = Counter(title for (title,) in rows)
        if twice := [title for title, count in found.items() if count > 1]:
            raise AssertionError(f"{twice} were done twice")
        if lost := self.done.keys() - found.keys():
            raise AssertionError(f"{len(lost)} of {len(self.done)} acknowledged calls are lost")
        if gone := missing(self.database, self.schema, [*self.done.values()]):
            raise AssertionError(f"the records of {len(gone)} acknowledged calls are lost")
        if wrong := found.keys() & self.refused.keys():
            raise AssertionError(f"done, though refused: {[self.refused[one] for one in wrong]}")
        if strange := found.keys() - self.done.keys() - self.unknown:
            raise AssertionError(f"nobody asked for {strange}")

    def verify(self) -> int:
        """The whole log; the number of its records."""
        report = verified(self.database, self.schema)
        assert report.valid, f"the log is broken: {report.breaks[:3]}"
        return report.record_count


def break_in_flight(told: Told, server: Server, far: Far, pause: float) -> list[str]:
    """The connection breaks while calls are on their way; the titles of what was done."""
    posted = told.post(server)
    wait(pause)
    far.drop()
    return told.collect(server, posted)


def lose_answers(told: Told, server: Server, far: Far, answers: int) -> list[str]:
    """The database does what it was asked to, and its answer is lost, after so many others."""
    far.mute(answers)
    posted = told.post(server, 1)
    wait(0.5)
    far.restore()
    return told.collect(server, posted)


def come_late(told: Told, server: Server, far: Far, after: int, seconds: float) -> list[str]:
    """A question reaches the database when its client has looked for the outcome already."""
    far.delay_one(seconds, after)
    done = told.collect(server, told.post(server, 1))
    wait(seconds + 0.5)
    far.restore()
    return done


def stop_with_lock(told: Told, holder: Server) -> dict[Any, str]:
    """Stop a server that writes, at a moment when it holds the lock of the head; what it has not
    answered. It needs a way to its database that takes time, or that moment is too short.
    """
    query = (
        "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted"
        f" AND objid = '{told.schema}.ledger'::regclass"
    )
    with told.database.connect() as admin:
        for _ in range(100):
            posted = told.post(holder, 3)
            held = eventually(lambda: admin.execute(query).fetchone(), "the lock of the head")
            holder.process.send_signal(signal.SIGSTOP)
            wait(0.2)  # what was on its way has arrived
            if admin.execute(query).fetchone() == held:
                return posted
            holder.process.send_signal(signal.SIGCONT)
            told.collect(holder, posted)
    raise AssertionError("the server was never stopped while it held the lock")
