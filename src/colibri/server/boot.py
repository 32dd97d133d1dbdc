"""Starts a server, in six steps.

    1 create         the parts, each with what it needs: no descriptor, handler or database yet
    2 register       the tools, from catalogue.json, without loading msgspec
    3 connect        the transport, before the database, so that no client times out
    4 answer         the handshake: phase1
    5 load database  lock file, open, migrate, check; this step and the next on the write thread
    6 load domains   tools and skills, the health loop; then phase2

If step 5 fails, the server stays in phase1: the probes answer and say why, every other call gets
UNAVAILABLE, and the process later exits with 75.
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
from colibri.server.call import Load, Registered
from colibri.server.checks import Checks
from colibri.server.faults import CommitFailed
from colibri.server.health import Health
from colibri.server.ids import Ids
from colibri.server.journal import Journal
from colibri.server.lanes import ReadLane, WriteLane
from colibri.server.life import Life
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
    from colibri.server.clock import Clock, Patience
    from colibri.server.transport import Transport
    from colibri.store.connection import Connection
    from colibri.store.home import Home

EX_RESOURCE = 75
BOOT_RECORDS = 1000
_OPENING_SECONDS = 0.1


class _Stopping(ResourceError):
    """The server is shutting down, so it no longer waits for the lock file."""


class Parts:
    """The parts of one server, built from the inside out: each knows only parts built before it."""

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
    ) -> None:  # 1
        self.version, self.log, self.transport, self.clock = version, log, transport, clock
        self._limits, self._config = limits, None if mode == Mode.MINIMAL else config
        self._found_home: Home | None = None
        self._ids = ids = Ids(config.seed if config and mode == Mode.TEST else None)
        self.life = life = Life(log, transport.wake)
        self.health = health = Health(log)
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

    def register(self) -> None:
        """Step 2: every tool of the catalogue; those that need msgspec get a handler in step 6."""
        path = os.path.join(os.path.dirname(colibri.__file__), "tools", "catalogue.json")
        with open(path, encoding="utf-8") as file:
            catalogue = json.load(file)
        self.admission.instructions = catalogue["instructions"]
        tools = self.admission.tools
        for entry in catalogue["tools"]:
            capability = Capability(entry["capability"])
            tool = Registered(
                entry["listing"],
                lane=entry["lane"],
                capability=capability,
                pattern=entry["pattern"],
            )
            tools[tool.name] = tool
        tools["server_ping"].run = lambda work, args: canonical.encode(self.probes.ping())
        tools["server_health"].run = lambda work, args: canonical.encode(self.probes.report())

    def start(self) -> None:
        """Steps 3 and 4; steps 5 and 6 follow on the write thread."""
        self.log("info", f"[colibri] starting in mode={self.admission.mode} version={self.version}")
        self.life.phase = "phase1"
        _connect(self.transport, self._limits.startup_timeout_ms / 1000)  # 3
        self.life.connected = True  # 4
        for lane in (self.write, self.read):
            lane.thread.start()
        self.log("info", "[colibri] ready")
        if os.isatty(0):
            self.log("info", "[colibri] waiting for an MCP client on stdin; Ctrl-D ends the server")

    def _load(self) -> None:
        """When this returns, calls can be served, or it is clear that they cannot."""
        self.life.may_load.wait(_OPENING_SECONDS)
        try:
            if self._config is not None and self._load_database(self._config):  # 5
                self._load_domains(self._config)  # 6
                self.life.phase = "phase2"
                self.log("info", f"[Startup] Complete in {self.clock.uptime_ms()}ms")
        finally:
            self.life.store_ready.set()

    def _load_database(self, config: "Config") -> bool:
        """Whether the database is open now; a failure is logged and kept in the journal."""
        from colibri.store.faults import errors

        try:
            home = self._home(config)
            if self.admission.mode == Mode.READONLY:
                self._open_readonly(home, config)
            else:
                self._open(home, config)
        except _Stopping as problem:
            self.journal.failure = problem.message
            return False
        except errors(ColibriError, OSError) as problem:
            hint = getattr(problem, "hint", "")
            self.journal.failure = f"{problem}; {hint}" if hint else str(problem)
            self.journal.status = f"not open: {problem}"
            self.life.exit_code = self.life.exit_code or EX_RESOURCE
            self.log("error", f"[colibri] cannot open {config.ledger_name}: {problem}")
            if hint:
                self.log("error", f"[colibri] hint: {hint}")
            return False
        self.health.engine_version = home.version()
        if exposure := home.exposure():
            self.log("warn", f"[colibri] {exposure}")
        return True

    def _home(self, config: "Config") -> "Home":
        """Where the ledger is. This loads apsw or psycopg: not on the main thread."""
        if self._found_home is None:
            from colibri.store.homes import home_of

            self._found_home = home_of(*config.home)
        return self._found_home

    def _open(self, home: "Home", config: "Config") -> None:
        from colibri.server.keeper import Keeper
        from colibri.server.recorder import Recorder
        from colibri.store import gate_file

        opened = home.open_writer(
            timeout=config.startup_timeout_ms / 1000,
            monotonic=time.monotonic,
            sleep=self._sleep,
            stamp=self.clock.utc().replace(":", "").replace(".", ""),
            new_log=self._ids.log,
        )
        gates = gate_file.read(config.project)
        try:
            self.journal.recorder = recorder = Recorder(
                opened,
                ids=self._ids,
                clock=self.clock,
                health=self.health,
                config=config,
                gates=gates,
                idle_shutdown=lambda: self.life.stop_reason is not None and not len(self.load),
            )
            self.journal.keeper = Keeper(recorder, config, self.health)
            _check_store(opened.db, self.health, config, opened.unclean or home.is_small())
        except BaseException:
            self.journal.recorder = None
            opened.close()
            raise
        self._take_in_deeds(config.db_path)
        self.journal.status = "open"
        if gates.problem is not None:
            self.log("error", f"[colibri] {gates.problem}; until then no task can be DONE")
        if opened.backup is not None:
            was = f"[colibri] migrated {home.name} from version {opened.migrated_from}"
            self.log("info", f"{was}; the file as it was is {opened.backup}")

    def _take_in_deeds(self, path: str) -> None:
        """Record the deeds that hooks could not; if that fails, they stay in the spool."""
        assert self.journal.recorder is not None
        try:
            if size := self.journal.recorder.take_in(path):
                waited = f"recorded the deeds that waited in {path}-spool ({size} bytes)"
                self.log("info", f"[colibri] {waited}")
        except (ColibriError, CommitFailed) as problem:
            self.log("warn", f"[colibri] the deeds in {path}-spool still wait: {problem}")

    def _open_readonly(self, home: "Home", config: "Config") -> None:
        connection = home.open_reader()
        try:
            _check_store(connection, self.health, config, whole=False)
        finally:
            connection.close()
        self.journal.status = "open, read-only"

    def _sleep(self, seconds: float) -> None:
        if self.life.stop_reason is not None and self.journal.recorder is None:
            raise _Stopping("the server is shutting down")
        time.sleep(seconds)

    def _load_domains(self, config: "Config") -> None:
        # These imports load msgspec and the handlers.
        from colibri.store import skills
        from colibri.tools.catalogue import CATALOGUE

        tools, declared = self.admission.tools, {tool.name: tool for tool in CATALOGUE}
        for name in declared.keys() & tools.keys():
            tools[name].bind(declared[name])
        # Later the health thread reads them: that loads PyYAML, and no call should wait for that.
        self.health.skill_count = skills.count_files(config.skills_root, config.project)
        reader = self.open_reader(watched=True)
        if reader is not None:
            self.checks.start(reader, self._home(config).exposure)

    def open_reader(
        self, patience: "Patience | None" = None, *, watched: bool = False
    ) -> "Connection | None":
        """A read-only connection for one thread; None if no database can be read.

        The write thread checks that the ledger is the same before it commits. If there is no write
        thread, or with `watched`, each transaction of this connection begins with the same check.
        """
        if self._config is None or self.journal.failure is not None:
            return None
        from colibri.store.faults import errors

        recorder = self.journal.recorder
        try:
            watched = watched or recorder is None
            reader = self._home(self._config).open_reader(watched=watched, patience=patience)
            if recorder is not None:
                recorder.opened.check_again()  # so both connections have the same files
        except errors(ColibriError) as problem:  # it could be opened a moment ago
            cause = "integrity" if isinstance(problem, Damaged) else "io"
            self.health.degrade(cause, str(problem))
            return None
        return reader


def _connect(transport: "Transport", timeout: float) -> None:
    """Step 3, within COLIBRI_STARTUP_TIMEOUT_MS."""
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


def _check_store(db: "Connection", health: Health, config: "Config", whole: bool) -> None:
    """Check the newest records; a damaged ledger can still be read, in SAFE_MODE."""
    from colibri.store import heads, ledger
    from colibri.store.faults import errors, fault

    health.db_tables = db.engine.table_count(db)
    problems = []
    try:
        if (head := ledger.head(db)) is not None:
            from colibri.store import record_check  # 5 ms that a new ledger need not pay

            breaks = record_check.check_range(db, max(1, head.seq - BOOT_RECORDS + 1), head.seq)
            problems = [f"record {one.seq}: {one.what}: {one.detail}" for one in breaks]
        health.diverge(heads.problem(db, config.ledger_name, config.state))
        if whole:
            problems += db.engine.quick_check(db, None)
    except errors() as problem:
        if fault(problem) != "damaged":
            raise
        problems = [f"the database file is damaged: {problem}"]
    if problems:
        health.degrade("integrity", problems[0])
