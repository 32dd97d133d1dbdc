"""A project with a ledger, and the real program run on payloads of real hosts.

Some modules run twice, with the ledger in a file and on PostgreSQL: the fixture `engine` chooses.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from colibri.store.sqlite import opening
from tests.hook.fixtures import environment, payload
from tests.support import engines
from tests.support.client import Server
from tests.support.client import environment as bare
from tests.support.ledger_reader import reading, verified
from tests.support.program import UNMEASURED

# As hosts run it. Not measured for coverage, which hangs if the alarm rings while it is saved.
HOOK = (sys.executable, "-m", "colibri", "hook")
_SLOWLY = (
    "import sys; from colibri.hook import clock; clock.SECONDS = clock.SECONDS_AT_END = 60.0; {}"
    " sys.argv = ['colibri', 'hook']; from colibri.__main__ import main; main()"
)
# The same with all the time of the world: for tests that are not about time, on busy machines.
PATIENT = (sys.executable, "-c", _SLOWLY.format(""))
# One that soon stops waiting for the database, and then has all that time to spool.
HURRIED = (sys.executable, "-c", _SLOWLY.format("clock._FOR_SPOOL = 59.9;"))


class Said(NamedTuple):
    """What a hook answered; its exit code; how long it took."""

    code: int
    out: str
    err: str
    seconds: float


class Project:
    """A directory with a ledger, and the hooks of hosts that work in it."""

    def __init__(self, root: Path, home: Path) -> None:
        self.root = root
        self.home = home
        self.database = root / "data" / "colibri.db"

    def beside(self, end: str) -> Path:
        return self.database.with_name(self.database.name + end)

    def make_ledger(self) -> None:
        if engines.chosen() == "postgres":
            engines.schema_of(self.root)
            return
        opening.open_writer(
            str(self.database),
            lock_timeout=5,
            monotonic=time.monotonic,
            sleep=time.sleep,
            stamp="now",
            new_log=lambda: "colibri/" + os.urandom(16).hex(),
        ).close()

    def environment(self, host: str, **extra: str) -> dict[str, str]:
        told = environment(host) if host else {}
        here = {name: value.replace("/project", str(self.root)) for name, value in told.items()}
        ledger = engines.environment(self.root)
        return {**bare(), "HOME": str(self.home), **here, **ledger, **extra}

    def payload(self, host: str, name: str, **changes: Any) -> bytes:
        """A real payload, as if the host worked here."""
        text = json.dumps(payload(host, name)).replace("/project", str(self.root))
        return json.dumps({**json.loads(text), **changes}).encode()

    def start(
        self, data: bytes, program: tuple[str, ...] = PATIENT, **env: str
    ) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            program,
            cwd=self.root,
            env=self.environment("claude-code", **(UNMEASURED if program is HOOK else {}), **env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert process.stdin is not None
        process.stdin.write(data)
        process.stdin.close()
        process.stdin = None
        return process

    def send(
        self,
        data: bytes,
        host: str = "claude-code",
        *,
        program: tuple[str, ...] = PATIENT,
        **env: str,
    ) -> Said:
        """Run the hook on these bytes."""
        began = time.monotonic()
        ended = subprocess.run(
            program,
            cwd=self.root,
            env=self.environment(host, **(UNMEASURED if program is HOOK else {}), **env),
            input=data,
            capture_output=True,
            timeout=100,
            check=False,
        )
        seconds = time.monotonic() - began
        return Said(ended.returncode, ended.stdout.decode(), ended.stderr.decode(), seconds)

    def hook(self, host: str, name: str, **changes: Any) -> str:
        """Run it on a real payload, and see that the host would not notice; what it answered."""
        said = self.send(self.payload(host, name, **changes), host)
        assert (said.code, said.err) == (0, "")
        return said.out

    def records(self, kind: str = "deed") -> list[dict[str, Any]]:
        """The payloads of a kind of record, with their headers, in order."""
        with reading(self.database) as reader:
            query = "SELECT body, seq, call, session, task, agent FROM ledger WHERE kind = ?"
            rows: list[Any] = reader.execute(f"{query} ORDER BY seq", (kind,)).fetchall()
        names = ("seq", "call", "session", "task", "agent")
        return [
            {**json.loads(body), **dict(zip(names, header, strict=True))} for body, *header in rows
        ]

    def texts(self) -> list[dict[str, Any]]:
        return self.records("deed.text")

    def lost(self) -> int:
        """How many are counted, next to the database or in the state directory."""
        elsewhere = Path(os.environ["XDG_STATE_HOME"]).glob("colibri/lost/*")
        counters = [self.beside("-lost"), *elsewhere]
        return sum(int(path.read_text()) for path in counters if path.exists())

    def spooled(self) -> list[dict[str, Any]]:
        path = self.beside("-spool")
        lines = path.read_bytes().splitlines() if path.exists() else []
        return [json.loads(line) for line in lines]

    def verify(self) -> None:
        """The ledger is good, by its own verifier."""
        verified(self.database)

    def server(self, **env: str) -> Server:
        return Server(self.root, (sys.executable, "-m", "colibri", "serve"), handshake=True, **env)


ON_BOTH = {"test_gate", "test_hook"}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    engines.parametrize(metafunc, ON_BOTH, set(), often={"test_gate"})


@pytest.fixture
def bare_project(tmp_path: Path) -> Iterator[Project]:
    """One without a ledger."""
    (tmp_path / "project").mkdir()
    (tmp_path / "home").mkdir()
    yield Project(tmp_path / "project", tmp_path / "home")
    engines.release(tmp_path)


@pytest.fixture
def project(bare_project: Project) -> Project:
    bare_project.make_ledger()
    return bare_project


@pytest.fixture
def others() -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Start other programs, which end with the test."""
    started: list[subprocess.Popen[bytes]] = []

    def start(code: str, *arguments: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            (sys.executable, "-c", code, *arguments),
            env=bare(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        started.append(process)
        assert process.stdout is not None
        process.stdout.readline()  # it is ready
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()
