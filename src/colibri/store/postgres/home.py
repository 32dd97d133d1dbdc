"""A ledger in a schema of a PostgreSQL database, as store/home.py describes it."""

import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from typing import Any, Self

import psycopg

from colibri.core.errors import ColibriError, Damaged, ResourceError
from colibri.store import home
from colibri.store.connection import Bindings
from colibri.store.postgres import SCHEMA, faults, roles, schema, team
from colibri.store.postgres.connection import Cursor
from colibri.store.postgres.opened import Opened
from colibri.store.postgres.pipelined import Pipelined

PROGRAM = "colibri"  # what PostgreSQL shows of us
PAUSE = 0.25  # between two attempts to reach the server
# A server that cannot be reached is found out within some seconds, however it went away.
CONNECTION: dict[str, Any] = {
    "connect_timeout": 5,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
    "client_encoding": "UTF8",  # whatever the environment, the URL or the database says
}
_ONE_WAY = "-c standard_conforming_strings=on"  # to read strings, whatever is set elsewhere
# The roles that `team init` makes have PATIENCE anyway, others that it is granted to have not.
_SETTINGS = {"lock_timeout": "10s", "synchronous_commit": "off"} | roles.PATIENCE
WRITING = " ".join(f"-c {name}={value}" for name, value in _SETTINGS.items())
# Only once it is made: a URL with target_session_attrs=read-write would take no read-only one.
_VERSION = "SELECT value FROM meta WHERE key = 'schema'"
_READ_ONLY = _VERSION.replace(
    "FROM", ", set_config('default_transaction_read_only', 'on', false) FROM"
)

_HINTS: dict[str | None, str] = {
    "unreachable": "check that the server runs and that this machine can reach it",
    "not allowed": "name a database and a role of the project: colibri team init prints them",
    "damaged": "colibri team init URL makes the schema",
    "read-only": "name the primary server",
}


class _Away:
    """In the place of a connection that was not made yet."""

    closed = broken = True

    def close(self) -> None:
        """There is nothing to close."""


class Reader(Pipelined):
    """A read-only connection, made when it is first used, and replaced when it breaks."""

    def __init__(self, connect: "Callable[[], psycopg.Connection[Any]]") -> None:
        self._connect = connect
        super().__init__(_Away())  # type: ignore[arg-type]

    def use(self, pg: "psycopg.Connection[Any]") -> None:
        if isinstance(pg, _Away):
            self.pg = pg
        else:
            super().use(pg)

    def __enter__(self) -> Self:
        self._require()
        super().__enter__()
        return self

    def execute(self, statements: str, bindings: Bindings | None = None) -> Cursor:
        if not self.in_transaction:
            self._require()
        return super().execute(statements, bindings)

    def _require(self) -> None:
        """ResourceError is for the start: later, another version is damage."""
        if self.is_broken:
            self._depth = 0
            try:
                self.use(self._connect())
            except ResourceError as problem:
                raise Damaged(f"{problem.message}: {problem.hint}") from problem


class Home:
    """The URL of the database, and the name of the schema."""

    def __init__(self, url: str, name: str, schema_name: str) -> None:
        self._url = url
        self._schema = schema_name
        self.name = name
        self._version = "PostgreSQL"

    def open_writer(
        self,
        *,
        timeout: float,
        monotonic: Callable[[], float],
        sleep: Callable[[float], None],
        stamp: str,
        new_log: Callable[[], str],
    ) -> Opened:
        """Nothing is made or migrated: only the owner of the schema may do that."""
        deadline = monotonic() + timeout
        while True:
            try:
                return Opened(self._writer(), monotonic, sleep)
            except psycopg.Error as problem:
                if faults.fault(problem) != "unreachable" or monotonic() >= deadline:
                    raise self._explained(problem) from problem
            sleep(PAUSE)

    def open_reader(
        self, *, watched: bool = False, patience: home.Patience | None = None, **_: object
    ) -> Reader:
        """The server checks rights and versions at each statement, so nothing has to be watched.

        A program that waits for nothing connects at once, to be told what is wrong.
        """
        reader = Reader(self._connect_reader)
        if not watched and patience is None:
            try:
                reader.use(self._connect_reader())
            except psycopg.Error as problem:
                raise self._explained(problem) from problem
        return reader

    @contextmanager
    def appending(
        self,
        patience: home.Patience,
        *,
        monotonic: Callable[[], float],
        sleep: Callable[[float], None],
    ) -> Iterator[Opened]:
        """One attempt: whoever has only a few records need not wait for a server."""
        try:
            opened = Opened(self._writer(), monotonic, sleep)
        except psycopg.Error as problem:
            raise self._explained(problem) from problem
        with closing(opened):
            yield opened

    def is_there(self) -> bool:
        return True

    def identity(self) -> None:
        """Its log says which one it is."""

    def version(self) -> str:
        return self._version

    def exposure(self) -> str:
        """The server decides who may connect."""
        return ""

    def is_small(self) -> bool:
        """What is checked at the start is the schema, whatever the size of the ledger."""
        return True

    def _writer(self) -> "Callable[[], psycopg.Connection[Any]]":
        """What connects one writer; its connections share a name that no other has."""
        return partial(self._connect, WRITING, f"{PROGRAM} {os.urandom(8).hex()}", _VERSION)

    def _connect_reader(self) -> "psycopg.Connection[Any]":
        return self._connect("", PROGRAM, _READ_ONLY)

    def _connect(self, settings: str, name: str, version: str) -> "psycopg.Connection[Any]":
        schema.require_name(self._schema)
        team.require_no_password(self._url)
        options = f"-c search_path={self._schema},pg_temp {_ONE_WAY} {settings}"
        pg = psycopg.connect(
            self._url, autocommit=True, application_name=name, options=options, **CONNECTION
        )
        try:
            schema.require_server(
                pg.info.server_version, pg.info.parameter_status("server_encoding")
            )
            self._require_version(pg.execute(version.encode()).fetchone())
        except BaseException:
            pg.close()
            raise
        self._version = f"PostgreSQL {pg.info.parameter_status('server_version')}"
        return pg

    def _require_version(self, row: tuple[Any, ...] | None) -> None:
        found = schema.number(row[0]) if row else 0
        if found < 0:
            raise ResourceError(
                f"{self.name} holds an unfinished copy of a ledger", schema.CONTINUE
            )
        if found < SCHEMA:
            raise ResourceError(
                f"{self.name} has an older schema, of version {found}",
                "colibri team init URL migrates it, as somebody who may act as its owner",
            )
        if found > SCHEMA:
            raise ResourceError(
                f"{self.name} has a newer schema, of version {found}; this Colibri knows versions"
                f" up to {SCHEMA}",
                "use the newer Colibri that migrated it",
            )

    def _explained(self, problem: psycopg.Error) -> ColibriError:
        if isinstance(problem, psycopg.errors.UndefinedTable | psycopg.errors.InvalidSchemaName):
            return ResourceError(f"there is no ledger at {self.name}", str(_HINTS["damaged"]))
        why = problem.diag.message_primary or " ".join(str(problem).split())
        hint = _HINTS.get(faults.fault(problem), "psql with the same URL has to work first")
        if any(said in why for said in faults.NO_PASSWORD):
            hint = "libpq finds passwords in ~/.pgpass, PGPASSFILE, a service or PGPASSWORD"
        return ResourceError(f"cannot open {self.name}: {why}", faults.tls_hint(why) or hint)
