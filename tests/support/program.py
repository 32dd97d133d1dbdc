"""The installed program, run to its end in a project that holds a story."""

import functools
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from colibri import cli
from colibri.store import ledger
from tests.support.client import environment, execute_raw
from tests.support.ledger_reader import reading
from tests.support.ledger_writer import Lab, disable_triggers, opened, story
from tests.support.terminal import COLIBRI

# To be interrupted from outside: who started the tests in the background has SIGINT ignored, and
# so have their children. Not while coverage is measured: its lock would stay held, now and then.
INTERRUPTIBLE = (
    sys.executable,
    "-c",
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    "from colibri.__main__ import main; main()",
)
UNMEASURED = {"COVERAGE_PROCESS_START": ""}


@functools.cache
def _story() -> bytes:
    with tempfile.TemporaryDirectory() as project:
        with opened(Path(project)) as db:
            story(Lab(db))
        return (Path(project) / "data" / "colibri.db").read_bytes()


def database_of(project: Path) -> Path:
    return project / "data" / "colibri.db"


def tell_story(project: Path) -> Path:
    """Give a project a database with 54 records; S-1 is sealed, S-2 is open. The project."""
    database_of(project).parent.mkdir(parents=True)
    database_of(project).write_bytes(_story())
    return project


def head_of(path: Path) -> str:
    """The newest record of a database, as --head takes it."""
    with reading(path) as db:
        newest = ledger.head(db)
    assert newest is not None
    return f"{newest.seq}:{newest.leaf.hex()}"


def tamper(path: Path, *statements: str) -> None:
    """Run statements in a database as somebody would whom nothing holds back."""
    with closing(apsw.Connection(str(path))) as db:
        disable_triggers(db)
        db.execute("PRAGMA ignore_check_constraints = ON; PRAGMA foreign_keys = OFF")
        for statement in statements:
            db.execute(statement)


def colibri(project: Path, *arguments: str, **env: str) -> tuple[int, str, str]:
    """Run it in the project; exit code, stdout, stderr."""
    done = execute_raw([*COLIBRI, *arguments], cwd=project, env=environment(**env))
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def inside(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """The same within this process, in the working directory: where many are run."""
    code = cli.main(list(arguments))
    return code, *capsys.readouterr()
