"""What the server thinks of itself: counters, condition, the checks behind them, the two probes.

Every thread may count and degrade; the probes read what was last written and never wait. The health
thread has a connection of its own.

CONDITIONS
    NORMAL               everything is admitted that the mode admits
    SAFE_MODE overload   memory, lag or queue above its bound; ends with the next good check
    SAFE_MODE integrity  the ledger or the file is damaged or was replaced; lasts to the end
    SAFE_MODE io         an I/O error; lasts to the end
    DIAGNOSE             the check itself could not run; ends with the next one that does
"""

import os
import threading

from colibri.core.frozen import Frozen
from colibri.core.modes import MODE_GRANTS, STATE_GRANTS, Capability, State
from colibri.server.faults import kind_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from colibri.server.context import ColibriServerContext
    from colibri.store.connection import Connection

NEWEST = RANDOM = 200
FOLLOWED_BACK = 1000
COUNTERS = ("log_lines", "overloaded", "probe_records", "shutting_down", "unavailable")


class Condition(Frozen):
    """A state and, when it is not NORMAL, what caused it and why."""

    __slots__ = ("cause", "state", "why")
    state: State
    cause: str | None
    why: str


NORMAL = Condition(state=State.NORMAL, cause=None, why="")


class Snapshot(Frozen):
    """What a check found; replaced as a whole."""

    __slots__ = ("at_ms", "checks", "open_calls")
    at_ms: float
    checks: dict[str, str]
    open_calls: int


class Health:
    """The shared state of the checks."""

    def __init__(self, log: "Callable[[str, str], None]") -> None:
        self._log = log
        self.condition = NORMAL
        self.snapshot: Snapshot | None = None
        self.latched = False
        self.disk_full = False
        self.db_tables = 0
        self.sqlite_version: str | None = None
        self.skill_count = 0
        self._counts = dict.fromkeys(COUNTERS, 0)
        self._lock = threading.Lock()

    def count(self, name: str) -> None:
        """One more call turned away, record dropped or log line lost."""
        with self._lock:
            self._counts[name] += 1

    def counts(self) -> dict[str, int]:
        """All counters as they are now."""
        return dict(self._counts)

    def degrade(self, cause: str, why: str) -> None:
        """SAFE_MODE for the rest of the process; the first cause stays."""
        with self._lock:
            if self.latched:
                return
            self.latched = True
            self.condition = Condition(state=State.SAFE_MODE, cause=cause, why=why)
        self._log("error", f"[colibri] SAFE_MODE {cause}: {why}")

    def settle(self, condition: Condition) -> None:
        """What a check found, unless something worse is latched."""
        with self._lock:
            if not self.latched:
                self.condition = condition

    def why_not(self, capability: Capability) -> str | None:
        """Why a tool is held back now, or None when it is not."""
        condition = self.condition
        if capability in STATE_GRANTS[condition.state]:
            return None
        cause = f" ({condition.cause})" if condition.cause else ""
        return f"held back in {condition.state}{cause}: {condition.why}"


# The probes.


def ping(ctx: "ColibriServerContext") -> dict[str, object]:
    """server_ping."""
    return {"version": ctx.version, "mode": ctx.mode.value, "uptime_ms": ctx.uptime_ms()}


def report(ctx: "ColibriServerContext") -> dict[str, object]:
    """server_health: the six fields of seed 003 §3.2, then the rest."""
    health = ctx.health
    condition, snapshot = health.condition, health.snapshot
    names = [tool.name for tool in ctx.admitted()]
    return {
        "status": "ok",
        "version": ctx.version,
        "uptime_ms": ctx.uptime_ms(),
        "db_tables": health.db_tables,
        "phase": ctx.phase or "phase1",
        "mode": ctx.mode.value,
        "db": _database(ctx),
        "condition": {
            "state": condition.state.value,
            "cause": condition.cause,
            "checks": _checks(health, snapshot),
            "age_ms": None if snapshot is None else max(0, int(ctx.now_ms() - snapshot.at_ms)),
        },
        "tools": {"count": len(names), "names": names},
        "capabilities": sorted(capability.value for capability in MODE_GRANTS[ctx.mode]),
        "stages": list(ctx.stages),
        "skill_count": health.skill_count,
        "queues": {"read": len(ctx.load.of("read")), "write": len(ctx.load.of("write"))},
        "open_calls": 0 if snapshot is None else snapshot.open_calls,
        "dropped": health.counts(),
    }


def _database(ctx: "ColibriServerContext") -> dict[str, object]:
    path = None if ctx.config is None else ctx.config.db_path
    return {
        "path": path,
        "status": ctx.store_status,
        "size_bytes": _size(path),
        "wal_bytes": _size(None if path is None else path + "-wal"),
        "sqlite_version": ctx.health.sqlite_version,
    }


def _size(path: str | None) -> int:
    try:
        return 0 if path is None else os.stat(path).st_size
    except OSError:
        return 0


def _checks(health: Health, snapshot: Snapshot | None) -> dict[str, str]:
    checks = {} if snapshot is None else dict(snapshot.checks)
    checks["disk"] = "full" if health.disk_full else "ok"
    if health.condition.why:
        checks["condition"] = health.condition.why
    return checks


# The checks.


class Checks:
    """The health thread's work: one `check` every interval."""

    def __init__(
        self,
        ctx: "ColibriServerContext",
        db: "Connection | None",
        stopping: threading.Event,
    ) -> None:
        self._ctx = ctx
        self._db = db
        self._stopping = stopping
        self._open: set[str] = set()
        self._seen: int | None = None
        self._turn = 0

    def look_at_skills(self) -> None:
        """Count those that skill_list would list, which only reading them tells."""
        from colibri.store import skills  # the health thread runs after the tools are loaded

        settings = self._ctx.limits
        listing = skills.read(settings.skills_root, settings.project, database=settings.db_path)
        self._ctx.health.skill_count = len(listing.skills)

    def check(self) -> None:
        """Look at everything once; then at the lanes, which may take longer."""
        found: dict[str, str] = {"watchers": "0"}
        try:
            self.look_at_skills()
            over = self._look_at_load(found)
            if self._db is not None:
                self._look_at_store(self._db, found)
        except Exception as problem:
            self._could_not_check(problem, found)
            self._publish(found)
        else:
            self._conclude(found, over)
            self._wait_for_lanes(found, over)

    def _wait_for_lanes(self, found: dict[str, str], over: list[str]) -> None:
        """Time a no-op of ours through each queue; a late lane is told while it is late."""
        most = self._ctx.limits.health_max_lag_ms
        start, late = self._ctx.now_ms(), False
        arrived = [threading.Event(), threading.Event()]
        for lane, event in zip((self._ctx.read, self._ctx.write), arrived, strict=True):
            lane.put(event.set)
        while not all(event.wait(0.02) for event in arrived):
            lag = self._ctx.now_ms() - start
            if self._stopping.is_set() or lag > most + self._ctx.limits.health_interval_ms:
                return
            if lag > most and not late:
                late = True
                found["lag"] = f"over {most} ms"
                self._conclude(found, [*over, f"lag of a lane is over {most} ms"])
        found["lag"] = f"{int(self._ctx.now_ms() - start)} of {most} ms"
        self._conclude(found, over)

    def _conclude(self, found: dict[str, str], over: list[str]) -> None:
        self._ctx.health.settle(_overload(over))
        self._publish(found)

    def _publish(self, found: dict[str, str]) -> None:
        self._ctx.health.snapshot = Snapshot(
            at_ms=self._ctx.now_ms(), checks=dict(found), open_calls=len(self._open)
        )

    def _could_not_check(self, problem: Exception, found: dict[str, str]) -> None:
        if kind_of(problem) == "damaged":  # that is what the check is for
            self._damage(found, "store", f"the database file is damaged: {problem}")
            return
        why = f"the health check could not run: {problem}"
        self._ctx.health.settle(Condition(state=State.DIAGNOSE, cause="check", why=why))
        found["check"] = why

    def _look_at_load(self, found: dict[str, str]) -> list[str]:
        limits = self._ctx.limits
        measured = (
            ("memory", rss_mb(), limits.health_max_rss_mb, "MB"),
            ("queue", len(self._ctx.load), limits.health_max_queue, "calls"),
        )
        over = []
        for name, value, most, unit in measured:
            found[name] = "not measured" if value is None else f"{value} of {most} {unit}"
            if value is not None and value > most:
                over.append(f"{name} {value} {unit} is over {most}")
        return over

    def _look_at_store(self, db: "Connection", found: dict[str, str]) -> None:
        from colibri.store import ledger  # the health thread runs after the database is open
        from colibri.store.sqlite import place, schema

        head = ledger.head(db)
        if head is not None:
            first = 1 + int.from_bytes(os.urandom(8), "big") % head.seq
            breaks = ledger.check_range(db, max(1, head.seq - NEWEST + 1), head.seq)
            breaks += ledger.check_range(db, first, min(head.seq, first + RANDOM - 1))
            self._follow(db, head.seq)
            if breaks:
                worst = breaks[0]
                self._damage(found, "ledger", f"record {worst.seq}: {worst.what}: {worst.detail}")
            else:
                found["ledger"] = "ok"
        tables = schema.small_tables(db)
        table = tables[self._turn % len(tables)]
        self._turn += 1
        problems = schema.quick_check(db, table)
        if problems:
            self._damage(found, "quick_check", f"{table}: {problems[0]}")
        else:
            found["quick_check"] = "ok"
        found["permissions"] = place.exposure(self._ctx.limits.db_path) or "ok"

    def _damage(self, found: dict[str, str], check: str, why: str) -> None:
        found[check] = why
        self._ctx.health.degrade("integrity", why)

    def _follow(self, db: "Connection", newest: int) -> None:
        """Keep count of the calls that were entered and have not exited.

        It begins a little before the first check: what is older and open is for verification.
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


class CheckThread:
    """The health loop: a check every COLIBRI_HEALTH_INTERVAL_MS on a thread of its own."""

    def __init__(self, ctx: "ColibriServerContext") -> None:
        self._ctx = ctx
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, db: "Connection | None") -> None:
        """Begin; the connection is closed at the end."""
        self._thread = threading.Thread(
            target=self._run, args=(db,), name="colibri-health", daemon=True
        )
        self._thread.start()

    def stop(self, timeout: float) -> None:
        """End after the check that runs."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout)

    def _run(self, db: "Connection | None") -> None:
        checks = Checks(self._ctx, db, self._stop)
        checks.look_at_skills()
        while not self._stop.wait(self._ctx.limits.health_interval_ms / 1000):
            checks.check()
        if db is not None:
            db.close()


def _overload(overloads: list[str]) -> Condition:
    if not overloads:
        return NORMAL
    why = "; ".join(overloads) + "; try again when it is over"
    return Condition(state=State.SAFE_MODE, cause="overload", why=why)


def rss_mb(statm: str = "/proc/self/statm") -> int | None:
    """Resident memory in MB, where the system tells: a peak alone would never go down again."""
    try:
        with open(statm, encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20
    except OSError:
        return None
