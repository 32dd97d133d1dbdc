"""Lanes: FIFO queues with one thread each.

A lane never runs two calls at once, and a tool belongs to one lane, so a tool never overlaps
itself. The main thread is the probe lane and needs no queue.

The write thread opens the database before its first call and then releases the read thread; calls
that arrive earlier wait in the queues.
"""

import threading
from collections import deque
from queue import Empty, SimpleQueue

from colibri.core.errors import Unavailable
from colibri.server.call import Call
from colibri.server.clock import FOREVER, Patience
from colibri.server.envelope import UNAVAILABLE
from colibri.server.faults import Busy
from colibri.server.journal import STOPPED, Job

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from colibri.server.call import Load
    from colibri.server.journal import Journal
    from colibri.server.pipeline import Pipeline

    Item: TypeAlias = "Call | Job | Callable[[], None] | None"
    from colibri.store.connection import Connection

ROUND_CALLS = 64


class Lane:
    """A queue and its thread. None in the queue ends it."""

    def __init__(
        self, name: str, pipeline: "Pipeline", load: "Load", room: threading.Event
    ) -> None:
        self.name = name
        self.pipeline = pipeline
        self.load = load
        self.room = room
        self.inbox: SimpleQueue[Item] = SimpleQueue()
        self.calls: deque[Call | Callable[[], None]] = deque()
        self.ended = False
        self._dead = False
        self.thread = threading.Thread(target=self._run_thread, name=f"colibri-{name}", daemon=True)

    if TYPE_CHECKING:

        def run(self) -> None:
            """Work until None comes out of the queue."""

    def put(self, item: "Item") -> None:
        """Append to the queue, from any thread; None ends the lane after everything before it."""
        self.inbox.put(item)
        if self._dead:
            self._give_up()

    def _run_thread(self) -> None:
        try:
            self.run()
        except BaseException:
            self._dead = True
            self._give_up()
            raise  # to threading.excepthook, which begins the shutdown

    def _give_up(self) -> None:
        """The thread has died: fail everything that waits for it."""
        for job in self.collect(wait=False):
            job.finish(Unavailable(STOPPED))
        for call in self.load.of(self.name):
            self.pipeline.abandon(call)

    def turn_away_waiting(self, problem: Busy) -> None:
        """Fail what was queued when the wait ended: it was blocked on the same lock. Probes stay.
        So do calls that came later: a client that got its error may have retried.
        """
        for job in self.collect(wait=False):
            if job.has_waiter and job.came <= problem.at:
                job.finish(problem)
            else:
                self.inbox.put(job)
        waiting, self.calls = self.calls, deque()
        for item in waiting:
            if not isinstance(item, Call):
                item()
            elif item.came <= problem.at:
                self.pipeline.turn_away(item, UNAVAILABLE, problem.message)
            else:
                self.calls.append(item)

    def collect(self, *, wait: bool) -> list[Job]:
        """Move what arrived into `calls` and return the jobs. With `wait`, block for the first."""
        jobs: list[Job] = []
        try:
            while True:
                item = self.inbox.get(block=wait)
                wait = False
                if isinstance(item, Job):
                    jobs.append(item)
                elif item is None:
                    self.ended = True
                else:
                    self.calls.append(item)
        except Empty:
            return jobs


class WriteLane(Lane):
    """Makes every change, in rounds, and writes the records that other lanes hand over."""

    def __init__(
        self,
        pipeline: "Pipeline",
        load: "Load",
        room: threading.Event,
        journal: "Journal",
        open_store: "Callable[[], None]",
    ) -> None:
        super().__init__("write", pipeline, load, room)
        self._journal = journal
        self._open_store = open_store

    def run(self) -> None:
        """Open the database, then work in rounds until the end."""
        self._open_store()
        while not self.ended or self.calls:
            jobs = self.collect(wait=not self.calls and not self.ended)
            try:
                if self.calls:
                    self.room.wait()
                calls = self._next_round()
            except BaseException:
                for job in jobs:  # taken from the queue already, so _give_up would miss them
                    job.finish(Unavailable(STOPPED))
                raise
            with self._journal.writing:
                busy = self._round(jobs, calls)
                self._keep_head()
            if busy is not None:
                self.turn_away_waiting(busy)

    def _keep_head(self) -> None:
        """After a seal, unless a call waits: then after that one."""
        keeper = self._journal.keeper
        if keeper is not None and keeper.is_due and not self.calls and self.inbox.empty():
            keeper.keep()

    def _next_round(self) -> deque[Call]:
        """The calls of the next round, prepared; runs the health check's no-ops it meets."""
        calls: deque[Call] = deque()
        most = 1 if self.pipeline.has_sink else ROUND_CALLS
        while self.calls and len(calls) < most:
            item = self.calls[0]
            if isinstance(item, Call):
                alone = item.tool is not None and item.tool.alone
                if alone and calls:
                    break
                self.pipeline.prepare(item)
                calls.append(item)
                if alone:
                    most = 1
            else:
                item()
            self.calls.popleft()
        return calls

    def _round(self, jobs: list[Job], calls: deque[Call]) -> Busy | None:
        """Enter the calls and run them; Busy if another process held the database too long."""
        entered, busy = self._enter(jobs, list(calls))
        while entered and calls:
            recorder = self._journal.usable_recorder()
            if recorder is None:  # a commit of this round found damage or an I/O error
                self._serve_without_ledger([], list(calls))
                break
            recorder.prepare_gates(calls)
            problem = self.pipeline.round(recorder, calls)
            busy = problem if isinstance(problem, Busy) else None
            if calls:
                self._enter(self.collect(wait=False), [])
        if (recorder := self._journal.recorder) is not None:
            recorder.opened.rest()
        return busy

    def _enter(self, jobs: list[Job], calls: list[Call]) -> tuple[bool, Busy | None]:
        """Whether the calls are in the ledger now and may run."""
        recorder = self._journal.usable_recorder()
        if recorder is None:
            self._serve_without_ledger(jobs, calls)
            return False, None
        if not jobs and not calls:
            return False, None
        recorder.patience.begin(min((job.until for job in jobs), default=FOREVER))
        problem = self.pipeline.enter(recorder, jobs, calls)
        return problem is None, problem if isinstance(problem, Busy) else None

    def _serve_without_ledger(self, jobs: list[Job], calls: list[Call]) -> None:
        for job in jobs:
            job.finish(self._journal.why_not())
        for call in calls:
            self.pipeline.run_unrecorded(call)


class ReadLane(Lane):
    """Runs the tools that only read, on their own read-only connection."""

    def __init__(
        self,
        pipeline: "Pipeline",
        load: "Load",
        room: threading.Event,
        store_ready: threading.Event,
        open_reader: "Callable[[Patience], Connection | None]",
    ) -> None:
        super().__init__("read", pipeline, load, room)
        self._store_ready = store_ready
        self._open_reader = open_reader
        self._db: Connection | None = None
        self._patience = Patience()
        self._running: list[str] = []

    def run(self) -> None:
        """Wait for the database, then serve one call after another."""
        self._store_ready.wait()
        self._db = self._open_reader(self._patience)
        try:
            while not self.ended or self.calls:
                self.collect(wait=not self.calls and not self.ended)
                if self.calls:
                    self.room.wait()
                    self._serve(self.calls.popleft())
        finally:
            if self._db is not None:
                self._db.close()

    def _serve(self, item: "Call | Callable[[], None]") -> None:
        if not isinstance(item, Call):
            item()
            return
        patience = self._patience
        outer = patience.left  # of the call that paused to let this one run
        self._running.append(item.name)
        patience.begin()
        try:
            busy = self.pipeline.read(item, self._db, patience, self._pause)
        finally:
            self._running.pop()
            patience.left = outer
        if busy is not None:
            self.turn_away_waiting(busy)

    def _pause(self) -> None:
        """Serve waiting calls, except those of a tool that is already running."""
        self.collect(wait=False)
        waiting, self.calls = self.calls, deque()
        for item in waiting:
            if isinstance(item, Call) and item.name in self._running:
                self.calls.append(item)
            else:
                self._serve(item)
