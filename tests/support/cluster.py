"""PostgreSQL servers of a trial's own, which it may kill, fill up, cut off and replace."""

import importlib.util
import os
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Protocol, Self

from colibri.core.report import Report
from colibri.store.verify import verify
from tests.support import postgres_keeper
from tests.support.client import JSON
from tests.support.far import socket_of
from tests.support.ledger_reader import LOG, eventually
from tests.support.postgres_keeper import SUPERUSER

DATABASE = "postgres"
# A small write-ahead log, which is soon full; and what nobody flushes is lost in a crash.
FRAIL = {"wal_writer_delay": "10s", "max_wal_size": "4MB", "min_wal_size": "2MB"}
AS_INSTALLED = {"shared_buffers": "128MB"}


def needs() -> str:
    """Why there cannot be one here, or ""."""
    if importlib.util.find_spec("psycopg") is None:
        return "psycopg is missing: scripts/setup dev installs it"
    from tests.support import postgres

    return "" if postgres.programs() else "PostgreSQL is missing: .ci/run installs Debian's package"


class Cluster:
    """One server, running until the end of a with block; over its socket everybody is trusted.

    It is made for faults, unless it shall be `as_installed`, with PostgreSQL's own settings.
    """

    def __init__(
        self, at: Path | None = None, *, wal_elsewhere: bool = False, as_installed: bool = False
    ) -> None:
        from tests.support import postgres

        self.directory = at or Path(tempfile.mkdtemp(prefix="colibri-cluster-"))
        self._as_installed = as_installed
        self._elsewhere = Path(tempfile.mkdtemp(prefix="colibri-wal-")) if wal_elsewhere else None
        user = "" if os.getuid() else postgres._unprivileged()
        for directory in filter(None, (self.directory, self._elsewhere)):
            if user:
                shutil.chown(directory, user)
        self._started = postgres_keeper.starting(self.directory, user)
        found = postgres.programs()
        assert found is not None
        self._programs = found
        self.port = postgres_keeper.free_port()
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        for directory in filter(None, (self.directory, self._elsewhere)):
            shutil.rmtree(directory, ignore_errors=True)

    def make(self) -> Self:
        """Its files, and start it."""
        wal = [f"--waldir={self._elsewhere}/wal"] if self._elsewhere else []
        if not self._as_installed:
            wal.append("--wal-segsize=1")
        postgres_keeper.initialize(self._programs, self.directory, self._started, *wal)
        return self.start()

    def copy(self, primary: "Cluster") -> Self:
        """Become a standby of another cluster that runs, by streaming."""
        self._run(
            "pg_basebackup",
            "--pgdata=data",
            f"--host={primary.directory}",
            f"--port={primary.port}",
            f"--username={SUPERUSER}",
            "--checkpoint=fast",
            "--no-sync",
            "--write-recovery-conf",
        )
        return self.start()

    def start(self) -> Self:
        (self.directory / "data" / "postmaster.pid").unlink(missing_ok=True)
        self.process = postgres_keeper.start(
            self._programs,
            self.directory,
            self.port,
            self._started,
            listen_addresses="",
            **(AS_INSTALLED if self._as_installed else FRAIL),
            wal_keep_size="64MB" if self._elsewhere is None else "0",
        )
        return self

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def kill(self) -> None:
        """All of its processes, at once: nothing is written any more."""
        if self.process is None:
            return
        self.process.send_signal(signal.SIGSTOP)  # or it would start others
        children = self.children()
        for pid in children:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.kill()
        self.process.wait()
        eventually(lambda: not any(_is_alive(pid) for pid in children), "the end of PostgreSQL")
        self.process = None

    def children(self, title: str = "") -> list[int]:
        """Its processes of a kind, such as walreceiver."""
        assert self.process is not None
        listed = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        with suppress(OSError):
            found = [int(pid) for pid in listed.read_text().split()]
            return [pid for pid in found if title in _title(pid)]
        return []

    def promote(self) -> None:
        """Make a standby a primary, with what it has."""
        with self.connect() as admin:
            admin.execute("SELECT pg_promote(true, 60)")

    def wait_synchronous(self) -> None:
        """From now on commits wait for the standby that is connected."""
        with self.connect() as admin:
            admin.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
            admin.execute("SELECT pg_reload_conf()")
            query = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'"
            eventually(lambda: admin.execute(query).fetchone() == (1,), "a synchronous standby")

    def swap(self, other: "Cluster") -> None:
        """Let each of two names lead to the other's server."""
        self.__dict__, other.__dict__ = other.__dict__, self.__dict__

    @property
    def socket(self) -> str:
        return socket_of(self.directory, self.port)

    def url(self, user: str = SUPERUSER) -> str:
        host = str(self.directory).replace("/", "%2F")
        return f"postgresql://{user}@{host}:{self.port}/{DATABASE}"

    def connect(self, user: str = SUPERUSER) -> Any:
        import psycopg

        return psycopg.connect(self.url(user), autocommit=True)

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._programs / program), *arguments]
        done = subprocess.run(command, **self._started, check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


class Database(Protocol):
    """What can be asked: such a cluster, or the server of the tests."""

    def url(self, user: str = ...) -> str: ...

    def connect(self, user: str = ...) -> Any: ...


def execute(database: Database, statement: str) -> list[Any]:
    """As the superuser; the rows, if it has any."""
    with closing(database.connect()) as admin:
        done = admin.execute(statement.encode())
        return done.fetchall() if done.description else []


def make_schema(database: Database, name: str) -> str:
    """A ledger without a record."""
    from colibri.store.postgres import team

    with closing(database.connect()) as admin:
        team.make(admin, name, LOG)
    return name


def verified(database: Database, schema: str) -> Report:
    """The verdict about a whole log."""
    from colibri.store.postgres.home import Home

    home = Home(database.url(f"{schema}_reader"), "the trial's ledger", schema)
    with closing(home.open_reader()) as db:
        return verify(db, pause=lambda: None)


def missing(database: Database, schema: str, receipts: list[JSON]) -> list[JSON]:
    """The receipts whose record the ledger does not have."""
    leaves = dict(execute(database, f"SELECT seq, leaf FROM {schema}.ledger"))
    return [one for one in receipts if leaves.get(one["seq"]) != bytes.fromhex(one["head"])]


def _title(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    return ""


def _is_alive(pid: int) -> bool:
    with suppress(OSError):
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        return state not in "ZX"
    return False


def wait(seconds: float) -> None:
    """A moment of the fault itself: there is no event to wait for."""
    time.sleep(seconds)
