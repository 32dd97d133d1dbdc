"""Lanes: FIFO queues with one thread each, the jobs handed to the write thread, and the bounds.

A lane never runs two calls at once, and a tool belongs to one lane, so a tool never overlaps
itself. The main thread is the probe lane and needs no queue.

The write thread opens the database before its first call and then releases the read thread: what
comes earlier waits in its queue, and so the queues are the gate of the boot sequence.
"""

import threading
from collections import deque
from queue import Empty, SimpleQueue

from colibri.core.errors import Unavailable
from colibri.server import store
from colibri.server.call import Call
from colibri.server.envelope import UNAVAILABLE
from colibri.server.faults import Busy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from colibri.core.ledger import Entry
    from colibri.server.context import ColibriServerContext
    from colibri.server.recorder import Recorder
    from colibri.store.connection import Connection
    from colibri.store.ledger import Chain

    Item: TypeAlias = "Call | Job | Callable[[], None] | None"

MAX_CALLS = 1024
MAX_LINE_BYTES = 32 * 1024 * 1024
ROUND_CALLS = 64


class Job:
    """A record that another lane wants in the ledger; `settled` is told how it went."""

    __slots__ = ("_done", "_settled", "entry", "failure", "record")

    def __init__(
        self,
        record: "Callable[[Recorder, Chain], Entry]",
        settled: "Callable[[Job], None] | None" = None,
    ) -> None:
        self.record = record
        self.entry: Entry | None = None
        self.failure: Exception | None = None
        self._settled = settled
        self._done = threading.Lock()
        self._done.acquire()

    def finish(self, failure: Exception | None = None) -> None:
        """The write thread committed it, or could not."""
        self.failure = failure
        if failure is not None:
            self.entry = None
        if self._settled is not None:
            self._settled(self)
        self._done.release()

    def wait(self) -> None:
        """Block until the write thread is through with it."""
        self._done.acquire()


class Lane:
    """A queue and its thread. None in the queue is its end."""

    def __init__(self, name: str, ctx: "ColibriServerContext") -> None:
        self.name = name
        self.ctx = ctx
        self.inbox: SimpleQueue[Item] = SimpleQueue()
        self.calls: deque[Call | Callable[[], None]] = deque()
        self.ended = False
        self._dead = False
        self.thread = threading.Thread(target=self._live, name=f"colibri-{name}", daemon=True)

    if TYPE_CHECKING:

        def run(self) -> None:
            """Work until the queue's end, each lane in its own way."""

    def put(self, item: "Item") -> None:
        """Append to the queue, from any thread; None ends the lane once it has come there."""
        self.inbox.put(item)
        if self._dead:
            self._give_up()

    def _live(self) -> None:
        try:
            self.run()
        except BaseException:
            self._dead = True
            self._give_up()
            raise  # to threading.excepthook, which begins the shutdown

    def _give_up(self) -> None:
        """The thread is gone: nobody may wait for it any longer."""
        for job in self.collect(wait=False):
            job.finish(Unavailable("the write thread has stopped"))
        for call in self.ctx.load.of(self.name):
            self.ctx.pipeline.abandon(call)

    def turn_away_waiting(self, problem: Busy) -> None:
        """What waits has waited for the same lock: it need not wait for it once more, in turn."""
        for job in self.collect(wait=False):
            self.inbox.put(job)
        waiting, self.calls = self.calls, deque()
        for item in waiting:
            if isinstance(item, Call):
                self.ctx.pipeline.turn_away(item, UNAVAILABLE, problem.message)
            else:
                item()

    def collect(self, *, wait: bool) -> list[Job]:
        """Sort what came into `calls`; the jobs are given back. With `wait`, blocks for one."""
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
    """Every change, in rounds, and every ledger append but those that `commit` makes elsewhere."""

    def __init__(self, name: str, ctx: "ColibriServerContext") -> None:
        super().__init__(name, ctx)
        self._writing = threading.Lock()  # who holds it may use the recorder

    def run(self) -> None:
        """Open the database, then work in rounds until the end."""
        store.open_store(self.ctx)
        while not self.ended or self.calls:
            jobs = self.collect(wait=not self.calls and not self.ended)
            if self.calls:
                self.ctx.room.wait()
            try:
                calls = self._next_round()
            except BaseException:
                for job in jobs:  # they are in no queue any more where _give_up would find them
                    job.finish(Unavailable("the write thread has stopped"))
                raise
            with self._writing:
                self._round(jobs, calls)

    def commit(self, record: "Callable[[Recorder, Chain], Entry]") -> "Entry | None":
        """Have a record committed, on the thread of another lane, which waits for it.

        That thread does it by itself while nobody else writes: to wake this one and be woken by it
        takes longer than the commit. None where the ledger cannot be written; raises Busy.
        """
        job = None
        if self._writing.acquire(blocking=False):
            try:
                job = self._commit_here(record)
            finally:
                self._writing.release()
        if job is None:
            job = Job(record)
            self.put(job)
            job.wait()
            if isinstance(job.failure, Busy):
                raise job.failure
        return job.entry

    def _commit_here(self, record: "Callable[[Recorder, Chain], Entry]") -> Job | None:
        """None if it has to wait: for another process, or for probes that were answered before."""
        recorder = self._recorder()
        if recorder is None or self.ctx.pipeline.probe_records:
            return None
        job = Job(record)
        try:
            problem = self.ctx.pipeline.enter(recorder, [job], [], patient=False)
        except Exception as fatal:  # it would have ended the write thread, and so the server
            self.ctx.uncaught(fatal)
            return job
        return None if isinstance(problem, Busy) else job

    def _next_round(self) -> deque[Call]:
        """The calls of the next round, prepared; a no-op on the way is run."""
        calls: deque[Call] = deque()
        most = 1 if self.ctx.pipeline.has_sink else ROUND_CALLS
        while self.calls and len(calls) < most:
            item = self.calls[0]
            if isinstance(item, Call):
                alone = item.tool is not None and item.tool.alone
                if alone and calls:
                    break
                self.ctx.pipeline.prepare(item)
                calls.append(item)
                if alone:
                    most = 1
            else:
                item()
            self.calls.popleft()
        return calls

    def _round(self, jobs: list[Job], calls: deque[Call]) -> None:
        if not self._enter(jobs, list(calls)):
            return
        while calls:
            recorder = self._recorder()
            if recorder is None:  # a commit of this round has found that nothing may be written
                self._without_ledger([], list(calls))
                return
            self.ctx.pipeline.round(recorder, calls)
            if calls:
                self._enter(self.collect(wait=False), [])

    def _enter(self, jobs: list[Job], calls: list[Call]) -> bool:
        """Whether the calls are in the ledger now and may run."""
        recorder = self._recorder()
        if recorder is None:
            self._without_ledger(jobs, calls)
            return False
        if not jobs and not calls:
            return False
        problem = self.ctx.pipeline.enter(recorder, jobs, calls)
        if isinstance(problem, Busy):
            self.turn_away_waiting(problem)
        return problem is None

    def _recorder(self) -> "Recorder | None":
        return None if self.ctx.health.latched else self.ctx.pipeline.recorder

    def _without_ledger(self, jobs: list[Job], calls: list[Call]) -> None:
        for job in jobs:
            job.finish(self.ctx.no_store())
        for call in calls:
            self.ctx.pipeline.unrecorded(call)


class ReadLane(Lane):
    """Tools that only read, on a read-only connection of their own."""

    def __init__(self, name: str, ctx: "ColibriServerContext") -> None:
        super().__init__(name, ctx)
        self._db: Connection | None = None
        self._running: list[str] = []

    def run(self) -> None:
        """Wait for the database, then serve call after call until the end."""
        self.ctx.store_ready.wait()
        self._db = store.open_reader(self.ctx)
        try:
            while not self.ended or self.calls:
                self.collect(wait=not self.calls and not self.ended)
                if self.calls:
                    self.ctx.room.wait()
                    self._serve(self.calls.popleft())
        finally:
            if self._db is not None:
                self._db.close()

    def _serve(self, item: "Call | Callable[[], None]") -> None:
        if not isinstance(item, Call):
            item()
            return
        self._running.append(item.name)
        try:
            self.ctx.pipeline.read(item, self._db, self._pause)
        except Busy as problem:
            self.turn_away_waiting(problem)
        finally:
            self._running.pop()

    def _pause(self) -> None:
        """Serve what waits, but no second call of a tool that is in the middle of one."""
        self.collect(wait=False)
        waiting, self.calls = self.calls, deque()
        for item in waiting:
            if isinstance(item, Call) and item.name in self._running:
                self.calls.append(item)
            else:
                self._serve(item)


class Load:
    """Calls accepted and not yet answered, over all lanes, and what they weigh in memory."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: set[Call] = set()
        self._bytes = 0

    def accept(self, call: Call) -> bool:
        """Count a call in, or refuse it because a bound is reached."""
        with self._lock:
            if len(self._calls) >= MAX_CALLS or self._bytes + call.weight > MAX_LINE_BYTES:
                return False
            self._calls.add(call)
            self._bytes += call.weight
        return True

    def release(self, call: Call) -> None:
        """Count a call out, if it was counted in."""
        with self._lock:
            if call in self._calls:
                self._calls.remove(call)
                self._bytes -= call.weight

    def of(self, lane: str) -> list[Call]:
        """The calls of a lane that are not answered yet."""
        with self._lock:
            return [call for call in self._calls if call.lane == lane]

    def __len__(self) -> int:
        return len(self._calls)
