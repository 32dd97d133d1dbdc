"""Makes a project's schema on a PostgreSQL server, or brings it up to date.

No password passes through here: libpq finds it, in the file of passwords, a service or the
environment, and those of the new roles are set with psql.
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from colibri.core.errors import ResourceError
from colibri.store.postgres import faults, roles, schema

SECONDS = 10  # that connecting may take
_LOCK = 0x436F6C35  # of two that make a schema at once
_PORTS = re.compile(r"[0-9,]*")
_ESCAPED = re.compile(r"[:\\]")  # in a line of the file of passwords
# A newer libpq knows more of them; what it does not show to anybody it marks with *.
_SECRETS = {"scram_client_key", "scram_server_key"} | {
    option.keyword.decode()
    for option in psycopg.pq.Conninfo.get_defaults()
    if option.dispchar == b"*"
}
_KEPT = ("sslmode", "sslrootcert", "channel_binding", "target_session_attrs")


class Made(NamedTuple):
    """What is there now."""

    roles: roles.Roles
    version: int
    before: int  # the version that the schema had; 0 if it is new
    log: str  # its name, for good


def connect(url: str) -> psycopg.Connection[Any]:
    """Connect as an administrator; ResourceError says why that fails."""
    require_no_password(url)
    try:
        more: Any = {"client_encoding": "UTF8", "connect_timeout": SECONDS}
        return psycopg.connect(url, autocommit=True, **more)
    except psycopg.Error as problem:
        why = " ".join(str(problem).split())
        hint = "psql with the same URL has to work first, without asking for a password: ~/.pgpass"
        raise ResourceError(
            f"cannot connect to PostgreSQL: {why}", faults.tls_hint(why) or hint
        ) from None


def require_no_password(url: str) -> None:
    """ResourceError for a URL with a password, which others could read, and for what is no URL."""
    try:
        given = conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        given = {"port": "none"}
    if not _PORTS.fullmatch(str(given.get("port", ""))):  # it may be a part of a password
        raise ResourceError(
            "not the URL of a database", "postgresql://USER@HOST:PORT/DATABASE is one"
        )
    if secret := _SECRETS & given.keys():
        raise ResourceError(
            f"the URL holds a secret ({', '.join(sorted(secret))}), which other users of this"
            " machine can read in the list of processes",
            "leave it out; libpq finds it in ~/.pgpass, PGPASSFILE, a service or PGPASSWORD",
        )


def place_of(pg: psycopg.Connection[Any]) -> dict[str, str]:
    """Where a connection leads, as libpq's settings."""
    return {**pg.info.get_parameters(), "dbname": pg.info.dbname}


def url_of(place: Mapping[str, str], user: str) -> str:
    """How a role reaches a place, encrypted in the same way."""
    kept = {name: place[name] for name in _KEPT if name in place}
    host, port = place.get("host", ""), place.get("port", "")
    if "," in host or host.startswith("/"):  # several, or a socket
        kept |= {"host": host, "port": port}
        host = port = ""
    where = f"{host}:{port}" if port else host
    more = f"?{urlencode(kept, safe='/,')}" if kept else ""
    return f"postgresql://{user}@{where}/{quote(place['dbname'], safe='')}{more}"


def encryption(pg: psycopg.Connection[Any]) -> tuple[bool, bool]:
    """Whether a connection is encrypted, and whether it stays on this machine."""
    local = pg.info.host.startswith("/") or pg.info.hostaddr in ("127.0.0.1", "::1")
    return bool(pg.pgconn.ssl_in_use), local


def password_lines(pg: psycopg.Connection[Any], user: str) -> list[str]:
    """The lines of libpq's file of passwords for a role, but for the password; one for each host
    that was named.
    """
    place = place_of(pg)
    hosts = place.get("host", "localhost").split(",")
    ports = place.get("port", str(pg.info.port)).split(",")
    ports *= len(hosts) if len(ports) == 1 else 1
    where = zip(hosts, ports, strict=True)
    lines = ((host, port, place["dbname"], user) for host, port in where)
    return [":".join(_ESCAPED.sub(r"\\\g<0>", part) for part in line) for line in lines]


def make(pg: psycopg.Connection[Any], name: str, log: str) -> Made:
    """Make or migrate a schema, wholly or not at all; an existing one keeps its log.

    ResourceError says what is missing. The user of the connection has to be one that may create
    roles and schemas.
    """
    schema.require_name(name)
    schema.require_server(pg.info.server_version, pg.info.parameter_status("server_encoding"))
    try:
        with pg.transaction():
            pg.execute("SELECT pg_advisory_xact_lock(%s::int, hashtext(%s))", (_LOCK, name))
            if not is_there(pg, name):
                _create(pg, name)
            return _migrate(pg, name, log)
    except psycopg.errors.InsufficientPrivilege as problem:
        raise ResourceError(
            f"{pg.info.user} may not make it: {problem.diag.message_primary}",
            "connect as a superuser, or as a role with CREATEROLE that may CREATE in the database"
            " and, if the schema exists, is a member of its owner",
        ) from None
    except psycopg.Error as problem:
        why = problem.diag.message_primary or " ".join(str(problem).split())
        raise ResourceError(
            f"the schema {name} was not made: {why}", "nothing was changed; try again"
        ) from None


def _create(pg: psycopg.Connection[Any], name: str) -> None:
    if taken := roles.existing(pg, name):
        raise ResourceError(
            f"there are roles for another schema {name} on this server: {', '.join(taken)}",
            "name another schema; or, if none of its databases has one, drop the roles",
        )
    roles.create(pg, name)
    made = sql.SQL("CREATE SCHEMA {} AUTHORIZATION {}")
    pg.execute(made.format(sql.Identifier(name), sql.Identifier(roles.names(name).owner)))


def _migrate(pg: psycopg.Connection[Any], name: str, log: str) -> Made:
    known = roles.names(name)
    pg.execute(sql.SQL("SET LOCAL ROLE {}").format(sql.Identifier(known.owner)))
    schema.use(pg, name)
    before = schema.migrate(pg, log)
    roles.grant(pg, name)
    row = pg.execute("SELECT value FROM meta WHERE key = 'log'").fetchone()
    return Made(known, schema.version(pg), before, str(row and row[0]))


def is_there(pg: psycopg.Connection[Any], name: str) -> bool:
    """Whether the schema is; ResourceError if it belongs to somebody else."""
    row = pg.execute(
        "SELECT nspowner::regrole::text FROM pg_namespace WHERE nspname = %s", (name,)
    ).fetchone()
    if row and row[0] != roles.names(name).owner:
        raise ResourceError(
            f"the schema {name} belongs to {row[0]}, and was not made by Colibri",
            "name another schema",
        )
    return row is not None
