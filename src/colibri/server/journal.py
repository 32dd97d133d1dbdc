"""The ledger as the lanes share it: who may write to it now, and what waits to be written.

The write thread holds `writing` during a round. A read that finds the lock free commits its record
on its own thread, which is faster than waking another. If the lock is taken or another process is
writing, the record goes to the write thread as a Job.
"""

import threading
import time
from collections import deque

from colibri.core.errors import Unavailable
from colibri.core.modes import Mode
from colibri.server.clock import FOREVER
from colibri.server.faults import Busy, CommitFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from colibri.config import Config
    from colibri.core.ledger import Entry
    from colibri.server.call import Call
    from colibri.server.envelope import Outcome
    from colibri.server.health import Health
    from colibri.server.keeper import Keeper
    from colibri.server.recorder import Recorder
    from colibri.store.ledger import Chain

    Record: TypeAlias = "Callable[[Recorder, Chain], Entry]"

STOPPED = "the write thread has stopped"


class Job:
    """A record that another lane wants in the ledger; `settled` is called with the result."""

    __slots__ = (
        "_done", "_settled", "answered", "came", "durable", "entry", "failure", "record", "until",
    )  # fmt: skip

    def __init__(
        self,
        record: "Record",
        settled: "Callable[[Job], None] | None" = None,
        *,
        durable: bool = False,
        answered: bool = False,
        until: float = FOREVER,
    ) -> None:
        self.record = record
        self.came = time.monotonic()
        self.durable = durable
        self.answered = answered
        self.until = until
        self.entry: Entry | None = None
        self.failure: Exception | None = None
        self._settled = settled
        self._done = threading.Lock()
        self._done.acquire()

    @property
    def has_waiter(self) -> bool:
        """Whether a thread waits for it; otherwise its call has its answer, and it can wait."""
        return self._settled is None

    def finish(self, failure: Exception | None = None) -> None:
        """Mark it as committed, or as failed."""
        self.failure = failure
        if failure is not None:
            self.entry = None
        if self._settled is not None:
            self._settled(self)
        self._done.release()

    def wait(self) -> None:
        """Block until it is committed or has failed."""
        self._done.acquire()

    def reset(self) -> None:
        """Undo `finish`, for a job that the write thread will try next."""
        self.wait()
        self.failure = None


class Journal:
    """The recorder, once the database is open; until then `status` and `failure` say why not."""

    def __init__(
        self,
        config: "Config | None",
        mode: Mode,
        health: "Health",
        uncaught: "Callable[[BaseException], None]",
    ) -> None:
        self.configured = config is not None
        self.writing = threading.Lock()  # whoever holds it may use the recorder
        self.recorder: Recorder | None = None
        self.keeper: Keeper | None = None  # of the heads of the same ledger
        self.failure: str | None = None
        self.status = "not configured" if config is None else "opening"
        if config is not None and mode == Mode.MINIMAL:
            self.status = "not opened in MINIMAL"
        self.unwritten_probes = 0
        self._recording = config is not None and mode not in (Mode.READONLY, Mode.MINIMAL)
        self._health = health
        self._uncaught = uncaught
        self._owed: deque[tuple[Call, Outcome]] = deque()  # exits of answered calls
        self._hand_over: Callable[[Job], None]

    def attach(self, hand_over: "Callable[[Job], None]") -> None:
        """Set where jobs go: to the write thread."""
        self._hand_over = hand_over

    def records_calls(self) -> bool:
        """Whether calls are recorded, now or once the database is open."""
        return self._recording and self.failure is None and not self._health.latched

    def usable_recorder(self) -> "Recorder | None":
        """The recorder, unless nothing may be written any longer."""
        return None if self._health.latched else self.recorder

    def why_not(self) -> Unavailable:
        """Why nothing can be written or read."""
        if self.failure is not None:
            return Unavailable(f"the database is not open: {self.failure}")
        return Unavailable(self._health.condition.why or "this server has no database")

    def record_later(self, record: "Record", failed: "Callable[[], None]") -> None:
        """Have a probe's record written when there is time; calls `failed` if it cannot be."""

        def settled(job: Job) -> None:
            self.unwritten_probes -= 1
            if job.failure is not None:
                failed()

        self.unwritten_probes += 1
        self._hand_over(Job(record, settled))

    def commit(
        self, record: "Record", *, until: float, durable: bool = False, answered: bool = False
    ) -> "Entry | None":
        """Commit a record, here or on the write thread, and wait for it; raises Busy.

        Returns None if the ledger cannot be written.
        """
        if not self.records_calls():
            return None
        job = Job(record, durable=durable, answered=answered, until=until)
        done = False
        if self.writing.acquire(blocking=False):
            try:
                done = self._commit_here(job)
            finally:
                self.writing.release()
        if not done:
            self._hand_over(job)
        job.wait()
        if isinstance(job.failure, Busy):
            raise job.failure
        return job.entry

    def _commit_here(self, job: Job) -> bool:
        """False if it must wait for another process, or for probes that were answered earlier."""
        recorder = self.usable_recorder()
        if recorder is None or self.unwritten_probes:
            return False
        problem = None
        recorder.patience.left = 0.0
        try:
            problem = self.write(recorder, [job], [])
        except Exception as fatal:  # on the write thread this would have stopped the server
            self._uncaught(fatal)
        if isinstance(problem, Busy):
            job.reset()
            return False
        return True

    def receipt(self, entry: "Entry") -> bytes | None:
        """A head that a client may keep as proof, as JSON: it survives a power cut.

        The call's exit record if that is synced, else the newest synced head, if any.
        """
        recorder = self.recorder
        if recorder is None or (synced := recorder.synced) is None:
            return None
        head = entry if entry.seq <= synced.seq else synced
        leaf = head.leaf.hex().encode()
        return b'{"head":"%b","log":%b,"seq":%d}' % (leaf, recorder.log_json, head.seq)

    def owe_exit(self, call: "Call", outcome: "Outcome") -> None:
        """Let the next transaction write the exit of a call that was answered without one."""
        self._owed.append((call, outcome))

    def write(
        self, recorder: "Recorder", jobs: list[Job], calls: "list[Call]"
    ) -> Unavailable | CommitFailed | None:
        """One transaction for the exits still owed, for jobs, and for the enter records of calls.

        If it cannot be committed, the jobs are failed and the reason is returned.
        """
        owed = list(self._owed)

        def append(chain: "Chain") -> None:
            for call, outcome in owed:
                recorder.exit(chain, call, outcome)
            for job in jobs:
                job.entry = job.record(recorder, chain)
            for call in calls:
                recorder.enter(chain, call)

        problem: Unavailable | CommitFailed | None = None
        try:
            recorder.transact(
                append,
                durable=any(job.durable for job in jobs),
                answered=any(job.answered for job in jobs),
                far=True,
                then=calls,
            )
        except (Unavailable, CommitFailed) as kept_from:
            problem = kept_from
        except BaseException:
            _finish(jobs, Unavailable(STOPPED))
            raise
        if problem is None:
            for _ in owed:
                self._owed.popleft()
        _finish(jobs, problem)
        return problem


def _finish(jobs: list[Job], failure: Exception | None) -> None:
    for job in jobs:
        job.finish(failure)
