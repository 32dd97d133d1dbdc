"""The health thread: a check every COLIBRI_HEALTH_INTERVAL_MS, on its own connection."""

import os
import threading

from colibri.core.errors import Damaged
from colibri.core.modes import State
from colibri.server.faults import kind_of
from colibri.server.health import NORMAL, Condition, Snapshot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from colibri.config import Config
    from colibri.server.call import Load
    from colibri.server.clock import Clock
    from colibri.server.health import Health
    from colibri.store.connection import Connection

NEWEST = RANDOM = 200
FOLLOWED_BACK = 1000


class Checks:
    """The checks, and the thread that runs them."""

    def __init__(
        self,
        limits: "Config",
        clock: "Clock",
        health: "Health",
        load: "Load",
        lanes: "Sequence[Callable[[Callable[[], None]], None]]",
    ) -> None:
        self._limits = limits
        self._clock = clock
        self._health = health
        self._load = load
        self._lanes = lanes
        self._db: Connection
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._open: set[str] = set()
        self._seen: int | None = None
        self._next_table = 0

    def start(self, db: "Connection", exposure: "Callable[[], str]") -> None:
        """Start the thread, which closes the connection when it ends."""
        self._db = db
        self._exposure = exposure
        self._thread = threading.Thread(target=self._run, name="colibri-health", daemon=True)
        self._thread.start()

    def stop(self, timeout: float) -> None:
        """End the thread after the current check."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(timeout)

    def _run(self) -> None:
        try:
            self.count_skills()
            while not self._stopping.wait(self._limits.health_interval_ms / 1000):
                self.check()
        finally:
            self._db.close()

    def count_skills(self) -> None:
        """Count the skills that skill_list would list; this has to read the files."""
        from colibri.store import skills  # the health thread runs after the tools are loaded

        limits = self._limits
        listing = skills.read(limits.skills_root, limits.project, database=limits.db_path)
        self._health.skill_count = len(listing.skills)

    def check(self) -> None:
        """Check everything once, the lanes last because they may take longer."""
        found: dict[str, str] = {"watchers": "0"}
        try:
            self.count_skills()
            over = self._check_load(found)
            with self._db:  # the transaction begins with a check of the files and the schema
                self._check_store(self._db, found)
        except Exception as problem:
            self._report_failure(problem, found)
            self._publish(found)
        else:
            self._conclude(found, over)
            self._wait_for_lanes(found, over)

    def _wait_for_lanes(self, found: dict[str, str], over: list[str]) -> None:
        """Time a no-op through each queue; a late lane is reported while it is still late."""
        most = self._limits.health_max_lag_ms
        start, late = self._clock.now_ms(), False
        arrived = [threading.Event() for _ in self._lanes]
        for put, event in zip(self._lanes, arrived, strict=True):
            put(event.set)
        while not all(event.wait(0.02) for event in arrived):
            lag = self._clock.now_ms() - start
            if self._stopping.is_set() or lag > most + self._limits.health_interval_ms:
                return
            if lag > most and not late:
                late = True
                found["lag"] = f"over {most} ms"
                self._conclude(found, [*over, f"lag of a lane is over {most} ms"])
        found["lag"] = f"{int(self._clock.now_ms() - start)} of {most} ms"
        self._conclude(found, over)

    def _conclude(self, found: dict[str, str], over: list[str]) -> None:
        self._health.settle(_overload(over))
        self._publish(found)

    def _publish(self, found: dict[str, str]) -> None:
        self._health.snapshot = Snapshot(
            at_ms=self._clock.now_ms(), checks=dict(found), open_calls=len(self._open)
        )

    def _report_failure(self, problem: Exception, found: dict[str, str]) -> None:
        if kind_of(problem) == "damaged":  # the check did its job: this is a finding
            ours = isinstance(problem, Damaged)
            why = str(problem) if ours else f"the database file is damaged: {problem}"
            self._report_damage(found, "store", why)
            return
        why = f"the health check could not run: {problem}"
        self._health.settle(Condition(state=State.DIAGNOSE, cause="check", why=why))
        found["check"] = why

    def _check_load(self, found: dict[str, str]) -> list[str]:
        limits = self._limits
        measured = (
            ("memory", rss_mb(), limits.health_max_rss_mb, "MB"),
            ("queue", len(self._load), limits.health_max_queue, "calls"),
        )
        over = []
        for name, value, most, unit in measured:
            found[name] = "not measured" if value is None else f"{value} of {most} {unit}"
            if value is not None and value > most:
                over.append(f"{name} {value} {unit} is over {most}")
        return over

    def _check_store(self, db: "Connection", found: dict[str, str]) -> None:
        # apsw is loaded: the health thread starts after the database is open.
        from colibri.store import ledger, record_check

        found["ledger"] = found["quick_check"] = "ok"
        last = ledger.last_seq(db)
        first = 1 + int.from_bytes(os.urandom(8), "big") % max(1, last)
        breaks = record_check.check_range(db, max(1, last - NEWEST + 1), last)
        breaks += record_check.check_range(db, first, min(last, first + RANDOM - 1))
        self._count_open_calls(db, last)
        for worst in breaks[:1]:
            self._report_damage(
                found, "ledger", f"record {worst.seq}: {worst.what}: {worst.detail}"
            )
        parts = db.engine.small_tables(db)
        part = parts[self._next_table % len(parts)]
        self._next_table += 1
        for problem in db.engine.quick_check(db, part)[:1]:
            self._report_damage(found, "quick_check", f"{part}: {problem}")
        found["permissions"] = self._exposure() or "ok"

    def _report_damage(self, found: dict[str, str], check: str, why: str) -> None:
        found[check] = why
        self._health.degrade("integrity", why)

    def _count_open_calls(self, db: "Connection", newest: int) -> None:
        """Keep count of the calls that were entered and have not exited.

        Counting begins a little before the first check; older open calls are left to verification.
        """
        from colibri.store import ledger

        if self._seen is None:
            self._seen = max(0, newest - FOLLOWED_BACK)
        for seq, kind, call in ledger.calls_since(db, self._seen):
            self._seen = seq
            if kind == "call.enter":
                self._open.add(call)
            else:
                self._open.discard(call)


def _overload(overloads: list[str]) -> Condition:
    if not overloads:
        return NORMAL
    why = "; ".join(overloads) + "; try again when it is over"
    return Condition(state=State.SAFE_MODE, cause="overload", why=why)


def rss_mb(statm: str = "/proc/self/statm") -> int | None:
    """Resident memory in MB, if the system reports it; a peak would never go down again."""
    try:
        with open(statm, encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20
    except OSError:
        return None
