"""Boot steps 5 and 6, on the write thread, and their counterpart at the end.

    5 load database  lock file, open, migrate, check
    6 load domains   tools and skills, the health loop; then phase2

If 5 fails the server stays in phase1: the probes answer and say why, every other call gets
UNAVAILABLE, and at its end the process exits with 75.
"""

import os
import time

from colibri.core.errors import ColibriError, ResourceError
from colibri.core.modes import Mode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from colibri.config import Config
    from colibri.server.context import ColibriServerContext
    from colibri.store.connection import Connection

EX_RESOURCE = 75
BOOT_RECORDS = 1000
QUICK_CHECK_BYTES = 64 * 1024 * 1024
_OPENING_SECONDS = 0.1


class _Stopping(ResourceError):
    """The wait for the lock file was given up because nobody needs the database any more."""


def open_store(ctx: "ColibriServerContext") -> None:
    """Steps 5 and 6; when this returns calls can be served or are known to be impossible."""
    ctx.may_load.wait(_OPENING_SECONDS)
    try:
        if ctx.config is None or ctx.mode == Mode.MINIMAL:
            return
        if _load_database(ctx, ctx.config):  # 5
            _load_domains(ctx, ctx.config)  # 6
    finally:
        ctx.store_ready.set()


def _load_database(ctx: "ColibriServerContext", config: "Config") -> bool:
    # This loads apsw: off the main thread, and not at all in MINIMAL.
    from colibri.store.faults import DatabaseError
    from colibri.store.sqlite import place
    from colibri.store.sqlite.connection import library_version

    try:
        if ctx.mode == Mode.READONLY:
            _look_at_database(ctx, config)
        else:
            _open_database(ctx, config)
    except _Stopping as problem:
        ctx.store_failure = problem.message
        return False
    except (ColibriError, OSError, DatabaseError) as problem:
        ctx.store_failure = str(problem)
        ctx.store_status = f"not open: {problem}"
        ctx.exit_code = ctx.exit_code or EX_RESOURCE
        ctx.log("error", f"[colibri] cannot open {config.db_path}: {problem}")
        if hint := getattr(problem, "hint", ""):
            ctx.log("error", f"[colibri] hint: {hint}")
        return False
    ctx.health.sqlite_version = library_version()
    if exposure := place.exposure(config.db_path):
        ctx.log("warn", f"[colibri] {exposure}")
    return True


def _open_database(ctx: "ColibriServerContext", config: "Config") -> None:
    from colibri.server.recorder import Recorder
    from colibri.store.sqlite import opening

    opened = opening.open_writer(
        config.db_path,
        lock_timeout=config.startup_timeout_ms / 1000,
        monotonic=time.monotonic,
        sleep=_sleep_unless_stopping(ctx),
        stamp=ctx.utc().replace(":", "").replace(".", ""),
        new_log=ctx.ids.log,
    )
    try:
        recorder = Recorder(
            opened,
            ids=ctx.ids,
            utc=ctx.utc,
            health=ctx.health,
            hurried=lambda: ctx.stop_reason is not None and not len(ctx.load),
        )
        small = os.stat(config.db_path).st_size <= QUICK_CHECK_BYTES
        _check(ctx, opened.db, whole=small or opened.unclean)
    except BaseException:
        opening.close(opened)
        raise
    ctx.pipeline.recorder = recorder
    ctx.store_status = "open"
    if opened.backup is not None:
        was = f"[colibri] migrated {config.db_path} from version {opened.migrated_from}"
        ctx.log("info", f"{was}; the file as it was is {opened.backup}")


def _sleep_unless_stopping(ctx: "ColibriServerContext") -> "Callable[[float], None]":
    def sleep(seconds: float) -> None:
        if ctx.stop_reason is not None:
            raise _Stopping("the server is shutting down")
        time.sleep(seconds)

    return sleep


def _look_at_database(ctx: "ColibriServerContext", config: "Config") -> None:
    from colibri.store.sqlite import opening

    connection = opening.open_reader(config.db_path)
    try:
        _check(ctx, connection, whole=False)
    finally:
        connection.close()
    ctx.store_status = "open, read-only"


def _check(ctx: "ColibriServerContext", connection: "Connection", *, whole: bool) -> None:
    """A damaged ledger is still opened, for reading: SAFE_MODE says what is wrong with it."""
    from colibri.store.faults import DatabaseError, fault
    from colibri.store.sqlite import schema

    ctx.health.db_tables = schema.table_count(connection)
    try:
        problems = _broken_records(connection)
        if whole:
            problems += schema.quick_check(connection, None)
    except DatabaseError as problem:
        if fault(problem) != "damaged":
            raise
        problems = [f"the database file is damaged: {problem}"]
    if problems:
        ctx.health.degrade("integrity", problems[0])


def _broken_records(connection: "Connection") -> list[str]:
    """What is wrong with the newest records."""
    from colibri.store import ledger

    head = ledger.head(connection)
    if head is None:
        return []
    breaks = ledger.check_range(connection, max(1, head.seq - BOOT_RECORDS + 1), head.seq)
    return [f"record {broken.seq}: {broken.what}: {broken.detail}" for broken in breaks]


def _load_domains(ctx: "ColibriServerContext", config: "Config") -> None:
    from colibri.core import canonical
    from colibri.store import skills
    from colibri.tools import schema
    from colibri.tools.catalogue import CATALOGUE  # this loads msgspec

    canonical.dump = schema.dump
    for tool in CATALOGUE:
        if tool.name in ctx.tools:
            ctx.tools[tool.name].bind(tool)
    # The health thread then reads them: that takes PyYAML, for which no call shall wait.
    ctx.health.skill_count = skills.count_files(config.skills_root, config.project)
    ctx.checks.start(open_reader(ctx))
    ctx.phase = "phase2"
    ctx.log("info", f"[Startup] Complete in {ctx.uptime_ms()}ms")


def open_reader(ctx: "ColibriServerContext") -> "Connection | None":
    """A read-only connection for a thread of its own; None where no database can be read."""
    if ctx.config is None or ctx.mode == Mode.MINIMAL or ctx.store_failure is not None:
        return None
    from colibri.store.sqlite import opening

    try:
        return opening.open_reader(ctx.config.db_path)
    except ColibriError as problem:  # it was there a moment ago
        ctx.health.degrade("io", str(problem))
        return None


def close_store(ctx: "ColibriServerContext") -> None:
    """Close the database and let go of its lock file."""
    recorder, ctx.pipeline.recorder = ctx.pipeline.recorder, None
    if recorder is not None:
        from colibri.store.sqlite import opening

        opening.close(recorder.opened, checkpoint=ctx.health.condition.cause != "io")
        ctx.store_status = "closed"
        ctx.health.db_tables = 0
