"""What `colibri doctor` asks about a ledger on PostgreSQL: is it reached, as which role, how?"""

import importlib
from collections.abc import Iterator
from contextlib import closing
from typing import Any

from colibri.cli.doctor import Finding, guarded, newest_records, ok, problem, warning
from colibri.config import Config
from colibri.core.errors import Damaged, ResourceError
from colibri.core.modes import Mode
from colibri.store.connection import Connection
from colibri.store.faults import errors
from colibri.store.homes import home_of

_VERIFIED = ("verify-full", "verify-ca")
_MADE = "colibri team init URL, as an administrator, prints the roles and how to use them"


def examine(config: Config) -> Iterator[Finding]:
    """Everything about the server that holds the ledger of a project."""
    yield from guarded("psycopg", _driver)
    if config.mode == Mode.MINIMAL:
        yield ok(f"{config.ledger_name}, which mode MINIMAL does not open", "database")
    else:
        yield from guarded("database", _database, config)


def _driver() -> Iterator[Finding]:
    from importlib import metadata  # noqa: PLC0415 - 25 ms that other commands need not wait

    try:
        loaded: Any = importlib.import_module("psycopg")
        yield ok(f"{metadata.version('psycopg')}, libpq {_libpq(loaded)}")
    except ImportError as missing:
        hint = "pip install 'colibri-mcp[postgres]' installs it"
        yield problem(f"cannot be loaded: {missing}", hint)


def _libpq(psycopg: Any) -> str:
    major, minor = divmod(psycopg.pq.version(), 10_000)
    return f"{major}.{minor}"


def _database(config: Config) -> Iterator[Finding]:
    try:
        reader = home_of(*config.home).open_reader()
    except ResourceError as unusable:
        yield problem(unusable.message, unusable.hint)
        return
    with closing(reader):
        server = reader.engine.facts(reader)["server"]
        about = f"{server['version']}, schema {server['schema']} of version"
        yield ok(f"{config.ledger_name}: {about} {server['schema_version']}")
        yield from _kind(server, config.mode)
        yield from _role(server, config.mode)
        yield from _encryption(server)
        yield from _records(reader)


def _kind(server: dict[str, Any], mode: Mode) -> Iterator[Finding]:
    if not server["standby"]:
        yield ok("it is the primary, which takes records", "server")
    elif mode == Mode.READONLY:
        yield ok("it is a standby, which READONLY can read", "server")
    else:
        hint = "name the primary; with several hosts, add target_session_attrs=read-write"
        yield problem("it is a standby, which takes no records", hint, "server")


def _role(server: dict[str, Any], mode: Mode) -> Iterator[Finding]:
    user, rights, schema = server["user"], server["rights"], server["schema"]
    may = f"{user} may {' and '.join(rights) or 'do nothing'}"
    needed = "read" if mode == Mode.READONLY else "write"
    if needed not in rights:
        yield problem(f"{may}, but mode {mode} has to {needed}", _MADE, "role")
    elif "administer" in rights:
        hint = f"connect as {schema}_writer: {user} can rewrite what others recorded"
        yield warning(f"{may}", hint, "role")
    else:
        yield ok(may, "role")


def _encryption(server: dict[str, Any]) -> Iterator[Finding]:
    tls, mode = server["tls"], server["sslmode"]
    if tls is None and server["local"]:
        yield ok("not used, and the connection does not leave this machine", "TLS")
    elif tls is None:
        hint = "set up TLS on the server, then add sslmode=verify-full to COLIBRI_DB_URL"
        yield warning("not used: whoever is in between can read and change everything", hint, "TLS")
    elif mode not in _VERIFIED:
        hint = "add sslmode=verify-full to COLIBRI_DB_URL, and sslrootcert if the CA is your own"
        detail = f"{tls}, but with sslmode={mode} nobody checks that it is the right server"
        yield warning(detail, hint, "TLS")
    else:
        yield ok(f"{tls}, with sslmode={mode}", "TLS")


def _records(reader: Connection) -> Iterator[Finding]:
    damaged = "colibri verify shows what is damaged"
    try:
        with reader:  # one transaction: what is read belongs together
            found = [f"schema: {what}" for what in reader.engine.foreign(reader)]
            broken, checked = newest_records(reader)
    except errors(Damaged, UnicodeDecodeError) as unreadable:
        yield problem(f"cannot be read: {unreadable}", damaged, "records")
        return
    found += broken
    yield problem(found[0], damaged, "records") if found else ok(checked, "records")
