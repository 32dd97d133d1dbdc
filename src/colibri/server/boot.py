"""From nothing to a server that answers, in six steps.

    1 create         the parts, each with what it needs: no descriptor, handler or database
    2 register       the tools, from catalogue.json: msgspec is not loaded yet
    3 connect        the transport, before the database, so that no client times out
    4 answer         the handshake: phase1
    5 load database  lock file, open, migrate, check; on the write thread, as is the next
    6 load domains   tools and skills, the health loop; then phase2

If 5 fails the server stays in phase1: the probes answer and say why, every other call gets
UNAVAILABLE, and at its end the process exits with 75.
"""

import json
import os
import threading
import time

import colibri
from colibri.core import canonical
from colibri.core.errors import ColibriError, Damaged, ResourceError
from colibri.core.modes import Capability, Mode
from colibri.server.admission import Admission
from colibri.server.answers import Answers
from colibri.server.audit import Audit
from colibri.server.call import Registered
from colibri.server.checks import Checks
from colibri.server.health import Health
from colibri.server.ids import Ids
from colibri.server.journal import Journal
from colibri.server.lanes import ReadLane, WriteLane
from colibri.server.life import Life
from colibri.server.load import Load
from colibri.server.log import Log
from colibri.server.loop import Loop
from colibri.server.outbox import Outbox
from colibri.server.pipeline import Pipeline
from colibri.server.probes import Probes
from colibri.server.shutdown import End
from colibri.server.wire import Wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from colibri.config import Config
    from colibri.server.audit import AuditSink
    from colibri.server.clock import Clock
    from colibri.server.transport import Transport
    from colibri.store.connection import Connection

EX_RESOURCE = 75
BOOT_RECORDS = 1000
QUICK_CHECK_BYTES = 64 * 1024 * 1024
_OPENING_SECONDS = 0.1


class _Stopping(ResourceError):
    """The wait for the lock file was given up because nobody needs the database any more."""


class Parts:
    """1: the parts of one server, made from the inside out; each knows those before it at most."""

    def __init__(  # noqa: PLR0913 - what create_server chooses
        self,
        version: str,
        mode: Mode,
        *,
        limits: "Config",
        config: "Config | None",
        sink: "AuditSink",
        transport: "Transport",
        clock: "Clock",
        log: Log,
    ) -> None:
        self.version, self.log, self.transport, self.clock = version, log, transport, clock
        self.life = life = Life(log, transport.wake)
        self.health = health = Health(log)
        ids = Ids(config.seed if config and mode == Mode.TEST else None)
        self.journal = journal = Journal(config, mode, health, life.uncaught)
        self.load = load = Load(transport.wake)
        self.admission = Admission(mode, life, health, load)
        audit, answers = Audit(sink, journal, clock, ids, log), Answers(version)
        self.outbox = outbox = Outbox(transport, answers, audit, journal, load, life.may_load)
        self.pipeline = pipeline = Pipeline(
            journal, audit, outbox, clock, ids=ids, health=health, say=log, limits=limits,
            show_stacks=mode == Mode.TEST,
        )  # fmt: skip
        self.probes = Probes(version, config, clock, life, self.admission, journal)
        self._limits = limits
        self._store = Store(config, mode, clock, ids, log, life)
        common = (pipeline, load, outbox.room)
        self.write = WriteLane(*common, journal, self._load)
        self.read = ReadLane(*common, life.store_ready, self.open_reader)
        self.checks = Checks(limits, clock, health, load, (self.read.put, self.write.put))
        journal.attach(self.write.put)
        self.admission.attach(pipeline, {"read": self.read.put, "write": self.write.put})
        self.wire = Wire(self.admission, answers, outbox.send)
        self.loop = loop = Loop(life, transport, outbox, self.wire, load)
        lanes = (self.read, self.write)
        self.end = End(life, loop, self.checks, lanes, journal, health, log)

    def start(self) -> None:
        """3 and 4; 5 and 6 follow on the write thread."""
        self.log("info", f"[colibri] starting in mode={self.admission.mode} version={self.version}")
        self.life.phase = "phase1"
        connect(self.transport, self._limits.startup_timeout_ms / 1000)  # 3
        self.life.connected = True  # 4
        for lane in (self.write, self.read):
            lane.thread.start()
        self.log("info", "[colibri] ready")

    def _load(self) -> None:
        """When this returns calls can be served or are known to be impossible."""
        self.life.may_load.wait(_OPENING_SECONDS)
        try:
            if self._store.bring_up(self.journal, self.health, self.load):  # 5
                load_tools(self.admission, self.health, self._limits)  # 6
                self.checks.start(self.open_reader())
                self.life.phase = "phase2"
                self.log("info", f"[Startup] Complete in {self.clock.uptime_ms()}ms")
        finally:
            self.life.store_ready.set()

    def open_reader(self) -> "Connection | None":
        """A read-only connection for a thread of its own; None where no database can be read."""
        return self._store.reader(self.journal, self.health)


def register(admission: Admission, probes: Probes) -> None:
    """2: every tool of the catalogue; those that need msgspec get their handlers in step 6."""
    path = os.path.join(os.path.dirname(colibri.__file__), "tools", "catalogue.json")
    with open(path, encoding="utf-8") as file:
        catalogue = json.load(file)
    admission.instructions = catalogue["instructions"]
    for entry in catalogue["tools"]:
        tool = Registered(
            entry["listing"],
            lane=entry["lane"],
            capability=Capability(entry["capability"]),
            pattern=entry["pattern"],
        )
        admission.tools[tool.name] = tool
    admission.tools["server_ping"].run = lambda work, args: canonical.encode(probes.ping())
    admission.tools["server_health"].run = lambda work, args: canonical.encode(probes.report())


def connect(transport: "Transport", timeout: float) -> None:
    """3, within COLIBRI_STARTUP_TIMEOUT_MS."""
    failures: list[BaseException] = []

    def start() -> None:
        try:
            transport.start()
        except BaseException as problem:
            failures.append(problem)

    thread = threading.Thread(target=start, name="colibri-connect", daemon=True)
    thread.start()
    thread.join(timeout)
    if thread.is_alive():
        raise ResourceError("startup timeout exceeded")
    if failures:
        raise failures[0]


class Store:
    """5: the database of one server, from the lock file to the first look at its records."""

    def __init__(
        self, config: "Config | None", mode: Mode, clock: "Clock", ids: Ids, log: Log, life: Life
    ) -> None:
        self._config = None if mode == Mode.MINIMAL else config
        self._mode = mode
        self._clock = clock
        self._ids = ids
        self._log = log
        self._life = life

    def bring_up(self, journal: Journal, health: Health, load: Load) -> bool:
        """Whether there is a database now; why not is said, and kept in the journal."""
        if self._config is None:
            return False
        # This loads apsw: off the main thread, and not at all in MINIMAL.
        from colibri.store.faults import DatabaseError
        from colibri.store.sqlite import place
        from colibri.store.sqlite.connection import library_version

        try:
            if self._mode == Mode.READONLY:
                self._look(self._config, journal, health)
            else:
                self._open(self._config, journal, health, load)
        except _Stopping as problem:
            journal.failure = problem.message
            return False
        except (ColibriError, OSError, DatabaseError) as problem:
            journal.failure = str(problem)
            journal.status = f"not open: {problem}"
            self._life.exit_code = self._life.exit_code or EX_RESOURCE
            self._log("error", f"[colibri] cannot open {self._config.db_path}: {problem}")
            if hint := getattr(problem, "hint", ""):
                self._log("error", f"[colibri] hint: {hint}")
            return False
        health.sqlite_version = library_version()
        if exposure := place.exposure(self._config.db_path):
            self._log("warn", f"[colibri] {exposure}")
        return True

    def _open(self, config: "Config", journal: Journal, health: Health, load: Load) -> None:
        from colibri.server.recorder import Recorder
        from colibri.store.sqlite import opening

        opened = opening.open_writer(
            config.db_path,
            lock_timeout=config.startup_timeout_ms / 1000,
            monotonic=time.monotonic,
            sleep=self._sleep,
            stamp=self._clock.utc().replace(":", "").replace(".", ""),
            new_log=self._ids.log,
        )
        try:
            journal.recorder = Recorder(
                opened,
                ids=self._ids,
                clock=self._clock,
                health=health,
                idle_shutdown=lambda: self._life.stop_reason is not None and not len(load),
            )
            small = os.stat(config.db_path).st_size <= QUICK_CHECK_BYTES
            _check(opened.db, health, whole=small or opened.unclean)
        except BaseException:
            journal.recorder = None
            opening.close(opened)
            raise
        journal.status = "open"
        if opened.backup is not None:
            was = f"[colibri] migrated {config.db_path} from version {opened.migrated_from}"
            self._log("info", f"{was}; the file as it was is {opened.backup}")

    def _look(self, config: "Config", journal: Journal, health: Health) -> None:
        from colibri.store.sqlite import opening

        connection = opening.open_reader(config.db_path)
        try:
            _check(connection, health, whole=False)
        finally:
            connection.close()
        journal.status = "open, read-only"

    def _sleep(self, seconds: float) -> None:
        if self._life.stop_reason is not None:
            raise _Stopping("the server is shutting down")
        time.sleep(seconds)

    def reader(self, journal: Journal, health: Health) -> "Connection | None":
        """A read-only connection for a thread of its own; None where no database can be read."""
        if self._config is None or journal.failure is not None:
            return None
        from colibri.store.faults import DatabaseError
        from colibri.store.sqlite import opening
        from colibri.store.sqlite.identity import check_same_place

        try:
            alone = journal.recorder is None
            reader = opening.open_reader(self._config.db_path, watch_files=alone)
            if journal.recorder is not None:
                check_same_place(journal.recorder.opened)  # so both have the same files
            return reader
        except (ColibriError, DatabaseError) as problem:  # it was there a moment ago
            health.degrade("integrity" if isinstance(problem, Damaged) else "io", str(problem))
            return None


def _check(connection: "Connection", health: Health, *, whole: bool) -> None:
    """A damaged ledger is still opened, for reading: SAFE_MODE says what is wrong with it."""
    from colibri.store import ledger, verify
    from colibri.store.faults import DatabaseError, fault
    from colibri.store.sqlite import schema

    health.db_tables = schema.table_count(connection)
    problems = []
    try:
        if (head := ledger.head(connection)) is not None:
            first = max(1, head.seq - BOOT_RECORDS + 1)
            breaks = verify.check_range(connection, first, head.seq)
            problems = [f"record {one.seq}: {one.what}: {one.detail}" for one in breaks]
        if whole:
            problems += schema.quick_check(connection, None)
    except DatabaseError as problem:
        if fault(problem) != "damaged":
            raise
        problems = [f"the database file is damaged: {problem}"]
    if problems:
        health.degrade("integrity", problems[0])


def load_tools(admission: Admission, health: Health, config: "Config") -> None:
    """6: this loads msgspec, and the handlers."""
    from colibri.store import skills
    from colibri.tools.catalogue import CATALOGUE

    for tool in CATALOGUE:
        if tool.name in admission.tools:
            admission.tools[tool.name].bind(tool)
    # The health thread then reads them: that takes PyYAML, for which no call shall wait.
    health.skill_count = skills.count_files(config.skills_root, config.project)
