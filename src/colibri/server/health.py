"""The server's health: its condition and its counters.

Every thread may count and degrade; readers get the last value written and never wait.

CONDITIONS
    NORMAL               every tool of the mode is admitted
    SAFE_MODE overload   memory, lag or queue above its limit; ends with the next good check
    SAFE_MODE integrity  the ledger or the file is damaged or was replaced; lasts until a restart
    SAFE_MODE io         an I/O error; lasts until a restart
    DIAGNOSE             the check itself could not run; ends with the next one that does
"""

import threading

from colibri.core.frozen import Frozen
from colibri.core.modes import STATE_GRANTS, Capability, State
from colibri.server.log import Log

COUNTERS = ("overloaded", "probe_records", "shutting_down", "unavailable")


class Condition(Frozen):
    """A state and, unless it is NORMAL, its cause and explanation."""

    __slots__ = ("cause", "state", "why")
    state: State
    cause: str | None
    why: str


NORMAL = Condition(state=State.NORMAL, cause=None, why="")


class Snapshot(Frozen):
    """What a check found, and when; replaced as a whole."""

    __slots__ = ("at_ms", "checks", "open_calls")
    at_ms: float | None
    checks: dict[str, str]
    open_calls: int


class Health:
    """The shared state of the checks."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self.condition = NORMAL
        self.snapshot = Snapshot(at_ms=None, checks={}, open_calls=0)
        self.latched = False
        self.disk_full = False
        self.unreachable = ""  # why the database server does not take our records now
        self.db_tables = 0
        self.engine_version: str | None = None
        self.skill_count = 0
        self.diverged = ""  # which head, kept outside, the log does not extend
        self._counts = dict.fromkeys(COUNTERS, 0)
        self._lock = threading.Lock()

    def count(self, name: str) -> None:
        """Count one more call turned away or record dropped."""
        with self._lock:
            self._counts[name] += 1

    def counts(self) -> dict[str, int]:
        return {"log_lines": self._log.lost, **self._counts}

    def degrade(self, cause: str, why: str) -> None:
        """Go to SAFE_MODE for the rest of the process; the first cause stays."""
        with self._lock:
            if self.latched:
                return
            self.latched = True
            self.condition = Condition(state=State.SAFE_MODE, cause=cause, why=why)
        self._log("error", f"[colibri] SAFE_MODE {cause}: {why}")

    def warn(self, text: str) -> None:
        """Log what does not change the condition."""
        self._log("warn", f"[colibri] {text}")

    def diverge(self, why: str) -> None:
        """Tell, here and in the log, why the ledger may be another than it was; "" if it is not."""
        self.diverged = why
        if why:
            self.warn(why)

    def settle(self, condition: Condition) -> None:
        """Take the result of a check, unless something worse is latched."""
        with self._lock:
            if not self.latched:
                self.condition = condition

    def why_not(self, capability: Capability) -> str | None:
        """Why a tool may not run now, or None if it may."""
        condition = self.condition
        if capability in STATE_GRANTS[condition.state]:
            return None
        cause = f" ({condition.cause})" if condition.cause else ""
        return f"held back in {condition.state}{cause}: {condition.why}"
