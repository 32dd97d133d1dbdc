"""A PostgreSQL server for the tests of one run, started when the first test asks for it.

The processes of a run share it. Each holds a connection to the process that keeps the server
(postgres_keeper.py); when the last of these ends, whatever ends it, the server stops and its
directory is removed. Without PostgreSQL or psycopg the tests are skipped; those of a module that
imports this one, as a whole: so it is here that they find psycopg and what needs it.
"""

import fcntl
import os
import pwd
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support import postgres_keeper
from tests.support.postgres_keeper import SUPERUSER

pytest.importorskip("psycopg", reason="psycopg is missing: scripts/setup dev installs it")

import psycopg
from psycopg import errors
from psycopg.conninfo import make_conninfo

from colibri.store.postgres import (
    connection,
    copying,
    expected,
    moving,
    roles,
    schema,
    team,
    transaction,
)
from colibri.store.postgres.home import Home

__all__ = (
    "LOG",
    "SUPERUSER",
    "Home",
    "Server",
    "connection",
    "copying",
    "empty",
    "empty_schema",
    "errors",
    "expected",
    "fresh_schema",
    "moving",
    "programs",
    "psycopg",
    "roles",
    "schema",
    "server",
    "team",
    "transaction",
)

LOG = "colibri/0123456789abcdef0123456789abcdef"
DATABASE = "postgres"
UNPRIVILEGED = ("postgres", "nobody")  # for root, as which PostgreSQL does not start
KEEPER = Path(postgres_keeper.__file__)

_numbers = count(1)


class Server(NamedTuple):
    """A running PostgreSQL server: over its socket everybody is trusted, over TCP nobody is."""

    directory: Path
    port: int

    def settings(self, user: str = SUPERUSER) -> dict[str, str]:
        """How libpq reaches it as some user."""
        return {
            "host": str(self.directory),
            "port": str(self.port),
            "user": user,
            "dbname": DATABASE,
        }

    def url(self, user: str = SUPERUSER, *, tcp: bool = False) -> str:
        host = "127.0.0.1" if tcp else str(self.directory).replace("/", "%2F")
        return f"postgresql://{user}@{host}:{self.port}/{DATABASE}"

    def connect(self, user: str = SUPERUSER) -> psycopg.Connection[Any]:
        return psycopg.connect(make_conninfo(**self.settings(user)), autocommit=True)

    def log(self) -> str:
        """What it has written down so far."""
        return (self.directory / "log").read_text(encoding="utf-8", errors="replace")


@cache
def server() -> Server:
    """The server of this run; the test is skipped if there cannot be one."""
    found = programs()
    if not found:
        pytest.skip("PostgreSQL is missing: .ci/run installs Debian's package postgresql")
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
    note = Path(tempfile.gettempdir()) / f"colibri-postgres-{os.getuid()}-{run}"
    with note.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return _join(note) or _start(found, note)


def fresh_schema(log: str = LOG, name: str = "") -> str:
    """A new schema with its roles, for a test that changes more than rows."""
    name = name or f"t{os.getpid()}_{next(_numbers)}"
    with server().connect() as admin:
        team.make(admin, name, log)
    return name


_made: list[str] = []


def empty_schema(log: str = LOG) -> str:
    """The schema that the tests of this process use one after the other, without a record.

    That takes milliseconds; making the files of a new one takes a hundred times as long.
    """
    if not _made:
        _made.append(fresh_schema())
    (name,) = _made
    empty(name, log)
    return name


def empty(name: str, log: str) -> None:
    """Remove every record and row from a schema, whatever its triggers say."""
    with server().connect() as admin:
        tables = admin.execute(
            "SELECT format('%%I.%%I', schemaname, tablename) FROM pg_tables"
            " WHERE schemaname = %s AND tablename <> 'meta'",
            (name,),
        ).fetchall()
        wipe = "".join(f"DELETE FROM {table};" for (table,) in tables)
        admin.execute(
            f"""BEGIN; SET LOCAL session_replication_role = replica; {wipe}
            DELETE FROM {name}.meta WHERE key NOT IN ('log', 'schema');
            UPDATE {name}.meta SET value = '{log}' WHERE key = 'log'; COMMIT""".encode()
        )


def programs() -> Path | None:
    """Where PostgreSQL's programs are: those on the PATH, else the newest of Debian's."""
    if found := shutil.which("initdb"):
        return Path(found).resolve().parent
    debian = Path("/usr/lib/postgresql").glob("*/bin/initdb")
    newest = sorted(debian, key=lambda program: [*map(int, re.findall(r"\d+", str(program)))])
    return newest[-1].parent if newest else None


_held: list[Any] = []  # for as long as this process lives


def _join(note: Path) -> Server | None:
    """The server that another process of this run has started, if it is still there."""
    try:
        directory, port = note.read_text(encoding="utf-8").split()
        held = socket.socket(socket.AF_UNIX)
        held.connect(str(Path(directory) / "keeper"))
    except OSError:
        return None
    _held.append(held)
    return Server(Path(directory), int(port))


def _start(programs: Path, note: Path) -> Server:
    user = "" if os.getuid() else _unprivileged()
    keeper = subprocess.Popen(
        [sys.executable, "-I", str(KEEPER), str(programs), user, str(note)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # an interrupt from the terminal is not for the keeper
    )
    _held.append(keeper)
    assert keeper.stdout and keeper.stderr
    said = keeper.stdout.readline().split()
    if not said:
        pytest.fail(f"PostgreSQL does not start: {keeper.stderr.read()}")
    return Server(Path(said[0]), int(said[1]))


def _unprivileged() -> str:
    known = {entry.pw_name for entry in pwd.getpwall()}
    return next((name for name in UNPRIVILEGED if name in known), "")
