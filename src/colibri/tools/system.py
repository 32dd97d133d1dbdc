"""Declarations of the two probes; server/probes.py answers them, on the main thread."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from colibri.core.modes import Capability
from colibri.tools.tool import Tool

Count = Annotated[int, Meta(ge=0)]
ModeName = Literal["FULL", "READONLY", "TEST", "MINIMAL"]


class Nothing(Struct):
    """No arguments; unknown keys are ignored."""


class Ping(Struct):
    version: str
    mode: ModeName
    uptime_ms: Count


class Database(Struct):
    path: str | None
    status: str
    size_bytes: Count
    wal_bytes: Count
    engine: str | None


class Condition(Struct):
    state: Literal["NORMAL", "SAFE_MODE", "DIAGNOSE"]
    cause: str | None
    checks: dict[str, str]
    age_ms: int | None


class Tools(Struct):
    count: Count
    names: list[str]


class Lanes(Struct):
    read: Count
    write: Count


class Dropped(Struct):
    probe_records: Count
    overloaded: Count
    unavailable: Count
    shutting_down: Count
    log_lines: Count


class Project(Struct):
    path: str | None
    found_by: str | None


class Health(Struct):
    status: Literal["ok"]
    version: Annotated[str, Meta(min_length=1)]
    uptime_ms: Count
    db_tables: Count
    phase: Literal["phase1", "phase2"]
    mode: ModeName
    project: Project
    db: Database
    condition: Condition
    tools: Tools
    capabilities: list[str]
    stages: list[str]
    skill_count: Count
    queues: Lanes
    open_calls: Count
    dropped: Dropped


def _probe(name: str, title: str, description: str, output: type[Struct]) -> Tool:
    return Tool(
        name=name,
        title=title,
        description=description,
        input=Nothing,
        output=output,
        lane="probe",
        capability=Capability.PROBE,
        idempotent=True,
    )


TOOLS = (
    _probe(
        "server_ping",
        "Ping",
        "Whether Colibri is up: its version, mode and uptime, at once and without the database.",
        Ping,
    ),
    _probe(
        "server_health",
        "Health",
        "Ask this when something seems wrong: whether the database is open and where it is, whether"
        " writing is held back and why, which tools and how many skills there are, what waits.",
        Health,
    ),
)
