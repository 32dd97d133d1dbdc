"""Runs the installed program to its end, in a project with a sample history."""

import functools
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from colibri import cli
from colibri.store import ledger
from tests.support import engines
from tests.support.client import environment, execute_raw
from tests.support.ledger_reader import reading
from tests.support.ledger_writer import Lab, disable_triggers, opened, story
from tests.support.terminal import COLIBRI

# A command that SIGINT can interrupt: tests started in the background, and their children, ignore
# it. Not measured for coverage: the interrupt would sometimes leave coverage's lock held.
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
    """Give a project a database with 54 records: S-1 sealed, S-2 open. Returns the project."""
    if engines.chosen() == "postgres":
        with opened(project) as db:
            story(Lab(db))
        return project
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
    """Run statements in a database without its constraints and triggers, as an attacker would."""
    if engines.chosen() == "postgres":
        with closing(engines.of_project(path.parent.parent)) as ledger:
            for statement in statements:
                engines.tamper(ledger, statement)
        return
    with closing(apsw.Connection(str(path))) as db:
        disable_triggers(db)
        db.execute("PRAGMA ignore_check_constraints = ON; PRAGMA foreign_keys = OFF")
        for statement in statements:
            db.execute(statement)


def colibri(project: Path, *arguments: str, **env: str) -> tuple[int, str, str]:
    """Run it in the project; exit code, stdout, stderr."""
    surroundings = environment(**engines.environment(project) | env)
    done = execute_raw([*COLIBRI, *arguments], cwd=project, env=surroundings)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def inside(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """The same in this process and the working directory, for tests with many runs."""
    code = cli.main(list(arguments))
    return code, *capsys.readouterr()
