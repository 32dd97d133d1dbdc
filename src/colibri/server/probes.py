"""The two probes: server_ping and server_health, answered on the main thread without waiting."""

import os

from colibri.config import Config
from colibri.core.modes import MODE_GRANTS
from colibri.server.admission import Admission
from colibri.server.clock import Clock
from colibri.server.health import Health
from colibri.server.journal import Journal
from colibri.server.life import Life

STAGES = ("lane", "validate", "enter", "dispatch", "exit")


class Probes:
    """Both probes, and the parts they report on."""

    def __init__(
        self,
        version: str,
        config: Config | None,
        clock: Clock,
        life: Life,
        admission: Admission,
        journal: Journal,
    ) -> None:
        self._version = version
        self._name = None if config is None else config.ledger_name
        self._path = None if config is None or config.db_url else config.db_path
        self._project = {
            "path": None if config is None else config.project,
            "found_by": None if config is None else config.found_by,
        }
        self._clock = clock
        self._life = life
        self._admission = admission
        self._journal = journal

    def ping(self) -> dict[str, object]:
        uptime = self._clock.uptime_ms()
        return {"version": self._version, "mode": self._admission.mode.value, "uptime_ms": uptime}

    def report(self) -> dict[str, object]:
        """server_health: the six fields of Specification 12.2, then the rest."""
        admission, health = self._admission, self._admission.health
        names = [tool.name for tool in admission.admitted()]
        return {
            "status": "ok",
            "version": self._version,
            "uptime_ms": self._clock.uptime_ms(),
            "db_tables": health.db_tables,
            "phase": self._life.phase or "phase1",
            "mode": admission.mode.value,
            "project": self._project,
            "db": self._database(health),
            "condition": self._condition(health),
            "tools": {"count": len(names), "names": names},
            "capabilities": sorted(one.value for one in MODE_GRANTS[admission.mode]),
            "stages": list(STAGES),
            "skill_count": health.skill_count,
            "queues": {lane: len(admission.load.of(lane)) for lane in ("read", "write")},
            "open_calls": health.snapshot.open_calls,
            "dropped": health.counts(),
        }

    def _database(self, health: Health) -> dict[str, object]:
        return {
            "path": self._name,
            "status": self._journal.status,
            "size_bytes": _size(self._path),
            "wal_bytes": _size(None if self._path is None else self._path + "-wal"),
            "engine": health.engine_version,
        }

    def _condition(self, health: Health) -> dict[str, object]:
        condition, snapshot = health.condition, health.snapshot
        checks = {**snapshot.checks, "disk": "full" if health.disk_full else "ok"}
        if condition.why:
            checks["condition"] = condition.why
        if health.unreachable:
            checks["server"] = health.unreachable
        if health.diverged:
            checks["heads"] = health.diverged
        at = snapshot.at_ms
        age = None if at is None else max(0, int(self._clock.now_ms() - at))
        state, cause = condition.state.value, condition.cause
        return {"state": state, "cause": cause, "checks": checks, "age_ms": age}


def _size(path: str | None) -> int:
    try:
        return 0 if path is None else os.stat(path).st_size
    except OSError:
        return 0
